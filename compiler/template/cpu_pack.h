/* How a CPU packs an operand of a GEMM: in vectors along the one of its two axes that is contiguous
 * in memory. */
#ifndef FUSEC_TEMPLATE_CPU_PACK_H
#define FUSEC_TEMPLATE_CPU_PACK_H

#include "plan/kernel.h"

/* Elements that are contiguous along neither axis are loaded one by one: of rows along k, of
 * columns along their own axis. PACK_STRIDED: at equal distances; PACK_SINGLES: each index
 * divides. */
typedef enum { PACK_OWN_AXIS, PACK_K, PACK_RUNS_OF_K, PACK_STRIDED, PACK_SINGLES } PackWay;

typedef struct CpuPack {
    PackWay way;
    uint32_t run; /* of PACK_RUNS_OF_K: see kernel_run */
} CpuPack;

/* Of the operand that the register tile reads element by element: panels begin at any row. `axis`
 * is the operand's own, m or n. */
CpuPack cpu_pack_rows(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                      uint32_t lanes);
/* Of the operand whose vectors the register tile reads: panels begin at multiples of the lanes. */
CpuPack cpu_pack_columns(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                         uint32_t lanes);

/* Whether elements are loaded one by one. */
static inline bool cpu_pack_is_single(CpuPack pack) {
    return pack.way == PACK_STRIDED || pack.way == PACK_SINGLES;
}

/* Whether the register tile is transposed, so that the rows are those of the rhs. */
static inline bool cpu_pack_is_transposed(const Sched *sched) {
    return sched->cpu_gemm.register_n % sched->lanes != 0;
}

#endif
