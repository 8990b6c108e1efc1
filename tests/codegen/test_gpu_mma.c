/* Tensor core GEMMs as code: what is scheduled, which instructions each layout of the
 * operands becomes, and that the assembler takes it without spills. That results are right is for
 * the tests that run on a GPU. */
#include "lib/compiled.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90};

/* Operands, and what becomes of them: f32 is rounded to tf32. */
typedef struct Operands {
    Dtype dtype;
    const char *precision; /* of the call */
} Operands;
enum { N_OPERANDS = 4 };
static const Operands operands[N_OPERANDS] = {
    {DT_BF16, ""}, {DT_F16, ""}, {DT_F32, ", precision=\"tf32\""}, {DT_F64, ""}};

/* The instruction, and how many of them multiply 16 by 8 by 32 bytes. */
static const char *instruction(Dtype dtype, TargetId target, uint32_t *n) {
    *n = dtype == DT_F64 && target == TARGET_SM_80 ? 2 : 1;
    if (dtype == DT_BF16) return "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
    if (dtype == DT_F16) return "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
    if (dtype == DT_F32) return "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32";
    return *n == 2 ? "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
                   : "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64";
}

typedef struct Program {
    Compiled compiled;
    const Kernel *kernel;
} Program;

static Program compile(const char *source, TargetId target) {
    Program p = {.compiled = compiled_new(source, target)};
    const Plan *plan = p.compiled.plan;
    uint32_t n_init = plan_n_init(plan);
    cr_assert_eq(plan->kernels.n - n_init, 1, "%u kernels\n%s", plan->kernels.n, source);
    p.kernel = &plan->kernels.data[n_init];
    cr_assert_eq(p.kernel->form, FORM_GEMM);
    return p;
}

/* Assembles all variants; true when there is no assembler to ask. */
static bool assembles_without_spills(const Program *p) {
    PtxReport report;
    if (!compiled_assemble(&p->compiled, (PtxOptions){0}, &report)) return true;
    return report.functions.n == p->kernel->n_variants && ptx_is_in_registers(&report);
}

static uint32_t n_steps(const Sched *s, Dtype dtype) {
    return s->gemm.tile_k * dtype_bytes(dtype) / 32;
}

/* Instructions of a function that its schedule calls for. */
static void check_loop(const Program *p, uint32_t variant, const char *text, Dtype dtype,
                       TargetId target) {
    const Sched *s = &p->kernel->variants[variant].sched;
    uint32_t m = s->gemm.tile_m / s->gemm.warps_m / 16, n = s->gemm.tile_n / s->gemm.warps_n / 8,
             each;
    const char *name = instruction(dtype, target, &each);
    cr_expect_eq(sched_engine(s), GEMM_MMA);
    cr_expect_eq(s->threads, s->gemm.warps_m * s->gemm.warps_n * 32);
    cr_expect_eq(ptx_count(text, name), n_steps(s, dtype) * m * n * each, "%s", name);
    cr_expect_eq(ptx_count(text, "mma.sync"), ptx_count(text, name));
    /* one step's fragments are loaded before the loop too */
    if (dtype_bytes(dtype) == 2)
        cr_expect_eq(ptx_count(text, "ldmatrix.sync"), (n_steps(s, dtype) + 1) * (m + n / 2));
    cr_expect_eq(ptx_count(text, ".local"), 0, "a local array");
}

/* Large constant matrices, every layout: both operands are copied, and what lies along m or n is
 * transposed on its way into registers: by ldmatrix, or element by element where that cannot. */
static void check_layout(Operands o, int lhs_trans, int rhs_trans, TargetId target) {
    char source[512];
    const char *dtype = dtype_name(o.dtype);
    snprintf(source, sizeof source,
             "graph g(a: %s[%s], b: %s[%s]) -> (y: %s[1416, 1304]) {\n"
             "  y = matmul(%s, %s%s)\n"
             "}\n",
             dtype, lhs_trans ? "200, 1416" : "1416, 200", dtype,
             rhs_trans ? "200, 1304" : "1304, 200", dtype,
             lhs_trans ? "transpose(a, perm=[1, 0])" : "a",
             rhs_trans ? "b" : "transpose(b, perm=[1, 0])", o.precision);
    Program p = compile(source, target);
    const char *text = compiled_function(&p.compiled, p.kernel, 0);
    check_loop(&p, 0, text, o.dtype, target);
    const Sched *s = &p.kernel->variants[0].sched;
    uint32_t bytes = dtype_bytes(o.dtype), steps = n_steps(s, o.dtype) + 1;
    uint32_t left = steps * s->gemm.tile_m / s->gemm.warps_m / 16;
    uint32_t right = steps * s->gemm.tile_n / s->gemm.warps_n / 16;
    uint32_t n_transposed = (lhs_trans ? left : 0) + (rhs_trans ? right : 0);
    uint32_t matrices = bytes == 8 ? 0 : bytes == 2 ? left + right : left + right - n_transposed;
    uint32_t chunks = (s->gemm.tile_m + s->gemm.tile_n) * s->gemm.tile_k * bytes / 16 / s->threads;
    cr_expect_eq(s->gemm.tile_m, 128);
    cr_expect_eq(ptx_count(text, "ldmatrix.sync"), matrices, "%s", source);
    cr_expect_eq(ptx_count(text, ".trans."), bytes == 2 ? n_transposed : 0, "%s", source);
    /* once ahead of the loop over k, which is a loop itself, and once in it */
    cr_expect_eq(ptx_count(text, "cp.async.cg.shared.global"), chunks * 2, "%s", source);
    cr_expect(assembles_without_spills(&p), "%s", source);
    compile_free(&p.compiled);
}

Test(gpu_mma, every_layout_is_copied_and_transposed_where_it_must) {
    for (int i = 0; i < 8 * N_OPERANDS; i++)
        check_layout(operands[i / 8], i & 1, i >> 1 & 1, targets[i >> 2 & 1]);
}

/* The body with T[ for the dtype and @(a, b) for the product. */
static void spell(char *typed, const char *source, Operands o) {
    size_t n = 0;
    for (const char *at = source; *at; at++) {
        if (at[0] == 'T' && at[1] == '[')
            n += (size_t)sprintf(typed + n, "%s", dtype_name(o.dtype));
        else if (at[0] == '@')
            n += (size_t)sprintf(typed + n, "matmul(a, b%s)", o.precision);
        else
            typed[n++] = *at;
    }
    typed[n] = '\0';
}

/* Epilogues of every input class, batches and symbolic extents. */
Test(gpu_mma, epilogues_assemble_without_spills) {
    static const char *const bodies[] = {
        "y: T[M, 256]) {\n  y = relu(@ + c)\n",
        "y: T[M, 256]) {\n  p = gelu(@) * r\n  y = where(p > t, p, t)\n",
        "y: T[M, 256], z: bool[M, 256]) {\n  p = @\n  y = tanh(p)\n  z = p > c\n",
        "y: T[M, 256], w: T[256, M]) {\n  y = @ + c\n  w = transpose(y, perm=[1, 0])\n",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies * 2 * N_OPERANDS; i++) {
        Operands o = operands[i % N_OPERANDS];
        TargetId target = targets[i / N_OPERANDS % 2];
        char source[1024] = "dim M in 0..65536\ngraph g(a: T[M, 512], b: T[512, 256], c: T[256], "
                            "r: T[M, 1], t: T[M, 256]) -> (";
        strcat(source, bodies[i / N_OPERANDS / 2]);
        strcat(source, "}\n");
        char typed[1024];
        spell(typed, source, o);
        Program p = compile(typed, target);
        for (uint32_t v = 0; v < p.kernel->n_variants; v++) {
            const char *text = compiled_function(&p.compiled, p.kernel, v);
            check_loop(&p, v, text, o.dtype, target);
        }
        cr_expect(assembles_without_spills(&p), "%s", typed);
        compile_free(&p.compiled);
    }
}

/* f32 is f32 unless tf32 is asked for, and then operands are rounded once, in registers. */
Test(gpu_mma, tf32_is_never_taken_unasked) {
    static const char *const products[] = {"a @ b", "matmul(a, b, precision=\"full\")",
                                           "matmul(a, b, precision=\"tf32\")"};
    for (int i = 0; i < 3; i++) {
        char source[256];
        snprintf(
            source, sizeof source,
            "graph g(a: f32[512, 512], b: f32[512, 512]) -> (y: f32[512, 512]) {\n  y = %s\n}\n",
            products[i]);
        Program p = compile(source, TARGET_SM_90);
        cr_expect_eq(sched_engine(&p.kernel->variants[0].sched), i == 2 ? GEMM_MMA : GEMM_FMA);
        cr_expect_eq(strstr(p.compiled.bytes, "tf32") != NULL, i == 2, "%s", source);
        compile_free(&p.compiled);
    }
}

/* Four f32 are an access of 16 bytes, where four of the operands' dtype are one of 8. By wgmma no
 * other warps store them, because there is no room for them beside the stages. */
Test(gpu_mma, a_wider_result_is_stored_in_wider_vectors, .timeout = 60) {
    for (int i = 0; i < 4; i++) {
        bool is_wide = i % 2;
        TargetId target = i < 2 ? TARGET_SM_80 : TARGET_SM_90A;
        char source[256];
        snprintf(source, sizeof source,
                 "graph g(a: f16[4096, 512], b: f16[4096, 512]) -> (y: %s[4096, 4096]) {\n"
                 "  y = matmul(a, transpose(b)%s)\n}\n",
                 is_wide ? "f32" : "f16", is_wide ? ", out=f32" : "");
        Program p = compile(source, target);
        const Sched *s = &p.kernel->variants[0].sched;
        const char *text = compiled_function(&p.compiled, p.kernel, 0);
        cr_expect_eq(sched_engine(s), i < 2 ? GEMM_MMA : GEMM_WGMMA, "%s", source);
        cr_expect_eq(s->gemm.store_warps, i == 2 ? 3 : 0, "%s", source);
        cr_expect_gt(ptx_count(text, is_wide ? "st.global.v4" : "st.global.v2"), 0, "%s", source);
        cr_expect_eq(strstr(text, "cvt.rn.f16") == NULL, is_wide, "%s", source);
        cr_expect(assembles_without_spills(&p), "%s", source);
        compile_free(&p.compiled);
    }
}

/* Bytes are read along k alone, so what lies otherwise is loaded byte by byte where a copy of it
 * does not pay, and never transposed on its way. Every result has i32 accumulators. */
Test(gpu_mma, bytes_are_multiplied_along_k, .timeout = 60) {
    static const struct {
        const char *dtype, *product;
        TargetId target;
        const char *instruction;
    } cases[] = {
        {"i8", "matmul(a, transpose(b), out=i32)", TARGET_SM_80, "m16n8k32.row.col.s32.s8.s8.s32"},
        {"u8", "matmul(a, transpose(b), out=i32)", TARGET_SM_90, "m16n8k32.row.col.s32.u8.u8.s32"},
        {"i8", "a @ transpose(b)", TARGET_SM_80, "m16n8k32.row.col.s32.s8.s8.s32"},
        {"i8", "matmul(transpose(c), d, out=i32)", TARGET_SM_80, "m16n8k32.row.col.s32.s8.s8.s32"},
        {"i8", "matmul(a, transpose(b), out=i32)", TARGET_SM_90A, "k32.s32.s8.s8"},
        {"u8", "matmul(a, transpose(b), out=i32)", TARGET_SM_90A, "k32.s32.u8.u8"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char source[512];
        const char *d = cases[i].dtype;
        snprintf(source, sizeof source,
                 "graph g(a: %s[1400, 320], b: %s[1400, 320], c: %s[320, 1400], d: %s[320, 1400]) "
                 "-> (y: %s[1400, 1400]) {\n  y = %s\n}\n",
                 d, d, d, d, strstr(cases[i].product, "out") ? "i32" : d, cases[i].product);
        Program p = compile(source, cases[i].target);
        const char *text = compiled_function(&p.compiled, p.kernel, 0);
        bool is_copied = strstr(cases[i].product, "transpose(b)") != NULL;
        cr_expect_gt(ptx_count(text, cases[i].instruction), 0, "%s", source);
        cr_expect_eq(ptx_count(text, ".trans."), 0, "%s", source);
        cr_expect_eq(strstr(text, "cp.async.cg") || strstr(text, "cp.async.bulk"), is_copied, "%s",
                     source);
        cr_expect(assembles_without_spills(&p), "%s", source);
        compile_free(&p.compiled);
    }
}

/* Without tensor cores for them, 8-bit floats become f16 on their way to shared memory: no operand
 * is copied as it is. */
Test(gpu_mma, eight_bit_floats_are_multiplied_as_f16, .timeout = 60) {
    static const char *const dtypes[] = {"f8e4m3", "f8e5m2"};
    for (int i = 0; i < 4; i++) {
        char source[256];
        snprintf(source, sizeof source,
                 "graph g(a: %s[1400, 320], b: %s[1400, 320]) -> (y: f32[1400, 1400]) {\n"
                 "  y = matmul(a, transpose(b), out=f32)\n}\n",
                 dtypes[i % 2], dtypes[i % 2]);
        Program p = compile(source, i < 2 ? TARGET_SM_80 : TARGET_SM_90);
        const char *text = compiled_function(&p.compiled, p.kernel, 0);
        cr_expect_eq(gemm_operand_dtype(p.kernel), DT_F16);
        check_loop(&p, 0, text, DT_F16, TARGET_SM_80);
        cr_expect_eq(ptx_count(text, "cp.async.cg"), 0, "%s", source);
        cr_expect(assembles_without_spills(&p), "%s", source);
        compile_free(&p.compiled);
    }
}

/* A product of 8-bit floats, of which `k` elements are contracted. */
static Program compile_f8(Dtype left, Dtype right, int k, TargetId target) {
    char source[256];
    snprintf(source, sizeof source,
             "graph g(a: %s[1400, %d], b: %s[1400, %d]) -> (y: f32[1400, 1400]) {\n"
             "  y = matmul(a, transpose(b), out=f32)\n}\n",
             dtype_name(left), k, dtype_name(right), k);
    return compile(source, target);
}

/* Tensor cores add 8-bit floats for 128 elements of k, and then their sums are added in f32. */
Test(gpu_mma, eight_bit_floats_are_added_in_f32_every_128, .timeout = 120) {
    for (int i = 0; i < 4; i++) {
        Dtype left = i % 2 ? DT_F8E5M2 : DT_F8E4M3, right = i / 2 ? DT_F8E5M2 : DT_F8E4M3;
        Program p = compile_f8(left, right, 320, TARGET_SM_89);
        const char *text = compiled_function(&p.compiled, p.kernel, 0);
        const GemmSched *s = &p.kernel->variants[0].sched.gemm;
        uint32_t n_accs = s->tile_m * s->tile_n / p.kernel->variants[0].sched.threads;
        const char *name =
            str_format(p.compiled.driver.arena, "mma.sync.aligned.m16n8k32.row.col.f32.%s.%s.f32",
                       dtype_name(left) + 2, dtype_name(right) + 2);
        cr_expect_eq(s->tile_k, GEMM_F8_DEPTH);
        cr_expect_eq(ptx_count(text, name), n_accs / 4 * GEMM_F8_DEPTH / 32, "%s", name);
        cr_expect_eq(ptx_count(text, "mma.sync"), ptx_count(text, name));
        cr_expect_eq(ptx_count(text, "add.rn.f32"), n_accs);
        cr_expect_gt(ptx_count(text, "cp.async.cg"), 0, "operands are copied as they are");
        cr_expect(strstr(p.compiled.bytes, "\n.version 8.4\n"));
        cr_expect(assembles_without_spills(&p));
        compile_free(&p.compiled);
    }
}

/* Where the copy engine cannot follow, threads copy and warpgroups multiply, by the instructions
 * that take over where it can: so no bit depends on who copies. */
Test(gpu_mma, warpgroups_multiply_eight_bit_floats_whoever_copies, .timeout = 120) {
    for (int i = 0; i < 2; i++) {
        Program p = compile_f8(DT_F8E4M3, DT_F8E5M2, i ? 300 : 320, TARGET_SM_90A);
        uint32_t n_fetched = 0;
        for (uint32_t v = 0; v < p.kernel->n_variants; v++) {
            const Sched *s = &p.kernel->variants[v].sched;
            const char *text = compiled_function(&p.compiled, p.kernel, v);
            n_fetched += template_info(s->template)->uses_copy_engine;
            cr_expect_eq(template_info(s->template)->uses_copy_engine, !s->gemm.by_groups);
            cr_expect_eq(s->gemm.tile_k, GEMM_F8_DEPTH);
            cr_expect_eq(ptx_count(text, "mma.sync"), 0);
            cr_expect_gt(ptx_count(text, "k32.f32.e4m3.e5m2 {"), 0);
            cr_expect_eq(ptx_count(text, "k32.f32.e4m3.e5m2 {") % 4, 0);
        }
        cr_expect_eq(n_fetched > 0, i == 0, "rows of 300 bytes are no multiple of 16");
        cr_expect(assembles_without_spills(&p));
        compile_free(&p.compiled);
    }
}

/* f64 is a chain of fused multiply-adds, so beyond the end of k there is -0 on the left: where k is
 * not known to fill its tiles, and nowhere else. */
Test(gpu_mma, padding_of_f64_changes_no_sum) {
    static const struct {
        const char *k;
        bool is_padded;
    } cases[] = {{"dim K = 512\n", false},
                 {"dim K = 514\n", true},
                 {"dim K = 513\n", true},
                 {"dim K in 0..512\n", true},
                 {"dim K in 0..512 mult 8\n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char source[256];
        snprintf(
            source, sizeof source,
            "%sgraph g(a: f64[300, K], b: f64[K, 128]) -> (y: f64[300, 128]) {\n  y = a @ b\n}\n",
            cases[i].k);
        Program p = compile(source, TARGET_SM_90);
        for (uint32_t v = 0; v < p.kernel->n_variants; v++) {
            const char *text = compiled_function(&p.compiled, p.kernel, v);
            cr_expect_eq(strstr(text, "0d8000000000000000") != NULL, cases[i].is_padded, "%s",
                         source);
        }
        compile_free(&p.compiled);
    }
}

/* One check for all lanes of a quotient, and no call between one element and the next. */
Test(gpu_mma, quotients_of_an_epilogue_do_not_branch) {
    Program p = compile("graph g(a: bf16[512, 64], b: bf16[64, 512]) -> (y: bf16[512, 512]) {\n"
                        "  y = sigmoid(a @ b)\n"
                        "}\n",
                        TARGET_SM_90);
    const char *text = compiled_function(&p.compiled, p.kernel, 0);
    cr_expect_eq(ptx_count(text, "div.rn.f32"), 0);
    cr_expect_gt(ptx_count(text, "rcp.approx.ftz.f32"), 0);
    cr_expect_eq(ptx_count(text, "rcp.approx.ftz.f32") % p.kernel->variants[0].sched.lanes, 0);
    compile_free(&p.compiled);
}

/* What a row loads is begun an iteration before it is used: once before the loop, once in it for
 * every row that it takes at once. */
Test(gpu_mma, operands_of_an_epilogue_are_loaded_early) {
    Program p = compile(
        "graph g(a: bf16[512, 64], b: bf16[64, 512], t: bf16[512, 512]) -> (y: bf16[512, 512]) {\n"
        "  y = (a @ b) * t\n"
        "}\n",
        TARGET_SM_90);
    const char *text = compiled_function(&p.compiled, p.kernel, 0);
    cr_expect_gt(ptx_count(text, "st.global.v2"), 0);
    cr_expect_eq(ptx_count(text, "ld.global.v2"), 2 * ptx_count(text, "st.global.v2"));
    compile_free(&p.compiled);
}

/* What cannot be copied goes through registers: odd pitches in one variant that asks for nothing;
 * guarded but aligned operands by wide loads. */
Test(gpu_mma, odd_pitches_and_computed_operands_are_not_copied) {
    Program p = compile("graph g(a: bf16[300, 77], b: bf16[77, 131]) -> (y: bf16[300, 131]) {\n"
                        "  y = a @ b\n"
                        "}\n",
                        TARGET_SM_90);
    cr_assert_eq(p.kernel->n_variants, 1);
    cr_expect_null(predicate_term(&p.kernel->variants[0].predicate, TERM_ALIGNED, 0));
    const char *text = compiled_function(&p.compiled, p.kernel, 0);
    check_loop(&p, 0, text, DT_BF16, TARGET_SM_90);
    cr_expect_eq(ptx_count(text, "cp.async.cg"), 0);
    cr_expect_gt(ptx_count(text, "st.shared.v4"), 0);
    cr_expect_eq(ptx_count(text, "ld.global.v4"), 0);
    cr_expect(assembles_without_spills(&p));
    compile_free(&p.compiled);
    p = compile("graph g(a: f16[300, 64], b: f16[64, 128]) -> (y: f16[308, 128]) {\n"
                "  y = pad(a, low=[8, 0], high=[0, 0]) @ b\n"
                "}\n",
                TARGET_SM_90);
    text = compiled_function(&p.compiled, p.kernel, 0);
    check_loop(&p, 0, text, DT_F16, TARGET_SM_90);
    cr_expect_gt(ptx_count(text, "cp.async.cg"), 0, "the right factor is copied");
    cr_expect_gt(ptx_count(text, "st.shared.v4"), 0, "the left one is not");
    cr_expect_gt(ptx_count(text, "ld.global.v4"), 0, "but loaded 8 elements at a time");
    compile_free(&p.compiled);
}

/* A row that every m reads is aligned wherever it ends, so it is copied though k holds no whole
 * chunks: what is copied of the last one must be what k leaves of it, not 16 bytes or none. */
Test(gpu_mma, a_broadcast_row_may_end_within_a_chunk) {
    for (int i = 0; i < N_OPERANDS; i++) {
        char source[256], typed[512];
        snprintf(source, sizeof source,
                 "dim K in 2..40\n"
                 "graph g(x: T[K], b: T[K, 64]) -> (y: T[64, 64]) {\n"
                 "  a = expand(x, [64, K])\n  y = @\n}\n");
        spell(typed, source, operands[i]);
        Program p = compile(typed, TARGET_SM_90A);
        const char *text = compiled_function(&p.compiled, p.kernel, 0);
        cr_expect_gt(ptx_count(text, "cp.async.cg"), 0, "%s", typed);
        cr_expect_eq(ptx_count(text, ", 16, 0, %p"), 0, "%s", typed);
        cr_expect_gt(ptx_count(text, ", -1, 0, %p"), 0, "%s", typed);
        compile_free(&p.compiled);
    }
}

/* k is padded to tile_k, which is arithmetic: so it may not differ between variants. */
Test(gpu_mma, variants_differ_in_tiles_but_not_in_steps_of_k) {
    Program p = compile("dim M in 1..65536\n"
                        "dim K in 1..65536\n"
                        "graph g(a: f16[M, K], b: f16[4096, K]) -> (y: f16[M, 4096]) {\n"
                        "  y = a @ transpose(b, perm=[1, 0])\n"
                        "}\n",
                        TARGET_SM_90);
    bool is_large = false, is_small = false;
    for (uint32_t i = 0; i < p.kernel->n_variants; i++) {
        const Variant *variant = &p.kernel->variants[i];
        is_large = is_large || variant->sched.gemm.tile_m == 128;
        is_small = is_small || variant->sched.gemm.tile_m == 64;
        cr_expect_eq(variant->sched.gemm.tile_k, p.kernel->variants[0].sched.gemm.tile_k);
    }
    cr_expect(is_large && is_small);
    const Variant *last = &p.kernel->variants[p.kernel->n_variants - 1];
    cr_expect_eq(last->predicate.n, 0);
    cr_expect_eq(predicate_term(&p.kernel->variants[0].predicate, TERM_MULTIPLE, 0)->of, 8,
                 "K is asked to be a multiple of 8");
    compile_free(&p.compiled);
}

/* Few large tiles leave most of a GPU idle. */
Test(gpu_mma, small_problems_get_small_tiles) {
    static const struct {
        int n;
        uint32_t tile;
    } cases[] = {{256, 32}, {1024, 64}, {4096, 128}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char source[256];
        int n = cases[i].n;
        snprintf(source, sizeof source,
                 "graph g(a: bf16[%d, 64], b: bf16[64, %d]) -> (y: bf16[%d, %d]) {\n"
                 "  y = a @ b\n"
                 "}\n",
                 n, n, n, n);
        Program p = compile(source, TARGET_SM_80);
        cr_expect_eq(p.kernel->variants[0].sched.gemm.tile_m, cases[i].tile, "%s", source);
        compile_free(&p.compiled);
    }
}

/* A chunk of which k leaves 3 elements is 6 bytes: the row's say is all or nothing, not 16 bytes.
 */
Test(gpu_mma, chunks_that_k_cuts_short_keep_what_is_inside) {
    Program p = compile("dim M in 1..300\n"
                        "graph g(a: f16[M, 136], b: f16[63, 136]) -> (y: f16[M, 63]) {\n"
                        "  y = a[:, 0:131] @ transpose(b[:, 0:131], perm=[1, 0])\n"
                        "}\n",
                        TARGET_SM_80);
    const char *text = compiled_function(&p.compiled, p.kernel, 0);
    cr_expect_gt(ptx_count(text, "cp.async.cg"), 0);
    cr_expect_gt(ptx_count(text, ", -1, 0, "), 0);
    cr_expect_eq(ptx_count(text, ", 16, 0, "), 0);
    compile_free(&p.compiled);
}

/* The rhs's rows of 4001 elements begin anywhere; an init step pads them. */
Test(gpu_mma, odd_rows_of_params_are_copied) {
    static const char *const bodies[2] = {
        "dim M in 1..300\ngraph g(a: bf16[M, 64], b: bf16[64, 4001]) -> (y: bf16[M, 4001]) {\n"
        "  y = a @ b\n}\n",
        "dim M in 1..300\ngraph g(a: bf16[M, 64]) -> (y: bf16[M, 4001]) {\n"
        "  param b: bf16[64, 4001] = \"b\"\n  y = a @ b\n}\n"};
    uint32_t n_loads[2];
    for (int i = 0; i < 2; i++) {
        Program p = compile(bodies[i], TARGET_SM_80);
        const char *text = compiled_function(&p.compiled, p.kernel, 0);
        n_loads[i] = ptx_count(text, "ld.global");
        compile_free(&p.compiled);
    }
    cr_expect(n_loads[0] > 0 && n_loads[1] == 0, "%u and %u", n_loads[0], n_loads[1]);
}

/* Few rows of weights: small tiles with deep stages under a condition on how many there are, which
 * large products do not meet. What is deeper than the padding of k divides k. */
static void check_few_rows(const char *dtype, uint32_t elem_bytes, int k, bool is_deep) {
    char source[256];
    bool is_tf32 = elem_bytes == 4;
    snprintf(source, sizeof source,
             "dim M in 1..8192\n"
             "graph g(a: %s[M, %d], b: %s[%d, 4096]) -> (y: %s[M, 4096]) {\n  y = %s\n}\n",
             dtype, k, dtype, k, dtype, is_tf32 ? "matmul(a, b, precision=\"tf32\")" : "a @ b");
    Program p = compile(source, TARGET_SM_90);
    const Variant *first = &p.kernel->variants[0];
    uint32_t row_bytes = first->sched.gemm.tile_k * elem_bytes, padded = 64 / elem_bytes;
    cr_expect_eq(first->sched.gemm.tile_m, 32);
    cr_expect_eq(first->sched.gemm.tile_n, 32);
    const PredicateTerm *range = predicate_term(&first->predicate, TERM_RANGE, 0);
    cr_expect(range && range->most >= 128);
    cr_expect_geq((first->sched.gemm.stages - 1) * first->sched.gemm.tile_n * row_bytes, 32 * 1024,
                  "bytes of weights in flight");
    for (uint32_t i = 0; i < p.kernel->n_variants; i++) {
        const Variant *variant = &p.kernel->variants[i];
        const Sched *s = &variant->sched;
        uint32_t n_bytes =
            (s->gemm.tile_m + s->gemm.tile_n) * s->gemm.tile_k * elem_bytes * s->gemm.stages;
        cr_expect_eq(variant->shared_bytes, n_bytes > 48 * 1024 ? n_bytes : 0);
        cr_expect_leq(n_bytes, 96 * 1024);
        cr_expect(s->gemm.tile_k == padded || k % (int)s->gemm.tile_k == 0);
    }
    cr_expect_eq(first->sched.gemm.tile_k > padded, is_deep);
    cr_expect(assembles_without_spills(&p), "%s", source);
    compile_free(&p.compiled);
}

Test(gpu_mma, few_rows_keep_much_in_flight) {
    check_few_rows("bf16", 2, 4096, true);
    check_few_rows("bf16", 2, 4000, false);
    check_few_rows("f32", 4, 4096, true);
    check_few_rows("f32", 4, 4008, false);
}

/* Wide tiles where each processor gets one, narrower in m for no more than 16 rows. */
Test(gpu_mma, few_rows_read_the_left_operand_seldom) {
    static const struct {
        const char *rows;
        int n;
        TargetId target;
        uint32_t m, n_tile, stages;
    } cases[] = {
        {"16", 8192, TARGET_SM_90A, 16, 64, 5},      {"1..16", 8192, TARGET_SM_80, 16, 64, 4},
        {"16", 14336, TARGET_SM_90A, 16, 64, 3},     {"32", 8192, TARGET_SM_90, 32, 64, 4},
        {"1..8192", 8192, TARGET_SM_90A, 32, 64, 4}, {"16", 4096, TARGET_SM_90, 32, 32, 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char source[256];
        bool is_known = !strchr(cases[i].rows, '.');
        const char *name = is_known ? cases[i].rows : "M";
        snprintf(source, sizeof source,
                 "dim M in %s\n"
                 "graph g(a: bf16[%s, 4096], b: bf16[4096, %d]) -> (y: bf16[%s, %d]) {\n"
                 "  y = a @ b\n}\n",
                 is_known ? "1..2" : cases[i].rows, name, cases[i].n, name, cases[i].n);
        Program p = compile(source, cases[i].target);
        const Sched *s = &p.kernel->variants[0].sched;
        cr_expect_eq(sched_engine(s), GEMM_MMA);
        cr_expect(s->gemm.tile_m == cases[i].m && s->gemm.tile_n == cases[i].n_tile &&
                      s->gemm.stages == cases[i].stages,
                  "%u x %u, %u stages: %s", s->gemm.tile_m, s->gemm.tile_n, s->gemm.stages, source);
        cr_expect(assembles_without_spills(&p), "%s", source);
        compile_free(&p.compiled);
    }
}

/* Tiles of few rows have chunks for all threads, however deep k lets them be and however the
 * operands lie. */
Test(gpu_mma, few_rows_of_any_k_assemble) {
    static const int depths[] = {40, 96, 136, 192, 256, 1000};
    for (int i = 0; i < 24; i++) {
        char source[256];
        int k = depths[i >> 2], left = i & 1, right = i >> 1 & 1;
        snprintf(source, sizeof source,
                 "graph g(a: bf16[%d, %d], b: bf16[%d, %d]) -> (y: bf16[16, 6400]) {\n"
                 "  y = %s @ %s\n}\n",
                 left ? k : 16, left ? 16 : k, right ? 6400 : k, right ? k : 6400,
                 left ? "transpose(a)" : "a", right ? "transpose(b)" : "b");
        for (int t = 0; t < 2; t++) {
            TargetId target = t ? TARGET_SM_90A : TARGET_SM_80;
            Program p = compile(source, target);
            cr_expect_eq(sched_engine(&p.kernel->variants[0].sched), GEMM_MMA, "%s", source);
            cr_expect(assembles_without_spills(&p), "%s", source);
            compile_free(&p.compiled);
        }
    }
}

/* Where there is wgmma it has the rest; short rows that are always few are none of its. */
Test(gpu_mma, few_rows_come_before_wgmma) {
    static const struct {
        const char *rows;
        int k;
    } cases[] = {{"1..8192", 4096}, {"1..32", 512}, {"33..8192", 4096}, {"1..32", 4096}};
    for (int i = 0; i < 4; i++) {
        char source[256];
        snprintf(source, sizeof source,
                 "dim M in %s\n"
                 "graph g(a: bf16[M, %d], b: bf16[%d, 4096]) -> (y: bf16[M, 4096]) {\n"
                 "  y = a @ b\n}\n",
                 cases[i].rows, cases[i].k, cases[i].k);
        Program p = compile(source, TARGET_SM_90A);
        bool has_few = i < 2, has_wgmma = i != 1;
        const Variant *first = &p.kernel->variants[0];
        cr_expect_eq(sched_engine(&first->sched) == GEMM_MMA && first->sched.gemm.tile_m == 32,
                     has_few);
        const PredicateTerm *range = predicate_term(&first->predicate, TERM_RANGE, 0);
        cr_expect_eq(range && range->most == 32, i == 0);
        uint32_t n_wgmma = 0;
        for (uint32_t v = 0; v < p.kernel->n_variants; v++)
            n_wgmma += sched_engine(&p.kernel->variants[v].sched) == GEMM_WGMMA;
        cr_expect_eq(n_wgmma > 0, has_wgmma);
        const Variant *last = &p.kernel->variants[p.kernel->n_variants - 1];
        cr_expect(sched_engine(&last->sched) == GEMM_MMA &&
                  !predicate_dim(&last->predicate, TERM_RANGE));
        compile_free(&p.compiled);
    }
}
