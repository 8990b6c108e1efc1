#!/bin/sh
# Checks how long the compiler takes for each example to PTX and to an object for a CPU, process start
# to exit: the median of RUNS runs (half of that for objects), in milliseconds.
# compile_time.sh RUNS TIME_RUNS FUSEC SOURCE...
#
# The goals of PTX: 50 ms, 100 with a matmul, and 500 for a network that would take more than 150
# launches without fusion. Objects are LLVM's work, which grows with the functions (variants of
# kernels): 100 ms, and for more than two functions 50 ms and 20 for each. The goals are for a machine
# that does nothing else. An example over its goal is measured up to four times more. Machines, and
# the neighbours of a virtual one, differ by up to half: an example fails beyond 1.5 of its goal, and
# between them it counts as skipped, since nothing was shown. So it does beyond, if other programs
# took the processors away more often than every 25 ms.
set -u
limit_ms=50 matmul_limit_ms=100 network_limit_ms=500 network_launches=150 object_limit_ms=100
runs=$1 time_runs=$2 fusec=$3
shift 3
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
passed=0 failed=0 skipped=0

measure() { # measure SOURCE TARGET: sets wall, cpu (microseconds) and switches
    n_runs=$runs kind=ptx
    [ "$2" != cpu ] || n_runs=$(((runs + 1) / 2)) kind=obj
    "$time_runs" $n_runs "$fusec" "$1" "--target=$2" --emit=$kind -o "$out/made" >"$out/times" \
        2>"$out/error" &&
        read -r wall cpu switches <"$out/times"
}

ms() { # ms MICROSECONDS
    echo "$(($1 / 1000)).$(($1 / 100 % 10)) ms"
}

check() { # check SOURCE TARGET GOAL_MS
    tries=1
    while :; do
        if ! measure "$1" "$2"; then
            echo "$1 for $2: does not compile"
            cat "$out/error"
            failed=$((failed + 1))
            return
        fi
        [ "$wall" -gt $(($3 * 1000)) ] && [ $tries -lt 5 ] || break
        tries=$((tries + 1))
    done
    if [ "$wall" -le $(($3 * 1000)) ]; then
        echo "$1 for $2: $(ms "$wall")"
        passed=$((passed + 1))
    elif [ $((switches * 25000)) -gt "$wall" ]; then
        echo "$1 for $2: $(ms "$wall") on a busy machine, $(ms "$cpu") of its processors"
        skipped=$((skipped + 1))
    elif [ $((wall * 2)) -le $(($3 * 3000)) ]; then
        echo "$1 for $2: $(ms "$wall"), over the goal of $3 ms"
        skipped=$((skipped + 1))
    else
        echo "$1 for $2: $(ms "$wall"), more than $(($3 * 3 / 2)) ms"
        failed=$((failed + 1))
    fi
}

for source; do
    most_ms=$limit_ms
    grep -q ' @ ' "$source" && most_ms=$matmul_limit_ms
    n_apart=$("$fusec" "$source" --emit=ptx --explain -o - 2>&1 >/dev/null |
        awk '/^ *launches .* without fusion/ { sub(/.*\(/, ""); n += $1 } END { print n + 0 }')
    [ "$n_apart" -le $network_launches ] || most_ms=$network_limit_ms
    for target in sm_90a sm_80; do
        check "$source" $target "$most_ms"
    done
    n_functions=$("$fusec" "$source" --target=cpu --emit=llvm -o - | grep -c '^define')
    most_ms=$((50 + 20 * n_functions))
    [ "$most_ms" -ge $object_limit_ms ] || most_ms=$object_limit_ms
    check "$source" cpu $most_ms
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $((passed + skipped)) -gt 0 ]
