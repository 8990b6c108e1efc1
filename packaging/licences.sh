#!/bin/sh
# Copies the notices of what is linked into the program and the libraries to FOLDER, as the packages
# they come from carry them. licences.sh LLVM_MAJOR FOLDER
set -eu
to=$2
rm -rf "$to"
mkdir -p "$to"

copy() { # copy NAME PACKAGE
    from=/usr/share/doc/$2/copyright
    [ -s "$from" ] || {
        echo "licences: there is no $from; package $2 carries it" >&2
        exit 1
    }
    cp "$from" "$to/$1.txt"
}
copy LLVM "llvm-$1-dev"
copy jansson libjansson-dev
copy zlib zlib1g-dev
copy zstd libzstd-dev
copy libstdc++ "libstdc++-$(gcc -dumpversion | cut -d. -f1)-dev"
# Where a notice names a text that Debian keeps in one place, the text comes along.
cat "$to"/*.txt | grep -o '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' | sort -u |
    while read -r text; do
        [ ! -e "$text" ] || cp -L "$text" "$to/${text##*/}.txt"
    done
