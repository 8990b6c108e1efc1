/* Values that the source writes several times, in one block of it, become one node. */
#include "front/sema_state.h"

#include <string.h>

/* Whether the two, whose arguments are alike if their values are, are one value. Numbers are
 * compared by their bits: 0 and -0 differ, and NaN is itself. */
static bool is_same(const Graph *graph, NodeId a, NodeId b) {
    const Node *one = graph_node(graph, a), *other = graph_node(graph, b);
    const Attrs *of = &one->attrs, *with = &other->attrs;
    return one->op == other->op && one->dtype == other->dtype && one->n_args == other->n_args &&
           graph->kernel_of.data[a] == graph->kernel_of.data[b] &&
           (!one->n_args || memcmp(one->args, other->args, one->n_args * sizeof *one->args) == 0) &&
           shape_equal(&one->shape, &other->shape) &&
           memcmp(&of->number, &with->number, sizeof of->number) == 0 &&
           of->precision == with->precision && of->axis == with->axis && of->axes == with->axes &&
           of->keep == with->keep && memcmp(of->perm, with->perm, sizeof of->perm) == 0 &&
           memcmp(of->begin, with->begin, sizeof of->begin) == 0 &&
           memcmp(of->step, with->step, sizeof of->step) == 0;
}

/* Equal for what is the same; shapes follow from the rest, mostly. */
static uint64_t hash_of(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    uint64_t hash = hash_bytes(STR_HASH_SEED, &node->op, sizeof node->op);
    if (node->n_args) hash = hash_bytes(hash, node->args, node->n_args * sizeof *node->args);
    hash = hash_bytes(hash, &node->attrs.number, sizeof node->attrs.number);
    hash = hash_bytes(hash, &node->attrs.axes, sizeof node->attrs.axes);
    return hash_bytes(hash, node->attrs.begin, sizeof node->attrs.begin);
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
static NodeId first_same(Table *table, const Graph *graph, NodeId id) {
    uint32_t at = (uint32_t)hash_of(graph, id) & table->mask;
    while (table->slots[at] != NODE_NONE && !is_same(graph, table->slots[at], id))
        at = (at + 1) & table->mask;
    if (table->slots[at] == NODE_NONE) table->slots[at] = id;
    return table->slots[at];
}

void sema_join_same(Sema *sema) {
    Graph *graph = sema->graph;
    uint32_t n = graph->nodes.n;
    NodeId *first = arena_array(sema->arena, NodeId, n);
    Table table = table_new(sema->arena, n);
    for (NodeId id = 0; id < n; id++) {
        Node *node = graph_node(graph, id);
        for (uint32_t i = 0; i < node->n_args; i++) node->args[i] = first[node->args[i]];
        first[id] = graph_is_bound(graph, id) ? id : first_same(&table, graph, id);
        Node *kept = graph_node(graph, first[id]);
        if (!kept->name) kept->name = node->name;
    }
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        graph->outputs.data[i].node = first[graph->outputs.data[i].node];
}
