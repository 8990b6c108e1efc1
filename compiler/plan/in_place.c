/* See in_place.h. */
#include "plan/in_place.h"

static bool is_plain_temp(const Buffer *buffer) {
    return buffer->kind == BUFFER_TEMP && buffer->space == BUFFER_GLOBAL && !buffer->choice;
}

/* Whether both buffers have the same element size and layout, row gaps included. */
static bool are_alike(DimTab *dims, const Buffer *a, const Buffer *b) {
    return dtype_bytes(a->dtype) == dtype_bytes(b->dtype) &&
           buffer_bytes(dims, a) == buffer_bytes(dims, b);
}

/* What the kernel computes, for all its stores and all buffers that they may take. */
typedef struct Lives {
    Arena *arena;
    const Kernel *kernel;
    VecU32 loads;           /* the scalars that load */
    const bool *all;        /* per scalar: see kernel_live_scalars; NULL: not asked yet */
    const bool *reduced;    /* see kernel_reduced_scalars */
    const bool **of_stages; /* of each stage and of the row's stores: see stage_live_scalars */
    const bool **reached;   /* per scalar that is stored: see scalar_reached */
} Lives;

static Lives lives_new(Arena *arena, const Kernel *kernel) {
    Lives lives = {.arena = arena, .kernel = kernel};
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
        if (scalar_get(kernel->scalars, id)->kind == SCALAR_LOAD) vec_push(arena, &lives.loads, id);
    return lives;
}

static const bool *lives_of_all(Lives *lives) {
    if (!lives->all) lives->all = kernel_live_scalars(lives->arena, lives->kernel);
    return lives->all;
}

static const bool *lives_of_reduced(Lives *lives) {
    if (!lives->reduced) lives->reduced = kernel_reduced_scalars(lives->arena, lives->kernel);
    return lives->reduced;
}

static const bool *lives_of_stage(Lives *lives, uint32_t stage) {
    if (!lives->of_stages)
        lives->of_stages = arena_array(lives->arena, const bool *, lives->kernel->stages.n + 1);
    if (!lives->of_stages[stage])
        lives->of_stages[stage] =
            stage_live_scalars(lives->arena, lives->kernel, (RowCache){.n = 0}, stage);
    return lives->of_stages[stage];
}

static const bool *lives_of_value(Lives *lives, ScalarId value) {
    const ScalarTab *scalars = lives->kernel->scalars;
    if (!lives->reached)
        lives->reached = arena_array(lives->arena, const bool *, scalar_count(scalars) + 1);
    if (!lives->reached[value])
        lives->reached[value] = scalar_reached(lives->arena, scalars, value);
    return lives->reached[value];
}

/* Whether all scalars marked in `live` that load `taken` load it at exactly the index of the store,
 * and, if `is_own`, only to compute the stored value. */
static bool reads_only_at(Lives *lives, uint32_t taken, const Store *store, const bool *live,
                          bool is_own) {
    for (uint32_t i = 0; i < lives->loads.n; i++) {
        ScalarId id = lives->loads.data[i];
        const Scalar *s = scalar_get(lives->kernel->scalars, id);
        if (!live[id] || s->buffer != taken) continue;
        if (s->index != store->address || (is_own && !lives_of_value(lives, store->value)[id]))
            return false;
    }
    return true;
}

static bool reads_at_all(const Lives *lives, uint32_t buffer, const bool *live) {
    for (uint32_t i = 0; i < lives->loads.n; i++) {
        ScalarId id = lives->loads.data[i];
        if (live[id] && scalar_get(lives->kernel->scalars, id)->buffer == buffer) return true;
    }
    return false;
}

/* A map and a matmul's epilogue visit each element once. */
static bool may_at_once(Lives *lives, uint32_t taken, const Store *store) {
    const bool *live = lives_of_all(lives);
    return reads_at_all(lives, taken, live) &&
           !reads_at_all(lives, taken, lives_of_reduced(lives)) &&
           reads_only_at(lives, taken, store, live, true);
}

/* The stage of the store; the number of stages if it is in none. */
static uint32_t stage_of(const Kernel *kernel, const Store *store) {
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        for (uint32_t i = 0; i < kernel->stages.data[s].stores.n; i++)
            if (&kernel->stages.data[s].stores.data[i] == store) return s;
    return kernel->stages.n;
}

/* Whether the loops visit each element of the buffer once per stage. They do if they have as many
 * points as the buffer has elements, because the store fills the buffer. */
static bool has_point_for_each(const Plan *plan, const Kernel *kernel, const Buffer *buffer) {
    DimTab *dims = plan->graph->dims;
    DimId points = dim_mul(dims, kernel_n_rows(kernel), kernel_n_reduced(kernel));
    return points != DIM_NONE && points == shape_n_elems(dims, &buffer->shape);
}

static bool gathers(const Kernel *kernel, const bool *live) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (live[id] && s->index && index_is_gathered(tab, s->index)) return true;
    }
    return false;
}

/* Rows and columns: stages up to that of the store load the buffer only at the store's index, and
 * later stages do not load it. */
static bool may_in_stage(Lives *lives, const Plan *plan, uint32_t taken, const Store *store) {
    const Kernel *kernel = lives->kernel;
    uint32_t own = stage_of(kernel, store);
    if (own == kernel->stages.n ||
        !has_point_for_each(plan, kernel, &plan->buffers.data[store->buffer]))
        return false;
    const bool *all = lives_of_all(lives);
    if (gathers(kernel, all) || !reads_at_all(lives, taken, all)) return false;
    for (uint32_t s = 0; s <= kernel->stages.n; s++) {
        const bool *live = lives_of_stage(lives, s);
        if (s <= own ? !reads_only_at(lives, taken, store, live, s == own)
                     : reads_at_all(lives, taken, live))
            return false;
    }
    return true;
}

static bool may_take(Lives *lives, const Plan *plan, uint32_t taken, const Store *store) {
    const Kernel *kernel = lives->kernel;
    const Buffer *from = &plan->buffers.data[taken], *to = &plan->buffers.data[store->buffer];
    bool is_once = form_info(kernel->form)->one_pass;
    if (kernel->is_init || store->is_update || store->piece || store->guard || store->begin ||
        taken == store->buffer || kernel_stores_to(kernel, taken) || !is_plain_temp(from) ||
        !is_plain_temp(to) || !are_alike(plan->graph->dims, from, to))
        return false;
    return is_once ? may_at_once(lives, taken, store) : may_in_stage(lives, plan, taken, store);
}

bool in_place_may(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t taken,
                  const Store *store) {
    ArenaMark mark = arena_mark(arena);
    Lives lives = lives_new(arena, kernel);
    bool may = may_take(&lives, plan, taken, store);
    arena_rewind(arena, mark);
    return may;
}

typedef struct Stores {
    Lives lives;
    const Plan *plan;
    uint32_t taken;
    bool may;
} Stores;

static void ask(void *user, const Store *store) {
    Stores *stores = user;
    stores->may = stores->may || may_take(&stores->lives, stores->plan, stores->taken, store);
}

bool *in_place_find(Arena *arena, const Plan *plan, const Kernel *kernel) {
    bool *may = arena_array(arena, bool, kernel->args.n);
    ArenaMark mark = arena_mark(arena);
    Stores stores = {.lives = lives_new(arena, kernel), .plan = plan};
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        stores.taken = kernel->args.data[i];
        stores.may = false;
        if (is_plain_temp(&plan->buffers.data[stores.taken]))
            kernel_each_store(kernel, ask, &stores);
        may[i] = stores.may;
    }
    arena_rewind(arena, mark);
    return may;
}
