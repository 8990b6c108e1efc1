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
