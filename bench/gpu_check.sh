#!/bin/sh
# Checks the compiler on a GPU machine that needs no LLVM, flex or Criterion: the examples, many
# extents from one artifact, the sweep of every op, dtype and shape, and random graphs, each for
# sm_90a and sm_80.
#
#   make gpu-kit                                   here: fills build/kit
#   sh bench/gpu_check.sh build/kit [N] [SEED] [JOBS]    there; N random graphs for each target
#
# Prints a table last; full logs stay under $OUT if that is set, the one of the graphs with the
# coverage table of all parts. Fails when anything failed. CHECKS="graphs" runs that alone.
set -u
kit=$(cd "${1:?usage: gpu_check.sh KIT [N] [SEED] [JOBS]}" && pwd) || exit 2
n=${2:-500}
seed=${3:-1}
jobs=${4:-$(nproc)}
[ "$jobs" -le 12 ] || jobs=12
targets=${TARGETS:-"sm_90a sm_80"}
device=${DEVICE:-cuda}
seconds=${SECONDS_EACH:-280}
checks=${CHECKS:-"examples extents sweep graphs"}
work=$(mktemp -d) || exit 2
logs=${OUT:-$work/logs}
mkdir -p "$logs"
trap 'rm -rf "$work"' EXIT
ln -s "$kit/kit" "$work/fusec"
ln -s "$kit/kit" "$work/soak"
# What the driver compiled is kept for the second load of the same artifact, in a place of its own.
CUDA_CACHE_PATH=$work/cache CUDA_CACHE_MAXSIZE=4294967296
export CUDA_CACHE_PATH CUDA_CACHE_MAXSIZE

examples() { # examples TARGET
    passed=0 failed=0
    for source in "$kit"/examples/*.g; do
        if timeout 120 "$work/fusec" verify "$source" "--device=$device" "--target=$1"; then
            passed=$((passed + 1))
        else
            echo "FAILED $source ($?)"
            failed=$((failed + 1))
        fi
    done
    echo "$passed passed, $failed failed, 0 skipped"
}

total() { # total K: shows the K parts and the sum of their totals
    i=0 bad=0
    while [ $i -lt "$1" ]; do
        # A part that was broken off has no total.
        tail -1 "$work/part$i" | grep -qE ' passed, .* skipped$' || bad=$((bad + 1))
        cat "$work/part$i"
        i=$((i + 1))
    done >"$work/parts"
    cat "$work/parts"
    awk -v bad=$bad '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ {
        passed += $1; failed += $3; skipped += $5
    }
    END { printf "%d passed, %d failed, %d skipped\n", passed, failed + bad, skipped }' "$work/parts"
}

extents() { # extents TARGET
    sh "$kit/bench/extents.sh" "$work/fusec" "$kit/examples/transformer.g" "$1" "$device"
}

graphs() { # graphs TARGET: N of them, in several processes
    each=$(((n + jobs - 1) / jobs)) first=$seed left=$n k=0
    while [ "$left" -gt 0 ]; do
        [ "$each" -le "$left" ] || each=$left
        timeout $seconds "$work/soak" "$each" "$first" "--target=$1" "--coverage=$work/coverage$k" \
            >"$work/part$k" 2>&1 &
        first=$((first + each)) left=$((left - each)) k=$((k + 1))
    done
    wait
    total $k >"$work/total"
    sed '$d' "$work/total"
    k=$((k - 1))
    gaps=0
    "$work/soak" --merge $(seq -f "$work/coverage%.0f" 0 $k) || { gaps=1; echo 'FAILED coverage'; }
    awk -v gaps=$gaps 'END { print $1, "passed,", $3 + gaps, "failed,", $5, "skipped" }' "$work/total"
}

sweep() { # sweep TARGET: all of it, in several processes
    k=0
    while [ $k -lt "$jobs" ]; do
        timeout $seconds "$work/soak" --sweep "--part=$k/$jobs" "--target=$1" >"$work/part$k" 2>&1 &
        k=$((k + 1))
    done
    wait
    total $k
}

check() { # check WHAT TARGET: one line of the table
    log=$logs/$1-$2.log
    started=$(date +%s)
    "$1" "$2" >"$log" 2>&1
    line=$(tail -1 "$log" | grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$')
    [ -n "$line" ] || line='0 passed, 1 failed, 0 skipped (broken off)'
    printf '%-10s %-8s %4d s  %s\n' "$1" "$2" $(($(date +%s) - started)) "$line" >>"$work/table"
    case $line in
    0\ passed* | *' passed, '[1-9]*)
        bad_checks=$((bad_checks + 1))
        grep -E -A3 'FAILED|^seed |differs|error|crashed|does not finish|cannot' "$log" | head -20
        tail -3 "$log" ;;
    esac
}

bad_checks=0
for target in $targets; do
    for what in $checks; do check "$what" "$target"; done
done
cat "$work/table"
[ "$bad_checks" = 0 ]
