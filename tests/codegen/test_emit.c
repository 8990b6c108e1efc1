/* Every op on every dtype it takes has code on every target: LLVM aborts on what it cannot select,
 * so each cell is named before it is lowered. */
#include "codegen/codegen.h"
#include "codegen/unit.h"
#include "lib/plans.h"
#include "lib/ptx.h"
#include "schedule/schedule.h"

#include <criterion/criterion.h>
#include <math.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static NodeId add_input(Graph *graph, Dtype dtype, const Shape *shape, uint32_t i) {
    NodeId id = graph_add(graph, (Node){.op = OP_INPUT, .dtype = dtype, .shape = *shape});
    vec_push(graph->arena, &graph->inputs,
             (GraphInput){.name = str_format(graph->arena, "x%u", i), .node = id});
    return id;
}

static Dtype result_dtype(OpId op, Dtype dtype, Dtype cast_to) {
    const OpInfo *info = op_info(op);
    if (info->cls == CLASS_ONLINE) return online_dtype(op, dtype);
    if (info->cls == CLASS_CAST) return cast_to;
    if (info->cls == CLASS_ARGREDUCE || info->cls == CLASS_SORT) return DT_I32;
    return info->result == RESULT_BOOL ? DT_BOOL : dtype;
}

/* `op` on inputs of `dtype` and shape [B, 24], reduced over `axis` where it reduces. */
static Graph *graph_of(Arena *arena, OpId op, Dtype dtype, Dtype cast_to, uint32_t axis) {
    const OpInfo *info = op_info(op);
    DimTab *dims = dimtab_new(arena);
    dim_declare(dims, (DimSymbol){.name = "B", .lo = 0, .hi = 4096, .multiple = 1});
    Str name =
        str_format(arena, "%s_%s_%s%u", info->name, dtype_name(dtype), dtype_name(cast_to), axis);
    Graph *graph = graph_new(arena, dims, NULL, name);
    Shape shape = {.rank = 2, .dims = {dim_symbol(dims, 0), dim_const(dims, 24)}};
    NodeId args[3];
    uint32_t n_args = info->max_args;
    for (uint32_t i = 0; i < n_args; i++) {
        bool is_condition = info->result == RESULT_SELECT && i == 0;
        bool is_number = info->cls == CLASS_SEGMENT && i == 1;
        Dtype own = is_condition ? DT_BOOL
                    : is_number  ? (dtype_bytes(dtype) < 8 ? DT_I32 : DT_I64)
                                 : dtype;
        bool is_weighed = info->cls == CLASS_ONLINE && i == 0;
        Shape of_values = {.rank = 2, .dims = {shape.dims[1], shape.dims[0]}};
        args[i] = add_input(graph, is_weighed ? online_compute(dtype) : own,
                            info->cls == CLASS_ONLINE && i == 1 ? &of_values : &shape, i);
    }
    Node node = {.op = op, .dtype = result_dtype(op, dtype, cast_to), .shape = shape};
    node.n_args = n_args;
    node.args = args;
    if (info->cls == CLASS_REDUCE || info->cls == CLASS_ARGREDUCE) {
        node.attrs.axes = 1u << axis;
        node.shape = shape_reduced(dims, &shape, node.attrs.axes, false);
    }
    if (info->cls == CLASS_ONLINE) node.shape.dims[1] = shape.dims[0];
    if (info->cls == CLASS_ONLINE && !info->power)
        node.attrs.quantize = (QuantizeMap){.scale = 1, .least = -INFINITY, .dtype = dtype};
    if (info->cls == CLASS_SEGMENT) node.shape.dims[axis] = dim_const(dims, 5);
    if (info->cls == CLASS_SCAN || info->cls == CLASS_SORT || info->cls == CLASS_SEGMENT)
        node.attrs.axes = 1u << axis;
    NodeId result = graph_add(graph, node);
    vec_push(arena, &graph->outputs, (GraphOutput){.name = "y", .node = result});
    return graph;
}

static bool has_template(OpClass cls) {
    return cls == CLASS_ELTWISE || cls == CLASS_CAST || cls == CLASS_REDUCE ||
           cls == CLASS_ARGREDUCE || cls == CLASS_SCAN || cls == CLASS_SORT ||
           cls == CLASS_SEGMENT || cls == CLASS_ONLINE;
}

typedef struct Cells {
    Arena *arena;
    const Target *target;
    const Plan *plans[1024];
    uint32_t n;
} Cells;

static void add_cell(Cells *cells, OpId op, Dtype dtype, Dtype cast_to, uint32_t axis) {
    Diags diags = {.arena = cells->arena};
    Graph *graph = graph_of(cells->arena, op, dtype, cast_to, axis);
    Plan *plan = plans_fuse_with(cells->arena, graph, (FuseOptions){.off = false}, &diags);
    cr_assert(plan, "%s does not fuse", graph->name);
    sched_plan(cells->arena, plan, cells->target);
    cr_assert(codegen_is_legal(plan, cells->target, &diags), "%s is not legal", graph->name);
    cells->plans[cells->n++] = plan;
}

static void add_cells(Cells *cells, OpId op, Dtype dtype) {
    OpClass cls = op_info(op)->cls;
    if (!has_template(cls) || !dtype_in(dtype, op_info(op)->dtypes)) return;
    if (cls == CLASS_CAST)
        for (int to = 0; to < DT_COUNT; to++) {
            bool has_width = dtype_bytes((Dtype)to) == dtype_bytes(dtype);
            if (op == OP_CAST || has_width) add_cell(cells, op, dtype, (Dtype)to, 0);
        }
    else if (cls == CLASS_ELTWISE || cls == CLASS_ONLINE)
        add_cell(cells, op, dtype, dtype, 0);
    else
        for (uint32_t axis = 0; axis < 2; axis++) add_cell(cells, op, dtype, dtype, axis);
}

static void collect(Cells *cells, Dtype dtype) {
    for (int op = 1; op < OP_COUNT; op++) add_cells(cells, (OpId)op, dtype);
}

static const char *rendered(Arena *arena, const Diags *diags) {
    Text text = {.arena = arena};
    diag_print(diags, &text);
    return text_str(&text);
}

/* An object may refer to nothing outside itself. */
static void check_symbols(const CodeBytes *code, const char *what) {
    char path[] = "/tmp/fusec-emit-XXXXXX", command[256];
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    FILE *file = fdopen(fd, "wb");
    cr_assert(file && fwrite(code->data, 1, code->n_bytes, file) == code->n_bytes);
    fclose(file);
    snprintf(command, sizeof command, "test -z \"$(nm -u %s)\"", path);
    cr_expect(system(command) == 0, "%s refers to outside symbols", what);
    remove(path);
}

static void lower_all(TargetId target, Dtype dtype) {
    Cells *cells = calloc(1, sizeof *cells);
    cells->arena = arena_new(NULL);
    cells->target = target_get(target);
    fprintf(stderr, "[emit] %s %s\n", cells->target->name, dtype_name(dtype));
    collect(cells, dtype);
    Diags diags = {.arena = cells->arena};
    bool is_gpu = cells->target->device == DEVICE_GPU;
    CodeBytes code = {NULL, 0};
    bool ok = codegen_emit(cells->arena, cells->plans, cells->n,
                           (BackOptions){.target = cells->target, .verify = true},
                           is_gpu ? CODE_ASSEMBLY : CODE_OBJECT, &code, &diags);
    cr_assert(ok, "%s", rendered(cells->arena, &diags));
    cr_expect(cells->n > 20);
    PtxReport report;
    if (!is_gpu)
        check_symbols(&code, dtype_name(dtype));
    else if (ptx_assemble(cells->arena, code.data, code.n_bytes,
                          (PtxOptions){.target = cells->target->name, .level = "0"}, &report))
        cr_expect(report.functions.n > 0, "%s", dtype_name(dtype));
    arena_free(cells->arena);
    free(cells);
}

Test(emit, the_same_plans_become_the_same_bytes, .timeout = 300) {
    static const TargetId targets[] = {TARGET_SM_90A, TARGET_CPU};
    Cells *cells = calloc(1, sizeof *cells);
    cells->arena = arena_new(NULL);
    for (int t = 0; t < 2; t++) {
        CodeBytes codes[2] = {{NULL, 0}};
        cells->target = target_get(targets[t]);
        cells->n = 0;
        collect(cells, DT_F32);
        for (int i = 0; i < 2; i++) {
            Diags diags = {.arena = cells->arena};
            BackOptions options = {.target = cells->target};
            CodeKind kind = t == 0 ? CODE_ASSEMBLY : CODE_OBJECT;
            cr_assert(codegen_emit(cells->arena, cells->plans, cells->n, options, kind, &codes[i],
                                   &diags));
        }
        cr_expect_eq(codes[1].n_bytes, codes[0].n_bytes);
        cr_expect_eq(memcmp(codes[1].data, codes[0].data, codes[0].n_bytes), 0,
                     "something else for %s", cells->target->name);
    }
    arena_free(cells->arena);
    free(cells);
}

Test(emit, every_cell_lowers_for_sm_80, .timeout = 300) {
    for (int dtype = 0; dtype < DT_COUNT; dtype++)
        if (dtype != DT_BOOL) lower_all(TARGET_SM_80, (Dtype)dtype);
}

Test(emit, every_cell_lowers_for_sm_90a, .timeout = 300) {
    for (int dtype = 0; dtype < DT_COUNT; dtype++)
        if (dtype != DT_BOOL) lower_all(TARGET_SM_90A, (Dtype)dtype);
}

Test(emit, every_cell_lowers_for_the_cpu, .timeout = 300) {
    for (int dtype = 0; dtype < DT_COUNT; dtype++)
        if (dtype != DT_BOOL) lower_all(TARGET_CPU, (Dtype)dtype);
}

Test(emit, every_cell_lowers_for_wide_cpus, .timeout = 300) {
    for (int dtype = 0; dtype < DT_COUNT; dtype++)
        if (dtype != DT_BOOL) lower_all(TARGET_CPU_V4, (Dtype)dtype);
}

static uint32_t count(const char *text, const char *word) {
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) n++;
    return n;
}

/* A GEMM whose results are mapped by a function. */
static const Plan *gemm_plan(Arena *arena, const char *function) {
    const char *source = str_format(arena,
                                    "graph g_%s(x: f32[64, 64], w: f32[64, 64])"
                                    " -> (y: f32[64, 64]) { y = %s(x @ w) }\n",
                                    function, function);
    Plan *plan = plans_fuse(arena, plans_parse(arena, source), 0, false);
    sched_plan(arena, plan, target_get(TARGET_CPU));
    return plan;
}

Test(emit, gemms_of_one_register_tile_share_its_function) {
    Arena *arena = arena_new(NULL);
    const Plan *plans[] = {gemm_plan(arena, "exp"), gemm_plan(arena, "erf")};
    BackOptions options = {.target = target_get(TARGET_CPU)};
    Diags diags = {.arena = arena};
    CodeBytes ir, object;
    cr_assert(codegen_emit(arena, plans, 2, options, CODE_LLVM_IR, &ir, &diags));
    cr_expect_eq(count(ir.data, "define void @g_"), 2u);
    cr_expect_eq(count(ir.data, "define hidden void @g_"), 1u, "each GEMM has a tile of its own");
    cr_expect_eq(count(ir.data, "call void @g_"), 2u);
    cr_assert(codegen_emit(arena, plans, 2, options, CODE_OBJECT, &object, &diags));
    check_symbols(&object, "a shared tile");
    arena_free(arena);
}

static CodeBytes cpu_code(Arena *arena, const char *source, CodeKind kind) {
    Plan *plan = plans_fuse(arena, plans_parse(arena, source), 0, false);
    sched_plan(arena, plan, target_get(TARGET_CPU));
    const Plan *plans[] = {plan};
    BackOptions options = {.target = target_get(TARGET_CPU)};
    Diags diags = {.arena = arena};
    CodeBytes code;
    cr_assert(codegen_emit(arena, plans, 1, options, kind, &code, &diags));
    return code;
}

/* LLVM 22 fails on lanes of i64 that are cut to 16 bits, extended to i32 and compared. */
Test(emit, lanes_of_cut_integers_are_compared) {
    static const char *const sources[] = {
        "graph g(x: u32[2, 60]) -> (y: f64[60]) {\n"
        "  y = cast(argmin(cast(clamp(x, cast(0, u32), cast(1, u32)), i16), axis=0), f64)\n}\n",
        "graph g(x: i64[2, 60], z: i64[1, 60]) -> (y: f64[1, 60]) {\n"
        "  a = cast(clamp(x, cast(-100, i64), cast(100, i64)), i8)\n"
        "  b = cast(clamp(z, cast(0, i64), cast(1, i64)), i8)\n"
        "  y = cast(argmin(a, axis=0, keep=true), f64) + cast(b, f64)\n}\n",
        "graph g(x: i64[60], z: i64[60]) -> (y: f64[60]) {\n"
        "  y = cast(cast(x % cast(8, i64), i16) < cast(z & cast(3, i64), i16), f64)\n}\n"};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        Arena *arena = arena_new(NULL);
        cr_expect_gt(cpu_code(arena, sources[i], CODE_OBJECT).n_bytes, 0u);
        arena_free(arena);
    }
}

Test(emit, ops_of_u32_compute_in_32_bits) {
    static const char *const ops[] = {
        "clamp(x, z, z)", "maximum(x, z)", "x + z", "x * z",  "x / z", "x % z",
        "x >> z",         "x << z",        "x ^ z", "abs(x)", "-x",    "where(x < z, x, z)"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        Arena *arena = arena_new(NULL);
        const char *source = str_format(arena,
                                        "graph g(x: u32[64, 60], z: u32[64, 60])"
                                        " -> (y: u32[64, 60]) { y = %s }\n",
                                        ops[i]);
        CodeBytes ir = cpu_code(arena, source, CODE_LLVM_IR);
        cr_expect_eq(count(ir.data, "x i64>"), 0u, "%s has lanes of i64", ops[i]);
        arena_free(arena);
    }
}

Test(emit, accumulators_of_u32_have_32_bits) {
    static const char *const bodies[][2] = {
        {"u32[64]", "sum(x, axis=1)"},       {"u32[60]", "sum(x, axis=0)"},
        {"u32[64]", "max(x, axis=1)"},       {"u32[60]", "min(x, axis=0)"},
        {"u32[64]", "prod(x, axis=1)"},      {"i32[64]", "argmax(x, axis=1)"},
        {"u32[64, 60]", "cummax(x, axis=0)"}};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        Arena *arena = arena_new(NULL);
        const char *source = str_format(arena, "graph g(x: u32[64, 60]) -> (y: %s) { y = %s }\n",
                                        bodies[i][0], bodies[i][1]);
        CodeBytes ir = cpu_code(arena, source, CODE_LLVM_IR);
        cr_expect_eq(count(ir.data, "x i64>"), 0u, "%s has lanes of i64", bodies[i][1]);
        arena_free(arena);
    }
}

/* Bits that are only chosen stay as they are, and computed numbers are rounded after the choice. A
 * rounding to bf16 on a CPU adds half of the last place, 32767. */
Test(emit, choices_of_short_floats_are_exact) {
    static const struct {
        const char *type, *body;
        uint32_t n_roundings;
    } choices[] = {{"bf16", "where(c, x, z)", 0},
                   {"bf16", "where(c, x, 0.5)", 0},
                   {"bf16", "where(c, where(x == z, x, z), x)", 0},
                   {"bf16", "where(c, x + z, x - z)", 1},
                   {"f8e4m3", "where(c, x, z)", 0},
                   {"f8e5m2", "where(x == z, x, z)", 0}};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        Arena *arena = arena_new(NULL);
        const char *type = choices[i].type;
        const char *source =
            str_format(arena,
                       "graph g(x: %s[2, 64], z: %s[2, 64], c: bool[2, 64]) -> (y: %s[2, 64]) {\n"
                       "  y = %s\n}\n",
                       type, type, type, choices[i].body);
        CodeBytes ir = cpu_code(arena, source, CODE_LLVM_IR);
        cr_expect_eq(count(ir.data, "i32 32767"), choices[i].n_roundings, "%s of %s",
                     choices[i].body, type);
        bool computes = choices[i].n_roundings || strstr(choices[i].body, "==");
        cr_expect(computes || !strstr(ir.data, "x float>"), "%s of %s", choices[i].body, type);
        arena_free(arena);
    }
}

/* Units that are named by their sizes. The first one keeps the other thread busy until the caller's
 * has finished all others. */
enum { N_SMALL_UNITS = 5, BUSY_INSTRUCTIONS = 1000 };

static struct {
    sem_t has_begun, may_end;
    uint32_t finished[N_SMALL_UNITS], n_finished;
    uint32_t taken[N_SMALL_UNITS + 1], n_taken;
} units;

static void finish_unit(CodegenUnit *unit, const BackOptions *options, CodeKind kind) {
    (void)options;
    (void)kind;
    if (unit->n_instructions == BUSY_INSTRUCTIONS) {
        sem_post(&units.has_begun);
        sem_wait(&units.may_end);
        return;
    }
    units.finished[units.n_finished++] = unit->n_instructions;
    if (units.n_finished == N_SMALL_UNITS) sem_post(&units.may_end);
}

static bool take_unit(void *user, CodegenUnit *unit) {
    (void)user;
    units.taken[units.n_taken++] = unit->n_instructions;
    return true;
}

Test(emit, large_units_are_finished_first_and_taken_in_order) {
    static const uint32_t sizes[N_SMALL_UNITS] = {3, 9, 1, 7, 5};
    Arena *arena = arena_new(NULL);
    BackOptions options = {.target = target_get(TARGET_CPU), .n_threads = 2};
    sem_init(&units.has_begun, 0, 0);
    sem_init(&units.may_end, 0, 0);
    UnitQueue *queue = unit_queue_new(arena, &options, CODE_OBJECT, finish_unit, take_unit, NULL);
    for (uint32_t i = 0; i <= N_SMALL_UNITS; i++) {
        unit_open(queue);
        unit_close(queue, i ? sizes[i - 1] : BUSY_INSTRUCTIONS, EFFORT_BEST);
    }
    sem_wait(&units.has_begun);
    cr_expect(unit_take_rest(queue));
    for (uint32_t i = 0; i < N_SMALL_UNITS; i++) {
        cr_expect_eq(units.finished[i], 9 - 2 * i, "unit %u was finished", units.finished[i]);
        cr_expect_eq(units.taken[i + 1], sizes[i], "unit %u was taken", units.taken[i + 1]);
    }
    unit_queue_dispose(queue);
    arena_free(arena);
}

static sem_t prepared;

static LLVMTargetMachineRef prepare_none(const BackOptions *options) {
    (void)options;
    sem_post(&prepared);
    return NULL;
}

Test(emit, threads_prepare_before_there_are_units) {
    enum { MOST = 2 };
    Arena *arena = arena_new(NULL);
    BackOptions options = {.target = target_get(TARGET_CPU), .n_threads = 4};
    sem_init(&prepared, 0, 0);
    sem_init(&units.has_begun, 0, 0);
    sem_init(&units.may_end, 0, 1);
    UnitQueue *queue = unit_queue_new(arena, &options, CODE_OBJECT, finish_unit, take_unit, NULL);
    unit_queue_prepare(queue, prepare_none, MOST);
    for (int i = 0; i < MOST; i++) sem_wait(&prepared);
    cr_expect(sem_trywait(&prepared), "more threads began than were asked for");
    unit_open(queue);
    unit_close(queue, BUSY_INSTRUCTIONS, EFFORT_BEST);
    sem_wait(&units.has_begun);
    cr_expect(unit_take_rest(queue));
    unit_queue_dispose(queue);
    arena_free(arena);
}
