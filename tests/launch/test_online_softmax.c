/* The rewrite to one pass, evaluated on the host as the plan has it: held to its bound against a
 * softmax in double, on scores that are hard for it; and mistakes in it pass the bound. What a GPU
 * makes of it is for `fusec verify --rewrite` there. */
#include "lib/compile.h"
#include "plan/rewrite.h"
#include "random/rng.h"

#include <criterion/criterion.h>

enum { M = 24, N = 322, DEPTH = 32, COLUMNS = 40, BATCHES = 2 };

typedef struct Program {
    const char *dtype, *scores, *rows;
    bool is_limited;
} Program;

#define SOFTMAX "softmax(s)"
#define SOFTMAX_2 "cast(e / sum(e, keep=true, axis=-1), bf16)"
#define SEEN(columns) "where(iota([M, N], axis=1) <= iota([M, N], axis=0)" columns ", t, -inf)"
static const Program programs[] = {{"bf16", "t", SOFTMAX, false},
                                   {"f16", "t", SOFTMAX, false},
                                   {"bf16", "t", SOFTMAX_2, false},
                                   {"bf16", SEEN(""), SOFTMAX, true}};
enum { N_PROGRAMS = sizeof programs / sizeof *programs };

/* q is 0, so that the scores are b. */
static const char *source_of(Arena *arena, const Program *p) {
    const char *d = p->dtype;
    return str_format(arena,
                      "dim M in 1..64\ndim N in 130..1024 mult 2\n"
                      "graph a(q: %s[2, M, 32], k: %s[2, N, 32], v: %s[2, N, 40], b: %s[M, N])"
                      " -> (o: %s[2, M, 40]) {\n  fuse must {\n"
                      "    t = q @ transpose(k, perm=[0, 2, 1]) + b\n    s = %s\n"
                      "    x = cast(s, f32)\n    e = exp2(x - max(x, keep=true, axis=-1))\n"
                      "    p = %s\n  }\n  o = p @ v\n}\n",
                      d, d, d, d, d, p->scores, p->rows);
}

typedef double Pattern(Rng *rng, int64_t row, int64_t j);

static double random_score(Rng *rng, int64_t row, int64_t j) {
    (void)row, (void)j;
    return rng_uniform(rng, -4, 4);
}

/* Every tile has a greater one than those before. */
static double growing(Rng *rng, int64_t row, int64_t j) {
    return random_score(rng, row, j) / 8 + (double)j * (double)(row + 1) / 16;
}

static double falling(Rng *rng, int64_t row, int64_t j) {
    return -growing(rng, row, j);
}

static double equal(Rng *rng, int64_t row, int64_t j) {
    (void)rng, (void)j;
    return (double)row * 3 - 20;
}

static double spread(Rng *rng, int64_t row, int64_t j) {
    (void)row, (void)j;
    return ldexp(rng_uniform(rng, -0.5, 0.5), (int)rng_below(rng, 16));
}

/* Masked at random, whole tiles and a whole row too. */
static double masked(Rng *rng, int64_t row, int64_t j) {
    bool is_off = row == 3 || rng_below(rng, 2) || (row % 4 == 1 && j < 200);
    return is_off ? (double)-INFINITY : random_score(rng, row, j);
}

static double last_alone(Rng *rng, int64_t row, int64_t j) {
    return j == N - 1 ? random_score(rng, row, j) : (double)-INFINITY;
}

static double special(Rng *rng, int64_t row, int64_t j) {
    if (j == 100 + row && row % 3 == 0) return NAN;
    if (j == 300 - row && row % 3 == 1) return INFINITY;
    return random_score(rng, row, j);
}

static Pattern *const patterns[] = {random_score, growing, falling,    equal,
                                    spread,       masked,  last_alone, special};
enum { N_PATTERNS = sizeof patterns / sizeof *patterns };

/* A plan, and the values of its graph's nodes. */
typedef struct Bench {
    Arena *arena;
    Compiled compiled;
    const Plan *plan;
    const uint8_t **bytes;
    Tensor *values;
    RewriteCase c;
} Bench;

static DriverHook hook;

static void permit(void *user, Arena *arena, Plan *plan, bool is_fused) {
    (void)user, (void)arena, (void)is_fused;
    plan->may_rewrite = true;
}

static void fill(Tensor *tensor, Rng *rng, uint32_t input, Pattern *scores) {
    for (int64_t i = 0; i < tensor_n_elems(tensor); i++) {
        double value = input == 0   ? 0
                       : input == 3 ? scores(rng, i / N, i % N)
                                    : rng_uniform(rng, -1, 1);
        tensor->data[i] = dtype_round(tensor->dtype, value);
    }
}

/* Inputs q, k, v, b. */
static void evaluate_graph(Bench *b, const Graph *graph, Pattern *scores, uint64_t seed) {
    static const int64_t dims[] = {M, N};
    Tensor inputs[4];
    const char *error = NULL;
    Rng rng = rng_new(seed);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert(
            interp_shape(graph, graph->inputs.data[i].node, dims, &inputs[i], b->arena, &error));
        cr_assert(
            tensor_new(b->arena, inputs[i].dtype, inputs[i].rank, inputs[i].dims, &inputs[i]));
        fill(&inputs[i], &rng, i, scores);
    }
    b->values = arena_array(b->arena, Tensor, graph->nodes.n);
    b->bytes = arena_array(b->arena, const uint8_t *, graph->nodes.n);
    cr_assert(interp_graph(graph, dims, inputs, NULL, b->values, b->arena, &error), "%s", error);
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        size_t n = (size_t)tensor_n_elems(&b->values[id]) * dtype_bytes(b->values[id].dtype);
        uint8_t *bytes = arena_array(b->arena, uint8_t, n);
        tensor_store(&b->values[id], bytes);
        b->bytes[id] = bytes;
    }
}

static void open(Bench *b, const char *source, Pattern *scores, uint64_t seed) {
    static const int64_t dims[DIM_MAX_SYMBOLS] = {M, N};
    Rewrite rewrite;
    uint32_t n = 0;
    b->arena = arena_new(NULL);
    compile_with(hook);
    cr_assert(compile_source(&b->compiled, source, target_get(TARGET_SM_80), COMPILE_FUSED), "%s",
              b->compiled.messages);
    compile_with((DriverHook){.fused = NULL});
    b->plan = b->compiled.driver.plans[0];
    for (uint32_t k = 0; k < b->plan->kernels.n && !n; k++) n = rewrite_of(b->plan, k, &rewrite);
    cr_assert_eq(n, 1, "%s", source);
    evaluate_graph(b, b->plan->graph, scores, seed);
    cr_assert(rewrite_open(b->plan, &rewrite, dims, b->bytes, b->arena, &b->c));
    cr_assert(b->c.n == N && b->c.n_columns == COLUMNS && b->c.n_rows == BATCHES * M);
}

static void shut(Bench *b) {
    compile_free(&b->compiled);
    arena_free(b->arena);
}

/* Softmax and matmul in double precision, without the code under test. */
static double direct(const Bench *b, const double *x, const double *v, int64_t column) {
    double greatest = -INFINITY, total = 0, sum = 0;
    bool is_two = b->c.rewrite.power == PRIM_EXP2;
    for (int64_t j = 0; j < N; j++) greatest = x[j] > greatest || isnan(x[j]) ? x[j] : greatest;
    for (int64_t j = 0; j < N; j++) {
        double weight = is_two ? exp2(x[j] - greatest) : exp(x[j] - greatest);
        total += isnan(x[j]) ? (double)NAN : weight;
        sum += weight * v[j * COLUMNS + column];
    }
    return sum / total;
}

/* The worst share of the bound that any element takes; infinite where one is out of it. */
static double worst_share(const Bench *b) {
    double x[N], worst = 0;
    double *v = arena_array(b->arena, double, (size_t)N *COLUMNS);
    RewriteElement judged[COLUMNS];
    double actual[COLUMNS];
    for (int64_t row = 0; row < b->c.n_rows; row++) {
        rewrite_load_exponents(&b->c, row, x);
        rewrite_load_values(&b->c, row, v);
        rewrite_judge(&b->c, x, v, b->arena, judged);
        cr_assert(rewrite_evaluate(&b->c, row, v, b->arena, actual));
        for (int64_t k = 0; k < COLUMNS; k++) {
            double exact = dtype_round(b->c.rewrite.rounded, direct(b, x, v, k));
            cr_assert(dtype_ulps(b->c.rewrite.rounded, exact, judged[k].exact) <= 1, "%g is not %g",
                      judged[k].exact, exact); /* 1: what is halfway */
            if (isnan(exact) && isnan(actual[k])) continue;
            double share = fabs(actual[k] - exact) / judged[k].bound;
            if (!(share <= worst)) worst = isnan(share) ? (double)INFINITY : share;
        }
    }
    return worst;
}

Test(online_softmax, hard_scores_stay_within_the_bound, .timeout = 300) {
    hook = (DriverHook){.fused = permit};
    for (uint32_t i = 0; i < N_PROGRAMS; i++)
        for (uint32_t p = 0; p < N_PATTERNS; p++) {
            Bench b;
            Arena *arena = arena_new(NULL);
            open(&b, source_of(arena, &programs[i]), patterns[p], 1 + p);
            cr_expect_eq(b.c.rewrite.is_limited, programs[i].is_limited);
            double share = worst_share(&b);
            cr_expect(share <= 1, "program %u, pattern %u: %g of the bound", i, p, share);
            /* The bound says something: rounding of weights and of the result take much of it. */
            cr_expect(p > 0 || share > 0.25, "program %u: %g of the bound", i, share);
            shut(&b);
            arena_free(arena);
        }
}
