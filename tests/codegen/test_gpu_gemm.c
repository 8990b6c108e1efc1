/* GEMMs on the GPU's ordinary units, without a GPU: every dtype, transposition and kind of
 * epilogue becomes PTX that ptxas assembles, within its shared memory, with as many multiply-adds
 * as the schedule says and with nothing spilled. What they compute is checked where there is a GPU.
 */
#include "codegen/codegen.h"
#include "lib/plans.h"
#include "lib/ptx.h"
#include "template/simt.h"
#include "schedule/schedule.h"

#include <criterion/criterion.h>
#include <string.h>

enum {
    MAX_PLANS = 32,
    MAX_SHARED_BYTES = 48 * 1024,
    /* Per thread, of what lives from before the loop to after it; 0 with vectors, constant extents.
     */
    MAX_SPILL_BYTES = 64
};

/* The epilogues; `%s` stands for the dtype. */
typedef struct Epilogue {
    const char *name, *operands, *results, *body;
    bool is_float;
} Epilogue;

static const Epilogue epilogues[] = {
    {"plain", "", "y: %s[M, N]", "  y = p\n", false},
    {"bias", ", c: %s[N]", "y: %s[M, N]", "  y = relu(p + c)\n", false},
    {"residual", ", c: %s[M, N], s: %s[M, 1]", "y: %s[M, N]", "  y = c + p * s\n", false},
    {"stores", ", c: %s[N]", "h: %s[M, N], y: f16[M, N], z: bool[M, N]",
     "  h = p + c\n  y = cast(relu(h), f16)\n  z = h > 0\n", false},
    {"view", ", c: %s[1]", "y: %s[N, M]", "  y = transpose(p * c, perm=[1, 0])\n", false},
    {"gelu", ", c: %s[N]", "y: %s[M, N]", "  y = gelu(p + c)\n", true},
};
enum { N_EPILOGUES = sizeof epilogues / sizeof *epilogues };

/* Appends `pattern` with every %s replaced. */
static void put_pattern(Text *text, const char *pattern, const char *dtype) {
    for (const char *at = pattern; *at; at++) {
        bool is_dtype = at[0] == '%' && at[1] == 's';
        text_printf(text, "%.*s", is_dtype ? 0 : 1, at);
        if (is_dtype) text_puts(text, dtype);
        at += is_dtype;
    }
}

static const char *program(Arena *arena, const char *dims, const char *dtype, const Epilogue *e,
                           bool turns_a, bool turns_b) {
    Text text = {.arena = arena};
    text_puts(&text, dims);
    text_printf(&text, "graph %s%d%d(a: %s[%s], b: %s[%s]", e->name, turns_a, turns_b, dtype,
                turns_a ? "K, M" : "M, K", dtype, turns_b ? "N, K" : "K, N");
    put_pattern(&text, e->operands, dtype);
    text_puts(&text, ") -> (");
    put_pattern(&text, e->results, dtype);
    text_printf(&text, ") {\n  p = %s @ %s\n", turns_a ? "transpose(a, perm=[1, 0])" : "a",
                turns_b ? "transpose(b, perm=[1, 0])" : "b");
    put_pattern(&text, e->body, dtype);
    text_puts(&text, "}\n");
    return text_str(&text);
}

typedef struct Batch {
    Arena *arena;
    const Target *target;
    const Plan *plans[MAX_PLANS];
    uint32_t n;
    CodeBytes code;
} Batch;

static Plan *add_program(Batch *batch, const char *source) {
    Module *module = plans_parse(batch->arena, source);
    Plan *plan = plans_fuse(batch->arena, module, 0, false);
    cr_assert_eq(plan->kernels.n, 1, "%s", source);
    cr_assert_eq(plan->kernels.data[0].form, FORM_GEMM);
    sched_plan(batch->arena, plan, batch->target);
    cr_assert(batch->n < MAX_PLANS);
    batch->plans[batch->n++] = plan;
    return plan;
}

static void emit(Batch *batch) {
    Diags diags = {.arena = batch->arena};
    bool ok = codegen_emit(batch->arena, batch->plans, batch->n,
                           (BackOptions){.target = batch->target, .verify = true}, CODE_ASSEMBLY,
                           &batch->code, &diags);
    Text text = {.arena = batch->arena};
    diag_print(&diags, &text);
    cr_assert(ok, "%s", text_str(&text));
}

static int max_spill_bytes(const Batch *batch, const char *symbol) {
    for (uint32_t i = 0; i < batch->n; i++) {
        const Kernel *kernel = &batch->plans[i]->kernels.data[0];
        for (uint32_t v = 0; v < kernel->n_variants; v++) {
            const Variant *variant = &kernel->variants[v];
            if (strcmp(variant->symbol, symbol) != 0) continue;
            return kernel->symbols || variant->sched.lanes == 1 ? MAX_SPILL_BYTES : 0;
        }
    }
    cr_expect_fail("%s is no variant", symbol);
    return 0;
}

/* Checks, per function, what the assembler says of spills and shared memory. */
static void assemble(const Batch *batch) {
    PtxReport report;
    if (!ptx_assemble(batch->arena, batch->code.data, batch->code.n_bytes,
                      (PtxOptions){.target = batch->target->name}, &report))
        return;
    for (uint32_t i = 0; i < report.functions.n; i++) {
        const PtxFunction *function = &report.functions.data[i];
        int most = max_spill_bytes(batch, function->name);
        cr_expect(function->spill_store_bytes <= (uint32_t)most, "%s for %s spills %u bytes",
                  function->name, batch->target->name, function->spill_store_bytes);
        cr_expect_leq(function->shared_bytes, MAX_SHARED_BYTES, "%s", function->name);
    }
    cr_expect(report.functions.n > 0);
}

/* Every thread multiplies and adds its outputs times the depth of a tile, and no other fma hides
 * among them; nothing is kept in local memory. */
static void check_function(const Batch *batch, const Variant *variant, Dtype dtype) {
    const Sched *sched = &variant->sched;
    const char *text = ptx_function_text(batch->arena, batch->code.data, variant->symbol);
    uint32_t computing = 32 * sched->gemm.warps_m * sched->gemm.warps_n;
    uint32_t expected = sched->gemm.tile_m * sched->gemm.tile_n / computing * sched->gemm.tile_k;
    cr_assert_eq(sched_engine(sched), GEMM_FMA);
    cr_expect_eq(ptx_count(text, ".local"), 0, "%s", variant->symbol);
    cr_expect_geq(ptx_count(text, "bar.sync") + ptx_count(text, "barrier.sync"), 2, "%s",
                  variant->symbol);
    if (dtype == DT_I32) {
        cr_expect_geq(ptx_count(text, "mad.lo.s32") + ptx_count(text, "mul.lo.s32"), expected, "%s",
                      variant->symbol);
        return;
    }
    cr_expect_eq(ptx_count(text, "fma.rn.f32"), expected, "%s", variant->symbol);
}

/* The last variant applies always, and all take what the launch can give. */
static void check_variants(const Kernel *kernel) {
    cr_assert(kernel->n_variants >= 1 && kernel->n_variants <= MAX_VARIANTS);
    const Variant *last = &kernel->variants[kernel->n_variants - 1];
    cr_expect_eq(last->predicate.n, 0);
    for (uint32_t v = 0; v < kernel->n_variants; v++) {
        const Sched *sched = &kernel->variants[v].sched;
        cr_expect(kernel->variants[v].grid);
        cr_expect(sched->threads % 32 == 0 && sched->threads <= 1024);
        GemmSched gemm = sched_gemm(sched);
        cr_expect(32 * gemm.warps_m * gemm.warps_n <= sched->threads);
    }
}

static void check_programs(TargetId target, Dtype dtype, const char *dims) {
    Batch batch = {.arena = arena_new(NULL), .target = target_get(target)};
    for (int turns = 0; turns < 4; turns++)
        add_program(&batch, program(batch.arena, dims, dtype_name(dtype), &epilogues[turns ? 0 : 1],
                                    turns >> 1, turns & 1));
    uint32_t n_countable = batch.n;
    for (int i = 0; i < N_EPILOGUES; i++)
        if (i != 1 && (!epilogues[i].is_float || dtype != DT_I32))
            add_program(&batch,
                        program(batch.arena, dims, dtype_name(dtype), &epilogues[i], false, false));
    emit(&batch);
    for (uint32_t i = 0; i < batch.n; i++) {
        const Kernel *kernel = &batch.plans[i]->kernels.data[0];
        check_variants(kernel);
        for (uint32_t v = 0; v < kernel->n_variants && i < n_countable; v++)
            check_function(&batch, &kernel->variants[v], dtype);
    }
    assemble(&batch);
    arena_free(batch.arena);
}

static const char constant_dims[] = "dim M = 2048\ndim N = 1024\ndim K = 512\n";
static const char symbolic_dims[] = "dim M in 0..2048\ndim N in 0..2048\ndim K in 0..2048\n";

Test(gpu_gemm, constant_f32) {
    check_programs(TARGET_SM_80, DT_F32, constant_dims);
    check_programs(TARGET_SM_90A, DT_F32, constant_dims);
}

Test(gpu_gemm, constant_i32) {
    check_programs(TARGET_SM_80, DT_I32, constant_dims);
    check_programs(TARGET_SM_90A, DT_I32, constant_dims);
}

Test(gpu_gemm, symbolic_f32) {
    check_programs(TARGET_SM_80, DT_F32, symbolic_dims);
}

/* Vectors, guarded and gathered operands, batches that broadcast, 64-bit addresses. */
Test(gpu_gemm, shapes_and_views) {
    static const char *const sources[] = {
        "dim N in 1..100000\n"
        "graph row(x: f32[N], w: f32[N, 77]) -> (y: f32[77]) {\n  y = x @ w\n}\n",
        "dim N in 1..100000\n"
        "graph column(x: f32[N], w: f32[64, N]) -> (y: f32[64]) {\n  y = w @ x\n}\n",
        "graph dot(x: f64[33]) -> (y: f64) {\n  y = x @ x\n}\n",
        "dim B in 1..64\ndim T in 1..64\n"
        "graph heads(x: f32[B, T, 32], w: f32[32, 48]) -> (y: f32[B, 3, T, 16]) {\n"
        "  y = transpose(reshape(x @ w, [B, T, 3, 16]), perm=[0, 2, 1, 3])\n}\n",
        "graph padded(u: f32[30, 48], w: f32[32, 48]) -> (y: f32[48, 48]) {\n"
        "  y = transpose(pad(u, low=[1, 0], high=[1, 0]), perm=[1, 0]) @ w\n}\n",
        "dim B in 1..64\ndim L in 0..1000000\n"
        "graph wide(a: i32[B, 3, L, 16], b: i32[3, 16, L]) -> (y: i32[B, 3, L, L]) {\n"
        "  y = a @ b\n}\n",
        "graph unit(a: f32[5, 1], b: f32[1, 7]) -> (y: f32[5, 7]) {\n  y = a @ b\n}\n",
    };
    Batch batch = {.arena = arena_new(NULL), .target = target_get(TARGET_SM_80)};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        check_variants(&add_program(&batch, sources[i])->kernels.data[0]);
    emit(&batch);
    assemble(&batch);
    arena_free(batch.arena);
}

/* Beyond the end of k one operand is -0 and the other +0, which leaves even a sum of -0 as it is.
 */
Test(gpu_gemm, pads_with_zeros_of_both_signs) {
    Batch batch = {.arena = arena_new(NULL), .target = target_get(TARGET_SM_90A)};
    Plan *plan = add_program(
        &batch, program(batch.arena, symbolic_dims, "f32", &epilogues[0], false, false));
    emit(&batch);
    const Kernel *kernel = &plan->kernels.data[0];
    const char *text = ptx_function_text(batch.arena, batch.code.data,
                                         kernel->variants[kernel->n_variants - 1].symbol);
    cr_expect(ptx_count(text, "], -2147483648;") > 0);
    cr_expect(ptx_count(text, "], 0;") > 0);
    arena_free(batch.arena);
}

/* Few rows take tiles of their own, for as many as these have; larger ones come with more work. */
Test(gpu_gemm, variants_by_extent) {
    Batch batch = {.arena = arena_new(NULL), .target = target_get(TARGET_SM_90A)};
    Plan *plan = add_program(&batch, "dim M in 1..8192\n"
                                     "graph g(a: f32[M, 4096], b: f32[4096, 4096]) -> "
                                     "(y: f32[M, 4096]) {\n  y = a @ b\n}\n");
    const Kernel *kernel = &plan->kernels.data[0];
    cr_assert_geq(kernel->n_variants, 4);
    const Variant *first = &kernel->variants[0];
    cr_expect_eq(first->sched.gemm.tile_m, 8);
    cr_expect_eq(predicate_term(&first->predicate, TERM_RANGE, 0)->most, 8);
    cr_expect_eq(predicate_dim(&first->predicate, TERM_MULTIPLE), DIM_NONE);
    for (uint32_t v = 1; v < kernel->n_variants; v++) {
        const Variant *before = &kernel->variants[v - 1], *now = &kernel->variants[v];
        if (predicate_alignment(&now->predicate, 0) == predicate_alignment(&before->predicate, 0))
            cr_expect_gt(now->sched.gemm.tile_m * now->sched.gemm.tile_n,
                         before->sched.gemm.tile_m * before->sched.gemm.tile_n);
    }
    arena_free(batch.arena);
}

/* A tile of few rows has some 40 KiB of the rhs under way and room for a block beside it;
 * its fragments come so many steps ahead that nobody waits for shared memory. Where k is short,
 * there are the tiles of other products. */
Test(gpu_gemm, few_rows_are_streamed) {
    static const struct {
        int m, k;
        const char *right;
        uint32_t tile_m, least_bytes;
    } cases[] = {{2, 4096, "w", 8, 40 << 10},
                 {8, 4096, "transpose(w)", 8, 40 << 10},
                 {9, 4096, "w", 16, 40 << 10},
                 {16, 4095, "w", 16, 40 << 10},
                 {32, 4096, "transpose(w)", 32, 32 << 10},
                 {33, 4096, "w", 64, 24 << 10},
                 {64, 300, "w", 64, 24 << 10},
                 {16, 128, "w", 32, 0},
                 {65, 4096, "w", 64, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Batch batch = {.arena = arena_new(NULL), .target = target_get(TARGET_SM_90A)};
        bool is_transposed = cases[i].right[0] == 't';
        int n = 4096, k = cases[i].k;
        Plan *plan = add_program(
            &batch, str_format(batch.arena,
                               "graph g(x: f32[%d, %d], w: f32[%d, %d]) -> (y: f32[%d, %d]) {\n"
                               "  y = x @ %s\n}\n",
                               cases[i].m, k, is_transposed ? n : k, is_transposed ? k : n,
                               cases[i].m, n, cases[i].right));
        const Variant *variant = &plan->kernels.data[0].variants[0];
        const Sched *sched = &variant->sched;
        cr_expect_eq(sched->gemm.tile_m, cases[i].tile_m, "case %zu: %u", i, sched->gemm.tile_m);
        cr_expect_leq(variant->shared_bytes, 96 << 10);
        uint32_t ahead = simt_rows_ahead(sched);
        cr_expect_eq(sched->gemm.tile_k % ahead, 0);
        uint32_t under_way = (sched->gemm.stages - 1) * sched->gemm.tile_k * sched->gemm.tile_n * 4;
        cr_expect_geq(under_way, cases[i].least_bytes, "case %zu", i);
        if (cases[i].least_bytes) cr_expect_geq(ahead, 4);
        arena_free(batch.arena);
    }
}

/* A plain load is copied: by 16 bytes where it lies along its own axis, by elements where it lies
 * along k or may not be aligned. What is computed on the way is loaded. */
Test(gpu_gemm, copies_plain_loads) {
    static const struct {
        const char *left, *body;
        uint32_t variant, n_vectors, n_elements, n_loads;
    } cases[] = {
        {"a: f32[4096, 4096]", "a @ b", 0, 4, 8, 0}, /* 128 x 8 by 4 bytes, 8 x 256 by 16 */
        {"a: f32[4096, 4096]", "a @ transpose(b, perm=[1, 0])", 0, 0, 24,
         0}, /* 128 x 8 and 256 x 8 by 4 bytes */
        {"a: f32[4096, 4096]", "a @ b", 1, 0, 24, 0},
        {"c: f32[4094, 4096]", "pad(c, low=[1, 0], high=[1, 0]) @ b", 0, 4, 0, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Batch batch = {.arena = arena_new(NULL), .target = target_get(TARGET_SM_90A)};
        Plan *plan = add_program(
            &batch, str_format(batch.arena,
                               "graph g(%s, b: f32[4096, 4096]) -> (y: f32[4096, 4096]) {\n"
                               "  y = %s\n}\n",
                               cases[i].left, cases[i].body));
        emit(&batch);
        const Variant *variant = &plan->kernels.data[0].variants[cases[i].variant];
        const char *text = ptx_function_text(batch.arena, batch.code.data, variant->symbol);
        cr_assert_eq(variant->sched.gemm.tile_n, 256);
        cr_expect_eq(ptx_count(text, "cp.async.cg.shared.global"), cases[i].n_vectors, "%zu", i);
        cr_expect_eq(ptx_count(text, "cp.async.ca.shared.global"), cases[i].n_elements, "%zu", i);
        cr_expect_eq(ptx_count(text, "ld.global"), cases[i].n_loads, "%zu", i);
        arena_free(batch.arena);
    }
}

/* The wide tile is taken where it costs fewer rounds of columns, and for rows no tile holds whole.
 */
Test(gpu_gemm, width_of_the_largest_tile) {
    static const struct {
        const char *dtype, *m, *n;
        uint32_t tile_n;
    } cases[] = {{"f32", "4096", "4096", 256}, {"i32", "4096", "4096", 256},
                 {"f32", "2048", "2048", 256}, {"f32", "2304", "2304", 128},
                 {"f32", "M", "4096", 256},    {"f32", "M", "384", 128},
                 {"f32", "M", "128", 128},     {"f32", "M", "256", 128},
                 {"f32", "4096", "N", 256},    {"f32", "1024", "1024", 64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Batch batch = {.arena = arena_new(NULL), .target = target_get(TARGET_SM_80)};
        const char *d = cases[i].dtype, *m = cases[i].m, *n = cases[i].n;
        const Plan *plan = add_program(
            &batch, str_format(batch.arena,
                               "dim M in 1..65536\ndim N in 1..65536\n"
                               "graph g(a: %s[%s, 512], b: %s[512, %s]) -> (y: %s[%s, %s]) {\n"
                               "  y = a @ b\n}\n",
                               d, m, d, n, d, m, n));
        const Kernel *kernel = &plan->kernels.data[0];
        const Variant *last = &kernel->variants[kernel->n_variants - 1];
        cr_expect_eq(last->sched.gemm.tile_n, cases[i].tile_n, "%zu: %u", i,
                     last->sched.gemm.tile_n);
        cr_expect_eq(last->shared_bytes > 0, cases[i].tile_n == 256, "%zu", i);
        arena_free(batch.arena);
    }
}
