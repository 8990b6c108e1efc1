/* From a plan to what its pictures show. See picture.h. */
#include "report/picture.h"

#include "base/number.h"

#define NONE UINT32_MAX

typedef struct Builder {
    Arena *arena;
    const Plan *plan;
    const Graph *graph;
    PictureKernel *into;
    uint32_t *read_of;   /* per node: the buffer that this kernel reads its value from, + 1 */
    uint32_t *item_of;   /* per node: its op in this kernel, + 1 */
    uint32_t *read_item; /* per buffer: its item, + 1 */
} Builder;

uint32_t node_line(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    if (!graph->source || !node->span.end) return 0;
    return source_position(graph->source, node->span.begin).line;
}

const char *node_title(Arena *arena, const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    return node->name ? node->name : str_format(arena, "v%u", id);
}

DimId node_bytes(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    return dim_mul_const(graph->dims, shape_n_elems(graph->dims, &node->shape),
                         dtype_bytes(node->dtype));
}

/* `mul 0.125`, `cast f32`, `h = add`. */
static const char *op_label(const Builder *b, NodeId id, const char *suffix) {
    const Node *node = graph_node(b->graph, id);
    const OpInfo *info = op_info(node->op);
    Text text = {.arena = b->arena};
    if (node->name) text_printf(&text, "%s = ", node->name);
    text_puts(&text, info->name);
    if (info->cls == CLASS_CAST) text_printf(&text, " %s", dtype_name(node->dtype));
    for (uint32_t i = 0; i < node->n_args; i++) {
        const Node *arg = graph_node(b->graph, node->args[i]);
        if (arg->op != OP_CONST) continue;
        text_puts(&text, " ");
        number_print(arg->attrs.number, 5, &text);
    }
    text_puts(&text, suffix);
    return text_str(&text);
}

static uint32_t add_item(Builder *b, Item item) {
    vec_push(b->arena, &b->into->items, item);
    return b->into->items.n - 1;
}

static void add_flow(Builder *b, uint32_t from, uint32_t to) {
    for (uint32_t i = 0; i < b->into->flows.n; i++)
        if (b->into->flows.data[i].from == from && b->into->flows.data[i].to == to) return;
    vec_push(b->arena, &b->into->flows, (Flow){from, to});
}

/* Whether another kernel leaves parts of the value here, which this one has to finish. */
static bool is_partial(const Builder *b, uint32_t buffer) {
    for (uint32_t i = 0; i < b->plan->kernels.n; i++) {
        const Kernel *kernel = &b->plan->kernels.data[i];
        if (kernel->segment_axis != NO_AXIS && kernel_stores_to(kernel, buffer)) return true;
    }
    return false;
}

static void note_reads(Builder *b, const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t buffer = kernel->args.data[i];
        if (kernel_stores_to(kernel, buffer)) continue;
        const Buffer *given = &b->plan->buffers.data[buffer];
        b->read_of[given->node] = buffer + 1;
        b->read_item[buffer] = 1 + add_item(b, (Item){ITEM_READ, given->node, buffer, given->name});
    }
}

/* Marks what has to be computed here for `id`. */
static void mark_ops(Builder *b, NodeId id, bool *is_op) {
    if (is_op[id] || graph_node(b->graph, id)->op == OP_CONST) return;
    uint32_t read = b->read_of[id];
    if (read && !is_partial(b, read - 1)) return;
    is_op[id] = true;
    const Node *node = graph_node(b->graph, id);
    for (uint32_t i = 0; i < node->n_args && !read; i++) mark_ops(b, node->args[i], is_op);
}

static uint32_t source_item(const Builder *b, NodeId id) {
    if (b->item_of[id]) return b->item_of[id] - 1;
    return b->read_of[id] ? b->read_item[b->read_of[id] - 1] - 1 : NONE;
}

static void add_ops(Builder *b, const bool *is_op) {
    for (NodeId id = 0; id < b->graph->nodes.n; id++) {
        if (!is_op[id]) continue;
        OpClass cls = op_info(graph_node(b->graph, id)->op)->cls;
        bool is_reduce = cls == CLASS_REDUCE || cls == CLASS_ARGREDUCE;
        const char *suffix = b->read_of[id]                                          ? " of parts"
                             : is_reduce && b->into->kernel->segment_axis != NO_AXIS ? " in parts"
                                                                                     : "";
        uint32_t item = add_item(b, (Item){ITEM_OP, id, NONE, op_label(b, id, suffix)});
        b->item_of[id] = item + 1;
        b->into->n_ops++;
        const Node *node = graph_node(b->graph, id);
        if (b->read_of[id]) add_flow(b, b->read_item[b->read_of[id] - 1] - 1, item);
        for (uint32_t i = 0; i < node->n_args && !b->read_of[id]; i++) {
            uint32_t from = source_item(b, node->args[i]);
            if (from != NONE) add_flow(b, from, item);
        }
    }
}

/* A reader of partial results in another kernel of theirs reads several buffers for one value. */
static void join_partials(Builder *b, const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t buffer = kernel->args.data[i];
        NodeId node = b->plan->buffers.data[buffer].node;
        if (b->read_item[buffer] && b->item_of[node] && b->read_of[node])
            add_flow(b, b->read_item[buffer] - 1, b->item_of[node] - 1);
    }
}

static void add_stores(Builder *b, const Store *stores, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const Buffer *buffer = &b->plan->buffers.data[stores[i].buffer];
        uint32_t item =
            add_item(b, (Item){ITEM_STORE, stores[i].node, stores[i].buffer, buffer->name});
        uint32_t from = source_item(b, stores[i].node);
        if (from != NONE) add_flow(b, from, item);
    }
}

static void mark_stored(Builder *b, const Store *stores, uint32_t n, bool *is_op) {
    for (uint32_t i = 0; i < n; i++) mark_ops(b, stores[i].node, is_op);
}

static void build_kernel(Builder *b, const Kernel *kernel) {
    uint32_t n_nodes = b->graph->nodes.n;
    bool *is_op = arena_array(b->arena, bool, n_nodes);
    memset(b->read_of, 0, n_nodes * sizeof *b->read_of);
    memset(b->item_of, 0, n_nodes * sizeof *b->item_of);
    memset(b->read_item, 0, b->plan->buffers.n * sizeof *b->read_item);
    note_reads(b, kernel);
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        mark_stored(b, kernel->stages.data[i].stores.data, kernel->stages.data[i].stores.n, is_op);
    mark_stored(b, kernel->row_stores.data, kernel->row_stores.n, is_op);
    add_ops(b, is_op);
    join_partials(b, kernel);
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        add_stores(b, kernel->stages.data[i].stores.data, kernel->stages.data[i].stores.n);
    add_stores(b, kernel->row_stores.data, kernel->row_stores.n);
}

Picture *picture_new(Arena *arena, const Plan *plan) {
    Picture *picture = arena_alloc(arena, sizeof *picture);
    Builder b = {.arena = arena, .plan = plan, .graph = plan->graph};
    b.read_of = arena_array(arena, uint32_t, plan->graph->nodes.n);
    b.item_of = arena_array(arena, uint32_t, plan->graph->nodes.n);
    b.read_item = arena_array(arena, uint32_t, plan->buffers.n);
    picture->plan = plan;
    for (uint32_t i = 0; i < plan->kernels.n; i++) {
        PictureKernel made = {.kernel = &plan->kernels.data[i]};
        b.into = &made;
        build_kernel(&b, made.kernel);
        picture->n_items += made.items.n;
        vec_push(arena, &picture->kernels, made);
    }
    for (uint32_t i = 0; i < plan->kernels.n;) {
        PictureLaunch launch = {i, plan_launch(plan, i).n};
        vec_push(arena, &picture->launches, launch);
        i += launch.n;
    }
    return picture;
}

static bool launch_makes(const Picture *picture, const PictureLaunch *launch, uint32_t buffer) {
    for (uint32_t i = 0; i < launch->n; i++)
        if (kernel_stores_to(picture->kernels.data[launch->first + i].kernel, buffer)) return true;
    return false;
}

uint32_t picture_maker(const Picture *picture, uint32_t buffer) {
    for (uint32_t i = 0; i < picture->launches.n; i++)
        if (launch_makes(picture, &picture->launches.data[i], buffer)) return i;
    return NONE;
}

bool picture_is_bound(const Picture *picture, uint32_t buffer) {
    BufferKind kind = picture->plan->buffers.data[buffer].kind;
    return kind == BUFFER_INPUT || kind == BUFFER_PARAM || kind == BUFFER_OUTPUT;
}

uint32_t picture_original(const Picture *picture, uint32_t buffer) {
    const Plan *plan = picture->plan;
    const Buffer *copy = &plan->buffers.data[buffer];
    if (copy->kind != BUFFER_OUTPUT || picture_maker(picture, buffer) != NONE) return NONE;
    for (uint32_t b = 0; b < plan->buffers.n; b++) {
        const Buffer *other = &plan->buffers.data[b];
        bool has_value = other->kind == BUFFER_INPUT || other->kind == BUFFER_PARAM ||
                         picture_maker(picture, b) != NONE;
        if (other->node == copy->node && has_value) return b;
    }
    return NONE;
}

bool launch_reads(const Picture *picture, const PictureLaunch *launch, uint32_t buffer) {
    if (launch_makes(picture, launch, buffer)) return false;
    for (uint32_t i = 0; i < launch->n; i++)
        if (kernel_only_reads(picture->kernels.data[launch->first + i].kernel, buffer)) return true;
    return false;
}

bool launch_stores(const Picture *picture, const PictureLaunch *launch, uint32_t buffer) {
    return launch_makes(picture, launch, buffer) && !picture->plan->buffers.data[buffer].is_on_chip;
}
