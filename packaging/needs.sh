#!/bin/sh
# Checks that the program and the libraries below FOLDER need nothing but a C library of version
# 2.36 and its libm. needs.sh FOLDER
set -eu
status=0
for file in "$1"/bin/fusec "$1"/lib/lib*.so.*.*; do
    foreign=$(objdump -p "$file" | awk '$1 == "NEEDED" { print $2 }' |
        grep -vE '^(libc\.so\.6|libm\.so\.6|ld-linux-x86-64\.so\.2)$') || true
    newest=$(objdump -T "$file" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
    paths=$(objdump -p "$file" | grep -E 'RPATH|RUNPATH') || true
    [ -z "$foreign" ] || { echo "${file##*/} needs" "$foreign" >&2 && status=1; }
    [ -z "$paths" ] || { echo "${file##*/} has $paths" >&2 && status=1; }
    [ "$(printf '%s\nGLIBC_2.36\n' "$newest" | sort -V | tail -1)" = GLIBC_2.36 ] ||
        { echo "${file##*/} needs $newest" >&2 && status=1; }
done
exit $status
