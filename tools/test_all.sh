#!/bin/sh
# Every test. At the end: what failed, and one line of totals.
# Tests whose names end with _times measure time, so nothing else runs beside them.
# test_all.sh "TESTS" "SANITIZED TESTS" "SOAK PROGRAM" "SOAK ARGUMENTS" FUZZ_SECONDS "FUZZERS" RELEASE EMULATOR
# shellcheck disable=SC2086
set -u
tools=$(dirname "$0")
TALLY=build/tally
export TALLY
rm -f $TALLY

# Lines for run_tests.sh, those that take long first.
jobs() {
    if [ -n "$3" ]; then
        emulated="env LD_LIBRARY_PATH=$(dirname "$8") $3"
        echo "build soak $3 $4"
        echo "build shapes $3 --shapes 24 1"
        echo "build emulated_soak $emulated 100 1 --device=cuda"
        echo "build emulated_shapes $emulated --shapes 2 1 --small --device=cuda --target=sm_90a"
        echo "build emulated_attention $emulated --attention 27 1 --small --device=cuda --target=sm_90a"
        for dtype in f16 bf16; do
            echo "build emulated_ulp_$dtype $emulated --ulp --dtype=$dtype" \
                "--found=build/emulated_ulp_$dtype.def --device=cuda --target=sm_90a"
        done
    fi
    for program in $2; do echo "build/asan $(basename "$program") $program"; done
    for fuzzer in $6; do echo "build/fuzz $(basename "$fuzzer") sh $tools/run_fuzz.sh $5 $fuzzer"; done
    echo "build extents sh bench/extents.sh build/fusec dsl/examples/transformer.g cpu-native cpu"
    criterion_jobs "$1" | grep -v '_times '
}
criterion_jobs() {
    for program in $1; do echo "build $(basename "$program") $program"; done
}
rm -f build/emulated_ulp_*.def
jobs "$@" | sh "$tools/run_tests.sh"

# What measures time, or uses all processors by itself.
{
    echo "build compile_time sh $tools/compile_time.sh 7 build/time_runs build/fusec" dsl/examples/*.g
    criterion_jobs "$1" | grep '_times '
    echo "build install sh tests/install/check_install.sh $7"
} | JOBS=1 sh "$tools/run_tests.sh"
grep ' ms' build/logs/compile_time.log

while read -r _ failed _ log; do
    [ "$failed" -gt 0 ] || continue
    echo "$failed failed in $log:"
    grep -aE -B 6 '\[FAIL\]|more than [0-9]+ ms' "$log" || tail -n 20 "$log"
done <$TALLY

awk '{ passed += $1; failed += $2; skipped += $3 }
END {
    printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
    exit failed > 0 || passed == 0
}' $TALLY
