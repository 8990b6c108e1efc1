/* The pass that `online` blocks ask for, or a builder that rewrites its whole graph: a softmax and
 * the product that contracts its axis become one op. It looks at the graph and its extents alone,
 * so that it gives the same for every target. A block must become what it asks for; the rest of a
 * graph, where there is something to find, is left as it is. See build.h. */
#include "ir/build/online_find.h"
#include "ir/build/online_product.h"
#include "ir/build/online_weights.h"

#include <string.h>

/* What becomes of a node. */
typedef enum {
    NODE_COPIED,
    NODE_ONLINE,  /* a matmul: the op takes its place */
    NODE_DIVIDED, /* the op's result is divided already: the dividend takes its place */
    NODE_LOG,     /* a logarithm of a sum of exponentials, or a greatest absolute value */
} Change;

enum {
    NEEDED, /* outputs need the node once the changes are made */
    TOLD,   /* powers: a product says what became of their softmax */
    SCORED  /* scores of an op are made from the node */
};

typedef struct Rewriter {
    Builder *b;
    uint32_t n;
    Node *nodes;            /* as they were, joined */
    const uint32_t *blocks; /* kernel_of, as it was */
    const uint32_t *online; /* online_of, as it was */
    uint32_t *n_users;
    Change *change;
    OnlineFound **found;   /* per node that is NODE_ONLINE, or has a reason; else NULL */
    OnlineLog *logs;       /* per node that is NODE_LOG */
    OnlineReason *reasons; /* per node: why it did not become NODE_ONLINE */
    uint32_t *arg;         /* per node that is NODE_DIVIDED: its dividend */
    NodeFlags scored;      /* SCORED */
    NodeId *moved;         /* per node: what took its place */
    NodeId *wide;          /* per node that is NODE_ONLINE: the op's result, before it is rounded */
} Rewriter;

/* Zeros where nothing was found. */
static const OnlineFound *found_of(const Rewriter *r, NodeId id) {
    static const OnlineFound none;
    return r->found[id] ? r->found[id] : &none;
}

static void keep_found(Rewriter *r, NodeId id, const OnlineFound *found) {
    r->found[id] = arena_copy(r->b->arena, found, sizeof *found);
}

static void count_users(Rewriter *r) {
    const Graph *graph = r->b->graph;
    for (NodeId id = 0; id < r->n; id++)
        for (uint32_t k = 0; k < r->nodes[id].n_args; k++) r->n_users[r->nodes[id].args[k]]++;
    for (uint32_t i = 0; i < graph->outputs.n; i++) r->n_users[graph->outputs.data[i].node]++;
}

static void report(Builder *b, Span span, const char *message, const char *help) {
    BuildError *error = build_fail(b, DIAG_ONLINE, (BuildPlace){0}, "%s", message);
    error->span = span;
    error->help = help;
}

/* Finding. */

/* Whether the node and the matmul may change together. */
static bool may_change(const Rewriter *r, NodeId id, NodeId matmul) {
    if (r->b->rewrites && r->blocks[id] == r->blocks[matmul]) return true;
    return r->online[id] && r->online[matmul];
}

/* Whether all that leads from the matmul to the quotient may change. */
static bool is_private(const Rewriter *r, NodeId quotient, uint32_t arg, NodeId matmul) {
    NodeId id = r->nodes[quotient].args[arg];
    for (; id != matmul; id = r->nodes[id].args[0])
        if (r->n_users[id] > 1) return false;
    return r->n_users[matmul] == 1 && may_change(r, quotient, matmul);
}

static bool keeps_shape(const Rewriter *r, NodeId id, uint32_t arg) {
    return shape_equal(&r->nodes[id].shape, &r->nodes[r->nodes[id].args[arg]].shape);
}

static void find_quotient(Rewriter *r, NodeId id) {
    OnlineFound found;
    OnlineReason reason;
    uint32_t arg;
    NodeId matmul = online_quotient_of(r->b->graph, id, &arg);
    if (matmul == NODE_NONE || !is_private(r, id, arg, matmul) || !keeps_shape(r, id, arg) ||
        r->change[matmul] != NODE_COPIED)
        return;
    if (online_find_quotient(r->b, id, &found, &reason)) {
        r->change[id] = NODE_DIVIDED;
        r->change[matmul] = NODE_ONLINE;
        keep_found(r, matmul, &found);
        r->arg[id] = arg;
        r->reasons[matmul].message = NULL;
    } else if (reason.message) {
        r->reasons[matmul] = reason;
        keep_found(r, matmul, &found);
    }
}

/* Whether it is a product of a block with a softmax of the block, which has to become an op. Where
 * the whole graph is rewritten, a product of a block may read exponentials from outside of it. */
static bool is_asked(const Rewriter *r, NodeId id) {
    NodeId power = found_of(r, id)->power;
    return r->online[id] && (power == NODE_NONE || r->online[power]);
}

/* The last reduction of block `block`; NODE_NONE: it has none. */
static NodeId last_reduction(const Rewriter *r, uint32_t block) {
    for (NodeId id = r->n; id-- > 0;)
        if (r->online[id] == block && op_info(r->nodes[id].op)->cls == CLASS_REDUCE) return id;
    return NODE_NONE;
}

static void report_empty(const Rewriter *r, uint32_t block) {
    Builder *b = r->b;
    NodeId reduction = last_reduction(r, block);
    if (reduction == NODE_NONE) {
        report(b, b->online_blocks.data[block - 1],
               "the `online` block has no softmax whose axis a product contracts",
               "Put the softmax and the matmul of its result into the block.");
        return;
    }
    report(
        b, r->nodes[reduction].span,
        str_format(b->arena,
                   "the `online` block has a `%s`, but no softmax whose axis a product contracts",
                   op_info(r->nodes[reduction].op)->name),
        "Products of powers of scores or of quotients by a greatest absolute value, and logarithms "
        "of sums of powers, are all that is rescaled; other reductions belong outside the block.");
}

/* Reports what cannot become an op, and blocks that have nothing that can. */
static void report_all(Rewriter *r) {
    Builder *b = r->b;
    bool *has_any = arena_array(b->arena, bool, b->online_blocks.n + (size_t)1);
    for (NodeId id = 0; id < r->n; id++) {
        if (r->change[id] == NODE_COPIED && (!r->reasons[id].message || !is_asked(r, id))) continue;
        has_any[r->online[id]] = true;
        if (r->change[id] == NODE_COPIED)
            report(b, r->nodes[id].span, r->reasons[id].message, r->reasons[id].help);
    }
    for (uint32_t i = 0; i < b->online_blocks.n; i++)
        if (!has_any[i + 1]) report_empty(r, i + 1);
}

/* Whether the node, once it is changed, reads its argument `k`. */
static bool reads(const Rewriter *r, NodeId id, uint32_t k) {
    switch (r->change[id]) {
    case NODE_COPIED:
        return true;
    case NODE_ONLINE:
        return k != found_of(r, id)->side;
    case NODE_DIVIDED:
        return k == r->arg[id];
    case NODE_LOG:
        return false;
    }
    return false;
}

static NodeFlags find_needed(const Rewriter *r) {
    const Graph *graph = r->b->graph;
    NodeFlags needed = node_flags_new(r->b->arena, r->n);
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        node_add(needed, graph->outputs.data[i].node, NEEDED);
    for (NodeId id = r->n; id-- > 0;) {
        if (!node_has(needed, id, NEEDED)) continue;
        for (uint32_t k = 0; k < r->nodes[id].n_args; k++)
            if (reads(r, id, k)) node_add(needed, r->nodes[id].args[k], NEEDED);
        if (r->change[id] == NODE_ONLINE) node_add(needed, found_of(r, id)->scores, NEEDED);
        if (r->change[id] == NODE_LOG) node_add(needed, r->logs[id].scores, NEEDED);
    }
    return needed;
}

/* Outside of blocks, a softmax that something else reads too is left: it is computed anyway. */
static void leave_read(Rewriter *r) {
    NodeFlags needed = find_needed(r);
    uint32_t arg;
    for (NodeId id = 0; id < r->n; id++) {
        NodeId matmul =
            r->change[id] == NODE_DIVIDED ? online_quotient_of(r->b->graph, id, &arg) : id;
        if (r->change[id] == NODE_COPIED || r->change[id] == NODE_LOG) continue;
        if (!r->online[matmul] && node_has(needed, found_of(r, matmul)->power, NEEDED)) {
            r->change[id] = NODE_COPIED;
            r->reasons[matmul].message = "something else reads its softmax too";
        }
    }
}

/* Flags what elementwise ops and views of a block make scores from, back to products. */
static void find_scored(Rewriter *r) {
    for (NodeId id = r->n; id-- > 0;) {
        OpClass cls = op_info(r->nodes[id].op)->cls;
        if (r->change[id] == NODE_ONLINE) node_add(r->scored, found_of(r, id)->scores, SCORED);
        if (r->change[id] == NODE_LOG) node_add(r->scored, r->logs[id].scores, SCORED);
        if (!node_has(r->scored, id, SCORED) ||
            (cls != CLASS_ELTWISE && cls != CLASS_CAST && cls != CLASS_VIEW))
            continue;
        for (uint32_t k = 0; k < r->nodes[id].n_args; k++)
            if (may_change(r, r->nodes[id].args[k], id))
                node_add(r->scored, r->nodes[id].args[k], SCORED);
    }
}

/* Whether op `row` finds the result of rows of the product `op`. */
static bool finds(OpId op, OpId row) {
    return op_info(row)->power == op_info(op)->power && op_info(row)->row && !op_info(op)->row;
}

/* Whether the value is made before node `id`, or by moves of such a value. */
static bool may_be_early(const Rewriter *r, NodeId value, NodeId id) {
    while (value >= id) {
        const Node *node = &r->nodes[value];
        if ((op_info(node->op)->cls != CLASS_VIEW && node->op != OP_CAST) || node->n_args != 1)
            return false;
        value = node->args[0];
    }
    return true;
}

/* Whether the product's weights are those of the logarithm, row by row in one order, and its values
 * may be made before it. */
static bool has_weights_of(const Rewriter *r, NodeId matmul, NodeId id) {
    const OnlineFound *found = found_of(r, matmul);
    const OnlineLog *log = &r->logs[id];
    const Node *product = &r->nodes[matmul];
    const Shape *scores = &r->nodes[log->scores].shape;
    if (r->change[matmul] != NODE_ONLINE || !finds(found->op, log->op) ||
        r->online[matmul] != r->online[id] || found->scores != log->scores ||
        !may_be_early(r, product->args[1 - found->side], id) || found->exponent.n > 1 ||
        log->axis + (found->side ? 2 : 1) != scores->rank)
        return false;
    for (uint32_t i = 0; i < found->weights.n; i++) {
        const Node *step = &r->nodes[found->weights.ops[i]];
        if (found->weights.steps[i] == STEP_MASK || op_info(step->op)->cls == CLASS_VIEW)
            return false;
    }
    Shape rows = product->shape, own = *scores;
    uint32_t m = product->shape.rank - (found->side ? 1 : 2);
    rows.dims[rows.rank - 2] = product->shape.dims[m];
    rows.rank--;
    own.dims[log->axis] = own.dims[own.rank - 1];
    own.rank--;
    return shape_equal(&rows, &own) &&
           dim_lo(r->b->dims, product->shape.dims[2 * rows.rank - 1 - m]) > 0;
}

static bool find_product(Rewriter *r, NodeId id) {
    OnlineFound found = {.matmul = 0};
    bool is_found = online_find_product(r->b, id, &found, &r->reasons[id]);
    if (is_found || r->reasons[id].message) keep_found(r, id, &found);
    return is_found;
}

/* Outside of blocks rows are quantised as they are written: a row's own step is half as large as
 * that of the recurrence may be, and integers are multiplied faster by themselves. */
static bool find_quantized(Rewriter *r, NodeId id) {
    OnlineFound found;
    OnlineReason reason = r->reasons[id];
    if (!r->online[id]) return false;
    bool is_found = online_find_quantized(r->b, id, &found, &reason);
    if (is_found || (reason.message && !r->reasons[id].message)) keep_found(r, id, &found);
    r->reasons[id] = is_found ? (OnlineReason){NULL, NULL} : reason;
    return is_found;
}

/* Whether elementwise ops make the node of reductions along `axis` of values that elementwise ops
 * make of the scores. So its rows are those of the scores, in the same order. */
static bool has_rows_of_scores(const Rewriter *r, NodeId id, NodeId scores, uint32_t axis) {
    const Node *node = &r->nodes[id];
    const OpInfo *info = op_info(node->op);
    if (info->cls == CLASS_REDUCE)
        return node->attrs.axes == 1u << axis &&
               shape_equal(&r->nodes[node->args[0]].shape, &r->nodes[scores].shape) &&
               has_rows_of_scores(r, node->args[0], scores, axis);
    if (id == scores || node->op == OP_CONST) return true;
    bool has = info->cls == CLASS_ELTWISE || info->cls == CLASS_CAST;
    for (uint32_t k = 0; has && k < node->n_args; k++)
        has = has_rows_of_scores(r, node->args[k], scores, axis);
    return has;
}

/* The greatest values of rows that products find too. */
static void find_greatest(Rewriter *r) {
    for (NodeId id = 0; id < r->n; id++) {
        const OnlineFound *found = found_of(r, id);
        if (r->change[id] != NODE_ONLINE || op_info(found->op)->power) continue;
        NodeId greatest = found->greatest;
        uint32_t rank = r->nodes[found->scores].shape.rank, axis = rank - (found->side ? 2 : 1);
        if (r->change[greatest] != NODE_COPIED ||
            !has_rows_of_scores(r, greatest, found->scores, axis))
            continue;
        r->logs[greatest] =
            (OnlineLog){.op = OP_QUANTIZE_AMAX, .scores = found->scores, .axis = axis};
        if (has_weights_of(r, id, greatest)) r->change[greatest] = NODE_LOG;
    }
}

/* Finds what may change. */
static void find_all(Rewriter *r) {
    const Graph *graph = r->b->graph;
    for (NodeId id = 0; id < r->n; id++) {
        if (!r->online[id] && !r->b->rewrites) continue;
        if (r->online[id] && online_find_log(r->b, id, &r->logs[id]))
            r->change[id] = NODE_LOG;
        else if (!graph_is_matmul(graph, id))
            find_quotient(r, id);
        else if (find_product(r, id) || find_quantized(r, id))
            r->change[id] = NODE_ONLINE;
    }
    if (r->b->rewrites) leave_read(r);
    find_greatest(r);
    find_scored(r);
    report_all(r);
}

/* Rewriting. */

static NodeId copy(Rewriter *r, NodeId id, uint32_t arg, NodeId value) {
    Node node = r->nodes[id];
    NodeId *args = arena_array(r->b->arena, NodeId, node.n_args);
    for (uint32_t k = 0; k < node.n_args; k++) args[k] = r->moved[node.args[k]];
    if (value != NODE_NONE) {
        args[arg] = value;
        node.name = NULL;
        if (node.op != OP_CAST) node.dtype = graph_node(r->b->graph, value)->dtype;
    }
    node.args = args;
    return build_node(r->b, (BuildPlace){0}, node);
}

/* Whether the op only moves elements or scales scores; others are what the softmax is made of. */
static bool is_kept(const Rewriter *r, NodeId id) {
    OpId op = r->nodes[id].op;
    return op_info(op)->cls == CLASS_VIEW || op == OP_MUL || op == OP_DIV || op == OP_CAST;
}

/* Does to the scores what the path of the exponent does, from its end on. */
static NodeId replay(Rewriter *r, const OnlinePath *path, NodeId value) {
    for (uint32_t i = path->n; i-- > 0;) {
        NodeId id = path->ops[i];
        const Shape *shape = &r->nodes[id].shape;
        if (is_kept(r, id))
            value = copy(r, id, path->args[i], value);
        else if (!shape_equal(build_shape_of(r->b, value), shape))
            value = build_expand(r->b, value, (DimList){shape->rank, shape->dims});
    }
    return value;
}

static NodeId swap_last(Builder *b, NodeId id) {
    uint32_t rank = build_shape_of(b, id)->rank;
    int64_t perm[MAX_RANK];
    for (uint32_t k = 0; k < rank; k++) perm[k] = k + 2 < rank ? k : 2 * rank - 3 - k;
    return build_transpose(b, id, rank, perm);
}

/* The operands of the op that takes the matmul's place. Weights on the right: it is the transposed
 * product of transposed values. */
static bool make_operands(Rewriter *r, NodeId id, NodeId *scores, NodeId *values) {
    Builder *b = r->b;
    const OnlineFound *found = found_of(r, id);
    const OnlineNodes nodes = {.b = b, .nodes = r->nodes, .moved = r->moved};
    *values = r->moved[r->nodes[id].args[1 - found->side]];
    *scores = replay(r, &found->exponent, r->moved[found->scores]);
    *scores = online_hide(&nodes, found, *scores);
    if (*scores == NODE_NONE) return false;
    const Operand operand = operand_tensor(*scores);
    *scores = build_cast(b, &operand, online_compute(graph_node(b->graph, *values)->dtype));
    if (found->side) *scores = swap_last(b, *scores), *values = swap_last(b, *values);
    return *scores != NODE_NONE && *values != NODE_NONE;
}

static NodeId make_online(Rewriter *r, NodeId id) {
    Builder *b = r->b;
    const OnlineFound *found = found_of(r, id);
    const Node *matmul = &r->nodes[id];
    const OnlineNodes nodes = {.b = b, .nodes = r->nodes, .moved = r->moved};
    NodeId scores, values, factor;
    if (!make_operands(r, id, &scores, &values) || !online_make_factor(&nodes, found, &factor))
        return NODE_NONE;
    Dtype compute = online_compute(graph_node(b->graph, values)->dtype);
    if (found->side && factor != NODE_NONE) factor = swap_last(b, factor);
    bool is_wide = online_has_rows(found) || !dtype_in(matmul->dtype, DTS_FLOAT);
    NodeId result = online_make_op(b, found->op, scores, values, factor, &found->quantize,
                                   is_wide ? compute : matmul->dtype);
    if (found->side && result != NODE_NONE) result = swap_last(b, result);
    if (!is_wide || result == NODE_NONE) return result;
    result = r->wide[id] = online_scale_rows(&nodes, found, result);
    if (result != NODE_NONE && dtype_is_int(matmul->dtype))
        result = build_eltwise(b, OP_ROUND, 1, (Operand[]){operand_tensor(result)});
    if (result == NODE_NONE) return result;
    const Operand wide = operand_tensor(result);
    return build_cast(b, &wide, matmul->dtype);
}

/* Logarithms. */

/* Makes it; it is made again in its own place, and the two are joined. */
static bool make_early(Rewriter *r, NodeId value, NodeId id) {
    if (value < id) return true;
    if (!make_early(r, r->nodes[value].args[0], id)) return false;
    r->moved[value] = copy(r, value, 0, NODE_NONE);
    return r->moved[value] != NODE_NONE;
}

/* The scores as a matrix of rows, and a column of zeros. */
static bool make_alone(Rewriter *r, const OnlineLog *log, NodeId *scores, NodeId *values) {
    Builder *b = r->b;
    Shape shape = r->nodes[log->scores].shape;
    int64_t perm[MAX_RANK];
    for (uint32_t k = 0; k < shape.rank; k++) perm[k] = k < log->axis ? k : k + 1;
    perm[shape.rank - 1] = log->axis;
    DimId n = shape.dims[log->axis], one = dim_const(b->dims, 1);
    const Operand given = operand_tensor(r->moved[log->scores]);
    *scores = build_cast(b, &given, dtype_compute(r->nodes[log->scores].dtype));
    if (*scores == NODE_NONE) return false;
    *scores = build_transpose(b, *scores, shape.rank, perm);
    if (*scores != NODE_NONE && shape.rank == 1)
        *scores = build_reshaped(b, *scores, &(Shape){.rank = 2, .dims = {one, n}});
    const Operand zero = operand_float(0);
    *values = build_const(b, &zero, dtype_compute(r->nodes[log->scores].dtype));
    if (*scores == NODE_NONE || *values == NODE_NONE) return false;
    *values = build_expand(b, *values, (DimList){2, (DimId[]){n, one}});
    return *values != NODE_NONE;
}

/* The first column of a matrix. */
static NodeId first_column(Builder *b, NodeId id) {
    if (id == NODE_NONE) return id;
    Shape begin = *build_shape_of(b, id), size = begin, step = begin;
    for (uint32_t k = 0; k < begin.rank; k++) {
        begin.dims[k] = dim_const(b->dims, 0);
        step.dims[k] = dim_const(b->dims, 1);
    }
    size.dims[size.rank - 1] = dim_const(b->dims, 1);
    return build_slice(b, id, (DimList){begin.rank, begin.dims}, (DimList){size.rank, size.dims},
                       (DimList){step.rank, step.dims});
}

/* The logarithm is that of the product with the same weights, if there is one, so that one kernel
 * finds both. */
static NodeId make_log(Rewriter *r, NodeId id) {
    Builder *b = r->b;
    const OnlineLog *log = &r->logs[id];
    NodeId matmul = 0, scores, values;
    while (matmul < r->n && !has_weights_of(r, matmul, id)) matmul++;
    const OnlineFound *found = matmul < r->n ? found_of(r, matmul) : NULL;
    bool is_made = found ? make_early(r, r->nodes[matmul].args[1 - found->side], id) &&
                               make_operands(r, matmul, &scores, &values)
                         : make_alone(r, log, &scores, &values);
    if (!is_made) return NODE_NONE;
    Dtype compute = online_compute(graph_node(b->graph, values)->dtype), dtype = r->nodes[id].dtype;
    NodeId made = online_make_op(b, log->op, scores, values, NODE_NONE, NULL, compute);
    made = first_column(b, made);
    if (made == NODE_NONE) return made;
    Shape shape = r->nodes[log->is_taken ? log->scores : id].shape;
    if (log->is_taken) shape.dims[log->axis] = dim_const(b->dims, 1);
    made = build_reshaped(b, made, &shape);
    if (log->is_taken && made != NODE_NONE) {
        const Operand x = operand_tensor(r->moved[log->scores]);
        NodeId wide = build_cast(b, &x, compute);
        if (wide == NODE_NONE) return wide;
        made = build_eltwise(b, OP_SUB, 2, (Operand[]){operand_tensor(wide), operand_tensor(made)});
    }
    if (made == NODE_NONE) return made;
    const Operand result = operand_tensor(made);
    return build_cast(b, &result, dtype);
}

/* Whether the node is a product from which scores of an op are made. */
static bool makes_scores(const Rewriter *r, NodeId id) {
    const Node *node = &r->nodes[id];
    return node_has(r->scored, id, SCORED) && op_info(node->op)->cls == CLASS_MATMUL &&
           dtype_in(r->nodes[node->args[0]].dtype, DTS_FLOAT) &&
           node->attrs.precision == PRECISION_FULL;
}

/* Whether the node makes floats of integers that the op's result was rounded to. */
static bool converts_wide(const Rewriter *r, const Node *node) {
    return node->op == OP_CAST && dtype_is_float(node->dtype) &&
           r->change[node->args[0]] == NODE_ONLINE && dtype_is_int(r->nodes[node->args[0]].dtype);
}

static NodeId rebuild(Rewriter *r, NodeId id) {
    const Node *node = &r->nodes[id];
    Builder *b = r->b;
    b->span = node->span;
    b->call = node->call;
    b->block = r->blocks[id];
    b->online = r->online[id];
    const OnlineNodes nodes = {.b = b, .nodes = r->nodes, .moved = r->moved};
    NodeId made = NODE_NONE;
    bool is_copied = r->change[id] == NODE_COPIED && !makes_scores(r, id);
    if (is_copied && converts_wide(r, node)) {
        const Operand wide = operand_tensor(r->wide[node->args[0]]);
        made = build_cast(b, &wide, node->dtype);
        if (made != NODE_NONE && node->name) graph_node(b->graph, made)->name = node->name;
        return made;
    }
    bool may_mask = is_copied && r->online[id] && node_has(r->scored, id, SCORED);
    if (may_mask && !online_mask_sum(&nodes, id, &made)) return NODE_NONE;
    if (is_copied && made == NODE_NONE) return copy(r, id, 0, NODE_NONE);
    if (made != NODE_NONE)
        graph_node(b->graph, made)->name = NULL;
    else if (r->change[id] == NODE_COPIED)
        made = online_make_scores(b, node, r->moved[node->args[0]], r->moved[node->args[1]]);
    else if (r->change[id] == NODE_ONLINE)
        made = make_online(r, id);
    else if (r->change[id] == NODE_LOG)
        made = make_log(r, id);
    else
        made = r->moved[node->args[r->arg[id]]];
    if (node->name && made != NODE_NONE) graph_node(b->graph, made)->name = node->name;
    return made;
}

static bool rebuild_all(Rewriter *r) {
    Graph *graph = r->b->graph;
    memset(&graph->nodes, 0, sizeof graph->nodes);
    memset(&graph->kernel_of, 0, sizeof graph->kernel_of);
    memset(&r->b->online_of, 0, sizeof r->b->online_of);
    NodeId *begins = arena_array(r->b->arena, NodeId, r->n + 1);
    for (NodeId id = 0; id < r->n; id++) {
        r->moved[id] = rebuild(r, id);
        if (r->moved[id] == NODE_NONE) return false;
        begins[id + 1] = graph->nodes.n;
    }
    build_remake_steps(r->b, begins, r->moved);
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        graph->inputs.data[i].node = r->moved[graph->inputs.data[i].node];
    for (uint32_t i = 0; i < graph->params.n; i++)
        graph->params.data[i].node = r->moved[graph->params.data[i].node];
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        graph->outputs.data[i].node = r->moved[graph->outputs.data[i].node];
    return true;
}

/* What is left. */

/* An op that reads the sum of weights and divides nothing by it; NODE_NONE: there is none. */
static NodeId other_reader(const Graph *graph, NodeFlags live, NodeId sum) {
    for (NodeId id = sum + 1; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        for (uint32_t k = 0; k < node->n_args && node_has(live, id, BUILD_LIVE); k++) {
            if (node->args[k] != sum || node->op == OP_DIV) continue;
            if (op_info(node->op)->cls != CLASS_VIEW) return id;
            NodeId reader = other_reader(graph, live, id);
            if (reader != NODE_NONE) return reader;
        }
    }
    return NODE_NONE;
}

/* Reports softmaxes of blocks that something else than a product reads. */
static void check_rest(Rewriter *r) {
    Builder *b = r->b;
    NodeFlags live = build_find_live(b);
    for (NodeId id = 0; id < b->graph->nodes.n; id++) {
        if (!b->online_of.data[id] || !node_has(live, id, BUILD_LIVE) ||
            online_summed_powers(b->graph, id) == NODE_NONE)
            continue;
        NodeId reader = other_reader(b->graph, live, id);
        Span span = graph_node(b->graph, reader == NODE_NONE ? id : reader)->span;
        if (reader == NODE_NONE)
            report(b, span,
                   "the weights of a softmax in an `online` block have another reader than a "
                   "product along their axis",
                   "Compute them again outside the block, for that reader.");
        else
            report(b, span,
                   str_format(b->arena,
                              "`%s` reads the sum of a softmax in an `online` block, which its op "
                              "does not give",
                              op_info(graph_node(b->graph, reader)->op)->name),
                   "Compute it again outside the block, for that reader.");
    }
}

/* Notes what became of the softmaxes of the graph. */

static void note(const Rewriter *r, NodeId id, OpId op, const char *why_left) {
    const OnlineFound *found = found_of(r, id);
    Graph *graph = r->b->graph;
    SoftmaxNote made = {
        .op = op, .name = r->nodes[id].name, .span = r->nodes[id].span, .why_left = why_left};
    if (!why_left) {
        const Node *values = &r->nodes[r->nodes[id].args[1 - found->side]];
        made.values = values->dtype;
        made.n_keys = values->shape.dims[values->shape.rank - (found->side ? 1 : 2)];
    }
    vec_push(r->b->arena, &graph->softmaxes, made);
}

/* A product says what became of its softmax; else the sum of the exponentials does. */
static void note_all(const Rewriter *r) {
    const Graph *graph = r->b->graph;
    NodeFlags live = build_find_live(r->b);
    NodeFlags told = node_flags_new(r->b->arena, graph->nodes.n);
    for (NodeId id = 0; id < r->n; id++)
        if ((r->change[id] == NODE_ONLINE || r->reasons[id].message) &&
            found_of(r, id)->power != NODE_NONE)
            node_add(told, r->moved[found_of(r, id)->power], TOLD);
    for (NodeId id = 0; id < r->n; id++) {
        NodeId moved = r->moved[id];
        NodeId power = online_summed_powers(graph, moved);
        if (!node_has(live, moved, BUILD_LIVE)) continue;
        if (r->change[id] == NODE_ONLINE && op_info(found_of(r, id)->op)->power)
            note(r, id, found_of(r, id)->op, NULL);
        else if (r->reasons[id].message)
            note(r, id, r->nodes[id].op, r->reasons[id].message);
        else if (power != NODE_NONE && !node_has(told, power, TOLD))
            note(r, id, r->nodes[id].op,
                 graph->fixed_kernels.n ? "no product of its block contracts its axis"
                                        : "no product contracts its axis");
    }
}

void build_make_online(Builder *b) {
    Graph *graph = b->graph;
    uint32_t n = graph->nodes.n;
    if (!b->online_blocks.n && !b->rewrites) return;
    Rewriter r = {.b = b,
                  .n = n,
                  .nodes = arena_copy(b->arena, graph->nodes.data, n * sizeof *r.nodes),
                  .blocks = graph->kernel_of.data,
                  .online = b->online_of.data};
    r.n_users = arena_array(b->arena, uint32_t, n);
    r.change = arena_array(b->arena, Change, n);
    r.found = arena_array(b->arena, OnlineFound *, n);
    r.reasons = arena_array(b->arena, OnlineReason, n);
    r.logs = arena_array(b->arena, OnlineLog, n);
    r.arg = arena_array(b->arena, uint32_t, n);
    r.scored = node_flags_new(b->arena, n);
    r.moved = arena_array(b->arena, NodeId, n);
    r.wide = arena_array(b->arena, NodeId, n);
    count_users(&r);
    find_all(&r);
    if (b->n_errors || !rebuild_all(&r)) return;
    check_rest(&r);
    if (b->rewrites) note_all(&r);
}
