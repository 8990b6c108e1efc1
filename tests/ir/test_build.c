/* Graphs made without text: that the builder types them as the front end does, by comparison with
 * the parse of the same graph as text, and that it refuses what is wrong. */
#include "front/sema.h"
#include "ir/build/build.h"

#include <criterion/criterion.h>
#include <math.h>

typedef struct World {
    Arena *arena;
    Module *module;
    Builder *b;
    DimId batch, rows; /* B in 1..64; N in 8..1024, a multiple of 8 */
} World;

static World world_new(void) {
    World w = {.arena = arena_new(NULL)};
    const Source *source = source_new(w.arena, "none", "", 0);
    w.module = module_new(w.arena, strtab_new(w.arena), source);
    w.b = build_new(w.arena, w.module->dims, source, "g");
    w.batch = build_dim(w.b, "B", 1, 64, 1);
    w.rows = build_dim(w.b, "N", 8, 1024, 8);
    return w;
}

static DimId number(const World *w, int64_t value) {
    return dim_const(w->module->dims, value);
}

#define DIMS(...) \
    ((DimList){sizeof((DimId[]){__VA_ARGS__}) / sizeof(DimId), (const DimId[]){__VA_ARGS__}})

static NodeId input(const World *w, const char *name, Dtype dtype, DimList shape) {
    return build_input(w->b, name, dtype, shape);
}

static NodeId pair(const World *w, OpId op, Operand left, Operand right) {
    const Operand operands[2] = {left, right};
    return build_eltwise(w->b, op, 2, operands);
}

static NodeId binary(const World *w, OpId op, NodeId left, NodeId right) {
    return pair(w, op, operand_tensor(left), operand_tensor(right));
}

static NodeId unary(const World *w, OpId op, NodeId x) {
    const Operand operand = operand_tensor(x);
    return build_eltwise(w->b, op, 1, &operand);
}

static NodeId matmul(const World *w, NodeId left, NodeId right) {
    const Operand a = operand_tensor(left), b = operand_tensor(right);
    return build_matmul(w->b, &a, &b, PRECISION_FULL, NULL);
}

static NodeId cast(const World *w, NodeId x, Dtype dtype) {
    const Operand operand = operand_tensor(x);
    return build_cast(w->b, &operand, dtype);
}

static const char *last_message(const World *w) {
    const uint32_t n = w->b->errors.n;
    return n ? w->b->errors.data[n - 1].message : "no error";
}

/* Finishes the graph, which must be right, and adds it to the module. */
static Graph *finish(const World *w) {
    Graph *graph = build_finish(w->b);
    cr_assert(graph, "%s", last_message(w));
    const char *fault = graph_verify(graph, w->arena);
    cr_assert(!fault, "%s", fault);
    vec_push(w->arena, &w->module->graphs, graph);
    return graph;
}

static const char *text_of(Arena *arena, const Module *module) {
    Text text = {.arena = arena};
    module_print(module, &text);
    return text_str(&text);
}

static Module *parse(Arena *arena, const char *text) {
    Diags diags = {.arena = arena};
    const Source *source = source_new(arena, "test.g", text, strlen(text));
    Module *module = front_parse(arena, strtab_new(arena), &diags, source);
    Text messages = {.arena = arena};
    diag_print(&diags, &messages);
    cr_assert(module, "%s\n%s", text, text_str(&messages));
    return module;
}

/* The finished graph must print as the graph that the front end makes of `text`. */
static void expect_text(const World *w, const char *text) {
    finish(w);
    const char *head = "dim B in 1..64\ndim N in 8..1024 mult 8\n";
    const Module *parsed = parse(w->arena, str_format(w->arena, "%s%s", head, text));
    cr_expect_str_eq(text_of(w->arena, w->module), text_of(w->arena, parsed));
    arena_free(w->arena);
}

/* Graphs. */

Test(build, an_mlp_without_text_is_the_parsed_one) {
    World w = world_new();
    NodeId x = input(&w, "x", DT_F32, DIMS(w.batch, number(&w, 64)));
    NodeId w1 = build_param(w.b, "w1", "fc1.weight", DT_F32, DIMS(number(&w, 64), number(&w, 128)));
    NodeId b1 = build_param(w.b, "b1", "fc1.bias", DT_F32, DIMS(number(&w, 128)));
    NodeId w2 = build_param(w.b, "w2", "fc2.weight", DT_F32, DIMS(number(&w, 128), number(&w, 10)));
    NodeId hidden = binary(&w, OP_ADD, matmul(&w, x, w1), b1);
    build_name(w.b, hidden, "hidden");
    NodeId y = matmul(&w, unary(&w, OP_RELU, hidden), w2);
    build_output(w.b, "y", pair(&w, OP_MUL, operand_tensor(y), operand_float(0.5)), 0);
    expect_text(&w, "graph g(x: f32[B, 64]) -> (y: f32[B, 10]) {\n"
                    "  param w1: f32[64, 128] = \"fc1.weight\"\n"
                    "  param b1: f32[128] = \"fc1.bias\"\n"
                    "  param w2: f32[128, 10] = \"fc2.weight\"\n"
                    "  hidden = x @ w1 + b1\n"
                    "  y = relu(hidden) @ w2 * 0.5\n"
                    "}\n");
}

/* softmax(q k^T / 8 where visible) v, of f16 with sums in f32. */
Test(build, attention_without_text_is_the_parsed_one) {
    World w = world_new();
    const DimId heads = number(&w, 4), width = number(&w, 64);
    NodeId q = input(&w, "q", DT_F16, DIMS(w.batch, heads, w.rows, width));
    NodeId k = input(&w, "k", DT_F16, DIMS(w.batch, heads, w.rows, width));
    NodeId v = input(&w, "v", DT_F16, DIMS(w.batch, heads, w.rows, width));
    const int64_t swapped[4] = {0, 1, 3, 2};
    NodeId scores = matmul(&w, q, build_transpose(w.b, k, 4, swapped));
    scores = pair(&w, OP_MUL, operand_tensor(cast(&w, scores, DT_F32)), operand_float(0.125));
    build_name(w.b, scores, "s");
    NodeId row = build_iota(w.b, DIMS(w.rows, number(&w, 1)), 0, DT_I32);
    build_name(w.b, row, "r");
    NodeId column = build_iota(w.b, DIMS(number(&w, 1), w.rows), -1, DT_I32);
    NodeId visible = binary(&w, OP_LESS_EQUAL, column, row);
    const Operand choice[3] = {operand_tensor(visible), operand_tensor(scores),
                               operand_float(-1e9)};
    scores = build_eltwise(w.b, OP_WHERE, 3, choice);
    build_name(w.b, scores, "m");
    NodeId largest = build_reduce(w.b, OP_MAX, scores, 1u << 3, true);
    NodeId powers = unary(&w, OP_EXP, binary(&w, OP_SUB, scores, largest));
    build_name(w.b, powers, "e");
    NodeId sums = build_reduce(w.b, OP_SUM, powers, 1u << 3, true);
    NodeId weights = cast(&w, binary(&w, OP_DIV, powers, sums), DT_F16);
    build_output(w.b, "y", matmul(&w, weights, v), 0);
    expect_text(&w, "graph g(q: f16[B, 4, N, 64], k: f16[B, 4, N, 64], v: f16[B, 4, N, 64]) -> "
                    "(y: f16[B, 4, N, 64]) {\n"
                    "  s = cast(q @ transpose(k, [0, 1, 3, 2]), f32) * 0.125\n"
                    "  r = iota([N, 1], axis=0)\n"
                    "  m = where(iota([1, N], axis=-1) <= r, s, -1e9)\n"
                    "  e = exp(m - max(m, axis=-1, keep=true))\n"
                    "  y = cast(e / sum(e, axis=3, keep=true), f16) @ v\n"
                    "}\n");
}

Test(build, slices_of_symbolic_dims_are_the_parsed_ones) {
    World w = world_new();
    DimTab *dims = w.module->dims;
    const DimId zero = number(&w, 0), one = number(&w, 1), four = number(&w, 4);
    NodeId x = input(&w, "x", DT_F32, DIMS(w.rows, four));
    Slicing s = build_slicing(w.b, x);
    DimId begin;
    cr_assert(build_bound(w.b, number(&w, -8), w.rows, &begin));
    cr_assert(build_slice_range(w.b, &s, 0, begin, w.rows, 1));
    NodeId last = build_slicing_finish(w.b, &s);
    s = build_slicing(w.b, x);
    cr_assert(build_slice_range(w.b, &s, 0, zero, w.rows, 2));
    cr_assert(build_slice_index(w.b, &s, 1, number(&w, 3)));
    NodeId even = build_slicing_finish(w.b, &s);
    NodeId head =
        build_slice(w.b, x, DIMS(zero, one), DIMS(dim_sub(dims, w.rows, one), one), (DimList){0});
    NodeId halves[2];
    uint32_t n;
    cr_assert(build_split_evenly(w.b, x, number(&w, 2), 0, halves, &n));
    cr_assert_eq(n, 2);
    NodeId parts[2];
    cr_assert(build_split(w.b, x, DIMS(one, number(&w, 3)), -1, parts));
    const NodeId named[5] = {last, halves[0], halves[1], parts[0], parts[1]};
    static const char *const names[5] = {"last", "a", "b", "c", "d"};
    for (int i = 0; i < 5; i++) build_name(w.b, named[i], names[i]);
    s = build_slicing(w.b, x);
    cr_assert(build_slice_range(w.b, &s, 1, number(&w, 3), number(&w, -1), -2));
    build_output(w.b, "down", build_slicing_finish(w.b, &s), 0);
    NodeId flipped = build_slice(w.b, x, DIMS(dim_sub(dims, w.rows, one), number(&w, 3)),
                                 DIMS(w.rows, four), DIMS(number(&w, -1), number(&w, -1)));
    build_output(w.b, "flipped", flipped, 0);
    const NodeId joined[3] = {last, halves[1], halves[0]};
    build_output(w.b, "joined", build_concat(w.b, 3, joined, 0), 0);
    build_output(w.b, "even", even, 0);
    build_output(w.b, "head", head, 0);
    build_output(w.b, "beside", build_concat(w.b, 2, (const NodeId[]){parts[1], parts[0]}, 1), 0);
    expect_text(&w, "graph g(x: f32[N, 4]) -> (down: f32[N, 2], flipped: f32[N, 4], "
                    "joined: f32[2*(N / 2) + 8, 4], even: f32[N / 2], "
                    "head: f32[N - 1, 1], beside: f32[N, 4]) {\n"
                    "  last = x[-8:]\n"
                    "  even = x[::2, 3]\n"
                    "  head = x[:-1, 1:2]\n"
                    "  a, b = split(x, 2)\n"
                    "  c, d = split(x, [1, 3], axis=1)\n"
                    "  down = x[:, ::-2]\n"
                    "  flipped = x[::-1, ::-1]\n"
                    "  joined = concat([last, b, a], axis=0)\n"
                    "  beside = concat([d, c], axis=1)\n"
                    "}\n");
}

Test(build, other_views_are_the_parsed_ones) {
    World w = world_new();
    const DimId one = number(&w, 1), two = number(&w, 2), four = number(&w, 4);
    const DimId inferred = number(&w, -1);
    NodeId x = input(&w, "x", DT_F32, DIMS(w.batch, w.rows));
    NodeId at = input(&w, "at", DT_I32, DIMS(two, w.batch));
    NodeId flat = build_reshape(w.b, x, DIMS(inferred));
    NodeId blocks = build_reshape(w.b, flat, DIMS(w.batch, inferred, four));
    build_name(w.b, flat, "flat");
    build_name(w.b, blocks, "cubes");
    const Operand infinite = operand_float(-INFINITY);
    NodeId padded = build_pad(w.b, x, DIMS(one, two), DIMS(number(&w, 0), w.batch), &infinite);
    build_output(w.b, "blocks", build_transpose(w.b, blocks, 0, NULL), 0);
    build_output(w.b, "padded", padded, 0);
    build_output(w.b, "rows", build_gather(w.b, x, at, -2), 0);
    NodeId means = build_reduce(w.b, OP_MEAN, x, 1u << 1, true);
    build_output(w.b, "means", build_expand(w.b, means, DIMS(two, w.batch, w.rows)), 0);
    build_output(w.b, "best", build_argreduce(w.b, OP_ARGMAX, x, -1, false), 0);
    build_output(w.b, "total", build_reduce(w.b, OP_SUM, x, BUILD_ALL_AXES, false), 0);
    expect_text(&w, "graph g(x: f32[B, N], at: i32[2, B]) -> (blocks: f32[4, N / 4, B], "
                    "padded: f32[B + 1, N + B + 2], rows: f32[2, B, N], means: f32[2, B, N], "
                    "best: i32[B], total: f32[]) {\n"
                    "  flat = reshape(x, [-1])\n"
                    "  cubes = reshape(flat, [B, -1, 4])\n"
                    "  padded = pad(x, low=[1, 2], high=[0, B], value=-inf)\n"
                    "  blocks = transpose(cubes)\n"
                    "  rows = gather(x, at)\n"
                    "  means = expand(mean(x, axis=1, keep=true), [2, B, N])\n"
                    "  best = argmax(x, axis=1)\n"
                    "  total = sum(x)\n"
                    "}\n");
}

Test(build, blocks_are_the_parsed_ones) {
    World w = world_new();
    NodeId x = input(&w, "x", DT_F32, DIMS(w.batch));
    build_block(w.b, BLOCK_MUST, NULL);
    NodeId y = unary(&w, OP_EXP, x);
    build_name(w.b, y, "y");
    NodeId u = unary(&w, OP_NEG, y);
    build_name(w.b, u, "u");
    build_end_block(w.b);
    NodeId z = unary(&w, OP_ABS, y);
    uint32_t k = build_block(w.b, BLOCK_KERNEL, "k");
    NodeId v = binary(&w, OP_ADD, u, z);
    build_block(w.b, BLOCK_KERNEL, "unused");
    unary(&w, OP_NEG, v);
    build_end_block(w.b);
    build_output(w.b, "copy", x, k);
    build_output(w.b, "v", v, k);
    build_output(w.b, "z", z, 0);
    cr_expect_eq(w.b->graph->outputs.data[0].copied_by, k, "x is no node that the kernel makes");
    cr_expect_eq(w.b->graph->outputs.data[1].copied_by, 0);
    expect_text(&w, "graph g(x: f32[B]) -> (copy: f32[B], v: f32[B], z: f32[B]) {\n"
                    "  fuse must {\n"
                    "    y = exp(x)\n"
                    "    u = neg(y)\n"
                    "  }\n"
                    "  z = abs(y)\n"
                    "  kernel k {\n"
                    "    v = u + z\n"
                    "    copy = x\n"
                    "  }\n"
                    "}\n");
}

Test(build, a_node_keeps_its_first_name) {
    World w = world_new();
    NodeId y = unary(&w, OP_EXP, input(&w, "x", DT_F32, DIMS(w.batch)));
    build_name(w.b, y, "first");
    build_name(w.b, y, "second");
    cr_expect_str_eq(graph_node(w.b->graph, y)->name, "first");
    arena_free(w.arena);
}

Test(build, values_made_twice_are_one_and_what_nobody_needs_is_dropped) {
    World w = world_new();
    NodeId x = input(&w, "x", DT_F32, DIMS(w.batch));
    input(&w, "unused", DT_I32, DIMS(w.rows));
    build_param(w.b, "dropped", NULL, DT_F32, DIMS(w.batch));
    NodeId kept = build_param(w.b, "kept", NULL, DT_F32, DIMS(w.batch));
    unary(&w, OP_EXP, x);
    NodeId sums[2];
    for (int i = 0; i < 2; i++) sums[i] = binary(&w, OP_ADD, x, kept);
    build_output(w.b, "y", binary(&w, OP_MUL, sums[0], sums[1]), 0);
    build_output(w.b, "kept", kept, 0);
    Graph *graph = finish(&w);
    cr_expect_eq(graph->nodes.n, 5);
    cr_expect_eq(graph->inputs.n, 2);
    cr_expect_eq(graph->params.n, 1);
    cr_expect_str_eq(graph->params.data[0].key, "kept");
    arena_free(w.arena);
}

Test(build, what_changes_nothing_adds_no_node) {
    World w = world_new();
    NodeId part, x = input(&w, "x", DT_F32, DIMS(w.batch, w.rows));
    const DimList whole = DIMS(w.batch, w.rows), zeros = DIMS(number(&w, 0), number(&w, 0));
    cr_expect_eq(cast(&w, x, DT_F32), x);
    cr_expect_eq(build_transpose(w.b, x, 2, (const int64_t[]){0, -1}), x);
    cr_expect_eq(build_reshape(w.b, x, whole), x);
    cr_expect_eq(build_expand(w.b, x, whole), x);
    cr_expect_eq(build_pad(w.b, x, zeros, zeros, NULL), x);
    cr_expect_eq(build_slice(w.b, x, zeros, whole, (DimList){0}), x);
    cr_expect_eq(build_concat(w.b, 1, &x, 0), x);
    cr_expect_eq(build_reduce(w.b, OP_SUM, x, 0, true), x);
    cr_expect(build_split(w.b, x, DIMS(w.batch), 0, &part) && part == x);
    cr_expect_eq(w.b->graph->nodes.n, 1, "%u nodes", w.b->graph->nodes.n);
    arena_free(w.arena);
}

/* All ops. */

static NodeId make_source(const World *w, OpId op, Dtype dtype, DimList shape) {
    const Operand one = dtype == DT_BOOL ? operand_bool(true) : operand_float(1);
    if (op == OP_INPUT) return input(w, "z", dtype, shape);
    if (op == OP_PARAM) return build_param(w->b, "z", "key", dtype, shape);
    return op == OP_CONST ? build_const(w->b, &one, dtype) : build_iota(w->b, shape, 1, DT_I32);
}

/* x: [4, 8], indices: i32[2] */
static NodeId make_view(const World *w, OpId op, NodeId x, NodeId indices) {
    const DimId zero = number(w, 0), two = number(w, 2), four = number(w, 4), eight = number(w, 8);
    if (op == OP_TRANSPOSE) return build_transpose(w->b, x, 0, NULL);
    if (op == OP_RESHAPE) return build_reshape(w->b, x, DIMS(eight, four));
    if (op == OP_EXPAND) return build_expand(w->b, x, DIMS(two, four, eight));
    const DimList step = DIMS(number(w, 1), two);
    if (op == OP_SLICE) return build_slice(w->b, x, DIMS(two, zero), DIMS(two, four), step);
    if (op == OP_PAD) return build_pad(w->b, x, DIMS(zero, two), DIMS(two, two), NULL);
    if (op == OP_WINDOWS) {
        Windowing windowing = build_windowing(w->b, x);
        windowing.axes = 2;
        windowing.size[1] = four;
        windowing.stride[1] = windowing.dilation[1] = 2;
        windowing.low[1] = two;
        return build_windows(w->b, &windowing);
    }
    return op == OP_GATHER ? build_gather(w->b, x, indices, 0) : NODE_NONE;
}

static NodeId make_eltwise(const World *w, OpId op, NodeId x, NodeId flags) {
    NodeId first = op_info(op)->result == RESULT_SELECT ? flags : x;
    Operand operands[3] = {operand_tensor(first), operand_tensor(x), operand_tensor(x)};
    return build_eltwise(w->b, op, op_info(op)->max_args, operands);
}

/* A node of the op, whose data is x: [4, 8]. */
static NodeId make(const World *w, OpId op, NodeId x, NodeId indices, NodeId flags) {
    Dtype dtype = graph_node(w->b->graph, x)->dtype, to = 0;
    const DimList shape = DIMS(number(w, 4), number(w, 8));
    switch (op_info(op)->cls) {
    case CLASS_SCAN_BY: /* none is made: test_scan_function.c */
    case CLASS_LOOP:    /* nor here: test_loop.c */
    case CLASS_SOURCE:
        return make_source(w, op, dtype, shape);
    case CLASS_ELTWISE:
        return make_eltwise(w, op, x, flags);
    case CLASS_CAST:
        while (to == dtype || dtype_bytes(to) != dtype_bytes(dtype)) to++;
        if (op == OP_BITCAST) return build_bitcast(w->b, (Operand[]){operand_tensor(x)}, to);
        return cast(w, x, dtype == DT_F32 ? DT_I32 : DT_F32);
    case CLASS_REDUCE:
        return build_reduce(w->b, op, x, 1, false);
    case CLASS_ARGREDUCE:
        return build_argreduce(w->b, op, x, 0, true);
    case CLASS_SCAN:
    case CLASS_SORT:
        return build_scan(w->b, op, x, 0);
    case CLASS_SEGMENT:
        return build_segments(w->b, op, x, build_iota(w->b, shape, 1, DT_I64), number(w, 3), 1);
    case CLASS_VIEW:
        return make_view(w, op, x, indices);
    case CLASS_CONCAT:
        return build_concat(w->b, 2, (const NodeId[]){x, x}, 1);
    case CLASS_UPDATE:
        return build_update(w->b, op, x, x, indices);
    case CLASS_ONLINE:
        return build_online(w->b, op, cast(w, x, online_compute(dtype)),
                            build_transpose(w->b, x, 0, NULL), NODE_NONE, NULL, NULL);
    case CLASS_MATMUL:
        return matmul(w, x, build_transpose(w->b, x, 0, NULL));
    }
    return NODE_NONE;
}

/* What is made prints as text that reads as the same; a wrong dtype has an error that says so. */
static void check_op(OpId op, Dtype dtype) {
    const OpInfo *info = op_info(op);
    World w = world_new();
    NodeId x = input(&w, "x", dtype, DIMS(number(&w, 4), number(&w, 8)));
    NodeId indices = input(&w, "i", DT_I32, DIMS(number(&w, 2)));
    NodeId flags = input(&w, "f", DT_BOOL, DIMS(number(&w, 8)));
    NodeId y = make(&w, op, x, indices, flags);
    if (info->cls != CLASS_SOURCE && !dtype_in(dtype, info->dtypes)) {
        cr_expect_eq(y, NODE_NONE, "%s took %s", info->name, dtype_name(dtype));
        cr_expect_eq(w.b->errors.n, 1u, "%s", last_message(&w));
        cr_expect_eq(w.b->errors.data[0].id, DIAG_UNSUPPORTED_DTYPE, "%s", last_message(&w));
    } else {
        cr_assert_neq(y, NODE_NONE, "%s, %d: %s", info->name, (int)dtype, last_message(&w));
        cr_expect_eq(graph_node(w.b->graph, y)->op, op, "%s", info->name);
        build_output(w.b, "y", y, 0);
        finish(&w);
        const char *text = text_of(w.arena, w.module);
        cr_expect_str_eq(text_of(w.arena, parse(w.arena, text)), text);
    }
    arena_free(w.arena);
}

Test(build, every_op_takes_its_dtypes_and_no_others) {
    for (OpId op = OP_NONE + 1; op < OP_LOOP_CARRY; op++)
        for (int d = 0; d < DT_COUNT; d++) check_op(op, (Dtype)d);
}

/* Whether the last argument may be left out is in the table; one more or one fewer is refused. */
Test(build, elementwise_ops_take_as_many_operands_as_the_table_says) {
    const Operand operands[4] = {operand_float(1), operand_float(1), operand_float(1),
                                 operand_float(1)};
    for (OpId op = OP_NONE + 1; op < OP_COUNT; op++) {
        const OpInfo *info = op_info(op);
        if (info->cls != CLASS_ELTWISE) continue;
        World w = world_new();
        const uint32_t wrong[2] = {info->min_args - 1, info->max_args + 1};
        for (int i = 0; i < 2; i++) {
            cr_expect_eq(build_eltwise(w.b, op, wrong[i], operands), NODE_NONE, "%s", info->name);
            BuildError error;
            cr_assert(build_take_error(w.b, &error), "%s of %u", info->name, wrong[i]);
            cr_expect(error.id == DIAG_WRONG_ARITY && error.help, "%s", error.message);
        }
        if (info->min_args < info->max_args) {
            const Node *node =
                graph_node(w.b->graph, build_eltwise(w.b, op, info->min_args, operands));
            const Node *last = graph_node(w.b->graph, node->args[info->max_args - 1]);
            cr_expect_eq(last->attrs.number, dtype_round(last->dtype, info->default_last));
        }
        arena_free(w.arena);
    }
}

/* What is wrong. */

/* Takes the oldest error, which must be this one. */
static void expect_error(const World *w, DiagId id, BuildPlace at, const char *message) {
    BuildError error;
    cr_assert(build_take_error(w->b, &error), "no error: %s", message);
    cr_expect_str_eq(error.message, message);
    cr_expect_str_eq(diag_info(error.id)->id, diag_info(id)->id);
    cr_expect(error.at.arg == at.arg && error.at.item == at.item, "%s: at %u, %u", message,
              error.at.arg, error.at.item);
}

static const BuildPlace whole = {0};

static BuildPlace arg(uint32_t number) {
    return (BuildPlace){.arg = number};
}

static BuildPlace item(uint32_t number, uint32_t of) {
    return (BuildPlace){.arg = number, .item = of};
}

Test(build, wrong_dtypes_are_refused) {
    World w = world_new();
    NodeId x = input(&w, "x", DT_F32, DIMS(w.batch, w.rows));
    NodeId h = input(&w, "h", DT_F16, DIMS(w.batch, w.rows));
    const Operand huge = operand_float(1e9), half = operand_float(0.5), dim = operand_int(w.rows);
    const Operand tensors[3] = {operand_tensor(x), operand_tensor(x), operand_tensor(x)};
    binary(&w, OP_ADD, x, h);
    cr_expect_eq(w.b->errors.data[0].n_nodes, 2);
    cr_expect(w.b->errors.data[0].nodes[0] == x && w.b->errors.data[0].nodes[1] == h);
    cr_expect_str_eq(w.b->errors.data[0].help, "Nothing is promoted silently: write cast(x, f32).");
    expect_error(&w, DIAG_DTYPE_MISMATCH, whole, "operands of `add` are f32 and f16");
    matmul(&w, h, x);
    expect_error(&w, DIAG_DTYPE_MISMATCH, whole, "operands of `matmul` are f16 and f32");
    build_eltwise(w.b, OP_WHERE, 3, tensors);
    expect_error(&w, DIAG_DTYPE_MISMATCH, arg(1), "the condition of `where` is f32, not bool");
    unary(&w, OP_LOGICAL_NOT, x);
    expect_error(&w, DIAG_UNSUPPORTED_DTYPE, whole, "`logical_not` does not take f32");
    pair(&w, OP_MUL, operand_tensor(h), huge);
    expect_error(&w, DIAG_LITERAL_RANGE, arg(2), "the number 1e+09, taken as f16, is out of range");
    build_const(w.b, &half, DT_I32);
    expect_error(&w, DIAG_LITERAL_RANGE, arg(1), "the number 0.5, taken as i32, is not an integer");
    pair(&w, OP_MUL, operand_tensor(x), dim);
    expect_error(&w, DIAG_LITERAL_RANGE, arg(2),
                 "the dim expression `N`, taken as f32, is known only at run time and cannot be a "
                 "number");
    build_gather(w.b, x, h, 0);
    expect_error(&w, DIAG_UNSUPPORTED_DTYPE, arg(2),
                 "indices of `gather` must be i32 or i64, not f16");
    build_matmul(w.b, &(Operand){.node = h}, &(Operand){.node = h}, PRECISION_TF32, NULL);
    expect_error(&w, DIAG_UNSUPPORTED_DTYPE, arg(3),
                 "`precision=\"tf32\"` is for operands of f32, not f16");
    build_concat(w.b, 2, (const NodeId[]){x, h}, 0);
    expect_error(&w, DIAG_DTYPE_MISMATCH, whole,
                 "dtypes of `concat` differ: f32[B, N] and f16[B, N]");
    cr_expect_eq(w.b->errors.n, 0);
    arena_free(w.arena);
}

Test(build, wrong_shapes_are_refused) {
    World w = world_new();
    const DimId one = number(&w, 1), two = number(&w, 2);
    NodeId x = input(&w, "x", DT_F32, DIMS(w.batch, w.rows));
    NodeId y = input(&w, "y", DT_F32, DIMS(w.rows, w.batch));
    NodeId scalar = input(&w, "s", DT_F32, (DimList){0});
    const Operand factor = operand_tensor(x), number_2 = operand_float(2);
    binary(&w, OP_ADD, x, y);
    expect_error(&w, DIAG_SHAPE_MISMATCH, whole,
                 "shapes of `add` do not broadcast: (B, N) and (N, B)");
    matmul(&w, x, x);
    expect_error(&w, DIAG_SHAPE_MISMATCH, whole,
                 "contracted extents of `@` differ: (B, N) and (B, N)");
    build_matmul(w.b, &factor, &number_2, PRECISION_FULL, NULL);
    expect_error(&w, DIAG_SHAPE_MISMATCH, whole, "an operand of `@` is a scalar");
    build_reshape(w.b, x, DIMS(w.batch, two));
    expect_error(&w, DIAG_BAD_RESHAPE, whole,
                 "cannot reshape (B, N) into (B, 2): element counts differ");
    build_reshape(w.b, x, DIMS(number(&w, -1), number(&w, -1)));
    expect_error(&w, DIAG_BAD_RESHAPE, item(2, 2), "only one extent may be -1");
    build_expand(w.b, x, DIMS(w.batch, w.batch));
    expect_error(&w, DIAG_SHAPE_MISMATCH, whole, "cannot expand (B, N) to (B, B)");
    build_concat(w.b, 2, (const NodeId[]){x, y}, 0);
    expect_error(&w, DIAG_SHAPE_MISMATCH, whole,
                 "extents beside the joined axis of `concat` differ: f32[B, N] and f32[N, B]");
    build_concat(w.b, 1, &scalar, 0);
    expect_error(&w, DIAG_BAD_AXIS, arg(1), "scalars have no axis to concat along");
    build_concat(w.b, 0, NULL, 0);
    expect_error(&w, DIAG_BAD_ARGUMENT, arg(1),
                 "`concat` takes a list of 1 to 1024 tensors, not a list of 0");
    build_pad(w.b, x, DIMS(one), DIMS(one, one), NULL);
    expect_error(&w, DIAG_BAD_ARGUMENT, arg(2), "`low` lists 1 numbers for a tensor of rank 2");
    build_pad(w.b, x, DIMS(one, one), DIMS(one, number(&w, -2)), NULL);
    expect_error(&w, DIAG_BAD_ARGUMENT, arg(3), "`high` can be negative: -2");
    input(&w, "z", DT_F32, DIMS(dim_sub(w.module->dims, w.batch, two)));
    expect_error(&w, DIAG_BAD_DIM, whole, "extent `B - 2` can be negative: down to -1");
    cr_expect_eq(w.b->errors.n, 0);
    arena_free(w.arena);
}

Test(build, wrong_axes_are_refused) {
    World w = world_new();
    NodeId x = input(&w, "x", DT_F32, DIMS(w.batch, w.rows));
    NodeId scalar = input(&w, "s", DT_F32, (DimList){0}), part;
    NodeId i = input(&w, "i", DT_I32, DIMS(w.batch));
    const int64_t twice[2] = {1, -1}, far[3] = {0, 1, 2};
    uint32_t n;
    build_reduce(w.b, OP_SUM, x, 1u << 2, false);
    expect_error(&w, DIAG_BAD_AXIS, arg(2), "axis 2 is out of range for rank 2");
    build_argreduce(w.b, OP_ARGMIN, x, -3, false);
    expect_error(&w, DIAG_BAD_AXIS, arg(2), "axis -3 is out of range for rank 2");
    build_transpose(w.b, x, 2, twice);
    expect_error(&w, DIAG_BAD_AXIS, item(2, 2), "axis 1 is given twice in `perm`");
    build_transpose(w.b, x, 2, far + 1);
    expect_error(&w, DIAG_BAD_AXIS, item(2, 2), "axis 2 is out of range for rank 2");
    build_transpose(w.b, x, 3, far);
    expect_error(&w, DIAG_BAD_AXIS, arg(2),
                 "`perm` must list the 2 axes of (B, N), not a list of 3");
    build_gather(w.b, scalar, i, 0);
    expect_error(&w, DIAG_BAD_AXIS, arg(1), "a scalar has no axis to gather");
    build_iota(w.b, DIMS(w.batch), 1, DT_I32);
    expect_error(&w, DIAG_BAD_AXIS, arg(2), "axis 1 is out of range for rank 1");
    build_split_evenly(w.b, scalar, number(&w, 2), 0, &part, &n);
    expect_error(&w, DIAG_BAD_AXIS, arg(1), "a scalar has no axis to split");
    cr_expect_eq(w.b->errors.n, 0);
    arena_free(w.arena);
}

Test(build, bounds_that_are_not_proved_are_refused) {
    World w = world_new();
    const DimId zero = number(&w, 0), many_twos = number(&w, 9);
    NodeId x = input(&w, "x", DT_F32, DIMS(w.rows)), parts[4];
    uint32_t n;
    Slicing s = build_slicing(w.b, x);
    cr_expect_not(build_slice_index(w.b, &s, 0, number(&w, 2000)));
    expect_error(&w, DIAG_SLICE_BOUNDS, arg(1), "index out of range: 2000 is more than N - 1");
    cr_expect_not(build_slice_range(w.b, &s, 0, zero, many_twos, 1));
    cr_expect_eq(w.b->errors.data[0].symbols, 2u);
    cr_expect_str_eq(w.b->errors.data[0].help, "Declare `dim N in 9..1024`.");
    expect_error(&w, DIAG_SLICE_BOUNDS, arg(2),
                 "end of the slice may be out of range: 9 <= N is not known to hold for all dims");
    cr_expect_not(build_slice_range(w.b, &s, 0, zero, w.rows, 0));
    expect_error(&w, DIAG_BAD_ARGUMENT, arg(3), "a step must be an integer other than 0");
    build_slice(w.b, x, DIMS(number(&w, -1)), DIMS(many_twos), (DimList){0});
    expect_error(&w, DIAG_SLICE_BOUNDS, arg(2), "begin of the slice out of range: it lies at -1");
    build_slice(w.b, x, DIMS(zero, zero), DIMS(many_twos), (DimList){0});
    expect_error(&w, DIAG_BAD_ARGUMENT, arg(2), "`begin` lists 2 numbers for a tensor of rank 1");
    build_split_evenly(w.b, x, number(&w, 3), 0, parts, &n);
    expect_error(&w, DIAG_SHAPE_MISMATCH, whole, "extent N does not divide into 3 equal parts");
    build_split_evenly(w.b, x, w.batch, 0, parts, &n);
    expect_error(&w, DIAG_BAD_ARGUMENT, arg(2),
                 "`parts` must be a list of extents or a count from 1 to 1024, not the dim "
                 "expression `B`");
    build_split(w.b, x, DIMS(many_twos, number(&w, -1)), 0, parts);
    expect_error(&w, DIAG_BAD_ARGUMENT, item(2, 2),
                 "an extent of `parts` must be a nonnegative integer, not the integer `-1`");
    build_split(w.b, x, DIMS(many_twos, w.rows), 0, parts);
    expect_error(&w, DIAG_SHAPE_MISMATCH, arg(2), "parts add up to N + 9, but the extent is N");
    cr_expect_eq(w.b->errors.n, 0);
    arena_free(w.arena);
}

Test(build, wrong_declarations_are_refused) {
    World w = world_new();
    build_dim(w.b, "D", 4, 3, 1);
    expect_error(&w, DIAG_BAD_DIM, whole, "`D` ranges over 4..3, which is empty");
    build_dim(w.b, "D", 1, 3, 0);
    expect_error(&w, DIAG_BAD_DIM, whole, "`D` has the multiple 0, which is not positive");
    build_dim(w.b, "D", 9, 15, 8);
    expect_error(&w, DIAG_BAD_DIM, whole, "no multiple of 8 in 9..15 for `D`");
    build_dim(w.b, "B", 1, 2, 1);
    expect_error(&w, DIAG_REDEFINITION, whole, "dim `B` is declared already");
    build_block(w.b, BLOCK_KERNEL, "k");
    build_block(w.b, BLOCK_KERNEL, "k");
    cr_expect_eq(w.b->errors.data[0].block, 1);
    expect_error(&w, DIAG_REDEFINITION, whole, "a second kernel `k`");
    build_output(w.b, "y", unary(&w, OP_EXP, input(&w, "x", DT_F32, DIMS(w.batch))), 0);
    cr_expect_null(build_finish(w.b), "finished in spite of errors");
    arena_free(w.arena);
}

/* A graph of one node with these names must fail to finish. */
static void expect_bad_names(Str graph, Str in, Str out, DiagId id, const char *message) {
    World w = world_new();
    w.b->graph->name = graph;
    NodeId x = input(&w, in, DT_F32, DIMS(w.batch));
    if (out) build_output(w.b, out, unary(&w, OP_EXP, x), 0);
    cr_expect_null(build_finish(w.b), "%s", message);
    expect_error(&w, id, whole, message);
    arena_free(w.arena);
}

Test(build, names_that_cannot_be_read_are_refused) {
    expect_bad_names("g", "x", NULL, DIAG_MISSING_OUTPUT, "graph `g` has no output");
    expect_bad_names("g", "x", "x", DIAG_REDEFINITION, "`x` is bound already");
    expect_bad_names("g", "B", "y", DIAG_REDEFINITION, "`B` is bound already");
    expect_bad_names("g", "a/b", "y", DIAG_BAD_TOKEN, "`a/b` cannot be a name");
    expect_bad_names("g", "x", "f32", DIAG_BAD_TOKEN, "`f32` cannot be a name");
    expect_bad_names("2g", "x", "y", DIAG_BAD_TOKEN, "`2g` cannot be a name");
    expect_bad_names("graph", "x", "y", DIAG_BAD_TOKEN, "`graph` cannot be a name");
}

Test(build, one_mistake_is_recorded_once) {
    World w = world_new();
    NodeId x = input(&w, "x", DT_F32, DIMS(w.batch, w.rows)), part;
    NodeId bad = matmul(&w, x, x);
    cr_expect_eq(bad, NODE_NONE);
    const DimList two = DIMS(number(&w, 2), number(&w, 2));
    const NodeId after[] = {binary(&w, OP_ADD, x, bad),
                            matmul(&w, bad, x),
                            cast(&w, bad, DT_F16),
                            build_reduce(w.b, OP_SUM, bad, BUILD_ALL_AXES, false),
                            build_argreduce(w.b, OP_ARGMAX, bad, 0, false),
                            build_transpose(w.b, bad, 0, NULL),
                            build_reshape(w.b, bad, two),
                            build_expand(w.b, bad, two),
                            build_pad(w.b, bad, two, two, NULL),
                            build_slice(w.b, bad, two, two, (DimList){0}),
                            build_gather(w.b, bad, bad, 0),
                            build_concat(w.b, 2, (const NodeId[]){x, bad}, 0)};
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++)
        cr_expect_eq(after[i], NODE_NONE, "call %zu", i);
    cr_expect_not(build_split(w.b, bad, two, 0, &part) || build_output(w.b, "y", bad, 0));
    build_name(w.b, bad, "bad");
    cr_expect_eq(w.b->errors.n, 1);
    cr_expect_null(build_finish(w.b));
    arena_free(w.arena);
}

Test(build, limits_are_kept) {
    World w = world_new();
    DimId two = number(&w, 2), large = number(&w, INT64_C(1) << 20), twos[17];
    for (int k = 0; k < 17; k++) twos[k] = two;
    NodeId x = input(&w, "x", DT_F32, (DimList){8, twos});
    NodeId i = input(&w, "i", DT_I32, (DimList){8, twos});
    input(&w, "y", DT_F32, (DimList){9, twos});
    expect_error(&w, DIAG_LIMIT, whole, "rank 9, but an input, param or output has at most 8 axes");
    build_reshape(w.b, x, (DimList){17, twos});
    expect_error(&w, DIAG_LIMIT, whole, "17 axes, but at most 16 are supported");
    build_gather(w.b, build_gather(w.b, x, i, 0), i, 0);
    expect_error(&w, DIAG_LIMIT, whole, "rank 22, but at most 16 is supported");
    build_iota(w.b, DIMS(large, large, large), 0, DT_I32);
    expect_error(&w, DIAG_DIM_OVERFLOW, whole,
                 "a tensor of shape (1048576, 1048576, 1048576) can pass 2^62 bytes");
    for (NodeId id = x; id != NODE_NONE;) id = unary(&w, OP_NEG, id);
    cr_expect_eq(w.b->graph->nodes.n, MAX_NODES);
    expect_error(&w, DIAG_LIMIT, whole, "graph of more than 1048576 nodes");
    cr_expect_eq(unary(&w, OP_ABS, x), NODE_NONE);
    cr_expect_eq(w.b->errors.n, 0, "said once");
    for (int k = 2; k < DIM_MAX_SYMBOLS; k++)
        cr_assert(build_dim(w.b, str_format(w.arena, "d%d", k), 1, 2, 1));
    cr_expect_eq(build_dim(w.b, "last", 1, 2, 1), DIM_NONE);
    expect_error(&w, DIAG_LIMIT, whole, "more than 64 dims");
    arena_free(w.arena);
}
