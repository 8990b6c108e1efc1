/* See cpu_map_tile.h. */
#include "template/cpu_map_tile.h"

/* How a value is computed in vectors along `in`. */
typedef struct Turner {
    const Kernel *kernel;
    IndexTab *tab;
    uint32_t in, out, lanes;
    bool *can;   /* per ScalarId: no load needs single elements */
    bool *gains; /* and some load needs single elements along `out` */
} Turner;

static void classify_load(const Turner *t, ScalarId id) {
    const Scalar *load = scalar_get(t->kernel->scalars, id);
    LaneMotion in = index_lane_motion(t->tab, load->index, t->in, INDEX_ANY_START);
    LaneMotion out = index_lane_motion(t->tab, load->index, t->out, t->lanes);
    bool is_near = index_is_near(t->tab, load->index, t->out, INDEX_NEAR_STRIDE) ||
                   index_lanes_shared(t->tab, load->index, t->out);
    t->can[id] = in != LANES_VARYING && !index_is_gathered(t->tab, load->index);
    t->gains[id] = t->can[id] && in == LANES_CONTIGUOUS && out == LANES_VARYING && !is_near;
}

static void classify(const Turner *t, ScalarId id) {
    const Scalar *s = scalar_get(t->kernel->scalars, id);
    if (s->kind == SCALAR_LOAD) {
        classify_load(t, id);
        return;
    }
    t->can[id] = true;
    for (int i = 0; i < 3; i++) {
        if (!s->args[i]) continue;
        t->can[id] = t->can[id] && t->can[s->args[i]];
        t->gains[id] = t->gains[id] || t->gains[s->args[i]];
    }
    t->gains[id] = t->gains[id] && t->can[id];
}

/* Marks the values that stores, or values that are not turned, need. */
static void mark_wanted(const Turner *t, const bool *live, bool *wanted) {
    const Kernel *kernel = t->kernel;
    const Stage *stage = &kernel->stages.data[0];
    for (uint32_t i = 0; i < stage->stores.n; i++) wanted[stage->stores.data[i].value] = true;
    for (ScalarId id = scalar_count(kernel->scalars); id >= 1; id--) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        for (int i = 0; i < 3 && live[id] && !t->gains[id]; i++) wanted[s->args[i]] = true;
    }
}

CpuMapTurned cpu_map_turned(Arena *arena, const Kernel *kernel, uint32_t in, uint32_t out,
                            uint32_t lanes) {
    const ScalarTab *scalars = kernel->scalars;
    Turner t = {kernel,
                scalartab_indices(scalars),
                in,
                out,
                lanes,
                scalar_marks(scalars),
                scalar_marks(scalars)};
    const bool *live = kernel_live_scalars(arena, kernel);
    bool *wanted = scalar_marks(scalars), *under = scalar_marks(scalars);
    CpuMapTurned turned = {.under = under};
    uint32_t n = 0;
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) classify(&t, id);
    mark_wanted(&t, live, wanted);
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        if (!live[id] || !wanted[id] || !t.gains[id]) continue;
        under[id] = true;
        bool has_room =
            n < CPU_MAP_TILE_MOST_TURNED && dtype_bytes(scalar_get(scalars, id)->dtype) > 1;
        if (!has_room) return (CpuMapTurned){.under = scalar_marks(scalars)};
        turned.ids[n++] = id;
    }
    turned.n = n;
    scalar_mark_arguments(scalars, under);
    return turned;
}

CpuMapTurned cpu_map_tile_turned(Arena *arena, const Kernel *kernel, const Sched *sched) {
    if (!template_info(sched->template)->turns_values) return (CpuMapTurned){.n = 0};
    return cpu_map_turned(arena, kernel, sched->map_tile.axis_in, kernel_lane_axis(kernel, sched),
                          sched->lanes);
}
