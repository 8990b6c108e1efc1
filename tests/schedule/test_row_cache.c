/* Values that a row keeps on a CPU between its stages: which, where, and that bits stay. */
#include "codegen/codegen.h"
#include "lib/pair.h"
#include "lib/plans.h"
#include "schedule/row_cache.h"

#include <criterion/criterion.h>

static const Kernel *row_of(Arena *arena, const char *source, TargetId target) {
    Module *module = plans_parse(arena, source);
    const Card *card = card_of_target(target_get(target));
    PricedPlan priced = plans_price(arena, module, 0, false, target, card, NULL);
    cr_assert_eq(priced.plan->kernels.n, 1, "%s", source);
    return priced.plan->kernels.data;
}

/* What rows keep: values, the slots they lie in, and variants, of which the last keeps nothing. */
static const struct {
    const char *source;
    uint32_t n_keeps, n_slots, n_variants;
} rows[] = {
    {"graph g(x: f32[64, 1024]) -> (y: f32[64, 1024]) { y = x - mean(x, axis=1, keep=true) }", 0, 0,
     1},
    {"graph g(x: f32[64, 1024]) -> (y: f32[64, 1024]) { y = softmax(x) }", 1, 1, 1},
    /* one after the other in one place */
    {"graph g(x: f32[64, 1024]) -> (y: f32[64, 1024]) { y = softmax(pow(abs(x), 1.5)) }", 2, 1, 1},
    {"graph g(x: f32[64, 1024]) -> (y: f32[64, 1024]) {"
     " y = softmax(softmax(softmax(softmax(x)))) }",
     7, 1, 1},
    /* two at once */
    {"graph g(x: f32[64, 1024]) -> (y: f32[64, 1024]) {"
     " h = tanh(x)\n y = softmax(x) * (h - max(h, axis=1, keep=true)) }",
     2, 2, 1},
    /* no stack holds those that are too long; those that are short go in groups */
    {"dim D in 64..1048576\ngraph g(x: f32[64, D]) -> (y: f32[64, D]) { y = softmax(x) }", 1, 1, 3},
    {"dim D in 1000..1048576\ngraph g(x: f32[64, D]) -> (y: f32[64, D]) { y = softmax(x) }", 1, 1,
     2},
};

Test(row_cache, costly_values_are_kept_in_few_slots) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *arena = arena_new(NULL);
        const Kernel *kernel = row_of(arena, rows[i].source, TARGET_CPU);
        RowCache row_cache = kernel->variants[0].row_cache;
        uint32_t n_slots = 0;
        for (uint32_t k = 0; k < row_cache.n; k++)
            if (row_cache.data[k].slot >= n_slots) n_slots = row_cache.data[k].slot + 1;
        cr_expect_eq(row_cache.n, rows[i].n_keeps, "%u values: %s", row_cache.n, rows[i].source);
        cr_expect_eq(n_slots, rows[i].n_slots, "%u slots: %s", n_slots, rows[i].source);
        cr_expect_eq(kernel->n_variants, rows[i].n_variants, "%s", rows[i].source);
        for (uint32_t v = 0; v + 1 < kernel->n_variants; v++)
            cr_expect_eq(kernel->variants[v].row_cache.n, rows[i].n_keeps, "%s", rows[i].source);
        if (kernel->n_variants > 1)
            cr_expect_eq(kernel->variants[kernel->n_variants - 1].row_cache.n, 0, "%s",
                         rows[i].source);
        for (uint32_t v = 1; v < kernel->n_variants; v++)
            cr_expect(!kernel_has_groups(kernel, &kernel->variants[v]), "%s", rows[i].source);
        arena_free(arena);
    }
}

Test(row_cache, gpus_keep_nothing) {
    Arena *arena = arena_new(NULL);
    cr_expect_eq(row_of(arena, rows[3].source, TARGET_SM_90A)->variants[0].row_cache.n, 0);
    arena_free(arena);
}

/* What is kept needs less than what is computed again, and never more than it may. */
Test(row_cache, a_stage_has_nothing_that_kept_values_are_made_of) {
    Arena *arena = arena_new(NULL);
    const Kernel *kernel = row_of(arena, rows[3].source, TARGET_CPU);
    RowCache row_cache = kernel->variants[0].row_cache;
    uint32_t last = kernel->stages.n - 1, n_again = 0;
    const bool *all = stage_live_scalars(arena, kernel, (RowCache){.n = 0}, last);
    const bool *own = stage_live_scalars(arena, kernel, row_cache, last);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        cr_expect(all[id] || !own[id]);
        n_again += own[id] && scalar_get(kernel->scalars, id)->prim == PRIM_EXP &&
                   !row_cache_has(row_cache, id, last);
    }
    cr_expect_eq(n_again, 0);
    arena_free(arena);
}

static void expect_same(const char *source, const int64_t *extents) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Pair pair;
    PairCounts counts = {0};
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.no_weights = true;
    bool ok = pair_compile(&pair, source, target_get(TARGET_CPU), &report) &&
              pair_open(&pair, 0, &options, &report);
    for (; ok && *extents; extents++) {
        PairData data = {.fill = FILL_UNIFORM, .seed = (uint64_t)*extents};
        ok = pair_place(&pair, extents, &report) && pair_run(&pair, &data, &counts, &report);
    }
    cr_expect(ok, "%s\n%s", text_str(&report), source);
    pair_free(&pair);
    arena_free(arena);
}

/* Lengths on both sides of steps, rounds and of what a row keeps. */
Test(row_cache, fused_rows_have_the_bits_of_unfused_ones) {
    static const int64_t extents[] = {64,    65,    127,   1000,  4099,   8192,   8193,
                                      16384, 20000, 65536, 65537, 131072, 131073, 0};
    static const char *const bodies[] = {
        "y = softmax(softmax(tanh(x)))",
        "h = tanh(x)\n  y = softmax(x) * (h - max(h, axis=1, keep=true))",
        "h = exp(x)\n  y = h / sum(h, axis=1, keep=true) + softmax(erf(z)) * log_softmax(h)",
    };
    static const char *const dtypes[] = {"f32", "f64", "bf16", "f16"};
    for (size_t i = 0; i < 3 * 4; i++) {
        Arena *arena = arena_new(NULL);
        const char *t = dtypes[i % 4];
        bool has_z = strchr(bodies[i / 4], 'z') != NULL;
        expect_same(str_format(arena,
                               "dim D in 64..262144\n"
                               "graph g(x: %s[3, D]%s%s%s) -> (y: %s[3, D]) {\n%s\n}\n",
                               t, has_z ? ", z: " : "", has_z ? t : "", has_z ? "[3, D]" : "", t,
                               bodies[i / 4]),
                    extents);
        arena_free(arena);
    }
}

/* What is stored over what a kept value is made of: the same stage makes another of that. */
Test(row_cache, what_a_store_goes_over_is_read_before) {
    static const int64_t extents[] = {8, 64, 65, 1000, 0};
    static const char *const bodies[] = {
        "fuse must { p = softmax(t)\n q = t * 2.0 + p }",
        "fuse must { p = softmax(t)\n q = pad(t[:, :-4] * 2.0, low=[0, 0], high=[0, 4]) + p }",
        "fuse must { p = log_softmax(exp(t))\n q = t / (2.0 + abs(p)) }",
        "fuse must { h = exp(t)\n p = h / sum(h, axis=1, keep=true)\n q = sigmoid(t) - p }",
    };
    static const char *const dtypes[] = {"f32", "f64"};
    for (size_t i = 0; i < 2 * sizeof bodies / sizeof *bodies; i++) {
        Arena *arena = arena_new(NULL);
        const char *t = dtypes[i % 2];
        expect_same(str_format(arena,
                               "dim D in 8..4096\n"
                               "graph g(x: %s[19, D]) -> (y: %s[19, D], z: %s[19, D]) {\n"
                               "  fuse never { t = tanh(x) }\n  %s\n"
                               "  fuse never { y = -p }\n  fuse never { z = -q }\n}\n",
                               t, t, t, bodies[i / 2]),
                    extents);
        arena_free(arena);
    }
}
