/* Plans: their buffers, what a kernel moves of them, and init kernels. */
#include "plan/plan.h"

static const ReasonInfo reasons[REASON_COUNT] = {
    [REASON_NONE] = {"none", "", "", ""},
#define REASON(sym, id, text, step, advice) [REASON_##sym] = {id, text, step, advice},
#include "plan/reasons.def"
};

const ReasonInfo *reason_info(ReasonId id) {
    return &reasons[id];
}

/* `items` and `moved` have an element per axis and do not overlap. */
static void move_to_end(const uint32_t *items, uint32_t rank, uint32_t axis, uint32_t *moved) {
    for (uint32_t k = 0, at = 0; k < rank; k++)
        if (k != axis) moved[at++] = items[k];
    if (rank) moved[rank - 1] = items[axis];
}

void buffer_put_inside(Buffer *buffer, uint32_t axis) {
    Shape shape = buffer->shape;
    move_to_end(shape.dims, shape.rank, axis, buffer->shape.dims);
    buffer->inner = axis + 1;
}

void buffer_order_coords(const Buffer *buffer, const IndexId *coords, IndexId *in_memory) {
    uint32_t rank = buffer->shape.rank, axis = buffer->inner ? buffer->inner - 1 : rank - 1;
    move_to_end(coords, rank, axis, in_memory);
}

bool buffer_is_alike(const Buffer *a, const Buffer *b) {
    return a->kind == b->kind && a->space == b->space && a->dtype == b->dtype &&
           a->inner == b->inner && a->pitch == b->pitch && !a->choice && !b->choice &&
           shape_equal(&a->shape, &b->shape);
}

Shape buffer_layout(const Buffer *buffer) {
    Shape layout = buffer->shape;
    if (buffer->pitch) layout.dims[layout.rank - 1] = buffer->pitch;
    return layout;
}

static DimId bytes_of(DimTab *dims, const Shape *shape, Dtype dtype) {
    return dim_mul_const(dims, shape_n_elems(dims, shape), dtype_bytes(dtype));
}

DimId buffer_bytes(DimTab *dims, const Buffer *buffer) {
    Shape layout = buffer_layout(buffer);
    return bytes_of(dims, &layout, buffer->dtype);
}

/* The buffer whose bytes count as traffic. For readers, a copy counts as its source. For the copy's
 * kernel, which may have nothing to do, the source counts as no more than the copy. */
static const Buffer *counted_buffer(const Plan *plan, const Kernel *kernel, uint32_t buffer) {
    const Buffer *of = &plan->buffers.data[buffer];
    if (of->choice && !kernel_stores_to(kernel, buffer)) return &plan->buffers.data[of->source];
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        const Buffer *other = &plan->buffers.data[kernel->args.data[i]];
        bool is_copy = other->choice && other->source == buffer;
        if (is_copy && kernel_stores_to(kernel, kernel->args.data[i])) return other;
    }
    return of;
}

static bool is_taken(const Plan *plan, const Choice *choice, Version version, const int64_t *dims) {
    const PredicateAt at = {.dims = plan->graph->dims, .values = dims};
    return !choice || choice_taken(choice, &at) == version;
}

bool kernel_starts(const Plan *plan, const Kernel *kernel, const int64_t *dims) {
    if (!is_taken(plan, kernel->choice, kernel->version, dims)) return false;
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        const Buffer *buffer = &plan->buffers.data[kernel->args.data[i]];
        if (kernel_stores_to(kernel, kernel->args.data[i]) &&
            !is_taken(plan, buffer->choice, VERSION_ALTERNATIVE, dims))
            return false;
    }
    return true;
}

uint32_t plan_read_buffer(const Plan *plan, uint32_t buffer, const int64_t *dims) {
    const Buffer *of = &plan->buffers.data[buffer];
    return is_taken(plan, of->choice, VERSION_ALTERNATIVE, dims) ? buffer : of->source;
}

uint32_t plan_n_alternatives(const Plan *plan, const Choice *choice) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        n += kernel->choice == choice && kernel_is_alternative(kernel);
    }
    return n;
}

typedef struct PieceBytes {
    const Plan *plan;
    uint32_t buffer;
    bool any;
    DimId bytes;
} PieceBytes;

static void add_piece(void *user, const Store *store) {
    PieceBytes *sum = user;
    DimTab *dims = sum->plan->graph->dims;
    const Node *node = graph_node(sum->plan->graph, store->node);
    if (store->buffer != sum->buffer || !store->piece) return;
    sum->any = true;
    DimId own = bytes_of(dims, &node->shape, node->dtype);
    sum->bytes = sum->bytes && own ? dim_add(dims, sum->bytes, own) : DIM_NONE;
}

DimId kernel_buffer_bytes(const Plan *plan, const Kernel *kernel, uint32_t buffer) {
    PieceBytes pieces = {.plan = plan, .buffer = buffer, .bytes = dim_const(plan->graph->dims, 0)};
    kernel_each_store(kernel, add_piece, &pieces);
    if (pieces.any) return pieces.bytes;
    bool is_stored = kernel_stores_to(kernel, buffer);
    IndexTab *tab = scalartab_indices(kernel->scalars);
    DimTab *dims = plan->graph->dims;
    const Buffer *of = counted_buffer(plan, kernel, buffer);
    DimId all = bytes_of(dims, &of->shape, of->dtype), read = dim_const(dims, 0);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *load = scalar_get(kernel->scalars, id);
        if (load->kind != SCALAR_LOAD || load->buffer != buffer) continue;
        DimId n = dim_const(dims, dtype_bytes(of->dtype));
        uint32_t axes = index_axes(tab, load->index);
        for (uint32_t k = 0; k < index_n_axes(tab); k++)
            if (axes >> k & 1) n = dim_mul(dims, n, index_axis_extent(tab, k));
        read = n == DIM_NONE ? n : dim_add(dims, read, n);
        if (read == DIM_NONE) return all;
    }
    bool is_known = !is_stored && !dim_equals_const(dims, read, 0) && all != DIM_NONE;
    return is_known && dim_always_le(dims, read, all) ? read : all;
}

DimId kernel_bytes(const Plan *plan, const Kernel *kernel) {
    DimTab *dims = plan->graph->dims;
    DimId total = dim_const(dims, 0);
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        const Buffer *buffer = &plan->buffers.data[kernel->args.data[i]];
        if (buffer->space == BUFFER_GLOBAL)
            total = dim_add(dims, total, kernel_buffer_bytes(plan, kernel, kernel->args.data[i]));
    }
    return total;
}

NodeId store_holds(const Plan *plan, const Store *store) {
    return store->piece ? plan->buffers.data[store->buffer].node : store->node;
}

uint64_t kernel_args_read_once(const Plan *plan, const Kernel *kernel) {
    const ScalarTab *scalars = kernel->scalars;
    DimTab *dims = indextab_dims(scalartab_indices(scalars));
    DimId places = dim_mul(dims, kernel_n_rows(kernel), kernel_n_reduced(kernel));
    uint64_t args = 0;
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t buffer = kernel->args.data[i], n_loads = 0;
        for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
            const Scalar *s = scalar_get(scalars, id);
            n_loads += s->kind == SCALAR_LOAD && s->buffer == buffer;
        }
        bool is_once = n_loads == 1 && places &&
                       shape_n_elems(dims, &plan->buffers.data[buffer].shape) == places;
        if (is_once && kernel_only_reads(kernel, buffer)) args |= (uint64_t)1 << i;
    }
    return args;
}

/* The ordinal of the next buffer of the kind: they ascend. */
static uint32_t next_ordinal(const Plan *plan, BufferKind kind) {
    for (uint32_t i = plan->buffers.n; i-- > 0;)
        if (plan->buffers.data[i].kind == kind) return plan->buffers.data[i].ordinal + 1;
    return 0;
}

uint32_t plan_n_buffers(const Plan *plan, BufferKind kind) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->buffers.n; i++) n += plan->buffers.data[i].kind == kind;
    return n;
}

VecU32 *plan_users(Arena *arena, const Plan *plan) {
    VecU32 *users = arena_array(arena, VecU32, plan->buffers.n);
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        for (uint32_t i = 0; i < kernel->args.n; i++)
            vec_push(arena, &users[kernel->args.data[i]], k);
    }
    return users;
}

/* `ordinal` is set. */
static uint32_t add_buffer(Arena *arena, Plan *plan, Buffer buffer) {
    buffer.offset_bytes = dim_const(plan->graph->dims, 0);
    vec_push(arena, &plan->buffers, buffer);
    return plan->buffers.n - 1;
}

uint32_t plan_add_buffer(Arena *arena, Plan *plan, Buffer buffer) {
    buffer.ordinal = next_ordinal(plan, buffer.kind);
    return add_buffer(arena, plan, buffer);
}

ScalarId kernel_reduce(Arena *arena, Kernel *kernel, NodeId node, OpId op, ScalarId value) {
    uint32_t slot = kernel->reduces.n;
    Dtype dtype = scalar_get(kernel->scalars, value)->dtype;
    Reduce reduce = {.node = node,
                     .combine = op_info(op)->combine,
                     .acc = dtype,
                     .identity = dtype_round(dtype, op_info(op)->identity),
                     .value = value,
                     .divisor = DIM_NONE,
                     .result = dtype};
    vec_push(arena, &kernel->reduces, reduce);
    vec_push(arena, &kernel->stages.data[kernel->stages.n - 1].reduces, slot);
    return scalar_stage(kernel->scalars, dtype, slot, kernel_parallel_axes(kernel));
}

uint32_t plan_store_rows(Arena *arena, Plan *plan, Kernel *kernel, NodeId node, ScalarId value) {
    Shape shape = {.rank = 1, .dims = {kernel_n_rows(kernel)}};
    Dtype dtype = scalar_get(kernel->scalars, value)->dtype;
    Store store = {.buffer = plan_add_temp(arena, plan, node, dtype, shape), .value = value};
    store.node = node;
    store.address = index_row_major(scalartab_indices(kernel->scalars), kernel->n_parallel);
    vec_push(arena, &kernel->row_stores, store);
    return store.buffer;
}

static void count_copied(void *user, const Store *store) {
    uint32_t *n_users = user;
    if (store->copied) n_users[store->copied - 1]++;
}

uint32_t *plan_count_users(Arena *arena, const Plan *plan) {
    uint32_t *n_users = arena_array(arena, uint32_t, plan->buffers.n);
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        for (uint32_t i = 0; i < kernel->args.n; i++) n_users[kernel->args.data[i]]++;
        kernel_each_store(kernel, count_copied, n_users);
    }
    return n_users;
}

uint32_t plan_add_temp(Arena *arena, Plan *plan, NodeId node, Dtype dtype, Shape shape) {
    uint32_t ordinal = next_ordinal(plan, BUFFER_TEMP);
    Buffer buffer = {.kind = BUFFER_TEMP,
                     .ordinal = ordinal,
                     .dtype = dtype,
                     .shape = shape,
                     .node = node,
                     .name = str_format(arena, "t%u", ordinal)};
    return add_buffer(arena, plan, buffer);
}

uint32_t plan_n_init(const Plan *plan) {
    uint32_t n = 0;
    while (n < plan->kernels.n && plan->kernels.data[n].is_init) n++;
    return n;
}

bool kernel_lays_out(const Plan *plan, const Kernel *kernel) {
    if (kernel->nodes.n || kernel->stages.n == 0 || kernel->stages.data[0].stores.n == 0)
        return false;
    BufferKind kind = plan->buffers.data[kernel->stages.data[0].stores.data[0].buffer].kind;
    return kind == BUFFER_PREPARED || kind == BUFFER_TEMP;
}

NodeId kernel_operand_in(const Plan *plan, const Kernel *kernel, uint32_t buffer) {
    if (!form_info(kernel->form)->multiplies || kernel->reduces.n == 0) return NODE_NONE;
    const Reduce *reduce = &kernel->reduces.data[0];
    const ScalarId operands[2] = {reduce->lhs, reduce->rhs};
    for (uint32_t side = 0; side < 2; side++) {
        const Scalar *s = scalar_get(kernel->scalars, gemm_unrounded(kernel, operands[side]));
        if (s->kind == SCALAR_LOAD && s->buffer == buffer)
            return graph_node(plan->graph, reduce->node)->args[side];
    }
    return NODE_NONE;
}

NodeId plan_laid_out(const Plan *plan, const Kernel *layout) {
    uint32_t buffer = layout->stages.data[0].stores.data[0].buffer;
    for (uint32_t k = plan_n_init(plan); k < plan->kernels.n; k++) {
        NodeId operand = kernel_operand_in(plan, &plan->kernels.data[k], buffer);
        if (operand != NODE_NONE) return operand;
    }
    return layout->stages.data[0].stores.data[0].node;
}

DimId plan_prepared_bytes(const Plan *plan) {
    DimTab *dims = plan->graph->dims;
    DimId total = dim_const(dims, 0);
    for (uint32_t i = 0; i < plan->buffers.n; i++)
        if (plan->buffers.data[i].kind == BUFFER_PREPARED)
            total = dim_add(dims, total, buffer_bytes(dims, &plan->buffers.data[i]));
    return total;
}

uint64_t kernel_own_args(const Plan *plan, const Kernel *kernel) {
    uint64_t args = 0;
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        const Buffer *buffer = &plan->buffers.data[kernel->args.data[i]];
        bool is_bound = buffer->kind == BUFFER_INPUT || buffer->kind == BUFFER_OUTPUT;
        bool may_be_source = buffer->choice && !kernel_stores_to(kernel, kernel->args.data[i]);
        DimId begin = kernel_arg_begin(kernel, i);
        bool is_aligned = !begin || dim_multiple(plan->graph->dims, begin) *
                                            dtype_bytes(buffer->dtype) % WORKSPACE_ALIGN_BYTES ==
                                        0;
        if (!is_bound && !may_be_source && is_aligned) args |= (uint64_t)1 << i;
    }
    return args;
}

bool kernel_arg_is_given(const Plan *plan, const Kernel *kernel, uint32_t arg) {
    BufferKind kind = plan->buffers.data[kernel->args.data[arg]].kind;
    return kind == BUFFER_PARAM || (kind == BUFFER_PREPARED && !kernel->is_init);
}

void plan_move_init(Arena *arena, Plan *plan) {
    uint32_t n = 0, n_kernels = plan->kernels.n;
    Kernel *ordered = arena_array(arena, Kernel, n_kernels);
    for (int run = 0; run < 2; run++)
        for (uint32_t i = 0; i < n_kernels; i++)
            if (plan->kernels.data[i].is_init == (run == 0)) ordered[n++] = plan->kernels.data[i];
    for (uint32_t i = 0; i < n_kernels; i++) plan->kernels.data[i] = ordered[i];
}

void plan_order_init(Arena *arena, Plan *plan) {
    uint32_t n_of[2] = {0, 0};
    plan_move_init(arena, plan);
    for (uint32_t i = 0; i < plan->buffers.n; i++) {
        Buffer *buffer = &plan->buffers.data[i];
        if (buffer->kind != BUFFER_TEMP && buffer->kind != BUFFER_PREPARED) continue;
        bool is_temp = buffer->kind == BUFFER_TEMP;
        buffer->ordinal = n_of[is_temp]++;
        buffer->name = str_format(arena, "%s%u", is_temp ? "t" : "p", buffer->ordinal);
    }
}

/* Updates in place. */

typedef struct Updates {
    uint32_t buffer, old; /* the buffer that was copied to it, plus 1; 0: none */
} Updates;

static void note_copied(void *user, const Store *store) {
    Updates *updates = user;
    if (store->buffer == updates->buffer && store->copied) updates->old = store->copied;
}

typedef struct Copies {
    uint32_t of;
    bool is_any;
} Copies;

static void note_copy(void *user, const Store *store) {
    Copies *copies = user;
    copies->is_any = copies->is_any || store->copied == copies->of + 1;
}

uint32_t plan_input_in_place(const Plan *plan, uint32_t output) {
    Updates updates = {.buffer = output};
    uint32_t k = 0;
    if (plan->buffers.data[output].kind != BUFFER_OUTPUT) return NO_BUFFER;
    while (k < plan->kernels.n && !updates.old)
        kernel_each_store(&plan->kernels.data[k++], note_copied, &updates);
    if (!updates.old || plan->buffers.data[updates.old - 1].kind != BUFFER_INPUT) return NO_BUFFER;
    uint32_t input = updates.old - 1;
    if (kernel_find_arg(&plan->kernels.data[k - 1], input) != NO_ARG) return NO_BUFFER;
    for (; k < plan->kernels.n; k++) {
        Copies copies = {.of = input};
        kernel_each_store(&plan->kernels.data[k], note_copy, &copies);
        if (copies.is_any || kernel_find_arg(&plan->kernels.data[k], input) != NO_ARG)
            return NO_BUFFER;
    }
    return input;
}
