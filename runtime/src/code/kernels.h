/* The kernels of a program's graph: one for each variant of its steps, in order. Code is loaded by
 * pieces (ptx_section.h). The first thread that needs a kernel loads its piece for the whole
 * program. Other threads that need a piece being loaded wait; all others proceed. A loaded kernel
 * stays until the program is freed. */
#ifndef FRT_KERNELS_H
#define FRT_KERNELS_H

#include "device/device.h"

typedef struct Kernels Kernels;

/* Finds the piece of every kernel and loads nothing. `device`, `module` and its graph `graph` must
 * outlive the result. FRT_E_CODE (no such kernel), _OUT_OF_MEMORY. */
frt_status kernels_create(Device *device, const frt_module *module, const Graph *graph,
                          Kernels **kernels, frt_error *err);
/* Call it between enter and leave, unless the device is lost. */
void kernels_free(Kernels *kernels);

/* Load the kernels of `n` variants. A loaded kernel costs nothing. If the driver refuses a kernel,
 * the others stay loaded, and the next call that needs the kernel tries it again. Call it between
 * enter and leave. Thread-safe. */
frt_status kernels_need(Kernels *kernels, const uint32_t *variants, uint32_t n, frt_error *err);
frt_status kernels_need_all(Kernels *kernels, frt_error *err);

/* NULL: not loaded. Thread-safe. */
void *kernels_get(const Kernels *kernels, uint32_t variant);

/* Fills `info` except struct_size. Thread-safe. */
void kernels_describe_load(Kernels *kernels, frt_load_info *info);

#endif
