/* Each stage that reduces becomes a kernel. Its results are in memory for the stages after it, and
 * it does its stage's stores. One map over all elements does the remaining stores. See
 * dispatch_rows.h. */
#include "split/dispatch_rows.h"
#include "plan/must.h"
#include "machine/tuning.h"

#include "cost/compare.h"
#include "ir/subgraph.h"
#include "machine/card.h"
#include "plan/rebuild.h"
#include "split/split_reduce.h"

/* Elements of a row up to which one block, or one core, reduces the row alone. */
static const int64_t long_row[] = {
    [DEVICE_GPU] = SPLIT_GPU_LONG_ROW, [DEVICE_CPU] = SPLIT_CPU_LONG_ROW};
_Static_assert(sizeof long_row / sizeof *long_row == DEVICE_COUNT, "a row of each device class");

typedef struct Dispatcher {
    Arena *arena;
    Plan *plan;
    Kernel whole;
    const Choice *choice; /* NULL: the one-pass kernels replace the whole kernel at all extents */
    uint32_t *results;    /* per slot: the buffer of its results, plus 1; 0: none yet */
    uint32_t *kept;       /* per scalar: the buffer of its values over all elements, plus 1; 0:
                           * none */
} Dispatcher;

static Dispatcher dispatcher_new(Arena *arena, Plan *plan, const Kernel *whole,
                                 const Choice *choice) {
    return (Dispatcher){.arena = arena,
                        .plan = plan,
                        .whole = *whole,
                        .choice = choice,
                        .results = arena_array(arena, uint32_t, whole->reduces.n),
                        .kept = arena_array(arena, uint32_t, scalar_count(whole->scalars) + 1)};
}

/* Whether a later stage uses the value and recomputing it is costly. */
static bool is_worth_keeping(const Dispatcher *s, uint32_t stage, ScalarId value) {
    const ScalarTab *scalars = s->whole.scalars;
    bool *seen = arena_array(s->arena, bool, scalar_count(scalars) + (size_t)1);
    if (scalar_cost(scalars, value, seen) < SPLIT_COSTLY_PRIMS || s->kept[value]) return false;
    Kernel behind = s->whole;
    memset(&behind.reduces, 0, sizeof behind.reduces);
    behind.stages.data += stage + 1;
    behind.stages.n -= stage + 1;
    for (uint32_t i = 0; i < behind.stages.n; i++)
        for (uint32_t k = 0; k < behind.stages.data[i].reduces.n; k++)
            vec_push(s->arena, &behind.reduces,
                     s->whole.reduces.data[behind.stages.data[i].reduces.data[k]]);
    return kernel_live_scalars(s->arena, &behind)[value];
}

/* A plan of one kernel, to be scheduled by itself. */

static Plan plan_alone(Arena *arena, const Plan *plan, const Kernel *kernel) {
    Plan alone = *plan;
    memset(&alone.kernels, 0, sizeof alone.kernels);
    vec_push(arena, &alone.kernels, *kernel);
    return alone;
}

static void schedule(const Planning *p, Plan *alone) {
    pipeline_retry(p, p->scratch, NULL, MODE_ALONE, alone, PASS_SCHEDULE, PASS_SCHEDULE);
}

/* The extents at which the kernel is split. */

/* The variant with a cluster of blocks, which takes the longest rows. */
static const Variant *find_cluster(const Kernel *kernel) {
    const Variant *found = NULL;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        if (kernel->variants[v].sched.cluster > 1) found = &kernel->variants[v];
    return found;
}

/* An f64 element takes a core twice as long. */
static int64_t least_length(const Kernel *kernel, const Target *target) {
    bool has_f64 = false;
    for (uint32_t i = 0; i < kernel->reduces.n; i++)
        has_f64 = has_f64 || dtype_is_double(kernel->reduces.data[i].acc);
    return long_row[target->device] / (target->has->cores && has_f64 ? 2 : 1);
}

/* Excludes rows that a cluster of blocks can keep in shared memory and registers. */
static void except_clustered(Condition *few, const Variant *cluster, DimId length) {
    const PredicateTerm *whole = predicate_term(&cluster->predicate, TERM_MULTIPLE, 0);
    Predicate *clustered = condition_except(few);
    predicate_set_range(clustered, length, INT64_MIN,
                        predicate_term(&cluster->predicate, TERM_RANGE, 0)->most);
    if (whole) predicate_require_multiple(clustered, whole->dim, whole->of);
}

/* The longest row of which a core keeps values that are costly to compute again in a later stage.
 * INT64_MAX: there are no such values, or threads keep them in registers. */
static int64_t longest_kept(const Planning *p, Plan *plan, const Kernel *kernel) {
    Dispatcher s = dispatcher_new(p->scratch, plan, kernel, NULL);
    uint32_t widest = 0;
    for (uint32_t i = 0; i < kernel->stages.n && p->target->has->cores; i++)
        for (uint32_t k = 0; k < kernel->stages.data[i].reduces.n; k++) {
            ScalarId value = stage_reduce(kernel, &kernel->stages.data[i], k)->value;
            uint32_t bytes = dtype_bytes(scalar_get(kernel->scalars, value)->dtype);
            if (bytes > widest && is_worth_keeping(&s, i, value)) widest = bytes;
        }
    return widest ? SCHED_ROW_CACHE_BYTES / widest : INT64_MAX;
}

/* Rows without a bound on their number are split only if they are too long to be kept. */
static void except_kept(Condition *few, DimId length, int64_t kept) {
    PredicateTerm margin = *predicate_term(&few->when, TERM_RANGE, 0);
    few->when = (Predicate){.n = 0};
    Predicate *whole = condition_except(few);
    predicate_set_range(whole, margin.dim, INT64_MIN, margin.least - 1);
    predicate_require_range(whole, length, INT64_MIN, kept);
}

/* Finds the extents at which the kernel is faster as several kernels: few and long rows, unless a
 * cluster takes them, and rows that are too long to be kept. The fewer rows there are, the shorter
 * they may be. Returns NULL if no extents qualify or if all do. */
static const Choice *find_few(const Planning *p, Plan *plan, const Kernel *kernel) {
    DimTab *dims = plan->graph->dims;
    DimId rows = kernel_n_rows(kernel), length = kernel_n_reduced(kernel);
    int64_t many = (int64_t)(SPLIT_ROWS_A_PROCESSOR * card_of_target(p->target)->n_processors);
    int64_t least = least_length(kernel, p->target), kept = longest_kept(p, plan, kernel);
    if (rows == DIM_NONE || length == DIM_NONE || dim_lo(dims, rows) >= many ||
        dim_hi(dims, length) < least)
        return NULL;
    DimId idle = dim_sub(dims, dim_const(dims, many), rows);
    Plan alone = plan_alone(p->scratch, plan, kernel);
    schedule(p, &alone);
    const Variant *cluster = find_cluster(&alone.kernels.data[0]);
    if (idle == DIM_NONE || (cluster && !predicate_dim(&cluster->predicate, TERM_RANGE)))
        return NULL;
    DimId margin = dim_mul(dims, length, idle);
    if (margin == DIM_NONE) return NULL;
    Condition few = {.n_unless = 0};
    predicate_set_range(&few.when, margin, least * (many - 1), INT64_MAX);
    if (kept < dim_hi(dims, length)) except_kept(&few, length, kept);
    if (cluster) except_clustered(&few, cluster, length);
    return choice_new(p->arena, dims, "rows.few", &few);
}

/* The one-pass kernels. */

typedef struct Piece {
    Kernel kernel;
    Rebuild rebuild;
} Piece;

/* Adds a temporary with one value per row, or per element. Returns its number plus 1. */
static uint32_t add_temp(Dispatcher *s, NodeId node, Dtype dtype, bool has_elements) {
    DimTab *dims = s->plan->graph->dims;
    DimId rows = choice_scale(dims, s->choice, VERSION_ALTERNATIVE, kernel_n_rows(&s->whole));
    Shape shape = {.rank = has_elements ? 2 : 1, .dims = {rows, kernel_n_reduced(&s->whole)}};
    return plan_add_temp(s->arena, s->plan, node, dtype, shape) + 1;
}

/* Replaces scalars whose values are in memory by loads. */
static void load_made(const Dispatcher *s, Rebuild *rebuild, uint32_t n_parallel, uint32_t n_axes) {
    const Kernel *whole = &s->whole;
    IndexTab *to = scalartab_indices(rebuild->to);
    IndexId row = index_row_major(to, n_parallel), element = index_row_major(to, n_axes);
    uint32_t n_scalars = scalar_count(whole->scalars);
    rebuild->results = arena_array(s->arena, ScalarId, whole->reduces.n);
    rebuild->copies = arena_array(s->arena, ScalarId, n_scalars + (size_t)1);
    for (uint32_t slot = 0; slot < whole->reduces.n; slot++)
        if (s->results[slot])
            rebuild->results[slot] = scalar_load(rebuild->to, whole->reduces.data[slot].result,
                                                 s->results[slot] - 1, row, GUARD_NONE);
    for (ScalarId id = 1; id <= n_scalars; id++)
        if (s->kept[id])
            rebuild->copies[id] = scalar_load(rebuild->to, scalar_get(whole->scalars, id)->dtype,
                                              s->kept[id] - 1, element, GUARD_NONE);
}

/* A new kernel over the same axes, with its own programs. */
static Piece piece_new(const Dispatcher *s, KernelForm form) {
    const Kernel *whole = &s->whole;
    const IndexTab *from = scalartab_indices(whole->scalars);
    IndexTab *to = indextab_new(s->arena, s->plan->graph->dims);
    uint32_t n_parallel = whole->n_parallel, n_axes = n_parallel + whole->n_reduced;
    bool is_map = !form_info(form)->reduces;
    Piece piece = {.rebuild = {.arena = s->arena, .from = whole->scalars}};
    for (uint32_t k = 0; k < n_axes; k++)
        piece.rebuild.axes[k] = index_axis(to, index_new_axis(to, index_axis_extent(from, k)));
    piece.rebuild.to = scalartab_new(s->arena, to);
    load_made(s, &piece.rebuild, n_parallel, n_axes);
    piece.kernel = (Kernel){.span = whole->span,
                            .form = form,
                            .n_parallel = is_map ? n_axes : n_parallel,
                            .first_reduced = is_map ? n_axes : n_parallel,
                            .n_reduced = is_map ? 0 : whole->n_reduced,
                            .segment_axis = NO_AXIS,
                            .scalars = piece.rebuild.to,
                            .choice = s->choice,
                            .version = VERSION_ALTERNATIVE};
    return piece;
}

static Store copy_store(Piece *piece, const Store *store) {
    Store copy = rebuild_store(&piece->rebuild, *store);
    copy.trace = 0;
    return copy;
}

static void add_piece(Dispatcher *s, Piece *piece) {
    uint32_t n = s->plan->kernels.n;
    piece->kernel.name = str_format(s->arena, "%s_spread%u", s->whole.name, n);
    if (split_may(s->plan, &piece->kernel))
        split_in_two(s->arena, s->plan, piece->kernel);
    else
        vec_push(s->arena, &s->plan->kernels, piece->kernel);
}

/* Adds the kernel of one stage. If the stage is the last, the kernel does the stores per row
 * too. */
static void add_reducing(Dispatcher *s, const Stage *stage, bool is_last, bool are_needed) {
    Piece piece = piece_new(s, s->whole.form);
    Kernel *kernel = &piece.kernel;
    uint32_t axes = kernel_parallel_axes(kernel);
    Stage own = {.reduces = {0}};
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        uint32_t slot = stage->reduces.data[i];
        Reduce reduce = s->whole.reduces.data[slot];
        reduce.value = rebuild_scalar(&piece.rebuild, reduce.value);
        if (reduce.is_arg) reduce.arg_index = rebuild_scalar(&piece.rebuild, reduce.arg_index);
        vec_push(s->arena, &kernel->reduces, reduce);
        vec_push(s->arena, &own.reduces, i);
    }
    for (uint32_t i = 0; i < stage->stores.n; i++)
        vec_push(s->arena, &own.stores, copy_store(&piece, &stage->stores.data[i]));
    vec_push(s->arena, &kernel->stages, own);
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        uint32_t slot = stage->reduces.data[i];
        const Reduce *reduce = &s->whole.reduces.data[slot];
        ScalarId result = scalar_stage(kernel->scalars, reduce->result, i, axes);
        piece.rebuild.results[slot] = result;
        if (!are_needed) continue;
        s->results[slot] = add_temp(s, reduce->node, reduce->result, false);
        IndexId row = index_row_major(scalartab_indices(kernel->scalars), kernel->n_parallel);
        vec_push(s->arena, &kernel->row_stores,
                 (Store){.buffer = s->results[slot] - 1,
                         .address = row,
                         .value = result,
                         .node = reduce->node});
    }
    for (uint32_t i = 0; is_last && i < s->whole.row_stores.n; i++)
        vec_push(s->arena, &kernel->row_stores, copy_store(&piece, &s->whole.row_stores.data[i]));
    add_piece(s, &piece);
}

/* Adds the map that does the stores of the stages from `first` on. */
static void add_map(Dispatcher *s, uint32_t first) {
    Piece piece = piece_new(s, FORM_MAP);
    Stage own = {.reduces = {0}};
    for (uint32_t i = first; i < s->whole.stages.n; i++) {
        const Stage *stage = &s->whole.stages.data[i];
        for (uint32_t k = 0; k < stage->stores.n; k++)
            vec_push(s->arena, &own.stores, copy_store(&piece, &stage->stores.data[k]));
    }
    vec_push(s->arena, &piece.kernel.stages, own);
    add_piece(s, &piece);
}

static void keep(Dispatcher *s, const Reduce *reduce) {
    Piece piece = piece_new(s, FORM_MAP);
    Dtype dtype = scalar_get(s->whole.scalars, reduce->value)->dtype;
    IndexTab *tab = scalartab_indices(piece.kernel.scalars);
    Stage own = {.reduces = {0}};
    ScalarId value = rebuild_scalar(&piece.rebuild, reduce->value);
    s->kept[reduce->value] = add_temp(s, reduce->node, dtype, true);
    vec_push(s->arena, &own.stores,
             (Store){.buffer = s->kept[reduce->value] - 1,
                     .address = index_row_major(tab, piece.kernel.n_parallel),
                     .value = value,
                     .node = reduce->node});
    vec_push(s->arena, &piece.kernel.stages, own);
    add_piece(s, &piece);
}

static void keep_costly(Dispatcher *s, uint32_t stage) {
    const Stage *at = &s->whole.stages.data[stage];
    for (uint32_t i = 0; i < at->reduces.n; i++) {
        const Reduce *reduce = stage_reduce(&s->whole, at, i);
        if (is_worth_keeping(s, stage, reduce->value)) keep(s, reduce);
    }
}

static void add_pieces(Dispatcher *s, bool row_cache) {
    uint32_t last = s->whole.stages.n - 1;
    while (!s->whole.stages.data[last].reduces.n) last--;
    bool has_stores = last + 1 < s->whole.stages.n;
    for (uint32_t i = 0; i <= last; i++) {
        if (row_cache) keep_costly(s, i);
        add_reducing(s, &s->whole.stages.data[i], i == last, i < last || has_stores);
    }
    if (has_stores) add_map(s, last + 1);
}

static bool may_be_changed(const Plan *plan, const Kernel *kernel) {
    bool is_whole = kernel->stages.n > 1 || kernel_stores_inner(kernel);
    if (kernel->is_init || kernel->segment_axis != NO_AXIS || !is_whole) return false;
    return kernel->stages.n <= 1 || !must_has_kernel(plan->graph, kernel);
}

/* Appends the one-pass kernels of the plan's last kernel. Returns false if it stays as it is. */
static bool dispatch_last(const Planning *p, Plan *plan) {
    Arena *arena = p->arena;
    uint32_t k = plan->kernels.n - 1;
    const Kernel whole = plan->kernels.data[k];
    if (!form_info(whole.form)->reduces_rows) return false;
    const Choice *choice = find_few(p, plan, &whole);
    if (!choice) return false;
    Dispatcher s = dispatcher_new(arena, plan, &whole, choice);
    add_pieces(&s, p->target->has->cores);
    plan->kernels.data[k].choice = choice;
    plan->kernels.data[k].version = VERSION_DEFAULT;
    for (uint32_t i = k + 1; i < plan->kernels.n; i++)
        kernel_note_interface(arena, &plan->kernels.data[i]);
    return true;
}

/* Decisions by price. */

static Prices price_of(const Planning *p, Plan *alone, const CostPoints *points) {
    for (uint32_t k = 0; k < alone->kernels.n; k++)
        kernel_note_interface(p->scratch, &alone->kernels.data[k]);
    schedule(p, alone);
    return prices_of_plan(p->scratch, alone, p->target, points);
}

/* Prices the kernel's ops as one kernel per op. */
static bool price_ops(const Planning *p, const Plan *plan, const Kernel *kernel,
                      const CostPoints *points, Prices *ops) {
    const Graph *graph = plan->graph;
    NodeFlags flags = node_flags_new(p->scratch, graph->nodes.n);
    for (uint32_t i = 0; i < kernel->nodes.n; i++) {
        NodeId id = kernel->nodes.data[i];
        if (graph_class(graph, id) != CLASS_SOURCE) node_add(flags, id, SUBGRAPH_IN);
    }
    for (uint32_t i = 0; i < kernel->args.n; i++)
        if (kernel_stores_to(kernel, kernel->args.data[i]))
            node_add(flags, kernel_find_store(kernel, kernel->args.data[i])->node, SUBGRAPH_OUT);
    const Graph *subgraph = subgraph_of(p->scratch, graph, flags).graph;
    return prices_of_unfused(p, p->arena, p->scratch, subgraph, points, ops);
}

/* The plan without kernels, with room for the temporaries that the kernel needs if it is split. */
static Plan plan_to_split(Arena *arena, const Plan *plan, const Kernel *kernel) {
    Plan split = *plan;
    uint32_t n = plan->buffers.n, room = n + 2 * kernel->reduces.n;
    memset(&split.kernels, 0, sizeof split.kernels);
    split.buffers.data = arena_extend(arena, NULL, 0, room * sizeof(Buffer));
    memcpy(split.buffers.data, plan->buffers.data, n * sizeof(Buffer));
    split.buffers.capacity = room;
    return split;
}

/* Whether a kernel with a single pass that stores elements is faster split. */
static bool is_better_split(const Planning *p, const Plan *plan, const Kernel *kernel) {
    if (!split_may(plan, kernel)) return false;
    Arena *scratch = p->scratch;
    ArenaMark mark = arena_mark(scratch);
    CostPoints points = cost_points(scratch, plan->graph->dims, p->target->has);
    Plan whole = plan_alone(scratch, plan, kernel);
    Plan split = plan_to_split(scratch, plan, kernel);
    Dispatcher s = dispatcher_new(scratch, &split, kernel, NULL);
    add_pieces(&s, false);
    Prices now = price_of(p, &whole, &points);
    Prices other = price_of(p, &split, &points), ops;
    bool is =
        price_ops(p, plan, kernel, &points, &ops) && prices_are_better(&points, &now, &other, &ops);
    arena_rewind(scratch, mark);
    return is;
}

static void split_last(Arena *arena, Plan *plan) {
    Kernel whole = plan->kernels.data[--plan->kernels.n];
    split_in_two(arena, plan, whole);
    for (uint32_t k = plan->kernels.n - 2; k < plan->kernels.n; k++)
        kernel_note_interface(arena, &plan->kernels.data[k]);
}

bool dispatch_pass(const Planning *p, PlanUnit *unit) {
    Plan *plan = unit->plan;
    uint32_t n = plan->kernels.n;
    const Kernel *before = plan->kernels.data;
    for (uint32_t k = 0; k < n; k++) {
        if (plan->kernels.data == before) /* no kernel has changed yet */
            plan->kernels.n = plan->kernels.capacity = k + 1;
        else
            vec_push(p->arena, &plan->kernels, before[k]);
        if (!may_be_changed(plan, &before[k]) || dispatch_last(p, plan)) continue;
        if (is_better_split(p, plan, &before[k])) split_last(p->arena, plan);
    }
    const char *fault = plan_verify(plan, p->arena);
    if (fault) ice(p->arena, "dispatch plan of %s: %s", plan->graph->name, fault);
    return true;
}
