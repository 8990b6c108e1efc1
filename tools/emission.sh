#!/bin/sh
# Checks that no call has two arguments that emit instructions: C leaves their order open, so the bytes of artifacts
# would depend on the compiler that built fusec. An instruction is emitted by a function `k_name` of
# compiler/codegen/llvm, except for those that make constants or ask.
set -eu
cd "$(dirname "$0")/.."
quiet='k_(int|i32|i64|number|float|zero|lanes|count_instructions|memory_type|value_type|is_[a-z_]+|[a-z_]*bytes)'

found=$(find compiler/codegen -name '*.c' | sort | xargs awk -v quiet="^$quiet\$" '
    # Counts the argument that ends here, if it is a call of k_name and no more.
    function end_argument(arg) {
        if (match(arg, /^[ \t]*k_[a-z0-9_]+\(/)) {
            name = substr(arg, 1, RLENGTH - 1)
            gsub(/[ \t]/, "", name)
            if (name !~ quiet) n_emitting[depth]++
        }
    }
    FNR == 1 { text = ""; depth = 0 }
    {
        sub(/\/\/.*/, "")
        for (i = 1; i <= length($0); i++) {
            c = substr($0, i, 1)
            if (c == "(") {
                for (d = 1; d <= depth; d++) argument[d] = argument[d] c
                depth++
                argument[depth] = ""
                n_emitting[depth] = 0
            } else if (c == ")" && depth) {
                end_argument(argument[depth])
                if (n_emitting[depth] > 1) print FILENAME ":" FNR ": two arguments of a call emit instructions"
                depth--
                for (d = 1; d <= depth; d++) argument[d] = argument[d] c
            } else if (c == "," && depth) {
                end_argument(argument[depth])
                argument[depth] = ""
                for (d = 1; d < depth; d++) argument[d] = argument[d] c
            } else {
                if (c == ";" || c == "{" || c == "}") depth = 0
                for (d = 1; d <= depth; d++) argument[d] = argument[d] c
            }
        }
    }')
[ -z "$found" ] || { echo "$found"; exit 1; }
echo "emission: good"
