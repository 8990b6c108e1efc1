/* Building graphs, and questions about them and about shapes. */
#include "ir/graph.h"

#include <stdlib.h>

const char *precision_name(Precision precision) {
    static const char *const names[PRECISION_COUNT] = {"full", "tf32"};
    return names[precision];
}

Module *module_new(Arena *arena, StrTab *strings, const Source *source) {
    Module *module = arena_array(arena, Module, 1);
    *module =
        (Module){.arena = arena, .strings = strings, .dims = dimtab_new(arena), .source = source};
    return module;
}

Graph *graph_new(Arena *arena, DimTab *dims, const Source *source, Str name) {
    Graph *graph = arena_array(arena, Graph, 1);
    *graph = (Graph){.arena = arena, .dims = dims, .source = source, .name = name};
    return graph;
}

/* Of nodes without attributes per axis. */
static const AxisAttrs no_axis_attrs;

NodeId graph_add(Graph *graph, Node node) {
    const AxisAttrs *per_axis = node.attrs.per_axis;
    node.attrs.per_axis = per_axis && per_axis != &no_axis_attrs
                              ? arena_copy(graph->arena, per_axis, sizeof *per_axis)
                              : &no_axis_attrs;
    node.args = arena_copy(graph->arena, node.args, node.n_args * sizeof *node.args);
    vec_push(graph->arena, &graph->nodes, node);
    return graph->nodes.n - 1;
}

void graph_move_nodes(Graph *graph, Arena *arena) {
    uint32_t n = graph->nodes.n;
    size_t n_args = 0;
    for (NodeId id = 0; id < n; id++) n_args += graph_node(graph, id)->n_args;
    NodeId *args = arena_array(arena, NodeId, n_args);
    graph->nodes.data = arena_copy(arena, graph->nodes.data, n * sizeof *graph->nodes.data);
    graph->nodes.capacity = n;
    graph->arena = arena;
    for (NodeId id = 0; id < n; id++) {
        Node *node = graph_node(graph, id);
        const AxisAttrs *per_axis = node->attrs.per_axis;
        for (uint32_t i = 0; i < node->n_args; i++) args[i] = node->args[i];
        node->args = args;
        args += node->n_args;
        if (per_axis != &no_axis_attrs)
            node->attrs.per_axis = arena_copy(arena, per_axis, sizeof *per_axis);
    }
}

static bool is_letter(char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool graph_is_identifier(const char *name) {
    static const char *const words[] = {"graph", "param", "def",  "return", "kernel",
                                        "true",  "false", "none", "inf",    "nan"};
    size_t n = 0;
    while (is_letter(name[n]) || (n && name[n] >= '0' && name[n] <= '9')) n++;
    if (n == 0 || n > GRAPH_MAX_NAME || name[n]) return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(name, words[i]) == 0) return false;
    return true;
}

bool graph_is_name(const char *name) {
    return graph_is_identifier(name) && !dtype_is_reserved(name);
}

static int compare_nodes(const void *a, const void *b) {
    NodeId x = *(const NodeId *)a, y = *(const NodeId *)b;
    return (x > y) - (x < y);
}

void graph_sort_nodes(NodeId *nodes, uint32_t n) {
    if (n) qsort(nodes, n, sizeof *nodes, compare_nodes);
}

bool shape_equal(const Shape *a, const Shape *b) {
    if (a->rank != b->rank) return false;
    for (uint32_t k = 0; k < a->rank; k++)
        if (a->dims[k] != b->dims[k]) return false;
    return true;
}

DimId shape_n_elems(DimTab *dims, const Shape *shape) {
    DimId total = dim_const(dims, 1);
    for (uint32_t k = 0; k < shape->rank; k++) total = dim_mul(dims, total, shape->dims[k]);
    return total;
}

void shape_print(const DimTab *dims, const Shape *shape, Text *out) {
    text_puts(out, "[");
    for (uint32_t k = 0; k < shape->rank; k++) {
        if (k) text_puts(out, ", ");
        dim_print(dims, shape->dims[k], out);
    }
    text_puts(out, "]");
}

const char *shape_str(const DimTab *dims, Arena *arena, const Shape *shape) {
    Text text = {.arena = arena};
    text_puts(&text, "(");
    for (uint32_t k = 0; k < shape->rank; k++) {
        if (k) text_puts(&text, ", ");
        dim_print(dims, shape->dims[k], &text);
    }
    text_puts(&text, shape->rank == 1 ? ",)" : ")");
    return text_str(&text);
}

const char *shape_type_str(const DimTab *dims, Arena *arena, Dtype dtype, const Shape *shape) {
    Text text = {.arena = arena};
    text_puts(&text, dtype_name(dtype));
    shape_print(dims, shape, &text);
    return text_str(&text);
}

bool shape_broadcast(const DimTab *dims, Shape *shape, const Shape *b) {
    const Shape *longer = shape->rank >= b->rank ? shape : b;
    const Shape *shorter = longer == b ? shape : b;
    uint32_t lead = longer->rank - shorter->rank;
    Shape result = *longer;
    for (uint32_t k = 0; k < shorter->rank; k++) {
        DimId x = longer->dims[lead + k], y = shorter->dims[k];
        if (x == y || dim_equals_const(dims, y, 1)) continue;
        if (!dim_equals_const(dims, x, 1)) return false;
        result.dims[lead + k] = y;
    }
    *shape = result;
    return true;
}

Shape shape_reduced(DimTab *dims, const Shape *arg, uint32_t axes, bool keep) {
    Shape result = {0};
    for (uint32_t k = 0; k < arg->rank; k++) {
        if (!(axes >> k & 1))
            result.dims[result.rank++] = arg->dims[k];
        else if (keep)
            result.dims[result.rank++] = dim_const(dims, 1);
    }
    return result;
}

bool matmul_shape(const DimTab *dims, const Shape *left, const Shape *right, Shape *shape) {
    Shape batch = *left, other = *right;
    batch.rank -= 2;
    other.rank -= 2;
    if (!shape_broadcast(dims, &batch, &other)) return false;
    *shape = (Shape){.rank = batch.rank + 2};
    for (uint32_t k = 0; k < batch.rank; k++) shape->dims[k] = batch.dims[k];
    shape->dims[batch.rank] = left->dims[left->rank - 2];
    shape->dims[batch.rank + 1] = right->dims[right->rank - 1];
    return true;
}

static uint32_t count_bits(uint32_t bits) {
    uint32_t n = 0;
    for (; bits; bits &= bits - 1) n++;
    return n;
}

uint32_t windows_axis(uint32_t axes, uint32_t axis) {
    return axes >> axis ? axis : axis + count_bits(axes);
}

uint32_t windows_tap_axis(uint32_t axes, uint32_t axis) {
    uint32_t end = axis + 1;
    while (axes >> end) end++;
    return end + count_bits(axes & ((1u << axis) - 1));
}

Shape shape_gathered(const Shape *data, const Shape *rows, uint32_t axis) {
    Shape shape = {0};
    for (uint32_t k = 0; k < axis; k++) shape.dims[shape.rank++] = data->dims[k];
    for (uint32_t k = 0; k < rows->rank; k++) shape.dims[shape.rank++] = rows->dims[k];
    for (uint32_t k = axis + 1; k < data->rank; k++) shape.dims[shape.rank++] = data->dims[k];
    return shape;
}

uint64_t graph_param_symbols(const Graph *graph) {
    uint64_t symbols = 0;
    for (uint32_t i = 0; i < graph->params.n; i++) {
        const Shape *shape = &graph_node(graph, graph->params.data[i].node)->shape;
        for (uint32_t k = 0; k < shape->rank; k++) {
            uint32_t symbol;
            if (dim_is_symbol(graph->dims, shape->dims[k], &symbol))
                symbols |= UINT64_C(1) << symbol;
        }
    }
    return symbols;
}

const char *block_word(BlockKind kind) {
    static const char *const words[] = {
        [BLOCK_KERNEL] = "kernel", [BLOCK_MUST] = "must", [BLOCK_NEVER] = "never"};
    return words[kind];
}

int64_t graph_segment_elems(const Graph *graph, NodeId matmul) {
    uint32_t block = graph_block(graph, matmul, BLOCK_MUST);
    for (NodeId id = 0; block && id < graph->nodes.n; id++)
        if (graph->kernel_of.data[id] == block && id != matmul && graph_is_reduction(graph, id))
            return 0;
    return graph_node(graph, matmul)->attrs.segment_elems;
}

bool online_may_split(const DimTab *dims, DimId rows, DimId keys) {
    return dim_lo(dims, rows) <= ONLINE_FEW_ROWS && dim_hi(dims, keys) > ONLINE_PART_KEYS;
}

DimId online_part_keys(DimTab *dims, DimId keys) {
    int64_t most = (int64_t)ONLINE_PART_KEYS * ONLINE_MOST_PARTS, hi = dim_hi(dims, keys);
    DimId times = dim_const(dims, 1);
    for (int64_t n = 1; most < hi; n *= 2, most *= 2) {
        DimId is_more = dim_at_least(dims, keys, most + 1);
        times = dim_add(dims, times, dim_mul_const(dims, is_more, n));
    }
    return dim_mul_const(dims, times, ONLINE_PART_KEYS);
}

bool graph_share_softmax(const Graph *graph, NodeId a, NodeId b) {
    if (!graph_is_online(graph, a) || !graph_is_online(graph, b)) return false;
    const Node *one = graph_node(graph, a), *other = graph_node(graph, b);
    const OpInfo *of = op_info(one->op), *with = op_info(other->op);
    return one->args[0] == other->args[0] && one->args[1] == other->args[1] &&
           of->power == with->power && !of->row != !with->row;
}
