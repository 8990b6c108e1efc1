#!/bin/sh
# One artifact, many extents: transformer.g, compiled once fused and once with a kernel per op, must
# give the same bits for every batch and sequence length, and no NaN. A program made of the source's
# params, as inputs, draws their values.
#
#   sh bench/extents.sh FUSEC SOURCE TARGET [DEVICE]
set -u
fusec=${1:?usage: extents.sh FUSEC SOURCE TARGET [DEVICE]}
source=${2:?}
target=${3:?}
device=${4:-cuda}
kind=ptx
[ "$device" = cuda ] || kind=o
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

"$fusec" "$source" "--target=$target" -o "$work/fused.$kind" &&
    "$fusec" "$source" "--target=$target" --no-fuse -o "$work/unfused.$kind" || exit 1

# Lines `NAME TYPE` of the params, and the program that gives each input under another name.
sed -nE 's/^ *param ([a-z_0-9]+): ([^=]*[^= ]).*/\1 \2/p' "$source" >"$work/params"
{
    grep '^dim ' "$source"
    awk '{ name = $1; sub(/[^ ]+ /, ""); inputs = inputs comma name ": " $0
           outputs = outputs comma name "_values: " $0; comma = ", "
           body = body "  " name "_values = -" name "\n" }
        END { print "graph values(" inputs ") -> (" outputs ") {\n" body "}" }' "$work/params"
} >"$work/values.g"
"$fusec" "$work/values.g" "--target=$target" -o "$work/values.$kind" || exit 1
outputs=$(awk -v work="$work" '{ print "--output=" $1 "_values=@" work "/" $1 ".npy" }' "$work/params")
inputs=$(awk -v work="$work" '{ print "--input=" $1 "=@" work "/" $1 ".npy" }' "$work/params")

# shellcheck disable=SC2086
for batch in 1 3 17; do
    "$fusec" run "$work/values.$kind" "--device=$device" --seed=$batch $outputs || exit 1
    for length in 1 100 1024; do
        for form in fused unfused; do
            timeout 120 "$fusec" run "$work/$form.$kind" "--device=$device" --seed=$batch $inputs \
                --dim B=$batch --dim T=$length --output "y=@$work/$form.npy" 2>"$work/messages" ||
                cat "$work/messages"
        done
        # A bf16 whose exponent has all bits set is no number.
        strange=$(tail -c +129 "$work/fused.npy" | od -An -v -w2 -t x2 | grep -c '^ [7f]f[89a-f]')
        if cmp "$work/fused.npy" "$work/unfused.npy" && [ "$strange" = 0 ]; then
            echo "B=$batch T=$length: $(wc -c <"$work/fused.npy") bytes, the same"
            passed=$((passed + 1))
        else
            echo "FAILED B=$batch T=$length, $strange infinite or NaN"
            failed=$((failed + 1))
        fi
        rm -f "$work/fused.npy" "$work/unfused.npy"
    done
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
