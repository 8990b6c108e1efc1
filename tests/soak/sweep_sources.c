/* Sources of the sweep. Many ops share a graph: loading an artifact costs more than running it.
 * Symbolic extents run with many values; the same programs with constant extents take other paths
 * through the compiler. */
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OUTPUTS = 12 };

static const int64_t lines[][SWEEP_MAX_DIMS] = {{0},  {1},  {2},   {3},    {7},    {17},  {31},
                                                {33}, {64}, {100}, {1000}, {1025}, {4099}};
static const int64_t planes[][SWEEP_MAX_DIMS] = {
    {0, 3}, {3, 0}, {1, 1}, {1, 17}, {17, 1}, {7, 33}, {31, 64}, {100, 31}, {2, 1025}, {1000, 3}};
static const int64_t boxes[][SWEEP_MAX_DIMS] = {{2, 3, 7},  {7, 1, 33},   {0, 3, 2},
                                                {2, 0, 3},  {3, 2, 0},    {17, 31, 3},
                                                {1, 64, 1}, {3, 1025, 2}, {2, 3, 100}};
static const int64_t long_lines[][SWEEP_MAX_DIMS] = {
    {0}, {1}, {2}, {7}, {31}, {33}, {1000}, {1025}, {4099}, {16384}, {16385}, {40000}, {100003}};
static const int64_t long_planes[][SWEEP_MAX_DIMS] = {
    {0, 7},     {7, 0},     {1, 1},     {17, 33},   {1000, 100}, {3, 4099},  {4099, 3},
    {2, 16384}, {16385, 2}, {2, 40000}, {40000, 1}, {1, 100003}, {100003, 1}};
static const int64_t constants[][SWEEP_MAX_DIMS] = {{0}};

#define EXTENTS(list) list, sizeof(list) / sizeof *(list)

/* A graph in the making. */
typedef struct Maker {
    Arena *arena;
    Text inputs, outputs, body;
    uint32_t n_inputs, n_outputs;
} Maker;

static Maker maker_new(Arena *arena) {
    return (Maker){.arena = arena,
                   .inputs = {.arena = arena},
                   .outputs = {.arena = arena},
                   .body = {.arena = arena}};
}

STR_PRINTF(4, 5)
static void add_input(Maker *m, const char *name, Dtype dtype, const char *shape, ...) {
    va_list args;
    va_start(args, shape);
    text_printf(&m->inputs, "%s%s: %s%s", m->n_inputs++ ? ", " : "", name, dtype_name(dtype),
                str_vformat(m->arena, shape, args));
    va_end(args);
}

STR_PRINTF(4, 5)
static void add_output(Maker *m, Dtype dtype, const char *shape, const char *expr, ...) {
    va_list args;
    va_start(args, expr);
    text_printf(&m->outputs, "%sy%u: %s%s", m->n_outputs ? ", " : "", m->n_outputs,
                dtype_name(dtype), shape);
    text_printf(&m->body, "  y%u = %s\n", m->n_outputs, str_vformat(m->arena, expr, args));
    m->n_outputs++;
    va_end(args);
}

static const char *const dim_text[] = {"", "dim N in 0..1048576\n",
                                       "dim N in 0..1048576\ndim M in 0..1048576\n",
                                       "dim N in 0..4096\ndim M in 0..4096\ndim K in 0..4096\n"};

static void finish(Maker *m, SweepCases *cases, SweepCase c) {
    if (m->n_outputs)
        c.source = str_format(m->arena, "%sgraph g(%s) -> (%s) {\n%s}\n", dim_text[c.n_dims],
                              text_str(&m->inputs), text_str(&m->outputs), text_str(&m->body));
    if (m->n_outputs) vec_push(m->arena, cases, c);
    *m = maker_new(m->arena);
}

/* Elementwise. */

/* Shapes of an op's three arguments: alike, or broadcast in three ways. */
typedef struct EltwiseShapes {
    const char *name, *shapes[3], *result;
    uint32_t n_dims;
    const int64_t (*extents)[SWEEP_MAX_DIMS];
    size_t n_extents;
} EltwiseShapes;

static const EltwiseShapes eltwise_shapes[] = {
    {"line", {"[N]", "[N]", "[N]"}, "[N]", 1, EXTENTS(lines)},
    {"plane", {"[N, M]", "[M]", "[N, 1]"}, "[N, M]", 2, EXTENTS(planes)},
    {"box", {"[3, 7, 33]", "[7, 1]", ""}, "[3, 7, 33]", 0, EXTENTS(constants)},
    {"wide", {"[4099]", "[]", "[1]"}, "[4099]", 0, EXTENTS(constants)},
    {"empty", {"[3, 0, 2]", "[1, 2]", "[3, 1, 1]"}, "[3, 0, 2]", 0, EXTENTS(constants)},
    {"scalar", {"", "", ""}, "", 0, EXTENTS(constants)}};

static void add_eltwise(Maker *m, OpId op, Dtype dtype, const EltwiseShapes *shapes) {
    const OpInfo *info = op_info(op);
    Text call = {.arena = m->arena};
    text_printf(&call, "%s(", info->name);
    for (uint32_t k = 0; k < info->max_args; k++) {
        bool is_condition = info->result == RESULT_SELECT && k == 0;
        const char *name = str_format(m->arena, "%c%u", (char)('a' + k), m->n_outputs);
        add_input(m, name, is_condition ? DT_BOOL : dtype, "%s", shapes->shapes[k]);
        text_printf(&call, "%s%s", k ? ", " : "", name);
    }
    add_output(m, info->result == RESULT_BOOL ? DT_BOOL : dtype, shapes->result, "%s)",
               text_str(&call));
}

static void add_eltwise_shape(Arena *arena, SweepCases *cases, Dtype dtype,
                              const EltwiseShapes *shapes) {
    Maker m = maker_new(arena);
    SweepCase c = {.n_dims = shapes->n_dims,
                   .extents = shapes->extents,
                   .n_extents = (uint32_t)shapes->n_extents};
    c.name = str_format(arena, "eltwise %s %s", dtype_name(dtype), shapes->name);
    bool is_done[OP_COUNT] = {false};
    for (OpId first = OP_NONE + 1; first < OP_COUNT; first++) {
        if (is_done[first]) continue;
        c.lo = op_info(first)->domain_lo;
        c.hi = op_info(first)->domain_hi;
        for (OpId op = first; op < OP_COUNT; op++) { /* those with the same domain */
            const OpInfo *info = op_info(op);
            if (info->cls != CLASS_ELTWISE || !dtype_in(dtype, info->dtypes) || is_done[op] ||
                info->domain_lo < c.lo || info->domain_lo > c.lo || info->domain_hi < c.hi ||
                info->domain_hi > c.hi)
                continue;
            is_done[op] = true;
            add_eltwise(&m, op, dtype, shapes);
            if (m.n_outputs == MAX_OUTPUTS) finish(&m, cases, c);
        }
        finish(&m, cases, c);
    }
}

void sweep_add_eltwise(Arena *arena, SweepCases *cases) {
    for (Dtype dtype = 0; dtype < DT_COUNT; dtype++)
        for (size_t i = 0; i < sizeof eltwise_shapes / sizeof *eltwise_shapes; i++)
            add_eltwise_shape(arena, cases, dtype, &eltwise_shapes[i]);
}

void sweep_add_casts(Arena *arena, SweepCases *cases) {
    for (Dtype from = 0; from < DT_COUNT; from++) {
        Maker m = maker_new(arena);
        add_input(&m, "x", from, "[N]");
        for (Dtype to = 0; to < DT_COUNT; to++)
            if (to != from) add_output(&m, to, "[N]", "cast(x, %s)", dtype_name(to));
        finish(&m, cases,
               (SweepCase){.name = str_format(arena, "casts from %s", dtype_name(from)),
                           .n_dims = 1,
                           .extents = lines,
                           .n_extents = sizeof lines / sizeof *lines,
                           .lo = -1000,
                           .hi = 1000});
    }
}

/* Reductions. */

typedef struct ReduceShapes {
    const char *name, *shape;
    uint32_t n_dims;
    const int64_t (*extents)[SWEEP_MAX_DIMS];
    size_t n_extents;
    struct {
        const char *axes, *result;
    } over[8];
} ReduceShapes;

static const ReduceShapes reduce_shapes[] = {
    {"line", "[N]", 1, EXTENTS(long_lines), {{"0", ""}}},
    {"plane", "[N, M]", 2, EXTENTS(long_planes), {{"0", "[M]"}, {"1", "[N]"}, {"none", ""}}},
    {"box",
     "[N, M, K]",
     3,
     EXTENTS(boxes),
     {{"0", "[M, K]"},
      {"1", "[N, K]"},
      {"2", "[N, M]"},
      {"[0, 1]", "[K]"},
      {"[1, 2]", "[N]"},
      {"[0, 2]", "[M]"},
      {"none", ""}}},
    {"constant rows",
     "[31, 1025]",
     0,
     EXTENTS(constants),
     {{"0", "[1025]"}, {"1", "[31]"}, {"none", ""}}},
    {"constant columns",
     "[4099, 17]",
     0,
     EXTENTS(constants),
     {{"0", "[17]"}, {"1", "[4099]"}, {"none", ""}}},
    {"constant long", "[2, 16385]", 0, EXTENTS(constants), {{"1", "[2]"}, {"none", ""}}},
    {"constant box",
     "[7, 100, 3]",
     0,
     EXTENTS(constants),
     {{"0", "[100, 3]"}, {"1", "[7, 3]"}, {"2", "[7, 100]"}, {"[0, 2]", "[100]"}}},
    {"constant empty",
     "[3, 0, 2]",
     0,
     EXTENTS(constants),
     {{"0", "[0, 2]"}, {"1", "[3, 2]"}, {"2", "[3, 0]"}, {"none", ""}}}};

/* argmax and argmin take one axis, and one with elements. */
static bool takes_axes(OpId op, const ReduceShapes *shapes, const char *axes) {
    if (op_info(op)->cls != CLASS_ARGREDUCE) return true;
    return *axes >= '0' && *axes <= '9' && !shapes->n_dims && !strstr(shapes->shape, " 0");
}

static void add_reduction(Arena *arena, SweepCases *cases, Dtype dtype,
                          const ReduceShapes *shapes) {
    Maker m = maker_new(arena);
    SweepCase c = {.name = str_format(arena, "reductions %s %s", dtype_name(dtype), shapes->name),
                   .n_dims = shapes->n_dims,
                   .extents = shapes->extents,
                   .n_extents = (uint32_t)shapes->n_extents,
                   .lo = -1.5,
                   .hi = 1.5};
    for (OpId op = OP_NONE + 1; op < OP_COUNT; op++) {
        OpClass cls = op_info(op)->cls;
        if ((cls != CLASS_REDUCE && cls != CLASS_ARGREDUCE) ||
            !dtype_in(dtype, op_info(op)->dtypes))
            continue;
        for (uint32_t k = 0; k < 8 && shapes->over[k].axes; k++) {
            if (!takes_axes(op, shapes, shapes->over[k].axes)) continue;
            if (!m.n_outputs) add_input(&m, "x", dtype, "%s", shapes->shape);
            add_output(&m, cls == CLASS_ARGREDUCE ? DT_I32 : dtype, shapes->over[k].result,
                       "%s(x, axis=%s)", op_info(op)->name, shapes->over[k].axes);
            if (m.n_outputs == MAX_OUTPUTS) finish(&m, cases, c);
        }
    }
    finish(&m, cases, c);
}

/* They need elements: dims from 1. */
static void add_arg(Arena *arena, SweepCases *cases, OpId op, Dtype dtype) {
    static const int64_t extents[][SWEEP_MAX_DIMS] = {
        {1, 1}, {1, 17}, {17, 33}, {100, 1000}, {2, 16385}, {40000, 3}, {1, 100003}, {100003, 1}};
    SweepCase c = {.name = str_format(arena, "%s %s", op_info(op)->name, dtype_name(dtype)),
                   .n_dims = 2,
                   .extents = extents,
                   .n_extents = sizeof extents / sizeof *extents,
                   .lo = -4,
                   .hi = 4};
    if (!dtype_in(dtype, op_info(op)->dtypes)) return;
    c.source = str_format(arena,
                          "dim N in 1..1048576\ndim M in 1..1048576\n"
                          "graph g(x: %s[N, M]) -> (c: i32[M], r: i32[N]) {\n"
                          "  c = %s(x, axis=0)\n  r = %s(x, axis=1)\n}\n",
                          dtype_name(dtype), op_info(op)->name, op_info(op)->name);
    vec_push(arena, cases, c);
}

/* Along each axis, behind an op and before one. Runs, groups and tiles end at powers of 16. */
static void add_scan(Arena *arena, SweepCases *cases, OpId op, Dtype dtype) {
    static const int64_t extents[][SWEEP_MAX_DIMS] = {
        {0, 3},   {3, 0},    {1, 1},    {2, 16},    {3, 17},   {16, 65},    {5, 256},
        {257, 7}, {2, 4096}, {4097, 3}, {1, 16385}, {33, 300}, {1, 100003}, {100003, 1}};
    SweepCase c = {.name = str_format(arena, "%s %s", op_info(op)->name, dtype_name(dtype)),
                   .n_dims = 2,
                   .extents = extents,
                   .n_extents = sizeof extents / sizeof *extents,
                   .lo = -1.5,
                   .hi = 1.5};
    const char *name = dtype_name(dtype), *scan = op_info(op)->name;
    if (!dtype_in(dtype, op_info(op)->dtypes)) return;
    c.source = str_format(arena,
                          "dim N in 0..1048576\ndim M in 0..1048576\n"
                          "graph g(x: %s[N, M], y: %s[N, M]) -> (c: %s[N, M], r: %s[N, M]) {\n"
                          "  c = -%s(x, axis=0)\n  r = %s(x - y, axis=1)\n}\n",
                          name, name, name, name, scan, scan);
    vec_push(arena, cases, c);
}

/* By a function of three values along each axis, in either direction, and by a function of one
 * value that has no identity. */
static void add_scan_by(Arena *arena, SweepCases *cases, Dtype dtype) {
    static const int64_t extents[][SWEEP_MAX_DIMS] = {
        {0, 3},   {3, 0},    {1, 1},    {2, 15},   {2, 16},   {3, 17},     {16, 65},   {5, 256},
        {257, 7}, {2, 4096}, {4097, 3}, {1, 8193}, {33, 300}, {1, 100003}, {100003, 1}};
    const char *name = dtype_name(dtype);
    bool is_number = dtype_in(dtype, DTS_NUM);
    const char *zero = dtype == DT_BOOL ? "false" : "0";
    SweepCase c = {.name = str_format(arena, "scan_by %s", name),
                   .n_dims = 2,
                   .extents = extents,
                   .n_extents = sizeof extents / sizeof *extents,
                   .lo = -1.5,
                   .hi = 1.5};
    c.source =
        str_format(arena,
                   "dim N in 0..1048576\ndim M in 0..1048576\n"
                   "def latest(a, b) = where(b == %s, a, b)\n"
                   "def joined(a, b) {\n"
                   "  return %s, %s, where(a[0] == b[1], b[2], a[2])\n}\n"
                   "graph g(x: %s[N, M], y: %s[N, M]) -> (a: %s[N, M], b: %s[N, M], c: "
                   "%s[N, M], d: %s[N, M]) {\n"
                   "  a, b, _ = scan(joined, [x, y, x], axis=1)\n"
                   "  _, _, c = scan(joined, [y, x, y], axis=0, reverse=true)\n"
                   "  d = scan(latest, x, axis=1)\n}\n",
                   zero, is_number ? "a[0] * b[0]" : "b[0]",
                   is_number ? "a[1] * b[0] + b[1]" : "a[1]", name, name, name, name, name, name);
    vec_push(arena, cases, c);
}

/* Along each axis, in either direction, with an op behind. Orders of rows of more than 4096
 * elements are in memory. */
static void add_sort(Arena *arena, SweepCases *cases, Dtype dtype) {
    static const int64_t extents[][SWEEP_MAX_DIMS] = {
        {0, 3},   {3, 0},    {1, 1},    {2, 16},    {3, 17},   {129, 65}, {5, 256},
        {257, 7}, {2, 4096}, {4097, 3}, {1, 16385}, {33, 300}, {1, 40003}};
    SweepCase c = {.name = str_format(arena, "argsort %s", dtype_name(dtype)),
                   .n_dims = 2,
                   .extents = extents,
                   .n_extents = sizeof extents / sizeof *extents,
                   .lo = -20,
                   .hi = 20};
    const char *name = dtype_name(dtype);
    if (!dtype_in(dtype, op_info(OP_ARGSORT)->dtypes)) return;
    c.source =
        str_format(arena,
                   "dim N in 0..1048576\ndim M in 0..1048576\n"
                   "graph g(x: %s[N, M]) -> (c: i32[N, M], r: i32[N, M]) {\n"
                   "  c = -argsort(x, axis=0)\n  r = argsort(x, axis=1, descending=true)\n}\n",
                   name);
    vec_push(arena, cases, c);
}

/* Along each axis, of ascending numbers and of others, which a search takes for ascending. */
static void add_segments(Arena *arena, SweepCases *cases, OpId op, Dtype dtype) {
    static const int64_t extents[][SWEEP_MAX_DIMS] = {{0, 3},    {3, 0},    {1, 1},   {2, 16},
                                                      {3, 17},   {129, 65}, {5, 256}, {257, 7},
                                                      {1, 1000}, {4097, 3}, {33, 300}};
    SweepCase c = {.name = str_format(arena, "%s %s", op_info(op)->name, dtype_name(dtype)),
                   .n_dims = 2,
                   .extents = extents,
                   .n_extents = sizeof extents / sizeof *extents,
                   .lo = -2,
                   .hi = 2};
    const char *name = dtype_name(dtype), *of = op_info(op)->name;
    if (!dtype_in(dtype, op_info(op)->dtypes)) return;
    c.source = str_format(arena,
                          "dim N in 0..1048576\ndim M in 0..1048576\n"
                          "graph g(x: %s[N, M], i: i32[N, M]) -> (c: %s[7, M], r: %s[N, 40]) {\n"
                          "  c = relu(%s(x, iota([N, M], axis=0) / 3, 7))\n"
                          "  r = %s(x, i, 40, axis=1)\n}\n",
                          name, name, name, of, of);
    vec_push(arena, cases, c);
}

/* Fewer and more keys than a block, rows than a tile, columns than a part; keys that causal masks
 * hide; and rows that see no key. */
static void add_online(Arena *arena, SweepCases *cases, OpId op, Dtype dtype) {
    static const int64_t extents[][SWEEP_MAX_DIMS] = {
        {1, 1, 1},   {0, 3, 4},   {3, 0, 4},    {3, 4, 0},     {2, 16, 8},   {5, 127, 17},
        {8, 128, 3}, {9, 129, 1}, {33, 257, 7}, {67, 64, 300}, {31, 384, 64}};
    SweepCase c = {.name = str_format(arena, "%s %s", op_info(op)->name, dtype_name(dtype)),
                   .n_dims = 3,
                   .extents = extents,
                   .n_extents = sizeof extents / sizeof *extents,
                   .lo = -2,
                   .hi = 2};
    if (!dtype_in(dtype, op_info(op)->dtypes)) return;
    const char *name = dtype_name(dtype), *of = op_info(op)->name;
    const char *scores = dtype_name(online_compute(dtype));
    const char *out = dtype_name(online_dtype(op, dtype));
    const char *hidden = op_info(op)->power ? "-inf" : "0.0";
    c.source =
        str_format(arena,
                   "dim M in 0..1048576\ndim N in 0..1048576\ndim C in 0..1048576\n"
                   "graph g(x: %s[2, M, N], v: %s[2, N, C]) -> (y: %s[2, M, C], z: %s[2, M, C]) {\n"
                   "  y = %s(x * 3, v)\n"
                   "  s = where(iota([M, N], axis=1) <= iota([M, N], axis=0) * 9 - 9, x, %s)\n"
                   "  z = %s(s, v, out=%s) * 2\n}\n",
                   scores, name, out, scores, of, hidden, of, scores);
    vec_push(arena, cases, c);
}

void sweep_add_reductions(Arena *arena, SweepCases *cases) {
    for (Dtype dtype = 0; dtype < DT_COUNT; dtype++) {
        for (size_t i = 0; i < sizeof reduce_shapes / sizeof *reduce_shapes; i++)
            add_reduction(arena, cases, dtype, &reduce_shapes[i]);
        add_arg(arena, cases, OP_ARGMAX, dtype);
        add_arg(arena, cases, OP_ARGMIN, dtype);
        for (OpId op = OP_NONE + 1; op < OP_COUNT; op++)
            if (op_info(op)->cls == CLASS_SCAN) add_scan(arena, cases, op, dtype);
        add_scan_by(arena, cases, dtype);
        add_sort(arena, cases, dtype);
        for (OpId op = OP_NONE + 1; op < OP_COUNT; op++)
            if (op_info(op)->cls == CLASS_SEGMENT) add_segments(arena, cases, op, dtype);
        for (OpId op = OP_NONE + 1; op < OP_COUNT; op++)
            if (op_info(op)->cls == CLASS_ONLINE) add_online(arena, cases, op, dtype);
    }
}

/* Views. */

/* `neg` would do for a consumer, but not for bool, nor for floats that are stored alone. */
static const char *consumer(Dtype dtype) {
    if (dtype_in(dtype, DTS_STORED)) return "chosen";
    return dtype == DT_BOOL ? "logical_not" : "neg";
}
#define CHOSEN "def chosen(x) = where(x == 1, 0, x)\n"

static void add_views(Maker *m, Dtype dtype, const char *use) {
    add_input(m, "x", dtype, "[N, M]");
    add_input(m, "z", dtype, "[M]");
    add_input(m, "i", DT_I32, "[M]");
    add_input(m, "j", DT_I64, "[M]");
    add_output(m, dtype, "[M, N]", "transpose(x)");
    add_output(m, dtype, "[M, N]", "%s(transpose(x))", use);
    add_output(m, dtype, "[N * M]", "reshape(%s(x), [N * M])", use);
    add_output(m, dtype, "[N, 3, M]", "expand(reshape(%s(x), [N, 1, M]), [N, 3, M])", use);
    add_output(m, dtype, "[N - 2, (M + 1) / 2]", "%s(x[1:-1, ::2])", use);
    add_output(m, dtype, "[N - 1, M]", "%s(x[:0:-1, ::-1])", use);
    add_output(m, dtype, "[(N + 1) / 2, M]", "%s(x)[::-2]", use);
    add_output(m, dtype, "[N + 3, M + 1]", "pad(%s(x), low=[1, 0], high=[2, 1])", use);
    add_output(m, dtype, "[2 * N - 1, 3 * M]",
               "pad(%s(x), low=[0, 1], high=[0, 1], interior=[1, 2])", use);
    add_output(m, dtype, "[N + 2, M]", "pad(%s(x), low=[1, 0], high=[1, 0], mode=\"reflect\")",
               use);
    add_output(m, dtype, "[N + 3, M]", "pad(x, low=[2, 0], high=[1, 0], mode=\"circular\")");
    add_output(m, dtype, "[N, M + 3]", "pad(%s(x), low=[0, 1], high=[0, 2], mode=\"replicate\")",
               use);
    add_output(m, dtype, "[N, M, 3, 3]", "windows(%s(x), size=[3, 3], padding=\"same\")", use);
    add_output(m, dtype, "[(N + 1) / 2, 2, M]",
               "windows(%s(x), size=[2], axis=0, stride=2, low=0, high=1)", use);
    add_output(m, dtype, "[2 * N, M]", "concat([x, %s(x)], axis=0)", use);
    add_output(m, dtype, "[N, 2 * M]", "concat([%s(x), x], axis=1)", use);
    add_output(m, dtype, "[N, M]", "gather(%s(x), i, axis=1)", use);
    add_output(m, dtype, "[M, M]", "gather(x, i, axis=0)");
    add_output(m, dtype, "[M, M]", "gather(x, j, axis=0)");
    add_output(m, dtype, "[N, M]", "expand(%s(z), [N, M])", use);
}

void sweep_add_views(Arena *arena, SweepCases *cases) {
    static const int64_t extents[][SWEEP_MAX_DIMS] = {
        {2, 1}, {2, 2}, {3, 7}, {17, 31}, {33, 64}, {64, 33}, {100, 3}, {1025, 2}, {2, 1025}};
    for (Dtype dtype = 0; dtype < DT_COUNT; dtype++) {
        Maker m = maker_new(arena);
        SweepCase c = {.name = str_format(arena, "views %s", dtype_name(dtype)),
                       .extents = extents,
                       .n_extents = sizeof extents / sizeof *extents,
                       .n_dims = 2,
                       .lo = -4,
                       .hi = 4};
        add_views(&m, dtype, consumer(dtype));
        c.source =
            str_format(arena, "%sdim N in 2..4096\ndim M in 1..4096\ngraph g(%s) -> (%s) {\n%s}\n",
                       dtype_in(dtype, DTS_STORED) ? CHOSEN : "", text_str(&m.inputs),
                       text_str(&m.outputs), text_str(&m.body));
        vec_push(arena, cases, c);
    }
}

/* What several reductions and the work between them make of one kernel. */
static void add_composite(Arena *arena, SweepCases *cases, Dtype dtype, uint32_t axis) {
    Maker m = maker_new(arena);
    static const int64_t extents[][SWEEP_MAX_DIMS] = {
        {0, 3},    {1, 1},     {1, 17},    {17, 1},    {7, 33},    {33, 1000}, {3, 4099},
        {4099, 3}, {2, 16385}, {16385, 2}, {2, 40000}, {40000, 2}, {3, 8192},  {2, 9999}};
    const char *rest = axis ? "[N]" : "[M]";
    add_input(&m, "x", dtype, "[N, M]");
    add_input(&m, "r", dtype, "[N, M]");
    add_output(&m, dtype, "[N, M]", "x + r");
    add_output(&m, dtype, "[N, M]", "softmax(x, axis=%u)", axis);
    add_output(&m, dtype, "[N, M]", "log_softmax(y0, axis=%u)", axis);
    add_output(&m, dtype, rest, "logsumexp(x * 0.5, axis=%u)", axis);
    add_output(&m, dtype, rest, "var(x, axis=%u)", axis);
    add_output(&m, dtype, "[N, M]",
               "y0 * const(2.0, %s) - expand(max(y0, axis=%u, keep=true), [N, M])",
               dtype_name(dtype), axis);
    finish(&m, cases,
           (SweepCase){.name = str_format(arena, "composites %s axis %u", dtype_name(dtype), axis),
                       .n_dims = 2,
                       .extents = extents,
                       .n_extents = sizeof extents / sizeof *extents,
                       .lo = -4,
                       .hi = 4});
}

/* Rows of known length that a block or a cluster keeps; fewer than 64 very long ones would be in
 * kernels of their own. */
static void add_long_rows(Arena *arena, SweepCases *cases, Dtype dtype) {
    static const char *const shapes[] = {"[3, 16384]", "[3, 20000]", "[2, 32767]", "[64, 34816]",
                                         "[64, 50001]"};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        Maker m = maker_new(arena);
        const char *shape = shapes[i], *rest = str_format(arena, "[%d]", atoi(shape + 1));
        add_input(&m, "x", dtype, "%s", shape);
        add_output(&m, dtype, shape, "softmax(x, axis=1)");
        add_output(&m, dtype, rest, "var(x, axis=1)");
        add_output(&m, DT_I32, rest, "argmax(x, axis=1)");
        add_output(&m, DT_I32, rest, "argmin(x, axis=1)");
        finish(&m, cases,
               (SweepCase){.name = str_format(arena, "long rows %s %s", dtype_name(dtype), shape),
                           .extents = constants,
                           .n_extents = 1,
                           .lo = -4,
                           .hi = 4});
    }
}

static const char *const functions[] = {
#define FUNCTION(name, ...) #name,
#include "ulp/functions.def"
};

/* Functions of one number, each of elements and of a column. */
static void add_functions(Arena *arena, SweepCases *cases, Dtype dtype) {
    Maker m = maker_new(arena);
    SweepCase c = {.name = str_format(arena, "functions of %s", dtype_name(dtype)),
                   .n_dims = 2,
                   .extents = planes,
                   .n_extents = sizeof planes / sizeof *planes,
                   .lo = -4,
                   .hi = 4};
    size_t n = sizeof functions / sizeof *functions;
    for (size_t i = 0; i < n; i++) {
        if (m.n_inputs == 0) {
            add_input(&m, "x", dtype, "[N, M]");
            add_input(&m, "r", dtype, "[N, 1]");
        }
        add_output(&m, dtype, "[N, M]", "%s(x) + %s(r)", functions[i], functions[i]);
        if (m.n_outputs == MAX_OUTPUTS || i + 1 == n) finish(&m, cases, c);
    }
}

void sweep_add_composites(Arena *arena, SweepCases *cases) {
    for (Dtype dtype = 0; dtype < DT_COUNT; dtype++) {
        if (!dtype_in(dtype, DTS_FLOAT)) continue;
        add_functions(arena, cases, dtype);
        add_composite(arena, cases, dtype, 0);
        add_composite(arena, cases, dtype, 1);
        add_long_rows(arena, cases, dtype);
    }
}

/* GEMMs and what shares their launches: operands every way round, batches, epilogues, several
 * projections of one input, dual GEMMs, reductions over finished rows. */

enum { N_WITHOUT_ARITHMETIC = 5 }; /* the first, for floats that are stored alone too */
static const char *const contractions[] = {
    "graph plain(x: T[N, K], w: T[K, M]) -> (y: T[N, M]) { y = x @ w }\n",
    "graph turned(x: T[K, N], w: T[M, K]) -> (y: T[N, M]) {\n"
    "  y = transpose(x) @ transpose(w)\n}\n",
    "graph wide(x: T[N, K], w: T[K, M]) -> (y: C[N, M]) {\n"
    "  y = matmul(x, w, out= C) + const(1, C)\n}\n",
    "graph heads(x: T[2, N, K], w: T[K, 24]) -> (y: T[2, 3, N, 8]) {\n"
    "  y = transpose(reshape(x @ w, [2, N, 3, 8]), perm=[0, 2, 1, 3])\n}\n",
    "graph projections(x: T[N, K], a: T[K, 40], b: T[K, 40], c: T[K, 40])"
    " -> (p: T[N, 40], q: T[N, 40], r: T[N, 40]) {\n"
    "  p = x @ a\n  q = x @ b\n  r = x @ c\n}\n",
    "graph batched(x: T[3, N, K], w: T[3, K, M], b: T[M]) -> (y: T[3, N, M]) {\n"
    "  y = x @ w + b\n}\n",
    "graph gated(x: T[N, K], a: T[K, M], b: T[K, M], s: T[N, 1]) -> (y: T[N, M]) {\n"
    "  y = maximum(x @ a + s, const(0.0, T)) * (x @ b)\n}\n",
    "graph gated_batches(x: T[2, N, K], a: T[2, K, 24], b: T[K, 24]) -> (y: T[2, N, 24]) {\n"
    "  y = abs(x @ a) - x @ b\n}\n",
    "graph rows(x: T[N, K], w: T[K, 10], b: T[10]) -> (y: T[N, 10], m: T[N]) {\n"
    "  h = x @ w + b\n  m = max(h, axis=1)\n"
    "  y = h - expand(reshape(sum(h * h, axis=1), [N, 1]), [N, 10])\n}\n",
    "graph row_batches(x: T[3, N, K], w: T[K, 32]) -> (y: T[3, N, 32]) {\n"
    "  h = x @ w\n  y = h - max(h, axis=2, keep=true)\n}\n",
};

/* The text with the dtype in place of T, and the one in which it is computed in place of C. */
static const char *with_dtype(Arena *arena, const char *text, Dtype dtype) {
    Text out = {.arena = arena};
    for (const char *c = text; *c; c++) {
        bool is_dtype = (*c == 'T' || *c == 'C') && c > text && c[-1] == ' ';
        if (is_dtype)
            text_puts(&out, dtype_name(*c == 'T' ? dtype : dtype_compute(dtype)));
        else
            text_add(&out, c, 1);
    }
    return text_str(&out);
}

void sweep_add_contractions(Arena *arena, SweepCases *cases) {
    static const int64_t extents[][SWEEP_MAX_DIMS] = {
        {0, 3, 5},     {3, 0, 5},     {3, 5, 0},     {1, 1, 1},     {1, 40, 33},
        {17, 1, 31},   {31, 33, 64},  {64, 64, 64},  {100, 72, 40}, {129, 257, 96},
        {300, 8, 130}, {31, 40, 301}, {40, 129, 264}}; /* the last two: operands that GPUs copy */
    for (Dtype dtype = 0; dtype < DT_COUNT; dtype++)
        for (size_t i = 0; i < sizeof contractions / sizeof *contractions; i++) {
            if (!dtype_in(dtype, i < N_WITHOUT_ARITHMETIC ? DTS_NUM | DTS_STORED : DTS_NUM))
                continue;
            const char *source = with_dtype(arena, contractions[i], dtype);
            const char *name = strchr(source, ' ') + 1;
            SweepCase c = {.name = str_format(arena, "%.*s %s", (int)strcspn(name, "("), name,
                                              dtype_name(dtype)),
                           .extents = extents,
                           .n_extents = sizeof extents / sizeof *extents,
                           .n_dims = 3,
                           .lo = -1,
                           .hi = 1};
            c.source = str_format(arena, "%s%s", dim_text[3], source);
            vec_push(arena, cases, c);
        }
}
