#!/bin/sh
# Checks how long the compiler takes for each example to PTX: the median of 20 runs, process start to
# exit, in milliseconds. compile_time.sh FUSEC LIMIT_MS SOURCE...
# A limit that is passed is measured twice more, in case something else kept the machine busy. What
# has a matmul is timed and printed, but held to no limit yet.
set -u
fusec=$1 limit=$2
shift 2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
passed=0 failed=0

median_us() { # median_us SOURCE: or nothing when it does not compile
    i=0
    while [ $i -lt 20 ]; do
        begin=$(date +%s%N)
        "$fusec" "$1" -o "$out/a.ptx" >/dev/null 2>"$out/error" || return
        end=$(date +%s%N)
        echo $(((end - begin) / 1000))
        i=$((i + 1))
    done | sort -n | sed -n 10p
}

for source; do
    us=$(median_us "$source")
    if [ -n "$us" ] && grep -q ' @ ' "$source"; then
        echo "$source: $((us / 1000)).$((us / 100 % 10)) ms, has a matmul"
        passed=$((passed + 1))
        continue
    fi
    for again in 1 2; do
        [ -n "$us" ] && [ "$us" -gt $((limit * 1000)) ] && us=$(median_us "$source")
    done
    if [ -z "$us" ]; then
        echo "$source: does not compile"
        cat "$out/error"
        failed=$((failed + 1))
    elif [ "$us" -gt $((limit * 1000)) ]; then
        echo "$source: $((us / 1000)).$((us / 100 % 10)) ms, more than $limit ms"
        failed=$((failed + 1))
    else
        echo "$source: $((us / 1000)).$((us / 100 % 10)) ms"
        passed=$((passed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
