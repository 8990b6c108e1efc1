#!/bin/sh
# Checks who includes whom. Folders of compiler/ stand in the order of `order` below, and a file includes headers of
# its own folder and of those before it. Only codegen sees LLVM; of the runtime the compiler below cli and verify sees
# the manifest's constants and the table of dtypes alone; the runtime sees nothing of the compiler.
set -eu
cd "$(dirname "$0")/.."
order='base ir front machine interp onnx lowering plan pipeline template cost schedule memory layout split fuse launch search explain report
    codegen artifact verify driver cli'
failed=0

# forbid FOLDER PATTERN WHY: no file below FOLDER has an include that matches.
forbid() {
    found=$(grep -rnE --include='*.[chly]' --include='*.def' \
        "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($2)" "$1" || true)
    [ -z "$found" ] && return
    printf '%s\n    %s\n' "$found" "$3"
    failed=1
}

above() { # above FOLDER: the folders behind it, as a pattern
    seen= pattern=
    for folder in $order; do
        [ -n "$seen" ] && pattern=$pattern${pattern:+|}$folder
        [ "$folder" = "$1" ] && seen=1
    done
    echo "${pattern:-none}"
}

for folder in $order; do
    forbid "compiler/$folder" "($(above "$folder"))/" "$folder sees the folders before it alone: $(echo $order)"
done
for folder in $order; do
    case $folder in codegen) continue ;; esac
    forbid "compiler/$folder" 'llvm' 'only codegen includes LLVM'
    case $folder in artifact | verify | driver | cli) continue ;; esac
    case $folder in
    ir) forbid compiler/ir 'frt_[^d]|frt_d[^t]|fusert' 'of the runtime ir sees the table of dtypes alone' ;;
    *) forbid "compiler/$folder" 'frt_|fusert' 'the manifest is artifact'"'"'s business' ;;
    esac
done
for folder in ir front machine interp lowering plan pipeline template cost schedule memory split fuse layout launch search explain report verify; do
    forbid "compiler/$folder" 'codegen/' 'planning sees no code generation'
    [ "$folder" = front ] || forbid "compiler/$folder" 'front/' 'only driver and cli see the front end'
done
forbid compiler/codegen '(front|cost|schedule|memory|fuse|split|layout|launch|search|explain|report)/' \
    'code generation reads the plan, and nothing that makes it'
forbid runtime "($(echo $order | tr ' ' '|'))/|fusec\.h|llvm|\.\./" 'the runtime includes itself alone'
loose=$(find compiler -maxdepth 1 -type f)
[ -z "$loose" ] || { echo "$loose: compiler/ holds folders alone" && failed=1; }
for folder in $(find compiler runtime tests -type d); do
    n=$(find "$folder" -maxdepth 1 -type f | wc -l)
    case $folder in tests/negative) continue ;; esac
    [ "$n" -le 30 ] || { echo "$folder: $n files, more than 30" && failed=1; }
done

[ $failed = 0 ] && echo 'layers: good'
exit $failed
