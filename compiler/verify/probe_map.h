/* Private to probes: those that need a kernel of their own. */
#ifndef FUSEC_VERIFY_PROBE_MAP_H
#define FUSEC_VERIFY_PROBE_MAP_H

#include "verify/probe.h"

/* Inserts a map at the place of the probe's kernel, `kernel` (not one in the plan), that stores the
 * probe's scalars into these buffers. */
void probe_map(Arena *arena, Plan *plan, const Kernel *kernel, const Probe *tap,
               const uint32_t *buffers);
/* Adds a map after all kernels, and an output of one axis, which it copies the buffer to. */
void probe_copy(Arena *arena, Plan *plan, uint32_t buffer, Str name);

#endif
