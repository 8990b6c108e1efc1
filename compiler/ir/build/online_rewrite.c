/* The pass that `online` blocks ask for: a softmax and the product that contracts its axis become
 * one op. It looks at the graph and its extents alone, so that it gives the same for every target.
 * See build.h. */
#include "ir/build/online_find.h"

#include <string.h>

/* What becomes of a node. */
typedef enum {
    NODE_COPIED,
    NODE_ONLINE,  /* a matmul: the op takes its place */
    NODE_DIVIDED, /* the op's result is divided already: the dividend takes its place */
} Change;

typedef struct Rewriter {
    Builder *b;
    uint32_t n;
    Node *nodes;            /* as they were, joined */
    const uint32_t *blocks; /* kernel_of, as it was */
    const uint32_t *online; /* online_of, as it was */
    uint32_t *n_users;
    Change *change;
    OnlineFound *found; /* per node that is NODE_ONLINE */
    uint32_t *arg;      /* per node that is NODE_DIVIDED: its dividend */
    NodeId *moved;      /* per node: what took its place */
} Rewriter;

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

/* Whether the block may change all that leads from the matmul to the quotient. */
static bool is_private(const Rewriter *r, NodeId quotient, uint32_t arg, NodeId matmul) {
    NodeId id = r->nodes[quotient].args[arg];
    for (; id != matmul; id = r->nodes[id].args[0])
        if (r->n_users[id] > 1) return false;
    return r->n_users[matmul] == 1 && r->online[matmul];
}

static bool keeps_shape(const Rewriter *r, NodeId id, uint32_t arg) {
    return shape_equal(&r->nodes[id].shape, &r->nodes[r->nodes[id].args[arg]].shape);
}

static void find_quotient(Rewriter *r, NodeId id, OnlineReason *reasons) {
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
        r->found[matmul] = found;
        r->arg[id] = arg;
        reasons[matmul].message = NULL;
    } else if (reason.message) {
        reasons[matmul] = reason;
    }
}

/* Reports what cannot become an op, and blocks that have nothing that can. */
static void report_all(Rewriter *r, const OnlineReason *reasons) {
    Builder *b = r->b;
    bool *has_any = arena_array(b->arena, bool, b->online_blocks.n + (size_t)1);
    for (NodeId id = 0; id < r->n; id++) {
        if (r->change[id] == NODE_COPIED && !reasons[id].message) continue;
        has_any[r->online[id]] = true;
        if (r->change[id] == NODE_COPIED)
            report(b, r->nodes[id].span, reasons[id].message, reasons[id].help);
    }
    for (uint32_t i = 0; i < b->online_blocks.n; i++)
        if (!has_any[i + 1])
            report(b, b->online_blocks.data[i],
                   "the `online` block has no softmax whose axis a product contracts",
                   "Put the softmax and the matmul of its result into the block.");
}

/* Finds what the blocks have. */
static void find_all(Rewriter *r) {
    const Graph *graph = r->b->graph;
    OnlineReason *reasons = arena_array(r->b->arena, OnlineReason, r->n + (size_t)1);
    for (NodeId id = 0; id < r->n; id++) {
        if (!r->online[id]) continue;
        if (!graph_is_matmul(graph, id))
            find_quotient(r, id, reasons);
        else if (online_find_product(r->b, id, &r->found[id], &reasons[id]))
            r->change[id] = NODE_ONLINE;
    }
    report_all(r, reasons);
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
static bool is_kept(const Rewriter *r, NodeId id, bool is_exponent) {
    OpId op = r->nodes[id].op;
    if (op_info(op)->cls == CLASS_VIEW) return true;
    return is_exponent && (op == OP_MUL || op == OP_DIV || op == OP_CAST);
}

/* Does to the value what the path does, from its end on. */
static NodeId replay(Rewriter *r, const OnlinePath *path, bool is_exponent, NodeId value) {
    for (uint32_t i = path->n; i-- > 0;) {
        NodeId id = path->ops[i];
        const Shape *shape = &r->nodes[id].shape;
        if (is_kept(r, id, is_exponent))
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

/* Weights on the right: the transposed product of transposed values. */
static NodeId make_online(Rewriter *r, NodeId id) {
    Builder *b = r->b;
    const OnlineFound *found = &r->found[id];
    const Node *matmul = &r->nodes[id];
    NodeId values = r->moved[matmul->args[1 - found->side]];
    NodeId scores = replay(r, &found->exponent, true, r->moved[found->scores]);
    scores = replay(r, &found->weights, false, scores);
    const Operand operand = operand_tensor(scores);
    scores = build_cast(b, &operand, dtype_compute(graph_node(b->graph, values)->dtype));
    if (found->side) scores = swap_last(b, scores), values = swap_last(b, values);
    NodeId result = build_online(b, found->op, scores, values, &matmul->dtype);
    return found->side && result != NODE_NONE ? swap_last(b, result) : result;
}

static NodeId rebuild(Rewriter *r, NodeId id) {
    const Node *node = &r->nodes[id];
    Builder *b = r->b;
    b->span = node->span;
    b->call = node->call;
    b->block = r->blocks[id];
    b->online = r->online[id];
    if (r->change[id] == NODE_COPIED) return copy(r, id, 0, NODE_NONE);
    NodeId made =
        r->change[id] == NODE_ONLINE ? make_online(r, id) : r->moved[node->args[r->arg[id]]];
    if (node->name && made != NODE_NONE) graph_node(b->graph, made)->name = node->name;
    return made;
}

static bool rebuild_all(Rewriter *r) {
    Graph *graph = r->b->graph;
    memset(&graph->nodes, 0, sizeof graph->nodes);
    memset(&graph->kernel_of, 0, sizeof graph->kernel_of);
    memset(&r->b->online_of, 0, sizeof r->b->online_of);
    for (NodeId id = 0; id < r->n; id++) {
        r->moved[id] = rebuild(r, id);
        if (r->moved[id] == NODE_NONE) return false;
    }
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        graph->inputs.data[i].node = r->moved[graph->inputs.data[i].node];
    for (uint32_t i = 0; i < graph->params.n; i++)
        graph->params.data[i].node = r->moved[graph->params.data[i].node];
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        graph->outputs.data[i].node = r->moved[graph->outputs.data[i].node];
    return true;
}

/* What is left. */

/* Reports softmaxes of blocks that something else than a product reads. */
static void check_rest(Rewriter *r) {
    Builder *b = r->b;
    NodeFlags live = build_find_live(b);
    for (NodeId id = 0; id < b->graph->nodes.n; id++)
        if (b->online_of.data[id] && node_has(live, id, BUILD_LIVE) &&
            online_sums_powers(b->graph, id))
            report(b, graph_node(b->graph, id)->span,
                   "the weights of a softmax in an `online` block have another reader than a "
                   "product along their axis",
                   "Compute them again outside the block, for that reader.");
}

void build_make_online(Builder *b) {
    Graph *graph = b->graph;
    uint32_t n = graph->nodes.n;
    if (!b->online_blocks.n) return;
    Rewriter r = {.b = b,
                  .n = n,
                  .nodes = arena_copy(b->arena, graph->nodes.data, n * sizeof *r.nodes),
                  .blocks = graph->kernel_of.data,
                  .online = b->online_of.data};
    r.n_users = arena_array(b->arena, uint32_t, n);
    r.change = arena_array(b->arena, Change, n);
    r.found = arena_array(b->arena, OnlineFound, n);
    r.arg = arena_array(b->arena, uint32_t, n);
    r.moved = arena_array(b->arena, NodeId, n);
    count_users(&r);
    find_all(&r);
    if (!b->n_errors && rebuild_all(&r)) check_rest(&r);
}
