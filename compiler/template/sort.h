/* Facts about sorts that fusion, schedules, prices and code share (codegen/scalar/sort.h). */
#ifndef FUSEC_TEMPLATE_SORT_H
#define FUSEC_TEMPLATE_SORT_H

#include "plan/kernel.h"

/* Elements of a row up to which a sort keeps its orders in shared memory or on the stack. */
enum { SORT_LOCAL = 4096 };

/* Elements of the runs with which a sort begins. They are put in order in registers. */
enum { SORT_RUN_LOG2 = 3, SORT_RUN = 1 << SORT_RUN_LOG2 };

/* The first places of an order that the kernel's stores read, where all of them have a bound of the
 * sorted axis; INT64_MAX: all places. */
int64_t sort_kept(const Kernel *kernel);
/* Most first places that are found without a sort: on a CPU (`has_cores`), where one walk along the
 * row finds all, and on a GPU, where each takes a walk and keys have at most 32 bits. */
enum { SORT_SELECT_CPU = 64, SORT_SELECT_GPU = 16 };
bool sort_selects(const Kernel *kernel, bool has_cores);
/* sort_kept as a power of two, at least SORT_RUN, up to which runs grow when they are merged. */
uint32_t sort_kept_log2(const Kernel *kernel);

/* The bytes of an element of a sort's order: a number of 32 bits, or on a CPU (`has_cores`) an
 * integer that holds the key and the number. */
static inline uint32_t sort_item_bytes(const Kernel *kernel, bool has_cores) {
    uint32_t key_bytes = dtype_bytes(kernel->reduces.data[0].acc);
    return has_cores ? 2 * key_bytes : (uint32_t)sizeof(int32_t);
}

/* The consecutive places of a merged run that a GPU's thread merges, as a power of two, for rows of
 * up to `most` elements: as many as the steps of the search that finds its begin, or more. */
static inline uint32_t sort_span_log2(int64_t most) {
    uint32_t n_steps = 1, span_log2 = SORT_RUN_LOG2;
    while (n_steps < 31 && most >> n_steps) n_steps++;
    while (1u << span_log2 < n_steps) span_log2++;
    return span_log2;
}

#endif
