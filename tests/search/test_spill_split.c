/* Kernels that need more registers than a thread has: the minimum cuts that split them, where they
 * are split, the predicted gain, and the assembler's spills of the whole kernel and of its
 * halves. */
#include "lib/compiled.h"
#include "lib/plans.h"
#include "random/random_data.h"

#include "base/flow.h"

#include <criterion/criterion.h>

enum { FLOW_NODES = 7 };

/* The least capacity over all ways to split the nodes. */
static uint64_t least_by_trying(uint64_t capacity[FLOW_NODES][FLOW_NODES]) {
    uint64_t least = UINT64_MAX;
    for (uint32_t side = 1; side < 1u << FLOW_NODES; side += 2) { /* 0 is the source */
        uint64_t sum = 0;
        if (side >> 1 & 1) continue; /* 1 is the sink */
        for (int a = 0; a < FLOW_NODES; a++)
            for (int b = 0; b < FLOW_NODES; b++)
                if ((side >> a & 1) && !(side >> b & 1)) sum += capacity[a][b];
        if (sum < least) least = sum;
    }
    return least;
}

Test(spill_split, least_cuts_are_least) {
    for (uint64_t seed = 1; seed <= 300; seed++) {
        Arena *arena = arena_new(NULL);
        Rng rng = rng_new(seed);
        uint64_t capacity[FLOW_NODES][FLOW_NODES] = {{0}}, sum = 0;
        Flow *flow = flow_new(arena, FLOW_NODES);
        for (uint32_t i = 0; i < 16; i++) {
            uint32_t from = rng_below(&rng, FLOW_NODES);
            uint32_t to = rng_below(&rng, FLOW_NODES);
            uint64_t own = rng_below(&rng, 20);
            if (from == to) continue;
            capacity[from][to] += own;
            flow_edge(flow, from, to, own);
        }
        bool side[FLOW_NODES];
        uint64_t found = flow_cut(flow, 0, 1, side);
        for (int a = 0; a < FLOW_NODES; a++)
            for (int b = 0; b < FLOW_NODES; b++)
                if (side[a] && !side[b]) sum += capacity[a][b];
        cr_expect(side[0] && !side[1]);
        cr_expect(found == least_by_trying(capacity) && sum == found,
                  "seed %llu: %llu, and the cut has %llu", (unsigned long long)seed,
                  (unsigned long long)found, (unsigned long long)sum);
        arena_free(arena);
    }
}

/* `live` values that are all compared before each of them is used again. */
static const char *compared(Arena *arena, int live, const char *dtype, bool is_must) {
    Text text = {.arena = arena};
    text_printf(&text, "graph g(x: %s[1048576], z: %s[1048576]) -> (y: %s[1048576]) {\n%s", dtype,
                dtype, dtype, is_must ? "fuse must {\n" : "");
    for (int i = 0; i < live; i++) text_printf(&text, "  v%d = x * %g + z\n", i, 1 + i / 64.0);
    text_puts(&text, "  m0 = v0\n");
    for (int i = 1; i < live; i++) text_printf(&text, "  m%d = maximum(m%d, v%d)\n", i, i - 1, i);
    text_printf(&text, "  m = m%d * 0.5\n  s0 = z + 1.0\n", live - 1);
    for (int i = 0; i < live; i++)
        text_printf(&text, "  s%d = s%d + (v%d - m) * v%d\n", i + 1, i, i, i);
    text_printf(&text, "  y = s%d * 1.0\n}\n%s", live, is_must ? "}\n" : "");
    return text_str(&text);
}

/* `live` values wait for their use: no position of the graph is narrow. */
static const char *many_live(Arena *arena, int live, const char *dtype, bool is_must) {
    Text text = {.arena = arena};
    text_printf(&text, "graph g(x: %s[1048576]) -> (y: %s[1048576]) {\n%s  v0 = x\n", dtype, dtype,
                is_must ? "fuse must {\n" : "");
    for (int i = 1; i < live; i++)
        text_printf(&text, "  v%d = relu(v%d * %g) + %g\n", i, i - 1, 1 + i / 64.0, i / 32.0);
    text_printf(&text, "  w0 = v%d\n", live - 1);
    for (int i = 0; i < live; i++)
        text_printf(&text, "  w%d = w%d * v%d - %g\n", i + 1, i, i, i / 16.0);
    text_printf(&text, "  y = w%d\n}\n%s", live, is_must ? "}\n" : "");
    return text_str(&text);
}

typedef const char *MakeSource(Arena *arena, int live, const char *dtype, bool is_must);

static const struct {
    MakeSource *source;
    int live;
    const char *dtype;
} spilling[] = {{compared, 300, "f32"},
                {compared, 150, "f64"},
                {many_live, 300, "f32"},
                {many_live, 150, "f64"}};
enum { N_SPILLING = sizeof spilling / sizeof spilling[0] };

static PricedPlan price_on(Arena *arena, const char *source, TargetId target, CardId card) {
    const Module *module = plans_parse(arena, source);
    PricedPlan priced = plans_price(arena, module, 0, false, target, card_get(card), NULL);
    cr_assert(priced.plan);
    return priced;
}

static PricedPlan price(Arena *arena, const char *source) {
    return price_on(arena, source, TARGET_SM_90A, CARD_H200);
}

static uint32_t n_with_reason(const Plan *plan, ReasonId reason) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->edges.n; i++) n += plan->edges.data[i].reason == reason;
    return n;
}

Test(spill_split, what_would_spill_is_cut_where_that_is_cheaper) {
    for (int i = 0; i < N_SPILLING; i++) {
        Arena *arena = arena_new(NULL);
        const char *dtype = spilling[i].dtype;
        int live = spilling[i].live;
        PricedPlan cut = price(arena, spilling[i].source(arena, live, dtype, false));
        PricedPlan whole = price(arena, spilling[i].source(arena, live, dtype, true));
        cr_expect(whole.plan->kernels.n == 1 && whole.cost->kernels[0].pressure.spills);
        cr_expect(whole.cost->kernels[0].spill_us > 0);
        cr_expect(cut.plan->kernels.n > 1 && cut.plan->kernels.n <= 4, "%d: %u kernels", i,
                  cut.plan->kernels.n);
        cr_expect(cut.cost->us < 0.98 * whole.cost->us, "%d: %g us, whole %g", i, cut.cost->us,
                  whole.cost->us);
        cr_expect(n_with_reason(cut.plan, REASON_SPILLS) > 0);
        cr_expect(n_with_reason(whole.plan, REASON_SPILLS) == 0);
        for (uint32_t k = 0; k < cut.plan->kernels.n; k++)
            cr_expect(!cut.cost->kernels[k].pressure.spills, "%d: kernel %u", i, k);
        arena_free(arena);
    }
}

/* The value at the waist is the only one that the second kernel loads; it computes all others
 * again. */
Test(spill_split, a_narrow_position_is_found) {
    Arena *arena = arena_new(NULL);
    PricedPlan cut = price(arena, compared(arena, 300, "f32", false));
    uint32_t n_temps = 0;
    for (uint32_t i = 0; i < cut.plan->buffers.n; i++)
        n_temps += cut.plan->buffers.data[i].kind == BUFFER_TEMP;
    cr_expect(cut.plan->kernels.n == 2 && n_temps == 1, "%u kernels, %u temps", cut.plan->kernels.n,
              n_temps);
    arena_free(arena);
}

/* Around the deepest graph of a kernel (256 ops) hundreds of values are as deep as one
 * another, and around the registers of a thread a kernel is cut: neither shows but in the number of
 * launches, and that is two. */
Test(spill_split, launches_and_time_grow_with_the_values_alone, .timeout = 120) {
    static const int live[] = {160, 200, 230, 240, 244, 246, 248, 249, 250,
                               251, 252, 253, 254, 256, 260, 270, 300, 500};
    static const struct {
        TargetId target;
        CardId card;
    } on[] = {{TARGET_SM_90A, CARD_H200}, {TARGET_SM_80, CARD_A100}};
    for (size_t t = 0; t < sizeof on / sizeof on[0]; t++) {
        double last = 0;
        uint32_t n_last = 1;
        for (size_t i = 0; i < sizeof live / sizeof live[0]; i++) {
            Arena *arena = arena_new(NULL);
            PricedPlan priced =
                price_on(arena, compared(arena, live[i], "f32", false), on[t].target, on[t].card);
            uint32_t n = priced.plan->kernels.n;
            double us = priced.cost->us, grown = i ? (double)live[i] / live[i - 1] : 1;
            cr_expect(n >= n_last && n <= 2, "%d values: %u kernels after %u", live[i], n, n_last);
            cr_expect(us > 0.88 * last && (!i || us < 1.05 * grown * last),
                      "%d values: %g us after %g", live[i], us, last);
            last = us;
            n_last = n;
            arena_free(arena);
        }
    }
}

/* What the source wants whole is refused for its size alone: of about 4096 scalars. */
Test(spill_split, must_is_kept_up_to_the_size_limit, .timeout = 120) {
    for (int live = 240; live <= 560; live += live < 256 ? 2 : 76) {
        Arena *arena = arena_new(NULL);
        PricedPlan whole = price(arena, compared(arena, live, "f32", true));
        cr_expect(whole.plan->kernels.n == 1, "%d values: %u kernels", live, whole.plan->kernels.n);
        cr_expect(n_with_reason(whole.plan, REASON_TOO_LARGE) == 0, "%d values", live);
        arena_free(arena);
    }
    static const int large_bf16[] = {240, 246, 250, 252, 256, 300};
    for (size_t i = 0; i < sizeof large_bf16 / sizeof large_bf16[0]; i++) {
        Arena *arena = arena_new(NULL);
        PricedPlan parts = price(arena, compared(arena, large_bf16[i], "bf16", false));
        cr_expect(parts.plan->kernels.n <= 3 && parts.plan->buffers.n <= 6, "%d: %u kernels, %u",
                  large_bf16[i], parts.plan->kernels.n, parts.plan->buffers.n);
        arena_free(arena);
    }
    Arena *arena = arena_new(NULL);
    PricedPlan large = price(arena, compared(arena, 700, "f32", true));
    cr_expect(large.plan->kernels.n > 1 && n_with_reason(large.plan, REASON_TOO_LARGE) > 0);
    arena_free(arena);
}

/* A sum of `live` terms, in pairs: a shallow graph, but far more scalars than a kernel may have. */
static const char *tree(Arena *arena, int live) {
    Text text = {.arena = arena};
    int level = 0;
    text_puts(&text, "graph g(x: bf16[1048576], z: bf16[1048576]) -> (y: bf16[1048576]) {\n");
    for (int i = 0; i < live; i++) text_printf(&text, "  v0_%d = x * %g + z\n", i, 1 + i / 64.0);
    for (int n = live / 2; n > 0; n /= 2, level++)
        for (int i = 0; i < n; i++)
            text_printf(&text, "  v%d_%d = v%d_%d + v%d_%d\n", level + 1, i, level, 2 * i, level,
                        2 * i + 1);
    text_printf(&text, "  y = v%d_0 * 1.0\n}\n", level);
    return text_str(&text);
}

/* Each subtree leaves one value, and few values wait beside it. */
Test(spill_split, kernels_that_are_too_large_are_split_at_narrow_positions) {
    for (int live = 256; live <= 2048; live *= 2) {
        Arena *arena = arena_new(NULL);
        PricedPlan priced = price(arena, tree(arena, live));
        uint32_t n = priced.plan->kernels.n, n_temps = priced.plan->buffers.n - 3;
        cr_expect(n <= (uint32_t)live / 512 + 1 && n_temps <= (uint32_t)live / 128,
                  "%d terms: %u kernels, %u temps", live, n, n_temps);
        arena_free(arena);
    }
}

/* 250 ops with 40 values that wait fit once a thread has fewer lanes; costly values are not made
 * again to save a few registers. */
Test(spill_split, what_fits_or_is_costly_stays_whole) {
    Arena *arena = arena_new(NULL);
    for (int i = 0; i < 2; i++) {
        const char *dtype = i ? "bf16" : "f32";
        PricedPlan priced = price(arena, many_live(arena, 50, dtype, false));
        cr_expect(priced.plan->kernels.n == 1 && !priced.cost->kernels[0].pressure.spills);
    }
    Text text = {.arena = arena};
    text_puts(&text, "graph g(x: f32[1048576]) -> (y: f32[1048576]) {\n");
    for (int i = 0; i < 270; i++) text_printf(&text, "  v%d = sin(x * %g)\n", i, 1 + i / 64.0);
    text_puts(&text, "  m0 = v0\n");
    for (int i = 1; i < 270; i++) text_printf(&text, "  m%d = maximum(m%d, v%d)\n", i, i - 1, i);
    text_puts(&text, "  s0 = m269\n");
    for (int i = 0; i < 270; i++) text_printf(&text, "  s%d = s%d * v%d\n", i + 1, i, i);
    text_puts(&text, "  y = s270\n}\n");
    PricedPlan costly = price(arena, text_str(&text));
    cr_expect(costly.plan->kernels.n == 1, "%u kernels", costly.plan->kernels.n);
    cr_expect(costly.cost->kernels[0].pressure.spills);
    arena_free(arena);
}

/* Functions that the assembler made of the program, and how many of them spill; false where there
 * is no assembler. */
static bool assemble(const char *source, uint32_t *n_functions, uint32_t *n_spilling) {
    Compiled compiled = compiled_new(source, TARGET_SM_90A);
    PtxReport report;
    bool ok = compiled_assemble(&compiled, (PtxOptions){0}, &report);
    *n_functions = ok ? report.functions.n : 0;
    *n_spilling = 0;
    for (uint32_t i = 0; i < *n_functions; i++)
        *n_spilling += report.functions.data[i].spill_store_bytes > 0;
    compile_free(&compiled);
    return ok;
}

Test(spill_split, the_assembler_spills_in_the_whole_and_not_in_its_kernels, .timeout = 120) {
    for (int i = 0; i < N_SPILLING; i++) {
        Arena *arena = arena_new(NULL);
        const char *dtype = spilling[i].dtype;
        uint32_t n_functions, n_spilling;
        const char *whole = spilling[i].source(arena, spilling[i].live, dtype, true);
        const char *parts = spilling[i].source(arena, spilling[i].live, dtype, false);
        if (assemble(whole, &n_functions, &n_spilling))
            cr_expect(n_functions == 1 && n_spilling == 1, "%d: %u of %u", i, n_spilling,
                      n_functions);
        if (assemble(parts, &n_functions, &n_spilling))
            cr_expect(n_functions > 1 && n_spilling == 0, "%d: %u of %u", i, n_spilling,
                      n_functions);
        arena_free(arena);
    }
}
