/* Strips: windows along the rows of an image, as a CPU packs them.
 *
 * Neighbours along m are `stride` elements of the image's row apart, and the taps of a window
 * `step` elements. So tap t of window i reads element i * stride + t * step. A strip has the
 * elements of the row that are alike modulo the stride, side by side. Each tap then reads a strip
 * at a shift, without gaps: lanes along m are contiguous, and each element of the image is packed
 * once for all taps of its row.
 *
 *     image's row   0 1 2 3 4 5 6 7 8 ...     stride 3, taps 0 to 3
 *     strip 0       0 . . 3 . . 6 . . ...     tap 0 from its element 0 on, tap 3 from element 1 on
 *     strip 1       . 1 . . 4 . . 7 . ...     tap 1
 *
 * Other digits of k, as the channel and the row of the window, have strips of their own. With
 * channels last, the elements of a strip are far apart and channels lie side by side: then strips
 * are *turned*, squares of neighbours and channels are transposed. */
#ifndef FUSEC_TEMPLATE_CPU_STRIPS_H
#define FUSEC_TEMPLATE_CPU_STRIPS_H

#include "plan/kernel.h"

enum { CPU_STRIPS_MOST_TAPS = 32, CPU_STRIPS_MOST_DEPTH = 6144 };

/* k = (outer * n_taps + tap) * run + inner */
typedef struct CpuStrips {
    int64_t run, n_taps; /* n_taps 1: each k has a strip */
    int64_t depth;       /* extent of k */
    uint32_t n;          /* strips of a row of the image */
    uint32_t reach;      /* elements of a strip beyond those of one tap */
    uint32_t strip_of[CPU_STRIPS_MOST_TAPS], shift_of[CPU_STRIPS_MOST_TAPS]; /* per tap */
    uint32_t first_tap[INDEX_NEAR_STRIDE];  /* per strip: the tap with shift 0 */
    uint32_t last_shift[INDEX_NEAR_STRIDE]; /* per strip: the largest shift of its taps */
    /* Per strip: the elements [lo, hi), counted along the axis, at which every guard on it holds.
     * At all others the operand is `outside`. */
    int64_t lo[INDEX_NEAR_STRIDE], hi[INDEX_NEAR_STRIDE];
    ScalarId outside;         /* a constant; SCALAR_NONE: no guard is on m */
    GuardId inside;           /* where the operand is not that constant */
    int64_t step_by, step_of; /* a tap moves by n * step_by / step_of where a window moves by n */
    bool has_runs;            /* elements lie side by side along k, in runs of `run` */
    bool is_turned;           /* vectors are loaded along these runs */
    ScalarId load;            /* a load whose lanes along m are the farthest apart */
    uint32_t stride;          /* elements of memory between these */
} CpuStrips;

/* Finds the strips of the lhs, where they are worth while. */
bool cpu_strips_find(Arena *arena, const Kernel *kernel, CpuStrips *strips);
/* Finds those of an lhs that has runs of k, such as channels of a pixel. */
bool cpu_strips_of_runs(Arena *arena, const Kernel *kernel, CpuStrips *strips);
/* Finds those of an operand along `axis`, in place of m. `is_far`: its neighbours may be any number
 * of elements apart. */
bool cpu_strips_along(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                      bool is_far, CpuStrips *strips);
/* Finds those of the taps that are left, along an axis whose neighbours may be far apart. Their
 * ranges are not set. */
bool cpu_strips_across(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                       const CpuStrips *along, CpuStrips *strips);
/* The same of the taps of the outermost digit, if all others are a step of `along`. */
bool cpu_strips_outer(Arena *arena, const Kernel *kernel, ScalarId value, uint32_t axis,
                      const CpuStrips *along, CpuStrips *strips);

/* Steps of k whose strips no other steps share: blocks of k are whole multiples. */
static inline int64_t cpu_strips_step(const CpuStrips *strips) {
    return strips->n_taps * strips->run;
}
/* Elements of a strip for so many neighbours along m. */
uint32_t cpu_strips_pitch(const CpuStrips *strips, uint32_t n_neighbours, uint32_t lanes);
/* The most steps of k of a block, and of neighbours along m, whose strips fit in a cache; strips of
 * `n_rows` rows of the image. */
int64_t cpu_strips_depth(const CpuStrips *strips, uint32_t n_neighbours, uint32_t n_rows,
                         uint32_t lanes);
uint32_t cpu_strips_width(const CpuStrips *strips);

#endif
