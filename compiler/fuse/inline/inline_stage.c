/* The stage in which a scalar can be computed, and the work of a stage. See inline.h. */
#include "fuse/inline/inline.h"

#include "ir/indexmap.h"

/* The stage of a reduction, given the stages of scalars. */
static uint32_t reduce_stage(const Kernel *kernel, uint32_t slot, const uint32_t *stage) {
    const Reduce *reduce = &kernel->reduces.data[slot];
    uint32_t left = stage[reduce->value], right = stage[reduce->rhs];
    uint32_t last = left > right ? left : right;
    if (stage[reduce->factor] > last) last = stage[reduce->factor];
    for (uint32_t i = 0; reduce->join && i < reduce->join->n; i++)
        if (stage[reduce->join->elements[i]] > last) last = stage[reduce->join->elements[i]];
    return last;
}

/* The first stage that may use the result. Where each point has a result, it is there at
 * once. */
static uint32_t result_stage(const Kernel *kernel, uint32_t slot, const uint32_t *stage) {
    return reduce_stage(kernel, slot, stage) + !form_info(kernel->form)->each_point;
}

/* Returns whether the scalar's stage rose. */
static bool raise_stage(const Kernel *kernel, uint32_t *stage, ScalarId id) {
    const ScalarTab *scalars = kernel->scalars;
    const Scalar *s = scalar_get(scalars, id);
    uint32_t before = stage[id];
    if (s->kind == SCALAR_STAGE) stage[id] = result_stage(kernel, s->slot, stage);
    for (int i = 0; i < 3; i++)
        if (stage[s->args[i]] > stage[id]) stage[id] = stage[s->args[i]];
    uint32_t gathered = indexmap_last_value(scalartab_indices(scalars), scalars, s, stage);
    if (gathered > stage[id]) stage[id] = gathered;
    return stage[id] != before;
}

/* One pass over the scalars. Returns whether a stage rose. */
static bool raise_stages(const Kernel *kernel, uint32_t *stage) {
    bool any = false;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
        any = raise_stage(kernel, stage, id) || any;
    return any;
}

void inline_add_stages(Arena *arena, const Kernel *kernel, VecU32 *stage) {
    if (!stage->n) vec_push(arena, stage, 0);
    while (stage->n <= scalar_count(kernel->scalars)) {
        vec_push(arena, stage, 0);
        raise_stage(kernel, stage->data, stage->n - 1);
    }
}

/* The value of a reduction that was changed after inlining may have a greater id than its result,
 * so one pass may not suffice. */
uint32_t *inline_scalar_stages(Arena *arena, const Kernel *kernel) {
    uint32_t *stage = arena_array(arena, uint32_t, scalar_count(kernel->scalars) + 1);
    while (raise_stages(kernel, stage)) {
    }
    return stage;
}

static Stage *stage_at(Arena *arena, Kernel *kernel, uint32_t i) {
    while (kernel->stages.n <= i) vec_push(arena, &kernel->stages, (Stage){0});
    return &kernel->stages.data[i];
}

void inline_arrange_stages(Arena *arena, Kernel *kernel, const uint32_t *stage, const Store *stores,
                           const bool *is_row, uint32_t n_stores) {
    for (uint32_t slot = 0; slot < kernel->reduces.n; slot++) {
        Stage *own = stage_at(arena, kernel, reduce_stage(kernel, slot, stage));
        vec_push(arena, &own->reduces, slot);
    }
    for (uint32_t i = 0; i < n_stores; i++) {
        uint32_t own = form_info(kernel->form)->weighs ? 0 : stage[stores[i].value];
        if (is_row[i])
            vec_push(arena, &kernel->row_stores, stores[i]);
        else
            vec_push(arena, &stage_at(arena, kernel, own)->stores, stores[i]);
    }
}
