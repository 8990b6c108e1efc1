/* Queries on one kernel: extents, stores, arguments, and the scalars that its stages need. */
#include "plan/kernel.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include <string.h>

static uint32_t straight_rounds(const Sched *sched, uint32_t n_chains, int64_t k, int64_t grid) {
    enum { MAX_ROUNDS = 4, MAX_LOADS = 4 };
    int64_t step = (int64_t)sched->unroll * n_chains,
            loads = (int64_t)sched->unroll * sched->gemv.slots;
    int64_t blocks = (grid + sched->gemv.n_processors - 1) / sched->gemv.n_processors;
    int64_t threads = blocks * sched->threads;
    if (sched->gemv.lanes_along_k || k <= 0 || grid <= 0 || k % step || k / step > MAX_ROUNDS ||
        loads > MAX_LOADS || loads * threads > PLAN_GEMV_LOADS)
        return 0;
    return (uint32_t)(k / step);
}

/* `k` and `grid` are 0 if unknown. */
static GemvPasses sched_vector_passes(const Sched *sched, uint32_t n_chains, uint32_t acc_bytes,
                                      int64_t k, int64_t grid) {
    uint32_t n_outputs = sched->gemv.tile_m * sched->gemv.tile_n;
    uint32_t held = sched->gemv.threads_along_k * sched->gemv.slots *
                    (sched->gemv.lanes_along_k ? sched->lanes : 1);
    GemvPasses p = {.n_groups = n_chains / held, .n_kept = 1, .n_partials = 1};
    p.n_passes = p.n_groups / (sched->cluster > 1 ? sched->cluster : 1);
    p.n_rounds = straight_rounds(sched, n_chains, k, grid);
    if (!sched->gemv.lanes_along_k)
        p.n_partials = sched->threads / WARP_THREADS;
    else if (sched->gemv.threads_along_k > WARP_THREADS)
        p.n_partials = sched->gemv.slots * (sched->gemv.threads_along_k / WARP_THREADS);
    while (p.n_rounds && p.n_kept < PLAN_GEMV_KEPT && p.n_passes % (p.n_kept * 2) == 0 &&
           p.n_kept * 2 * p.n_partials * n_outputs * acc_bytes <= PLAN_GEMV_KEPT_BYTES)
        p.n_kept *= 2;
    return p;
}

uint32_t kernel_column_shared(const Kernel *kernel, const Sched *sched, bool *shares_smem) {
    uint32_t all = 0, widest = 0, n = sched->threads * sched->lanes;
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        uint32_t bytes = n * (dtype_bytes(reduce->acc) + (reduce->is_arg ? 4 : 0));
        all += bytes;
        if (bytes > widest) widest = bytes;
    }
    *shares_smem = kernel->stages.n > 1 || all > PLAN_COLUMN_SHARED_BYTES;
    return *shares_smem ? widest : all;
}

GemvPasses kernel_gemv_passes(const Kernel *kernel, const Variant *variant) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    const DimTab *dims = indextab_dims(tab);
    DimId extent = index_axis_extent(tab, gemm_axis_k(kernel));
    int64_t k = 0, grid = 0;
    if (!dim_is_const(dims, extent, &k)) k = 0;
    if (!dim_is_const(dims, variant->grid, &grid)) grid = 0;
    return sched_vector_passes(&variant->sched, gemv_n_chains(dims, extent),
                               dtype_bytes(kernel->reduces.data[0].acc), k, grid);
}

static DimId extent_product(const Kernel *kernel, uint32_t first, uint32_t n) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    DimId product = dim_const(dims, 1);
    for (uint32_t k = first; k < first + n; k++)
        product = dim_mul(dims, product, index_axis_extent(tab, k));
    return product;
}

uint32_t kernel_last_of_level(const Kernel *kernel, Str level) {
    uint32_t v = kernel->n_variants;
    while (v && predicate_level(&kernel->variants[v - 1].predicate) != level) v--;
    return v ? v - 1 : kernel->n_variants;
}

void kernel_set_variants(Arena *arena, Kernel *kernel, const Variant *variants, uint32_t n) {
    kernel->variants = arena_copy(arena, variants, n * sizeof *variants);
    kernel->n_variants = n;
}

Kernel kernel_copy(Arena *arena, const Kernel *kernel) {
    Kernel copy = *kernel;
    kernel_set_variants(arena, &copy, kernel->variants, kernel->n_variants);
    return copy;
}

DimId kernel_axis_extent(const Kernel *kernel, uint32_t axis) {
    return index_axis_extent(scalartab_indices(kernel->scalars), axis);
}

DimId gemm_n_batches(const Kernel *kernel) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    DimId n = dim_const(dims, 1);
    for (uint32_t k = 0; k + 2 < kernel->n_parallel; k++)
        n = dim_mul(dims, n, index_axis_extent(tab, k));
    return n;
}

DimId kernel_n_rows(const Kernel *kernel) {
    return extent_product(kernel, 0, kernel->n_parallel);
}

DimId kernel_n_reduced(const Kernel *kernel) {
    return extent_product(kernel, kernel->first_reduced, kernel->n_reduced);
}

void kernel_each_store(const Kernel *kernel, StoreVisitor visit, void *user) {
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const Stage *stage = &kernel->stages.data[i];
        for (uint32_t k = 0; k < stage->stores.n; k++) visit(user, &stage->stores.data[k]);
    }
    for (uint32_t k = 0; k < kernel->row_stores.n; k++) visit(user, &kernel->row_stores.data[k]);
}

uint32_t kernel_find_arg(const Kernel *kernel, uint32_t buffer) {
    for (uint32_t i = 0; i < kernel->args.n; i++)
        if (kernel->args.data[i] == buffer) return i;
    return NO_ARG;
}

static const Store *find_to(const Store *stores, uint32_t n, uint32_t buffer) {
    for (uint32_t i = 0; i < n; i++)
        if (stores[i].buffer == buffer) return &stores[i];
    return NULL;
}

const Store *kernel_find_store(const Kernel *kernel, uint32_t buffer) {
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const Stage *stage = &kernel->stages.data[i];
        const Store *found = find_to(stage->stores.data, stage->stores.n, buffer);
        if (found) return found;
    }
    return find_to(kernel->row_stores.data, kernel->row_stores.n, buffer);
}

bool kernel_stores_inner(const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->stages.n && !form_info(kernel->form)->weighs; i++)
        if (kernel->stages.data[i].stores.n) return true;
    return false;
}

bool kernel_stores_to(const Kernel *kernel, uint32_t buffer) {
    return kernel_find_store(kernel, buffer) != NULL;
}

bool kernel_only_reads(const Kernel *kernel, uint32_t buffer) {
    return kernel_find_arg(kernel, buffer) != NO_ARG && !kernel_stores_to(kernel, buffer);
}

static void mark(bool *live, ScalarId id) {
    live[id] = true;
}

static void mark_index(const IndexTab *tab, IndexId id, bool *live) {
    IndexExpr expr = index_expr(tab, id);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        if (atom.kind == ATOM_VALUE) mark(live, atom.value);
        if (atom.kind == ATOM_DIV || atom.kind == ATOM_MOD) mark_index(tab, atom.operand, live);
    }
}

static void mark_guard(const ScalarTab *scalars, GuardId guard, bool *live) {
    for (GuardId g = guard; g; g = guard_get(scalars, g).next)
        mark_index(scalartab_indices(scalars), guard_get(scalars, g).index, live);
}

static void mark_stores(const Kernel *kernel, const Store *stores, uint32_t n, bool *live) {
    for (uint32_t i = 0; i < n; i++) {
        mark(live, stores[i].value);
        mark_index(scalartab_indices(kernel->scalars), stores[i].address, live);
        mark_guard(kernel->scalars, stores[i].guard, live);
    }
}

bool row_cache_has(RowCache row_cache, ScalarId value, uint32_t stage) {
    for (uint32_t i = 0; i < row_cache.n; i++)
        if (row_cache.data[i].value == value && row_cache.data[i].stage < stage) return true;
    return false;
}

/* Marks everything from which marked scalars are computed, except values that stages before `stage`
 * keep in the row cache. */
static void mark_unkept(const ScalarTab *scalars, RowCache row_cache, uint32_t stage, bool *live) {
    for (ScalarId id = scalar_count(scalars); id > 0; id--) {
        const Scalar *s = scalar_get(scalars, id);
        if (!live[id] || row_cache_has(row_cache, id, stage)) continue;
        for (int i = 0; i < 3; i++) mark(live, s->args[i]);
        if (s->index) mark_index(scalartab_indices(scalars), s->index, live);
        mark_guard(scalars, s->guard, live);
    }
    live[SCALAR_NONE] = false;
}

static void mark_operands(const ScalarTab *scalars, bool *live) {
    mark_unkept(scalars, (RowCache){.n = 0}, 0, live);
}

static void mark_reduce(const Reduce *reduce, bool *live) {
    mark(live, reduce->value);
    mark(live, reduce->rhs);
    mark(live, reduce->arg_index);
    mark(live, reduce->factor);
    for (uint32_t i = 0; reduce->join && i < reduce->join->n; i++)
        mark(live, reduce->join->elements[i]);
}

static void mark_stage(const Kernel *kernel, const Stage *stage, bool *live) {
    for (uint32_t i = 0; i < stage->reduces.n; i++)
        mark_reduce(stage_reduce(kernel, stage, i), live);
    mark_stores(kernel, stage->stores.data, stage->stores.n, live);
}

static bool *new_flags(Arena *arena, const Kernel *kernel) {
    return arena_array(arena, bool, scalar_count(kernel->scalars) + 1);
}

bool *kernel_live_scalars(Arena *arena, const Kernel *kernel) {
    bool *live = new_flags(arena, kernel);
    for (uint32_t i = 0; i < kernel->reduces.n; i++) mark_reduce(&kernel->reduces.data[i], live);
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        mark_stores(kernel, kernel->stages.data[i].stores.data, kernel->stages.data[i].stores.n,
                    live);
    mark_stores(kernel, kernel->row_stores.data, kernel->row_stores.n, live);
    for (uint32_t i = 0; i < kernel->bounds.n; i++) {
        mark(live, kernel->bounds.data[i].least);
        mark(live, kernel->bounds.data[i].greatest);
    }
    if (kernel->tiles_taken) mark(live, kernel->tiles_taken);
    if (kernel->band.first) {
        mark(live, kernel->band.first);
        mark(live, kernel->band.end);
    }
    mark_operands(kernel->scalars, live);
    return live;
}

bool *stage_live_scalars(Arena *arena, const Kernel *kernel, RowCache row_cache, uint32_t stage) {
    bool *live = new_flags(arena, kernel);
    if (stage < kernel->stages.n)
        mark_stage(kernel, &kernel->stages.data[stage], live);
    else
        mark_stores(kernel, kernel->row_stores.data, kernel->row_stores.n, live);
    mark_unkept(kernel->scalars, row_cache, stage, live);
    return live;
}

int64_t variant_row_elems(const Kernel *kernel, const Variant *variant) {
    DimId n = kernel_n_reduced(kernel);
    int64_t most = dim_hi(indextab_dims(scalartab_indices(kernel->scalars)), n);
    int64_t limit = predicate_most(&variant->predicate, n);
    return limit < most ? limit : most;
}

bool *kernel_needed_scalars(Arena *arena, const Kernel *kernel, const ScalarId *roots,
                            uint32_t n_roots) {
    bool *needed = new_flags(arena, kernel);
    for (uint32_t i = 0; i < n_roots; i++) needed[roots[i]] = true;
    mark_operands(kernel->scalars, needed);
    return needed;
}

bool *kernel_reduced_scalars(Arena *arena, const Kernel *kernel) {
    bool *is_reduced = new_flags(arena, kernel);
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        is_reduced[reduce->value] = is_reduced[reduce->rhs] = true;
        is_reduced[reduce->factor] = true;
        if (form_info(kernel->form)->weighs) is_reduced[reduce->count] = true;
        for (uint32_t k = 0; reduce->join && k < reduce->join->n; k++)
            is_reduced[reduce->join->elements[k]] = true;
    }
    scalar_mark_arguments(kernel->scalars, is_reduced);
    return is_reduced;
}

static void add_need(const Kernel *kernel, bool *live, GuardId guard, ScalarNeed *needs) {
    uint32_t n = scalar_count(kernel->scalars) + 1;
    mark_operands(kernel->scalars, live);
    for (ScalarId id = 1; id < n; id++)
        if (live[id]) needs[id] = (ScalarNeed){.n = needs[id].n + 1, .guard = guard};
    memset(live, 0, n * sizeof *live);
}

ScalarNeed *stage_needs(Arena *arena, const Kernel *kernel, const Stage *stage) {
    uint32_t n = scalar_count(kernel->scalars) + 1;
    ScalarNeed *needs = arena_array(arena, ScalarNeed, n);
    bool *live = new_flags(arena, kernel);
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        mark_reduce(stage_reduce(kernel, stage, i), live);
        add_need(kernel, live, GUARD_NONE, needs);
    }
    for (uint32_t i = 0; i < stage->stores.n; i++) {
        mark_stores(kernel, &stage->stores.data[i], 1, live);
        add_need(kernel, live, stage->stores.data[i].guard, needs);
    }
    return needs;
}

static void note_argument(Arena *arena, Kernel *kernel, uint32_t buffer) {
    if (kernel_find_arg(kernel, buffer) == NO_ARG) vec_push(arena, &kernel->args, buffer);
}

static void note_index(const IndexTab *tab, IndexId id, uint64_t *symbols) {
    DimTab *dims = indextab_dims(tab);
    IndexExpr expr = index_expr(tab, id);
    *symbols |= dim_symbols_used(dims, expr.offset);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        *symbols |= dim_symbols_used(dims, expr.terms[i].coefficient);
        if (atom.kind == ATOM_DIV || atom.kind == ATOM_MOD) {
            *symbols |= dim_symbols_used(dims, atom.divisor);
            note_index(tab, atom.operand, symbols);
        }
    }
}

static void note_guard(const ScalarTab *scalars, GuardId id, uint64_t *symbols) {
    const IndexTab *tab = scalartab_indices(scalars);
    const DimTab *dims = indextab_dims(tab);
    for (GuardId g = id; g; g = guard_get(scalars, g).next) {
        Guard guard = guard_get(scalars, g);
        note_index(tab, guard.index, symbols);
        *symbols |= dim_symbols_used(dims, guard.lo) | dim_symbols_used(dims, guard.hi);
    }
}

bool kernel_lanes_reduce(const Kernel *kernel, const Sched *sched) {
    return form_info(kernel->form)->reduces_rows && !template_info(sched->template)->lanes_are_rows;
}

uint32_t kernel_lane_axis(const Kernel *kernel, const Sched *sched) {
    if (kernel_lanes_reduce(kernel, sched)) return kernel->first_reduced + kernel->n_reduced - 1;
    return kernel->n_parallel ? kernel->n_parallel - 1 - sched_lanes_out(sched) : NO_AXIS;
}

uint32_t kernel_lane_axes(const Kernel *kernel, const Sched *sched) {
    uint32_t axis = kernel_lane_axis(kernel, sched);
    return template_info(sched->template)->lanes_cross_rows ? kernel_parallel_axes(kernel)
           : axis == NO_AXIS                                ? 0
                                                            : 1u << axis;
}

bool kernel_has_groups(const Kernel *kernel, const Variant *variant) {
    int64_t most = variant_row_elems(kernel, variant);
    uint32_t lanes = variant->sched.lanes;
    return kernel_lanes_reduce(kernel, &variant->sched) && kernel->segment_axis == NO_AXIS &&
           lanes > 1 && most > 1 && most <= PLAN_GROUP_ELEMS / lanes;
}

uint32_t kernel_row_steps(Arena *arena, const Kernel *kernel, uint32_t lanes, uint32_t most) {
    enum { MOST_COST = 512 }; /* of unrolled code, in primitives; judged */
    const ScalarTab *scalars = kernel->scalars;
    int64_t n;
    bool is_known =
        dim_is_const(indextab_dims(scalartab_indices(scalars)), kernel_n_reduced(kernel), &n);
    if (!is_known || n < 2 || n > most * (int64_t)lanes) return 0;
    uint32_t cost = 0, n_steps = (uint32_t)((n - 1) / lanes + 1);
    const bool *live = kernel_live_scalars(arena, kernel);
    for (ScalarId id = 1; id <= scalar_count(scalars); id++)
        if (live[id]) cost += scalar_own_cost(scalars, id);
    return cost * n_steps <= MOST_COST ? n_steps : 0;
}

DimId kernel_arg_begin(const Kernel *kernel, uint32_t arg) {
    const Store *store = kernel_find_store(kernel, kernel->args.data[arg]);
    return store ? store->begin : DIM_NONE;
}

DimId kernel_map_offset(const Kernel *kernel, const TensorMap *map) {
    DimId begin = kernel_part_begin(kernel, map->arg);
    DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    return begin ? dim_sub(dims, map->offset, begin) : map->offset;
}

static void note_stores(Arena *arena, Kernel *kernel, const Store *stores, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        note_argument(arena, kernel, stores[i].buffer);
        note_index(scalartab_indices(kernel->scalars), stores[i].address, &kernel->symbols);
        note_guard(kernel->scalars, stores[i].guard, &kernel->symbols);
    }
}

void kernel_note_interface(Arena *arena, Kernel *kernel) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(tab);
    bool *live = kernel_live_scalars(arena, kernel);
    kernel->args.n = 0;
    kernel->symbols = 0;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (!live[id]) continue;
        if (s->kind == SCALAR_LOAD) note_argument(arena, kernel, s->buffer);
        if (s->index) note_index(tab, s->index, &kernel->symbols);
        note_guard(kernel->scalars, s->guard, &kernel->symbols);
    }
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        note_stores(arena, kernel, kernel->stages.data[i].stores.data,
                    kernel->stages.data[i].stores.n);
    note_stores(arena, kernel, kernel->row_stores.data, kernel->row_stores.n);
    kernel->symbols |= dim_symbols_used(dims, kernel_n_rows(kernel));
    kernel->symbols |= dim_symbols_used(dims, kernel_n_reduced(kernel));
    for (uint32_t axis = 0; axis < index_n_axes(tab); axis++)
        kernel->symbols |= dim_symbols_used(dims, index_axis_extent(tab, axis));
}

bool kernel_updates(const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        for (uint32_t k = 0; k < kernel->stages.data[i].stores.n; k++)
            if (kernel->stages.data[i].stores.data[k].is_update) return true;
    return false;
}
