#!/bin/sh
# Softmax and norms in the blocks of the product that they are made of, beside the same as two
# launches, on a GPU machine.
#
#   sh bench/rows.sh [FUSEC] [TARGET] [ROWS]       ROWS: "64 4096 65536"
#
# For each dtype, op, k, number of columns and rows: microseconds of one launch (`fuse must`), of two
# (the product in a `fuse never` block), the ratio, and how many launches the compiler itself takes
# where the rows are known. Fails where that is one and more than 2 % slower. DEVICE=cpu tries the
# script, where both are two.
set -u
fusec=${1:-build/fusec}
target=${2:-native}
rows=${3:-64 4096 65536}
device=${DEVICE:-cuda}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

call() { # call OP
    case $1 in
    softmax) echo "softmax(h, axis=1)" ;;
    layernorm) echo "layernorm(h, g, b)" ;;
    rmsnorm) echo "rmsnorm(h, g)" ;;
    esac
}

program() { # program M DTYPE OP K N PRODUCT REST: what goes around the product and all that follows
    cat <<EOF
graph rows(x: $2[$1, $4], w: $2[$4, $5], g: $2[$5], b: $2[$5]) -> (y: $2[$1, $5]) {
  $7 $6 h = x @ w ${6:+\}}
  y = $(call "$3") ${7:+\}}
}
EOF
}

median() { # median FILE
    "$fusec" bench "$1" "--target=$target" "--device=$device" ${RUNS:+"--runs=$RUNS"} --json 2>"$work/log" |
        sed -n 's/.*"median_us": *\([0-9.]*\).*/\1/p' | head -1
}

slow=0
printf '%-6s %-10s %5s %5s %7s %9s %9s %6s  %s\n' dtype op k n m one two ratio takes
for dtype in bf16 f32; do
    for op in softmax layernorm rmsnorm; do
        for k in 64 512; do
            for n in 64 128 256; do
                for m in $rows; do
                    program "$m" $dtype $op $k $n "" "fuse must {" >"$work/one.g"
                    program "$m" $dtype $op $k $n "fuse never {" "" >"$work/two.g"
                    program "$m" $dtype $op $k $n "" "" >"$work/own.g"
                    [ "$device" = cuda ] || cp "$work/own.g" "$work/one.g"
                    takes=$("$fusec" "$work/own.g" --explain "--target=$target" 2>"$work/log" |
                        sed -n 's/^  launches *\([0-9]*\).*/\1/p')
                    line=$(echo "$(median "$work/one.g") $(median "$work/two.g") $takes" |
                        awk '{ printf "%9.2f %9.2f %6.3f  %s\n", $1, $2, $1 / $2, $3
                               exit $3 == 1 && $1 > 1.02 * $2 }') || slow=1
                    printf '%-6s %-10s %5s %5s %7s %s\n' $dtype $op $k $n "$m" "$line"
                done
            done
        done
    done
done
exit $slow
