/* How a CPU packs an operand of a GEMM: in vectors along the one of its two axes that is contiguous
 * in memory. Or the register tile reads the operand where it is. */
#ifndef FUSEC_TEMPLATE_CPU_PACK_H
#define FUSEC_TEMPLATE_CPU_PACK_H

#include "plan/access.h"
#include "plan/kernel.h"
#include "template/cpu_strips.h"

/* Elements that are contiguous along neither axis are loaded one by one: of rows along k, of
 * columns along their own axis. PACK_STRIDED: at equal distances; PACK_SINGLES: each index
 * divides.
 *
 * PACK_NONE: windows over an image without guards. The address of an element is what k adds to what
 * the other axes add, so a register tile adds an offset from a table to a pointer per row, and
 * packing would only copy each pixel once for each window that it is in.
 *
 * PACK_STRIPS: windows along the rows of an image, see cpu_strips.h. The register tile reads them
 * as if they were such an image. */
typedef enum {
    PACK_OWN_AXIS,
    PACK_K,
    PACK_RUNS_OF_K,
    PACK_STRIDED,
    PACK_SINGLES,
    PACK_STRIPS,
    PACK_NONE
} PackWay;

typedef struct CpuPack {
    PackWay way;
    uint32_t run; /* of PACK_RUNS_OF_K: see kernel_run */
} CpuPack;

/* Of the operand that the register tile reads element by element: panels begin at any row. `axis`
 * is the operand's own, m or n. `must`: the operand is packed in any case. */
CpuPack cpu_pack_rows(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                      uint32_t lanes, bool must);
/* Of the operand whose vectors the register tile reads: panels begin at multiples of the lanes. */
CpuPack cpu_pack_columns(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                         uint32_t lanes, bool must);

/* The clocks of a step of k in a register tile whose vectors are in strips: it starts two
 * multiply-adds and two loads a clock, a vector of a strip is mostly in two lines, and few chains
 * wait for each other. */
double cpu_pack_step_clocks(uint32_t rows, uint32_t vectors);

/* Whether the lhs has strips, and no better way to be packed. */
bool cpu_pack_has_strips(Arena *arena, const Kernel *kernel, uint32_t lanes, CpuStrips *strips);
/* Whether the register tile is transposed, where vectors have so many lanes: its vectors lie along
 * m. So they do if n is short, or if outputs and the lhs are contiguous along m alone, as images
 * with channels first, and k is short. */
bool cpu_pack_transposes(Arena *arena, const Kernel *kernel, uint32_t lanes);
/* Whether the outputs of lanes along the axis are apart in memory: such results may be stored
 * turned, see codegen/cpu_gemm/gemm_turn.c. */
bool cpu_pack_stores_apart(const Kernel *kernel, uint32_t axis, uint32_t lanes);
/* Whether the results of columns are woven into rows of the outputs, as those of the phases of a
 * strided transposed convolution, and the runs of these rows fill most of their vectors. */
bool cpu_pack_weaves(Arena *arena, const Kernel *kernel, uint32_t lanes, StoreWeave *weave);
/* Whether the tile's rows or columns are read where they are. */
bool cpu_pack_leaves_rows(Arena *arena, const Kernel *kernel, bool is_transposed, uint32_t lanes);
bool cpu_pack_leaves_columns(const Kernel *kernel, bool is_transposed);

/* Whether the register tile adds offsets of k to the operand's place. */
static inline bool cpu_pack_has_places(CpuPack pack) {
    return pack.way == PACK_NONE || pack.way == PACK_STRIPS;
}

/* Whether elements are loaded one by one. */
static inline bool cpu_pack_is_single(CpuPack pack) {
    return pack.way == PACK_STRIDED || pack.way == PACK_SINGLES;
}

/* Whether the register tile of a schedule is transposed, so that the rows are those of the rhs. */
static inline bool cpu_pack_is_transposed(const Sched *sched) {
    return sched->cpu_gemm.is_transposed;
}

#endif
