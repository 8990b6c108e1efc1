/* See split_axes.h. If a load divides an axis by a divisor of its extent, the axis is split into
 * two. If the last axis is a part of a vector, it is joined with the one before. The kernel's
 * expressions are rebuilt with the new axes, and their canonical form simplifies them. */
#include "schedule/split_axes.h"
#include "machine/tuning.h"

#include "plan/access.h"
#include "plan/rebuild.h"
#include "schedule/scheduler.h"

enum { MAX_CUTS = 8 }; /* most splits that are tried */

typedef struct Cut {
    uint32_t axis;
    DimId inner; /* extent of the inner of the two axes */
} Cut;

typedef struct Cuts {
    const IndexTab *tab;
    Cut of[MAX_CUTS];
    uint32_t n;
} Cuts;

static void add_cut(Cuts *cuts, Cut cut) {
    for (uint32_t i = 0; i < cuts->n; i++)
        if (cuts->of[i].axis == cut.axis && cuts->of[i].inner == cut.inner) return;
    if (cuts->n < MAX_CUTS) cuts->of[cuts->n++] = cut;
}

/* Finds divisions of an axis without remainder in the index. */
static void find_cuts(Cuts *cuts, IndexId id) {
    DimTab *dims = indextab_dims(cuts->tab);
    IndexExpr expr = index_expr(cuts->tab, id);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(cuts->tab, expr.terms[i].atom);
        if (atom.kind != ATOM_DIV && atom.kind != ATOM_MOD) continue;
        IndexExpr operand = index_expr(cuts->tab, atom.operand);
        find_cuts(cuts, atom.operand);
        if (operand.n_terms != 1 || !dim_equals_const(dims, operand.offset, 0) ||
            !dim_equals_const(dims, operand.terms[0].coefficient, 1))
            continue;
        IndexAtom of = index_atom(cuts->tab, operand.terms[0].atom);
        if (of.kind != ATOM_AXIS) continue;
        DimId extent = index_axis_extent(cuts->tab, of.axis);
        if (dim_exact_div(dims, extent, atom.divisor) != DIM_NONE)
            add_cut(cuts, (Cut){of.axis, atom.divisor});
    }
}

static Cuts cuts_of(Arena *arena, const Kernel *kernel) {
    Cuts cuts = {.tab = scalartab_indices(kernel->scalars)};
    const bool *live = kernel_live_scalars(arena, kernel);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (live[id] && s->kind == SCALAR_LOAD) find_cuts(&cuts, s->index);
    }
    return cuts;
}

static Rebuild rebuild_new(Arena *arena, const Kernel *kernel, Cut cut) {
    const IndexTab *from = scalartab_indices(kernel->scalars);
    DimTab *dims = indextab_dims(from);
    IndexTab *to = indextab_new(arena, dims);
    Rebuild r = {.arena = arena, .from = kernel->scalars, .to = scalartab_new(arena, to)};
    for (uint32_t axis = 0; axis < kernel->n_parallel; axis++) {
        DimId extent = index_axis_extent(from, axis);
        if (axis != cut.axis) {
            r.axes[axis] = index_axis(to, index_new_axis(to, extent));
            continue;
        }
        IndexId outer = index_axis(to, index_new_axis(to, dim_exact_div(dims, extent, cut.inner)));
        IndexId inner = index_axis(to, index_new_axis(to, cut.inner));
        r.axes[axis] = index_add(to, index_scale(to, outer, cut.inner), inner);
    }
    return r;
}

/* The map over the axes of `r`. */
static Kernel rebuilt(Arena *arena, const Graph *graph, const Kernel *kernel, Rebuild *r) {
    Kernel copy = *kernel;
    const Stage *stage = &kernel->stages.data[0];
    Stage own = {0};
    copy.scalars = r->to;
    copy.n_parallel = copy.first_reduced = index_n_axes(scalartab_indices(r->to));
    for (uint32_t i = 0; i < stage->stores.n; i++)
        vec_push(arena, &own.stores, rebuild_store(r, stage->stores.data[i]));
    copy.stages.data = arena_copy(arena, &own, sizeof own);
    copy.stages.n = copy.stages.capacity = 1;
    copy.traces.data = arena_array(arena, Trace, kernel->traces.n);
    copy.traces.capacity = kernel->traces.n;
    for (uint32_t i = 0; i < kernel->traces.n; i++) {
        Trace trace = kernel->traces.data[i];
        copy.traces.data[i] = rebuild_trace(r, trace, graph_node(graph, trace.node)->shape.rank);
    }
    return copy;
}

static Kernel apart(Arena *arena, const Graph *graph, const Kernel *kernel, Cut cut) {
    Rebuild r = rebuild_new(arena, kernel, cut);
    return rebuilt(arena, graph, kernel, &r);
}

static bool is_map(const Kernel *kernel) {
    return !form_info(kernel->form)->reduces && kernel->stages.n == 1 &&
           kernel->row_stores.n == 0 && scalar_count(kernel->scalars) <= SCHED_TILE_SCALARS;
}

static bool has_tiles(Arena *arena, const Plan *plan, const Kernel *kernel, const Target *target) {
    const Variant base = {.grid = DIM_NONE};
    Variant tiles[MAP_TILE_VARIANTS];
    return sched_map_tiles(arena, plan, kernel, target, &base, tiles) > 0;
}

/* Splits axes of a kernel without tiles, at most `n_times` times. */
static bool cut_for_tiles(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target,
                          uint32_t n_times) {
    Cuts cuts = cuts_of(arena, kernel);
    for (uint32_t i = 0; i < cuts.n && kernel->n_parallel < MAX_AXES; i++) {
        Kernel copy = apart(arena, plan->graph, kernel, cuts.of[i]);
        bool has = has_tiles(arena, plan, &copy, target) ||
                   (n_times > 1 && cut_for_tiles(arena, plan, &copy, target, n_times - 1));
        if (!has) continue;
        *kernel = copy;
        return true;
    }
    return false;
}

void split_axes_for_tiles(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target) {
    if (is_map(kernel) && cuts_of(arena, kernel).n > 0 && !has_tiles(arena, plan, kernel, target))
        cut_for_tiles(arena, plan, kernel, target, SCHED_SPLIT_AXES);
}

static uint32_t n_strided(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target) {
    Scheduler s = scheduler_new(arena, plan, kernel, target);
    return sched_n_strided(&s);
}

void split_axes_for_lanes(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target) {
    DimTab *dims = plan->graph->dims;
    if (!is_map(kernel) || kernel->n_parallel == 0) return;
    uint32_t last = kernel->n_parallel - 1, least = n_strided(arena, plan, kernel, target);
    Cuts cuts = cuts_of(arena, kernel);
    Kernel best = *kernel;
    int64_t run = 0;
    for (uint32_t i = 0; i < cuts.n && last + 1 < MAX_AXES; i++) {
        int64_t own = dim_lo(dims, cuts.of[i].inner);
        if (cuts.of[i].axis != last || own < SCHED_LEAST_RUN) continue;
        Kernel copy = apart(arena, plan->graph, kernel, cuts.of[i]);
        uint32_t n = n_strided(arena, plan, &copy, target);
        if (n > least || (n == least && own <= run) || (n == least && run == 0)) continue;
        best = copy;
        least = n;
        run = own;
    }
    *kernel = best;
}

/* The last two axes as one, whose extent is `n`. */
static Kernel joined(Arena *arena, const Graph *graph, const Kernel *kernel, DimId n) {
    const IndexTab *from = scalartab_indices(kernel->scalars);
    IndexTab *to = indextab_new(arena, indextab_dims(from));
    Rebuild r = {.arena = arena, .from = kernel->scalars, .to = scalartab_new(arena, to)};
    uint32_t inner = kernel->n_parallel - 1, outer = inner - 1;
    for (uint32_t axis = 0; axis < outer; axis++)
        r.axes[axis] = index_axis(to, index_new_axis(to, index_axis_extent(from, axis)));
    IndexId both = index_axis(to, index_new_axis(to, n));
    r.axes[outer] = index_div(to, both, index_axis_extent(from, inner));
    r.axes[inner] = index_mod(to, both, index_axis_extent(from, inner));
    return rebuilt(arena, graph, kernel, &r);
}

/* Whether each guard of the map's live scalars and stores holds for all lanes or for none. */
static bool guards_are_alike(Arena *arena, const Kernel *kernel, uint32_t axis, uint32_t lanes) {
    const bool *live = kernel_live_scalars(arena, kernel);
    const Stage *stage = &kernel->stages.data[0];
    bool are_alike = true;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
        are_alike &= !live[id] || kernel_guard_is_shared(
                                      kernel, scalar_get(kernel->scalars, id)->guard, axis, lanes);
    for (uint32_t i = 0; i < stage->stores.n; i++)
        are_alike &= kernel_guard_is_shared(kernel, stage->stores.data[i].guard, axis, lanes);
    return are_alike;
}

/* Whether the map gathers, its lanes one by one as they are, and those along the joined axis read
 * all else, and write, side by side. */
static bool gathers_beside_runs(Arena *arena, const Kernel *kernel, const Kernel *copy,
                                uint32_t lanes) {
    IndexTab *tab = scalartab_indices(kernel->scalars), *to = scalartab_indices(copy->scalars);
    uint32_t last = kernel->n_parallel - 1, axis = copy->n_parallel - 1;
    const bool *live = kernel_live_scalars(arena, kernel);
    const bool *live_copy = kernel_live_scalars(arena, copy);
    const Stage *stage = &copy->stages.data[0];
    bool gathers = false, are_runs = true;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (!live[id] || s->kind != SCALAR_LOAD || !index_is_gathered(tab, s->index)) continue;
        gathers = true;
        are_runs &= index_lane_motion(tab, s->index, last, lanes) == LANES_VARYING;
    }
    for (ScalarId id = 1; id <= scalar_count(copy->scalars); id++) {
        const Scalar *s = scalar_get(copy->scalars, id);
        if (!live_copy[id] || s->kind != SCALAR_LOAD || index_is_gathered(to, s->index)) continue;
        are_runs &= index_lane_motion(to, s->index, axis, lanes) != LANES_VARYING;
    }
    for (uint32_t i = 0; i < stage->stores.n; i++)
        are_runs &=
            index_lane_motion(to, stage->stores.data[i].address, axis, lanes) == LANES_CONTIGUOUS;
    return gathers && are_runs;
}

/* Whether neighbours along the axis share an element that another kernel makes, as they do a row's
 * sum. Rows with such maps are one kernel, which is to be no dearer than the maps apart. */
static bool shares_results(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t axis) {
    const bool *live = kernel_live_scalars(arena, kernel);
    bool shares = false;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        shares |= live[id] && s->kind == SCALAR_LOAD &&
                  plan->buffers.data[s->buffer].kind == BUFFER_TEMP &&
                  index_lanes_shared(scalartab_indices(kernel->scalars), s->index, axis);
    }
    return shares;
}

void join_axes_for_lanes(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target) {
    DimTab *dims = plan->graph->dims;
    IndexTab *tab = scalartab_indices(kernel->scalars);
    uint32_t last = kernel->n_parallel - 1;
    int64_t n;
    if (!is_map(kernel) || kernel->n_parallel < 2) return;
    Scheduler s = scheduler_new(arena, plan, kernel, target);
    uint32_t lanes = sched_cpu(&s, TEMPLATE_CPU_MAP).lanes;
    DimId inner = index_axis_extent(tab, last);
    DimId all = dim_mul(dims, index_axis_extent(tab, last - 1), inner);
    if (all == DIM_NONE || !dim_is_const(dims, inner, &n) || n < 2 || n >= lanes) return;
    Kernel copy = joined(arena, plan->graph, kernel, all);
    bool repeats = lanes % n == 0 && n_strided(arena, plan, &copy, target) == 0;
    if ((repeats || gathers_beside_runs(arena, kernel, &copy, lanes)) &&
        !shares_results(arena, plan, &copy, last - 1) &&
        guards_are_alike(arena, &copy, last - 1, lanes))
        *kernel = copy;
}
