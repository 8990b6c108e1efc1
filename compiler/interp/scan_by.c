/* The interpreter's scans by a function. Unlike a sum, whose reference is exact, such a scan is
 * what its function makes of its elements in the order of scans, op by op: elements make runs,
 * runs groups, groups tiles, of SPAN members each. One step joins all parts that may be joined at
 * once. */
#include "interp/interp_node.h"

enum { SPAN = 16, N_LEVELS = 3 };

/* Parts of the rows, of one level: per scanned tensor, their values. */
typedef struct Parts {
    int64_t n_per_row, n;
    double **values;
} Parts;

typedef struct Scan {
    const Eval *e;
    const Graph *function;
    int64_t n, stride, n_rows; /* elements of a row and their distance, rows */
} Scan;

/* Which parts are joined with which ones, and where the results go. */
typedef struct Joins {
    int64_t n, *left, *right, *to;
} Joins;

static Parts parts_new(const Scan *s, int64_t n_per_row) {
    Parts parts = {.n_per_row = n_per_row, .n = n_per_row * s->n_rows};
    parts.values = arena_array(s->e->arena, double *, s->e->node->n_args);
    for (uint32_t q = 0; q < s->e->node->n_args; q++)
        parts.values[q] = arena_array(s->e->arena, double, (size_t)parts.n + 1);
    return parts;
}

static void copy_part(const Scan *s, const Parts *from, int64_t at, const Parts *to,
                      int64_t to_at) {
    for (uint32_t q = 0; q < s->e->node->n_args; q++) to->values[q][to_at] = from->values[q][at];
}

/* One op of the function, for all joins at once. */
static bool eval_op(const Scan *s, NodeId id, Tensor *values, int64_t n) {
    Eval own = *s->e;
    own.graph = s->function;
    own.node = graph_node(s->function, id);
    own.info = op_info(own.node->op);
    own.bounds = NULL;
    own.errors = NULL;
    Tensor *args = arena_array(own.arena, Tensor, own.node->n_args + (size_t)1);
    Tensor *out = &values[id];
    *out = (Tensor){.dtype = own.node->dtype};
    for (uint32_t i = 0; i < own.node->n_args; i++) {
        args[i] = values[own.node->args[i]];
        if (args[i].rank) out->rank = 1;
    }
    out->dims[0] = n;
    out->data = arena_array(own.arena, double, (size_t)tensor_n_elems(out) + 1);
    own.args = args;
    own.out = out;
    if (own.info->cls == CLASS_ELTWISE) return interp_eltwise(&own);
    return own.info->cls == CLASS_CAST ? interp_cast(&own) : interp_source(&own);
}

static Tensor gather_values(const Scan *s, Dtype dtype, const double *from, const int64_t *at,
                            int64_t n) {
    Tensor values = {.dtype = dtype, .rank = 1, .dims = {n}};
    values.data = arena_array(s->e->arena, double, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) values.data[i] = from[at[i]];
    return values;
}

static bool join(const Scan *s, const Parts *left, const Parts *right, const Parts *to,
                 const Joins *joins) {
    const Graph *function = s->function;
    uint32_t n_values = function->outputs.n;
    if (!joins->n) return true;
    ArenaMark mark = arena_mark(s->e->arena);
    Tensor *values = arena_array(s->e->arena, Tensor, function->nodes.n);
    for (uint32_t q = 0; q < n_values; q++) {
        NodeId a = function->inputs.data[q].node, b = function->inputs.data[n_values + q].node;
        values[a] = gather_values(s, graph_node(function, a)->dtype, left->values[q], joins->left,
                                  joins->n);
        values[b] = gather_values(s, graph_node(function, b)->dtype, right->values[q], joins->right,
                                  joins->n);
    }
    for (NodeId id = 0; id < function->nodes.n; id++)
        if (graph_node(function, id)->op != OP_INPUT && !eval_op(s, id, values, joins->n))
            return false;
    for (uint32_t q = 0; q < n_values; q++) {
        const Tensor *result = &values[function->outputs.data[q].node];
        for (int64_t i = 0; i < joins->n; i++)
            to->values[q][joins->to[i]] = result->data[result->rank ? i : 0];
    }
    arena_rewind(s->e->arena, mark);
    return true;
}

static Joins joins_new(const Scan *s, int64_t most) {
    Arena *arena = s->e->arena;
    return (Joins){.left = arena_array(arena, int64_t, (size_t)most + 1),
                   .right = arena_array(arena, int64_t, (size_t)most + 1),
                   .to = arena_array(arena, int64_t, (size_t)most + 1)};
}

static void add_join(Joins *joins, int64_t left, int64_t right, int64_t to) {
    joins->left[joins->n] = left;
    joins->right[joins->n] = right;
    joins->to[joins->n++] = to;
}

/* Joins each part with those before it in its span: with itself, or without (then the first of a
 * span has none). */
static bool prefixes(const Scan *s, const Parts *parts, int64_t span, bool with_itself,
                     const Parts *to) {
    Joins joins = joins_new(s, parts->n);
    int64_t per_row = parts->n_per_row;
    for (int64_t step = 0; step < span && step < per_row; step++) {
        joins.n = 0;
        for (int64_t row = 0; row < s->n_rows; row++)
            for (int64_t k = step; k < per_row; k += span) {
                int64_t at = row * per_row + k, part = with_itself ? at : at - 1;
                if (step > !with_itself)
                    add_join(&joins, at - 1, part, at);
                else if (step == !with_itself)
                    copy_part(s, parts, part, to, at);
            }
        if (!join(s, to, parts, to, &joins)) return false;
    }
    return true;
}

/* What the whole spans of parts add up to, given what comes before each part in its span. */
static bool totals(const Scan *s, const Parts *parts, const Parts *before, const Parts *to) {
    Joins joins = joins_new(s, to->n);
    for (int64_t row = 0; row < s->n_rows; row++)
        for (int64_t k = 0; (k + 1) * SPAN <= parts->n_per_row; k++) {
            int64_t last = row * parts->n_per_row + (k + 1) * SPAN - 1;
            add_join(&joins, last, last, row * to->n_per_row + k);
        }
    return join(s, before, parts, to, &joins);
}

/* What comes before each run: the tiles, then the groups of its tile, then the runs of its group.
 * `before` has one level after the other, runs first. */
static bool join_levels(const Scan *s, const Parts *before, Parts *joined) {
    int64_t n_runs = before[0].n_per_row;
    *joined = parts_new(s, n_runs);
    bool *is_any = arena_array(s->e->arena, bool, (size_t)joined->n + 1);
    Joins joins = joins_new(s, joined->n);
    for (int level = N_LEVELS; level-- > 0;) {
        int64_t size = 1;
        for (int l = 0; l < level; l++) size *= SPAN;
        joins.n = 0;
        for (int64_t at = 0; at < joined->n; at++) {
            int64_t part = at % n_runs / size, from = at / n_runs * before[level].n_per_row + part;
            bool is_first = level == N_LEVELS - 1 ? part == 0 : part % SPAN == 0;
            if (is_first) continue;
            if (is_any[at])
                add_join(&joins, at, from, at);
            else
                copy_part(s, &before[level], from, joined, at);
            is_any[at] = true;
        }
        if (!join(s, joined, &before[level], joined, &joins)) return false;
    }
    return true;
}

static bool join_elements(const Scan *s, const Parts *before, const Parts *own) {
    Joins joins = joins_new(s, own->n);
    for (int64_t at = 0; at < own->n; at++)
        if (at % s->n >= SPAN)
            add_join(&joins, at / s->n * before->n_per_row + at % s->n / SPAN, at, at);
    return join(s, before, own, own, &joins);
}

static int64_t place_of(const Scan *s, int64_t at) {
    int64_t row = at / s->n;
    return (row / s->stride * s->n + at % s->n) * s->stride + row % s->stride;
}

static Parts elements_of(const Scan *s) {
    Parts elements = parts_new(s, s->n);
    for (uint32_t q = 0; q < s->e->node->n_args; q++)
        for (int64_t i = 0; i < elements.n; i++)
            elements.values[q][i] = s->e->args[q].data[place_of(s, i)];
    return elements;
}

static bool scan_rows_by(const Scan *s, Parts *own) {
    Parts elements = elements_of(s), parts, before[N_LEVELS], joined;
    *own = parts_new(s, s->n);
    if (!prefixes(s, &elements, SPAN, true, own)) return false;
    parts = parts_new(s, (s->n + SPAN - 1) / SPAN);
    for (int64_t at = 0; at < own->n; at++)
        if (at % s->n % SPAN == SPAN - 1)
            copy_part(s, own, at, &parts, at / s->n * parts.n_per_row + at % s->n / SPAN);
    for (int level = 0; level < N_LEVELS; level++) {
        bool is_last = level == N_LEVELS - 1;
        before[level] = parts_new(s, parts.n_per_row);
        int64_t span = is_last ? parts.n_per_row : SPAN;
        if (!prefixes(s, &parts, span, false, &before[level])) return false;
        if (is_last) break;
        Parts next = parts_new(s, (parts.n_per_row + SPAN - 1) / SPAN);
        if (!totals(s, &parts, &before[level], &next)) return false;
        parts = next;
    }
    return join_levels(s, before, &joined) && join_elements(s, &joined, own);
}

/* Whether all ops of the function are correctly rounded, so that every target has these bits. */
static bool is_exact(const Graph *function) {
    for (NodeId id = 0; id < function->nodes.n; id++) {
        const Node *node = graph_node(function, id);
        if (op_ulp(op_info(node->op), node->dtype) != 0) return false;
    }
    return true;
}

bool interp_scan_by(const Eval *e) {
    Scan s = {.e = e, .function = e->node->attrs.function, .stride = 1};
    Parts own;
    uint32_t axis = 0;
    while (!(e->node->attrs.axes >> axis & 1)) axis++;
    s.n = e->out->dims[axis];
    for (uint32_t k = axis + 1; k < e->out->rank; k++) s.stride *= e->out->dims[k];
    int64_t n = tensor_n_elems(e->out);
    if (n == 0) return true;
    s.n_rows = n / s.n;
    if (!scan_rows_by(&s, &own)) return false;
    bool is_any = e->bounds && (e->graph->is_fast || !is_exact(s.function));
    for (int64_t i = 0; i < n; i++) {
        int64_t at = place_of(&s, i);
        e->out->data[at] = own.values[e->node->attrs.axis][i];
        if (is_any && i % s.n) e->bounds[at] = INTERP_ANY;
    }
    return true;
}
