/* Tiles of wgmma for extents that are known when a run begins: which of the variants is the
 * cheapest. That the runtime takes that is for test_rt_prepare. */
#include "lib/compiled.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* As the runtime has it. */
static int64_t price(const DimTab *dims, const Price *price, const int64_t *values) {
    int64_t blocks, each = price->fixed, measure;
    cr_assert(dim_eval(dims, price->blocks, values, &blocks));
    for (uint32_t i = 0; i < price->n_measures; i++) {
        cr_assert(dim_eval(dims, price->measures[i], values, &measure));
        each += price->weights[i] * measure;
    }
    int64_t waves = (blocks + price->per_wave - 1) / price->per_wave;
    return each * (price->percent * blocks + (100 - price->percent) * price->per_wave * waves);
}

/* The variant that such extents take, addresses and maps being good: `values` are the declared
 * ones. */
static const Variant *chosen_variant(const Compiled *compiled, const int64_t *values,
                                     uint32_t n_values) {
    const Plan *plan = compiled->plan;
    const DimTab *dims = plan->graph->dims;
    uint32_t first = 0, v = 0; /* but for copies of operands */
    while (plan->kernels.data[first].form == FORM_MAP) first++;
    const Kernel *kernel = &plan->kernels.data[first];
    int64_t all[DIM_MAX_SYMBOLS] = {0}, least = 0;
    memcpy(all, values, n_values * sizeof *values);
    dim_follow_rules(dims, all);
    while (sched_engine(&kernel->variants[v].sched) != GEMM_WGMMA) v++;
    const Variant *best = NULL;
    for (; v < kernel->n_variants; v++) {
        const Variant *variant = &kernel->variants[v];
        if (best && variant->price.group != best->price.group) break;
        if (!predicate_holds_at(&variant->predicate, &(PredicateAt){.dims = dims, .values = all}))
            continue;
        int64_t own = variant->price.group ? price(dims, &variant->price, all) : 0;
        if (best && own >= least) continue;
        best = variant;
        least = own;
        if (!variant->price.group) break;
    }
    cr_assert_not_null(best);
    return best;
}

/* Tiles by named extents, most of which were measured: long and short k, rows that begin within
 * lines and sectors of memory, and such as are copied to whole lines first. */
Test(wgmma_price, extents_choose_tiles, .timeout = 120) {
    static const struct {
        int64_t extents[3]; /* m, n, k */
        uint32_t tile_m, tile_n, cluster, group;
    } choices[] = {{{4096, 4096, 4096}, 128, 256, 1, 1}, {{8192, 8192, 8192}, 128, 256, 1, 1},
                   {{2048, 2048, 2048}, 128, 256, 1, 1}, {{16, 8192, 8192}, 64, 64, 1, 1},
                   {{64, 8192, 8192}, 64, 64, 1, 1},     {{128, 8192, 8192}, 64, 128, 1, 1},
                   {{256, 8192, 8192}, 128, 128, 1, 1},  {{512, 8192, 8192}, 128, 256, 1, 1},
                   {{768, 2968, 3224}, 128, 192, 2, 1},  {{5944, 2432, 5576}, 128, 256, 1, 1},
                   {{1856, 1984, 192}, 128, 128, 1, 1},  {{4097, 4099, 4101}, 128, 256, 1, 2},
                   {{1001, 1003, 1005}, 128, 128, 1, 2}, {{77, 79, 8191}, 64, 64, 1, 2}};
    Compiled compiled =
        compiled_new("dim M in 1..8192\ndim N in 1..8192\ndim K in 1..8192\n"
                     "graph g(x: bf16[M, K], w: bf16[K, N], b: bf16[N]) -> (y: bf16[M, N]) {\n"
                     "  y = relu(x @ w + b)\n}\n",
                     TARGET_SM_90A);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const int64_t *e = choices[i].extents;
        const Variant *v = chosen_variant(&compiled, e, 3);
        cr_expect(v->sched.gemm.tile_m == choices[i].tile_m &&
                      v->sched.gemm.tile_n == choices[i].tile_n &&
                      v->sched.cluster == choices[i].cluster && v->price.group == choices[i].group,
                  "%lld x %lld x %lld: %u x %u x %u, group %u", (long long)e[0], (long long)e[1],
                  (long long)e[2], v->sched.gemm.tile_m, v->sched.gemm.tile_n, v->sched.cluster,
                  v->price.group);
    }
    compile_free(&compiled);
}

/* Rows by a matrix that is known: each size has extents that call for it. */
Test(wgmma_price, rows_choose_tiles, .timeout = 120) {
    static const struct {
        int64_t m;
        uint32_t tile_m, tile_n;
    } choices[] = {{64, 64, 64},    {128, 64, 64},    {256, 64, 128},   {512, 128, 128},
                   {768, 128, 192}, {1536, 128, 192}, {2048, 128, 256}, {65536, 128, 256}};
    Compiled compiled = compiled_new("dim M in 1..65536\ndim K in 1..65536\n"
                                     "graph g(a: f16[M, K], b: f16[4096, K]) -> (y: f16[M, 4096]) "
                                     "{\n  y = a @ transpose(b, perm=[1, 0])\n}\n",
                                     TARGET_SM_90A);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const Sched *s = &chosen_variant(&compiled, (int64_t[]){choices[i].m, 1024}, 2)->sched;
        cr_expect(s->gemm.tile_m == choices[i].tile_m && s->gemm.tile_n == choices[i].tile_n,
                  "%lld rows: %u x %u", (long long)choices[i].m, s->gemm.tile_m, s->gemm.tile_n);
    }
    compile_free(&compiled);
}

/* Few rows are not multiplied element by element in front of the tiles that prices compare, where
 * copies give these their rows; where operands can be copied to shared memory as they lie, they
 * are.
 */
Test(wgmma_price, few_rows_of_odd_matmuls_are_copied) {
    static const struct {
        int k, n;
        bool has_few;
    } cases[] = {{4095, 4095, false}, {4096, 4095, false}, {4096, 4096, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char source[256];
        int k = cases[i].k, n = cases[i].n;
        snprintf(source, sizeof source,
                 "dim M in 1..4096\n"
                 "graph g(x: bf16[M, %d], w: bf16[%d, %d]) -> (y: bf16[M, %d]) {\n  y = x @ w\n}\n",
                 k, k, n, n);
        Compiled compiled = compiled_new(source, TARGET_SM_90A);
        uint32_t first = 0;
        while (compiled.plan->kernels.data[first].form == FORM_MAP) first++;
        const Variant *variant = &compiled.plan->kernels.data[first].variants[0];
        cr_expect_eq(sched_engine(&variant->sched) == GEMM_MMA, cases[i].has_few, "%d, %d", k, n);
        compile_free(&compiled);
    }
}
