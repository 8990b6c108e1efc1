/* Makes the contents of pictures from a plan. See picture.h. */
#include "report/picture.h"
#include "plan/launch.h"

#include "base/number.h"
#include "ir/node_flags.h"

#define NONE UINT32_MAX

/* The kernel at hand computes the node. */
enum { NODE_COMPUTED };

typedef struct Builder {
    Arena *arena;
    const Plan *plan;
    const Graph *graph;
    const int64_t *dims; /* the dims of the picture */
    PictureKernel *into;
    uint32_t *read_of;   /* per node: the buffer that this kernel reads its value from, + 1 */
    uint32_t *item_of;   /* per node: its op in this kernel, + 1 */
    uint32_t *read_item; /* per buffer: its item, + 1 */
    bool *is_partial;    /* per buffer: it holds partial results, which its reader combines */
    bool *is_laid_out;   /* per buffer: a matmul's operand in another layout */
    NodeFlags flags;     /* NODE_COMPUTED */
    VecU32 ops, read;    /* nodes with item_of or NODE_COMPUTED; nodes with read_of */
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

static DimId node_bytes(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    return dim_mul_const(graph->dims, shape_n_elems(graph->dims, &node->shape),
                         dtype_bytes(node->dtype));
}

/* The label of an op: `mul 0.125`, `cast f32`, `h = add`. */
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

/* The buffer that kernels read for `buffer`; at given dims a copy that is not made is not read. */
static uint32_t buffer_read(const Plan *plan, uint32_t buffer, const int64_t *dims) {
    return dims ? plan_read_buffer(plan, buffer, dims) : buffer;
}

/* Whether a pass of the kernel stores to the buffer. */
static bool stores_elements(const Kernel *kernel, uint32_t buffer) {
    Kernel passes = *kernel;
    passes.row_stores.n = 0;
    return kernel_stores_to(&passes, buffer);
}

static void note_makers(Builder *b) {
    for (uint32_t i = 0; i < b->plan->kernels.n; i++) {
        const Kernel *kernel = &b->plan->kernels.data[i];
        for (uint32_t k = 0; k < kernel->args.n; k++) {
            uint32_t buffer = kernel->args.data[k];
            if (!kernel_stores_to(kernel, buffer)) continue;
            if (kernel->segment_axis != NO_AXIS && !stores_elements(kernel, buffer))
                b->is_partial[buffer] = true;
            if (kernel_lays_out(b->plan, kernel)) b->is_laid_out[buffer] = true;
        }
    }
}

static void note_reads(Builder *b, const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        if (kernel_stores_to(kernel, kernel->args.data[i])) continue;
        uint32_t buffer = buffer_read(b->plan, kernel->args.data[i], b->dims);
        const Buffer *given = &b->plan->buffers.data[buffer];
        NodeId node = given->node;
        if (b->is_laid_out[buffer]) {
            NodeId operand = kernel_operand_in(b->plan, kernel, buffer);
            if (operand != NODE_NONE) node = operand;
        }
        b->read_of[node] = buffer + 1;
        vec_push(b->arena, &b->read, node);
        b->read_item[buffer] = 1 + add_item(b, (Item){ITEM_READ, node, buffer, given->name});
    }
}

/* Marks the nodes that this kernel computes for `id`. */
static void mark_ops(Builder *b, NodeId id) {
    if (node_has(b->flags, id, NODE_COMPUTED) || graph_node(b->graph, id)->op == OP_CONST) return;
    uint32_t read = b->read_of[id];
    if (read && !b->is_partial[read - 1]) return;
    node_add(b->flags, id, NODE_COMPUTED);
    vec_push(b->arena, &b->ops, id);
    const Node *node = graph_node(b->graph, id);
    for (uint32_t i = 0; i < node->n_args && !read; i++) mark_ops(b, node->args[i]);
}

static uint32_t source_item(const Builder *b, NodeId id) {
    if (b->item_of[id]) return b->item_of[id] - 1;
    return b->read_of[id] ? b->read_item[b->read_of[id] - 1] - 1 : NONE;
}

static void add_ops(Builder *b) {
    graph_sort_nodes(b->ops.data, b->ops.n);
    for (uint32_t k = 0; k < b->ops.n; k++) {
        NodeId id = b->ops.data[k];
        bool is_reduce = graph_is_reduction(b->graph, id);
        const char *suffix = b->read_of[id] ? " of segments"
                             : is_reduce && b->into->kernel->segment_axis != NO_AXIS
                                 ? " in segments"
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

/* Joins the buffers of partial results: a kernel that combines them reads several buffers for one
 * value. */
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

/* Adds the stores of a kernel without ops: copies from memory to memory, or literals. */
static void add_copies(Builder *b, const Store *stores, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        NodeId node = stores[i].node;
        uint32_t from = source_item(b, node);
        if (b->item_of[node]) continue;
        const char *label = from == NONE ? op_label(b, node, "") : "copy";
        uint32_t item = add_item(b, (Item){ITEM_OP, node, NONE, label});
        b->into->n_ops++;
        if (from != NONE) add_flow(b, from, item);
        b->item_of[node] = item + 1;
        vec_push(b->arena, &b->ops, node);
    }
}

static void mark_stored(Builder *b, const Store *stores, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) mark_ops(b, stores[i].node);
}

/* A kernel that copies an operand to another layout: the operand, `pack`, the copy. */
static void build_layout(Builder *b, const Kernel *kernel) {
    NodeId operand = plan_laid_out(b->plan, kernel);
    Store store = kernel->stages.data[0].stores.data[0];
    mark_ops(b, operand);
    add_ops(b);
    uint32_t pack = add_item(b, (Item){ITEM_OP, operand, NONE, "pack"});
    b->into->n_ops++;
    uint32_t from = source_item(b, operand);
    if (from != NONE) add_flow(b, from, pack);
    b->item_of[operand] = pack + 1;
    vec_push(b->arena, &b->ops, operand);
    store.node = operand;
    add_stores(b, &store, 1);
}

static void build_kernel(Builder *b, const Kernel *kernel) {
    note_reads(b, kernel);
    if (kernel_lays_out(b->plan, kernel)) {
        build_layout(b, kernel);
        return;
    }
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        mark_stored(b, kernel->stages.data[i].stores.data, kernel->stages.data[i].stores.n);
    mark_stored(b, kernel->row_stores.data, kernel->row_stores.n);
    add_ops(b);
    join_partials(b, kernel);
    bool is_copy = b->into->n_ops == 0;
    for (uint32_t i = 0; i < kernel->stages.n && is_copy; i++)
        add_copies(b, kernel->stages.data[i].stores.data, kernel->stages.data[i].stores.n);
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        add_stores(b, kernel->stages.data[i].stores.data, kernel->stages.data[i].stores.n);
    add_stores(b, kernel->row_stores.data, kernel->row_stores.n);
}

/* Clears the tables that the kernel filled. */
static void clear(Builder *b, const Kernel *kernel) {
    for (uint32_t i = 0; i < b->ops.n; i++) {
        node_drop(b->flags, b->ops.data[i], NODE_COMPUTED);
        b->item_of[b->ops.data[i]] = 0;
    }
    for (uint32_t i = 0; i < b->read.n; i++) b->read_of[b->read.data[i]] = 0;
    for (uint32_t i = 0; i < kernel->args.n; i++) b->read_item[kernel->args.data[i]] = 0;
    b->ops.n = b->read.n = 0;
}

static bool is_shown(const Plan *plan, const Kernel *kernel, const int64_t *dims) {
    return dims ? kernel_starts(plan, kernel, dims) : !kernel_is_alternative(kernel);
}

static void add_launches(Arena *arena, Picture *picture) {
    const Plan *plan = picture->plan;
    for (uint32_t i = 0; i < plan->launches.n; i++) {
        uint32_t first = plan->launches.data[i].first, n = plan->launches.data[i].n;
        uint32_t *kernels = arena_array(arena, uint32_t, n);
        PictureLaunch launch = {kernels, 0, picture->n_launches++};
        for (uint32_t k = first; k < first + n; k++)
            if (is_shown(plan, &plan->kernels.data[k], picture->dims)) kernels[launch.n++] = k;
        if (launch.n) {
            vec_push(arena, &picture->launches, launch);
            picture->n_init += plan->kernels.data[first].is_init;
        }
    }
}

Picture *picture_new(Arena *arena, const Plan *plan, const int64_t *dims) {
    Picture *picture = arena_alloc(arena, sizeof *picture);
    Builder b = {.arena = arena, .plan = plan, .graph = plan->graph, .dims = dims};
    b.read_of = arena_array(arena, uint32_t, plan->graph->nodes.n);
    b.item_of = arena_array(arena, uint32_t, plan->graph->nodes.n);
    b.read_item = arena_array(arena, uint32_t, plan->buffers.n);
    b.flags = node_flags_new(arena, plan->graph->nodes.n);
    b.is_partial = arena_array(arena, bool, plan->buffers.n);
    b.is_laid_out = arena_array(arena, bool, plan->buffers.n);
    note_makers(&b);
    picture->plan = plan;
    picture->dims = dims;
    for (uint32_t i = 0; i < plan->kernels.n; i++) {
        PictureKernel made = {.kernel = &plan->kernels.data[i]};
        b.into = &made;
        if (is_shown(plan, made.kernel, dims)) {
            build_kernel(&b, made.kernel);
            clear(&b, made.kernel);
        }
        picture->n_items += made.items.n;
        vec_push(arena, &picture->kernels, made);
    }
    add_launches(arena, picture);
    return picture;
}

static const Kernel *kernel_shown(const Picture *picture, const PictureLaunch *launch, uint32_t i) {
    return &picture->plan->kernels.data[launch->kernels[i]];
}

static bool launch_makes(const Picture *picture, const PictureLaunch *launch, uint32_t buffer) {
    for (uint32_t i = 0; i < launch->n; i++)
        if (kernel_stores_to(kernel_shown(picture, launch, i), buffer)) return true;
    return false;
}

uint32_t picture_maker(const Picture *picture, uint32_t buffer, uint32_t from) {
    for (uint32_t i = from; i < picture->launches.n; i++)
        if (launch_makes(picture, &picture->launches.data[i], buffer)) return i;
    return NONE;
}

const char *picture_launch_name(Arena *arena, const Picture *picture, uint32_t launch) {
    if (launch < picture->n_init) return "init";
    return str_format(arena, "%u", launch - picture->n_init + 1);
}

bool picture_is_bound(const Picture *picture, uint32_t buffer) {
    BufferKind kind = picture->plan->buffers.data[buffer].kind;
    return kind == BUFFER_INPUT || kind == BUFFER_PARAM || kind == BUFFER_OUTPUT;
}

uint32_t picture_original(const Picture *picture, uint32_t buffer) {
    const Plan *plan = picture->plan;
    const Buffer *copy = &plan->buffers.data[buffer];
    if (copy->kind != BUFFER_OUTPUT || picture_maker(picture, buffer, 0) != NONE) return NONE;
    for (uint32_t b = 0; b < plan->buffers.n; b++) {
        const Buffer *other = &plan->buffers.data[b];
        bool has_value = other->kind == BUFFER_INPUT || other->kind == BUFFER_PARAM ||
                         picture_maker(picture, b, 0) != NONE;
        if (other->node == copy->node && has_value) return b;
    }
    return NONE;
}

typedef struct PieceBytes {
    const Graph *graph;
    uint32_t buffer;
    DimId bytes; /* of slices */
} PieceBytes;

static void add_piece(void *user, const Store *store) {
    PieceBytes *pieces = user;
    if (store->buffer != pieces->buffer || !store->piece || pieces->bytes == DIM_NONE) return;
    DimId own = node_bytes(pieces->graph, store->node);
    pieces->bytes = own == DIM_NONE ? DIM_NONE : dim_add(pieces->graph->dims, pieces->bytes, own);
}

DimId picture_stored_bytes(const Picture *picture, const PictureLaunch *launch, uint32_t buffer) {
    const Graph *graph = picture->plan->graph;
    DimId none = dim_const(graph->dims, 0);
    PieceBytes pieces = {graph, buffer, none};
    for (uint32_t i = 0; i < launch->n; i++)
        kernel_each_store(kernel_shown(picture, launch, i), add_piece, &pieces);
    return pieces.bytes == none ? buffer_bytes(graph->dims, &picture->plan->buffers.data[buffer])
                                : pieces.bytes;
}

bool picture_takes(const Picture *picture, uint32_t k, uint32_t buffer) {
    const Kernel *kernel = &picture->plan->kernels.data[k];
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t arg = kernel->args.data[i];
        if (buffer_read(picture->plan, arg, picture->dims) == buffer &&
            kernel_only_reads(kernel, arg))
            return true;
    }
    return false;
}

bool launch_reads(const Picture *picture, const PictureLaunch *launch, uint32_t buffer) {
    if (launch_makes(picture, launch, buffer)) return false;
    for (uint32_t i = 0; i < launch->n; i++)
        if (picture_takes(picture, launch->kernels[i], buffer)) return true;
    return false;
}

bool launch_stores(const Picture *picture, const PictureLaunch *launch, uint32_t buffer) {
    return launch_makes(picture, launch, buffer) &&
           picture->plan->buffers.data[buffer].space == BUFFER_GLOBAL;
}
