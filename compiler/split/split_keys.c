/* Splitting softmax and product along the keys. See split_keys.h. */
#include "split/split_keys.h"

#include "plan/rebuild.h"

/* What the partial kernel stores, and the slots of its results. */
enum { SUMS, GREATEST, TOTAL, N_RESULTS };

typedef struct KeySplit {
    Arena *arena;
    Plan *plan;
    const Kernel *whole;
    const Choice *choice; /* NULL: the kernel is split at all extents */
    DimId parts;
    uint32_t scores, scores_of_few; /* buffers: the partial kernel reads the second in place of the
                                     * first; equal: of no matmul with versions */
    uint32_t buffers[N_RESULTS];    /* [batch, m, parts], of the sums [batch, m, parts, n] */
} KeySplit;

/* A kernel over the axes of the whole kernel, with one more before axis `at` of the parallel ones,
 * and the reduced axis `keys`. */
static Kernel new_kernel(const KeySplit *s, uint32_t at, DimId extent, DimId keys,
                         Rebuild *rebuild) {
    const Kernel *whole = s->whole;
    const IndexTab *from = scalartab_indices(whole->scalars);
    IndexTab *to = indextab_new(s->arena, s->plan->graph->dims);
    Kernel kernel = *whole;
    *rebuild = (Rebuild){.arena = s->arena,
                         .from = whole->scalars,
                         .buffer = s->scores,
                         .instead = s->scores_of_few};
    for (uint32_t axis = 0; axis < whole->n_parallel; axis++) {
        if (axis == at) index_new_axis(to, extent);
        rebuild->axes[axis] = index_axis(to, index_new_axis(to, index_axis_extent(from, axis)));
    }
    kernel.n_parallel = whole->n_parallel + 1;
    kernel.first_reduced = index_new_axis(to, keys);
    kernel.scalars = rebuild->to = scalartab_new(s->arena, to);
    kernel.choice = s->choice;
    kernel.version = VERSION_ALTERNATIVE;
    memset(&kernel.args, 0, sizeof kernel.args); /* each notes its own */
    memset(&kernel.reduces, 0, sizeof kernel.reduces);
    memset(&kernel.stages, 0, sizeof kernel.stages);
    memset(&kernel.row_stores, 0, sizeof kernel.row_stores);
    return kernel;
}

/* The position along `axis` behind the place `at` of the axes before it. */
static IndexId place_axis(IndexTab *tab, IndexId at, uint32_t axis) {
    IndexId before = index_scale(tab, at, index_axis_extent(tab, axis));
    return index_add(tab, before, index_axis(tab, axis));
}

/* The place of a row's part, with the axis of parts at `parts` and that of rows at `rows`. */
static IndexId part_address(const Kernel *kernel, uint32_t rows, uint32_t parts) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    IndexId at = index_dim(tab, dim_const(indextab_dims(tab), 0));
    for (uint32_t axis = 0; axis <= rows; axis++)
        if (axis != parts) at = place_axis(tab, at, axis);
    return place_axis(tab, at, parts);
}

static IndexId column_address(const Kernel *kernel, IndexId part) {
    return place_axis(scalartab_indices(kernel->scalars), part, gemm_axis_n(kernel));
}

/* Adds a result of the partial kernel; returns its store. */
static Store add_result(KeySplit *s, Kernel *partial, uint32_t slot, Reduce reduce) {
    DimTab *dims = s->plan->graph->dims;
    uint32_t n = gemm_axis_n(partial), m = gemm_axis_m(partial);
    IndexId part = part_address(partial, m, partial->segment_axis);
    DimId size = dim_const(dims, 1);
    for (uint32_t axis = 0; axis < n + (slot == SUMS); axis++)
        size = dim_mul(dims, size, kernel_axis_extent(partial, axis));
    Shape shape = {.rank = 1,
                   .dims = {choice_scale(dims, partial->choice, partial->version, size)}};
    vec_push(s->arena, &partial->reduces, reduce);
    vec_push(s->arena, &partial->stages.data[0].reduces, slot);
    s->buffers[slot] = plan_add_temp(s->arena, s->plan, reduce.node, reduce.acc, shape);
    uint32_t axes = kernel_parallel_axes(partial) & ~(slot == SUMS ? 0 : 1u << n);
    return (Store){.buffer = s->buffers[slot],
                   .address = slot == SUMS ? column_address(partial, part) : part,
                   .value = scalar_stage(partial->scalars, reduce.acc, slot, axes),
                   .node = reduce.node};
}

static void add_partial(KeySplit *s) {
    const Kernel *whole = s->whole;
    Rebuild rebuild;
    Kernel partial = new_kernel(s, gemm_axis_m(whole), s->parts, kernel_n_reduced(whole), &rebuild);
    Reduce sums = whole->reduces.data[0];
    partial.name = str_format(s->arena, "%s_part", whole->name);
    partial.segment_axis = gemm_axis_m(whole);
    rebuild.axes[gemm_axis_k(whole)] =
        index_axis(scalartab_indices(partial.scalars), partial.first_reduced);
    sums.lhs = rebuild_scalar(&rebuild, sums.lhs);
    sums.rhs = rebuild_scalar(&rebuild, sums.rhs);
    if (sums.factor) sums.factor = rebuild_scalar(&rebuild, sums.factor);
    sums.result = sums.acc;
    Reduce greatest = sums, total = sums;
    greatest.combine = PRIM_MAX;
    greatest.rhs = total.rhs = SCALAR_NONE;
    greatest.factor = total.factor = SCALAR_NONE;
    vec_push(s->arena, &partial.stages, (Stage){.reduces = {0}});
    Store store = add_result(s, &partial, SUMS, sums);
    vec_push(s->arena, &partial.row_stores, store);
    store = add_result(s, &partial, GREATEST, greatest);
    vec_push(s->arena, &partial.stages.data[0].stores, store);
    store = add_result(s, &partial, TOTAL, total);
    vec_push(s->arena, &partial.stages.data[0].stores, store);
    rebuild_traces(&rebuild, s->plan->graph, s->whole, true, &partial);
    vec_push(s->arena, &s->plan->kernels, partial);
}

/* A reduction of the kernel that joins the parts. */
static Reduce join_of(const KeySplit *s, const Kernel *finish, Reduce reduce, IndexId part) {
    ScalarTab *scalars = finish->scalars;
    reduce.lhs = scalar_load(scalars, reduce.acc, s->buffers[GREATEST], part, GUARD_NONE);
    reduce.count = scalar_load(scalars, reduce.acc, s->buffers[TOTAL], part, GUARD_NONE);
    reduce.factor = SCALAR_NONE;
    IndexId column = column_address(finish, part);
    reduce.rhs = scalar_load(scalars, reduce.acc, s->buffers[SUMS], column, GUARD_NONE);
    return reduce;
}

static Store join_store(Rebuild *rebuild, const uint32_t *copy_of, Store store) {
    store = rebuild_store(rebuild, store);
    if (store.trace) store.trace = copy_of[store.trace - 1];
    return store;
}

/* The rows of the whole kernel are batches of one row: each has values of its own. */
static void add_finish(KeySplit *s) {
    const Kernel *whole = s->whole;
    DimTab *dims = s->plan->graph->dims;
    Rebuild rebuild;
    Kernel finish = new_kernel(s, gemm_axis_n(whole), dim_const(dims, 1), s->parts, &rebuild);
    if (s->choice) finish.name = str_format(s->arena, "%s_join", whole->name);
    uint32_t axes = kernel_parallel_axes(&finish);
    IndexId part = part_address(&finish, gemm_axis_m(whole), finish.first_reduced);
    ScalarId results[N_RESULTS];
    vec_push(s->arena, &finish.stages, (Stage){.reduces = {0}});
    Stage *stage = &finish.stages.data[0];
    for (uint32_t slot = 0; slot < whole->reduces.n; slot++) {
        Reduce reduce = whole->reduces.data[slot];
        results[slot] = scalar_stage(finish.scalars, reduce.result, slot, axes);
        vec_push(s->arena, &finish.reduces, join_of(s, &finish, reduce, part));
        vec_push(s->arena, &stage->reduces, slot);
    }
    rebuild.results = results;
    const uint32_t *copy_of = rebuild_traces(&rebuild, s->plan->graph, s->whole, false, &finish);
    const Stage *own = &whole->stages.data[0];
    for (uint32_t i = 0; i < whole->row_stores.n; i++)
        vec_push(s->arena, &finish.row_stores,
                 join_store(&rebuild, copy_of, whole->row_stores.data[i]));
    for (uint32_t i = 0; i < own->stores.n; i++)
        vec_push(s->arena, &stage->stores, join_store(&rebuild, copy_of, own->stores.data[i]));
    vec_push(s->arena, &s->plan->kernels, finish);
}

/* Finds the extents at which the kernel is split. Returns false if there are none. */
static bool find_few(KeySplit *s) {
    DimTab *dims = s->plan->graph->dims;
    DimId rows = kernel_axis_extent(s->whole, gemm_axis_m(s->whole));
    Condition few = {.n_unless = 0};
    if (!online_may_split(dims, rows, kernel_n_reduced(s->whole)) || s->whole->is_init)
        return false;
    if (dim_hi(dims, rows) <= ONLINE_FEW_ROWS) return true;
    predicate_set_range(&few.when, rows, INT64_MIN, ONLINE_FEW_ROWS);
    s->choice = choice_new(s->arena, dims, "rows.few", &few);
    return s->choice != NULL;
}

/* The matmul's versions. */

/* Whether one of the live scalars loads the buffer; `live` NULL: one of all. */
static bool loads(const ScalarTab *scalars, const bool *live, uint32_t buffer) {
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        const Scalar *load = scalar_get(scalars, id);
        if ((!live || live[id]) && load->kind == SCALAR_LOAD && load->buffer == buffer) return true;
    }
    return false;
}

/* Whether another kernel than `k` loads the buffer. The kernels have no arguments yet. */
static bool has_other_reader(const KeySplit *s, const Kernel *whole, uint32_t n, uint32_t k,
                             uint32_t buffer) {
    for (uint32_t i = 0; i < n; i++)
        if (i != k && loads(whole[i].scalars, NULL, buffer) &&
            loads(whole[i].scalars, kernel_live_scalars(s->arena, &whole[i]), buffer))
            return true;
    return false;
}

/* Finds the matmul of the plan that makes scores for kernel `k` alone. NULL: there is none. */
static Kernel *find_scores(const KeySplit *s, const Kernel *whole, uint32_t n, uint32_t k) {
    const ScalarTab *scalars = whole[k].scalars;
    const bool *is_score = scalar_reached(s->arena, scalars, whole[k].reduces.data[0].lhs);
    for (uint32_t i = 0; i < s->plan->kernels.n; i++) {
        Kernel *maker = &s->plan->kernels.data[i];
        if (!form_info(maker->form)->multiplies || maker->segment_axis != NO_AXIS ||
            maker->is_init || maker->choice || maker->row_stores.n != 1)
            continue;
        uint32_t buffer = maker->row_stores.data[0].buffer;
        if (s->plan->buffers.data[buffer].kind == BUFFER_TEMP && loads(scalars, is_score, buffer) &&
            !has_other_reader(s, whole, n, k, buffer))
            return maker;
    }
    return NULL;
}

/* Appends the alternative of the matmul, which stores to a buffer of its own. */
static void add_scores(KeySplit *s, Kernel *maker) {
    Kernel few = *maker;
    Store store = maker->row_stores.data[0];
    s->scores = store.buffer;
    Buffer buffer = s->plan->buffers.data[s->scores];
    buffer.shape.dims[0] =
        choice_scale(s->plan->graph->dims, s->choice, VERSION_ALTERNATIVE, buffer.shape.dims[0]);
    store.buffer = s->scores_of_few =
        plan_add_temp(s->arena, s->plan, buffer.node, buffer.dtype, buffer.shape);
    memset(&few.args, 0, sizeof few.args);
    memset(&few.row_stores, 0, sizeof few.row_stores);
    vec_push(s->arena, &few.row_stores, store);
    /* Layout changes the operands of one kernel. */
    few.scalars = scalartab_copy(s->arena, maker->scalars);
    few.reduces.data =
        arena_copy(s->arena, maker->reduces.data, maker->reduces.n * sizeof *maker->reduces.data);
    few.reduces.capacity = few.reduces.n;
    few.name = str_format(s->arena, "%s_few", maker->name);
    maker->choice = few.choice = s->choice;
    maker->version = VERSION_DEFAULT;
    few.version = VERSION_ALTERNATIVE;
    vec_push(s->arena, &s->plan->kernels, few);
}

static DimId n_parts(DimTab *dims, DimId keys) {
    DimId part = online_part_keys(dims, keys), last = dim_sub(dims, part, dim_const(dims, 1));
    return dim_div(dims, dim_add(dims, keys, last), part);
}

bool split_keys_kernel(Arena *arena, Plan *plan, const Kernel *whole, uint32_t n, uint32_t k) {
    KeySplit s = {.arena = arena, .plan = plan, .whole = &whole[k]};
    if (!find_few(&s)) return false;
    s.parts = n_parts(plan->graph->dims, kernel_n_reduced(s.whole));
    if (s.choice) {
        Kernel rest = *s.whole, *maker = find_scores(&s, whole, n, k);
        rest.choice = s.choice;
        rest.version = VERSION_DEFAULT;
        if (maker) add_scores(&s, maker);
        vec_push(arena, &plan->kernels, rest);
    }
    add_partial(&s);
    add_finish(&s);
    return true;
}
