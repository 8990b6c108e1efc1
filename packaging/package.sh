#!/bin/sh
# Makes what is installed and not built: pkg-config and CMake files, man pages, completions,
# notices, and libraries that need nothing but the C and C++ libraries to link. In build/package.
# package.sh VERSION LLVM_MAJOR LLVM_LIBDIR "LLVM_LIBRARIES"
# LIBRARY_LINK has the flags that link libfusert.so.
set -eu
version=$1 llvm_major=$2 llvm_libdir=$3 llvm_libraries=$4
to=build/package
mkdir -p $to
# shellcheck disable=SC2094
for name in fusec.pc fusert.pc fusecConfig.cmake fusecConfigVersion.cmake; do
    sed "s/@VERSION@/$version/; s/@MAJOR@/${version%%.*}/" packaging/$name.in >$to/$name
done
for name in fusec.1 fusec.5 fusec.bash fusec.zsh fusec.fish; do
    sh packaging/fill.sh packaging/$name.in "$version" build/gen_cli >$to/$name
done
sh packaging/licences.sh "$llvm_major" $to/licences

cp build/libfusec.so $to/libfusec.so

# libfusec.a with those parts of LLVM that it uses, as one object whose only global names are
# fusec_*: it is linked beside another LLVM, or where there is none.
if [ ! -e $to/libfusec.a ] || [ "$(find build/libfusec.a -newer $to/libfusec.a)" ]; then
    roots=$(nm -g --defined-only build/libfusec.a | awk '$2 == "T" { print "-u", $3 }')
    # shellcheck disable=SC2086
    ld -r --gc-sections --force-group-allocation $roots -o $to/libfusec.o build/libfusec.a \
        "-L$llvm_libdir" $llvm_libraries \
        "$(${CC:-cc} -print-file-name=libz.a)" "$(${CC:-cc} -print-file-name=libzstd.a)"
    objcopy --strip-unneeded --wildcard --keep-global-symbol='fusec_*' $to/libfusec.o
    rm -f $to/libfusec.a
    ar rcsD $to/libfusec.a $to/libfusec.o
    rm $to/libfusec.o
fi

# The runtime, as an archive and as a library.
ld -r -o $to/libfusert.o --whole-archive build/libfusert.a
objcopy --strip-debug $to/libfusert.o
rm -f $to/libfusert.a
ar rcsD $to/libfusert.a $to/libfusert.o
# shellcheck disable=SC2086
${CC:-cc} $LIBRARY_LINK -o $to/libfusert.so $to/libfusert.o -lm -ldl -lpthread
rm $to/libfusert.o
