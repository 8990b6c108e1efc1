/* Sweeps: a work unit of a CPU GEMM goes down the rows of an image and packs each of them once.
 *
 * An image's row has a part in as many rows of outputs as windows have taps across it. A unit has
 * several rows of outputs. It packs an image's row in strips (cpu_strips.h), multiplies them by the
 * weights of all of these taps, and adds to the partial results of each row of outputs:
 *
 *     image's row            0    1    2    3    4  ..     stride 1, taps 0 to 2
 *     taps, of outputs 0     0    1    2
 *              outputs 1          0    1    2
 *              outputs 2               0    1    2
 *
 * The rows of outputs are those of the register tile too, each beside its tap's weights. So a
 * vector of windows is multiplied by few columns many times. Sums go in the order of k, since the
 * rows of the image come in the order of their taps. */
#ifndef FUSEC_TEMPLATE_CPU_SWEEP_H
#define FUSEC_TEMPLATE_CPU_SWEEP_H

#include "template/cpu_strips.h"

typedef struct CpuSweep {
    uint32_t axis;    /* of the rows of outputs */
    int64_t n_rows;   /* its extent */
    CpuStrips across; /* the rows of the image that are alike modulo the stride are a strip */
    uint32_t n_most;  /* taps of a strip across, at most */
    /* Strips across in the order of their rows in the image; `later`: how many strides later than
     * the rows of outputs they begin. */
    uint32_t order[INDEX_NEAR_STRIDE], later[INDEX_NEAR_STRIDE];
    int64_t weight_k, weight_n; /* elements from one weight to the next along k and along n */
} CpuSweep;

/* Finds how to sweep over an lhs with such strips, if that is worth while: vectors lie along m, and
 * the image's rows have several taps in a strip across. */
bool cpu_sweep_find(Arena *arena, const Kernel *kernel, const CpuStrips *strips, CpuSweep *sweep);
/* The number of taps of a strip across, and tap `i` of them. */
uint32_t cpu_sweep_taps(const CpuSweep *sweep, uint32_t across);
uint32_t cpu_sweep_tap(const CpuSweep *sweep, uint32_t across, uint32_t i);

#endif
