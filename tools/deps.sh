#!/bin/sh
# Installs the Debian packages that a build and its tests need and that are missing; without the
# right to, prints the line that does. deps.sh [PACKAGE...]: these too
set -eu
major=${LLVM_MAJOR:-22}
wanted="gcc g++ make binutils flex bison llvm-$major-dev libcriterion-dev libjansson-dev
zlib1g-dev libzstd-dev clang clang-format libclang-rt-14-dev libfuzzer-14-dev
cmake pkgconf $*"
missing=
for package in $wanted; do
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ]; then
    echo "installing:$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 || {
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends $missing >/dev/null
    }
else
    echo "packages are missing; run: sudo apt-get install --no-install-recommends$missing" >&2
    exit 1
fi
