#!/bin/sh
# Prints C source that holds the files of the prelude, and an index of their defs sorted by name.
# embed_prelude.sh FILE...
set -eu
export LC_ALL=C
echo '/* Generated from dsl/prelude. */'
echo '#include "front/prelude.h"'
for file; do
    echo "static const char $(basename "$file" .g)_text[] = {"
    od -An -v -tu1 "$file" | sed 's/  */,/g; s/^,//; s/$/,/'
    echo '0};'
done
echo 'const PreludeFile prelude_files[] = {'
for file; do
    theme=$(basename "$file" .g)
    echo "{\"prelude/$theme.g\", ${theme}_text, sizeof ${theme}_text - 1},"
done
echo '};'
echo 'const PreludeDef prelude_defs[] = {'
n=0
for file; do
    awk -v file=$n '
        function put() { if (name) printf "{\"%s\", %d, {%d, %d}},\n", name, file, begin, at }
        /^def / { put(); name = substr($2, 1, index($2, "(") - 1); begin = at }
        { at += length($0) + 1 }
        END { put() }' "$file"
    n=$((n + 1))
done | sort
echo '};'
echo 'const uint32_t prelude_n_files = sizeof prelude_files / sizeof prelude_files[0];'
echo 'const uint32_t prelude_n_defs = sizeof prelude_defs / sizeof prelude_defs[0];'
