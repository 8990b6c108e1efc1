#!/bin/sh
# Checks that the program and the libraries below FOLDER are hardened, and that the libraries export
# the functions of their headers alone, each with a version. hardened.sh FOLDER ARCHIVE
# ARCHIVE has the compiler's own code: LLVM's code in the libraries is hardened anyway.
set -eu
root=$1 archive=$2
status=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C

lacks() { # lacks FILE WHAT
    echo "${1##*/} lacks $2"
    status=1
}

has() { # has FILE WHAT PATTERN READELF_OPTIONS
    readelf -W $4 "$1" >"$work/read"
    grep -qE "$3" "$work/read" || lacks "$1" "$2"
}

for file in "$root"/bin/fusec "$root"/lib/lib*.so.*.*; do
    has "$file" 'read-only relocations' ' GNU_RELRO ' -l
    has "$file" 'binding at load' 'FLAGS_1.* NOW' -d
    has "$file" 'a stack without code' ' GNU_STACK .* RW  ' -l
    has "$file" 'stack protection' ' UND __stack_chk_fail' --dyn-syms
    has "$file" 'checks of buffers (FORTIFY)' ' UND __v?snprintf_chk' --dyn-syms
done
has "$root/bin/fusec" 'a place of its own at each start (PIE)' 'FLAGS_1.* PIE' -d
has "$archive" 'stack protection' ' UND __stack_chk_fail' -s
has "$archive" 'checks of buffers (FORTIFY)' ' UND __v?snprintf_chk' -s

# ---- exports ----

exports() { # exports NAME PREFIX API_MACRO
    library=$(echo "$root/lib/lib$1".so.*.*)
    tr '\n' ' ' <"$root/include/$1.h" | grep -oE "$3[^;]*;" | grep -oE "\<$2_[a-z0-9_]+\(" |
        tr -d '(' | sort -u >"$work/declared"
    readelf -W --dyn-syms "$library" >"$work/read"
    awk '$5 != "LOCAL" && $7 ~ /^[0-9]+$/ { print $8 }' "$work/read" | sort >"$work/versioned"
    sed -nE 's/@@[A-Z]+_[0-9]+\.[0-9]+$//p' "$work/versioned" >"$work/exported"
    [ -s "$work/declared" ] && diff "$work/declared" "$work/exported" ||
        lacks "$library" 'the functions of its header alone, each with a version'
    at=0x0$(awk -v name="^$2_version(@|$)" '$8 ~ name { print $2 }' "$work/read")
    objdump -d "--start-address=$at" --stop-address=$((at + 4)) "$library" | grep -q endbr64 ||
        lacks "$library" 'marks of branch targets (IBT)'
}
exports fusert frt FRT_API
exports fusec fusec FUSEC_API

# ---- control-flow enforcement ----

# Debian's start files and archives are built without it, and the linker then drops IBT's note.
has "$(echo "$root"/lib/libfusert.so.*.*)" 'the note of shadow stacks' 'x86 feature:.*SHSTK' -n
has "$root/lib/libfusert.a" 'the note of shadow stacks' 'x86 feature:.*SHSTK' -n
printf 'graph g(x: f32[8]) -> (y: f32[8]) { y = relu(x) }\n' >"$work/made.g"
for made in made.o made.so; do
    "$root/bin/fusec" "$work/made.g" --target=cpu -o "$work/$made"
    has "$work/$made" 'the notes of shadow stacks and branch targets' 'x86 feature: IBT, SHSTK' -n
done
exit $status
