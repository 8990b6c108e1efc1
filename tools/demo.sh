#!/bin/sh
# The digits example from source to result, after `make build/fusec build/libfusert.a`: compiles it
# for GPUs and for the CPU, draws the graph unfused and fused, runs it on the GPU if a driver answers
# and on the CPU if none does, and counts how many held-out images it gets right. Everything shown is
# read from what the compiler prints. Run from the root of the tree.
#
# demo.sh                     all of it
# demo.sh picture [TARGET]    the picture alone, of the plan for TARGET (sm_80)
set -eu
CC=${CC:-gcc}
fusec=build/fusec
source=dsl/examples/digits.g
data=dsl/examples/digits
batch=$(head -c 128 $data/images.npy | LC_ALL=C sed -n "s/.*'shape': (\([0-9]*\),.*/\1/p")

# A box for every launch with the ops in it, from `--emit=fused`, in the order in which they run.
# PHASES are the kernels that run in the blocks of the one before. Widths are counted in ASCII, since
# some awks count bytes; the lines come last.
boxes() { # boxes PHASES
    awk -v phases=" $1 " '
    function line(left, text, right,   pad) {
        pad = n_wide - length(text)
        text = sprintf("%" int(pad / 2) "s%s%" (pad - int(pad / 2)) "s", "", text, "")
        gsub(/>/, "→", text)
        print left text right
    }
    BEGIN {
        n_wide = 28
        for (i = 0; i < n_wide; i++) edge = edge "─"
        line(" ", "x", " ")
    }
    / kernel .* \{$/ {
        inside = 1
        if (index(phases, " " $2 " ")) next
        if (n_kernels) line("│", ops, "│")
        ops = ""
        print n_kernels++ ? "├" edge "┤" : "┌" edge "┐"
        next
    }
    inside && /^  *\}$/ { inside = 0; next }
    inside {
        op = $0
        sub(/^.*= /, "", op)
        sub(/\(.*/, "", op)
        if (op == "const") next
        if (ops != "" && length(ops " > " op) > n_wide - 3) { line("│", ops " >", "│"); ops = "" }
        ops = ops == "" ? op : ops " > " op
    }
    END { line("│", ops, "│"); print "└" edge "┘"; line(" ", "p", " ") }'
}

# total NAME: the expression in B after a name in the ledger's totals, for the batch.
total() {
    expression=$(sed -n "s/^  $1  *\([0-9B*+ ]*\).*/\1/p" build/digits.explain | head -1)
    [ -n "$expression" ] || { echo "demo: the ledger has no line: $1" >&2; exit 70; }
    echo $(($(echo "$expression" | sed "s/B/$batch/g")))
}

picture() { # picture TARGET
    "$fusec" $source --target="$1" --explain --emit=fused -o /dev/null >build/digits.explain
    phases=$(sed -n 's/^  \([^ ]*\): .*in the blocks of the one before$/\1/p' build/digits.explain)
    "$fusec" $source --target="$1" --no-fuse --emit=fused -o - | boxes "" >build/digits.unfused.txt
    "$fusec" $source --target="$1" --emit=fused -o - | boxes "$(echo $phases)" >build/digits.fused.txt
    launches=$(sed -n 's/^  launches  *\([0-9]*\) (\([0-9]*\) .*/\2 \1/p' build/digits.explain)
    moved=$(total 'in and out of kernels')
    plain=$(total 'the same without fusion')
    printf '  %-32s  %s\n' "one kernel per op" "fused"
    printf '  %-32s  %s\n' "${launches% *} launches" "${launches#* } launches"
    printf '  %-32s  %s\n\n' "$plain bytes for $batch images" "$moved bytes"
    awk -v other=build/digits.fused.txt '
    { right = ""; if ((getline right < other) < 0) exit 1; sub(/ *$/, "", right)
      line = "  " $0 "    " right; sub(/ *$/, "", line); print line }' build/digits.unfused.txt
}

say() { printf '\n== %s\n' "$*"; }

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# compile OUTPUT
compile() {
    begin=$(now_ms)
    "$fusec" $source -o "$1"
    echo "$1: $(wc -c <"$1") bytes, compiled in $(($(now_ms) - begin)) ms"
}

run() { # run ARTIFACT DEVICE
    "$fusec" run "$1" --device="$2" --input x=@$data/images.npy --output p=@build/digits.p.npy
}

# The GPU if a driver answers, else the CPU.
choose_device() {
    name=GPU device=cuda target=sm_80 artifact=build/digits.ptx
    why_not=$("$fusec" --list-targets | sed -n 's/.*(no GPU: \(.*\))$/\1/p')
    [ -z "$why_not" ] || name=CPU device=cpu target=cpu artifact=build/digits.o
}

demo() {
    say "$source"
    cat $source
    say "compile"
    compile build/digits.ptx
    compile build/digits.o
    # An artifact looks for its weights file beside itself, by the name that the source gives it.
    mkdir -p build/digits
    cp $data/weights.safetensors build/digits/
    choose_device
    say "the same graph, unfused and fused, as the $name runs it"
    picture "$target"
    say "run on $batch images that training never saw"
    [ -z "$why_not" ] || echo "no GPU: $why_not; so on the CPU"
    run "$artifact" $device
    $CC -std=c11 -O2 -o build/count_right dsl/examples/embed/count_right.c \
        dsl/examples/embed/held_out.c dsl/examples/embed/npy.c
    build/count_right build/digits.p.npy $data/labels.npy
}

case ${1:-} in
'') demo ;;
picture) picture "${2:-sm_80}" ;;
*) echo "usage: demo.sh [picture [TARGET]]" >&2; exit 2 ;;
esac
