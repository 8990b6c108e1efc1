/* Plans serve all values of the dims: at none of a grid of extents, on its diagonal and off it, is
 * one predicted to be slower than one kernel for each op. */
#include "pass/choose.h"

#include "lib/plans.h"
#include "lib/random_graph.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const double LOSS = 1.02;
static const TargetId targets[] = {TARGET_SM_90A, TARGET_SM_80, TARGET_CPU};
enum { N_TARGETS = sizeof targets / sizeof *targets };

/* Of dims B and C. */
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
    "x: bf16[B, C], r: bf16[B, C], g: bf16[C], b: bf16[C]) -> (h: bf16[B, C], y: bf16[B, C]) {\n"
    "  h = x + r; y = layernorm(h, g, b) }",
    "x: bf16[B, C], g: bf16[C]) -> (y: bf16[B, C]) { y = softmax(rmsnorm(x, g) * const(2.0, bf16)) "
    "}",
    "x: f32[B, C], z: f32[C]) -> (y: f32[B, C]) { y = tanh(x) * z + exp(z) }",
    "x: f32[B, C]) -> (y: f32[C, B]) { y = gelu(transpose(x)) }",
    "x: f32[B, 64], z: f32[C, 64]) -> (y: f32[B + C, 64]) { y = concat([exp(x), gelu(z)], axis=0) "
    "}",
    "x: bf16[B, 512], w: bf16[512, C]) -> (y: bf16[B, C]) { y = relu(x @ w) }",
    "x: bf16[B, C], w: bf16[C, 512]) -> (y: bf16[B, 512]) { y = gelu(x @ w) }",
    "x: bf16[B, 4096], w: bf16[4096, 4096], r: bf16[B, 4096]) -> (y: bf16[B, 4096]) {\n"
    "  y = silu(x @ w) + r }",
    "x: f32[B, 256], w: f32[256, C]) -> (y: f32[B, C]) { y = softmax(x @ w) }",
    "x: bf16[B, 256], w: bf16[256, C]) -> (y: bf16[B]) { y = sum(relu(x @ w), axis=1) }",
    "x: bf16[B, C], z: bf16[B, C], w: bf16[C, 256]) -> (y: bf16[B, 256]) { y = (x + z) @ w }",
    "x: bf16[B, 1024], w: bf16[1024, C], s: bf16[C]) -> (y: bf16[B, C]) { y = x @ (w * s) }",
    "x: bf16[B, C], w: bf16[C, 1024], v: bf16[C, 1024]) -> (y: bf16[B, 1024]) {\n"
    "  y = silu(x @ w) * (x @ v) }",
    "x: bf16[B, C], g: bf16[C], w: bf16[C, 512]) -> (y: bf16[B, 512]) { y = rmsnorm(x, g) @ w }",
    "x: f32[B, 128256]) -> (y: f32[B, 128256]) { y = softmax(x) }",
    "x: f32[B, 50257]) -> (y: f32[B]) { y = logsumexp(x, axis=1) }",
    "x: bf16[B, 4, 200000], g: bf16[200000]) -> (y: bf16[B, 4, 200000]) { y = rmsnorm(x, g) }",
    "x: f32[1, C]) -> (y: f32[1, C]) { y = softmax(x) }",
    "x: bf16[32, C], g: bf16[C], b: bf16[C]) -> (y: bf16[32, C]) { y = layernorm(x, g, b) }",
    "x: f64[B, C]) -> (y: f64[B, C]) { y = softmax(x) }",
    "x: bf16[B, 1024], w: bf16[1024, C]) -> (y: bf16[B, C]) { y = softmax(x @ w) }",
    "x: bf16[B, 1024], w: bf16[1024, C], b: bf16[C]) -> (y: bf16[B, C]) { y = gelu(x @ w + b) }",
    "x: f32[B, C], w: f32[C, 64]) -> (y: f32[B, 64]) { y = softmax(x @ w) }",
    "x: bf16[B, 1024], w: bf16[1024, C], r: bf16[B, C], g: bf16[C]) -> (y: bf16[B, C]) {\n"
    "  y = rmsnorm(x @ w + r, g) }",
    "q: bf16[B, C, 64], k: bf16[B, C, 64], v: bf16[B, C, 64]) -> (y: bf16[B, C, 64]) {\n"
    "  y = softmax(q @ transpose(k, [0, 2, 1])) @ v }",
};

static const int64_t extents[] = {1,     2,     7,     8,      64,     100,    129,
                                  256,   1024,  4096,  16384,  20001,  32768,  36001,
                                  40000, 50257, 65536, 100003, 128256, 200000, 1048576};
enum { N_EXTENTS = sizeof extents / sizeof *extents };

typedef struct Pair {
    Module *fused_module, *apart_module;
    Plan *fused, *apart;
} Pair;

static Plan *planned(Arena *arena, const char *source, TargetId target, bool off) {
    const char *errors = "";
    Module *module = plans_parse(arena, source, &errors);
    cr_assert(module, "%s\n%s", errors, source);
    const Card *card = card_of_target(target_get(target));
    Plan *plan = plans_price(arena, module, 0, off, target, card, NULL).plan;
    cr_assert(plan, "%s", source);
    return plan;
}

static double us_at(Arena *arena, const Plan *plan, TargetId target, const int64_t *given) {
    ArenaMark mark = arena_mark(arena);
    const int64_t *dims = cost_dims(arena, plan->graph->dims, given);
    double us = cost_us(arena, plan, card_of_target(target_get(target)), dims);
    arena_rewind(arena, mark);
    return us;
}

Test(corners, sweep) {
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        for (size_t t = 0; t < N_TARGETS; t++) {
            char source[500];
            int most_c = strstr(bodies[i], "q:") ? 8192 : 1048576;
            snprintf(source, sizeof source, "dim B in 1..1048576\ndim C in 1..%d\ngraph g(%s\n",
                     most_c, bodies[i]);
            Plan *fused = planned(arena, source, targets[t], false);
            Plan *apart = planned(arena, source, targets[t], true);
            double worst = 0;
            char msource[600];
            char *brace = strchr(source, '{');
            snprintf(msource, sizeof msource, "%.*s { fuse must %s }", (int)(brace - source),
                     source, brace);
            const char *errors = "";
            Module *mm = plans_parse(arena, msource, &errors);
            Plan *must = mm ? plans_price(arena, mm, 0, false, targets[t],
                                          card_of_target(target_get(targets[t])), NULL)
                                  .plan
                            : NULL;
            if (!must) must = fused;

            for (int b = 0; b < N_EXTENTS; b++)
                for (int c = 0; c < N_EXTENTS; c++) {
                    int64_t given[DIM_MAX_SYMBOLS];
                    for (int k = 0; k < DIM_MAX_SYMBOLS; k++) given[k] = -1;
                    given[0] = extents[b], given[1] = extents[c];
                    if (extents[b] * extents[c] > INT64_C(1) << 30 || extents[c] > most_c) continue;
                    double us = us_at(arena, fused, targets[t], given);
                    double us_apart = us_at(arena, apart, targets[t], given);
                    double held = us_at(arena, must, targets[t], given);
                    if (us > 1.05 * held && us > 1 + held)
                        printf("HELD %s B %lld C %lld %.2f us fused %.2f held %.3f (%.2f apart)\n",
                               target_get(targets[t])->name, (long long)extents[b],
                               (long long)extents[c], us, held, us / held, us_apart);
                    if (us > LOSS * us_apart && us / us_apart > worst) worst = us / us_apart;
                    if (us > LOSS * us_apart)
                        printf("%s B %lld C %lld %.2f us fused %.2f apart %.3f\n",
                               target_get(targets[t])->name, (long long)extents[b],
                               (long long)extents[c], us, us_apart, us / us_apart);
                }
            printf("WORST %.3f %s %u kernels, %s\n", worst, target_get(targets[t])->name,
                   fused->kernels.n, bodies[i]);
            arena_reset(arena);
        }
    arena_free(arena);
}

Test(corners, random) {
    for (uint64_t seed = 1; seed <= 300; seed++)
        for (size_t t = 0; t < N_TARGETS; t++) {
            Arena *arena = arena_new(NULL);
            const char *source = random_graph_source(arena, seed, NULL);
            Plan *fused = planned(arena, source, targets[t], false);
            Plan *apart = planned(arena, source, targets[t], true);
            const DimTab *dims = fused->graph->dims;
            uint32_t n = 0;
            while (n < dim_n_symbols(dims) && !dim_symbol_info(dims, n)->rule) n++;
            for (uint32_t c = 0; c < 1u << n; c++) {
                int64_t given[DIM_MAX_SYMBOLS];
                for (int k = 0; k < DIM_MAX_SYMBOLS; k++) given[k] = -1;
                for (uint32_t k = 0; k < n; k++) {
                    const DimSymbol *i = dim_symbol_info(dims, k);
                    int64_t lo = i->lo ? i->lo : i->multiple;
                    given[k] = c >> k & 1 ? i->hi / i->multiple * i->multiple : lo;
                }
                double us = us_at(arena, fused, targets[t], given);
                double us_apart = us_at(arena, apart, targets[t], given);
                if (us > LOSS * us_apart)
                    printf("RAND seed %d %s c %u %.2f us fused %.2f apart %.3f\n", (int)seed,
                           target_get(targets[t])->name, c, us, us_apart, us / us_apart);
            }
            arena_free(arena);
        }
}
