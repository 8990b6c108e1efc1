#!/bin/sh
# Prints C source that holds FILE as a char array. embed.sh ARRAY LENGTH FILE
set -eu
echo "/* Generated from $3. */"
echo '#include <stddef.h>'
echo "extern const char $1[];"
echo "extern const size_t $2;"
echo "const char $1[] = {"
od -An -v -tu1 "$3" | sed 's/  */,/g; s/^,//; s/$/,/'
echo '0};'
echo "const size_t $2 = sizeof $1 - 1;"
