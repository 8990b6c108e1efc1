#!/bin/sh
# What epilogues cost on a GPU machine: generates random ones behind a bf16 product of 4096^3 and
# times them beside the bare product and beside bias and relu, in one run. The same seed gives the
# same programs anywhere.
#
#   sh bench/epilogues.sh [FUSEC] [TARGET] [SEED] [N] [EXTENT]
#   sh bench/epilogues.sh --print [SEED] [N] [EXTENT]      only the programs
#
# Among any five programs in a row there are scalar, row, column and tile operands, casts,
# comparisons and several stores. Fails when some program costs more than LIMIT (1.15) times the bare
# product.
set -u
print=
if [ "${1:-}" = --print ]; then
    print=yes
    shift
    set -- none none "$@"
fi
fusec=${1:-build/fusec}
target=${2:-native}
seed=${3:-1}
n=${4:-10}
extent=${5:-4096}
limit=${LIMIT:-1.15}

programs() {
    awk -v seed="$seed" -v n_programs="$n" -v extent="$extent" '
# A random integer below `limit`: products stay below 2^53, so every awk gives the same.
function draw(limit) {
    state = (state * 69069 + 12345) % 4294967296
    return int(state / 65536) % limit
}
function emit(expression) {
    n_values++
    body = body "  v" n_values " = " expression "\n"
    value = "v" n_values
}
function operand(kind) {
    uses[kind] = 1
    return dtype == "f32" ? "cast(" name[kind] ", f32)" : name[kind]
}
function store(suffix, type) {
    outputs = outputs ", " suffix ": " type "[" extent ", " extent "]"
    body = body "  " suffix " = " value "\n"
}
function unary() {
    return n_unary[draw(8)] "(" value ")"
}
function binary(kind) {
    operator = n_operator[draw(4)]
    if (operator == "maximum") return "maximum(" value ", " operand(kind) ")"
    return value " " operator " " operand(kind)
}
# What program `number` must have, and one more step at random.
function step(what, at) {
    if (what == 0) { emit(binary("scalar")); return }
    if (what == 1) { emit(binary("row")); return }
    if (what == 2) { emit(binary("column")); return }
    if (what == 3) { emit(binary("tile")); return }
    if (what == 4 || what > 8) { emit(unary()); return }
    if (what == 5 && dtype == "bf16") { emit("cast(" value ", f32)"); dtype = "f32"; return }
    if (what == 6) {
        emit("where(" value " " n_comparison[draw(4)] " " operand("row") ", " value ", " operand("tile") ")")
        return
    }
    if (what == 7 && !has_kept && dtype == "bf16") { has_kept = 1; emit(value " * 0.5"); store("kept", "bf16"); return }
    if (what == 8 && !has_mask) {
        has_mask = 1
        kept_value = value
        emit(value " " n_comparison[draw(4)] " " operand("column"))
        store("mask", "bool")
        value = kept_value
        return
    }
    emit("clamp(" value ", -0.5, 2.0)")
}
BEGIN {
    state = (seed * 2654435761 + 974711) % 4294967296
    for (i = 0; i < 8; i++) draw(2)
    split("relu sigmoid tanh gelu silu abs gelu_tanh leaky_relu", list, " ")
    for (i = 1; i <= 8; i++) n_unary[i - 1] = list[i]
    split("+ - * maximum", list, " ")
    for (i = 1; i <= 4; i++) n_operator[i - 1] = list[i]
    split("< <= > >=", list, " ")
    for (i = 1; i <= 4; i++) n_comparison[i - 1] = list[i]
    square = "bf16[" extent ", " extent "]"
    head = "a: " square ", b: " square
    split("scalar row column tile", list, " ")
    split("s r c t", names, " ")
    for (i = 1; i <= 4; i++) name[list[i]] = names[i]
    declarations[1] = "s: bf16"
    declarations[2] = "r: bf16[" extent "]"
    declarations[3] = "c: bf16[" extent ", 1]"
    declarations[4] = "t: " square
    printf "graph bare(%s) -> (y: %s) {\n  y = a @ b\n}\n", head, square
    printf "graph biased(%s, %s) -> (y: %s) {\n  y = relu(a @ b + r)\n}\n", head, declarations[2], square
    for (p = 0; p < n_programs; p++) {
        body = "  p = a @ b\n"
        outputs = ""
        value = "p"
        dtype = "bf16"
        n_values = has_kept = has_mask = 0
        for (i = 1; i <= 4; i++) uses[list[i]] = 0
        n_steps = 3 + draw(3)
        step((2 * p) % 9)
        step((2 * p + 1) % 9)
        for (i = 2; i < n_steps; i++) step(draw(12))
        if (dtype == "f32") { emit("cast(" value ", bf16)") }
        body = body "  y = " value "\n"
        arguments = head
        for (i = 1; i <= 4; i++) if (uses[list[i]]) arguments = arguments ", " declarations[i]
        printf "graph e%d(%s) -> (y: %s%s) {\n%s}\n", p, arguments, square, outputs, body
    }
}'
}

if [ -n "$print" ]; then
    programs
    exit
fi
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
programs >"$work/epilogues.g"
"$fusec" "$work/epilogues.g" --target="$target" -o "$work/epilogues.ptx" || exit 1
graphs="bare biased $(seq -f 'e%.0f' 0 $((n - 1)))"
# The driver compiles them all at once, into its cache; times are taken one after the other.
for graph in $graphs; do
    timeout 120 "$fusec" run "$work/epilogues.ptx" --graph="$graph" --device=cuda \
        --output="y=@$work/$graph.npy" >"$work/$graph.log" 2>&1 &
done
wait
rm -f "$work"/*.npy
median() { # median GRAPH: microseconds; launches in the file
    timeout 120 "$fusec" bench "$work/epilogues.ptx" --graph="$1" --device=cuda --runs=41 --json \
        >"$work/json" || return 1
    awk -F'[:,]' '/"launches"/ { launches = $2 } /"median_us"/ { us = $2 } END { print us + 0, launches + 0 }' \
        "$work/json"
}
# What they are compared with is taken before and after: what the machine drifts is seen.
failed=0
for graph in $graphs bare biased; do
    line=$(median "$graph") || { echo "$graph failed"; failed=1; continue; }
    echo "$graph $line" >>"$work/table"
done
awk -v limit="$limit" '
    $1 == "bare" { bare += $2 / 2; bares = bares " " $2; next }
    $1 == "biased" { biased += $2 / 2; biaseds = biaseds " " $2; next }
    { us[++n] = $2; name[n] = $1; launches[n] = $3 }
    END {
        printf "bare, before and after:%s us; bias and relu:%s us, %.3f of it\n", bares, biaseds, biased / bare
        printf "%-6s %10s %8s %8s %14s\n", "graph", "median us", "launches", "of bare", "of bias+relu"
        for (i = 1; i <= n; i++) {
            if (us[i] / bare > worst) worst = us[i] / bare
            printf "%-6s %10.1f %8d %8.3f %14.3f\n", name[i], us[i], launches[i], us[i] / bare, us[i] / biased
        }
        printf "worst %.3f of bare, %.3f of bias and relu\n", worst, worst * bare / biased
        exit !(worst <= limit)
    }' "$work/table" || failed=1
exit $failed
