/* The cost of maps in tiles. See template.h. */
#include "cost/kernel/loops.h"
#include "machine/tuning.h"
#include "template/map_tile.h"

#include <math.h>

/* Registers of a map in tiles. A thread has the loads of all its elements in flight. ptxas starts
 * the loads that run ahead only after the staged ones are in shared memory, if registers do not
 * suffice for both. */
static double tile_registers(const ThreadUse *use) {
    MapTileHeld held = map_tile_held(use->arena, use->kernel, use->sched);
    double tile = fmax(0, fmax(held.staged, held.ahead) - use->peak) + REGS_MAP_TILE;
    return use->own + use->peak + tile;
}

/* Shared memory of the tile. */
static uint32_t tile_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    return map_tile_bytes(arena, kernel, &variant->sched);
}

static void load_tile(const Coster *c, Pricing *p, bool *const *live) {
    const Sched *sched = &p->variant->sched;
    cost_steps_load(c, p, live, (double)map_tile_elems(sched) / sched->lanes);
}

const TemplateCost cost_gpu_map_tile = {.base = &cost_loops,
                                        .registers = tile_registers,
                                        .shared_bytes = tile_bytes,
                                        .load = load_tile};
