#!/bin/sh
# The figures of docs/RESULTS.md that need no other program beside fusec, in one go on a GPU machine:
# ways of loading code, generated epilogues, kernels that were cut, memory-bound graphs.
#
#   make gpu-kit                                            here: fills build/kit
#   sh bench/gpu_figures.sh build/kit [TARGET] [SEED..]     there; seeds of epilogues, default 1 3 5 7 9
#
# Each part has SECONDS_EACH (60) and prints its table; full logs stay under $OUT if that is set.
# PARTS="loads epilogues" runs those alone. Ends with a line per part; fails when one failed.
set -u
kit=$(cd "${1:?usage: gpu_figures.sh KIT [TARGET] [SEED..]}" && pwd) || exit 2
target=${2:-native}
[ $# -lt 2 ] || shift
shift
seeds=${*:-"1 3 5 7 9"}
seconds=${SECONDS_EACH:-60}
parts=${PARTS:-"loads epilogues spills memory"}
work=$(mktemp -d) || exit 2
logs=${OUT:-$work/logs}
mkdir -p "$logs"
trap 'rm -rf "$work"' EXIT
fusec=$work/fusec
ln -s "$kit/kit" "$fusec"
CUDA_CACHE_PATH=$work/driver CUDA_CACHE_MAXSIZE=4294967296
export CUDA_CACHE_PATH CUDA_CACHE_MAXSIZE
PATH=$PATH:/usr/local/cuda/bin # for ptxas

part() { # part NAME COMMAND..
    name=$1
    shift
    started=$(date +%s)
    timeout "$seconds" "$@" >"$logs/$name.log" 2>&1
    status=$?
    echo "== $name"
    cat "$logs/$name.log"
    printf '%-14s %4d s  %s\n' "$name" $(($(date +%s) - started)) \
        "$([ $status = 0 ] && echo good || echo "FAILED ($status)")" >>"$work/lines"
}

for what in $parts; do
    case $what in
    loads) part loads sh "$kit/bench/load_forms.sh" "$fusec" "$kit/examples" "$target" ;;
    spills) part spills sh "$kit/bench/spills.sh" "$fusec" "$target" ;;
    memory) part memory sh "$kit/bench/memory.sh" "$fusec" "$target" ;;
    epilogues)
        for seed in $seeds; do
            part "epilogues-$seed" sh "$kit/bench/epilogues.sh" "$fusec" "$target" "$seed"
        done ;;
    esac
done
cat "$work/lines"
! grep -q FAILED "$work/lines"
