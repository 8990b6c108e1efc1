#!/bin/sh
# Checks the compiler on a GPU machine that needs no LLVM, flex or Criterion: the examples, many
# extents from one artifact, products whose arithmetic is rewritten, the sweep of every op, dtype and
# shape, random graphs, and random shapes for every template, each for sm_90a and sm_80, all at once:
# most of the time goes into the interpreter and the driver's compiler.
#
#   make gpu-kit                                   here: fills build/kit
#   sh bench/gpu_check.sh build/kit [N] [SEED] [JOBS]    there; N random graphs for each target
#
# Prints a table last; full logs stay under $OUT if that is set, those of graphs and shapes with the
# coverage table of all parts. Fails when anything failed. CHECKS="graphs" runs that alone. Each check
# has SECONDS_EACH (280): graphs and shapes begin nothing in the last fifth, and what is short is told.
# SHAPES is how many every template is to have (500); AGAINST the target of the unfused programs that
# they are compared with (their own).
set -u
kit=$(cd "${1:?usage: gpu_check.sh KIT [N] [SEED] [JOBS]}" && pwd) || exit 2
n=${2:-500}
seed=${3:-1}
jobs=${4:-$(nproc)}
[ "$jobs" -le 12 ] || jobs=12
targets=${TARGETS:-"sm_90a sm_80"}
device=${DEVICE:-cuda}
seconds=${SECONDS_EACH:-280}
most=$((seconds - seconds / 5)) # when the last program begins
checks=${CHECKS:-"examples extents rewrites sweep graphs shapes"}
n_shapes=${SHAPES:-500}
work=$(mktemp -d) || exit 2
logs=${OUT:-$work/logs}
mkdir -p "$logs"
trap 'rm -rf "$work"' EXIT
fusec=$work/fusec soak=$work/soak
ln -s "$kit/kit" "$fusec"
ln -s "$kit/kit" "$soak"
# What the driver compiled is kept for the second load of the same artifact, in a place of its own.
CUDA_CACHE_PATH=$work/cache CUDA_CACHE_MAXSIZE=4294967296
export CUDA_CACHE_PATH CUDA_CACHE_MAXSIZE

examples() { # examples TARGET
    passed=0 failed=0
    for source in "$kit"/examples/*.g; do
        name=$(basename "$source" .g)
        {
            timeout $seconds "$fusec" verify "$source" "--device=$device" "--target=$1"
            echo $? >"$parts/$name.status"
        } >"$parts/$name" 2>&1 &
    done
    wait
    for source in "$kit"/examples/*.g; do
        name=$(basename "$source" .g)
        cat "$parts/$name"
        if [ "$(cat "$parts/$name.status")" = 0 ]; then
            passed=$((passed + 1))
        else
            echo "FAILED $name ($(cat "$parts/$name.status"))"
            failed=$((failed + 1))
        fi
    done
    echo "$passed passed, $failed failed, 0 skipped"
}

total() { # total K: shows the K parts and the sum of their totals
    i=0 bad=0
    while [ $i -lt "$1" ]; do
        # A part that was broken off has no total.
        tail -1 "$parts/part$i" | grep -qE ' passed, .* skipped$' || bad=$((bad + 1))
        cat "$parts/part$i"
        i=$((i + 1))
    done >"$parts/all"
    cat "$parts/all"
    awk -v bad=$bad '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ {
        passed += $1; failed += $3; skipped += $5
    }
    END { printf "%d passed, %d failed, %d skipped\n", passed, failed + bad, skipped }' "$parts/all"
}

extents() { # extents TARGET
    sh "$kit/bench/extents.sh" "$fusec" "$kit/examples/transformer.g" "$1" "$device"
}

# One program of attention: DTYPE M N DEPTH COLUMNS SCORES.
attention() {
    cat <<END
dim M in 1..4096
dim N in 2..8192 mult 2
graph a(q: $1[3, M, $4], k: $1[3, N, $4], v: $1[3, N, $5], b: $1[M, N]) -> (o: $1[3, M, $5]) {
  t = (q @ transpose(k, perm=[0, 2, 1])) * 0.25
  s = $6
  o = relu(softmax(s) @ v)
}
END
}

rewrites() { # rewrites TARGET: with ragged rows and columns, masks and biases
    seen='iota([M, N], axis=1) <= iota([M, N], axis=0)'
    k=0
    for dtype in bf16 f16; do
        for scores in t 't + b' "where($seen, t, -inf)" "where($seen, t + b, -inf)"; do
            for sizes in '128 256 64 64' '77 514 80 40' '300 1026 128 128' '64 66 32 32'; do
                set -- "$1" $sizes
                attention $dtype "$2" "$3" "$4" "$5" "$scores" >"$parts/a$k.g"
                echo "$dtype, $scores, $sizes" >"$parts/part$k"
                rewrite "$1" "$2" "$3" $k &
                k=$((k + 1))
                [ $((k % jobs)) != 0 ] || wait
            done
        done
    done
    wait
    total $k
}

rewrite() { # rewrite TARGET M N K: the K-th of them
    if timeout $seconds "$fusec" verify "$parts/a$4.g" --rewrite "--device=$device" \
        "--target=$1" "--dim=M=$2" "--dim=N=$3" >"$parts/said$4" 2>&1 &&
        grep '  rewritten: ' "$parts/said$4"; then
        echo '1 passed, 0 failed, 0 skipped'
    else
        echo 'FAILED'
        cat "$parts/said$4"
        echo '0 passed, 1 failed, 0 skipped'
    fi >>"$parts/part$4"
}

graphs() { # graphs TARGET: N of them, in several processes
    each=$(((n + jobs - 1) / jobs)) first=$seed left=$n k=0
    while [ "$left" -gt 0 ]; do
        [ "$each" -le "$left" ] || each=$left
        timeout $seconds "$soak" "$each" "$first" "--target=$1" "--seconds=$most" \
            "--coverage=$parts/coverage$k" \
            >"$parts/part$k" 2>&1 &
        first=$((first + each)) left=$((left - each)) k=$((k + 1))
    done
    wait
    total $k >"$parts/total"
    sed '$d' "$parts/total"
    k=$((k - 1))
    gaps=0
    "$soak" --merge $(seq -f "$parts/coverage%.0f" 0 $k) || { gaps=1; echo 'FAILED coverage'; }
    awk -v gaps=$gaps -v n="$n" 'END {
        if ($1 + $3 + $5 < n && ++gaps) printf "FAILED to run %d graphs in the time\n", n
        print $1, "passed,", $3 + gaps, "failed,", $5, "skipped"
    }' "$parts/total"
}

sweep() { # sweep TARGET: all of it, in several processes
    k=0
    while [ $k -lt "$jobs" ]; do
        timeout $seconds "$soak" --sweep "--part=$k/$jobs" "--target=$1" >"$parts/part$k" 2>&1 &
        k=$((k + 1))
    done
    wait
    total $k
}

shapes() { # shapes TARGET: of every template, in several processes
    k=0
    while [ $k -lt "$jobs" ]; do
        timeout $seconds "$soak" --shapes "$n_shapes" "$seed" "--part=$k/$jobs" "--target=$1" \
            ${AGAINST:+"--against=$AGAINST"} "--seconds=$most" "--coverage=$parts/coverage$k" \
            >"$parts/part$k" 2>&1 &
        k=$((k + 1))
    done
    wait
    total $k >"$parts/total"
    sed '$d' "$parts/total"
    gaps=0
    "$soak" --merge-shapes "$n_shapes" "$1" $(seq -f "$parts/coverage%.0f" 0 $((k - 1))) || gaps=1
    awk -v gaps=$gaps 'END { print $1, "passed,", $3 + gaps, "failed,", $5, "skipped" }' "$parts/total"
}

check() { # check WHAT TARGET: a line of the table, and what went wrong
    log=$logs/$1-$2.log
    parts=$work/$1-$2
    mkdir "$parts"
    started=$(date +%s)
    "$1" "$2" >"$log" 2>&1
    line=$(tail -1 "$log" | grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$')
    [ -n "$line" ] || line='0 passed, 1 failed, 0 skipped (broken off)'
    printf '%-10s %-8s %4d s  %s\n' "$1" "$2" $(($(date +%s) - started)) "$line" >"$parts/line"
    case $line in
    0\ passed* | *' passed, '[1-9]*)
        {
            grep -E -A3 'FAILED|^seed |differs|error|crashed|does not finish|cannot' "$log" |
                head -20
            tail -3 "$log"
        } >"$parts/wrong" ;;
    esac
}

for target in $targets; do
    for what in $checks; do check "$what" "$target" & done
done
wait
cat "$work"/*/wrong 2>/dev/null
for target in $targets; do
    for what in $checks; do cat "$work/$what-$target/line"; done
done
for wrong in "$work"/*/wrong; do [ ! -e "$wrong" ] || exit 1; done
