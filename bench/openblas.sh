#!/bin/sh
# f32 matrix products on the CPU beside OpenBLAS, in one run and in turn, as a table: milliseconds of
# OpenBLAS (bare; with a loop for bias and relu after it) and of fusec (w as an input or as a param;
# bare or with bias and relu), then OpenBLAS's bare product over each of ours: with bias and relu
# that is with the epilogue counted on our side alone. The goals are 0.95, and 1.5 with 16 rows.
# openblas.sh FUSEC BENCH [THREADS...]
set -eu
fusec=$1 bench=$2
shift 2
[ $# -gt 0 ] || set -- 1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

model() { # model K N
    cat <<EOF
dim M in 1..65536
graph input_plain(x: f32[M, $1], w: f32[$1, $2]) -> (y: f32[M, $2]) {
  y = x @ w
}
graph input_bias(x: f32[M, $1], w: f32[$1, $2], bias: f32[$2]) -> (y: f32[M, $2]) {
  y = relu(x @ w + bias)
}
graph param_plain(x: f32[M, $1]) -> (y: f32[M, $2]) {
  param w: f32[$1, $2] = "w"
  y = x @ w
}
graph param_bias(x: f32[M, $1], bias: f32[$2]) -> (y: f32[M, $2]) {
  param w: f32[$1, $2] = "w"
  y = relu(x @ w + bias)
}
EOF
}

compare() { # compare TARGET CORE THREADS: OpenBLAS is told to use the kernels of CORE
    printf '\n%s, OpenBLAS %s, %s thread%s\n\n' "$1" "$2" "$3" "$([ "$3" = 1 ] || echo s)"
    echo '| M x N x K | OpenBLAS | and loop | input | and bias | param | and bias | input | and bias | param | and bias |'
    echo '|---|---|---|---|---|---|---|---|---|---|---|'
    for shape in "1024 1024 1024 20" "256 4096 4096 8" "16 4096 4096 60" "1 4096 4096 100"; do
        # shellcheck disable=SC2086
        set -- "$1" "$2" "$3" $shape
        model "$6" "$5" >"$out/model.g"
        "$fusec" "$out/model.g" --target="$1" -o "$out/model.o"
        OPENBLAS_CORETYPE=$2 "$bench" "$out/model.o" "$4" "$5" "$6" "$3" "$7"
    done
}

sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1
for threads; do
    case $("$fusec" --list-targets | sed -n 's/^cpu-native.*: //p') in
    cpu-v4) compare cpu-v4 SkylakeX "$threads" ;;
    esac
    compare cpu Haswell "$threads"
done
