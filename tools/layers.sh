#!/bin/sh
# Checks who includes whom: base <- ir <- {front, pass, back}, pass <- report; only back sees LLVM, and of the
# runtime only its manifest constants; the runtime sees nothing of the compiler.
set -eu
cd "$(dirname "$0")/.."
failed=0

# forbid FOLDER PATTERN WHY: no file below FOLDER has an include that matches.
forbid() {
    found=$(grep -rnE --include='*.[chly]' --include='*.def' \
        "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($2)" "$1" || true)
    [ -z "$found" ] && return
    printf '%s\n    %s\n' "$found" "$3"
    failed=1
}

forbid compiler/base '(ir|front|pass|back|report)/' 'base includes nothing but base'
forbid compiler/ir '(front|pass|back|report)/' 'ir includes base and ir'
forbid compiler/front '(pass|back|report)/' 'front includes base, ir and front'
forbid compiler/pass '(front|back|report)/' 'pass includes base, ir and pass'
forbid compiler/back '(front|pass|report)/' 'back includes base, ir and back'
forbid compiler/report '(front|back)/' 'report includes base, ir, pass and report'
for folder in base ir front pass report; do
    forbid "compiler/$folder" 'llvm' 'only back includes LLVM'
    forbid "compiler/$folder" 'frt_|fusert' 'the compiler borrows frt_manifest.h in back alone'
    forbid "compiler/$folder" '(driver|verify|npy|cli[a-z_]*|fusec)\.h' 'not from below'
done
forbid compiler/back 'fusert\.h' 'the compiler borrows frt_manifest.h of the runtime, no more'
forbid runtime '(base|ir|front|pass|back|report)/|fusec\.h|llvm|\.\./' 'the runtime includes itself alone'
for file in compiler/*.[ch]; do forbid "$file" 'llvm' 'only back includes LLVM'; done

[ $failed = 0 ] && echo 'layers: good'
exit $failed
