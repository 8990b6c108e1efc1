/* Predicates, conditions and choices: the compiler's evaluator against the runtime's, which reads
 * them in the manifest, over grids of extents and addresses; what dumps print of them. */
#include "artifact/manifest.h"
#include "plan/rt_predicate.h"
#include "lib/plans.h"
#include "machine/card.h"
#include "memory/memplan.h"
#include "plan/launch.h"

#include <criterion/criterion.h>
#include <string.h>

static const char source[] = "dim M in 1..64\ndim N in 1..64\n"
                             "graph g(x: f32[M, N], w: f32[M, N]) -> (y: f32[M, N]) {\n"
                             "  y = x + w\n}\n";
enum { M, N, EDGE = 20, N_ARGS = 3 };

typedef struct World {
    Arena *arena;
    Module *module;
    Plan *plan;
    DimTab *dims;
} World;

static World world_new(void) {
    World w = {.arena = arena_new(NULL)};
    w.module = plans_parse(w.arena, source);
    w.plan = plans_fuse(w.arena, w.module, 0, false);
    w.dims = w.module->dims;
    Kernel *kernel = &w.plan->kernels.data[0];
    cr_assert(w.plan->kernels.n == 1 && kernel->args.n == N_ARGS);
    Variant variants[2];
    for (uint32_t v = 0; v < 2; v++)
        variants[v] = (Variant){.symbol = str_format(w.arena, "k%u", v),
                                .sched = {.threads = 128},
                                .grid = kernel_n_rows(kernel)};
    kernel_set_variants(w.arena, kernel, variants, 2);
    plan_launch_singly(w.arena, w.plan);
    cr_assert(memplan_place(w.arena, w.plan));
    return w;
}

static const char *text_of(const World *w, const Plan *plan, TargetId target) {
    Diags diags = {.arena = w->arena};
    ManifestInput input = {.module = w->module,
                           .plans = &plan,
                           .target = target_get(target),
                           .numerics = "strict",
                           .compiler = "1.2.3"};
    const char *text = manifest_text(w->arena, &input, &diags);
    cr_assert_not_null(text);
    return text;
}

static DimId dim_of(const World *w, uint32_t symbol) {
    return dim_symbol(w->dims, symbol);
}

/* What the maker makes of an empty predicate, and how it is printed. */
typedef struct Case {
    const char *text;
    void (*make)(const World *w, Predicate *predicate);
} Case;

static void make_aligned(const World *w, Predicate *p) {
    (void)w;
    predicate_align(p, 16, 5);
}
static void make_multiple(const World *w, Predicate *p) {
    predicate_require_multiple(p, dim_of(w, M), 4);
}
static void make_most(const World *w, Predicate *p) {
    predicate_set_range(p, dim_mul(w->dims, dim_of(w, M), dim_of(w, N)), INT64_MIN, 100);
}
static void make_least(const World *w, Predicate *p) {
    predicate_set_range(p, dim_of(w, N), 7, INT64_MAX);
}
static void make_range(const World *w, Predicate *p) {
    predicate_set_range(p, dim_of(w, N), 5, 17);
}
static void make_negative(const World *w, Predicate *p) {
    DimId twice = dim_mul_const(w->dims, dim_of(w, M), 2);
    predicate_set_range(p, dim_sub(w->dims, twice, dim_of(w, N)), INT64_MIN, 0);
}
static void make_two(const World *w, Predicate *p) {
    predicate_require_multiple(p, dim_of(w, N), 2);
    predicate_require_multiple(p, dim_of(w, M), 3);
    predicate_require_multiple(p, dim_of(w, N), 4);
}
static void make_all(const World *w, Predicate *p) {
    make_two(w, p);
    make_range(w, p);
    make_aligned(w, p);
}

static const Case cases[] = {{", aligned 16", make_aligned},
                             {", M mult 4", make_multiple},
                             {", M*N <= 100", make_most},
                             {", N >= 7", make_least},
                             {", 5 <= N <= 17", make_range},
                             {", 2*M - N <= 0", make_negative},
                             {", N mult 4, M mult 3", make_two},
                             {", aligned 16, 5 <= N <= 17, N mult 4, M mult 3", make_all}};
enum { N_CASES = sizeof cases / sizeof *cases };

/* Addresses of a run: some argument's is off by a few bytes. */
static void set_addresses(uint32_t n, uint64_t addresses[N_ARGS], void *args[N_ARGS]) {
    static const uint64_t off[] = {0, 4, 8, 16};
    static _Alignas(64) char block[128];
    for (uint32_t i = 0; i < N_ARGS; i++) {
        char *at = block + (i == n / 4 ? off[n % 4] : 0);
        args[i] = at;
        addresses[i] = (uint64_t)(uintptr_t)at;
    }
}

static void check_at(const RtManifest *rt, const Case *c, const Predicate *predicate,
                     const DimTab *dims, const int64_t *values) {
    for (uint32_t n = 0; n < 4 * N_ARGS; n++) {
        uint64_t addresses[N_ARGS];
        void *args[N_ARGS];
        set_addresses(n, addresses, args);
        PredicateAt at = {.dims = dims, .values = values, .addresses = addresses};
        cr_expect_eq(predicate_holds_at(predicate, &at), rt_variant_holds(rt, 0, values, args),
                     "%s at %d, %d, addresses %u", c->text, (int)values[M], (int)values[N], n);
    }
}

Test(predicate, holds_where_the_runtime_says) {
    World w = world_new();
    Predicate *predicate = &w.plan->kernels.data[0].variants[0].predicate;
    for (uint32_t i = 0; i < N_CASES; i++) {
        memset(predicate, 0, sizeof *predicate);
        cases[i].make(&w, predicate);
        RtManifest *rt = rt_manifest_read(text_of(&w, w.plan, TARGET_SM_80));
        for (int64_t m = 1; m <= EDGE; m++)
            for (int64_t n = 1; n <= EDGE; n++)
                check_at(rt, &cases[i], predicate, w.dims, (int64_t[]){m, n});
        rt_manifest_free(rt);
    }
    arena_free(w.arena);
}

Test(predicate, prints_its_terms_in_order) {
    World w = world_new();
    for (uint32_t i = 0; i < N_CASES; i++) {
        Predicate predicate = {.n = 0};
        Text out = {.arena = w.arena};
        cases[i].make(&w, &predicate);
        predicate_print(&predicate, w.dims, &out);
        cr_expect_str_eq(text_str(&out), cases[i].text);
    }
    arena_free(w.arena);
}

/* What is certain, and what lowering knows, is so at all extents where the predicate holds. */
Test(predicate, says_what_is_known_where_it_holds) {
    World w = world_new();
    Predicate p = {.n = 0};
    make_all(&w, &p);
    cr_expect_eq(predicate_multiple(&p, dim_of(&w, N)), 4);
    cr_expect_eq(predicate_multiple(&p, dim_of(&w, M)), 3);
    cr_expect_eq(predicate_most(&p, dim_of(&w, N)), 17);
    cr_expect_eq(predicate_most(&p, dim_of(&w, M)), INT64_MAX);
    cr_expect(predicate_alignment(&p, 2) == 16 && predicate_alignment(&p, 1) == 1);
    predicate_drop(&p, TERM_MULTIPLE);
    cr_expect(p.n == 2 && predicate_dim(&p, TERM_MULTIPLE) == DIM_NONE);
    for (uint32_t i = 0; i < p.n; i++)
        cr_expect_not(predicate_term_is_certain(&p.terms[i], w.dims, 1));
    predicate_set_range(&p, dim_of(&w, N), 0, 64);
    predicate_require_multiple(&p, dim_mul_const(w.dims, dim_of(&w, M), 8), 4);
    for (uint32_t i = 0; i < p.n; i++) cr_expect(predicate_term_is_certain(&p.terms[i], w.dims, 5));
    arena_free(w.arena);
}

/* The dim of a condition, which grids are multiplied by, is 1 exactly where it holds. */
Test(condition, has_a_dim_that_is_one_where_it_holds) {
    World w = world_new();
    Condition c = {.n_unless = 0};
    predicate_set_range(&c.when, dim_mul(w.dims, dim_of(&w, M), dim_of(&w, N)), 40, INT64_MAX);
    Predicate *unless = condition_except(&c);
    predicate_set_range(unless, dim_of(&w, N), INT64_MIN, 12);
    predicate_require_multiple(unless, dim_of(&w, N), 4);
    predicate_set_range(condition_except(&c), dim_of(&w, M), INT64_MIN, 2);
    DimId dim = condition_dim(w.dims, &c);
    cr_assert_neq(dim, DIM_NONE);
    uint32_t n_holding = 0;
    for (int64_t m = 1; m <= EDGE; m++)
        for (int64_t n = 1; n <= EDGE; n++) {
            int64_t values[] = {m, n}, value = -1;
            PredicateAt at = {.dims = w.dims, .values = values};
            bool holds = condition_holds_at(&c, &at);
            bool wanted = m * n >= 40 && !(n <= 12 && n % 4 == 0) && m > 2;
            cr_expect(dim_eval(w.dims, dim, values, &value) && value == holds && holds == wanted,
                      "%d, %d", (int)m, (int)n);
            n_holding += holds;
        }
    cr_expect(n_holding > 0 && n_holding < EDGE * EDGE);
    Text out = {.arena = w.arena};
    condition_print(&c, w.dims, &out);
    cr_expect_str_eq(text_str(&out), "M*N >= 40, if N > 12 or N is no multiple of 4, if M > 2");
    arena_free(w.arena);
}

/* In every run exactly one version of a choice has a factor of 1: the version that the run
 * takes. */
Test(choice, takes_the_version_whose_factor_is_one) {
    World w = world_new();
    Condition c = {.n_unless = 0};
    predicate_set_range(&c.when, dim_of(&w, M), 8, INT64_MAX);
    const Choice *choice = choice_new(w.arena, w.dims, "many", &c);
    cr_assert(choice);
    DimId sizes[N_VERSIONS];
    for (int v = 0; v < N_VERSIONS; v++)
        sizes[v] = choice_scale(w.dims, choice, (Version)v, dim_of(&w, N));
    cr_expect_eq(choice_scale(w.dims, NULL, VERSION_DEFAULT, dim_of(&w, N)), dim_of(&w, N));
    for (int64_t m = 1; m <= EDGE; m++) {
        int64_t values[DIM_MAX_SYMBOLS] = {m, 5};
        dim_follow_rules(w.dims, values);
        Version taken = choice_taken(choice, &(PredicateAt){.dims = w.dims, .values = values});
        cr_expect_eq(taken, m >= 8 ? VERSION_ALTERNATIVE : VERSION_DEFAULT);
        for (int v = 0; v < N_VERSIONS; v++)
            cr_expect_eq(dim_number(w.dims, sizes[v], values), v == (int)taken ? 5 : 0, "%d, %d",
                         (int)m, v);
    }
    predicate_set_range(&c.when, dim_const(w.dims, 4), 1, INT64_MAX);
    cr_expect_null(choice_new(w.arena, w.dims, "always", &c));
    arena_free(w.arena);
}

/* Pitches of operands that are copied where their rows are odd. */
Test(condition, of_a_pitch_holds_where_the_runtime_says) {
    static const char product[] = "dim M in 1..4096\ndim N in 1..4096\ndim K in 1..4096\n"
                                  "graph g(x: f16[M, K], w: f16[K, N]) -> (y: f16[M, N]) {\n"
                                  "  y = x @ w\n}\n";
    static const int64_t extents[] = {1, 8, 64, 65, 72, 80, 1000, 1024, 1025, 4096};
    enum { N_EXTENTS = sizeof extents / sizeof *extents };
    World w = {.arena = arena_new(NULL)};
    w.module = plans_parse(w.arena, product);
    const Card *card = card_of_target(target_get(TARGET_SM_90A));
    w.plan = plans_price(w.arena, w.module, 0, false, TARGET_SM_90A, card, NULL).plan;
    w.dims = w.module->dims;
    RtManifest *rt = rt_manifest_read(text_of(&w, w.plan, TARGET_SM_90A));
    cr_assert(rt_n_pitches(rt) == 2 && w.plan->dynamic_pitches.n == 2);
    static _Alignas(64) char block[64];
    for (uint32_t i = 0; i < N_EXTENTS * N_EXTENTS * N_EXTENTS; i++) {
        int64_t values[DIM_MAX_SYMBOLS] = {extents[i % N_EXTENTS],
                                           extents[i / N_EXTENTS % N_EXTENTS],
                                           extents[i / N_EXTENTS / N_EXTENTS]};
        dim_follow_rules(w.dims, values);
        for (uint32_t p = 0; p < 2; p++) {
            const DynamicPitch *own = &w.plan->dynamic_pitches.data[p];
            int64_t pitch, width;
            rt_pitch(rt, p, block, values, &pitch, &width);
            cr_expect(values[own->pitch] == pitch && values[own->width] == width, "%u, %u", i, p);
        }
    }
    rt_manifest_free(rt);
    arena_free(w.arena);
}
