/* Planes: the rows of an image that the taps of a work unit read, packed in strips on a CPU.
 *
 * The taps of a depthwise convolution go over several rows of the image. The rows that are alike
 * modulo the stride along the walked axis lie one after the other, as the elements of a row do in
 * its strips (cpu_strips.h), with the padding around them. So each tap of a vector of outputs is a
 * contiguous vector at a constant distance from the output's place, without guards, and each
 * element of the image is packed once for all taps and all rows of the unit.
 *
 * With channels first, the lanes lie along the image's rows. With channels last, they lie along the
 * channels, and an element of a strip is a vector of them. */
#ifndef FUSEC_TEMPLATE_CPU_PLANES_H
#define FUSEC_TEMPLATE_CPU_PLANES_H

#include "template/cpu_strips.h"

typedef struct CpuPlanes {
    ScalarId image;  /* the operand that is packed; the other one is the same for all outputs of a
                      * unit */
    uint32_t axis;   /* along a row of outputs */
    uint32_t walked; /* the axis of the rows of outputs */
    uint32_t width;  /* numbers of an element: 1, or the lanes of a vector along another axis */
    CpuStrips along, across;
    ScalarId outside; /* of the image where `inside` does not hold, or SCALAR_NONE */
    GuardId inside;
    int64_t n_windows; /* of a row of outputs */
    uint32_t pitch;    /* elements of a strip */
} CpuPlanes;

/* Finds the planes of a GEMM of one row or one column whose lanes lie along `lane_axis`. */
bool cpu_planes_find(Arena *arena, const Kernel *kernel, uint32_t lane_axis, uint32_t lanes,
                     CpuPlanes *planes);
/* The elements of a row of the image. */
uint32_t cpu_planes_row(const CpuPlanes *planes);
/* The number of image rows that `n_outputs` rows of outputs read, and the place of the first row
 * of strip `across`. */
int64_t cpu_planes_rows(const CpuPlanes *planes, int64_t n_outputs);
int64_t cpu_planes_first(const CpuPlanes *planes, int64_t n_outputs, uint32_t across);
/* The element of the planes that tap `tap` of the first output reads. */
int64_t cpu_planes_offset(const CpuPlanes *planes, int64_t n_outputs, int64_t tap);
/* The most rows of outputs whose planes stay in the nearest cache. */
int64_t cpu_planes_outputs(const CpuPlanes *planes, uint32_t elem_bytes);
/* The clocks of a row of outputs beside its stores, if a unit has so many; of vectors along the
 * lane axis those of one vector for each output. */
double cpu_planes_clocks(const CpuPlanes *planes, int64_t n_outputs, uint32_t lanes);
/* The vectors of outputs of such a row. */
double cpu_planes_vectors(const CpuPlanes *planes, uint32_t lanes);

#endif
