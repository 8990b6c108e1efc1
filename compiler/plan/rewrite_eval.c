/* Evaluates rewritten programs on the host. It does not use lowering: loads, indices and guards are
 * evaluated as the plan has them. See rewrite.h. */
#include "interp/index_eval.h"
#include "interp/interp_node.h"
#include "interp/scalar_eval.h"
#include "plan/rewrite.h"
#include "plan/launch.h"

/* Opening. */

static bool shape_of(const RewriteCase *c, NodeId node, Arena *arena, Tensor *type) {
    const char *error = NULL;
    return c->bytes[node] &&
           interp_shape(c->plan->graph, node, c->symbol_values, type, arena, &error);
}

/* Finds the offset of v for each matrix of the result. */
static bool place_values(const Tensor *gemm, const Tensor *v, Arena *arena, RewriteCase *c) {
    Tensor batch = *gemm;
    batch.rank -= 2;
    int64_t n = tensor_n_elems(&batch);
    int64_t *offsets = arena_array(arena, int64_t, (size_t)n);
    Walk walk = walk_over(&batch);
    if (!walk_add_batch(&walk, v)) return false;
    for (int64_t i = 0; i < n; i++, walk_next(&walk)) offsets[i] = walk.offsets[0];
    c->value_offsets = offsets;
    return true;
}

bool rewrite_open(const Plan *plan, const Rewrite *rewrite, const int64_t *symbol_values,
                  const uint8_t *const *bytes, Arena *arena, RewriteCase *c) {
    *c = (RewriteCase){
        .plan = plan, .rewrite = *rewrite, .symbol_values = symbol_values, .bytes = bytes};
    Tensor x, v, gemm;
    if (!shape_of(c, rewrite->exponents, arena, &x) ||
        !shape_of(c, graph_node(plan->graph, rewrite->gemm)->args[1], arena, &v) ||
        !shape_of(c, rewrite->gemm, arena, &gemm))
        return false;
    c->n = v.dims[v.rank - 2];
    c->n_columns = v.dims[v.rank - 1];
    c->matrix_rows = gemm.dims[gemm.rank - 2];
    c->n_rows = c->n_columns ? tensor_n_elems(&gemm) / c->n_columns : 0;
    return c->n > 0 && tensor_n_elems(&x) == c->n_rows * c->n && place_values(&gemm, &v, arena, c);
}

static void load(const RewriteCase *c, NodeId node, int64_t first, int64_t n, double *to) {
    Dtype dtype = graph_node(c->plan->graph, node)->dtype;
    const uint8_t *from = c->bytes[node] + (size_t)first * dtype_bytes(dtype);
    for (int64_t i = 0; i < n; i++)
        to[i] = dtype_load(dtype, from + (size_t)i * dtype_bytes(dtype));
}

void rewrite_load_exponents(const RewriteCase *c, int64_t row, double *x) {
    load(c, c->rewrite.exponents, row * c->n, c->n, x);
}

void rewrite_load_values(const RewriteCase *c, int64_t row, double *v) {
    NodeId values = graph_node(c->plan->graph, c->rewrite.gemm)->args[1];
    load(c, values, c->value_offsets[row / c->matrix_rows], c->n * c->n_columns, v);
}

/* Leaves of the row kernel's programs. */

typedef struct LeafGuard {
    const struct LeafGuard *next;
    const IndexCode *index;
    int64_t lo, hi;
} LeafGuard;

typedef struct Leaf {
    const IndexCode *index; /* of a load: its address */
    const LeafGuard *guard;
    const uint8_t *bytes; /* of a load */
    int64_t width, pitch; /* rows of the buffer and their pitch; pitch 0: contiguous */
} Leaf;

typedef struct Eval32 {
    const RewriteCase *c;
    const Kernel *kernel;
    Leaf *leaves; /* per scalar id */
    int64_t axes[MAX_AXES];
    double results[2]; /* of the reductions */
    bool is_lost;      /* a value is unknown */
} Eval32;

static double value_of(Eval32 *e, ScalarId id);

static int64_t gathered(void *user, uint32_t scalar) {
    return (int64_t)value_of(user, scalar);
}

static bool is_inside(const LeafGuard *guard, const IndexPoint *point) {
    for (; guard; guard = guard->next) {
        int64_t index = index_eval(guard->index, point);
        if (index < guard->lo || index >= guard->hi) return false;
    }
    return true;
}

static double load_leaf(const Leaf *leaf, Dtype dtype, const IndexPoint *point) {
    int64_t at = index_eval(leaf->index, point);
    if (leaf->pitch) at = at / leaf->pitch * leaf->width + at % leaf->pitch;
    return dtype_load(dtype, leaf->bytes + (size_t)at * dtype_bytes(dtype));
}

static double leaf_value(void *user, ScalarId id, const Scalar *s) {
    Eval32 *e = user;
    const Leaf *leaf = &e->leaves[id];
    IndexPoint point = {.axes = e->axes, .value_at = gathered, .user = e};
    if (s->kind == SCALAR_STAGE) return e->results[s->slot];
    bool is_in = is_inside(leaf->guard, &point);
    if (s->kind == SCALAR_INSIDE) return is_in;
    if (s->kind == SCALAR_INDEX) return (double)index_eval(leaf->index, &point);
    if (s->kind == SCALAR_LOAD && leaf->bytes) return is_in ? load_leaf(leaf, s->dtype, &point) : 0;
    e->is_lost = true;
    return NAN;
}

static double value_of(Eval32 *e, ScalarId id) {
    ScalarEnv env = {.leaf = leaf_value, .user = e, .rounds = true};
    return scalar_eval(e->kernel->scalars, id, &env);
}

static bool open_guard(const Eval32 *e, Arena *arena, GuardId id, const LeafGuard **out) {
    const ScalarTab *scalars = e->kernel->scalars;
    const IndexTab *tab = scalartab_indices(scalars);
    for (; id; id = guard_get(scalars, id).next) {
        Guard guard = guard_get(scalars, id);
        LeafGuard *own = arena_array(arena, LeafGuard, 1);
        own->next = *out;
        own->index = index_compile(arena, tab, guard.index, e->c->symbol_values);
        if (!own->index || !dim_eval(indextab_dims(tab), guard.lo, e->c->symbol_values, &own->lo) ||
            !dim_eval(indextab_dims(tab), guard.hi, e->c->symbol_values, &own->hi))
            return false;
        *out = own;
    }
    return true;
}

/* Opens the data of a load. Copies of other buffers, whose row pitch the runtime decides, are
 * unknown. */
static bool open_load(const Eval32 *e, const Scalar *s, Leaf *leaf) {
    const Buffer *buffer = &e->c->plan->buffers.data[s->buffer];
    const DimTab *dims = e->c->plan->graph->dims;
    if (buffer->choice) return true;
    leaf->bytes = e->c->bytes[buffer->node];
    if (!buffer->pitch) return true;
    return dim_eval(dims, buffer->pitch, e->c->symbol_values, &leaf->pitch) &&
           dim_eval(dims, buffer->shape.dims[buffer->shape.rank - 1], e->c->symbol_values,
                    &leaf->width);
}

static bool open_leaf(const Eval32 *e, Arena *arena, const Scalar *s, Leaf *leaf) {
    const IndexTab *tab = scalartab_indices(e->kernel->scalars);
    if (s->kind == SCALAR_LOAD || s->kind == SCALAR_INDEX) {
        leaf->index = index_compile(arena, tab, s->index, e->c->symbol_values);
        if (!leaf->index) return false;
    }
    if (s->kind == SCALAR_LOAD && !open_load(e, s, leaf)) return false;
    return open_guard(e, arena, s->guard, &leaf->guard);
}

static bool open_leaves(Eval32 *e, Arena *arena) {
    uint32_t n = scalar_count(e->kernel->scalars);
    e->leaves = arena_array(arena, Leaf, n + 1);
    for (ScalarId id = 1; id <= n; id++)
        if (!open_leaf(e, arena, scalar_get(e->kernel->scalars, id), &e->leaves[id])) return false;
    return true;
}

/* Sets the parallel axes to a row. */
static bool aim(Eval32 *e, int64_t row) {
    const IndexTab *tab = scalartab_indices(e->kernel->scalars);
    for (uint32_t k = e->kernel->n_parallel; k-- > 0;) {
        int64_t extent;
        if (!dim_eval(indextab_dims(tab), index_axis_extent(tab, k), e->c->symbol_values, &extent))
            return false;
        e->axes[k] = extent ? row % extent : 0;
        row = extent ? row / extent : 0;
    }
    return true;
}

/* Tile by tile. */

static double rounded(double value) {
    return dtype_round(DT_F32, value);
}

static const OnlineSoftmax *online_of(const RewriteCase *c) {
    return &plan_launch_of(c->plan, c->rewrite.rows)->online_softmax;
}

typedef struct TileState {
    double shift, total;
    double *sums; /* per column of the result */
} TileState;

/* The columns that the row's block processes: all, or those that its last row sees. */
static bool find_end(const Eval32 *e, int64_t row, int64_t *end) {
    const RewriteCase *c = e->c;
    const OnlineSoftmax *online_softmax = online_of(e->c);
    int64_t tile_m = c->plan->kernels.data[c->rewrite.result].variants[0].sched.gemm.tile_m;
    int64_t ahead, first = row % c->matrix_rows;
    *end = c->n;
    if (!online_softmax->is_limited) return true;
    if (!dim_eval(c->plan->graph->dims, online_softmax->ahead, c->symbol_values, &ahead))
        return false;
    if (tile_m > 0) first = first / tile_m * tile_m + tile_m - 1;
    if (first >= c->matrix_rows) first = c->matrix_rows - 1;
    int64_t seen = first + 1 + ahead, width = c->rewrite.width ? c->rewrite.width : 1;
    seen = seen > 0 ? (seen + width - 1) / width * width : 0;
    if (seen < c->n) *end = seen;
    return true;
}

static void find_shift(Eval32 *e, int64_t first, int64_t end, double *shift) {
    const Reduce *reduce = &e->kernel->reduces.data[online_of(e->c)->shift];
    for (int64_t j = first; j < end; j++) {
        e->axes[e->kernel->first_reduced] = j;
        *shift = prim_eval(reduce->combine, DT_F32, *shift, value_of(e, reduce->value), 0);
    }
}

static void add_tile(Eval32 *e, int64_t first, int64_t end, const double *v, TileState *state) {
    const OnlineSoftmax *online_softmax = online_of(e->c);
    const RewriteCase *c = e->c;
    double before = state->shift;
    find_shift(e, first, end, &state->shift);
    bool is_none = state->shift == e->kernel->reduces.data[online_softmax->shift].identity;
    double now = is_none ? 0 : state->shift;
    double scale = rounded(prim_eval(online_softmax->power, DT_F32, rounded(before - now), 0, 0));
    state->total = rounded(state->total * scale);
    for (int64_t k = 0; k < c->n_columns; k++) state->sums[k] = rounded(state->sums[k] * scale);
    e->results[online_softmax->shift] = now;
    for (int64_t j = first; j < end; j++) {
        e->axes[e->kernel->first_reduced] = j;
        double weight = value_of(e, online_softmax->weight),
               factor = dtype_round(c->rewrite.weights, weight);
        state->total = rounded(state->total + weight);
        for (int64_t k = 0; k < c->n_columns; k++)
            state->sums[k] = rounded(state->sums[k] + factor * v[j * c->n_columns + k]);
    }
}

bool rewrite_evaluate(const RewriteCase *c, int64_t row, const double *v, Arena *scratch,
                      double *result) {
    ArenaMark mark = arena_mark(scratch);
    Eval32 e = {.c = c, .kernel = &c->plan->kernels.data[c->rewrite.rows]};
    int64_t end, width = c->rewrite.width ? c->rewrite.width : c->n;
    TileState state = {.shift = e.kernel->reduces.data[online_of(c)->shift].identity,
                       .sums = result};
    for (int64_t k = 0; k < c->n_columns; k++) result[k] = 0;
    bool is_good = open_leaves(&e, scratch) && aim(&e, row) && find_end(&e, row, &end);
    for (int64_t first = 0; is_good && first < end; first += width)
        add_tile(&e, first, first + width < end ? first + width : end, v, &state);
    double inverse = rounded(1 / state.total);
    for (int64_t k = 0; k < c->n_columns; k++)
        result[k] = dtype_round(c->rewrite.rounded, rounded(result[k] * inverse));
    arena_rewind(scratch, mark);
    return is_good && !e.is_lost;
}
