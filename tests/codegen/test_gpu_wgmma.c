/* GEMMs by wgmma as code: when they are chosen, what each layout of the operands becomes,
 * what the manifest says of it, and that the assembler takes it as it is meant. That results are
 * right is for the tests that run on a GPU. */
#include "lib/compiled.h"
#include "plan/launch.h"
#include "template/wgmma.h"

#include <criterion/criterion.h>
#include <fusert.h>
#include <stdio.h>
#include <string.h>

#define MOST_BYTES target_get(TARGET_SM_90A)->block_shared_bytes /* shared memory of a block */
static const char *const dtypes[] = {"bf16", "f16"};

typedef struct Program {
    Compiled compiled;
    const Kernel *kernel; /* the first of the launch */
    Launch launch;
} Program;

static Program compile(const char *source, TargetId target) {
    Program p = {.compiled = compiled_new(source, target)};
    const Plan *plan = p.compiled.plan;
    uint32_t first = 0; /* but for copies of operands */
    while (plan->kernels.data[first].form == FORM_MAP) first++;
    p.launch = *plan_launch_of(plan, first);
    cr_assert_eq(plan->kernels.n, first + p.launch.n, "%u kernels\n%s", plan->kernels.n, source);
    p.kernel = launch_kernel(plan, &p.launch, 0);
    cr_assert_eq(p.kernel->form, FORM_GEMM);
    return p;
}

static uint32_t n_by_engine(const Program *p, GemmEngine engine) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->kernel->n_variants; i++)
        n += sched_engine(&p->kernel->variants[i].sched) == engine;
    return n;
}

static uint32_t first_by_engine(const Program *p, GemmEngine engine) {
    uint32_t v = 0;
    while (v < p->kernel->n_variants && sched_engine(&p->kernel->variants[v].sched) != engine) v++;
    return v;
}

/* Assembles all variants: no spill, none of the assembler's remarks, which say that it moved or
 * serialised what must overlap, and four of the tensor cores' instructions or more for each variant
 * that has them. True when there is no assembler to ask. */
static bool assembles_as_meant(const Program *p) {
    PtxReport report;
    if (!compiled_assemble(&p->compiled, (PtxOptions){.wants_sass = true}, &report)) return true;
    uint32_t n_wgmma = n_by_engine(p, GEMM_WGMMA);
    return report.functions.n == p->kernel->n_variants && ptx_is_in_registers(&report) &&
           report.n_remarks == 0 &&
           (!report.sass || ptx_count(report.sass, "HGMMA") >= 4 * n_wgmma);
}

/* The instructions that a variant's schedule calls for. */
static void check_code(const Program *p, uint32_t variant, bool lhs_trans, bool rhs_trans) {
    const Variant *v = &p->kernel->variants[variant];
    const Sched *s = &v->sched;
    const char *text = compiled_function(&p->compiled, p->kernel, variant);
    char instruction[96], transposes[32];
    const Scalar *left = scalar_get(p->kernel->scalars, p->kernel->reduces.data[0].lhs);
    bool is_tf32 = left->dtype == DT_F32;
    const char *dtype = is_tf32 ? "tf32" : left->dtype == DT_BF16 ? "bf16" : "f16";
    int64_t depth = is_tf32 ? 32 : 64; /* 128 bytes */
    uint32_t n_gemms = p->launch.mode == LAUNCH_PARALLEL ? 1 : p->launch.n;
    cr_expect_eq(wgmma_n_gemms(s), n_gemms);
    snprintf(instruction, sizeof instruction, "wgmma.mma_async.sync.aligned.m64n%uk%d.f32.%s.%s",
             s->gemm.tile_n * n_gemms, is_tf32 ? 8 : 16, dtype, dtype);
    snprintf(transposes, sizeof transposes, ", a, b, 1, 1, 1, %d, %d;", lhs_trans, rhs_trans);
    if (is_tf32) strcpy(transposes, ", a, b, 1, 1, 1;");
    cr_expect_eq(sched_engine(s), GEMM_WGMMA);
    cr_expect_eq(s->gemm.tile_k, depth);
    cr_expect_eq(s->threads, s->gemm.tile_m * 2 + 128);
    cr_expect(s->gemm.stages >= 3 && v->shared_bytes <= MOST_BYTES);
    cr_expect_eq(ptx_count(text, instruction), 4);
    cr_expect_eq(ptx_count(text, transposes), 4);
    uint32_t common = n_gemms * (rhs_trans ? (s->gemm.tile_n + 63) / 64 : 1);
    cr_expect_eq(ptx_count(text, "cp.async.bulk.tensor"),
                 common + (lhs_trans ? s->gemm.tile_m / 64 : 1));
    cr_expect_eq(ptx_count(text, "[128]"),
                 p->launch.mode == LAUNCH_PARALLEL ? 2 * p->launch.n : n_gemms + 1);
    cr_expect_eq(ptx_count(text, "mbarrier.init"),
                 2 * (s->gemm.stages + (s->gemm.store_warps ? s->gemm.warps_m : 0)));
    bool is_cluster = s->cluster > 1;
    cr_expect_eq(ptx_count(text, ".multicast::cluster"), is_cluster ? common : 0);
    cr_expect_eq(ptx_count(text, "mbarrier.arrive.shared::cluster"), is_cluster ? 2 : 0);
    cr_expect_eq(ptx_count(text, "barrier.cluster.wait"), is_cluster ? 2 : 0);
    cr_expect_eq(strstr(text, ".reqnctapercluster 2") != NULL, is_cluster);
    cr_expect_eq(ptx_count(text, "setmaxnreg"),
                 s->gemm.tile_m > 64 && !s->gemm.store_warps ? 2 : 0);
    cr_expect_eq(ptx_count(text, ".local"), 0, "a local array");
    cr_expect_eq(v->n_maps, 2);
    for (uint32_t i = 0; i < v->n_maps; i++) {
        const TensorMap *map = &v->maps[i];
        bool is_transposed = i ? rhs_trans : lhs_trans;
        uint32_t k = gemm_axis_k(p->kernel);
        uint32_t own = i ? gemm_axis_n(p->kernel) : gemm_axis_m(p->kernel);
        cr_expect_eq(map->axes[0].axis, is_transposed ? own : k);
        cr_expect_eq(map->axes[1].axis, is_transposed ? k : own);
        cr_expect_eq(map->is_tf32, is_tf32);
        cr_expect_eq(map->axes[0].box, depth);
        uint32_t rows = is_transposed ? 64 : i ? s->gemm.tile_n : s->gemm.tile_m;
        cr_expect_eq(map->axes[1].box, i ? rows / s->cluster : rows);
    }
}

static void write_source(char *source, size_t n_bytes, const char *dtype, int lhs_trans,
                         int rhs_trans, int m, int n, int k) {
    snprintf(source, n_bytes,
             "graph g(a: %s[%d, %d], b: %s[%d, %d]) -> (y: %s[%d, %d]) {\n"
             "  y = matmul(%s, %s%s)\n"
             "}\n",
             dtype, lhs_trans ? k : m, lhs_trans ? m : k, dtype, rhs_trans ? k : n,
             rhs_trans ? n : k, dtype, m, n, lhs_trans ? "transpose(a, perm=[1, 0])" : "a",
             rhs_trans ? "b" : "transpose(b, perm=[1, 0])",
             strcmp(dtype, "f32") == 0 ? ", precision=\"tf32\"" : "");
}

Test(gpu_wgmma, every_layout_has_its_maps_and_transposes, .timeout = 120) {
    static const int sizes[][3] = {{4096, 4096, 4096}, {1536, 1528, 200}, {520, 264, 72}};
    for (int i = 0; i < 24; i++) {
        int left = i >> 1 & 1, right = i >> 2 & 1;
        const int *size = sizes[i >> 3];
        char source[512];
        write_source(source, sizeof source, dtypes[i & 1], left, right, size[0], size[1], size[2]);
        Program p = compile(source, TARGET_SM_90A);
        check_code(&p, 0, left, right);
        if ((i & 1) == 0) cr_expect(assembles_as_meant(&p), "%s", source);
        compile_free(&p.compiled);
    }
}

typedef struct Stored {
    const char *source;
    uint32_t warps;
} Stored;

/* What is a program's first kernel stored by: warps that do nothing else where a block has several
 * tiles and they keep up, with the price of the epilogue. */
static void check_stored(const Stored *stored) {
    Program p = compile(stored->source, TARGET_SM_90A);
    const Variant *v = &p.kernel->variants[first_by_engine(&p, GEMM_WGMMA)];
    uint32_t n_last = n_by_engine(&p, GEMM_WGMMA) - 1;
    const Sched *s = &v[n_last].sched;
    cr_expect_eq(sched_engine(s), GEMM_WGMMA);
    cr_expect_eq(s->gemm.store_warps, stored->warps, "%u: %s", s->gemm.store_warps, stored->source);
    cr_expect(s->gemm.stages >= 3 && v->shared_bytes <= MOST_BYTES);
    cr_expect(assembles_as_meant(&p), "%s", stored->source);
    compile_free(&p.compiled);
}

/* Matmuls of one launch agree in it. */
Test(gpu_wgmma, warps_store_for_matmuls_side_by_side, .timeout = 60) {
    static const Stored cases[] = {
        /* matmuls of one code, and of two */
        {"graph g(x: bf16[4096, 1024], a: bf16[1024, 1024], b: bf16[1024, 1024])"
         " -> (q: bf16[4096, 1024], k: bf16[4096, 1024]) {\n  q = x @ a\n  k = x @ b\n}\n",
         3},
        {"graph g(x: bf16[4096, 4096], a: bf16[4096, 4096], b: bf16[4096, 1024])"
         " -> (q: bf16[4096, 4096], k: bf16[4096, 1024]) {\n  q = x @ a\n  k = relu(x @ b)\n}\n",
         3},
        /* one of them has little to multiply: they agree in it */
        {"graph g(x: bf16[4096, 4096], z: bf16[4096, 64], a: bf16[4096, 4096], b: bf16[64, 4096])"
         " -> (q: bf16[4096, 4096], k: bf16[4096, 4096]) {\n  q = x @ a\n  k = z @ b\n}\n",
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_stored(&cases[i]);
}

Test(gpu_wgmma, warps_that_copy_nothing_store, .timeout = 60) {
    static const Stored cases[] = {
        {"graph g(a: bf16[4096, 4096], b: bf16[4096, 4096]) -> (y: bf16[4096, 4096]) {\n"
         "  y = a @ b\n}\n",
         3},
        {"dim M in 1..65536\n"
         "graph g(a: f16[M, 4096], b: f16[4096, 4096], t: f16[M, 4096]) -> (y: f16[M, 4096]) {\n"
         "  y = gelu(a @ b) + t\n}\n",
         3},
        {"graph g(a: bf16[4096, 4096], b: bf16[4096, 4096], c: bf16[4096, 4096])"
         " -> (y: bf16[4096, 4096]) {\n  y = silu(a @ b) * (a @ c)\n}\n",
         3},
        /* a narrow tile in each row */
        {"graph g(a: bf16[4000, 1024], b: bf16[1024, 4104]) -> (y: bf16[4000, 4104]) {\n"
         "  y = relu(a @ b)\n}\n",
         3},
        /* both operands' rows begin within lines */
        {"graph g(a: bf16[4000, 4072], b: bf16[4072, 4104]) -> (y: bf16[4000, 4104]) {\n"
         "  y = relu(a @ b)\n}\n",
         0},
        /* rows of 64 have one group of warps to multiply */
        {"graph g(a: bf16[150, 64, 128], b: bf16[150, 128, 64]) -> (y: bf16[150, 64, 64]) {\n"
         "  y = a @ b\n}\n",
         3},
        /* little to multiply, and much to compute */
        {"graph g(a: bf16[4096, 64], b: bf16[64, 4096]) -> (y: bf16[4096, 4096]) {\n"
         "  y = a @ b\n}\n",
         0},
        {"graph g(a: bf16[4096, 512], b: bf16[512, 4096], t: bf16[4096, 4096])"
         " -> (y: bf16[4096, 4096]) {\n  y = gelu(a @ b) + t\n}\n",
         0},
        /* a tile for each block; results that are too large to be kept */
        {"graph g(a: bf16[2048, 2048], b: bf16[2048, 2048]) -> (y: bf16[2048, 2048]) {\n"
         "  y = a @ b\n}\n",
         0},
        {"graph g(a: f32[4096, 4096], b: f32[4096, 4096]) -> (y: f32[4096, 4096]) {\n"
         "  y = matmul(a, transpose(b, perm=[1, 0]), precision=\"tf32\")\n}\n",
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_stored(&cases[i]);
}

/* The copy engine rounds f32 to tf32, but its tiles cannot be transposed; there is too little of k
 * for copies to pay. */
Test(gpu_wgmma, tf32_wants_both_operands_along_k, .timeout = 120) {
    for (int i = 0; i < 4; i++) {
        char source[512];
        write_source(source, sizeof source, "f32", i & 1, i >> 1, 256, 248, 200);
        Program p = compile(source, TARGET_SM_90A);
        if (i == 0) {
            check_code(&p, 0, false, false);
            cr_expect(assembles_as_meant(&p), "%s", source);
            cr_expect_not_null(strstr(p.compiled.bytes, "//@ map 0:tf32 128 0 200:1:32 256:200:"));
        } else {
            cr_expect_eq(n_by_engine(&p, GEMM_WGMMA), 0, "%s", source);
        }
        compile_free(&p.compiled);
    }
}

/* A param is laid out along k once, rounded by then. */
Test(gpu_wgmma, tf32_params_are_laid_out_along_k) {
    Compiled compiled = compiled_new("graph g(x: f32[300, 200]) -> (y: f32[300, 128]) {\n"
                                     "  param w: f32[200, 128] = \"w\"\n"
                                     "  y = matmul(x, w, precision=\"tf32\")\n}\n",
                                     TARGET_SM_90A);
    const Plan *plan = compiled.plan;
    cr_assert_eq(plan_n_init(plan), 1);
    const Kernel *matmul = &plan->kernels.data[1];
    cr_expect_eq(sched_engine(&matmul->variants[0].sched), GEMM_WGMMA);
    const TensorMap *map = &matmul->variants[0].maps[1];
    cr_expect_eq(plan->buffers.data[matmul->args.data[map->arg]].kind, BUFFER_PREPARED);
    cr_expect_eq(map->axes[0].axis, gemm_axis_k(matmul));
    compile_free(&compiled);
}

static void write_launch(char *source, size_t n_bytes, const char *dtype, bool is_pair,
                         bool is_transposed, const char *m, int n, int k) {
    const char *b = is_transposed ? "b" : "transpose(b, perm=[1, 0])";
    const char *c = is_transposed ? "c" : "transpose(c, perm=[1, 0])";
    int rows = is_transposed ? k : n, columns = is_transposed ? n : k, at;
    at = snprintf(source, n_bytes,
                  "dim M in 1..65536\ngraph g(a: %s[%s, %d], b: %s[%d, %d], c: %s[%d, %d]) -> (",
                  dtype, m, k, dtype, rows, columns, dtype, rows, columns);
    if (is_pair)
        snprintf(source + at, n_bytes - (size_t)at,
                 "y: %s[%s, %d]) {\n  y = silu(a @ %s) * (a @ %s)\n}\n", dtype, m, n, b, c);
    else
        snprintf(source + at, n_bytes - (size_t)at,
                 "y: %s[%s, %d], z: %s[%s, %d]) {\n  y = relu(a @ %s)\n  z = relu(a @ %s)\n}\n",
                 dtype, m, n, dtype, m, n, b, c);
}

/* What an epilogue reads of a tile is on its way before results are read from shared memory, and
 * the next rows' before these are computed; rows are constant distances apart. */
Test(gpu_wgmma, epilogues_load_ahead) {
    Program p = compile("graph g(a: bf16[4096, 4096], b: bf16[4096, 4096], t: bf16[4096, 4096]) -> "
                        "(y: bf16[4096, 4096]) { y = cast(sigmoid(tanh(cast(a @ b, f32) + "
                        "cast(t, f32))), bf16) }",
                        TARGET_SM_90A);
    const char *text = compiled_function(&p.compiled, p.kernel, first_by_engine(&p, GEMM_WGMMA));
    const char *load = strstr(text, "ld.global"), *results = strstr(text, "ld.shared");
    cr_assert(load && results && strstr(results, "ex2."));
    cr_expect_lt(load, results);
    const char *next = strstr(load + 1, "+8192];");
    cr_assert(next);
    cr_expect_lt(next, results);
    next = strstr(next + 1, "ld.global");
    cr_assert(next);
    cr_expect_lt(next, strstr(results, "ex2."));
    cr_expect(strstr(next, "+8192];"), "the row below is 4096 elements on");
    compile_free(&p.compiled);
}

/* Dual GEMMs, one wide instruction for both, and parallel launches, whose tiles blocks walk over:
 * known and symbolic extents, each as the assembler should take it. */
Test(gpu_wgmma, launches_of_several_matmuls_assemble_as_meant, .timeout = 300) {
    static const struct {
        const char *m;
        int n, k;
    } sizes[] = {{"4096", 11008, 4096}, {"M", 512, 200}, {"520", 264, 72}};
    for (int i = 0; i < 12; i++) {
        bool is_pair = i & 1, is_transposed = i >> 1 & 1;
        char source[512];
        write_launch(source, sizeof source, dtypes[i >> 1 & 1], is_pair, is_transposed,
                     sizes[i / 4].m, sizes[i / 4].n, sizes[i / 4].k);
        Program p = compile(source, TARGET_SM_90A);
        cr_assert(p.launch.n == 2 && p.launch.mode == (is_pair ? LAUNCH_SEQUENCE : LAUNCH_PARALLEL),
                  "%s", source);
        uint32_t first = first_by_engine(&p, GEMM_WGMMA), n = n_by_engine(&p, GEMM_WGMMA);
        cr_expect_geq(n, 1, "%s", source);
        for (uint32_t v = first; v < first + n; v++) check_code(&p, v, false, is_transposed);
        cr_expect(assembles_as_meant(&p), "%s", source);
        frt_module *module = NULL;
        frt_error error = FRT_ERROR_INIT;
        frt_module_load_memory(p.compiled.bytes, p.compiled.n_bytes, &module, &error);
        cr_expect(module, "%s", error.message);
        frt_module_free(module);
        compile_free(&p.compiled);
    }
}

/* Three matmuls of one lhs, several stores, what is passed on used twice. */
Test(gpu_wgmma, kernels_of_a_sequence_see_each_others_results, .timeout = 120) {
    Program p = compile("graph g(a: bf16[512, 256], b: bf16[512, 256], c: bf16[512, 256],\n"
                        "        d: bf16[512, 256], e: bf16[512])\n"
                        "    -> (y: bf16[512, 512], z: bf16[512, 512]) {\n"
                        "  p = a @ transpose(b, perm=[1, 0]) + e\n"
                        "  q = p * (a @ transpose(c, perm=[1, 0]))\n"
                        "  z = relu(q)\n"
                        "  y = tanh(q) + q * (a @ transpose(d, perm=[1, 0]))\n}\n",
                        TARGET_SM_90A);
    cr_expect_eq(p.launch.n, 3);
    check_code(&p, first_by_engine(&p, GEMM_WGMMA), false, false);
    cr_expect(assembles_as_meant(&p));
    compile_free(&p.compiled);
}

/* What the copy engine cannot take is multiplied by the instructions that take anything. */
Test(gpu_wgmma, operands_that_the_copy_engine_cannot_read_are_not_mapped) {
    static const char *const sources[] = {
        "graph g(a: bf16[60, 61], b: bf16[31, 61]) -> (y: bf16[60, 31]) {\n"
        "  y = a @ transpose(b, perm=[1, 0])\n}\n",
        "graph g(a: bf16[24, 64], b: bf16[64, 132]) -> (y: bf16[24, 132]) {\n  y = a @ b\n}\n",
        "graph g(a: f16[300, 64], b: f16[64, 128]) -> (y: f16[308, 128]) {\n"
        "  y = pad(a, low=[8, 0], high=[0, 0], value=1) @ b\n}\n",
        "graph g(a: f32[304, 64], b: f32[64, 128]) -> (y: f32[304, 128]) {\n  y = a @ b\n}\n",
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        Program p = compile(sources[i], TARGET_SM_90A);
        cr_expect_eq(n_by_engine(&p, GEMM_WGMMA), 0, "%s", sources[i]);
        compile_free(&p.compiled);
    }
    Program p = compile("graph g(a: f16[304, 64], b: f16[64, 128]) -> (y: f16[304, 128]) {\n"
                        "  y = a @ b\n}\n",
                        TARGET_SM_90);
    cr_expect_eq(n_by_engine(&p, GEMM_WGMMA), 0, "sm_90 without a");
    compile_free(&p.compiled);
}

/* Slices move the map's beginning; batches are axes of it, unless an operand has none. */
Test(gpu_wgmma, slices_and_batches_are_part_of_the_map) {
    Program p = compile("graph g(a: bf16[3, 5, 320, 64], b: bf16[5, 64, 128])\n"
                        "    -> (y: bf16[3, 5, 304, 128]) {\n"
                        "  y = a[:, :, 16:, :] @ b\n}\n",
                        TARGET_SM_90A);
    DimTab *dims = indextab_dims(scalartab_indices(p.kernel->scalars));
    const TensorMap *left = &p.kernel->variants[0].maps[0], *right = left + 1;
    check_code(&p, 0, false, true);
    cr_expect(dim_equals_const(dims, left->offset, 16 * 64));
    cr_assert_eq(left->rank, 4);
    cr_expect(left->axes[2].axis == 0 && dim_equals_const(dims, left->axes[2].stride, 102400));
    cr_expect(left->axes[3].axis == 1 && dim_equals_const(dims, left->axes[3].stride, 20480));
    cr_expect(left->axes[2].box == 1 && left->axes[3].box == 1);
    cr_expect(right->rank == 3 && right->axes[2].axis == 1);
    cr_expect(strstr(p.compiled.bytes, "//@ map 0 128 1024 64:1:64 304:64:"));
    cr_expect(strstr(p.compiled.bytes, " 3:102400:1 5:20480:1\n"));
    frt_module *module = NULL;
    frt_error error = FRT_ERROR_INIT;
    frt_module_load_memory(p.compiled.bytes, p.compiled.n_bytes, &module, &error);
    cr_assert(module, "%s", error.message);
    char text[256];
    frt_module_predicate_text(module, 0, 0, 0, text, sizeof text);
    cr_expect_str_eq(text, "aligned(b, 16) and aligned(y, 16) and mapped(a) and mapped(b)");
    frt_module_free(module);
    compile_free(&p.compiled);
}

/* Epilogues of every input class and several stores; every size of symbolic extents. */
Test(gpu_wgmma, epilogues_assemble_as_meant, .timeout = 300) {
    static const char *const bodies[] = {
        "y: T[M, 256]) {\n  y = relu(a @ b + c)\n",
        "y: T[M, 256]) {\n  p = gelu(a @ b) * r\n  y = where(p > t, p, t)\n",
        "y: T[M, 256], z: bool[M, 256]) {\n  p = a @ b\n  y = tanh(p)\n  z = p > c\n",
        "y: T[M, 256], w: T[256, M]) {\n  y = a @ b + c\n  w = transpose(y, perm=[1, 0])\n",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        const char *dtype = dtypes[i & 1], *body = bodies[i];
        char source[1024] = "dim M in 0..65536\ngraph g(a: T[M, 512], b: T[512, 256], c: T[256], "
                            "r: T[M, 1], t: T[M, 256]) -> (";
        strcat(source, body);
        strcat(source, "}\n");
        char typed[1024];
        size_t n = 0;
        for (const char *at = source; *at; at++)
            n += at[0] == 'T' && at[1] == '[' ? (size_t)sprintf(typed + n, "%s", dtype)
                                              : (size_t)sprintf(typed + n, "%c", *at);
        Program p = compile(typed, TARGET_SM_90A);
        cr_expect_geq(n_by_engine(&p, GEMM_WGMMA), 3);
        for (uint32_t v = 0; v < n_by_engine(&p, GEMM_WGMMA); v++)
            check_code(&p, first_by_engine(&p, GEMM_WGMMA) + v, false, true);
        cr_expect(assembles_as_meant(&p), "%s", typed);
        compile_free(&p.compiled);
    }
}

/* What is loaded for rows to come waits beside accumulators. */
Test(gpu_wgmma, several_wide_residuals_fit, .timeout = 300) {
    static const char *const bodies[] = {
        "y = matmul(a, transpose(b, perm=[1, 0]), precision=\"tf32\") * r - s",
        "y = where(r > s, matmul(a, transpose(b, perm=[1, 0]), precision=\"tf32\"), t)",
        "y = cast(c @ transpose(d, perm=[1, 0]), f32) * r - s + t",
        "y = cast(cast(c @ transpose(d, perm=[1, 0]), f64) + cast(r, f64), f32) * s"};
    static const char *const extents[] = {"4096", "M"};
    for (size_t i = 0; i < 2 * sizeof bodies / sizeof *bodies; i++) {
        char source[512];
        const char *m = extents[i & 1];
        snprintf(source, sizeof source,
                 "dim M in 1..8192\ngraph g(a: f32[%s, 4096], b: f32[4096, 4096], "
                 "c: bf16[%s, 4096], d: bf16[4096, 4096], r: f32[%s, 4096], s: f32[%s, 4096], "
                 "t: f32[%s, 4096]) -> (y: f32[%s, 4096]) {\n  %s\n}\n",
                 m, m, m, m, m, m, bodies[i / 2]);
        Program p = compile(source, TARGET_SM_90A);
        cr_expect_geq(n_by_engine(&p, GEMM_WGMMA), 1, "%s", source);
        cr_expect(assembles_as_meant(&p), "%s", source);
        compile_free(&p.compiled);
    }
}

/* Every variant with maps can be passed over; the last asks for nothing. Symbolic extents have a
 * variant per size, which is taken where its price is the least, known ones a single tile, wide
 * where the problem is large. */
Test(gpu_wgmma, sizes_choose_tiles) {
    Program p = compile("dim M in 1..65536\n"
                        "dim K in 1..65536\n"
                        "graph g(a: f16[M, K], b: f16[4096, K]) -> (y: f16[M, 4096]) {\n"
                        "  y = a @ transpose(b, perm=[1, 0])\n"
                        "}\n",
                        TARGET_SM_90A);
    const Variant *variants = &p.kernel->variants[first_by_engine(&p, GEMM_WGMMA)];
    const Variant *last = &p.kernel->variants[p.kernel->n_variants - 1];
    uint32_t n = n_by_engine(&p, GEMM_WGMMA);
    cr_assert_eq(n, 7);
    for (uint32_t v = 0; v < n; v++)
        cr_expect(variants[v].price.group == 1 &&
                  !predicate_dim(&variants[v].predicate, TERM_RANGE));
    cr_expect(last->price.group == 0 && last->n_maps == 0 && last->predicate.n == 0);
    cr_expect_eq(sched_engine(&last->sched), GEMM_MMA);
    compile_free(&p.compiled);
    p = compile("dim N in 1..65536\n"
                "graph g(a: f16[512, 1024], b: f16[N, 1024]) -> (y: f16[512, N]) {\n"
                "  y = a @ transpose(b, perm=[1, 0])\n"
                "}\n",
                TARGET_SM_90A);
    const Variant *odd = &p.kernel->variants[first_by_engine(&p, GEMM_WGMMA)];
    odd += n_by_engine(&p, GEMM_WGMMA) - 1;
    cr_expect(!predicate_dim(&odd->predicate, TERM_MULTIPLE) && odd->sched.lanes == 1,
              "rows of any length");
    cr_expect_eq(predicate_term(&odd[-1].predicate, TERM_MULTIPLE, 0)->of, 4,
                 "else four results at a time");
    compile_free(&p.compiled);
    static const uint32_t expected[][3] = {{512, 64, 64}, {4096, 128, 256}, {8192, 128, 256}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char source[512];
        int size = (int)expected[i][0];
        write_source(source, sizeof source, "bf16", 0, 0, size, size, size);
        p = compile(source, TARGET_SM_90A);
        cr_expect_eq(n_by_engine(&p, GEMM_WGMMA), 1);
        cr_expect_eq(p.kernel->variants[0].sched.gemm.tile_m, expected[i][1], "%d", size);
        cr_expect_eq(p.kernel->variants[0].sched.gemm.tile_n, expected[i][2], "%d", size);
        cr_expect(p.kernel->variants[0].is_persistent);
        compile_free(&p.compiled);
    }
}

/* Rows that a box has and no matrix of this height are not fetched; what one tile alone needs is
 * given up by the cache before all else. */
Test(gpu_wgmma, few_rows_fetch_no_zeros) {
    static const struct {
        int m;
        uint32_t box, n_bytes, n_hints; /* of a tile of 64 x 64 */
    } cases[] = {{20, 24, 11264, 1}, {64, 64, 16384, 1}, {128, 64, 16384, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char source[512], bytes[32];
        write_source(source, sizeof source, "bf16", 0, 0, cases[i].m, 1024, 1536);
        Program p = compile(source, TARGET_SM_90A);
        const Variant *variant = &p.kernel->variants[0];
        cr_assert_eq(sched_engine(&variant->sched), GEMM_WGMMA);
        cr_assert(variant->sched.gemm.tile_m == 64 && variant->sched.gemm.tile_n == 64, "%s",
                  source);
        cr_expect_eq(variant->maps[0].axes[1].box, cases[i].box);
        const char *text = compiled_function(&p.compiled, p.kernel, 0);
        snprintf(bytes, sizeof bytes, ", %u;", cases[i].n_bytes);
        cr_expect_eq(ptx_count(text, "mbarrier.arrive.expect_tx"), 1);
        cr_expect_geq(ptx_count(text, bytes), 1, "expects%s %s", bytes, source);
        cr_expect_eq(ptx_count(text, "L2::cache_hint"), cases[i].n_hints, "%s", source);
        compile_free(&p.compiled);
    }
}

/* Where rows begin within lines, fetching is what a step takes: tiles of two blocks that come out
 * even. */
Test(gpu_wgmma, split_lines_choose_tiles) {
    for (int right = 0; right < 2; right++) {
        char source[512];
        write_source(source, sizeof source, "bf16", 0, right, 4000, 4104, 4072);
        Program p = compile(source, TARGET_SM_90A);
        const Sched *s = &p.kernel->variants[0].sched;
        cr_expect(s->gemm.tile_m == 128 && s->gemm.tile_n == 256 && s->gemm.tail_n == 16 &&
                      s->cluster == 2,
                  "%u x %u, %u: %s", s->gemm.tile_m, s->gemm.tile_n, s->gemm.tail_n, source);
        cr_expect(assembles_as_meant(&p), "%s", source);
        compile_free(&p.compiled);
    }
}

/* Instructions of a width, in a function's text. */
static uint32_t n_multiplications(const char *text, uint32_t width) {
    char instruction[64];
    snprintf(instruction, sizeof instruction, "wgmma.mma_async.sync.aligned.m64n%uk", width);
    return ptx_count(text, instruction);
}

/* What the copying warp waits for, the lhs and the right one's whole blocks where transposed.
 */
static bool expects_bytes(const char *text, uint32_t rows, uint32_t columns, bool is_transposed) {
    char bytes[32];
    if (is_transposed) columns = (columns + 63) / 64 * 64;
    snprintf(bytes, sizeof bytes, ", %u;", (rows + columns) * 128);
    return ptx_count(text, bytes) > 0;
}

/* A few columns more than whole tiles get narrow ones where the wide ones fill their waves better
 * so: by instructions, copies and a map of their own, behind the others. */
Test(gpu_wgmma, few_columns_more_get_narrow_tiles, .timeout = 120) {
    static const struct {
        const char *dtype;
        int left, right, m, n, k;
        uint32_t tail, cluster;
    } cases[] = {{"bf16", 0, 0, 4000, 4104, 4072, 16, 2}, {"f16", 1, 1, 4000, 4104, 4072, 16, 2},
                 {"bf16", 0, 0, 6000, 2056, 2048, 8, 1},  {"f16", 0, 0, 5000, 5000, 5000, 144, 2},
                 {"f32", 0, 0, 6000, 2052, 2048, 8, 1},   {"bf16", 1, 0, 6000, 2052, 2048, 16, 2},
                 {"bf16", 0, 1, 4096, 3080, 1024, 16, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char source[512];
        int m = cases[i].m, n = cases[i].n;
        write_source(source, sizeof source, cases[i].dtype, cases[i].left, cases[i].right, m, n,
                     cases[i].k);
        Program p = compile(source, TARGET_SM_90A);
        const Variant *v = &p.kernel->variants[0];
        const Sched *s = &v->sched;
        cr_expect(s->gemm.tile_n == 256 && s->gemm.tail_n == cases[i].tail &&
                      s->cluster == cases[i].cluster,
                  "%u, last %u: %s", s->gemm.tile_n, s->gemm.tail_n, source);
        int rows = 128 * (int)s->cluster, n_blocks = (m + rows - 1) / rows * (int)s->cluster;
        cr_expect(
            dim_equals_const(p.compiled.plan->graph->dims, v->grid, n_blocks * ((n + 255) / 256)));
        cr_expect_eq(v->n_maps, 3);
        cr_expect_eq(v->maps[2].axes[1].box, (cases[i].right ? 64 : s->gemm.tail_n) / s->cluster);
        const char *text = compiled_function(&p.compiled, p.kernel, 0);
        cr_expect_eq(n_multiplications(text, 256), 4);
        cr_expect_eq(n_multiplications(text, s->gemm.tail_n), 4);
        cr_expect_eq(ptx_count(text, "cp.async.bulk.tensor"),
                     2 * (cases[i].left ? 2 : 1) + (cases[i].right ? 4 + 1 : 2));
        cr_expect(expects_bytes(text, 128, 256, cases[i].right) &&
                      expects_bytes(text, 128, s->gemm.tail_n, cases[i].right),
                  "%s", source);
        cr_expect(v->shared_bytes <= MOST_BYTES);
        cr_expect(assembles_as_meant(&p), "%s", source);
        compile_free(&p.compiled);
    }
}

/* Narrow tiles go to those who have none of the last wave, in turn; where that is full, to all. */
Test(gpu_wgmma, narrow_tiles_fill_the_last_wave) {
    static const struct {
        double n_wide, n_narrow, us;
    } cases[] = {{512, 0, 200}, {512, 32, 200}, {528, 33, 215}, {520, 33, 225}, {60, 66, 50}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(wgmma_waves_us(cases[i].n_wide, 50, cases[i].n_narrow, 15, 132), cases[i].us,
                     "%zu", i);
}

/* Narrow tiles of a dual GEMM lie side by side as the wide ones do. */
Test(gpu_wgmma, narrow_tiles_of_dual_gemms_lie_side_by_side, .timeout = 120) {
    for (int right = 0; right < 2; right++) {
        char source[512];
        const char *shape = right ? "[160, 264]" : "[264, 160]";
        const char *a = right ? "a" : "transpose(a, perm=[1, 0])";
        const char *b = right ? "b" : "transpose(b, perm=[1, 0])";
        snprintf(source, sizeof source,
                 "graph g(x: bf16[6656, 160], a: bf16%s, b: bf16%s) -> (y: bf16[6656, 264]) {\n"
                 "  y = silu(x @ %s) * (x @ %s)\n}\n",
                 shape, shape, a, b);
        Program p = compile(source, TARGET_SM_90A);
        const Sched *s = &p.kernel->variants[0].sched;
        LaunchMap maps[MAX_LAUNCH_MAPS];
        cr_assert_eq(s->gemm.n_gemms, 2);
        cr_expect(s->gemm.tail_n > 0 && s->gemm.tail_n % (right ? 64 : 8 * s->cluster) == 0, "%u",
                  s->gemm.tail_n);
        cr_expect_eq(launch_maps(p.compiled.plan, &p.launch, 0, maps), 1 + 2 * 2);
        const char *text = compiled_function(&p.compiled, p.kernel, 0);
        cr_expect_eq(n_multiplications(text, 2 * s->gemm.tile_n), 4);
        cr_expect_eq(n_multiplications(text, 2 * s->gemm.tail_n), 4);
        cr_expect(assembles_as_meant(&p), "%s", source);
        compile_free(&p.compiled);
    }
}

/* Not where tiles fill their waves without, where extents may be others, or for parts, whose tiles
 * one loop multiplies. */
Test(gpu_wgmma, other_extents_have_no_narrow_tiles, .timeout = 120) {
    static const char *const sources[] = {
        "graph g(a: bf16[4096, 4096], b: bf16[4096, 4096]) -> (y: bf16[4096, 4096]) {\n"
        "  y = a @ b\n}\n",
        "graph g(a: bf16[256, 4096], b: bf16[4096, 4104]) -> (y: bf16[256, 4104]) {\n"
        "  y = a @ b\n}\n",
        "dim M in 4000..4001\n"
        "graph g(a: bf16[M, 4072], b: bf16[4072, 4104]) -> (y: bf16[M, 4104]) {\n"
        "  y = a @ b\n}\n",
        "graph g(a: bf16[4000, 72], b: bf16[72, 4104], c: bf16[72, 4104])\n"
        "    -> (y: bf16[4000, 4104], z: bf16[4000, 4104]) {\n"
        "  y = a @ b\n  z = a @ c\n}\n"};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        Program p = compile(sources[i], TARGET_SM_90A);
        cr_expect_gt(n_by_engine(&p, GEMM_WGMMA), 0);
        for (uint32_t v = 0; v < p.kernel->n_variants; v++)
            cr_expect_eq(p.kernel->variants[v].sched.gemm.tail_n, 0, "%s", sources[i]);
        cr_expect_leq(p.kernel->variants[0].n_maps, 2);
        compile_free(&p.compiled);
    }
}

/* Tiles of transposed operands lie side by side, so that they are one to the instruction, in whole
 * blocks alone. */
Test(gpu_wgmma, dual_gemms_that_split_lines_take_whole_blocks, .timeout = 120) {
    static const int sizes[][2] = {{640, 2200}, {1500, 712}, {4000, 4104}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char source[512];
        int m = sizes[i][0], n = sizes[i][1];
        snprintf(source, sizeof source,
                 "graph g(x: bf16[%d, 1032], a: bf16[1032, %d], b: bf16[1032, %d])\n"
                 "    -> (y: bf16[%d, %d]) {\n  y = silu(x @ a) * (x @ b)\n}\n",
                 m, n, n, m, n);
        Program p = compile(source, TARGET_SM_90A);
        const Sched *s = &p.kernel->variants[0].sched;
        cr_expect(s->gemm.n_gemms == 2 && s->gemm.tile_n % 64 == 0, "%u columns: %s",
                  s->gemm.tile_n, source);
        compile_free(&p.compiled);
    }
}

/* Pixels of images are rows: an axis that was split into three is one again. */
Test(gpu_wgmma, batches_of_one_right_operand_are_rows) {
    Program p = compile("graph g(x: bf16[16, 28, 28, 256], w: bf16[256, 64])\n"
                        "    -> (y: bf16[16, 28, 28, 64]) {\n  y = x @ w\n}\n",
                        TARGET_SM_90A);
    cr_expect_eq(p.kernel->n_parallel, 2);
    cr_expect_eq(sched_engine(&p.kernel->variants[0].sched), GEMM_WGMMA);
    cr_expect_eq(p.kernel->variants[0].maps[0].rank, 2);
    compile_free(&p.compiled);
}

/* Of inputs with rows of any length: maps over the copies, three sizes of tiles for results that
 * are stored one by one, and for small matmuls and odd addresses the least code. */
Test(gpu_wgmma, copied_operands_are_mapped, .timeout = 120) {
    Program p = compile("dim M in 1..8192\ndim N in 1..8192\ndim K in 1..8192\n"
                        "graph g(x: bf16[M, K], w: bf16[K, N], b: bf16[N]) -> (y: bf16[M, N]) {\n"
                        "  y = relu(x @ w + b)\n}\n",
                        TARGET_SM_90A);
    const Plan *plan = p.compiled.plan;
    const DimTab *dims = plan->graph->dims;
    uint32_t n = n_by_engine(&p, GEMM_WGMMA);
    const Variant *variants = p.kernel->variants, *last = &variants[n];
    cr_assert(n == 10 && p.kernel->n_variants == 11 && plan->dynamic_pitches.n == 2);
    for (uint32_t v = 0; v < n; v++) {
        cr_expect_eq(predicate_dim(&variants[v].predicate, TERM_MULTIPLE) == DIM_NONE, v >= 7);
        cr_expect_eq(variants[v].sched.lanes, v < 7 ? 4 : 1);
        cr_expect_eq(variants[v].price.group, v < 7 ? 1 : 2);
        for (int i = 0; i < 2; i++) {
            const TensorMap *map = &variants[v].maps[i];
            uint32_t symbol = DIM_MAX_SYMBOLS;
            cr_expect(dim_is_symbol(dims, map->axes[1].stride, &symbol));
            cr_expect_not_null(dim_symbol_info(dims, symbol)->rule, "%u", v);
            cr_expect(plan->buffers.data[p.kernel->args.data[map->arg]].choice);
        }
    }
    cr_expect(last->sched.gemm.tile_m == 32 && last->sched.gemm.tile_n == 32 &&
              last->sched.lanes == 1);
    cr_expect(!variant_has_conditions(plan, p.kernel, last), "a copy's stand-in may lie anywhere");
    PtxReport report;
    if (compiled_assemble(&p.compiled, (PtxOptions){0}, &report)) {
        cr_expect_eq(report.functions.n, 11 + 1, "both copies are one launch");
        cr_expect(ptx_is_in_registers(&report) && report.n_remarks == 0);
    }
    compile_free(&p.compiled);
}
