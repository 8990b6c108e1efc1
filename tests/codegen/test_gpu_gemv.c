/* GEMMs with one row or column on a GPU, as schedules and code: which products they are,
 * that every variant of one sums the same chains, and that every dtype and layout of the matrix
 * becomes wide loads that the assembler takes without spills. Results are checked where there is a
 * GPU. */
#include "lib/compiled.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90A};

static const Kernel *matmul_of(const Plan *plan) {
    for (uint32_t i = 0; i < plan->kernels.n; i++)
        if (plan->kernels.data[i].form == FORM_GEMM) return &plan->kernels.data[i];
    return NULL;
}

/* All threads, slots, blocks and passes together hold every chain of every output once. */
static void check_schedule(const Kernel *kernel, TargetId target) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    DimId k = index_axis_extent(tab, gemm_axis_k(kernel));
    uint32_t n_chains = gemv_n_chains(indextab_dims(tab), k);
    const Variant *last = &kernel->variants[kernel->n_variants - 1];
    cr_expect_eq(last->predicate.n, 0);
    for (uint32_t v = 0; v < kernel->n_variants; v++) {
        const Sched *s = &kernel->variants[v].sched;
        uint32_t blocks = s->cluster > 1 ? s->cluster : 1;
        uint32_t held = s->gemv.threads_along_k * s->gemv.slots * blocks *
                        (s->gemv.lanes_along_k ? s->lanes : 1);
        uint32_t n_outputs = s->gemv.tile_m * s->gemv.tile_n,
                 across = s->threads / s->gemv.threads_along_k;
        cr_expect_eq(sched_engine(s), GEMM_GEMV);
        cr_expect(s->threads % 32 == 0 && s->threads <= 1024 && n_outputs <= s->threads);
        cr_expect(s->gemv.tile_m == 1 || s->gemv.tile_n == 1);
        cr_expect_leq(blocks, target_get(target)->max_cluster);
        if (s->gemv.lanes_along_k) {
            cr_expect_eq(held, n_chains);
            cr_expect_eq(n_outputs % across, 0);
        } else {
            cr_expect_eq(n_chains % held, 0);
            cr_expect_eq(n_outputs, across * s->lanes);
        }
    }
}

/* Loads of 16 bytes, of what may change or not. */
static uint32_t count_wide_loads(const char *text) {
    static const char *const loads[] = {"ld.global.v4",     "ld.global.nc.v4",
                                        "ld.global.v2.b64", "ld.global.nc.v2.b64",
                                        "ld.global.v2.f64", "ld.global.nc.v2.f64"};
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) n += ptx_count(text, loads[i]);
    return n;
}

/* A constant product of `dtype`: the matrix on the left or the right, along k or along the outputs.
 */
static void check_layout(const char *dtype, int is_left, int is_along_k, TargetId target) {
    char source[512];
    const char *matrix = is_left == is_along_k ? "w" : "transpose(w, perm=[1, 0])";
    snprintf(source, sizeof source,
             "graph g(w: %s[%s], x: %s[%s], c: %s[%s]) -> (y: %s[%s]) {\n  y = %s @ %s + c\n}\n",
             dtype, is_along_k ? "3000, 4096" : "4096, 3000", dtype,
             is_left ? "4096, 1" : "1, 4096", dtype, is_left ? "3000, 1" : "3000", dtype,
             is_left ? "3000, 1" : "1, 3000", is_left ? matrix : "x", is_left ? "x" : matrix);
    Compiled p = compiled_new(source, target);
    cr_assert_eq(p.plan->kernels.n, 1, "%s", source);
    const Kernel *kernel = matmul_of(p.plan);
    check_schedule(kernel, target);
    const Sched *s = &kernel->variants[0].sched;
    cr_expect_eq(s->gemv.lanes_along_k, is_along_k, "%s", source);
    cr_expect(s->lanes > 1);
    cr_expect_eq(is_left ? s->gemv.tile_n : s->gemv.tile_m, 1);
    const char *text = compiled_function(&p, kernel, 0);
    uint32_t n_once = ptx_count(text, ".L1::no_allocate.v4");
    cr_expect_geq(n_once + count_wide_loads(text), s->gemv.slots, "%s", source);
    cr_expect_eq(n_once > 0, target_get(target)->has_load_hints,
                 "the matrix takes no place that the vector needs: %s", source);
    cr_expect(is_along_k || ptx_count(text, "st.shared.v") > 0, "sums one by one: %s", source);
    cr_expect_eq(ptx_count(text, ".reqnctapercluster"), s->cluster > 1, "%s", source);
    cr_expect_eq(s->cluster > 1, !is_along_k && target == TARGET_SM_90A, "%s", source);
    cr_expect_eq(ptx_count(text, ".local"), 0, "a local array");
    cr_expect(compiled_is_in_registers(&p), "%s", source);
    compile_free(&p);
}

Test(gpu_gemv, every_dtype_and_layout) {
    static const char *const dtypes[] = {"f16", "bf16", "f32", "f64", "i32"};
    for (int i = 0; i < 40; i++)
        check_layout(dtypes[i / 8], i & 1, i >> 1 & 1, targets[i >> 2 & 1]);
}

/* Sums over columns as well; not where elements are read again, and not for maps, which are slower
 * so. */
Test(gpu_gemv, values_read_once_allocate_no_cache_line) {
    static const struct {
        const char *source;
        TargetId target;
        bool is_once;
    } cases[] = {
        {"graph g(x: bf16[512, 512]) -> (y: f32[512]) {\n  y = sum(cast(x, f32), axis=0)\n}\n",
         TARGET_SM_90A, true},
        {"graph g(x: bf16[512, 512]) -> (y: f32[512]) {\n  y = sum(cast(x, f32), axis=0)\n}\n",
         TARGET_SM_80, false},
        {"graph g(x: f32[512, 512]) -> (y: f32[512]) {\n  y = sum(x[1:] * x[:511], axis=0)\n}\n",
         TARGET_SM_90A, false},
        {"graph g(x: f32[512], z: f32[512]) -> (y: f32[512]) {\n  y = x + z\n}\n", TARGET_SM_90A,
         false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Compiled p = compiled_new(cases[i].source, cases[i].target);
        const char *text = compiled_function(&p, &p.plan->kernels.data[0], 0);
        cr_expect_eq(strstr(text, "L1::no_allocate") != NULL, cases[i].is_once, "%s",
                     cases[i].source);
        cr_expect(compiled_is_in_registers(&p), "%s", cases[i].source);
        compile_free(&p);
    }
}

/* As many threads for an output as have four loads each, if k is known. */
Test(gpu_gemv, threads_per_row_grow_with_k) {
    static const struct {
        const char *dim, *k;
        uint32_t threads_per_row;
    } cases[] = {{"", "1024", 32},
                 {"", "2048", 64},
                 {"", "4096", 128},
                 {"", "16384", 128},
                 {"dim K in 1..16384 mult 8\n", "K", 32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char source[256];
        snprintf(source, sizeof source,
                 "%sgraph g(x: bf16[1, %s], w: bf16[4096, %s]) -> (y: bf16[1, 4096]) {\n"
                 "  y = x @ transpose(w)\n}\n",
                 cases[i].dim, cases[i].k, cases[i].k);
        Compiled p = compiled_new(source, TARGET_SM_90A);
        const Sched *s = &matmul_of(p.plan)->variants[0].sched;
        cr_expect_eq(s->gemv.threads_along_k, cases[i].threads_per_row, "k = %s: %u threads",
                     cases[i].k, s->gemv.threads_along_k);
        cr_expect_leq(s->gemv.slots * s->unroll, 8);
        check_schedule(matmul_of(p.plan), TARGET_SM_90A);
        compile_free(&p);
    }
}

/* Symbolic extents, batches, views, guards, short and long k, extents of one. */
Test(gpu_gemv, shapes_and_views) {
    static const char *const sources[] = {
        "dim S in 0..65536\n"
        "graph qk(q: bf16[32, 1, 128], k: bf16[32, S, 128]) -> (y: bf16[32, 1, S]) {\n"
        "  y = q @ transpose(k, perm=[0, 2, 1])\n}\n",
        "dim S in 0..65536\ndim B in 1..64\n"
        "graph pv(p: bf16[B, 1, S], v: bf16[B, S, 128]) -> (y: bf16[B, 1, 128]) {\n"
        "  y = p @ v\n}\n",
        "dim S in 1..100000000\n"
        "graph dot(x: f64[S]) -> (y: f64) {\n  y = x @ x\n}\n",
        "graph odd(x: f16[1001], w: f16[1001, 777]) -> (y: f32[777]) {\n"
        "  y = cast(relu(x @ w), f32)\n}\n",
        "graph short(x: f32[7, 1, 3], w: f32[7, 3, 1000]) -> (y: f32[7, 1, 1000]) {\n"
        "  y = x @ w\n}\n",
        "graph padded(x: f32[1, 40], w: f32[38, 100]) -> (y: f32[100]) {\n"
        "  y = reshape(x @ pad(w, low=[1, 0], high=[1, 0]), [100])\n}\n",
        "dim L in 2..1000000\n"
        "graph wide(a: i32[64, L, 64], b: i32[64, 64, 1]) -> (y: i32[64, L, 1]) {\n"
        "  y = a @ b\n}\n",
        "graph flags(x: f64[4096], w: bool[4096, 1024]) -> (y: f64[1024]) {\n"
        "  y = x @ cast(w, f64)\n}\n",
        "graph cast(x: f32[4096], w: bf16[4096, 512], s: f32[512]) -> (y: f32[512]) {\n"
        "  y = x @ (cast(w, f32) * s)\n}\n",
    };
    for (size_t i = 0; i < 2 * sizeof sources / sizeof *sources; i++) {
        TargetId target = targets[i & 1];
        Compiled p = compiled_new(sources[i / 2], target);
        check_schedule(matmul_of(p.plan), target);
        cr_expect(compiled_is_in_registers(&p), "%s", sources[i / 2]);
        compile_free(&p);
    }
}

/* The engine goes by the operands, so that fused and unfused kernels sum alike, however their loops
 * are made. */
Test(gpu_gemv, engine_does_not_depend_on_fusion) {
    static const struct {
        const char *source;
        bool is_vector;
    } cases[] = {
        {"graph expanded(x: bf16[6, 1, 64], w: bf16[64, 96]) -> (y: bf16[6, 1, 96]) {\n"
         "  y = x @ expand(reshape(w, [1, 64, 96]), [6, 64, 96])\n}\n",
         true},
        {"graph rows(x: bf16[6, 1, 64], w: bf16[64, 96]) -> (y: bf16[6, 1, 96]) {\n"
         "  y = relu(x @ w)\n}\n",
         false},
        {"graph shared(x: bf16[3, 6, 1, 64], w: bf16[3, 1, 64, 96]) -> (y: bf16[3, 6, 1, 96]) {\n"
         "  y = relu(x @ w)\n}\n",
         false},
        {"graph of_each(x: bf16[3, 6, 1, 64], w: bf16[1, 6, 64, 96]) -> (y: bf16[3, 6, 1, 96]) {\n"
         "  y = relu(x @ w)\n}\n",
         true},
        {"graph turned(x: bf16[6, 1, 64], w: bf16[64, 96]) -> (y: bf16[96, 6]) {\n"
         "  y = transpose(reshape(x @ w, [6, 96]), perm=[1, 0])\n}\n",
         false},
        {"graph column(x: f32[6, 5, 64], w: f32[64, 1]) -> (y: f32[6, 5, 1]) {\n"
         "  y = relu(x @ w)\n}\n",
         true},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        Compiled p = compiled_as(cases[i / 2].source, TARGET_SM_90A,
                                 i & 1 ? COMPILE_UNFUSED : COMPILE_FUSED);
        const Kernel *kernel = matmul_of(p.plan);
        cr_expect_eq(sched_engine(&kernel->variants[0].sched) == GEMM_GEMV, cases[i / 2].is_vector,
                     "%s", cases[i / 2].source);
        compile_free(&p);
    }
}

/* Single rows whose batches share the rhs along the inner batch axes are the rows of one tile. */
Test(gpu_gemv, single_rows_that_share_the_rhs_are_rows_of_a_tile) {
    static const char *const sources[] = {
        "graph shared(x: bf16[16, 32, 1, 128], w: bf16[16, 1, 128, 4096]) -> "
        "(y: bf16[16, 32, 1, 4096]) {\n  y = x @ w\n}\n",
        "graph shared(x: bf16[16, 4, 8, 1, 128], w: bf16[16, 1, 1, 128, 4096]) -> "
        "(y: bf16[16, 4, 8, 1, 4096]) {\n  y = x @ w\n}\n",
    };
    for (size_t i = 0; i < 2 * sizeof sources / sizeof *sources; i++) {
        Compiled p = compiled_new(sources[i / 2], targets[i & 1]);
        const Kernel *kernel = matmul_of(p.plan);
        int64_t rows;
        cr_assert(dim_is_const(p.plan->graph->dims, kernel_axis_extent(kernel, gemm_axis_m(kernel)),
                               &rows));
        cr_expect_eq(rows, 32, "%s: %lld rows", sources[i / 2], (long long)rows);
        compile_free(&p);
    }
}

/* Chains follow from what k can be, and from nothing else. */
Test(gpu_gemv, chains_are_a_power_of_two_up_to_1024) {
    Arena *arena = arena_new(NULL);
    DimTab *dims = dimtab_new(arena);
    static const uint32_t expected[][2] = {{0, 1},       {1, 1},       {2, 2},
                                           {3, 4},       {128, 128},   {129, 256},
                                           {1024, 1024}, {1025, 1024}, {4096, 1024}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        cr_expect_eq(gemv_n_chains(dims, dim_const(dims, expected[i][0])), expected[i][1]);
    arena_free(arena);
}
