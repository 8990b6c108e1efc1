#!/bin/sh
# Compares the interfaces of both libraries with those of the last tag, by abidiff. abi.sh [TAG]
# A program that was built with the tag must still run. The exception is a new major version or,
# before 1.0, a new minor version.
set -eu
cd "$(dirname "$0")/.."
tag=${1:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
[ -n "$tag" ] || { echo 'abi: 0 passed, 0 failed, 2 skipped: this checkout has no tag' && exit 0; }
sh tools/deps.sh abigail-tools
base=build/abi/$(git rev-parse --verify "$tag^{commit}")
libraries='build/libfusert.so build/libfusec.so'
if [ ! -d "$base" ]; then
    echo "abi: building the libraries of $tag; they are kept in $base"
    rm -rf "$base.new" && mkdir -p "$base.new"
    git archive "$tag" | tar -x -C "$base.new"
    # shellcheck disable=SC2086
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C "$base.new" -j"$(nproc)" CC="${CC:-gcc}" \
        $libraries >build/abi/log 2>&1 || { tail -20 build/abi/log && exit 1; }
    rm -rf "$base.new/build/obj" && mv "$base.new" "$base"
fi

# The part of a version within which programs keep running: 0.1 of 0.1.3, 1 of 1.2.0.
series() { # series FOLDER
    sed -nE 's/^#define FUSEC_VERSION "(0\.[0-9]+|[1-9][0-9]*)\..*/\1/p' "$1/compiler/include/fusec.h"
}

passed=0 failed=0
for library in $libraries; do
    bits=0
    abidiff --headers-dir1 "$base/compiler/include" --headers-dir1 "$base/runtime/include" \
        --headers-dir2 compiler/include --headers-dir2 runtime/include \
        "$base/$library" "$library" || bits=$?
    # 1 and 2: abidiff itself failed; 4: a change; 8: a change that breaks programs.
    if [ $((bits & 3)) != 0 ] || { [ $((bits & 8)) != 0 ] && [ "$(series "$base")" = "$(series .)" ]; }; then
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
done
echo "abi: $passed passed, $failed failed, 0 skipped: compared with $tag"
[ $failed = 0 ]
