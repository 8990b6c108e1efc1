/* The CPU templates: reductions to the bit against a plain order of summation, and fused programs
 * against unfused ones, over widths, unit sizes, extents and dtypes. Behind is no memory. */
#include "codegen/codegen.h"
#include "front/sema.h"
#include "lib/plans.h"
#include "lib/compare.h"
#include "random/rng.h"
#include "schedule/schedule.h"

#include <criterion/criterion.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_SYMBOLS = 8 };

/* Compiling a program for one schedule. */

typedef struct Settings {
    TargetId target;
    uint32_t lanes; /* 0: what the scheduler chose, and its chunk_elems */
    int64_t chunk_elems;
    bool is_wide, off;
} Settings;

typedef void KernelFunction(void **args, const int64_t *dims, int64_t begin, int64_t end);

typedef struct Compiled {
    Arena *arena;
    const Graph *graph;
    Plan *plan;
    LLVMOrcLLJITRef jit;
    KernelFunction *(*functions)[MAX_VARIANTS]; /* per kernel and variant */
} Compiled;

static void fail_with(const Diags *diags, Arena *arena, const char *source) {
    Text text = {.arena = arena};
    diag_print(diags, &text);
    cr_assert_fail("%s\n%s", text_str(&text), source);
}

static void override_sched(Kernel *kernel, Settings settings) {
    for (uint32_t v = 0; v < kernel->n_variants; v++) {
        Sched *sched = &kernel->variants[v].sched;
        sched->is_wide = sched->is_wide || settings.is_wide;
        if (!settings.lanes) continue;
        if (sched->lanes > 1) sched->lanes = settings.lanes;
        if (sched->template == TEMPLATE_CPU_MAP) sched->cpu_map.chunk_elems = settings.chunk_elems;
        if (sched->template == TEMPLATE_CPU_COLUMN)
            sched->cpu_column.chunk_elems = settings.chunk_elems;
    }
}

static void link_object(Compiled *c, CodeBytes code) {
    LLVMErrorRef error = LLVMOrcCreateLLJIT(&c->jit, NULL);
    cr_assert_null(error);
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(code.data, code.n_bytes, "kernels");
    error = LLVMOrcLLJITAddObjectFile(c->jit, LLVMOrcLLJITGetMainJITDylib(c->jit), buffer);
    cr_assert_null(error);
    uint32_t n = c->plan->kernels.n;
    c->functions = arena_alloc_array(c->arena, n, sizeof *c->functions);
    for (uint32_t i = 0; i < n * MAX_VARIANTS; i++) {
        const Kernel *kernel = &c->plan->kernels.data[i / MAX_VARIANTS];
        uint32_t v = i % MAX_VARIANTS;
        LLVMOrcExecutorAddress address = 0;
        if (v >= kernel->n_variants) continue;
        error = LLVMOrcLLJITLookup(c->jit, &address, kernel->variants[v].symbol);
        cr_assert_null(error);
        c->functions[i / MAX_VARIANTS][v] = (KernelFunction *)(uintptr_t)address;
    }
}

static Compiled compile(const char *source, Settings settings) {
    Compiled c = {.arena = arena_new(NULL)};
    Diags diags = {.arena = c.arena};
    const Source *text = source_new(c.arena, "test.g", source, strlen(source));
    Module *module = front_parse(c.arena, strtab_new(c.arena), &diags, text);
    if (!module) fail_with(&diags, c.arena, source);
    c.graph = module->graphs.data[0];
    c.plan = plans_fuse_with(c.arena, c.graph, (FuseOptions){.off = settings.off}, &diags);
    if (!c.plan) fail_with(&diags, c.arena, source);
    const Target *target = target_get(settings.target);
    sched_plan(c.arena, c.plan, target);
    for (uint32_t i = 0; i < c.plan->kernels.n; i++)
        override_sched(&c.plan->kernels.data[i], settings);
    const Plan *plan = c.plan;
    CodeBytes code;
    BackOptions options = {.target = target, .verify = true};
    if (!codegen_emit(c.arena, &plan, 1, options, CODE_OBJECT, &code, &diags))
        fail_with(&diags, c.arena, source);
    link_object(&c, code);
    return c;
}

static void compiled_free(Compiled *c) {
    cr_assert_null(LLVMOrcDisposeLLJIT(c->jit));
    arena_free(c->arena);
}

/* Running it. */

typedef struct Block {
    uint8_t *bytes; /* end at the unreadable page */
    void *mapped;
    size_t n_mapped;
} Block;

static Block block_new(size_t n_bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (n_bytes + page - 1) / page * page;
    int zero = open("/dev/zero", O_RDWR);
    Block block = {.n_mapped = room + page};
    block.mapped = mmap(NULL, block.n_mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
    close(zero);
    cr_assert_neq(block.mapped, MAP_FAILED);
    cr_assert_eq(mprotect((uint8_t *)block.mapped + room, page, PROT_NONE), 0);
    memset(block.mapped, 0x7F, room); /* NaN or huge in every dtype */
    block.bytes = (uint8_t *)block.mapped + room - n_bytes;
    return block;
}

typedef struct Run {
    Block *blocks; /* per buffer of the plan */
    uint32_t n;
} Run;

static void run_free(Run *run) {
    for (uint32_t i = 0; i < run->n; i++) munmap(run->blocks[i].mapped, run->blocks[i].n_mapped);
    free(run->blocks);
}

static int64_t eval(const Compiled *c, DimId dim, const int64_t *symbols) {
    int64_t value;
    cr_assert(dim_eval(c->graph->dims, dim, symbols, &value));
    return value;
}

/* Work units of a kernel's variant, from the definition in codegen/template.h. */
static int64_t count_units(const Compiled *c, const Kernel *kernel, const Sched *sched,
                           const int64_t *symbols) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    int64_t units = 1;
    for (uint32_t k = 0; k < kernel->n_parallel; k++) {
        int64_t extent = eval(c, index_axis_extent(tab, k), symbols);
        int64_t chunk_elems = sched_chunk_elems(sched);
        if (chunk_elems && k == kernel_lane_axis(kernel, sched))
            extent = (extent + chunk_elems - 1) / chunk_elems;
        units *= extent;
    }
    if (kernel->segment_axis != NO_AXIS)
        units *= eval(c, index_axis_extent(tab, kernel->segment_axis), symbols);
    return units;
}

static void run_kernel(const Compiled *c, const Run *run, uint32_t k, const int64_t *symbols) {
    const Kernel *kernel = &c->plan->kernels.data[k];
    void *args[MAX_KERNEL_ARGS];
    int64_t dims[DIM_MAX_SYMBOLS];
    uint32_t n_dims = 0;
    for (uint32_t i = 0; i < kernel->args.n; i++) args[i] = run->blocks[kernel->args.data[i]].bytes;
    for (uint32_t s = 0; s < DIM_MAX_SYMBOLS; s++)
        if (kernel->symbols >> s & 1) dims[n_dims++] = symbols[s];
    uint32_t v = variant_taken(c->plan, kernel, 1, symbols);
    int64_t units = count_units(c, kernel, &kernel->variants[v].sched, symbols), middle = units / 3;
    c->functions[k][v](args, dims, middle, units);
    c->functions[k][v](args, dims, 0, middle);
}

static int64_t buffer_elems(const Compiled *c, const Buffer *buffer, const int64_t *symbols) {
    return eval(c, shape_n_elems(c->graph->dims, &buffer->shape), symbols);
}

static Run run(const Compiled *c, const Tensor *inputs, const int64_t *symbols) {
    Run r = {.n = c->plan->buffers.n};
    r.blocks = calloc(r.n, sizeof *r.blocks);
    cr_assert_not_null(r.blocks);
    for (uint32_t i = 0; i < r.n; i++) {
        const Buffer *buffer = &c->plan->buffers.data[i];
        int64_t n = buffer_elems(c, buffer, symbols);
        r.blocks[i] = block_new((size_t)n * dtype_bytes(buffer->dtype));
        if (buffer->kind != BUFFER_INPUT) continue;
        cr_assert_eq(n, tensor_n_elems(&inputs[buffer->ordinal]));
        tensor_store(&inputs[buffer->ordinal], r.blocks[i].bytes);
    }
    for (uint32_t k = 0; k < c->plan->kernels.n; k++) run_kernel(c, &r, k, symbols);
    return r;
}

/* Output `ordinal` of a run, borrowed. */
static const uint8_t *output(const Compiled *c, const Run *r, uint32_t ordinal) {
    for (uint32_t i = 0; i < c->plan->buffers.n; i++) {
        const Buffer *buffer = &c->plan->buffers.data[i];
        if (buffer->kind == BUFFER_OUTPUT && buffer->ordinal == ordinal) return r->blocks[i].bytes;
    }
    cr_assert_fail("no output %u", ordinal);
    return NULL;
}

/* The order of summation, said plainly, over numbers of an accumulator's type. */

static double acc_round(Dtype acc, double value) {
    return acc == DT_F32 ? (double)(float)value : value;
}

static double combine(OpId op, Dtype acc, double a, double b) {
    bool multiplies = op == OP_PROD;
    if (op == OP_MAX || op == OP_MIN) {
        if (isnan(a) || isnan(b)) return NAN;
        return (op == OP_MAX) == (a > b || (a == b && !signbit(a))) ? a : b;
    }
    if (acc == DT_I32) {
        uint32_t x = (uint32_t)(int32_t)a, y = (uint32_t)(int32_t)b;
        return (int32_t)(multiplies ? x * y : x + y);
    }
    return acc_round(acc, multiplies ? a * b : a + b);
}

static double reduce_segment(OpId op, Dtype acc, const double *v, int64_t n, uint32_t n_chains) {
    double chains[64];
    for (uint32_t k = 0; k < n_chains; k++) chains[k] = dtype_round(acc, op_info(op)->identity);
    for (int64_t i = 0; i < n; i++)
        chains[i % n_chains] = combine(op, acc, chains[i % n_chains], v[i]);
    for (uint32_t m = n_chains; m > 1; m /= 2)
        for (uint32_t k = 0; k < m / 2; k++)
            chains[k] = combine(op, acc, chains[2 * k], chains[2 * k + 1]);
    return chains[0];
}

static double reduce_all(OpId op, Dtype acc, const double *v, int64_t n, ReduceOrder order) {
    if (n <= order.segment_elems) return reduce_segment(op, acc, v, n, order.n_chains);
    int64_t n_parts = (n + order.segment_elems - 1) / order.segment_elems;
    double *parts = calloc((size_t)n_parts, sizeof *parts);
    for (int64_t s = 0; s < n_parts; s++) {
        int64_t begin = s * order.segment_elems, rest = n - begin;
        parts[s] =
            reduce_segment(op, acc, v + begin,
                           rest < order.segment_elems ? rest : order.segment_elems, order.n_chains);
    }
    double result = reduce_all(op, acc, parts, n_parts, order);
    free(parts);
    return result;
}

static bool is_arg(OpId op) {
    return op_info(op)->cls == CLASS_ARGREDUCE;
}

static double arg_extreme(OpId op, const double *v, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        bool is_better = op == OP_ARGMAX ? v[i] > v[best] : v[i] < v[best];
        if (!isnan(v[best]) && (isnan(v[i]) || is_better)) best = i;
    }
    return (double)best;
}

static double expected_result(OpId op, Dtype dtype, const double *v, int64_t n, ReduceOrder order) {
    Dtype acc = dtype_compute(dtype);
    if (is_arg(op)) return arg_extreme(op, v, n);
    if (op == OP_SUM && n == 0) return 0; /* not the -0 that chains start from */
    double total = reduce_all(op, acc, v, n, order);
    if (op == OP_MEAN) total = acc_round(acc, total / acc_round(acc, (double)n));
    return dtype_round(dtype, total);
}

/* Reductions of one tensor over a set of its axes. */

typedef struct Case {
    uint32_t rank;
    uint32_t axes;     /* reduced, bit set */
    int64_t limits[4]; /* of the dims; the extents themselves for is_const */
    bool is_const;
    Dtype dtype;
} Case;

enum { N_OPS = 7 };
static const OpId ops[N_OPS] = {OP_SUM, OP_MEAN, OP_PROD, OP_MAX, OP_MIN, OP_ARGMAX, OP_ARGMIN};

static bool has_op(const Case *test, OpId op) {
    if (!dtype_in(test->dtype, op_info(op)->dtypes)) return false;
    return !is_arg(op) || (test->axes & (test->axes - 1)) == 0;
}

static void print_shape(Text *text, const Case *test, uint32_t axes) {
    const char *separator = "[";
    for (uint32_t k = 0; k < test->rank; k++) {
        if (!(axes >> k & 1)) continue;
        text_puts(text, separator);
        if (test->is_const)
            text_printf(text, "%lld", (long long)test->limits[k]);
        else
            text_printf(text, "%c", (char)('A' + k));
        separator = ", ";
    }
    text_puts(text, *separator == '[' ? "" : "]");
}

static const char *case_source(Arena *arena, const Case *test) {
    Text text = {.arena = arena};
    const char *dtype = dtype_name(test->dtype);
    for (uint32_t k = 0; k < test->rank && !test->is_const; k++)
        text_printf(&text, "dim %c in 0..%lld\n", (char)('A' + k), (long long)test->limits[k]);
    text_printf(&text, "graph g(x: %s", dtype);
    print_shape(&text, test, UINT32_MAX);
    const char *separator = ") -> (";
    for (uint32_t i = 0; i < N_OPS; i++) {
        if (!has_op(test, ops[i])) continue;
        text_printf(&text, "%sy%u: %s", separator, i, is_arg(ops[i]) ? "i32" : dtype);
        print_shape(&text, test, ~test->axes);
        separator = ", ";
    }
    text_puts(&text, ") {\n");
    for (uint32_t i = 0; i < N_OPS; i++) {
        if (!has_op(test, ops[i])) continue;
        const char *bracket = is_arg(ops[i]) ? "" : "[", *before = bracket;
        text_printf(&text, "  y%u = %s(x, axis=", i, op_info(ops[i])->name);
        for (uint32_t k = 0; k < test->rank; k++) {
            if (!(test->axes >> k & 1)) continue;
            text_printf(&text, "%s%u", before, k);
            before = ", ";
        }
        text_puts(&text, *bracket ? "])\n" : ")\n");
    }
    text_puts(&text, "}\n");
    return text_str(&text);
}

static Tensor random_tensor(Arena *arena, Rng *rng, Dtype dtype, uint32_t rank, const int64_t *dims,
                            bool has_specials) {
    static const double specials[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0};
    Tensor tensor;
    cr_assert(tensor_new(arena, dtype, rank, dims, &tensor));
    int64_t n = tensor_n_elems(&tensor);
    for (int64_t i = 0; i < n; i++) {
        double value = rng_uniform(rng, 0.5, 2) * (rng_below(rng, 2) ? 1 : -1);
        if (dtype == DT_I32) value *= 1e9;
        if (has_specials && rng_below(rng, 40) == 0) value = specials[rng_below(rng, 5)];
        if (has_specials && i < n / 4) value = -0.0;
        tensor.data[i] = dtype_round(dtype, value);
    }
    return tensor;
}

/* The elements of x, grouped by the output element that they fold into: n of each, in row-major
 * order of the reduced axes. */
static double *grouped(const Tensor *x, uint32_t axes, int64_t n_out, int64_t n) {
    int64_t total = tensor_n_elems(x);
    double *groups = calloc((size_t)total + 1, sizeof *groups);
    int64_t *counts = calloc((size_t)n_out + 1, sizeof *counts);
    for (int64_t i = 0; i < total; i++) {
        int64_t rest = i, at = 0, stride = 1;
        for (uint32_t k = x->rank; k-- > 0;) {
            if (!(axes >> k & 1)) {
                at += rest % x->dims[k] * stride;
                stride *= x->dims[k];
            }
            rest /= x->dims[k];
        }
        groups[at * n + counts[at]++] = x->data[i];
    }
    free(counts);
    return groups;
}

static void check_outputs(const Compiled *c, const Case *test, const Tensor *x, const Run *r,
                          const char *what) {
    bool is_row = (test->axes >> (test->rank - 1) & 1) != 0;
    ReduceOrder order = reduce_order(is_row ? FORM_ROW : FORM_COLUMN, DEVICE_CPU);
    int64_t n_out = 1, n = 1;
    for (uint32_t k = 0; k < test->rank; k++) *(test->axes >> k & 1 ? &n : &n_out) *= x->dims[k];
    double *groups = grouped(x, test->axes, n_out, n);
    for (int64_t out = 0; out < n_out; out++) {
        const double *v = groups + out * n;
        for (uint32_t i = 0, ordinal = 0; i < N_OPS; i++) {
            if (!has_op(test, ops[i])) continue;
            Dtype dtype = is_arg(ops[i]) ? DT_I32 : test->dtype;
            double expected = expected_result(ops[i], test->dtype, v, n, order);
            double actual = dtype_load(dtype, output(c, r, ordinal++) + out * dtype_bytes(dtype));
            cr_assert(compare_element(dtype, expected, actual, 0),
                      "%s: %s of %lld %s at %lld: expected %.17g, got %.17g", what,
                      op_info(ops[i])->name, (long long)n, dtype_name(test->dtype), (long long)out,
                      expected, actual);
        }
    }
    free(groups);
}

static void check_case(const Case *test, Settings settings, const int64_t (*extents)[4],
                       uint32_t n_extents) {
    Arena *arena = arena_new(NULL);
    const char *source = case_source(arena, test);
    Compiled c = compile(source, settings);
    for (uint32_t e = 0; e < 2 * n_extents; e++) {
        Rng rng = rng_new(e + 1);
        const int64_t *dims = extents[e / 2];
        Tensor x = random_tensor(arena, &rng, test->dtype, test->rank, dims, e % 2 != 0);
        Run r = run(&c, &x, dims);
        const char *what =
            str_format(arena, "lanes %u, unit %lld, [%lld, %lld, ...]%s\n%s", settings.lanes,
                       (long long)settings.chunk_elems, (long long)dims[0], (long long)dims[1],
                       e % 2 ? " with special values" : "", source);
        check_outputs(&c, test, &x, &r, what);
        run_free(&r);
    }
    compiled_free(&c);
    arena_free(arena);
}

static const Dtype dtypes[] = {DT_F64, DT_F32, DT_F16, DT_BF16, DT_I32};
enum { N_DTYPES = 5 };
static const Settings schedules[] = {
    {.target = TARGET_CPU, .lanes = 4, .chunk_elems = 8, .is_wide = true},
    {.target = TARGET_CPU, .lanes = 8, .chunk_elems = 64},
    {.target = TARGET_CPU, .lanes = 16, .chunk_elems = 256},
    {.target = TARGET_CPU, .lanes = 1, .chunk_elems = 16}};
enum { N_SCHEDULES = 4 };

/* Every dtype under every schedule. */
static void check_all(Case test, const int64_t (*extents)[4], uint32_t n_extents) {
    for (uint32_t d = 0; d < N_DTYPES; d++)
        for (uint32_t s = 0; s < N_SCHEDULES; s++) {
            test.dtype = dtypes[d];
            check_case(&test, schedules[s], extents, n_extents);
        }
}

#define CHECK_ALL(test, extents) check_all(test, extents, sizeof(extents) / sizeof *(extents))

Test(cpu_row, sums_in_order) {
    static const int64_t extents[][4] = {{3, 0},     {3, 1},     {3, 2},     {3, 3},   {3, 7},
                                         {3, 63},    {3, 64},    {2, 65},    {2, 127}, {3, 1000},
                                         {2, 16384}, {1, 16385}, {2, 40000}, {0, 5}};
    CHECK_ALL(((Case){.rank = 2, .axes = 1u << 1, .limits = {100, 50000}}), extents);
}

/* The same bits with AVX-512 code as with the order said plainly. */
Test(cpu_row, avx512) {
    if (!codegen_cpu_runs(target_get(TARGET_CPU_V4))) cr_skip("this machine has no AVX-512");
    static const int64_t extents[][4] = {{3, 7}, {2, 65}, {3, 1000}, {2, 40000}, {129, 5}};
    for (uint32_t d = 0; d < N_DTYPES; d++)
        for (uint32_t axes = 1; axes <= 2; axes++) {
            Case test = {.rank = 2, .axes = axes, .limits = {50000, 50000}, .dtype = dtypes[d]};
            check_case(&test, (Settings){.target = TARGET_CPU_V4}, extents,
                       sizeof extents / sizeof *extents);
        }
}

Test(cpu_row, short_rows) {
    static const int64_t extents[][4] = {{5, 0}, {5, 3}, {5, 8}, {16, 20}, {53, 11}};
    CHECK_ALL(((Case){.rank = 2, .axes = 1u << 1, .limits = {100, 20}}), extents);
}

Test(cpu_row, constant_extents) {
    /* Short ones go in groups, with some left over. */
    static const int64_t extents[][4] = {
        {3, 1},  {9, 2},  {7, 3},   {11, 7},   {8, 16}, {5, 17},  {6, 31},   {3, 33},
        {3, 64}, {3, 65}, {3, 127}, {3, 1024}, {37, 3}, {16, 64}, {35, 100}, {17, 128}};
    uint32_t n = N_SCHEDULES + codegen_cpu_runs(target_get(TARGET_CPU_V4));
    for (uint32_t e = 0; e < sizeof extents / sizeof *extents; e++)
        for (uint32_t s = 0; s < n; s++) {
            Settings wide = {.target = TARGET_CPU_V4};
            Case test = {.rank = 2,
                         .axes = 1u << 1,
                         .limits = {extents[e][0], extents[e][1]},
                         .is_const = true,
                         .dtype = dtypes[e % N_DTYPES]};
            check_case(&test, s < N_SCHEDULES ? schedules[s] : wide, &extents[e], 1);
        }
}

static const char *code_text(const Compiled *c, CodeKind kind, const Target *target) {
    const Plan *plan = c->plan;
    Diags diags = {.arena = c->arena};
    CodeBytes code;
    cr_assert(
        codegen_emit(c->arena, &plan, 1, (BackOptions){.target = target}, kind, &code, &diags));
    Text text = {.arena = c->arena};
    text_printf(&text, "%.*s", (int)code.n_bytes, code.data);
    return text_str(&text);
}

/* The ends of their reductions are those of all rows of a group; a known tail is stored exactly. */
Test(cpu_row, short_rows_end_together) {
    Compiled c = compile("graph g(x: f32[99, 10], g: f32[10]) -> (y: f32[99, 10]) {"
                         " y = rmsnorm(softmax(x), g) }",
                         (Settings){.target = TARGET_CPU_V4});
    const char *text = code_text(&c, CODE_ASSEMBLY, target_get(TARGET_CPU_V4));
    bool is_scalar = strstr(text, "vsqrtss") || !strstr(text, "vsqrtps");
    cr_expect(!is_scalar && !strstr(text, "vpmovm2d"), "%s", text);
    text = code_text(&c, CODE_LLVM_IR, target_get(TARGET_CPU_V4));
    cr_expect_null(strstr(text, "masked.store"), "%s", text);
    compiled_free(&c);
}

Test(cpu_row, everything) {
    static const int64_t extents[][4] = {{0}, {1}, {100}, {16384}, {70001}};
    CHECK_ALL(((Case){.rank = 1, .axes = 1, .limits = {100000}}), extents);
}

Test(cpu_row, several_axes) {
    static const int64_t extents[][4] = {
        {2, 3, 2, 5}, {1, 7, 3, 16}, {2, 40, 1, 33}, {1, 300, 2, 100}, {2, 0, 2, 4}};
    CHECK_ALL(((Case){.rank = 4, .axes = 1u << 1 | 1u << 3, .limits = {9, 300, 9, 300}}), extents);
    static const int64_t multiple[] = {3, 40, 2, 48};
    Case test = {.rank = 4,
                 .axes = 1u << 1 | 1u << 3,
                 .limits = {3, 40, 2, 48},
                 .is_const = true,
                 .dtype = DT_F32};
    for (uint32_t s = 0; s < N_SCHEDULES; s++) check_case(&test, schedules[s], &multiple, 1);
}

Test(cpu_column, sums_in_order) {
    static const int64_t extents[][4] = {{0, 3},    {1, 1},     {2, 5},     {3, 16},  {7, 17},
                                         {8, 64},   {9, 257},   {63, 30},   {255, 3}, {256, 100},
                                         {257, 65}, {1000, 19}, {40000, 3}, {5, 0}};
    CHECK_ALL(((Case){.rank = 2, .axes = 1, .limits = {50000, 1000}}), extents);
}

Test(cpu_column, constant_extents) {
    static const int64_t extents[][4] = {{1, 3}, {3, 3}, {5, 100}, {9, 1}, {300, 48}, {70000, 2}};
    for (uint32_t e = 0; e < sizeof extents / sizeof *extents; e++)
        for (uint32_t s = 0; s < N_SCHEDULES; s++) {
            Case test = {.rank = 2,
                         .axes = 1,
                         .limits = {extents[e][0], extents[e][1]},
                         .is_const = true,
                         .dtype = dtypes[e % N_DTYPES]};
            check_case(&test, schedules[s], &extents[e], 1);
        }
}

Test(cpu_column, several_axes) {
    static const int64_t extents[][4] = {
        {2, 3, 2, 5}, {7, 1, 3, 16}, {40, 2, 33, 9}, {300, 1, 20, 3}, {2, 2, 0, 4}};
    CHECK_ALL(((Case){.rank = 4, .axes = 1u << 0 | 1u << 2, .limits = {300, 9, 300, 99}}), extents);
    CHECK_ALL(((Case){.rank = 3, .axes = 1u << 1, .limits = {40, 300, 99}}), extents);
}

/* Programs fused and unfused. */

typedef struct Sample {
    const char *source;
    int64_t symbols[6][2];
} Sample;

static const Sample samples[] = {
    {"dim A in 0..50\ndim B in 0..5000\n"
     "graph map(x: f32[A, B], y: bf16[B], c: f32) -> (z: f32[A, B], w: bf16[A, B], k: bool[A, B]) "
     "{\n"
     "  z = relu(x * c + cast(y, f32)) / 3.0\n  w = cast(z, bf16) + y\n  k = x > c\n}\n",
     {{3, 1000}, {50, 1}, {1, 5000}, {7, 33}, {0, 4}, {4, 0}}},
    {"dim A in 1..50\ndim B in 0..5000\n"
     "graph turned(x: f64[A, B], y: f64[B, A]) -> (z: f64[A, B], w: f16[B]) {\n"
     "  z = x + transpose(y)\n  w = cast(x[0] * 2.0, f16)\n}\n",
     {{3, 1000}, {50, 1}, {1, 500}, {7, 33}, {1, 4}, {4, 0}}},
    {"dim A in 1..50\ndim B in 0..5000\n"
     "graph short(x: f32[B, 3, A], y: f16[B, A]) -> (z: f32[A, B, 3], w: f16[A, B]) {\n"
     "  z = exp(transpose(x, perm=[2, 0, 1]))\n  w = tanh(transpose(y))\n}\n",
     {{3, 1000}, {50, 1}, {1, 500}, {7, 33}, {1, 4}, {4, 0}}},
    {"dim A in 0..50\ndim B in 0..5000\n"
     "graph scalars(x: f32[], y: i32[]) -> (z: f32[], w: i32[]) {\n"
     "  z = exp(x)\n  w = y / 7\n}\n",
     {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"dim A in 0..50\ndim B in 0..50000\n"
     "graph soft(x: bf16[A, B]) -> (p: bf16[A, B], q: f32[A]) {\n"
     "  p = softmax(x)\n  q = logsumexp(cast(x, f32))\n}\n",
     {{3, 1000}, {50, 1}, {2, 40000}, {7, 33}, {0, 4}, {4, 16384}}},
    {"dim A in 0..50\ndim B in 0..3000\n"
     "graph kept(x: f32[A, B], z: f64[A, B]) -> (p: f32[A, B], q: f16[A, B], w: f64[A, B]) {\n"
     "  p = softmax(x)\n  q = cast(softmax(cast(x, f16)), f16)\n  w = softmax(z) + "
     "sum(exp(z))\n}\n",
     {{3, 1000}, {50, 1}, {2, 3000}, {7, 33}, {0, 4}, {4, 64}}},
    {"dim A in 0..50\ndim B in 0..40\n"
     "graph planes(x: f32[A, B, 3, 16]) -> (y: f32[A, B, 3, 16], z: f32[A, B, 3, 16]) {\n"
     "  e = exp(x - max(x, axis=[1, 3], keep=true))\n  y = e / sum(e, axis=[1, 3], keep=true)\n"
     "  z = softmax(x, axis=[2, 3])\n}\n",
     {{3, 40}, {50, 1}, {2, 30}, {7, 3}, {0, 4}, {4, 17}}},
    {"dim A in 0..50\ndim B in 0..50000\n"
     "graph norm(x: f32[A, B], g: f32[B], b: f32[B]) -> (y: f32[A, B], m: f32[A], i: i32[A]) {\n"
     "  y = layernorm(x, g, b)\n  m = mean(x, axis=1)\n  i = argmax(y, axis=1)\n}\n",
     {{3, 1000}, {50, 1}, {2, 40000}, {7, 33}, {0, 4}, {4, 16385}}},
    {"dim A in 0..70000\ndim B in 0..500\n"
     "graph columns(x: f32[A, B], g: f32[A, 1]) -> (y: f32[A, B], v: f16[B], i: i32[B]) {\n"
     "  y = softmax(x + g, axis=0)\n  v = cast(var(x, axis=0), f16)\n  i = argmax(y, axis=0)\n}\n",
     {{3, 400}, {50, 1}, {1000, 37}, {7, 33}, {0, 4}, {70000, 3}}},
    {"dim A in 1..300\ndim B in 1..300\n"
     "graph middle(x: f64[A, 3, B, 5]) -> (y: f64[A, 3, B, 5], s: f64[3, 5]) {\n"
     "  m = mean(x, axis=[0, 2], keep=true)\n  d = x - m\n  y = d / sqrt(1e-5 + mean(d * d, "
     "axis=[0, 2], keep=true))\n"
     "  s = sum(d * d * d, axis=[0, 2])\n}\n",
     {{3, 100}, {50, 1}, {1, 300}, {7, 33}, {300, 4}, {4, 64}}},
    {"dim A in 1..3000\ndim B in 1..300\n"
     "graph channels(x: f32[A, 4, B, B]) -> (y: f32[A, 4, B, B], a: bool[4]) {\n"
     "  m = mean(x, axis=[0, 2, 3], keep=true)\n  d = x - m\n"
     "  y = d * rsqrt(1e-5 + mean(d * d, axis=[0, 2, 3], keep=true))\n"
     "  a = reshape(m, [4]) > 0.0\n}\n",
     {{3, 5}, {50, 1}, {1, 60}, {7, 16}, {300, 4}, {4, 33}}},
    {"dim A in 1..300\ndim B in 1..300\n"
     "graph edges(x: f32[A, B]) -> (s: f32[A], t: f32[B + 3], u: f32[B]) {\n"
     "  p = pad(x, low=[0, 1], high=[0, 2], value=1.0)\n  s = sum(p, axis=1)\n"
     "  t = max(p, axis=0)\n  u = prod(transpose(x), axis=1)\n}\n",
     {{3, 5}, {50, 1}, {1, 60}, {7, 16}, {300, 4}, {4, 33}}},
};
enum { N_SAMPLES = sizeof samples / sizeof *samples };

static Tensor *random_inputs(Arena *arena, const Compiled *c, const int64_t *symbols) {
    Rng rng = rng_new((uint64_t)symbols[0] * 1000003 + (uint64_t)symbols[1]);
    Tensor *inputs = arena_array(arena, Tensor, c->graph->inputs.n);
    for (uint32_t i = 0; i < c->graph->inputs.n; i++) {
        const Node *node = graph_node(c->graph, c->graph->inputs.data[i].node);
        int64_t dims[MAX_RANK];
        for (uint32_t k = 0; k < node->shape.rank; k++)
            dims[k] = eval(c, node->shape.dims[k], symbols);
        inputs[i] = random_tensor(arena, &rng, node->dtype, node->shape.rank, dims, false);
    }
    return inputs;
}

static void check_same(const Compiled *a, const Compiled *b, const Run *x, const Run *y,
                       const int64_t *symbols, const char *what) {
    for (uint32_t o = 0; o < a->graph->outputs.n; o++) {
        const Node *node = graph_node(a->graph, a->graph->outputs.data[o].node);
        int64_t n = eval(a, shape_n_elems(a->graph->dims, &node->shape), symbols);
        uint32_t bytes = dtype_bytes(node->dtype);
        for (int64_t i = 0; i < n; i++) {
            double expected = dtype_load(node->dtype, output(a, x, o) + i * bytes);
            double actual = dtype_load(node->dtype, output(b, y, o) + i * bytes);
            cr_assert(compare_element(node->dtype, expected, actual, 0),
                      "%s: output %u at %lld for %lld, %lld: %.17g, expected %.17g", what, o,
                      (long long)i, (long long)symbols[0], (long long)symbols[1], actual, expected);
        }
    }
}

/* Which maps have their lanes along another axis than the last, and for how long a last one. */
static const struct {
    const char *source;
    uint32_t lanes_out;
    int64_t limit; /* 0: whatever length */
} short_maps[] = {
    /* dear, transposed; below: cheap, long, no other axis is, all of it one axis */
    {"graph g(x: f32[N, 3], s: f32[3]) -> (y: f32[N, 3]) { y = tanh(x * s) }", 1, 0},
    {"graph g(x: f32[3, N]) -> (y: f32[N, 3]) { y = transpose(x) * 2.0 }", 1, 0},
    {"graph g(x: f32[N, M]) -> (y: f32[M, N]) { y = gelu(transpose(x)) }", 1, 7},
    {"graph g(x: f32[N, 3, M], s: f32[3]) -> (y: f32[M, N, 3]) {\n"
     "  y = exp(transpose(x, perm=[2, 0, 1]) * s)\n}",
     1, 0},
    {"graph g(x: f32[N, 3], s: f32[3]) -> (y: f32[N, 3]) { y = x * s }", 0, 0},
    {"graph g(x: f32[N, 30], s: f32[30]) -> (y: f32[N, 30]) { y = tanh(x * s) }", 0, 0},
    {"graph g(x: f32[4, 3], s: f32[3]) -> (y: f32[4, 3]) { y = tanh(x * s) }", 0, 0},
    {"graph g(x: f32[N, 3]) -> (y: f32[N, 3]) { y = tanh(x) }", 0, 0},
};

Test(cpu_map, lanes_lie_along_another_axis_where_rows_are_short) {
    for (size_t i = 0; i < sizeof short_maps / sizeof *short_maps; i++) {
        char source[300];
        snprintf(source, sizeof source, "dim N in 1..5000\ndim M in 1..5000\n%s\n",
                 short_maps[i].source);
        Compiled c = compile(source, (Settings){.target = TARGET_CPU});
        const Kernel *kernel = &c.plan->kernels.data[0];
        uint32_t n_tiled = template_info(kernel->variants->sched.template)->turns_values;
        const Variant *first = &kernel->variants[n_tiled];
        cr_expect_eq(first->sched.cpu_map.lanes_out, short_maps[i].lanes_out, "%zu", i);
        const PredicateTerm *range = predicate_term(&first->predicate, TERM_RANGE, 0);
        cr_expect_eq(range ? range->most : 0, short_maps[i].limit, "%s", source);
        cr_expect_eq(kernel->n_variants - n_tiled, short_maps[i].limit ? 2 : 1, "%s", source);
        compiled_free(&c);
    }
}

Test(cpu_programs, fused_as_unfused) {
    for (uint32_t i = 0; i < N_SAMPLES; i++) {
        Compiled plain = compile(samples[i].source, (Settings){.target = TARGET_CPU, .off = true});
        for (uint32_t s = 0; s <= N_SCHEDULES; s++) {
            Settings settings = s < N_SCHEDULES ? schedules[s] : (Settings){.target = TARGET_CPU};
            Compiled fused = compile(samples[i].source, settings);
            for (uint32_t e = 0; e < 6; e++) {
                Arena *arena = arena_new(NULL);
                const int64_t *symbols = samples[i].symbols[e];
                const Tensor *inputs = random_inputs(arena, &plain, symbols);
                Run x = run(&plain, inputs, symbols), y = run(&fused, inputs, symbols);
                check_same(&plain, &fused, &x, &y, symbols, samples[i].source);
                run_free(&x);
                run_free(&y);
                arena_free(arena);
            }
            compiled_free(&fused);
        }
        compiled_free(&plain);
    }
}
