/* The work and time of templates whose threads loop over elements of their own. */
#ifndef FUSEC_COST_KERNEL_LOOPS_H
#define FUSEC_COST_KERNEL_LOOPS_H

#include "cost/kernel/template.h"

/* The share of the machine that has work if each processor could use `wanted` warps. */
double cost_use(const Coster *c, const Pricing *p, double wanted);

/* Fields of TemplateCost. */
void cost_loops_count(const Coster *c, Pricing *p, bool *const *live);
void cost_loops_load(const Coster *c, Pricing *p, bool *const *live);
double cost_loops_use(const Coster *c, const Pricing *p, double wanted);
void cost_loops_compute(const Coster *c, Pricing *p, double prims_per_us);
double cost_loops_bared_us(const Coster *c, const Pricing *p, double busy);

/* The loads in flight of a thread that processes `steps` steps at once. */
void cost_steps_load(const Coster *c, Pricing *p, bool *const *live, double steps);

/* The fields for rows, whose reductions must end before later stages; also on a CPU. */
double cost_row_registers(const ThreadUse *use);
void cost_row_load(const Coster *c, Pricing *p, bool *const *live);
double cost_row_bared_us(const Coster *c, const Pricing *p, double busy);

/* The fields for maps without tiles, which use no shared memory. */
double cost_map_registers(const ThreadUse *use);
uint32_t cost_map_bytes(Arena *arena, const Kernel *kernel, const Variant *variant);

#endif
