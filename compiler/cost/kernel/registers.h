/* Registers of a thread, of 32 bits, for the values of a kernel: an estimate that every template's
 * own is made from (cost/kernel/template.h). */
#ifndef FUSEC_COST_KERNEL_REGISTERS_H
#define FUSEC_COST_KERNEL_REGISTERS_H

#include "plan/kernel.h"

/* The most that a stage has alive; `needs` adds what it takes to compute it. `is_least`: to be
 * safe, since chains of many values may go either way. */
double registers_of_stages(Arena *arena, const Kernel *kernel, const Sched *sched, bool needs,
                           bool is_least);
/* What a resident row keeps from stage to stage, per step: scalars made in one and used in a later
 * one. */
double registers_kept(Arena *arena, const Kernel *kernel, const Sched *sched);
/* Loaded in a step. */
double registers_loaded(Arena *arena, const Kernel *kernel, const Sched *sched);
/* Whether the assembler would work on all lanes of a map at once, with registers for all of them,
 * where it goes through fewer lanes one after the other. */
bool registers_are_spread(Arena *arena, const Kernel *kernel, const Sched *sched);

#endif
