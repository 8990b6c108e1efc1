/* What templates have in common that go over elements, each thread over its own: their work and its
 * time. */
#ifndef FUSEC_COST_KERNEL_LOOPS_H
#define FUSEC_COST_KERNEL_LOOPS_H

#include "cost/kernel/template.h"

/* The part of the machine that has work, were each of its processors busy with `wanted` warps. */
double cost_use(const Coster *c, const Pricing *p, double wanted);

/* Fields of TemplateCost. */
void cost_loops_count(const Coster *c, Pricing *p, bool *const *live);
void cost_loops_load(const Coster *c, Pricing *p, bool *const *live);
double cost_loops_use(const Coster *c, const Pricing *p, double wanted);
void cost_loops_compute(const Coster *c, Pricing *p, double prims_per_us);
double cost_loops_bared_us(const Coster *c, const Pricing *p, double busy);

/* The loads of a thread that goes through so many steps at once. */
void cost_steps_load(const Coster *c, Pricing *p, bool *const *live, double steps);

/* The same of rows, which wait for their ends; of a CPU's, too. */
double cost_row_registers(const ThreadUse *use);
void cost_row_load(const Coster *c, Pricing *p, bool *const *live);
double cost_row_bared_us(const Coster *c, const Pricing *p, double busy);

#endif
