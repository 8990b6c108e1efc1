/* What a scheduled kernel needs of a processor: an estimate of the registers of a thread and the
 * shared memory of a block, and how many blocks that leaves room for. The driver's own figures are
 * compared with it by `fusec bench` and `fusec verify`. */
#ifndef FUSEC_COST_PRESSURE_H
#define FUSEC_COST_PRESSURE_H

#include "machine/card.h"
#include "plan/plan.h"

typedef struct Pressure {
    uint32_t registers;    /* of 32 bits, per thread; more than there are: it would spill */
    uint32_t shared_bytes; /* per block, dynamic ones included */
    uint32_t n_blocks;     /* that fit on a processor; at least 1 */
    double occupancy;      /* their threads, of those a processor can hold */
    bool spills;
    uint32_t spilled; /* registers that a thread keeps in memory of its own */
} Pressure;

/* `variant` is one of the kernel's. On a CPU all is 0, n_blocks and occupancy are 1. */
Pressure pressure_of(Arena *arena, const Plan *plan, const Kernel *kernel, const Variant *variant,
                     const Card *card);

/* Registers of a thread, of 32 bits, for a schedule of which lanes, resident, team, threads and,
 * for GEMMs, tiles and engine are set. */
uint32_t pressure_registers(Arena *arena, const Kernel *kernel, const Sched *sched);
/* The same without what the assembler takes as it pleases, to have more loads of a row at once. */
uint32_t pressure_least(Arena *arena, const Kernel *kernel, const Sched *sched);

/* Halves the lanes until a thread has registers for them. */
uint32_t pressure_lanes(Arena *arena, const Kernel *kernel, Sched sched);

/* The most scalars alive at once while the kernel's stages are computed for one element, in
 * registers of 32 bits. */
uint32_t pressure_live(Arena *arena, const Kernel *kernel);

#endif
