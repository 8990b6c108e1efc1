/* CPU GEMMs: every element of the result is, to the bit, one chain of fused multiply-adds
 * ascending in k, whatever the extents, layouts, vector width, alignment and number of threads. */
#include "interp/tensor.h"
#include "lib/compiled.h"
#include "lib/pair.h"
#include "lib/plans.h"
#include "plan/access.h"
#include "lib/rig.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Extents {
    int64_t m, n, k;
} Extents;

/* Around lanes, tiles, blocks of k (256 and 384 steps) and units. */
static const Extents ragged[] = {
    {0, 3, 5},   {3, 0, 5},      {3, 5, 0},     {1, 1, 1},     {1, 1, 1000},   {2, 3, 17},
    {6, 16, 2},  {7, 17, 33},    {14, 32, 384}, {15, 33, 385}, {1, 300, 257},  {300, 1, 385},
    {4, 97, 13}, {100, 257, 64}, {257, 100, 7}, {5, 7, 1025},  {16, 290, 769}, {460, 35, 130}};
enum { N_RAGGED = sizeof ragged / sizeof *ragged };

/* Which operands are stored the other way round. */
typedef struct Layout {
    bool lhs_trans, rhs_trans;
} Layout;

static const Layout layouts[] = {{false, false}, {true, false}, {false, true}, {true, true}};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4, TARGET_CPU_MULTI};
enum { N_TARGETS = sizeof targets / sizeof *targets, N_THREAD_COUNTS = 3 };

typedef struct Case {
    Dtype dtype;
    Layout layout;
    TargetId target;
    const char *m, *n, *k; /* as written in the program */
    char param;            /* a or b: that one is a param, whose layout is prepared; or 0 */
} Case;

/* The declaration of an operand, where it has to stand. */
static const char *declare(Arena *arena, const Case *c, char name, bool as_param) {
    bool is_left = name == 'a', is_transposed = is_left ? c->layout.lhs_trans : c->layout.rhs_trans;
    const char *rows = is_left ? c->m : c->k, *columns = is_left ? c->k : c->n;
    if (as_param != (c->param == name)) return "";
    return str_format(arena, "%s%c: %s[%s, %s]%s", as_param ? "  param " : "", name,
                      dtype_name(c->dtype), is_transposed ? columns : rows,
                      is_transposed ? rows : columns, as_param ? " = \"w\"\n" : ", ");
}

/* Both operands are read through a view where they are transposed; the result is stored as it is
 * and once more with something done to it. */
static const char *case_source(Arena *arena, const Case *c) {
    const char *t = dtype_name(c->dtype);
    bool left = c->layout.lhs_trans, right = c->layout.rhs_trans;
    bool is_symbolic = strcmp(c->m, "M") == 0;
    return str_format(arena,
                      "%sgraph mm(%s%sbias: %s[%s])\n"
                      "    -> (p: %s[%s, %s], q: %s[%s, %s]) {\n%s%s"
                      "  p = %s @ %s\n  q = p * p + bias\n}\n",
                      is_symbolic ? "dim M in 0..2000\ndim N in 0..2000\ndim K in 0..4000\n" : "",
                      declare(arena, c, 'a', false), declare(arena, c, 'b', false), t, c->n, t,
                      c->m, c->n, t, c->m, c->n, declare(arena, c, 'a', true),
                      declare(arena, c, 'b', true), left ? "transpose(a, [1, 0])" : "a",
                      right ? "transpose(b, [1, 0])" : "b");
}

static double element(Dtype dtype, const uint8_t *data, int64_t i) {
    float single;
    double number;
    memcpy(&single, data + (size_t)i * sizeof single, dtype == DT_F32 ? sizeof single : 0);
    if (dtype == DT_F32) return (double)single;
    memcpy(&number, data + (size_t)i * sizeof number, sizeof number);
    return number;
}

/* Products that are not exact, so that any other order of summation shows. */
static void fill(Rig *rig, const char *name, Dtype dtype, uint64_t seed) {
    size_t n_bytes, size = dtype_bytes(dtype);
    uint8_t *data = rig_contents(rig, name, &n_bytes);
    cr_assert_not_null(data);
    Rng rng = rng_new(seed);
    for (size_t at = 0; at < n_bytes; at += size) {
        double number = rng_uniform(&rng, -1, 1);
        float single = (float)number;
        if (dtype == DT_F32)
            memcpy(data + at, &single, size);
        else
            memcpy(data + at, &number, size);
    }
}

static double chain(const Rig *rig, const Case *c, Extents e, int64_t row, int64_t column) {
    size_t n_bytes;
    const uint8_t *a = rig_result(rig, "a", &n_bytes), *b = rig_result(rig, "b", &n_bytes);
    double sum = 0;
    for (int64_t k = 0; k < e.k; k++) {
        double left = element(c->dtype, a, c->layout.lhs_trans ? k * e.m + row : row * e.k + k);
        double right =
            element(c->dtype, b, c->layout.rhs_trans ? column * e.k + k : k * e.n + column);
        sum = c->dtype == DT_F32 ? (double)fmaf((float)left, (float)right, (float)sum)
                                 : fma(left, right, sum);
    }
    return sum;
}

static void check_results(const Rig *rig, const Case *c, Extents e) {
    size_t n_bytes;
    const uint8_t *p = rig_result(rig, "p", &n_bytes), *q = rig_result(rig, "q", &n_bytes);
    const uint8_t *bias = rig_result(rig, "bias", &n_bytes);
    for (int64_t row = 0; row < e.m; row++)
        for (int64_t column = 0; column < e.n; column++) {
            int64_t at = row * e.n + column;
            double sum = chain(rig, c, e, row, column), add = element(c->dtype, bias, column);
            double after = c->dtype == DT_F32
                               ? (double)((float)((float)sum * (float)sum) + (float)add)
                               : sum * sum + add;
            double got_p = element(c->dtype, p, at), got_q = element(c->dtype, q, at);
            bool is_same =
                memcmp(&sum, &got_p, sizeof sum) == 0 && memcmp(&after, &got_q, sizeof after) == 0;
            cr_assert(is_same,
                      "%s %s %lldx%lldx%lld%s%s at (%lld, %lld): %a and %a, should be %a and %a",
                      target_get(c->target)->name, dtype_name(c->dtype), (long long)e.m,
                      (long long)e.n, (long long)e.k, c->layout.lhs_trans ? " left transposed" : "",
                      c->layout.rhs_trans ? " right transposed" : "", (long long)row,
                      (long long)column, got_p, got_q, sum, after);
        }
}

/* One artifact on every shape that it takes, with 1, 2 and 3 threads. */
static void check_level(const Case *c, const Compiled *compiled, const char *level,
                        const Extents *extents, uint32_t n_extents) {
    const DimTab *dims = compiled->module->graphs.data[0]->dims;
    for (uint32_t i = 0; i < n_extents; i++) {
        RigOptions options = RIG_OPTIONS_INIT;
        options.program.cpu_level = level;
        options.program.n_threads = 1 + (int32_t)(i % N_THREAD_COUNTS);
        options.is_unaligned = i % 2 == 1;
        options.program.no_weights = true;
        Rig rig;
        cr_assert(rig_open(&rig, compiled->bytes, compiled->n_bytes, NULL, &options), "%s",
                  rig.error);
        int64_t values[3] = {extents[i].m, extents[i].n, extents[i].k};
        cr_assert(rig_place(&rig, dims, values), "%s", rig.error);
        fill(&rig, "a", c->dtype, 1 + i);
        fill(&rig, "b", c->dtype, 1000 + i);
        fill(&rig, "bias", c->dtype, 2000 + i);
        cr_assert(rig_run(&rig, 0x7F), "%s", rig.error);
        check_results(&rig, c, extents[i]);
        rig_close(&rig);
    }
}

static void check_case(const Case *c, const Extents *extents, uint32_t n_extents) {
    Arena *arena = arena_new(NULL);
    const Target *target = target_get(c->target);
    Compiled compiled = compiled_new(case_source(arena, c), c->target);
    for (uint32_t i = 0; i < target_n_levels(target); i++) {
        const Target *level = target_level(target, i);
        if (compile_target_runs(level))
            check_level(c, &compiled, level == target ? NULL : level->name, extents, n_extents);
    }
    compile_free(&compiled);
    arena_free(arena);
}

static void each_layout(Dtype dtype, void (*body)(const Case *)) {
    for (uint32_t t = 0; t < N_TARGETS; t++)
        for (uint32_t l = 0; l < N_LAYOUTS; l++) {
            Case c = {.dtype = dtype, .layout = layouts[l], .target = targets[t]};
            if (compile_target_runs(target_get(c.target))) body(&c);
        }
}

static void check_symbolic(const Case *c) {
    Case symbolic = *c;
    symbolic.m = "M", symbolic.n = "N", symbolic.k = "K";
    check_case(&symbolic, ragged, N_RAGGED);
}

/* Constant extents choose tiles of their own. */
static void check_constant(const Case *c) {
    for (uint32_t i = 0; i < N_RAGGED; i++) {
        Arena *arena = arena_new(NULL);
        Case constant = *c;
        constant.m = str_format(arena, "%lld", (long long)ragged[i].m);
        constant.n = str_format(arena, "%lld", (long long)ragged[i].n);
        constant.k = str_format(arena, "%lld", (long long)ragged[i].k);
        check_case(&constant, &ragged[i], 1);
        arena_free(arena);
    }
}

Test(cpu_gemm, f32_symbolic_extents, .timeout = 60) {
    each_layout(DT_F32, check_symbolic);
}

Test(cpu_gemm, f64_symbolic_extents, .timeout = 60) {
    each_layout(DT_F64, check_symbolic);
}

Test(cpu_gemm, f32_constant_extents, .timeout = 60) {
    each_layout(DT_F32, check_constant);
}

Test(cpu_gemm, f64_constant_extents, .timeout = 60) {
    each_layout(DT_F64, check_constant);
}

/* Prepared panels: of the rhs, and where n is short of the left one. */
static void check_prepared(const Case *c) {
    Case prepared = *c;
    prepared.param = 'b';
    check_constant(&prepared);
    prepared.param = 'a';
    check_constant(&prepared);
}

Test(cpu_gemm, f32_params, .timeout = 120) {
    each_layout(DT_F32, check_prepared);
}

Test(cpu_gemm, f64_params, .timeout = 120) {
    each_layout(DT_F64, check_prepared);
}

/* A few rows, many and none in one artifact whose rhs is prepared. */
static void check_rows(const Case *c) {
    static const Extents rows[] = {{0, 70, 400},  {1, 70, 400},  {4, 70, 400},  {5, 70, 400},
                                   {16, 70, 400}, {17, 70, 400}, {60, 70, 400}, {450, 70, 400}};
    Case prepared = *c;
    prepared.m = "M", prepared.n = "70", prepared.k = "400", prepared.param = 'b';
    check_case(&prepared, rows, sizeof rows / sizeof *rows);
}

Test(cpu_gemm, any_number_of_rows_with_a_param, .timeout = 60) {
    each_layout(DT_F32, check_rows);
}

/* Programs whose operand w is once an input and once a param: the same bits in every dtype. */

static const char *const shared_bodies[] = {
    "graph g(x: %s[B, 40]%s) -> (y: %s[B, 50]) {\n%s  y = x @ w\n}\n|[40, 50]",
    "graph g(x: %s[B, 40]%s) -> (y: %s[B, 50]) {\n%s  y = x @ transpose(w, [1, 0])\n}\n|[50, 40]",
    "graph g(x: %s[3, B, 40]%s) -> (y: %s[3, B, 50]) {\n%s  y = x @ w\n}\n|[3, 40, 50]",
    "graph g(x: %s[3, B, 40]%s) -> (y: %s[3, B, 50]) {\n%s  y = x @ w\n}\n|[40, 50]",
    "graph g(x: %s[B, 40]%s) -> (y: %s[B, 50]) {\n%s  y = x @ pad(w, low=[1, 2], high=[3, "
    "4])\n}\n|[36, 44]",
    "graph g(x: %s[B, 40]%s) -> (y: %s[B, 50]) {\n%s  y = x @ (w + w)\n}\n|[40, 50]",
    "graph g(x: %s[B, 40]%s) -> (y: %s[B, 50]) {\n%s  y = x @ reshape(w, [40, 50])\n}\n|[2000]",
    "graph g(x: %s[40, 5]%s) -> (y: %s[300, 5]) {\n%s  y = w @ x\n}\n|[300, 40]"};
enum { N_SHARED = sizeof shared_bodies / sizeof *shared_bodies };

static const char *shared_source(Arena *arena, const char *body, Dtype dtype, bool is_param) {
    const char *t = dtype_name(dtype), *shape = strchr(body, '|') + 1;
    const char *input = is_param ? "" : str_format(arena, ", w: %s%s", t, shape);
    const char *param = is_param ? str_format(arena, "  param w: %s%s = \"w\"\n", t, shape) : "";
    Text text = {.arena = arena};
    const char *words[4] = {t, input, t, param};
    uint32_t n = 0;
    text_puts(&text, "dim B in 0..64\n");
    for (const char *c = body; *c != '|'; c++) {
        if (c[0] != '%')
            text_add(&text, c, 1);
        else
            text_puts(&text, words[n++]), c++;
    }
    return text_str(&text);
}

static void fill_any(Rig *rig, const char *name, Dtype dtype, uint64_t seed) {
    size_t n_bytes, size = dtype_bytes(dtype);
    uint8_t *data = rig_contents(rig, name, &n_bytes);
    cr_assert_not_null(data);
    Rng rng = rng_new(seed);
    double reach = dtype == DT_I32 ? 1e6 : 1;
    for (size_t at = 0; at < n_bytes; at += size)
        dtype_store(dtype, dtype_round(dtype, rng_uniform(&rng, -reach, reach)), data + at);
}

typedef struct Shared {
    Compiled compiled;
    Rig rig;
} Shared;

static void open_shared(Shared *shared, const char *source, TargetId target) {
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.n_threads = 2;
    options.program.no_weights = true;
    shared->compiled = compiled_new(source, target);
    cr_assert(
        rig_open(&shared->rig, shared->compiled.bytes, shared->compiled.n_bytes, NULL, &options),
        "%s", shared->rig.error);
}

static const uint8_t *run_shared(Shared *shared, Dtype dtype, int64_t rows, size_t *n_bytes) {
    Rig *rig = &shared->rig;
    cr_assert(rig_place(rig, shared->compiled.module->dims, &rows), "%s", rig->error);
    fill_any(rig, "x", dtype, 1);
    fill_any(rig, "w", dtype, 2);
    cr_assert(rig_run(rig, 0x7F), "%s", rig->error);
    return rig_result(rig, "y", n_bytes);
}

/* Returns whether the program has init steps. */
static bool compare_shared(const char *body, Dtype dtype, TargetId target) {
    static const int64_t rows[] = {3, 14, 37, 0};
    Arena *arena = arena_new(NULL);
    Shared shared[2];
    for (int i = 0; i < 2; i++)
        open_shared(&shared[i], shared_source(arena, body, dtype, i == 1), target);
    for (int r = 0; r < 4; r++) {
        size_t n_bytes[2];
        const uint8_t *input = run_shared(&shared[0], dtype, rows[r], &n_bytes[0]);
        const uint8_t *param = run_shared(&shared[1], dtype, rows[r], &n_bytes[1]);
        cr_expect(n_bytes[0] == n_bytes[1] && memcmp(input, param, n_bytes[0]) == 0,
                  "%s, %lld rows: %s differs as a param:\n%s", target_get(target)->name,
                  (long long)rows[r], dtype_name(dtype), shared_source(arena, body, dtype, true));
    }
    FRT_INFO(frt_init_info, init);
    frt_program_get_init(shared[1].rig.program, &init);
    cr_expect((init.n_steps > 0) == (init.kept_bytes > 0));
    cr_expect(init.n_steps == 0 || init.n_runs == 4, "once after each change of the param");
    for (int i = 0; i < 2; i++) {
        rig_close(&shared[i].rig);
        compile_free(&shared[i].compiled);
    }
    arena_free(arena);
    return init.n_steps > 0;
}

/* Huge pages are asked for, so that a large allocation begins at one. */
Test(cpu_gemm, large_allocations_begin_at_huge_pages) {
    static const char source[] = "graph g(x: f32[8]) -> (y: f32[8]) {\n  y = x + x\n}\n";
    Compiled compiled;
    frt_error error = FRT_ERROR_INIT;
    frt_module *module = NULL;
    frt_program *program = NULL;
    cr_assert(compile_source(&compiled, source, target_get(TARGET_CPU), COMPILE_FUSED));
    cr_assert_eq(frt_module_load_memory(compiled.bytes, compiled.n_bytes, &module, &error), FRT_OK);
    cr_assert_eq(frt_program_create(module, NULL, NULL, &program, &error), FRT_OK);
    for (size_t mib = 1; mib <= 64; mib *= 8) {
        void *memory = NULL;
        size_t n_bytes = mib << 20, alignment = mib >= 4 ? 2 << 20 : FRT_ALIGNMENT;
        cr_assert_eq(frt_device_alloc(program, n_bytes, &memory, &error), FRT_OK);
        cr_expect_eq((uintptr_t)memory % alignment, 0, "%zu MiB", mib);
        memset(memory, 1, n_bytes);
        frt_device_free(program, memory, n_bytes);
    }
    frt_program_free(program);
    frt_module_free(module);
    compile_free(&compiled);
}

Test(cpu_gemm, a_param_gives_the_bits_of_an_input, .timeout = 120) {
    static const Dtype dtypes[] = {DT_F64, DT_F32, DT_F16, DT_BF16, DT_I32};
    uint32_t n_prepared = 0, n_all = 0;
    for (uint32_t t = 0; t < N_TARGETS; t++) {
        bool runs = compile_target_runs(target_get(targets[t]));
        for (uint32_t d = 0; runs && d < 5; d++)
            for (uint32_t i = 0; i < N_SHARED; i++, n_all++)
                n_prepared += compare_shared(shared_bodies[i], dtypes[d], targets[t]);
    }
    cr_expect_geq(n_prepared, n_all - n_all / N_SHARED, "few columns of f64 are streamed");
}

typedef struct Meeting {
    const char *dtype, *left, *right, *result, *body;
    uint32_t n_launches;
} Meeting;

/* Also under another op, of several batches, of one column; not of different lhs operands. */
static const Meeting meetings[] = {
    {"f32", "[M, 64]", "[64, 600]", "[M, 600]", "silu(x @ a) * (x @ b)", 1},
    {"bf16", "[M, 64]", "[64, 600]", "[M, 600]", "silu(x @ a) * (x @ b)", 1},
    {"f16", "[M, 64]", "[64, 1]", "[M, 1]", "(x @ a) / (x @ b)", 1},
    {"f64", "[M, 64]", "[64, 3]", "[M, 3]", "(x @ a) - (x @ b)", 1},
    {"i32", "[4, M, 9]", "[4, 9, 3]", "[4, M, 3]", "where(x @ a > 5, x @ b, 0)", 1},
    {"f32", "[M, 64]", "[64, 600]", "[M, 600]", "(x @ a) * (z @ b)", 2},
    {"f32", "[M, 64]", "[64, 600]", "[M, 600]", "(x @ a) * (x[:, 1:] @ b[1:])", 2},
};

static uint32_t n_launches(const Meeting *m, TargetId target) {
    Arena *arena = arena_new(NULL);
    const char *t = m->dtype;
    const char *source =
        str_format(arena,
                   "dim M in 20..4096\n"
                   "graph g(x: %s%s, z: %s%s, a: %s%s, b: %s%s) -> (y: %s%s) {\n"
                   "  y = %s\n}\n",
                   t, m->left, t, m->left, t, m->right, t, m->right, t, m->result, m->body);
    Compiled compiled = compiled_new(source, target);
    const Plan *plan = compiled.driver.plans[0];
    uint32_t n = plan->launches.n;
    compile_free(&compiled);
    arena_free(arena);
    return n;
}

Test(cpu_gemm, matmuls_of_one_left_operand_that_meet_are_one_launch) {
    for (size_t i = 0; i < sizeof meetings / sizeof *meetings; i++)
        for (uint32_t t = 0; t < N_TARGETS; t++)
            cr_expect_eq(n_launches(&meetings[i], targets[t]), meetings[i].n_launches, "%s of %s",
                         meetings[i].body, meetings[i].dtype);
}

/* Rows of no elements: their number has no part in an address then. */
Test(cpu_gemm, matmuls_without_elements_compile) {
    static const char *const sources[] = {
        "dim H in 1..24\ngraph g(x: bf16[H, 1], w: bf16[1, 0]) -> (y: bool[H, 0]) {\n"
        "  y = x == x @ w\n}",
        "dim H in 1..24\ngraph g(x: f32[H, 8], w: f32[8, 0]) -> (y: f32[H, 0]) {\n"
        "  y = x[:, 0:1] * (x @ w)\n}",
        "dim H in 1..24\ngraph g(x: f32[0, 8], w: f32[8, H]) -> (y: bool[0, H]) {\n"
        "  y = x @ w > 1.0\n}",
        "graph g(x: f32[2, 1], a: f32[1, 0], b: f32[1, 0]) -> (y: f32[2, 0]) {\n"
        "  y = sigmoid(x @ a) * (x @ b)\n}",
    };
    for (size_t i = 0; i < N_TARGETS * sizeof sources / sizeof *sources; i++) {
        Compiled compiled;
        bool ok = compile_source(&compiled, sources[i / N_TARGETS],
                                 target_get(targets[i % N_TARGETS]), COMPILE_FUSED);
        cr_expect(ok, "%s\n%s", sources[i / N_TARGETS], compiled.messages);
        compile_free(&compiled);
    }
}

static bool is_right(const char *source, Text *report) {
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.no_weights = true;
    const int64_t extents[DIM_MAX_SYMBOLS] = {33};
    return pair_is_right(source, target_get(TARGET_CPU), &options, extents, 5, report);
}

/* What a launch makes is no operand in it, though of one step of k an element of the product is
 * made of the element of the operand that lies at the same place. */
Test(cpu_gemm, operands_are_made_by_earlier_launches, .timeout = 120) {
    static const struct {
        const char *a, *b, *y, *body;
    } graphs[] = {
        {"1, 1", "1, 5", "1, 5", "y = a @ (a @ b)"},
        {"1, 1", "5, 1", "5, 1", "y = b @ a @ a"},
        {"B, 1, 1", "B, 1, 3", "B, 1, 3", "y = a @ (a @ b)"},
        {"1, 8", "1, 8", "1, 8", "k = a @ transpose(b)\n  y = k @ (k @ a)"},
        {"1, 1", "1, B", "1, B", "p = a @ b\n  y = a @ (p + 0.5) * p"},
        {"B, 16, 1", "B, 1, 1", "B, 1, 1",
         "s = max(a, axis=1, keep=true)\n  p = s @ b\n  q = s @ p\n  y = q @ p"},
    };
    static const char *const dtypes[] = {"f32", "f64", "bf16", "f16"};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            Text report = {.arena = arena_new(NULL)};
            const char *t = dtypes[d];
            const char *source = str_format(
                report.arena,
                "dim B in 1..40\ngraph g(a: %s[%s], b: %s[%s]) -> (y: %s[%s]) {\n  %s\n}\n", t,
                graphs[i].a, t, graphs[i].b, t, graphs[i].y, graphs[i].body);
            cr_expect(is_right(source, &report), "%s%s", source, text_str(&report));
            arena_free(report.arena);
        }
}

/* Panels of rows begin at no multiple of the lanes, so that a border which is one may lie within a
 * vector. */
Test(cpu_gemm, rows_may_be_concats_and_pads, .timeout = 120) {
    static const char *const pieces[] = {
        "transpose(concat([a, a * 2.0], axis=1))", "transpose(pad(a, low=[0, 0], high=[0, 64]))",
        "transpose(pad(a, low=[0, 64], high=[0, 0]))", "concat([b, b * 2.0], axis=0)",
        "transpose(where(iota([48, 128], axis=1) < 64, concat([a, a], axis=1), 0.5))"};
    static const char *const dtypes[] = {"f32", "f64", "bf16"};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            Text report = {.arena = arena_new(NULL)};
            const char *t = dtypes[d];
            const char *source = str_format(
                report.arena,
                "graph g(a: %s[48, 64], b: %s[64, 48], w: %s[48, 40]) -> (y: %s[128, 40]) {\n"
                "  fuse must { y = (%s) @ w }\n}\n",
                t, t, t, t, pieces[i]);
            cr_expect(is_right(source, &report), "%s%s", source, text_str(&report));
            arena_free(report.arena);
        }
}

/* Runs of k of one element each: no vector of a run is contiguous in memory. */
Test(cpu_gemm, runs_of_k_may_repeat_an_element, .timeout = 120) {
    static const char *const bodies[] = {
        "w = reshape(expand(a, [5, 9]), [45, 1])\n  y = x @ w",
        "w = reshape(expand(a, [5, 9]), [1, 45])\n  y = transpose(w @ transpose(x))",
        "w = reshape(expand(transpose(a), [9, 5]), [45, 1])\n  y = x @ w"};
    static const char *const dtypes[] = {"f32", "f64", "bf16", "i32", "i8"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            Text report = {.arena = arena_new(NULL)};
            const char *t = dtypes[d];
            const char *source = str_format(
                report.arena, "graph g(x: %s[70, 45], a: %s[5, 1]) -> (y: %s[70, 1]) {\n  %s\n}\n",
                t, t, t, bodies[i]);
            cr_expect(is_right(source, &report), "%s%s", source, text_str(&report));
            arena_free(report.arena);
        }
}

static const Kernel *product_of(Arena *arena, const char *source) {
    PricedPlan priced = plans_price(arena, plans_parse(arena, source), 0, false, TARGET_CPU,
                                    card_of_target(target_get(TARGET_CPU)), NULL);
    const Kernel *product = NULL;
    for (uint32_t k = 0; k < priced.plan->kernels.n; k++)
        if (priced.plan->kernels.data[k].form == FORM_GEMM) product = &priced.plan->kernels.data[k];
    cr_assert_not_null(product, "%s", source);
    return product;
}

/* Of which rows lie side by side in the outputs, of all or of runs: then stores are turned. */
Test(cpu_gemm, stores_lie_along_rows, .timeout = 240) {
    static const struct {
        const char *y, *body;
        uint32_t run;
    } graphs[] = {
        {"2, 37, 70", "transpose(a @ w, perm=[0, 2, 1]) * 2.0 + b", 70},
        {"37, 140", "transpose(reshape(a @ w, [140, 37]))", INDEX_ANY_START},
        {"2, 70, 37", "relu(a @ w)", 0},
        {"10, 37, 14", "transpose(reshape(a @ w, [10, 14, 37]), perm=[0, 2, 1])", 14},
        {"28, 37, 5", "transpose(reshape(a @ w, [28, 5, 37]), perm=[0, 2, 1])", 5},
    };
    static const char *const dtypes[] = {"f32", "f64", "bf16"};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            Text report = {.arena = arena_new(NULL)};
            const char *t = dtypes[d];
            const char *source =
                str_format(report.arena,
                           "graph g(a: %s[2, 70, 500], b: %s[37, 1]) -> (y: %s[%s]) {\n"
                           "  param w: %s[500, 37]\n  fuse must { y = %s }\n}\n",
                           t, t, t, graphs[i].y, t, graphs[i].body);
            cr_expect(is_right(source, &report), "%s%s", source, text_str(&report));
            const Kernel *product = product_of(report.arena, source);
            cr_expect_eq(kernel_store_run(report.arena, product, gemm_axis_m(product)),
                         graphs[i].run, "%s", source);
            arena_free(report.arena);
        }
}

/* K is longer than a table of offsets, and the weights are read where they are. */
Test(cpu_gemm, blocks_of_k_share_offsets, .timeout = 120) {
    Text report = {.arena = arena_new(NULL)};
    const char *source = "graph g(x: f32[1, 100, 10, 26]) -> (y: f32[1, 2, 3, 19]) {\n"
                         "  param w: f32[2, 100, 8, 8]\n  y = relu(conv2d(x, w))\n}\n";
    cr_expect(is_right(source, &report), "%s%s", source, text_str(&report));
    arena_free(report.arena);
}

/* The phases of a strided transposed convolution are woven into rows of its output, with and
 * without padding; rows shorter than a vector, and of several. */
Test(cpu_gemm, phases_are_woven, .timeout = 240) {
    static const struct {
        const char *x, *w, *y, *bias, *options;
        StoreWeave weave;
    } graphs[] = {
        {"2, 3, 9, 28", "3, 5, 2, 2", "2, 5, 18, 56", "5", "stride=2", {2, 5, 0}},
        {"1, 7, 8, 37", "7, 4, 5, 5", "1, 4, 22, 109", "4", "stride=3, padding=2", {3, 4, 0}},
        {"2, 3, 4, 20", "3, 1, 4, 4", "2, 1, 16, 80", "1", "stride=4", {4, 1, 0}},
        {"1, 2, 6, 28", "2, 40, 3, 3", "1, 40, 16, 82", "40", "stride=3, padding=1", {3, 40, 0}},
        {"1, 3, 8, 20", "3, 5, 3, 3", "1, 5, 10, 22", "5", "stride=1", {0, 0, 0}},
    };
    static const char *const dtypes[] = {"f32", "f64", "bf16"};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            Text report = {.arena = arena_new(NULL)};
            const char *t = dtypes[d];
            const char *source =
                str_format(report.arena,
                           "graph g(x: %s[%s], b: %s[%s]) -> (y: %s[%s]) {\n  param w: %s[%s]\n"
                           "  y = relu(conv_transpose2d(x, w, b, %s))\n}\n",
                           t, graphs[i].x, t, graphs[i].bias, t, graphs[i].y, t, graphs[i].w,
                           graphs[i].options);
            cr_expect(is_right(source, &report), "%s%s", source, text_str(&report));
            const Kernel *product = product_of(report.arena, source);
            StoreWeave weave = {0};
            kernel_store_weave(report.arena, product, gemm_axis_m(product), gemm_axis_n(product),
                               &weave);
            cr_expect(weave.n == graphs[i].weave.n && weave.apart == graphs[i].weave.apart, "%s",
                      source);
            const Sched *sched = &product->variants[product->n_variants - 1].sched;
            cr_expect(!weave.n || sched->cpu_gemm.unit_n >= weave.n * weave.n * weave.apart, "%s",
                      source);
            arena_free(report.arena);
        }
}
