/* Probes that need a kernel of their own. Internal to probes. */
#ifndef FUSEC_VERIFY_PROBE_MAP_H
#define FUSEC_VERIFY_PROBE_MAP_H

#include "verify/probe.h"

/* Inserts a map before the probe's kernel that stores the probe's scalars into these buffers.
 * `kernel` is that kernel and must not be in the plan's array, which may move. */
void probe_map(Arena *arena, Plan *plan, const Kernel *kernel, const Probe *probe,
               const uint32_t *buffers);
/* Adds a map after all kernels that copies the buffer to a new output with one axis. */
void probe_copy(Arena *arena, Plan *plan, uint32_t buffer, Str name);

#endif
