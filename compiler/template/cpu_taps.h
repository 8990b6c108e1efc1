/* GEMMs of one row or one column and a short known k, on a CPU: each vector of outputs is computed
 * by itself, tap after tap. The lanes lie along any parallel axis. */
#ifndef FUSEC_TEMPLATE_CPU_TAPS_H
#define FUSEC_TEMPLATE_CPU_TAPS_H

#include "plan/kernel.h"
#include "template/cpu_planes.h"

/* Whether a matmul may be such GEMMs: the taps of a depthwise convolution. */
bool cpu_taps_may_be(const Graph *graph, NodeId id);

/* The accesses of memory that one tap of a vector of outputs takes, on average, and those of its
 * stores and of what they load. */
typedef struct CpuTapsAccesses {
    double tap, rest;
    bool are_near; /* false: an operand's elements are too far apart along the axis */
} CpuTapsAccesses;
CpuTapsAccesses cpu_taps_accesses(Arena *arena, const Kernel *kernel, uint32_t axis,
                                  uint32_t lanes);

/* Whether the vectors of the lane axis are the inner loop, and the walked axis the outer one: an
 * operand is the same in all lanes, and memory is read along its rows. Short rows are few vectors,
 * so the operand would be loaded too often; so it would be if its taps do not fit in registers. */
bool cpu_taps_go_along_lanes(const Kernel *kernel, uint32_t axis, uint32_t lanes);

/* The steps along the lane axis. Guards of the operands, as of padding, hold for all taps in its
 * middle [lo, hi), which vectors go through without them; the elements at both ends are computed
 * one by one. */
typedef struct CpuTapsSteps {
    bool has_middle;
    int64_t lo, hi;
    bool has_guards; /* vectors go through the whole axis with guards */
} CpuTapsSteps;
CpuTapsSteps cpu_taps_steps(Arena *arena, const Kernel *kernel, uint32_t axis, uint32_t lanes);
/* The same for vectors of columns of few rows, such as poolings. */
CpuTapsSteps cpu_column_steps(Arena *arena, const Kernel *kernel, uint32_t axis, uint32_t lanes);
/* The time of a vector with guards, and of an element at an end, as a multiple of a vector without;
 * judged. */
enum { CPU_TAPS_GUARDED_STEPS = 3, CPU_TAPS_END_STEPS = 2 };
/* The time of all vectors of the axis, in those of one without guards. */
double cpu_taps_time(CpuTapsSteps steps, double extent, double lanes);
/* The clocks of a row of so many outputs along the axis, whose elements along `walked` are computed
 * side by side. `planes`, or NULL: those from which units of `n_outputs` rows compute them. */
double cpu_taps_clocks(Arena *arena, const Kernel *kernel, uint32_t axis, uint32_t walked,
                       uint32_t lanes, double extent, const CpuPlanes *planes, int64_t n_outputs);

#endif
