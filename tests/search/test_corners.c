/* Plans serve all values of the dims: at none of a grid of extents, on its diagonal and far off it,
 * is one predicted to be slower than one kernel for each op. What is, is listed with how much. */
#include "search/search.h"

#include "lib/plans.h"
#include "random/random_graph.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const double LOSS = 1.02;
static const TargetId targets[] = {TARGET_SM_90A, TARGET_SM_80, TARGET_CPU};
enum { N_TARGETS = sizeof targets / sizeof *targets, N_SEEDS = 100 };

/* Graphs of dims B and C. */
static const char *const bodies[] = {
    "x: f32[B, C]) -> (y: f32[B, C]) { y = softmax(x) }",
    "x: bf16[B, C]) -> (y: bf16[B, C]) { y = softmax(x) }",
    "x: f32[B, C], g: f32[C], b: f32[C]) -> (y: f32[B, C]) { y = layernorm(x, g, b) }",
    "x: bf16[B, C], g: bf16[C]) -> (y: bf16[B, C]) { y = rmsnorm(x, g) }",
    "x: f32[B, C]) -> (y: f32[B]) { y = logsumexp(x, axis=1) }",
    "x: f32[B, C]) -> (y: f32[B], i: i32[B]) { y = max(x, axis=1); i = argmax(x, axis=1) }",
    "x: f32[B, C]) -> (y: f32[B]) { y = sum(x * x, axis=1) }",
    "x: f32[B, C]) -> (y: f32[C]) { y = sum(x * x, axis=0) }",
    "x: f32[B, C]) -> (y: f32[B, C]) { y = softmax(x, axis=0) }",
    "x: f16[B, C]) -> (y: f16[B, C]) { y = x - mean(x, axis=0, keep=true) }",
    "x: f32[B, C]) -> (y: f32[]) { y = sum(exp(x)) }",
    "x: f32[B, C], z: f32[B, C]) -> (y: f32[B, C]) { y = softmax(x) * softmax(z) }",
    "x: bf16[B, C], r: bf16[B, C], g: bf16[C], b: bf16[C])"
    " -> (h: bf16[B, C], y: bf16[B, C]) {\n  h = x + r; y = layernorm(h, g, b) }",
    "x: bf16[B, C], g: bf16[C])"
    " -> (y: bf16[B, C]) { y = softmax(rmsnorm(x, g) * const(2.0, bf16)) }",
    "x: f32[B, C], z: f32[C]) -> (y: f32[B, C]) { y = tanh(x) * z + exp(z) }",
    "x: f32[B, C]) -> (y: f32[C, B]) { y = gelu(transpose(x)) }",
    "x: f32[B, 64], z: f32[C, 64])"
    " -> (y: f32[B + C, 64]) { y = concat([exp(x), gelu(z)], axis=0) }",
    "x: bf16[B, 512], w: bf16[512, C]) -> (y: bf16[B, C]) { y = relu(x @ w) }",
    "x: bf16[B, C], w: bf16[C, 512]) -> (y: bf16[B, 512]) { y = gelu(x @ w) }",
    "x: bf16[B, 4096], w: bf16[4096, 4096], r: bf16[B, 4096])"
    " -> (y: bf16[B, 4096]) {\n  y = silu(x @ w) + r }",
    "x: f32[B, 256], w: f32[256, C]) -> (y: f32[B, C]) { y = softmax(x @ w) }",
    "x: bf16[B, 256], w: bf16[256, C]) -> (y: bf16[B]) { y = sum(relu(x @ w), axis=1) }",
    "x: bf16[B, C], z: bf16[B, C], w: bf16[C, 256]) -> (y: bf16[B, 256]) { y = (x + z) @ w }",
    "x: bf16[B, 1024], w: bf16[1024, C], s: bf16[C]) -> (y: bf16[B, C]) { y = x @ (w * s) }",
    "x: bf16[B, C], w: bf16[C, 1024], v: bf16[C, 1024])"
    " -> (y: bf16[B, 1024]) {\n  y = silu(x @ w) * (x @ v) }",
    "x: bf16[B, C], g: bf16[C], w: bf16[C, 512])"
    " -> (y: bf16[B, 512]) { y = rmsnorm(x, g) @ w }",
    "x: f32[B, 128256]) -> (y: f32[B, 128256]) { y = softmax(x) }",
    "x: f32[B, 50257]) -> (y: f32[B]) { y = logsumexp(x, axis=1) }",
    "x: bf16[B, 4, 200000], g: bf16[200000]) -> (y: bf16[B, 4, 200000]) { y = rmsnorm(x, g) }",
    "x: f32[1, C]) -> (y: f32[1, C]) { y = softmax(x) }",
    "x: bf16[32, C], g: bf16[C], b: bf16[C]) -> (y: bf16[32, C]) { y = layernorm(x, g, b) }",
    "x: f64[B, C]) -> (y: f64[B, C]) { y = softmax(x) }",
    "x: bf16[B, 1024], w: bf16[1024, C]) -> (y: bf16[B, C]) { y = softmax(x @ w) }",
    "x: bf16[B, 1024], w: bf16[1024, C], b: bf16[C])"
    " -> (y: bf16[B, C]) { y = gelu(x @ w + b) }",
    "x: f32[B, C], w: f32[C, 64]) -> (y: f32[B, 64]) { y = softmax(x @ w) }",
    "x: bf16[B, 1024], w: bf16[1024, C], r: bf16[B, C], g: bf16[C])"
    " -> (y: bf16[B, C]) {\n  y = rmsnorm(x @ w + r, g) }",
    "q: bf16[B, C, 64], k: bf16[B, C, 64], v: bf16[B, C, 64])"
    " -> (y: bf16[B, C, 64]) {\n  y = softmax(q @ transpose(k, [0, 2, 1])) @ v }",
};

/* What is predicted to be slower at some extents; why is in docs/design/cost-model.md. */
static const struct {
    const char *part; /* text in the body */
    TargetId target;
    double loss;
} known[] = {
    {"sum(x * x, axis=1)", TARGET_SM_90A, 1.10},
    {"i = argmax(x, axis=1)", TARGET_SM_90A, 1.10},
    {"sum(relu(x @ w), axis=1)", TARGET_SM_90A, 1.13},
    {"sum(x * x, axis=0)", TARGET_SM_90A, 1.27},
    {"sum(x * x, axis=0)", TARGET_SM_80, 1.09},
    {"w: bf16[C, 512]) -> (y", TARGET_SM_80, 1.03},
    {"f64[B, C]) { y = softmax", TARGET_SM_80, 1.04},
    {"sum(exp(x))", TARGET_CPU, 1.19},
    {"softmax(x, axis=0)", TARGET_CPU, 1.03},
    {"w: bf16[C, 512]) -> (y", TARGET_CPU, 1.03},
    {"gelu(transpose(x))", TARGET_CPU, 1.20},
    {"tanh(x) * z + exp(z)", TARGET_CPU, 1.07},
};

static double loss_of(const char *body, TargetId target) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(body, known[i].part) && known[i].target == target) return known[i].loss;
    return LOSS;
}

static const int64_t extents[] = {1,     2,     7,     8,      64,     100,    129,
                                  256,   1024,  4096,  16384,  20001,  32768,  36001,
                                  40000, 50257, 65536, 100003, 128256, 200000, 1048576};
enum { N_EXTENTS = sizeof extents / sizeof *extents };

/* The plan for all extents, and one kernel for each op. */
typedef struct Pair {
    TargetId target;
    Plan *fused, *apart;
} Pair;

static Plan *planned(Arena *arena, const char *source, TargetId target, bool off) {
    const Card *card = card_of_target(target_get(target));
    Module *module = plans_parse(arena, source);
    Plan *plan = plans_price(arena, module, 0, off, target, card, NULL).plan;
    cr_assert(plan, "%s", source);
    return plan;
}

static Pair pair_new(Arena *arena, const char *source, TargetId target) {
    return (Pair){target, planned(arena, source, target, false),
                  planned(arena, source, target, true)};
}

/* Tables of the plan may grow meanwhile, on its own arena. */
static double us_at(const Plan *plan, TargetId target, const int64_t *given) {
    Arena *scratch = arena_new(NULL);
    const int64_t *dims = cost_dims(scratch, plan->graph->dims, given);
    double us = cost_us(scratch, plan, card_of_target(target_get(target)), dims);
    arena_free(scratch);
    return us;
}

/* `given` by symbol. */
static void expect_no_loss(const Pair *pair, const int64_t *given, double loss,
                           const char *source) {
    double us = us_at(pair->fused, pair->target, given);
    double apart = us_at(pair->apart, pair->target, given);
    cr_expect(us <= loss * apart, "%s, dims %lld %lld: %.2f us fused, %.2f unfused\n%s",
              target_get(pair->target)->name, (long long)given[0], (long long)given[1], us, apart,
              source);
}

static void not_given(int64_t given[DIM_MAX_SYMBOLS]) {
    for (int i = 0; i < DIM_MAX_SYMBOLS; i++) given[i] = -1;
}

Test(corners, no_plan_is_predicted_to_be_slower_anywhere) {
    enum { MOST_ELEMS = 1 << 30, LONG = 1048576, SHORT = 8192 };
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        for (size_t t = 0; t < N_TARGETS; t++) {
            int64_t given[DIM_MAX_SYMBOLS], most = bodies[i][0] == 'q' ? SHORT : LONG;
            const char *source = str_format(arena, "dim B in 1..%d\ndim C in 1..%lld\ngraph g(%s\n",
                                            LONG, (long long)most, bodies[i]);
            Pair pair = pair_new(arena, source, targets[t]);
            double loss = loss_of(bodies[i], targets[t]);
            not_given(given);
            for (size_t k = 0; k < (size_t)N_EXTENTS * N_EXTENTS; k++) {
                given[0] = extents[k / N_EXTENTS];
                given[1] = extents[k % N_EXTENTS];
                bool is_short = target_get(targets[t])->device == DEVICE_CPU &&
                                given[1] < COST_SHORT_DIM; /* of which no plan hangs there */
                if (is_short || given[0] * given[1] > MOST_ELEMS || given[1] > most) continue;
                expect_no_loss(&pair, given, loss, source);
            }
            arena_reset(arena);
        }
    arena_free(arena);
}

/* At the ends of all ranges, in all combinations. */
Test(corners, nor_is_that_of_a_random_graph) {
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++)
        for (size_t t = 0; t < N_TARGETS; t++) {
            Arena *arena = arena_new(NULL);
            const char *source = random_graph_source(arena, seed, NULL);
            Pair pair = pair_new(arena, source, targets[t]);
            const DimTab *dims = pair.apart->graph->dims;
            uint32_t n = 0;
            while (n < dim_n_symbols(dims) && !dim_symbol_info(dims, n)->rule) n++;
            for (uint32_t corner = 0; corner < 1u << n; corner++) {
                int64_t given[DIM_MAX_SYMBOLS];
                not_given(given);
                for (uint32_t i = 0; i < n; i++) {
                    const DimSymbol *symbol = dim_symbol_info(dims, i);
                    int64_t least = symbol->lo ? symbol->lo : symbol->multiple;
                    given[i] = corner >> i & 1 ? symbol->hi - symbol->hi % symbol->multiple : least;
                }
                expect_no_loss(&pair, given, LOSS, source);
            }
            arena_free(arena);
        }
}
