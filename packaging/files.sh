#!/bin/sh
# LIST of what is installed, a line each, fields separated by tabs: how, what, where below the
# prefix. How: `program` and `library` are stripped, `file` is copied, `page` has its links and paths
# changed (docs.sh), `link` points to a name in its own folder. files.sh VERSION
set -eu
version=$1
major=${version%%.*}
put() { printf '%s\t%s\t%s\n' "$1" "$2" "$3"; }

put program build/fusec bin/fusec
for name in fusec fusert; do
    put library "build/package/lib$name.so" "lib/lib$name.so.$version"
    put link "lib$name.so.$version" "lib/lib$name.so.$major"
    put link "lib$name.so.$major" "lib/lib$name.so"
    put file "build/package/lib$name.a" "lib/lib$name.a"
    put file "build/package/$name.pc" "lib/pkgconfig/$name.pc"
done
for header in compiler/include/* runtime/include/*; do
    put file "$header" "include/${header##*/}"
done
for name in fusecConfig.cmake fusecConfigVersion.cmake; do
    put file "build/package/$name" "lib/cmake/fusec/$name"
done
put file packaging/fusecEmbed.cmake lib/cmake/fusec/fusecEmbed.cmake
put file build/package/fusec.1 share/man/man1/fusec.1
put file build/package/fusec.5 share/man/man5/fusec.5
put file build/package/fusec.bash share/bash-completion/completions/fusec
put file build/package/fusec.zsh share/zsh/site-functions/_fusec
put file build/package/fusec.fish share/fish/vendor_completions.d/fusec.fish
# Those of docs that are for users; the others are about the source.
put page packaging/README.md.in share/doc/fusec/README.md
for name in CHANGELOG.md docs/LANGUAGE.md docs/OPS.md docs/RUNTIME.md docs/MANIFEST.md \
    docs/EXPLAIN.md docs/DEBUGGING.md docs/RESULTS.md; do
    put page "$name" "share/doc/fusec/$name"
done
put file LICENSE share/doc/fusec/LICENSE
for notice in build/package/licences/*; do
    put file "$notice" "share/doc/fusec/licences/${notice##*/}"
done
find dsl/examples -type f | LC_ALL=C sort | while read -r name; do
    put file "$name" "share/fusec/${name#dsl/}"
done
find editors -type f | LC_ALL=C sort | while read -r name; do
    put file "$name" "share/fusec/$name"
done
