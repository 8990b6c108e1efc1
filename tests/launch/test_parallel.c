/* Parallel launches: kernels that differ only in their buffers start together, unless one waits for
 * another. */
#include "launch/dedup.h"
#include "launch/compose.h"
#include "lib/plans.h"
#include "lib/text_file.h"
#include "memory/memplan.h"
#include "plan/launch.h"
#include "template/wgmma.h"
#include "schedule/schedule.h"

#include <criterion/criterion.h>
#include <string.h>

static Plan *joined_for(Arena *arena, const char *source, TargetId target) {
    Module *module = plans_parse(arena, source);
    Plan *plan = plans_fuse(arena, module, 0, false);
    sched_plan(arena, plan, target_get(target));
    dedup_classify(arena, false, (const Plan *const *)&plan, 1);
    plans_compose(arena, plan, target, LAUNCH_MODES_BESIDE);
    dedup_functions(arena, (const Plan *const *)&plan, 1);
    return plan;
}

static Plan *joined(Arena *arena, const char *source) {
    return joined_for(arena, source, TARGET_SM_80);
}

typedef struct Case {
    const char *source;
    uint32_t kernels[4]; /* kernels of each launch, in order; 0 ends the list */
} Case;

static const Case cases[] = {
    {"dim B in 1..64\n"
     "graph g(x: bf16[B, 64], a: bf16[64, 64], b: bf16[64, 64], c: bf16[64, 64])"
     " -> (p: bf16[B, 64], q: bf16[B, 64], r: bf16[B, 64]) {\n"
     "  p = x @ a\n  q = x @ b\n  r = x @ c\n}\n",
     {3}},
    /* The second matmul waits for the first. */
    {"graph g(x: bf16[64, 64], a: bf16[64, 64]) -> (y: bf16[64, 64]) {\n  y = (x @ a) @ a\n}\n",
     {1, 1}},
    /* Another kernel is between two that join. */
    {"graph g(x: f32[64, 32], y: f32[64, 32]) -> (p: f32[64], q: f32[32], r: f32[64]) {\n"
     "  p = max(x, axis=1)\n  q = max(x, axis=0)\n  r = max(y, axis=1)\n}\n",
     {2, 1}},
    /* Two chains of matmuls: the first matmuls join, and so do the second. */
    {"graph g(x: bf16[64, 64], y: bf16[64, 64], a: bf16[64, 64])"
     " -> (p: bf16[64, 64], q: bf16[64, 64]) {\n"
     "  p = (x @ a) @ a\n  q = (y @ a) @ a\n}\n",
     {2, 2}},
    /* Another shape, and another reduction. */
    {"graph g(x: f32[64, 32], y: f32[64, 33]) -> (p: f32[64], q: f32[64]) {\n"
     "  p = max(x, axis=1)\n  q = sum(y, axis=1)\n}\n",
     {2}},
};

Test(parallel, equal_kernels_start_together) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        Plan *plan = joined(arena, cases[i].source);
        uint32_t at = 0;
        for (uint32_t launch = 0; at < plan->kernels.n; launch++) {
            cr_assert(launch < 4 && cases[i].kernels[launch], "%s: too many", cases[i].source);
            cr_expect(plan_launch_of(plan, at)->n == cases[i].kernels[launch],
                      "%s: launch %u has %u", cases[i].source, launch, plan_launch_of(plan, at)->n);
            cr_expect_eq(plan_launch_of(plan, at)->mode,
                         plan_launch_of(plan, at)->n > 1 ? LAUNCH_PARALLEL : LAUNCH_SINGLE);
            at += plan_launch_of(plan, at)->n;
        }
        cr_expect_null(plan_verify(plan, arena));
        arena_free(arena);
    }
}

/* A store may be in a stage or after all stages; a buffer that is stored is not only read. */
Test(parallel, what_kernels_take_and_store_to) {
    enum { N_STORES = 2 };
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, "graph g(x: f32[64, 32], w: f32[7], unused: f32[3])"
                                        " -> (h: f32[64, 32], m: f32[64], v: f32[7]) {\n"
                                        "  h = x + 1\n  m = max(h, axis=1)\n  v = w * 2\n}\n");
    Plan *plan = plans_fuse(arena, module, 0, false);
    cr_assert_eq(plan->kernels.n, 2);
    for (uint32_t k = 0; k < 2; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        bool has_row = kernel->row_stores.n > 0;
        const char *read = has_row ? "x" : "w";
        const char *written[N_STORES] = {has_row ? "h" : "v", has_row ? "m" : "v"};
        if (has_row) cr_assert_eq(kernel->stages.data[0].stores.n, 1, "`h` goes with the maximum");
        for (uint32_t b = 0; b < plan->buffers.n; b++) {
            Str name = plan->buffers.data[b].name;
            bool is_read = strcmp(name, read) == 0;
            bool is_written = strcmp(name, written[0]) == 0 || strcmp(name, written[1]) == 0;
            uint32_t arg = kernel_find_arg(kernel, b);
            cr_expect_eq(kernel_only_reads(kernel, b), is_read, "%s in %s", name, kernel->name);
            cr_expect_eq(kernel_stores_to(kernel, b), is_written, "%s in %s", name, kernel->name);
            cr_expect_eq(arg != NO_ARG, is_read || is_written, "%s in %s", name, kernel->name);
            if (arg != NO_ARG) cr_expect_eq(kernel->args.data[arg], b, "%s", name);
        }
    }
    arena_free(arena);
}

/* Temporaries of kernels that run at the same time do not overlap, in any order of the kernels. */
Test(parallel, kernels_do_not_share_memory) {
    Arena *arena = arena_new(NULL);
    Plan *plan = joined(arena, cases[3].source);
    cr_assert(memplan_place(arena, plan));
    const Buffer *temps[2] = {NULL, NULL};
    for (uint32_t i = 0; i < plan->buffers.n; i++)
        if (plan->buffers.data[i].kind == BUFFER_TEMP)
            temps[temps[0] ? 1 : 0] = &plan->buffers.data[i];
    cr_assert(temps[0] && temps[1]);
    cr_expect(temps[0]->offset_bytes != temps[1]->offset_bytes);
    arena_free(arena);
}

/* A function for three kernels is not one for two. */
Test(parallel, functions_are_shared_by_number_of_kernels) {
    Arena *arena = arena_new(NULL);
    Plan *plan = joined(arena, "graph g(x: f32[64, 32], y: f32[64, 32], z: f32[64, 32])"
                               " -> (p: f32[64], q: f32[64], r: f32[64]) {\n"
                               "  p = max(x, axis=1)\n  q = max(y, axis=1)\n"
                               "  r = max(z + p[:32], axis=1)\n}\n");
    cr_expect(plan->kernels.n >= 3);
    for (uint32_t a = 0; a < plan->kernels.n; a += plan_launch_of(plan, a)->n)
        for (uint32_t b = 0; b < a; b += plan_launch_of(plan, b)->n)
            cr_expect(plan->kernels.data[a].variants[0].symbol !=
                          plan->kernels.data[b].variants[0].symbol ||
                      plan_launch_of(plan, a)->n == plan_launch_of(plan, b)->n);
    arena_free(arena);
}

/* The blocks of each kernel begin at a multiple of a cluster, because its grid is one. */
Test(parallel, clusters_do_not_lie_across_kernels) {
    static const char *const sources[2] = {
        "graph g(x: f32[4096], a: f32[4096, 96], b: f32[4096, 96]) -> (p: f32[96], q: f32[96]) {\n"
        "  p = x @ a\n  q = x @ b\n}\n",
        "graph g(x: bf16[512, 64], a: bf16[64, 64], b: bf16[64, 64])"
        " -> (p: bf16[512, 64], q: bf16[512, 64]) {\n  p = x @ a\n  q = x @ b\n}\n"};
    for (int i = 0; i < 2; i++) {
        Arena *arena = arena_new(NULL);
        Plan *plan = joined_for(arena, sources[i], TARGET_SM_90A);
        const Kernel *kernel = plan->kernels.data;
        const DimTab *dims = plan->graph->dims;
        cr_assert_eq(plan->kernels.n, 2);
        cr_expect_eq(sched_engine(&kernel->variants[0].sched), i ? GEMM_WGMMA : GEMM_GEMV);
        cr_expect_eq(plan_launch_of(plan, 0)->n, 2);
        for (uint32_t v = 0; v < kernel->n_variants && !i; v++) {
            const Variant *variant = &kernel->variants[v];
            cr_expect_gt(variant->sched.cluster, 1);
            cr_expect_eq(dim_multiple(dims, variant->grid) % variant->sched.cluster, 0);
        }
        arena_free(arena);
    }
}

/* Each kernel has its own tensor maps, up to the limit of a launch. Tiles are chosen so that all
 * kernels together fill the card. */
Test(parallel, kernels_have_their_maps) {
    static const char names[] = "abcdefghi";
    for (uint32_t n_kernels = 1; n_kernels <= 9; n_kernels++) {
        Arena *arena = arena_new(NULL);
        Text source = {.arena = arena};
        text_puts(&source, "dim B in 1..8192\ngraph g(x: bf16[B, 64]");
        for (uint32_t i = 0; i < n_kernels; i++)
            text_printf(&source, ", %c: bf16[64, 512]", names[i]);
        text_puts(&source, ") -> (");
        for (uint32_t i = 0; i < n_kernels; i++)
            text_printf(&source, "%s%c%c: bf16[B, 512]", i ? ", " : "", names[i], names[i]);
        text_puts(&source, ") {\n");
        for (uint32_t i = 0; i < n_kernels; i++)
            text_printf(&source, "  %c%c = x @ %c\n", names[i], names[i], names[i]);
        text_puts(&source, "}\n");
        Plan *plan = joined_for(arena, text_str(&source), TARGET_SM_90A);
        Launch launch = *plan_launch_of(plan, 0);
        cr_assert_eq(launch.n, n_kernels < 8 ? n_kernels : 8, "%u of %u", launch.n, n_kernels);
        uint32_t v = 0;
        while (launch_kernel(plan, &launch, 0)->variants[v].sched.gemm.tile_m != 128) v++;
        LaunchMap maps[MAX_LAUNCH_MAPS];
        cr_assert_eq(launch_maps(plan, &launch, v, maps), 2 * launch.n);
        for (uint32_t i = 0; i < 2 * launch.n; i++)
            cr_expect(maps[i].kernel == i / 2 && maps[i].map == i % 2);
        const Variant *least = launch_kernel(plan, &launch, 0)->variants; /* of 64 x 64: 64 tiles of
                                                                           * one kernel's rows */
        while (least->sched.gemm.tile_m * least->sched.gemm.tile_n != 64 * 64) least++;
        int64_t rows = 512, blocks;
        cr_assert(dim_eval(plan->graph->dims, least->price.blocks, &rows, &blocks));
        cr_expect_eq(blocks, 64 * launch.n, "%u kernels", launch.n);
        for (uint32_t k = 1; k < launch.n; k++)
            cr_expect_eq(launch_kernel(plan, &launch, k)
                             ->variants[least - launch_kernel(plan, &launch, 0)->variants]
                             .price.blocks,
                         least->price.blocks);
        arena_free(arena);
    }
}

typedef struct Count {
    const char *source; /* or the path of an example */
    uint32_t n_launches;
} Count;

/* Compiles and links launches as the driver does, for tiles of the copy engine. */
Test(parallel, counts_with_wgmma) {
    static const Count counts[] = {
        {"dsl/examples/transformer.g", 9},
        {"dsl/examples/mlp.g", 2},
        {"dsl/examples/residual_conv.g", 2},
        {"dim B in 1..4096\ngraph g(x: bf16[B, 512], a: bf16[512, 512], b: bf16[512, 512],"
         " c: bf16[512, 512]) -> (q: bf16[B, 512], k: bf16[B, 512], v: bf16[B, 512]) {\n"
         "  q = x @ a\n  k = x @ b\n  v = x @ c\n}\n",
         1},
        {"dim B in 1..65536\ngraph g(x: bf16[B, 1024], a: bf16[1024, 1024], b: bf16[1024, 1024],"
         " c: bf16[1024, 1024]) -> (q: bf16[B, 1024], k: bf16[B, 1024], v: bf16[B, 1024]) {\n"
         "  q = x @ a\n  k = x @ b\n  v = x @ c\n}\n",
         1},
        {"dim B in 1..65536\ngraph g(x: bf16[B, 4096], a: bf16[4096, 4096], b: bf16[4096, 1024],"
         " c: bf16[4096, 1024]) -> (q: bf16[B, 4096], k: bf16[B, 1024], v: bf16[B, 1024]) {\n"
         "  q = x @ a\n  k = x @ b\n  v = relu(x @ c)\n}\n",
         1},
        {"graph g(x: bf16[B, 4096], a: bf16[4096, 11008], b: bf16[4096, 11008],"
         " c: bf16[11008, 4096]) -> (y: bf16[B, 4096]) {\n"
         "  y = (silu(x @ a) * (x @ b)) @ c\n}\ndim B in 1..4096\n",
         2},
        {"graph g(x: f16[512, 96], a: f16[320, 96], b: f16[320, 96]) -> (y: f16[512, 320]) {\n"
         "  y = silu(x @ transpose(a, perm=[1, 0])) * (x @ transpose(b, perm=[1, 0]))\n}\n",
         1},
        /* Right operands with different layouts, and another left operand. */
        {"graph g(x: f16[512, 96], a: f16[320, 96], b: f16[96, 320]) -> (y: f16[512, 320]) {\n"
         "  y = silu(x @ transpose(a, perm=[1, 0])) * (x @ b)\n}\n",
         2},
        {"graph g(x: f16[512, 96], z: f16[512, 96], a: f16[96, 320], b: f16[96, 320])"
         " -> (y: f16[512, 320]) {\n  y = silu(x @ a) * (z @ b)\n}\n",
         2},
        {"graph g(x: bf16[B, 512], a: bf16[512, 512], c: bf16[512], r: bf16[B, 512])"
         " -> (y: bf16[B, 512]) {\n  y = relu(x @ a + c) + r\n}\ndim B in 1..4096\n",
         1},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        Arena *arena = arena_new(NULL);
        bool is_path = strncmp(counts[i].source, "dsl/", 4) == 0;
        const char *source = counts[i].source;
        if (is_path) source = text_file_read(arena, source, NULL);
        Module *module = plans_parse(arena, source);
        const Card *card = card_of_target(target_get(TARGET_SM_90A));
        PricedPlan priced = plans_price(arena, module, 0, false, TARGET_SM_90A, card, NULL);
        cr_assert(priced.plan);
        cr_expect_eq(priced.cost->n_launches, counts[i].n_launches, "%u launches\n%s",
                     priced.cost->n_launches, source);
        arena_free(arena);
    }
}

/* A dual GEMM by wgmma: both matmuls run at the same time, with tiles of half the columns. Values
 * are in shared memory only where other variants pass them there. */
Test(parallel, dual_gemms_multiply_at_once) {
    static const char *const sources[2] = {
        "dim B in 1..4096\n"
        "graph g(x: bf16[B, 4096], a: bf16[4096, 2816], b: bf16[4096, 2816])"
        " -> (y: bf16[B, 2816]) {\n  y = silu(x @ a) * (x @ b)\n}\n",
        "graph g(x: bf16[640, 4096], a: bf16[2816, 4096], b: bf16[2816, 4096],"
        " c: bf16[2816, 4096]) -> (y: bf16[640, 2816]) {\n"
        "  fuse must {\n    p = x @ transpose(a, perm=[1, 0])\n"
        "    q = silu(p) * (x @ transpose(b, perm=[1, 0]))\n"
        "    y = q * (x @ transpose(c, perm=[1, 0]))\n  }\n}\n"};
    for (uint32_t i = 0; i < 2; i++) {
        Arena *arena = arena_new(NULL);
        Module *module = plans_parse(arena, sources[i]);
        Plan *plan = plans_fuse(arena, module, 0, false);
        sched_plan(arena, plan, target_get(TARGET_SM_90A));
        plans_compose(arena, plan, TARGET_SM_90A, LAUNCH_MODES_OF_GEMMS);
        Launch launch = *plan_launch_of(plan, 0);
        uint32_t n = i + 2, n_at_once = 0;
        cr_assert(launch.n == n && launch.mode == LAUNCH_SEQUENCE, "%u kernels", launch.n);
        for (uint32_t v = 0; v < launch_kernel(plan, &launch, 0)->n_variants; v++) {
            const Variant *variant = &launch_kernel(plan, &launch, 0)->variants[v];
            LaunchMap maps[MAX_LAUNCH_MAPS];
            bool is_at_once = sched_engine(&variant->sched) == GEMM_WGMMA;
            n_at_once += is_at_once;
            cr_expect((variant->kept_shared_bytes == 0) == is_at_once);
            cr_expect_eq(launch_maps(plan, &launch, v, maps), is_at_once ? n + 1 : 0);
            if (!is_at_once) continue;
            cr_expect(maps[0].kernel == 0 && maps[0].map == 0);
            for (uint32_t k = 0; k < n; k++)
                cr_expect(maps[k + 1].kernel == k && maps[k + 1].map == 1);
            cr_expect_eq(variant->sched.gemm.n_gemms, n);
            cr_expect_leq(variant->sched.gemm.tile_n * n, WGMMA_MAX_WIDTH);
            cr_expect_eq(launch_shared_bytes(plan, &launch, v), variant->shared_bytes);
        }
        cr_expect_eq(n_at_once, i ? 1 : 3);
        arena_free(arena);
    }
}

/* A dual GEMM in one launch: the copy pipeline has fewer stages, to leave room for the gate behind
 * it, and both kernels use the same bytes for their stages. */
Test(parallel, deep_stages_leave_room_for_the_tile) {
    Arena *arena = arena_new(NULL);
    Module *module =
        plans_parse(arena, "dim B in 1..4096\n"
                           "graph g(x: bf16[B, 4096], a: bf16[4096, 2816], b: bf16[4096, "
                           "2816]) -> (y: bf16[B, 2816]) {\n"
                           "  y = silu(x @ a) * (x @ b)\n}\n");
    Plan *plan = plans_fuse(arena, module, 0, false);
    sched_plan(arena, plan, target_get(TARGET_SM_80));
    uint32_t alone = plan->kernels.data[0].variants[0].shared_bytes;
    plans_compose(arena, plan, TARGET_SM_80, LAUNCH_MODES_OF_GEMMS);
    Launch launch = *plan_launch_of(plan, 0);
    const Kernel *kernel = launch_kernel(plan, &launch, 0);
    cr_assert(launch.n == 2 && launch.mode == LAUNCH_SEQUENCE);
    for (uint32_t v = 0; v < kernel->n_variants; v++) {
        const Sched *s = &kernel->variants[v].sched;
        uint32_t n_bytes = (s->gemm.tile_m + s->gemm.tile_n) * s->gemm.tile_k * 2 * s->gemm.stages;
        uint32_t shared = kernel->variants[v].shared_bytes,
                 kept = kernel->variants[v].kept_shared_bytes;
        cr_expect(kept >= s->gemm.tile_m * s->gemm.tile_n * 2);
        cr_expect(shared == 0 || shared == n_bytes);
        cr_expect(shared == 0 || shared + kept <= 96 * 1024, "%u and %u", shared, kept);
        cr_expect_geq(s->gemm.stages, 3);
        cr_expect_eq(launch_shared_bytes(plan, &launch, v), shared);
    }
    cr_expect_eq(alone, 96 * 1024);
    cr_expect(kernel->variants[0].shared_bytes > 0 && kernel->variants[0].shared_bytes < alone);
    arena_free(arena);
}

/* Dual GEMMs of every engine and size are one launch, whether the argument of the gate is an output
 * or not. An output, or a value without room in shared memory, goes through global memory. */
Test(parallel, dual_gemms_are_one_launch) {
    static const char *const dtypes[] = {"f32", "f64", "f16", "bf16"};
    static const char *const rows[] = {"1", "16", "512", "4096", "B"};
    for (uint32_t i = 0; i < 4 * 5 * 3 * 2; i++) {
        Arena *arena = arena_new(NULL);
        const char *d = dtypes[i % 4], *m = rows[i / 4 % 5];
        uint32_t n_kept = i / 20 % 3;
        const char *outputs =
            n_kept == 0   ? ""
            : n_kept == 1 ? str_format(arena, "g: %s[%s, 4096], ", d, m)
                          : str_format(arena, "g: %s[%s, 4096], u: %s[%s, 4096], ", d, m, d, m);
        const char *source = str_format(
            arena,
            "dim B in 1..8192\ngraph p(x: %s[%s, 960], a: %s[960, 4096], b: %s[960, 4096])"
            " -> (%sy: %s[%s, 4096]) {\n  g = x @ a\n  u = x @ b\n  y = silu(g) * u\n}\n",
            d, m, d, d, outputs, d, m);
        Module *module = plans_parse(arena, source);
        TargetId target = i / 60 ? TARGET_SM_90A : TARGET_SM_80;
        const Card *card = card_of_target(target_get(target));
        PricedPlan priced = plans_price(arena, module, 0, false, target, card, NULL);
        cr_assert(priced.plan);
        cr_expect_eq(priced.cost->n_launches, 1, "%s\n%s", target_get(target)->name, source);
        for (uint32_t b = 0; b < priced.plan->buffers.n; b++) {
            const Buffer *buffer = &priced.plan->buffers.data[b];
            cr_expect(buffer->space == BUFFER_GLOBAL || buffer->kind == BUFFER_TEMP);
            cr_expect(n_kept == 0 || buffer->kind != BUFFER_TEMP, "%s", source);
        }
        cr_expect_null(plan_verify(priced.plan, arena));
        arena_free(arena);
    }
}
