#!/bin/sh
# A kernel that spills beside the same cut in two, on a GPU: 300 values that are all compared before
# each is used again. Compares their results to the bit, then times both.
#
#   sh bench/spills.sh FUSEC [TARGET] [VALUES]
set -eu
fusec=${1:?usage: spills.sh FUSEC [TARGET] [VALUES]}
target=${2:-native}
n=${3:-300}
device=${DEVICE:-cuda}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

program() { # program ELEMENTS BEGIN END: the body between two texts
    awk -v n="$n" -v elems="$1" -v begin="$2" -v end="$3" 'BEGIN {
        print "dim N = " elems
        print "graph compared(x: f32[N], z: f32[N]) -> (y: f32[N]) {" begin
        for (i = 0; i < n; i++) printf "  v%d = x * %.6f + z\n", i, 1 + i / 64
        print "  m0 = v0"
        for (i = 1; i < n; i++) printf "  m%d = maximum(m%d, v%d)\n", i, i - 1, i
        printf "  m = m%d * 0.5\n  s0 = z + 1.0\n", n - 1
        for (i = 0; i < n; i++) printf "  s%d = s%d + (v%d - m) * v%d\n", i + 1, i, i, i
        printf "  y = s%d * 1.0\n%s}\n", n, end
    }'
}

program 16777216 '' '' >"$work/cut.g"
program 16777216 ' fuse must {' '}' >"$work/whole.g"
for form in whole cut; do
    "$fusec" run "$work/$form.g" --device="$device" --target="$target" --seed=1 \
        --output="y=@$work/$form.npy" >/dev/null
done
cmp "$work/whole.npy" "$work/cut.npy" && echo 'same bits'
for form in whole cut; do
    echo "== $form"
    "$fusec" bench "$work/$form.g" --device="$device" --target="$target" --runs=41
done
