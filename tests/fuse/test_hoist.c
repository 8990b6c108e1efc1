/* Init steps in plans: what is hoisted and what is not, layouts, and what the verifier refuses. */
#include "explain/explain.h"
#include "explain/must_check.h"
#include "layout/layout.h"
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

typedef struct Fixture {
    Arena *arena;
    Plan *plan;
} Fixture;

static PricedPlan price_source(Arena *arena, const char *source, bool off) {
    Module *module = plans_parse(arena, source);
    PricedPlan priced =
        plans_price(arena, module, 0, off, TARGET_SM_90A, card_get(CARD_H200), NULL);
    cr_assert(priced.cost, "%s", source);
    return priced;
}

static Fixture fuse_source(const char *source, bool off) {
    Fixture f = {.arena = arena_new(NULL)};
    Module *module = plans_parse(f.arena, source);
    f.plan = plans_fuse(f.arena, module, 0, off);
    return f;
}

/* A graph of input x f32[B, 64] and params w f32[64, 32], s f32[32] and g f32[64]. */
static Fixture fuse_body(const char *outputs, const char *body, bool off) {
    Arena *arena = arena_new(NULL);
    const char *source = str_format(arena,
                                    "dim B in 1..4096\ngraph g(x: f32[B, 64]) -> (%s) {\n"
                                    "  param w: f32[64, 32] = \"w\"\n  param s: f32[32] = \"s\"\n"
                                    "  param g: f32[64] = \"g\"\n%s}\n",
                                    outputs, body);
    Fixture f = fuse_source(source, off);
    arena_free(arena);
    return f;
}

typedef struct Case {
    const char *what, *outputs, *body;
    uint32_t n_init, n_run;
} Case;

static const Case cases[] = {
    {"a scaled weight", "y: f32[B, 32]", "  y = x @ (w * s)\n", 1, 1},
    {"a reduction of a param", "y: f32[B, 64]", "  y = x * max(g)\n", 1, 1},
    {"a weight that is normalised", "y: f32[B, 32]", "  y = x @ softmax(w, axis=0)\n", 1, 1},
    {"a costly function of a small param", "y: f32[B, 64]", "  y = x * exp(sin(g))\n", 1, 1},
    {"such a function that a view gives another shape", "y: f32[B, 8, 8]",
     "  y = reshape(x, [B, 8, 8]) * reshape(exp(sin(g)), [1, 8, 8])\n", 1, 1},
    {"a cheap one is computed again", "y: f32[B, 64]", "  y = x * (g + 1.0)\n", 0, 1},
    {"a table of literals", "y: f32[B, 64]",
     "  y = x * cos(exp(cast(iota([64], axis=0), f32) * 0.01))\n", 1, 1},
    {"one that grows with the input", "y: f32[B, 64]",
     "  y = x * cos(exp(cast(iota([B, 64], axis=0), f32) * 0.01))\n", 0, 1},
    {"an output", "y: f32[32]", "  y = s * s + 1.0\n", 0, 1},
    {"an output that is used", "m: f32, y: f32[B, 64]", "  m = max(g)\n  y = x * m\n", 0, 2},
    {"behind an output", "m: f32, y: f32[B, 64]", "  m = max(g)\n  y = x * exp(sin(g * m))\n", 0,
     2},
    {"a chain of reductions", "y: f32[B, 64]", "  y = x * sum(exp(w - max(w)))\n", 1, 1},
    {"one that is not ready before the run's own", "y: f32[B, 32]",
     "  h = x[:, :32]\n  y = h - max(h, axis=1, keep=true) + min(w[0])\n", 1, 1},
    {"several that share a kernel", "y: f32[B, 64]", "  y = x * max(g) + min(g)\n", 1, 1},
    {"a transposed weight", "y: f32[B, 32, 64]", "  y = reshape(x, [B, 1, 64]) + transpose(w)\n", 1,
     1},
    {"one that a matmul takes as it is", "y: f32[B, 64]",
     "  h = x[:, :32]\n  y = h @ transpose(w)\n", 0, 1},
    {"one that is transposed back", "y: f32[B, 64, 32]",
     "  y = reshape(x, [B, 64, 1]) * transpose(transpose(w))\n", 0, 1},
    {"a transposed iota", "y: f32[B, 32, 64]",
     "  y = reshape(x, [B, 1, 64]) + cast(transpose(iota([64, 32], axis=1)), f32)\n", 0, 1},
    {"rows of a weight", "y: f32[B, 32]", "  y = x[:, :32] * w[3] + w[4]\n", 0, 1},
    {"all columns of a weight share one", "y: f32[B, 64]",
     "  v = reshape(w, [64, 2, 16])[:, :, 0]\n  y = x * v[:, 0] + v[:, 1]\n", 1, 1},
    {"one column of a weight is all that is kept", "y: f32[B, 64]", "  y = x * w[:, 3]\n", 1, 1},
    {"one row of a transposed weight", "y: f32[B, 64]", "  y = x * transpose(w)[3]\n", 1, 1},
    {"a matmul's operand with quotients", "y: f32[B, 32]",
     "  y = x @ reshape(transpose(reshape(w, [16, 4, 32]), perm=[1, 0, 2]), [64, 32])\n", 1, 1},
    {"a run's reduction over the same shape", "y: f32[64], z: f32[64]",
     "  y = sum(w, axis=1) + g\n  z = sum(w * x[0, 0], axis=1) + sum(w, axis=1)\n", 1, 2},
};

static uint32_t n_kernels(const Plan *plan, bool is_init) {
    uint32_t n_init = plan_n_init(plan);
    return is_init ? n_init : plan->kernels.n - n_init;
}

Test(hoist, what_params_determine_is_computed_once) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i];
        Fixture f = fuse_body(c->outputs, c->body, false);
        cr_expect(n_kernels(f.plan, true) == c->n_init && n_kernels(f.plan, false) == c->n_run,
                  "%s: %u init and %u run kernels, expected %u and %u", c->what,
                  n_kernels(f.plan, true), n_kernels(f.plan, false), c->n_init, c->n_run);
        cr_expect_null(plan_verify(f.plan, f.arena));
        arena_free(f.arena);
    }
}

Test(hoist, unfused_programs_prepare_too) {
    Fixture f = fuse_body("y: f32[B, 32]", "  y = relu(x @ (w * s))\n", true);
    cr_expect_eq(n_kernels(f.plan, true), 1u, "the matmul");
    cr_expect_eq(n_kernels(f.plan, false), 2u);
    arena_free(f.arena);
}

/* Dims that a param's shape is made of are known when init steps run; others are not. */
Test(hoist, dims_that_params_fix_are_no_hindrance) {
    Fixture f = fuse_source("dim B in 1..64\ndim D in 1..64\n"
                            "graph g(x: f32[B, D]) -> (y: f32[B, D]) {\n"
                            "  param w: f32[D, 2*D] = \"w\"\n  y = x * max(w)\n}\n",
                            false);
    cr_expect_eq(n_kernels(f.plan, true), 1u, "%u", n_kernels(f.plan, true));
    arena_free(f.arena);
    f = fuse_source("dim B in 1..64\ngraph g(x: f32[B, 8]) -> (y: f32[B, 8]) {\n"
                    "  param w: f32[2*B, 8] = \"w\"\n  y = x * max(w)\n}\n",
                    false);
    cr_expect_eq(n_kernels(f.plan, true), 0u, "2*B does not fix B");
    arena_free(f.arena);
    f = fuse_source("dim B in 1..64\ngraph g(x: f32[B, 8]) -> (y: f32[B, 8]) {\n"
                    "  param w: f32[64, 8] = \"w\"\n  y = x * max(w[B - 1 : B + 0, :])\n}\n",
                    false);
    cr_expect_eq(n_kernels(f.plan, true), 0u, "the slice begins at B");
    arena_free(f.arena);
}

/* What counts is an output here, which a run stores: no init step can read it. */
Test(hoist, not_behind_an_output_that_hangs_on_nothing) {
    Fixture f =
        fuse_source("dim B in 1..16\n"
                    "graph g(x: f64[B, 1]) -> (c: i32[1, 1, 1, B], y: f64[1, 1, 1]) {\n"
                    "  param w: f64[B, 1] = \"w\"\n"
                    "  c = iota([1, 1, 1, B], axis=1)\n"
                    "  h = cast(min(c, axis=1), f64)\n"
                    "  y = sigmoid(clamp(h, -1.0, 1.0) @ x) * (clamp(h, -1.0, 1.0) @ w)\n}\n",
                    false);
    cr_expect_eq(n_kernels(f.plan, true), 0u, "%u", n_kernels(f.plan, true));
    cr_expect_null(plan_verify(f.plan, f.arena));
    arena_free(f.arena);
}

static ReasonId reason_between(const Plan *plan, const char *producer, OpId consumer) {
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        const Edge *edge = &plan->edges.data[i];
        Str name = graph_node(plan->graph, edge->producer)->name;
        if (name && strcmp(name, producer) == 0 && edge->consumer != NODE_NONE &&
            graph_node(plan->graph, edge->consumer)->op == consumer)
            return edge->reason;
    }
    return REASON_NONE;
}

Test(hoist, the_ledger_says_why) {
    static const char source[] =
        "dim B in 1..4096\ngraph g(x: f32[B, 64]) -> (y: f32[B, 64]) {\n"
        "  param g: f32[64] = \"g\"\n  a = exp(sin(g))\n  b = g + 1.0\n  c = x * a\n"
        "  d = x + b\n  y = c - d\n}\n";
    Fixture f = fuse_source(source, false);
    cr_expect_eq(reason_between(f.plan, "a", OP_MUL), REASON_PREPARED);
    cr_expect_eq(reason_between(f.plan, "b", OP_ADD), REASON_CHEAP);
    Text text = {.arena = f.arena};
    PricedPlan priced = price_source(f.arena, source, false);
    LedgerInput input = {.cost = priced.cost,
                         .unfused_cost = price_source(f.arena, source, true).cost,
                         .advices = advice_settle(f.arena, priced.plan, NULL)};
    explain_print(ledger_new(f.arena, &input), &text);
    const char *ledger = text_str(&text);
    cr_expect(strstr(ledger, "init steps:\n") && strstr(ledger, "prepared by them"), "%s", ledger);
    cr_expect(strstr(ledger, "256 bytes"), "%s", ledger);
    arena_free(f.arena);
}

/* With and without an init step that reads much: a run's totals are the same but for what is read
 * of the params. */
Test(hoist, prices_of_a_run_are_without_init_steps) {
    Arena *arena = arena_new(NULL);
    static const char form[] = "graph g(x: f32[1024, 64]) -> (y: f32[1024, 64]) {\n"
                               "  param w: f32[65536, 64] = \"w\"\n  y = x * %s\n}\n";
    const PlanCost *cost =
        price_source(arena, str_format(arena, form, "max(w, axis=0)"), false).cost;
    const PlanCost *plain = price_source(arena, str_format(arena, form, "w[0]"), false).cost;
    uint32_t n_init = plan_n_init(cost->plan), n = cost->plan->kernels.n;
    double w_bytes = 65536.0 * 64 * 4;
    cr_expect(n_init > 0 && cost->n_init == n_init && plain->n_init == 0);
    cr_expect(cost->n_launches == 1 && n == n_init + 1 && plain->n_launches == 1);
    cr_expect(cost->init_bytes >= w_bytes && cost->init_us > plain->us);
    cr_expect(cost->us == cost->kernels[n - 1].us && cost->us == plain->us, "%g, %g", cost->us,
              plain->us);
    cr_expect(cost->read_bytes == plain->read_bytes && cost->least_bytes == plain->least_bytes,
              "%.0f, %.0f", cost->read_bytes, plain->read_bytes);
    cr_expect(cost->bound_bytes == plain->bound_bytes + 256);
    arena_free(arena);
}

/* `fuse must` holds within a run and within an init step, not between the two. */
Test(hoist, prepared_values_break_no_must_block) {
    static const struct {
        const char *body;
        bool is_kept;
    } blocks[] = {
        {"  fuse must {\n    h = w + max(w, axis=1, keep=true)\n    y = x * exp(sin(h))\n  }\n",
         true},
        {"  fuse must {\n    m = max(transpose(w) - max(w, axis=1), axis=1)\n    y = x * m\n  }\n",
         false},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        Arena *arena = arena_new(NULL);
        const char *source = str_format(arena,
                                        "graph g(x: f32[64, 64]) -> (y: f32[64, 64]) {\n"
                                        "  param w: f32[64, 64] = \"w\"\n%s}\n",
                                        blocks[i].body);
        Diags diags = {.arena = arena};
        const Plan *plan = price_source(arena, source, false).plan;
        cr_expect(plan_n_init(plan) > 0);
        cr_expect_eq(must_check(plan, NULL, NULL, &diags), blocks[i].is_kept, "%s", blocks[i].body);
        arena_free(arena);
    }
}

/* Ops of a `fuse never` block are init steps of their own. */
Test(hoist, never_separates_init_steps) {
    Fixture f =
        fuse_body("y: f32[B, 64]",
                  "  fuse never {\n    h = g + 1.0\n    k = exp(h)\n  }\n  y = x * k\n", false);
    cr_expect_eq(plan_n_init(f.plan), 2u);
    cr_expect_eq(reason_between(f.plan, "k", OP_MUL), REASON_NEVER);
    arena_free(f.arena);
}

/* Layouts. */

static Fixture lay_out(const char *source, TargetId target) {
    Fixture f = fuse_source(source, false);
    plans_lay_out(f.arena, f.plan, target);
    const char *fault = plan_verify(f.plan, f.arena);
    cr_assert_null(fault, "%s\n%s", fault, source);
    return f;
}

static const Buffer *find_prepared(const Plan *plan) {
    for (uint32_t i = 0; i < plan->buffers.n; i++)
        if (plan->buffers.data[i].kind == BUFFER_PREPARED) return &plan->buffers.data[i];
    return NULL;
}

static void expect_shape(const Plan *plan, const Buffer *buffer, uint32_t rank,
                         const int64_t *extents) {
    cr_assert_not_null(buffer);
    cr_assert_eq(buffer->shape.rank, rank);
    for (uint32_t k = 0; k < rank; k++)
        cr_expect(dim_equals_const(plan->graph->dims, buffer->shape.dims[k], extents[k]),
                  "axis %u is not %lld", k, (long long)extents[k]);
}

static const char *const matmul = "dim B in 1..4096\n"
                                  "graph g(x: f32[B, 48]) -> (y: f32[B, 50]) {\n"
                                  "  param w: f32[48, 50] = \"w\"\n  y = x @ w\n}\n";

Test(hoist, cpu_matmuls_get_panels) {
    Fixture f = lay_out(matmul, TARGET_CPU);
    const Kernel *gemm = &f.plan->kernels.data[1];
    cr_assert_eq(n_kernels(f.plan, true), 1u);
    cr_assert(gemm->panel_columns > 0 && gemm->panel_columns % 8 == 0);
    int64_t width = gemm->panel_columns;
    expect_shape(f.plan, find_prepared(f.plan), 3,
                 (int64_t[]){(50 + width - 1) / width, 48, width});
    arena_free(f.arena);
    f = lay_out("dim B in 1..4096\ngraph g(x: f32[B, 48], w: f32[48, 50]) -> (y: f32[B, 50]) {\n"
                "  y = x @ w\n}\n",
                TARGET_CPU);
    cr_expect(n_kernels(f.plan, true) == 0 && f.plan->kernels.data[0].panel_columns == 0,
              "an input is packed in every run");
    arena_free(f.arena);
}

Test(hoist, batches_have_panels_of_their_own_where_they_differ) {
    Fixture f =
        lay_out("dim B in 1..4096\ngraph g(x: f32[2, 3, B, 48]) -> (y: f32[2, 3, B, 50]) {\n"
                "  param w: f32[2, 3, 48, 50] = \"w\"\n  y = x @ w\n}\n",
                TARGET_CPU);
    const Buffer *buffer = find_prepared(f.plan);
    cr_assert(buffer && buffer->shape.rank == 4);
    cr_expect(dim_equals_const(f.plan->graph->dims, buffer->shape.dims[0], 6));
    arena_free(f.arena);
    f = lay_out("dim B in 1..4096\ngraph g(x: f32[2, 3, B, 48]) -> (y: f32[2, 3, B, 50]) {\n"
                "  param w: f32[48, 50] = \"w\"\n  y = x @ w\n}\n",
                TARGET_CPU);
    buffer = find_prepared(f.plan);
    cr_assert(buffer && buffer->shape.rank == 3);
    arena_free(f.arena);
}

Test(hoist, equal_layouts_are_made_once) {
    Fixture f =
        lay_out("dim B in 1..4096\n"
                "graph g(x: f32[B, 48], z: f32[B, 48]) -> (y: f32[B, 50], u: f32[B, 50]) {\n"
                "  param w: f32[48, 50] = \"w\"\n  y = x @ w\n  u = relu(z @ w)\n}\n",
                TARGET_CPU);
    cr_expect_eq(n_kernels(f.plan, true), 1u);
    cr_expect_eq(n_kernels(f.plan, false), 2u);
    arena_free(f.arena);
}

/* Rows of bf16: multiples of 8 elements lie right already. */
static Fixture lay_out_rows(const char *n, const char *k, TargetId target) {
    Arena *arena = arena_new(NULL);
    const char *source = str_format(arena,
                                    "dim B in 1..4096\n"
                                    "graph g(x: bf16[B, %s]) -> (y: bf16[B, %s]) {\n"
                                    "  param w: bf16[%s, %s] = \"w\"\n  y = x @ w\n}\n",
                                    k, n, k, n);
    Fixture f = lay_out(source, target);
    arena_free(arena);
    return f;
}

Test(hoist, odd_rows_are_padded_for_the_gpu) {
    Fixture f = lay_out_rows("1001", "64", TARGET_SM_80);
    expect_shape(f.plan, find_prepared(f.plan), 2, (int64_t[]){64, 1024});
    arena_free(f.arena);
    f = lay_out_rows("1000", "64", TARGET_SM_80);
    cr_expect_null(find_prepared(f.plan), "1000 is a multiple of 8");
    arena_free(f.arena);
    f = lay_out_rows("9", "64", TARGET_SM_80);
    expect_shape(f.plan, find_prepared(f.plan), 2, (int64_t[]){64, 64});
    arena_free(f.arena);
    f = lay_out_rows("9", "8192", TARGET_SM_80);
    cr_expect_null(find_prepared(f.plan), "padding would make it seven times as large, 1 MiB");
    arena_free(f.arena);
    f = lay_out(matmul, TARGET_SM_80);
    cr_expect_null(find_prepared(f.plan), "f32 is not copied by 16 bytes");
    arena_free(f.arena);
}

/* The verifier. */

static void expect_fault(Fixture *f, const char *words) {
    const char *fault = plan_verify(f->plan, f->arena);
    cr_expect(fault && strstr(fault, words), "%s, not %s", fault ? fault : "nothing wrong", words);
    arena_free(f->arena);
}

Test(hoist, wrong_init_kernels_are_found) {
    static const char *const body = "  y = x * exp(sin(g)) * max(g)\n";
    Fixture f = fuse_body("y: f32[B, 64]", body, false);
    cr_assert_eq(plan_n_init(f.plan), 1u);
    f.plan->kernels.data[0].is_init = false;
    expect_fault(&f, "is none, but prepares");
    f = fuse_body("y: f32[B, 64]", body, false);
    f.plan->kernels.data[1].is_init = true;
    expect_fault(&f, "is an init step");
    f = fuse_body("y: f32[B, 64], u: f32[B, 32]", "  y = x * max(g)\n  u = x @ w\n", false);
    cr_assert(f.plan->kernels.n == 3 && plan_n_init(f.plan) == 1);
    Kernel first = f.plan->kernels.data[0];
    f.plan->kernels.data[0] = f.plan->kernels.data[2]; /* which needs nothing prepared */
    f.plan->kernels.data[2] = f.plan->kernels.data[1];
    f.plan->kernels.data[1] = first;
    expect_fault(&f, "comes after kernel");
    f = fuse_body("y: f32[B, 64]", body, false);
    f.plan->kernels.data[0].symbols |= 1;
    expect_fault(&f, "no param fixes dim");
}
