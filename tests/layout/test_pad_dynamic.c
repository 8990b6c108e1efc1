/* Copies of operands whose rows lie badly: where they are made, and that matmuls of them are, to
 * the bit, matmuls of what they are copies of. The latter runs on the CPU, whose own schedules
 * copy nothing: a hook lays its plans out as for a GPU. */
#include "fuse/hoist.h"
#include "layout/layout.h"
#include "layout/pad_dynamic.h"
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *const dims = "dim M in 0..4096\ndim N in 0..4096\ndim K in 0..4096\n";

typedef struct Case {
    const char *what, *source;
    uint32_t n_copies, n_pitches;
} Case;

static const Case cases[] = {
    {"both operands",
     "graph g(x: bf16[M, K], w: bf16[K, N], b: bf16[N]) -> (y: bf16[M, N]) {\n"
     "  y = relu(x @ w + b)\n}\n",
     2, 2},
    {"one of them",
     "graph g(x: bf16[M, K], w: bf16[64, K]) -> (y: bf16[M, 64]) {\n"
     "  y = x @ transpose(w, perm=[1, 0])\n}\n",
     2, 2},
    {"rows that are whole",
     "graph g(x: f16[M, 512], w: f16[512, N]) -> (y: f16[M, N]) {\n"
     "  y = x @ w\n}\n",
     1, 1},
    {"batches",
     "graph g(x: bf16[3, M, K], w: bf16[3, K, N], v: bf16[K, N])\n"
     "    -> (y: bf16[3, M, N], z: bf16[3, M, N]) {\n  y = x @ w\n  z = x @ v\n}\n",
     4, 3 /* x also as one matrix, of all batches */},
    {"one for two matmuls",
     "graph g(x: bf16[M, K], w: bf16[K, 72], v: bf16[K, 80])\n"
     "    -> (y: bf16[M, 72], z: bf16[M, 80]) {\n"
     "  y = x @ w\n  z = relu(x @ v)\n}\n",
     1, 1},
    {"an output that is read again",
     "graph g(x: bf16[M, 264], w: bf16[264, N], v: bf16[N, 64])\n"
     "    -> (h: bf16[M, N], y: bf16[M, 64]) {\n  h = x @ w\n  y = h @ v\n}\n",
     2, 2},
    {"known extents",
     "graph g(x: bf16[40, 301], w: bf16[301, 129]) -> (y: bf16[40, 129]) {\n"
     "  y = x @ w\n}\n",
     2, 0},
    {"known extents and gaps",
     "graph g(x: bf16[40, 333], w: bf16[301, 128]) -> (y: bf16[40, 128]) {\n"
     "  y = x[:, 32:] @ w\n}\n",
     1, 0},
    {"gaps in unknown ones",
     "graph g(x: bf16[M, 333], w: bf16[301, 128]) -> (y: bf16[M, 128]) {\n"
     "  y = x[:, 32:] @ w\n}\n",
     0, 0},
    {"no work, however often it were read",
     "graph g(x: f16[0, 31, 37]) -> (y: f16[0, 31, N]) {\n"
     "  param w: f16[37, N] = \"w\"\n  y = x @ w\n}\n",
     0, 0},
    {"little",
     "graph g(x: bf16[40, 61], w: bf16[61, 67]) -> (y: bf16[40, 67]) {\n"
     "  y = x @ w\n}\n",
     0, 0},
    {"no rows, of unknown length",
     "graph g(x: bf16[0, 8, K], w: bf16[K, 17]) -> (y: bf16[0, 8, 17]) {\n"
     "  y = x @ w\n}\n",
     2, 2},
    {"an operand that is computed",
     "graph g(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[M, N]) {\n"
     "  y = relu(x) @ w\n}\n",
     0, 0},
    {"a row", "graph g(x: bf16[1, K], w: bf16[K, N]) -> (y: bf16[1, N]) {\n  y = x @ w\n}\n", 0, 0},
    {"ordinary units", "graph g(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) {\n  y = x @ w\n}\n",
     0, 0},
    {"params, which are prepared",
     "graph g(x: bf16[M, 301]) -> (y: bf16[M, 129]) {\n"
     "  param w: bf16[301, 129] = \"w\"\n  y = x @ w\n}\n",
     1, 1},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static uint32_t n_copies(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = plan_n_init(plan); i < plan->kernels.n; i++)
        n += plan->kernels.data[i].form == FORM_MAP && plan->kernels.data[i].nodes.n == 0;
    return n;
}

static Plan *lay_out(Arena *arena, const Case *c, TargetId target) {
    const char *source = str_format(arena, "%s%s", dims, c->source);
    Module *module = plans_parse(arena, source);
    Plan *plan = plans_fuse(arena, module, 0, false);
    plans_lay_out(arena, plan, target);
    const char *fault = plan_verify(plan, arena);
    cr_expect_null(fault, "%s: %s", c->what, fault);
    return plan;
}

Test(pad_dynamic, operands_that_are_inputs_are_copied) {
    for (uint32_t i = 0; i < N_CASES; i++) {
        Arena *arena = arena_new(NULL);
        const Plan *plan = lay_out(arena, &cases[i], TARGET_SM_90A);
        cr_expect_eq(n_copies(plan), cases[i].n_copies, "%s: %u", cases[i].what, n_copies(plan));
        cr_expect_eq(plan->dynamic_pitches.n, cases[i].n_pitches, "%s", cases[i].what);
        plan = lay_out(arena, &cases[i], TARGET_CPU);
        cr_expect(n_copies(plan) == 0 && plan->dynamic_pitches.n == 0, "%s on a CPU",
                  cases[i].what);
        arena_free(arena);
    }
}

/* The copy engine's matmuls take 32 bits along k alone; whether a copy pays is a matter of prices.
 */
Test(pad_dynamic, tf32_operands_are_transposed_where_it_pays) {
    static const Case transposed[] = {
        {"tf32 along n, for many rows",
         "graph g(x: f32[4096, 512], w: f32[512, 256]) -> (y: f32[4096, 256]) {\n"
         "  y = matmul(x, w, precision=\"tf32\")\n}\n",
         1, 0},
        {"tf32 along n, for few",
         "graph g(x: f32[64, 512], w: f32[512, 256]) -> (y: f32[64, 256]) {\n"
         "  y = matmul(x, w, precision=\"tf32\")\n}\n",
         0, 0},
        {"tf32 along n, deep",
         "graph g(x: f32[1024, 4096], w: f32[4096, 4096]) -> (y: f32[1024, 4096]) {\n"
         "  y = matmul(x, w, precision=\"tf32\")\n}\n",
         1, 0},
        {"tf32, both operands across k",
         "graph g(x: f32[4096, 1024], w: f32[4096, 4096]) -> (y: f32[1024, 4096]) {\n"
         "  y = matmul(transpose(x), w, precision=\"tf32\")\n}\n",
         2, 0},
        {"tf32, batches of enough work",
         "graph g(x: f32[8, 1024, 1024], w: f32[8, 1024, 1024]) -> (y: f32[8, 1024, 1024]) {\n"
         "  y = matmul(x, w, precision=\"tf32\")\n}\n",
         1, 0},
        {"tf32, batches of little",
         "graph g(x: f32[64, 256, 64], w: f32[64, 64, 256]) -> (y: f32[64, 256, 256]) {\n"
         "  y = matmul(x, w, precision=\"tf32\")\n}\n",
         0, 0},
        {"tf32, rows that are many enough whatever they are",
         "dim L in 1024..8192\n"
         "graph g(x: f32[L, 4096], w: f32[4096, 4096]) -> (y: f32[L, 4096]) {\n"
         "  y = matmul(x, w, precision=\"tf32\")\n}\n",
         1, 0},
        {"tf32 along n, prepared",
         "graph g(x: f32[64, 512]) -> (y: f32[64, 256]) {\n  param w: f32[512, 256] = \"w\"\n"
         "  y = matmul(x, w, precision=\"tf32\")\n}\n",
         0, 0},
    };
    for (size_t i = 0; i < sizeof transposed / sizeof *transposed; i++) {
        Arena *arena = arena_new(NULL);
        const Plan *plan = lay_out(arena, &transposed[i], TARGET_SM_90A);
        cr_expect_eq(n_copies(plan), transposed[i].n_copies, "%s: %u", transposed[i].what,
                     n_copies(plan));
        plan = lay_out(arena, &transposed[i], TARGET_SM_90);
        cr_expect_eq(n_copies(plan), 0, "%s without wgmma", transposed[i].what);
        arena_free(arena);
    }
}

/* Where few rows and many may run, there are two kernels, of which one starts: from some number of
 * rows on, where both ways take about as long, the one that reads the copy. */
Test(pad_dynamic, tf32_operands_are_transposed_for_many_rows) {
    Arena *arena = arena_new(NULL);
    const Case c = {"tf32 of any rows",
                    "graph g(x: f32[M, 4096], w: f32[4096, 4096]) -> (y: f32[M, 4096]) {\n"
                    "  y = matmul(x, w, precision=\"tf32\")\n}\n",
                    1, 0};
    const Plan *plan = lay_out(arena, &c, TARGET_SM_90A);
    const DimTab *tab = plan->graph->dims;
    const int64_t given[] = {64, 4096};
    cr_assert_eq(plan->kernels.n, 3);
    cr_assert(kernel_has_alternative(&plan->kernels.data[0]));
    cr_expect_eq(plan_n_alternatives(plan, plan->kernels.data[0].choice), 2);
    cr_expect_null(plan_verify(plan, arena));
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        int64_t values[DIM_MAX_SYMBOLS] = {given[i], 1, 1};
        dim_follow_rules(tab, values);
        for (uint32_t k = 0; k < plan->kernels.n; k++)
            cr_expect_eq(kernel_starts(plan, &plan->kernels.data[k], values), (k > 0) == (i > 0),
                         "%d rows: kernel %u", (int)given[i], k);
        const Buffer *copy = &plan->buffers.data[plan->buffers.n - 1];
        cr_expect_eq(dim_number(tab, buffer_bytes(plan->graph->dims, copy), values),
                     i ? 4096.0 * 4096 * 4 : 0);
    }
    arena_free(arena);
}

/* Where all extents are open, the depth may decide. */
Test(pad_dynamic, tf32_operands_are_transposed_for_deep_matmuls) {
    Arena *arena = arena_new(NULL);
    const Case c = {"tf32 of any extents",
                    "graph g(x: f32[K, M], w: f32[K, N]) -> (y: f32[M, N]) {\n"
                    "  y = matmul(transpose(x), w, precision=\"tf32\")\n}\n",
                    2, 0};
    const Plan *plan = lay_out(arena, &c, TARGET_SM_90A);
    cr_assert_eq(plan->kernels.n, 4);
    const Choice *choice = plan->kernels.data[0].choice;
    cr_assert(kernel_has_alternative(&plan->kernels.data[0]));
    cr_expect_eq(plan_n_alternatives(plan, choice), 3);
    cr_expect_eq(predicate_dim(&choice->condition.when, TERM_RANGE),
                 kernel_axis_extent(&plan->kernels.data[0], gemm_axis_k(&plan->kernels.data[0])));
    cr_expect_null(plan_verify(plan, arena));
    arena_free(arena);
}

/* Pitches and widths are what the rules say, addresses being aligned. */
Test(pad_dynamic, symbols_follow_their_rules) {
    static const struct {
        const char *name;
        int64_t m, n, k, pitch, width;
    } expected[] = {{"x", 300, 300, 4096, 4096, 0},
                    {"x", 300, 300, 1001, 1024, 1024},
                    {"x", 9, 9, 63, 63, 0},
                    {"x", 900, 9, 63, 64, 64},
                    {"x", 9, 9, 257, 320, 320},
                    {"x", 4000, 4001, 100, 128, 128},
                    {"x", 4000, 4000, 4040, 4040, 0} /* along k */,
                    {"w", 1024, 4040, 300, 4040, 0} /* read by few */,
                    {"w", 1025, 4040, 300, 4096, 4096},
                    {"w", 1025, 4048, 300, 4048, 0}};
    Arena *arena = arena_new(NULL);
    const Plan *plan = lay_out(arena, &cases[0], TARGET_SM_90A);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        int64_t values[DIM_MAX_SYMBOLS] = {expected[i].m, expected[i].n, expected[i].k};
        dim_follow_rules(plan->graph->dims, values);
        for (uint32_t p = 0; p < plan->dynamic_pitches.n; p++) {
            const DynamicPitch *pitch = &plan->dynamic_pitches.data[p];
            const char *name = expected[i].name;
            if (strcmp(plan->buffers.data[pitch->source].name, name) != 0) continue;
            int64_t own = *name == 'w' ? expected[i].n : expected[i].k;
            bool is_copied = expected[i].width > 0;
            cr_expect_eq(values[pitch->width], expected[i].width, "%zu: %lld", i,
                         (long long)values[pitch->width]);
            cr_expect_eq(values[pitch->pitch], is_copied ? expected[i].width : own);
        }
    }
    arena_free(arena);
}

/* Fused plans get the copies of a GPU. */
static void copy_operands(void *user, Arena *arena, Plan *plan, bool is_fused) {
    uint32_t *n = user, first = plan->kernels.n;
    Packing packing = {.arena = arena, .plan = plan, .dims = plan->graph->dims};
    if (!is_fused) return;
    for (uint32_t i = 0; i < first; i++) {
        const Kernel *kernel = &plan->kernels.data[i];
        if (kernel->form == FORM_GEMM && !kernel->is_init)
            pad_dynamic_copy_operands(&packing, i, target_get(TARGET_SM_90A));
    }
    *n = plan->kernels.n - first;
    if (*n == 0) return;
    pad_dynamic_place_copies(arena, plan, first);
    plan_order_init(arena, plan);
}

/* Without elements; whole; odd and copied; odd and little. */
static const int64_t sizes[][3] = {{3, 5, 0}, {0, 5, 301}, {8, 64, 320}, {9, 33, 301}, {5, 7, 11}};

static bool runs_on_cpu(const Case *c) {
    return c->n_copies && !strstr(c->source, "param"); /* which have panels instead */
}

static void run_case(const Case *c, bool is_unaligned) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    RigOptions options = RIG_OPTIONS_INIT;
    PairCounts counts = {0};
    Pair pair;
    uint32_t n_made = 0;
    options.is_unaligned = is_unaligned;
    compile_with((DriverHook){.user = &n_made, .fused = copy_operands});
    bool ok = pair_compile(&pair, str_format(arena, "%s%s", dims, c->source),
                           target_get(TARGET_CPU), &report) &&
              pair_open(&pair, 0, &options, &report);
    cr_assert(ok, "%s: %s", c->what, text_str(&report));
    cr_expect(n_made > 0, "%s", c->what);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && ok; i++) {
        int64_t values[DIM_MAX_SYMBOLS] = {sizes[i][0], sizes[i][1], sizes[i][2]};
        PairData data = {.fill = FILL_UNIFORM, .seed = 7 + i};
        ok = pair_place(&pair, values, &report) && pair_run(&pair, &data, &counts, &report);
        cr_expect(ok, "%s, size %zu%s: %s", c->what, i, is_unaligned ? ", odd addresses" : "",
                  text_str(&report));
    }
    pair_free(&pair);
    arena_free(arena);
}

Test(pad_dynamic, matmuls_of_copies_are_those_of_the_operands, .timeout = 120) {
    for (uint32_t i = 0; i < N_CASES; i++)
        for (int is_unaligned = 0; is_unaligned < 2 && runs_on_cpu(&cases[i]); is_unaligned++)
            run_case(&cases[i], is_unaligned == 1);
}
