/* The resources that a scheduled kernel needs: the estimated registers of a thread, the shared
 * memory of a block, and the number of blocks that fit on a processor. `fusec bench` and `fusec
 * verify` compare them with the driver's numbers. */
#ifndef FUSEC_COST_PRESSURE_H
#define FUSEC_COST_PRESSURE_H

#include "machine/card.h"
#include "plan/plan.h"

typedef struct Pressure {
    uint32_t registers;    /* 32-bit, per thread; more than exist: the kernel spills */
    uint32_t shared_bytes; /* per block, including dynamic */
    uint32_t n_blocks;     /* fitting on a processor; at least 1 */
    double occupancy; /* threads of n_blocks, as a share of the threads that a processor holds */
    bool spills;
    uint32_t spilled; /* registers that a thread spills */
} Pressure;

/* `variant` is one of the kernel's. On a CPU all fields are 0, but n_blocks and occupancy are 1. */
Pressure pressure_of(Arena *arena, const Kernel *kernel, const Variant *variant, const Card *card);

/* Shared memory of a block of a GPU, including dynamic, in bytes. */
uint32_t pressure_shared_bytes(Arena *arena, const Kernel *kernel, const Variant *variant);

/* 32-bit registers of a thread, for a schedule with lanes, resident, threads_per_row, threads and,
 * for GEMMs, tiles set. */
uint32_t pressure_registers(Arena *arena, const Kernel *kernel, const Sched *sched);
/* The registers that the thread needs at least: pressure_registers without the registers that ptxas
 * uses only if they are free, to load more of a row at once. */
uint32_t pressure_least(Arena *arena, const Kernel *kernel, const Sched *sched);

/* Halves the lanes until the registers of a thread suffice. */
uint32_t pressure_lanes(Arena *arena, const Kernel *kernel, Sched sched);

/* The most scalars live at once while the kernel's stages are computed for one element, in 32-bit
 * registers. */
uint32_t pressure_live(Arena *arena, const Kernel *kernel);

#endif
