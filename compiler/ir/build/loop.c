/* Loops that are repeated at run time, and the numbers of their steps. See build.h and
 * ir/loop.h. */
#include "ir/build/build.h"

NodeId build_loop_carry(Builder *b, NodeId x) {
    if (x == NODE_NONE) return NODE_NONE;
    const Node *from = graph_node(b->graph, x);
    Node node = {
        .op = OP_LOOP_CARRY, .dtype = from->dtype, .shape = from->shape, .n_args = 1, .args = &x};
    return build_checked_node(b, node);
}

/* What is carried has one type in all steps. */
static bool check_carried(Builder *b, uint32_t i, NodeId carry, NodeId next) {
    const Node *from = graph_node(b->graph, carry), *to = graph_node(b->graph, next);
    if (from->op != OP_LOOP_CARRY) {
        build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){1, i + 1}, "this is no `loop_carry`");
        return false;
    }
    if (from->dtype == to->dtype && shape_equal(&from->shape, &to->shape)) return true;
    build_fail(b, DIAG_SHAPE_MISMATCH, (BuildPlace){2, i + 1},
               "carried value %u is %s before a step and %s after it", i + 1,
               shape_type_str(b->dims, b->arena, from->dtype, &from->shape),
               shape_type_str(b->dims, b->arena, to->dtype, &to->shape))
        ->help = "Where the number of steps is a dim, every step is the same: cast the value, or "
                 "give it its last shape before the loop.";
    return false;
}

bool build_check_loop_count(Builder *b, DimId count) {
    if (count != DIM_NONE && dim_lo(b->dims, count) >= 0) return true;
    BuildError *error = build_fail(b, DIAG_BAD_DIM, (BuildPlace){.arg = 3},
                                   "the number of steps `%s` can be negative or beyond 2^62",
                                   count ? dim_str(b->dims, b->arena, count) : "");
    error->symbols = count ? dim_symbols_used(b->dims, count) : 0;
    error->help = "Narrow the dim's range, as in `dim T in 1..4096`.";
    return false;
}

NodeId build_loop_result(Builder *b, uint32_t n, const NodeId *carries, const NodeId *next,
                         DimId count, uint32_t at) {
    AxisAttrs per_axis = {.begin = {count}};
    if (!build_check_loop_count(b, count)) return NODE_NONE;
    for (uint32_t i = 0; i < n; i++)
        if (carries[i] == NODE_NONE || next[i] == NODE_NONE) return NODE_NONE;
    for (uint32_t i = 0; i < n; i++)
        if (!check_carried(b, i, carries[i], next[i])) return NODE_NONE;
    NodeId *args = arena_array(b->arena, NodeId, 2 * (size_t)n);
    for (uint32_t i = 0; i < n; i++) args[i] = carries[i], args[n + i] = next[i];
    const Node *like = graph_node(b->graph, carries[at]);
    Node node = {.op = OP_LOOP_RESULT,
                 .dtype = like->dtype,
                 .shape = like->shape,
                 .n_args = 2 * n,
                 .args = args,
                 .attrs = {.axis = (int32_t)at, .per_axis = &per_axis}};
    return build_checked_node(b, node);
}

void build_repeat_carry(Builder *b, Repeat *r, NodeId carry, NodeId next) {
    vec_push(b->arena, &r->carries, carry);
    vec_push(b->arena, &r->next, next);
}

NodeId build_repeat_counter(Builder *b, DimId first, Dtype dtype) {
    return build_loop_carry(b, build_dim_value(b, first, dtype));
}

void build_repeat_count(Builder *b, Repeat *r, NodeId counter, int64_t step) {
    const Operand operands[] = {operand_tensor(counter), operand_int(dim_const(b->dims, step))};
    build_repeat_carry(b, r, counter, build_eltwise(b, OP_ADD, 2, operands));
}

/* The elements of the axis for the steps: an update needs one, also where there may be no step. */
static DimId n_collected(const Builder *b, DimId count) {
    bool has_steps = dim_lo(b->dims, count) > 0;
    return has_steps ? count : dim_add(b->dims, count, dim_const(b->dims, 1));
}

/* A tensor of all steps' values is zeros before the first step. */
void build_repeat_collect(Builder *b, Repeat *r, NodeId at, NodeId value) {
    if (at == NODE_NONE || value == NODE_NONE) {
        build_repeat_carry(b, r, NODE_NONE, NODE_NONE);
        return;
    }
    const Node node = *graph_node(b->graph, value);
    const DimId one = dim_const(b->dims, 1);
    const Operand zero = operand_int(dim_const(b->dims, 0)), no = operand_bool(false);
    DimId dims[MAX_RANK + 1] = {n_collected(b, r->count)};
    NodeId starts[MAX_RANK + 1] = {build_reshape(b, at, (DimList){1, &one})};
    const DimList shape = {node.shape.rank + 1, dims};
    NodeId first = build_const(b, &zero, graph_node(b->graph, at)->dtype);
    NodeId origin = build_reshape(b, first, (DimList){1, &one});
    for (uint32_t k = 0; k < node.shape.rank; k++) {
        dims[k + 1] = node.shape.dims[k];
        starts[k + 1] = origin;
    }
    NodeId empty = build_const(b, dtype_is_bool(node.dtype) ? &no : &zero, node.dtype);
    NodeId all = build_loop_carry(b, build_expand(b, empty, shape));
    dims[0] = one;
    NodeId part = build_reshape(b, value, shape);
    NodeId place = shape.n > 1 ? build_concat(b, shape.n, starts, 0) : starts[0];
    build_repeat_carry(b, r, all, build_update(b, OP_DYNAMIC_UPDATE_SLICE, all, part, place));
}

NodeId build_repeat_result(Builder *b, const Repeat *r, uint32_t i) {
    return build_loop_result(b, r->carries.n, r->carries.data, r->next.data, r->count, i);
}

NodeId build_repeat_collected(Builder *b, const Repeat *r, uint32_t i) {
    NodeId all = build_repeat_result(b, r, i);
    if (all == NODE_NONE) return NODE_NONE;
    Slicing slicing = build_slicing(b, all);
    bool ok = build_slice_range(b, &slicing, 0, dim_const(b->dims, 0), r->count, 1);
    return ok ? build_slicing_finish(b, &slicing) : NODE_NONE;
}

/* Element `dim`, which is at least 0, of an iota is the dim. */
static NodeId counted_to(Builder *b, DimId dim, Dtype dtype) {
    DimId extent = dim_add(b->dims, dim, dim_const(b->dims, 1));
    NodeId counted = build_iota(b, (DimList){1, &extent}, 0, dtype);
    if (counted == NODE_NONE) return NODE_NONE;
    Slicing slicing = build_slicing(b, counted);
    if (!build_slice_index(b, &slicing, 0, dim)) return NODE_NONE;
    return build_slicing_finish(b, &slicing);
}

NodeId build_dim_value(Builder *b, DimId dim, Dtype dtype) {
    int64_t number, most = dtype == DT_I32 ? INT32_MAX : DIM_LIMIT;
    int64_t lo = dim ? dim_lo(b->dims, dim) : 0, hi = dim ? dim_hi(b->dims, dim) : 0;
    const Operand constant = operand_int(dim), least = operand_int(dim_const(b->dims, lo));
    if (dim && dim_is_const(b->dims, dim, &number)) return build_const(b, &constant, dtype);
    if (!dim || lo < -most || hi > most - 1 || (lo < 0 && hi - lo > most - 1)) {
        build_fail(b, DIAG_LITERAL_RANGE, (BuildPlace){.arg = 1},
                   "the dim expression `%s`, taken as %s, can be out of range",
                   dim ? dim_str(b->dims, b->arena, dim) : "", dtype_name(dtype));
        return NODE_NONE;
    }
    if (lo >= 0) return counted_to(b, dim, dtype);
    NodeId above = counted_to(b, dim_sub(b->dims, dim, least.dim), dtype);
    if (above == NODE_NONE) return NODE_NONE;
    return build_eltwise(b, OP_ADD, 2, (const Operand[]){operand_tensor(above), least});
}
