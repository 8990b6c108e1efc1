/* Finishing a graph: its declarations are checked, values that one block computes several times
 * become one node, `online` blocks get their ops, and what no output needs is dropped. See
 * build.h. */
#include "base/hashids.h"
#include "ir/build/build.h"
#include "ir/loop.h"

#include <stdlib.h>

/* Declarations. */

bool build_check_n_outputs(Builder *b, uint32_t n) {
    if (n > 0) return true;
    build_fail(b, DIAG_MISSING_OUTPUT, (BuildPlace){0}, "graph `%s` has no output", b->graph->name);
    return false;
}

static bool check_name(Builder *b, Str name, bool is_readable) {
    if (!is_readable) build_fail(b, DIAG_BAD_TOKEN, (BuildPlace){0}, "`%s` cannot be a name", name);
    return is_readable;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const Str *)a, *(const Str *)b);
}

/* Whether the names can be read and none is there twice. Sorts them. */
static bool check_names(Builder *b, Str *names, uint32_t n) {
    if (n) qsort(names, n, sizeof *names, compare_names);
    for (uint32_t i = 0; i < n; i++) {
        if (!check_name(b, names[i], graph_is_name(names[i]))) return false;
        if (i == 0 || strcmp(names[i - 1], names[i]) != 0) continue;
        build_fail(b, DIAG_REDEFINITION, (BuildPlace){0}, "`%s` is bound already", names[i]);
        return false;
    }
    return true;
}

/* Whether the output is a param by the name of the param. */
static bool is_named_param(const Graph *graph, const GraphOutput *output) {
    const Node *node = graph_node(graph, output->node);
    return node->op == OP_PARAM && strcmp(node->name, output->name) == 0;
}

/* Of dims, inputs, params and outputs, which share one scope. */
static bool check_value_names(Builder *b) {
    const Graph *graph = b->graph;
    Vec(Str) names = {0};
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        vec_push(b->arena, &names, graph->outputs.data[i].name);
    if (!check_names(b, names.data, names.n)) return false;
    names.n = 0;
    for (uint32_t i = 0; i < dim_n_symbols(b->dims); i++)
        vec_push(b->arena, &names, dim_symbol_info(b->dims, i)->name);
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        vec_push(b->arena, &names, graph->inputs.data[i].name);
    for (uint32_t i = 0; i < graph->params.n; i++)
        vec_push(b->arena, &names, graph->params.data[i].name);
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        if (!is_named_param(graph, &graph->outputs.data[i]))
            vec_push(b->arena, &names, graph->outputs.data[i].name);
    return check_names(b, names.data, names.n);
}

static bool check_declarations(Builder *b) {
    const Graph *graph = b->graph;
    if (!check_name(b, graph->name, graph_is_identifier(graph->name)) ||
        !build_check_n_outputs(b, graph->outputs.n))
        return false;
    for (uint32_t i = 0; i < graph->fixed_kernels.n; i++) {
        Str name = graph->fixed_kernels.data[i].name;
        if (!check_name(b, name, graph_is_identifier(name))) return false;
    }
    return check_value_names(b);
}

/* Values that are the same. */

static bool is_same_per_axis(const AxisAttrs *a, const AxisAttrs *b) {
    return a == b || (memcmp(a->perm, b->perm, sizeof a->perm) == 0 &&
                      memcmp(a->begin, b->begin, sizeof a->begin) == 0 &&
                      memcmp(a->step, b->step, sizeof a->step) == 0 &&
                      memcmp(a->dilation, b->dilation, sizeof a->dilation) == 0);
}

/* Whether the two, whose arguments are alike if their values are, are one value. Numbers are
 * compared by their bits: 0 and -0 differ, and NaN is itself. */
static bool is_same(const Builder *builder, NodeId a, NodeId b) {
    const Graph *graph = builder->graph;
    const Node *one = graph_node(graph, a), *other = graph_node(graph, b);
    const Attrs *of = &one->attrs, *with = &other->attrs;
    return one->op == other->op && one->dtype == other->dtype && one->n_args == other->n_args &&
           graph->kernel_of.data[a] == graph->kernel_of.data[b] &&
           builder->online_of.data[a] == builder->online_of.data[b] &&
           (!one->n_args || memcmp(one->args, other->args, one->n_args * sizeof *one->args) == 0) &&
           shape_equal(&one->shape, &other->shape) &&
           memcmp(&of->number, &with->number, sizeof of->number) == 0 && of->whole == with->whole &&
           of->precision == with->precision && of->axis == with->axis && of->axes == with->axes &&
           of->keep == with->keep && quantize_map_equal(&of->quantize, &with->quantize) &&
           is_same_per_axis(of->per_axis, with->per_axis);
}

/* Equal for what is the same; shapes follow from the rest, mostly. */
static uint64_t hash_of(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    uint64_t number, hash = hash_mix(0, (uint64_t)node->op);
    memcpy(&number, &node->attrs.number, sizeof number);
    for (uint32_t i = 0; i < node->n_args; i++) hash = hash_mix(hash, node->args[i]);
    hash = hash_mix(hash, number);
    hash = hash_mix(hash, node->attrs.axes);
    const DimId *begin = node->attrs.per_axis->begin;
    for (uint32_t k = 0; k < node->shape.rank; k++) hash = hash_mix(hash, begin[k]);
    return hash;
}

typedef struct Table {
    NodeId *slots; /* NODE_NONE when free */
    uint32_t mask;
} Table;

static Table table_new(Arena *arena, uint32_t n_nodes) {
    Table table = {.mask = 15};
    while (table.mask < 2 * n_nodes) table.mask = 2 * table.mask + 1;
    table.slots = arena_array(arena, NodeId, table.mask + (size_t)1);
    for (uint32_t i = 0; i <= table.mask; i++) table.slots[i] = NODE_NONE;
    return table;
}

/* The first node that is the same, perhaps itself. */
static NodeId first_same(Table *table, const Builder *b, NodeId id) {
    uint32_t at = (uint32_t)hash_of(b->graph, id) & table->mask;
    while (table->slots[at] != NODE_NONE && !is_same(b, table->slots[at], id))
        at = (at + 1) & table->mask;
    if (table->slots[at] == NODE_NONE) table->slots[at] = id;
    return table->slots[at];
}

static void join_same(Builder *b) {
    Graph *graph = b->graph;
    uint32_t n = graph->nodes.n;
    NodeId *first = arena_array(b->arena, NodeId, n);
    Table table = table_new(b->arena, n);
    for (NodeId id = 0; id < n; id++) {
        Node *node = graph_node(graph, id);
        for (uint32_t i = 0; i < node->n_args; i++) node->args[i] = first[node->args[i]];
        bool is_itself = graph_is_bound(graph, id) || node->op == OP_LOOP_CARRY;
        first[id] = is_itself ? id : first_same(&table, b, id);
        Node *kept = graph_node(graph, first[id]);
        if (!kept->name) kept->name = node->name;
    }
    build_move_steps(b, first);
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        graph->outputs.data[i].node = first[graph->outputs.data[i].node];
}

/* An `online` block keeps its values apart from those around it until it is rewritten. */
static void join_across_blocks(Builder *b) {
    memset(b->online_of.data, 0, b->online_of.n * sizeof *b->online_of.data);
    join_same(b);
}

/* Dead code. */

NodeFlags build_find_live(Builder *b) {
    const Graph *graph = b->graph;
    NodeFlags live = node_flags_new(b->arena, graph->nodes.n);
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        node_add(live, graph->inputs.data[i].node, BUILD_LIVE);
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        node_add(live, graph->outputs.data[i].node, BUILD_LIVE);
    for (NodeId id = graph->nodes.n; id-- > 0;) {
        const Node *node = graph_node(graph, id);
        bool is_live = node_has(live, id, BUILD_LIVE);
        for (uint32_t k = 0; k < node->n_args && is_live; k++)
            node_add(live, node->args[k], BUILD_LIVE);
    }
    return live;
}

/* Closes the gaps in nodes and kernel_of; entry i of the result is where node i went. */
static NodeId *compact_nodes(Builder *b, NodeFlags live) {
    Graph *graph = b->graph;
    NodeId *moved = arena_array(b->arena, NodeId, graph->nodes.n);
    NodeId n = 0;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        if (!node_has(live, id, BUILD_LIVE)) continue;
        Node *node = graph_node(graph, id);
        for (uint32_t k = 0; k < node->n_args; k++) node->args[k] = moved[node->args[k]];
        graph->nodes.data[n] = *node;
        graph->kernel_of.data[n] = graph->kernel_of.data[id];
        moved[id] = n++;
    }
    graph->nodes.n = graph->kernel_of.n = n;
    return moved;
}

/* Kernels that lost all their nodes go too. */
static void compact_kernels(Builder *b) {
    Graph *graph = b->graph;
    uint32_t n_old = graph->fixed_kernels.n, n = 0;
    uint32_t *moved = arena_array(b->arena, uint32_t, n_old + 1);
    for (NodeId id = 0; id < graph->nodes.n; id++) moved[graph->kernel_of.data[id]] = 1;
    for (uint32_t k = 1; k <= n_old; k++) {
        if (!moved[k]) continue;
        graph->fixed_kernels.data[n] = graph->fixed_kernels.data[k - 1];
        moved[k] = ++n;
    }
    moved[0] = 0;
    for (NodeId id = 0; id < graph->nodes.n; id++)
        graph->kernel_of.data[id] = moved[graph->kernel_of.data[id]];
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        graph->outputs.data[i].copied_by = moved[graph->outputs.data[i].copied_by];
    graph->fixed_kernels.n = n;
    if (n == 0) graph->kernel_of.n = 0;
}

static void drop_dead(Builder *b) {
    Graph *graph = b->graph;
    NodeFlags live = build_find_live(b);
    uint32_t n_params = 0;
    build_drop_steps(b, live, graph->nodes.n);
    for (uint32_t i = 0; i < graph->params.n; i++)
        if (node_has(live, graph->params.data[i].node, BUILD_LIVE))
            graph->params.data[n_params++] = graph->params.data[i];
    graph->params.n = n_params;
    const NodeId *moved = compact_nodes(b, live);
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        graph->inputs.data[i].node = moved[graph->inputs.data[i].node];
    for (uint32_t i = 0; i < n_params; i++)
        graph->params.data[i].node = moved[graph->params.data[i].node];
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        graph->outputs.data[i].node = moved[graph->outputs.data[i].node];
    compact_kernels(b);
}

Graph *build_finish(Builder *b) {
    if (b->n_errors || !check_declarations(b)) return NULL;
    build_list_steps(b);
    join_same(b);
    build_make_online(b);
    if (b->n_errors) return NULL;
    if (b->online_blocks.n || b->rewrites) join_across_blocks(b);
    drop_dead(b);
    const char *problem = loops_problem(b->arena, b->graph);
    if (problem) build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){0}, "%s", problem);
    return problem ? NULL : b->graph;
}
