/* The kernels of a program's graph, one for each variant of its steps, in order. Code comes to the
 * device by pieces (ptx_section.h): a piece when a kernel in it is first needed, once for the
 * program, whichever thread is first; others that need what is not there yet wait, those that do
 * not go on. What is there stays until the program goes. */
#ifndef FRT_KERNELS_H
#define FRT_KERNELS_H

#include "device/device.h"

typedef struct Kernels Kernels;

/* Finds the piece of every kernel and loads nothing. `device`, `module` and `graph`, which is one
 * of its graphs, must outlive it. FRT_E_CODE (no such kernel), _OUT_OF_MEMORY. */
frt_status kernels_create(Device *device, const frt_module *module, const Graph *graph,
                          Kernels **kernels, frt_error *err);
/* Between enter and leave, unless the device is lost. */
void kernels_free(Kernels *kernels);

/* Bring the kernels of `n` variants to the device; those that are there cost nothing. If one is
 * refused, the others stay, and that one is tried again when it is next needed. Between enter and
 * leave. Thread-safe. */
frt_status kernels_need(Kernels *kernels, const uint32_t *variants, uint32_t n, frt_error *err);
frt_status kernels_need_all(Kernels *kernels, frt_error *err);

/* NULL: not there. Thread-safe. */
void *kernels_get(const Kernels *kernels, uint32_t variant);

/* All of `info` but its size. Thread-safe. */
void kernels_describe_load(Kernels *kernels, frt_load_info *info);

#endif
