/* See cpu_pack.h. */
#include "template/cpu_pack.h"

#include "machine/tuning.h"
#include "plan/access.h"

static CpuPack pack_singles(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis) {
    bool is_strided = kernel_is_strided(arena, kernel, value, axis);
    return (CpuPack){.way = is_strided ? PACK_STRIDED : PACK_SINGLES};
}

/* False: not in vectors. */
static bool pack_along_k(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t lanes,
                         CpuPack *pack) {
    uint32_t k = kernel->first_reduced;
    *pack = (CpuPack){.way = PACK_K};
    if (kernel_is_smooth(arena, kernel, value, k, lanes)) return true;
    *pack = (CpuPack){.way = PACK_RUNS_OF_K};
    pack->run = kernel_run(arena, kernel, value, k, CODEGEN_LEAST_RUN);
    return pack->run > 0;
}

CpuPack cpu_pack_rows(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                      uint32_t lanes) {
    CpuPack pack;
    if (pack_along_k(arena, kernel, value, lanes, &pack)) return pack;
    if (kernel_is_smooth(arena, kernel, value, axis, INDEX_ANY_START))
        return (CpuPack){.way = PACK_OWN_AXIS};
    return pack_singles(arena, kernel, value, kernel->first_reduced);
}

CpuPack cpu_pack_columns(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                         uint32_t lanes) {
    CpuPack pack;
    if (lanes == 1 || kernel_is_smooth(arena, kernel, value, axis, lanes))
        return (CpuPack){.way = PACK_OWN_AXIS};
    if (pack_along_k(arena, kernel, value, lanes, &pack)) return pack;
    return pack_singles(arena, kernel, value, axis);
}
