#!/bin/sh
# Every test, and one line of totals at the end.
# test_all.sh "TESTS" "SANITIZED TESTS" "SOAK PROGRAM" "SOAK ARGUMENTS" FUZZ_SECONDS "FUZZERS" RELEASE EMULATOR
# shellcheck disable=SC2086
set -u
tools=$(dirname "$0")
TALLY=build/tally
export TALLY
rm -f $TALLY

echo '== tests'
sh "$tools/run_tests.sh" build $1
echo '== tests under the sanitizers'
sh "$tools/run_tests.sh" build/asan $2
if [ -n "$3" ]; then
    echo '== random graphs'
    AS=soak sh "$tools/run_tests.sh" build $3 $4
    echo '== random shapes of every template'
    AS=shapes sh "$tools/run_tests.sh" build $3 --shapes 24 1
    echo '== the same on an emulated GPU'
    LD_LIBRARY_PATH=$(dirname "$8") AS=emulated_soak sh "$tools/run_tests.sh" build \
        $3 100 1 --device=cuda
    LD_LIBRARY_PATH=$(dirname "$8") AS=emulated_shapes sh "$tools/run_tests.sh" build \
        $3 --shapes 2 1 --small --device=cuda --target=sm_90a
    for dtype in f16 bf16; do
        rm -f build/emulated_ulp.def
        LD_LIBRARY_PATH=$(dirname "$8") AS=emulated_ulp_$dtype sh "$tools/run_tests.sh" build \
            $3 --ulp --dtype=$dtype --found=build/emulated_ulp.def --device=cuda --target=sm_90a
    done
fi
if [ -n "$6" ]; then
    echo '== fuzzers'
    AS=fuzz sh "$tools/run_tests.sh" build sh "$tools/run_fuzz.sh" $5 $6
fi
if [ -n "$(ls dsl/examples/*.g 2>/dev/null)" ]; then
    echo '== one artifact, many extents'
    AS=extents sh "$tools/run_tests.sh" build \
        sh bench/extents.sh build/fusec dsl/examples/transformer.g cpu-native cpu
    echo '== compile time'
    AS=compile_time sh "$tools/run_tests.sh" build \
        sh "$tools/compile_time.sh" build/time_runs build/fusec dsl/examples/*.g
    grep ' ms' build/logs/compile_time.log
fi
echo '== installation and release'
AS=install sh "$tools/run_tests.sh" build sh tests/install/check_install.sh "$7"

awk '{ passed += $1; failed += $2; skipped += $3 }
END {
    printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
    exit failed > 0 || passed == 0
}' $TALLY
