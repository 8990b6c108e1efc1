/* See in_place.h. */
#include "ir/in_place.h"

static bool is_plain_temp(const Buffer *buffer) {
    return buffer->kind == BUFFER_TEMP && !buffer->is_on_chip && !buffer->stands_for;
}

/* Element for element, with what lies between rows. */
static bool are_alike(DimTab *dims, const Buffer *a, const Buffer *b) {
    return dtype_bytes(a->dtype) == dtype_bytes(b->dtype) &&
           buffer_bytes(dims, a) == buffer_bytes(dims, b);
}

/* Per scalar: whether the kernel's reductions are of it; a contraction's factors are, which a block
 * reads ahead for all its tiles. */
static bool *find_reduced(Arena *arena, const Kernel *kernel) {
    bool *is_reduced = arena_array(arena, bool, scalar_count(kernel->scalars) + (size_t)1);
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        is_reduced[kernel->reduces.data[i].value] = true;
        is_reduced[kernel->reduces.data[i].factor] = true;
    }
    scalar_mark_arguments(kernel->scalars, is_reduced);
    return is_reduced;
}

static bool reads_only_at(Arena *arena, const Kernel *kernel, uint32_t taken, const Store *store) {
    const bool *live = kernel_live_scalars(arena, kernel);
    const bool *is_part = scalar_reached(arena, kernel->scalars, store->value);
    const bool *is_reduced = find_reduced(arena, kernel);
    bool reads = false;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (!live[id] || s->kind != SCALAR_LOAD || s->buffer != taken) continue;
        if (s->index != store->address || !is_part[id] || is_reduced[id]) return false;
        reads = true;
    }
    return reads;
}

bool in_place_may(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t taken,
                  const Store *store) {
    const Buffer *from = &plan->buffers.data[taken], *to = &plan->buffers.data[store->buffer];
    bool visits_once = kernel->form == FORM_MAP || kernel->form == FORM_CONTRACT;
    if (!visits_once || kernel->is_init || store->piece || store->guard || store->begin ||
        taken == store->buffer || kernel_stores_to(kernel, taken) || !is_plain_temp(from) ||
        !is_plain_temp(to) || !are_alike(plan->graph->dims, from, to))
        return false;
    ArenaMark mark = arena_mark(arena);
    bool may = reads_only_at(arena, kernel, taken, store);
    arena_rewind(arena, mark);
    return may;
}

typedef struct Stores {
    Arena *arena;
    const Plan *plan;
    const Kernel *kernel;
    uint32_t taken;
    bool may;
} Stores;

static void ask(void *user, const Store *store) {
    Stores *stores = user;
    stores->may = stores->may ||
                  in_place_may(stores->arena, stores->plan, stores->kernel, stores->taken, store);
}

bool in_place_may_any(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t taken) {
    Stores stores = {.arena = arena, .plan = plan, .kernel = kernel, .taken = taken};
    if (is_plain_temp(&plan->buffers.data[taken])) kernel_each_store(kernel, ask, &stores);
    return stores.may;
}
