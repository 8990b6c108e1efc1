/* 32-bit registers of a thread for the values of a kernel: the estimate on which those of the
 * templates build (cost/kernel/template.h). */
#ifndef FUSEC_COST_COUNT_REGISTERS_H
#define FUSEC_COST_COUNT_REGISTERS_H

#include "plan/kernel.h"

/* The most registers live in a stage. `needs`: also those inside primitives. is_least: a lower
 * estimate, for cases with many values where ptxas may go either way. */
double registers_of_stages(Arena *arena, const Kernel *kernel, const Sched *sched, bool needs,
                           bool is_least);
/* Registers per step that a resident row keeps between stages: scalars of one stage that a later
 * one uses. */
double registers_kept(Arena *arena, const Kernel *kernel, const Sched *sched);
/* Registers of the loads of a step. */
double registers_loaded(Arena *arena, const Kernel *kernel, const Sched *sched);
/* Whether ptxas would work on all lanes of a map at once, with registers for all, where it
 * processes fewer lanes one after the other. */
bool registers_are_spread(Arena *arena, const Kernel *kernel, const Sched *sched);

#endif
