# Writes an artifact as an array, for C and C++, and the header that declares it. A script:
# cmake -Dartifact=FILE -Dname=NAME -Dcode=FILE -Dheader=FILE -P fusecEmbed.cmake
file(READ "${artifact}" bytes HEX)
string(LENGTH "${bytes}" n_digits)
math(EXPR n_bytes "${n_digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
set(row "0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,")
string(REGEX REPLACE "(${row})" "\\1\n" bytes "${bytes}")
file(WRITE "${header}" "/* A graph compiled by fusec. */
#ifndef FUSEC_MODEL_${name}
#define FUSEC_MODEL_${name}

#include <fusert.h>

#ifdef __cplusplus
extern \"C\" {
#endif

extern const unsigned char ${name}_artifact[];
extern const size_t ${name}_artifact_bytes;

/* Reads the artifact that is linked into this program: frt_module_load_memory. */
static inline frt_status ${name}_load(frt_module **module, frt_error *err) {
    return frt_module_load_memory(${name}_artifact, ${name}_artifact_bytes, module, err);
}

#ifdef __cplusplus
}
#endif
#endif
")
file(WRITE "${code}" "/* A graph compiled by fusec, as bytes. */
#include \"${name}.h\"

const unsigned char ${name}_artifact[] = {
${bytes}
};
const size_t ${name}_artifact_bytes = ${n_bytes};
")
