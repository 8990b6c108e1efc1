#!/bin/sh
# Runs each fuzzer for SECONDS, from its corpus if it has one. run_fuzz.sh SECONDS FUZZER...
# What breaks one is kept as build/fuzz/NAME-*.
set -u
seconds=$1
shift
passed=0 failed=0
for fuzzer; do
    name=$(basename "$fuzzer")
    seeds=
    [ ! -d "tests/fuzz/corpus/$name" ] || seeds=tests/fuzz/corpus/$name
    case $name in *parse* | *source*) seeds="$seeds dsl/examples" ;; esac
    work=build/fuzz/$name.corpus
    mkdir -p "$work"
    # shellcheck disable=SC2086
    if "./$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/$name-" "$work" $seeds >"build/fuzz/$name.log" 2>&1; then
        passed=$((passed + 1))
        echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$name.log") inputs"
    else
        failed=$((failed + 1))
        tail -n 40 "build/fuzz/$name.log"
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
