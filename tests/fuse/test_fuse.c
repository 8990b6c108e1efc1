/* What fuses and what does not: kernel counts, forms, verdicts and reasons. */
#include "lib/plans.h"
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

typedef struct Case {
    const char *what, *source;
    uint32_t n_kernels;
} Case;

static const Case one_kernel[] = {
    {"an elementwise chain with two outputs",
     "dim B in 1..4096\ngraph g(x: f32[B, 64], b: f32[64]) -> (h: f32[B, 64], y: f32[B, 64]) {\n"
     "  h = x + b\n  y = relu(h) * 2.0 - exp(h)\n}\n",
     1},
    {"softmax",
     "dim B in 1..4096\ngraph g(x: f32[B, 1000]) -> (y: f32[B, 1000]) {\n"
     "  y = softmax(x * 0.5, axis=-1)\n}\n",
     1},
    {"log_softmax",
     "dim B in 1..4096\ngraph g(x: bf16[B, 1000]) -> (y: bf16[B, 1000]) {\n"
     "  y = log_softmax(x, axis=-1)\n}\n",
     1},
    {"layernorm with residual, both stored",
     "dim B in 1..4096\ngraph g(x: bf16[B, 768], r: bf16[B, 768], w: bf16[768], b: bf16[768])"
     " -> (h: bf16[B, 768], y: bf16[B, 768]) {\n  h = x + r\n  y = layernorm(h, w, b)\n}\n",
     1},
    {"rmsnorm",
     "dim B in 1..4096\ngraph g(x: f32[B, 768], w: f32[768]) -> (y: f32[B, 768]) {\n"
     "  y = rmsnorm(x, w)\n}\n",
     1},
    {"logsumexp",
     "dim B in 1..4096\ngraph g(x: f32[B, 100]) -> (y: f32[B]) {\n"
     "  y = logsumexp(x, axis=-1)\n}\n",
     1},
    {"a column reduction with its neighbours",
     "graph g(x: f32[200, 64], b: f32[64]) -> (y: f32[64]) {\n"
     "  y = exp(sum(relu(x + b), axis=0))\n}\n",
     1},
    {"several reductions of one input",
     "dim B in 1..64\ngraph g(x: f32[B, 100]) -> (s: f32[B], m: f32[B], a: i32[B]) {\n"
     "  s = sum(x, axis=1)\n  m = max(x, axis=1)\n  a = argmax(x, axis=1)\n}\n",
     1},
    {"a transposed softmax",
     "graph g(x: f32[32, 100]) -> (y: f32[100, 32]) {\n"
     "  y = transpose(softmax(x, axis=-1))\n}\n",
     1},
    {"a softmax over two axes",
     "graph g(x: f32[4, 5, 6]) -> (y: f32[4, 5, 6]) {\n"
     "  y = softmax(x, axis=[1, 2])\n}\n",
     1},
};

static const Case several_kernels[] = {
    {"rows then columns",
     "graph g(x: f32[64, 100]) -> (y: f32[100]) {\n"
     "  y = sum(softmax(x, axis=1), axis=0)\n}\n",
     2},
    {"a full sum and what divides by it",
     "dim N in 1..1000000\ngraph g(x: f32[N]) -> (y: f32[N]) {\n  y = x / sum(x)\n}\n", 3},
    {"costly work read at shifted places",
     "graph g(x: f32[1000]) -> (y: f32[998]) {\n"
     "  e = exp(x)\n  y = e[2:] - e[:-2] + e[1:-1]\n}\n",
     2},
};

static void expect_kernels(const Case *c) {
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, c->source);
    Plan *plan = plans_fuse(arena, module, 0, false);
    cr_expect(plan->kernels.n == c->n_kernels, "%s: %u kernels, expected %u", c->what,
              plan->kernels.n, c->n_kernels);
    arena_free(arena);
}

Test(fuse, neighbours_share_one_kernel) {
    for (size_t i = 0; i < sizeof one_kernel / sizeof *one_kernel; i++)
        expect_kernels(&one_kernel[i]);
}

Test(fuse, ops_that_cannot_share_a_kernel_get_several) {
    for (size_t i = 0; i < sizeof several_kernels / sizeof *several_kernels; i++)
        expect_kernels(&several_kernels[i]);
}

/* Twelve programs of views: nothing is copied, so each is one kernel that reads inputs and writes
 * outputs (a long reduction may take a finishing kernel). */
Test(fuse, view_programs_have_no_copy_kernels) {
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, text_file_read(arena, "dsl/examples/views.g", NULL));
    cr_expect(module->graphs.n == 12);
    for (uint32_t i = 0; i < module->graphs.n; i++) {
        Plan *plan = plans_fuse(arena, module, i, false);
        const char *name = module->graphs.data[i]->name;
        uint32_t n_maps = 0, n_reductions = 0;
        for (uint32_t k = 0; k < plan->kernels.n; k++) {
            n_maps += plan->kernels.data[k].form == FORM_MAP;
            n_reductions += plan->kernels.data[k].form != FORM_MAP;
        }
        cr_expect(n_maps + (n_reductions > 0) == 1, "%s: %u maps, %u reductions", name, n_maps,
                  n_reductions);
    }
    arena_free(arena);
}

Test(fuse, off_gives_one_kernel_per_op) {
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, "graph g(x: f32[4, 6]) -> (y: f32[6, 4]) {\n"
                                        "  y = transpose(relu(x[:, 0:6] + 1.0)) * 3.0\n}\n");
    Plan *plan = plans_fuse(arena, module, 0, true);
    const Graph *graph = module->graphs.data[0];
    uint32_t n_ops = 0;
    for (NodeId id = 0; id < graph->nodes.n; id++)
        n_ops += op_info(graph_node(graph, id)->op)->cls != CLASS_SOURCE;
    cr_expect(plan->kernels.n == n_ops, "%u kernels for %u ops", plan->kernels.n, n_ops);
    arena_free(arena);
}

static const Edge *edge_from(const Plan *plan, const char *op) {
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        const Node *node = graph_node(plan->graph, plan->edges.data[i].producer);
        if (strcmp(op_info(node->op)->name, op) == 0) return &plan->edges.data[i];
    }
    return NULL;
}

typedef struct Verdict {
    const char *source, *producer;
    EdgeVerdict verdict;
    const char *reason;
} Verdict;

static const Verdict verdicts[] = {
    {"graph g(x: f32[8]) -> (y: f32[8]) {\n  y = relu(exp(x))\n}\n", "exp", EDGE_FUSED, "inlined"},
    {"graph g(x: f32[8, 4]) -> (y: f32[4, 8]) {\n  y = relu(transpose(x))\n}\n", "transpose",
     EDGE_FUSED, "view"},
    {"graph g(x: f32[8, 4]) -> (y: f32[8, 4]) {\n  y = x - max(x, axis=1, keep=true)\n}\n", "max",
     EDGE_FUSED, "same-kernel"},
    {"graph g(x: f32[8, 4]) -> (y: f32[4, 8]) {\n"
     "  y = transpose(x) - max(x, axis=1)\n}\n",
     "max", EDGE_STORED, "other-domain"},
    {"graph g(x: f32[8, 8]) -> (y: f32[8, 8]) {\n"
     "  y = x - max(x, axis=1)\n}\n",
     "max", EDGE_STORED, "misaligned"},
    {"graph g(x: f32[100000]) -> (y: f32[100000]) {\n  y = x / sum(x)\n}\n", "sum", EDGE_STORED,
     "few-rows"},
    {"graph g(x: f32[100]) -> (y: f32[98]) {\n"
     "  e = exp(x)\n  y = e[2:] + e[:-2]\n}\n",
     "exp", EDGE_STORED, "costly"},
    {"graph g(x: f32[8, 8], w: f32[8, 8], b: f32[8, 8]) -> (y: f32[8, 8]) {\n"
     "  h = relu(x @ w + b)\n  y = h / max(h, axis=1, keep=true)\n}\n",
     "relu", EDGE_STORED, "tiles"},
    {"graph g(x: bf16[8, 8], w: bf16[8, 8]) -> (y: f32[8, 8]) {\n"
     "  h = exp(cast(x @ w, f32))\n  y = h / max(h, axis=1, keep=true)\n}\n",
     "matmul", EDGE_STORED, "tiles"},
};

Test(fuse, every_edge_has_its_reason) {
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++) {
        const Verdict *v = &verdicts[i];
        Arena *arena = arena_new(NULL);
        Module *module = plans_parse(arena, v->source);
        Plan *plan = plans_fuse(arena, module, 0, false);
        const Edge *edge = edge_from(plan, v->producer);
        cr_assert(edge, "%s: no edge", v->source);
        cr_expect(edge->verdict == v->verdict, "%s", v->source);
        cr_expect(strcmp(reason_info(edge->reason)->id, v->reason) == 0, "%s: %s, expected %s",
                  v->source, reason_info(edge->reason)->id, v->reason);
        arena_free(arena);
    }
}

/* A user's `kernel` blocks are kept, and one that cannot be a kernel is refused with the reason. */
Test(fuse, fixed_kernels_are_kept_or_refused) {
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, "graph g(x: f32[8]) -> (y: f32[8]) {\n"
                                        "  kernel a {\n    e = exp(x)\n  }\n"
                                        "  kernel b {\n    y = relu(e)\n  }\n}\n");
    Plan *plan = plans_fuse(arena, module, 0, false);
    cr_expect(plan->kernels.n == 2);
    module =
        plans_parse(arena, "graph g(x: f32[8, 4]) -> (y: f32[4]) {\n  kernel a {\n"
                           "    s = sum(x, axis=1)\n    y = sum(x * 2.0, axis=0) + s[0]\n  }\n}\n");
    const char *errors = plans_refusal(arena, module, 0);
    cr_expect(strstr(errors, "fixed-kernel"), "%s", errors);
    module = plans_parse(arena, "graph g(x: f32[8, 8], w: f32[8, 8]) -> (y: f32[8]) {\n"
                                "  kernel a {\n    v = sum(x, axis=1)\n    y = v @ w\n  }\n}\n");
    errors = plans_refusal(arena, module, 0);
    cr_expect(strstr(errors, "fixed-kernel"), "%s", errors);
    arena_free(arena);
}

/* The same graph gives the same plan, kernel by kernel. */
Test(fuse, is_deterministic) {
    Arena *arena = arena_new(NULL);
    const char *first = NULL;
    for (int i = 0; i < 3; i++) {
        Module *module = plans_parse(arena, text_file_read(arena, "dsl/examples/views.g", NULL));
        Text text = {.arena = arena};
        for (uint32_t g = 0; g < module->graphs.n; g++)
            plan_print(plans_fuse(arena, module, g, false), &text);
        if (first) cr_expect(strcmp(first, text_str(&text)) == 0);
        first = text_str(&text);
    }
    arena_free(arena);
}

/* A program of `n` values, each made of two before it, some by way of a reduction along rows. */
static const char *tangle(Arena *arena, uint32_t seed, uint32_t n) {
    /* What stands before the two values, between and after them. */
    static const char *const forms[][3] = {{"", " + ", ""},
                                           {"", " * ", ""},
                                           {"tanh(", ") - ", ""},
                                           {"gelu(", ") * ", ""},
                                           {"", " - max(", ", axis=1, keep=true)"}};
    Text text = {.arena = arena};
    text_puts(&text, "dim N in 1..4096\ngraph g(x: f32[N, 256], z: f32[N, 256]) -> "
                     "(y: f32[N, 256], c: f32[256]) {\n  a0 = exp(x)\n  a1 = exp(z)\n");
    for (uint32_t i = 2; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t form = (seed >> 16) % 5, left = (seed >> 8) % i, right = (seed >> 20) % i;
        text_printf(&text, "  a%u = %sa%u%sa%u%s\n", i, forms[form][0], left, forms[form][1], right,
                    forms[form][2]);
    }
    text_printf(&text, "  y = a%u\n  c = sum(a%u, axis=0)\n}\n", n - 1, n - 2);
    return text_str(&text);
}

static bool is_loaded(const Plan *plan, uint32_t buffer) {
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const ScalarTab *scalars = plan->kernels.data[k].scalars;
        for (ScalarId id = 1; id <= scalar_count(scalars); id++)
            if (scalar_get(scalars, id)->kind == SCALAR_LOAD &&
                scalar_get(scalars, id)->buffer == buffer)
                return true;
    }
    return false;
}

Test(fuse, nothing_is_stored_that_nobody_reads) {
    uint32_t n_temps = 0;
    for (uint32_t seed = 1; seed <= 40; seed++) {
        Arena *arena = arena_new(NULL);
        const char *source = tangle(arena, seed, 24);
        Module *module = plans_parse(arena, source);
        Plan *plan = plans_fuse(arena, module, 0, false);
        for (uint32_t i = 0; i < plan->buffers.n; i++) {
            if (plan->buffers.data[i].kind != BUFFER_TEMP) continue;
            n_temps++;
            cr_expect(is_loaded(plan, i), "seed %u: %s", seed, plan->buffers.data[i].name);
        }
        arena_free(arena);
    }
    cr_expect_gt(n_temps, 0);
}

/* Turned again and again, an index doubles with every pair of views: some are stored then. */
Test(fuse, views_of_views_stay_small, .timeout = 20) {
    Arena *arena = arena_new(NULL);
    Text text = {.arena = arena};
    text_puts(&text, "dim B in 1..100\ngraph g(x: f32[B, 6]) -> (y: f32[B, 6]) {\n  v0 = x\n");
    for (int i = 0; i < 40; i++)
        text_printf(&text, "  v%d = reshape(transpose(reshape(v%d, [B*2, 3])), [B, 6])\n", i + 1,
                    i);
    text_puts(&text, "  y = v40\n}\n");
    Module *module = plans_parse(arena, text_str(&text));
    Plan *plan = plans_fuse(arena, module, 0, false);
    cr_expect(plan->kernels.n > 1 && plan->kernels.n <= 10, "%u kernels", plan->kernels.n);
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        const IndexTab *tab = scalartab_indices(kernel->scalars);
        for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
            if (scalar_get(kernel->scalars, id)->index)
                cr_expect(index_weight(tab, scalar_get(kernel->scalars, id)->index) < 2000);
    }
    arena_free(arena);
}

/* Of a chain of many calls a CPU's kernel has no more code than is quickly made; simple ops are
 * one, and so is whatever must be. */
Test(fuse, a_kernel_has_only_so_much_code, .timeout = 60) {
    for (int is_simple = 0; is_simple < 2; is_simple++)
        for (int is_must = 0; is_must < 2; is_must++) {
            Arena *arena = arena_new(NULL);
            Text text = {.arena = arena};
            text_puts(&text, "graph g(x: f32[1024]) -> (y: f32[1024]) {\n  v0 = x\n");
            text_puts(&text, is_must ? "fuse must {\n" : "");
            for (int i = 0; i < 500; i++)
                text_printf(&text, "  v%d = %s(v%d) + x\n", i + 1, is_simple ? "relu" : "sin", i);
            text_printf(&text, "%s  y = v500\n}\n", is_must ? "}\n" : "");
            const Graph *graph = plans_parse(arena, text_str(&text))->graphs.data[0];
            Diags diags = {.arena = arena};
            Plan *plan = plans_fuse_with(arena, graph, (FuseOptions){.has_cores = true}, &diags);
            cr_assert(plan);
            uint32_t n = plan->kernels.n;
            cr_expect(is_simple || is_must ? n == 1 : n >= 3 && n <= 5, "%u kernels", n);
            arena_free(arena);
        }
}

/* The source's own kernels are as large as they are, whatever was placed before. */
Test(fuse, a_fixed_kernel_has_all_its_code, .timeout = 60) {
    Arena *arena = arena_new(NULL);
    Text text = {.arena = arena};
    text_puts(&text, "graph g(x: f32[1024], w: f32[512]) -> (a: f32[512], y: f32[1024], "
                     "z: f32[1024]) {\n  u0 = w\n  v0 = x\n  q0 = x\n");
    for (int i = 0; i < 100; i++) text_printf(&text, "  u%d = sin(u%d) + w\n", i + 1, i);
    text_puts(&text, "  a = u100\n  kernel k {\n");
    for (int i = 0; i < 120; i++)
        text_printf(&text, "  v%d = sin(v%d) + x\n  q%d = cos(q%d) + x\n", i + 1, i, i + 1, i);
    text_puts(&text, "  }\n  y = v120\n  z = q120\n}\n");
    const Graph *graph = plans_parse(arena, text_str(&text))->graphs.data[0];
    Diags diags = {.arena = arena};
    Plan *plan = plans_fuse_with(arena, graph, (FuseOptions){.has_cores = true}, &diags);
    cr_assert(plan);
    cr_expect_eq(plan->kernels.n, 2);
    arena_free(arena);
}

/* What `y` is of x, z and w, all f32[64, 64], and in how many kernels. */
static const struct {
    const char *what, *body;
    uint32_t n_kernels;
} rows_of_several[] = {
    {"two", "y = softmax(x) * softmax(z)", 1},
    {"two whose product goes on", "y = softmax(softmax(x) * softmax(z))", 1},
    {"three", "y = softmax(x) * softmax(z) + softmax(w)", 1},
    {"two that share a scale", "y = rmsnorm(x, w[0, :]) * rmsnorm(z, w[0, :])", 1},
    {"results alone", "y = x * (max(x, axis=1, keep=true) + sum(z, axis=1, keep=true))", 1},
    {"rows and columns", "y = softmax(x) * softmax(z, axis=0)", 2},
    {"other rows", "y = softmax(x)[0:32, :] * softmax(z[0:32, :]) + w[0:32, :]", 2},
    {"a matmul stands between", "s = softmax(x)\n t = s @ w\n y = s * softmax(t)", 3},
    {"apart by the source", "s = softmax(x)\n fuse never { t = -s }\n y = t * softmax(z)", 3},
};

Test(fuse, rows_of_several_tensors_are_one_kernel) {
    for (size_t i = 0; i < sizeof rows_of_several / sizeof *rows_of_several; i++) {
        Arena *arena = arena_new(NULL);
        const char *rows = i == 6 ? "32" : "64";
        const char *source =
            str_format(arena,
                       "graph g(x: f32[64, 64], z: f32[64, 64], w: f32[64, 64]) -> (y: f32[%s, "
                       "64]) {\n %s\n}\n",
                       rows, rows_of_several[i].body);
        Module *module = plans_parse(arena, source);
        Plan *plan = plans_fuse(arena, module, 0, false);
        cr_expect_eq(plan->kernels.n, rows_of_several[i].n_kernels, "%s: %u kernels",
                     rows_of_several[i].what, plan->kernels.n);
        arena_free(arena);
    }
}

/* Loops are not joined where one of them has no iterations, since nothing tells them apart then. */
Test(fuse, nothing_is_divided_by_an_extent_of_zero) {
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, "dim B in 0..8\n"
                                        "graph g(q: f16[1, B, 0, 32], k: f16[1, B, 0, 32], "
                                        "v: f16[1, B, 0, 4]) -> (y: f16[1, B, 0, 4]) {\n"
                                        "  s = (q @ transpose(k, perm=[0, 1, 3, 2])) * 0.25\n"
                                        "  y = softmax(s) @ v\n}\n");
    cr_expect_not_null(plans_fuse(arena, module, 0, false));
    arena_free(arena);
}

/* Where no kernel can be what a group is, its ops are kernels by themselves. */
Test(fuse, a_group_that_no_kernel_computes_is_split) {
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, "graph g(x: f32[8, 24], a: f32[24, 16]) -> (y: f32[8, 15], "
                                        "z: f32[8]) {\n"
                                        "  h = relu(x @ a)\n  y = softmax(h[:, 1:])\n"
                                        "  z = sum(exp(x), axis=1)\n}\n");
    const Graph *graph = module->graphs.data[0];
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        Decisions *decisions = decisions_new(arena, graph->nodes.n);
        Diags diags = {.arena = arena};
        FuseOptions options = {.decisions = decisions};
        decisions_add(decisions, id, DIRECTIVE_UNLOWERED);
        Plan *plan = plans_fuse_with(arena, graph, options, &diags);
        cr_assert(plan, "node %u", id);
        for (uint32_t k = 0; k < plan->kernels.n; k++)
            for (uint32_t i = 0; i < plan->kernels.data[k].nodes.n; i++)
                cr_expect(plan->kernels.data[k].nodes.data[i] != id ||
                              plan->kernels.data[k].nodes.n == 1,
                          "node %u", id);
    }
    arena_free(arena);
}

/* Each layer has concats of all steps that are too large for a kernel. All of them are made smaller
 * in one round of grouping, or the rounds would not do. */
static const char deep_recurrence[] =
    "def cell(g, h, c) {\n  param w: f32[16, 64]\n"
    "  z = g + h @ w\n  d = sigmoid(z[:, :16]) * c + sigmoid(z[:, 16:32]) * tanh(z[:, 48:])\n"
    "  return sigmoid(z[:, 32:48]) * tanh(d), d\n}\n"
    "def layer(x) {\n  param wi: f32[16, 64]\n  param b: f32[64]\n"
    "  g = x @ wi + b\n  h0 = zeros([8, 16])\n"
    "  _, _, ys = loop t in 0:64 with h = h0, c = h0 {\n"
    "    h2, c2 = cell(g[t], h, c) as \"cell\"\n    return h2, c2, h2\n  }\n"
    "  return stack(ys)\n}\n"
    "graph lstm(x: f32[64, 8, 16]) -> (y: f32[64, 8, 16]) {\n"
    "  y = loop l in 0:18 with h = x { return layer(h) as \"{l}\" }\n}\n";

Test(fuse, steps_of_many_recurrences_are_kernels_of_their_own) {
    Arena *arena = arena_new(NULL);
    const Plan *plan = plans_fuse(arena, plans_parse(arena, deep_recurrence), 0, false);
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        cr_expect_leq(plan->kernels.data[k].nodes.n, 40u, "kernel %u has %u ops", k,
                      plan->kernels.data[k].nodes.n);
    arena_free(arena);
}

/* Each product reads the one before it and one from half as far back, which many read. */
Test(fuse, values_that_read_far_back_are_stored_so_that_kernels_take_few_tensors) {
    static char source[1 << 16];
    int n = snprintf(source, sizeof source, "graph g(x: f32[8]) -> (y: f32[8]) {\nv0=x\n");
    for (int i = 1; i <= 1500; i++)
        n += snprintf(source + n, sizeof source - (size_t)n, "v%d=v%d*v%d\n", i, i - 1, i / 2);
    snprintf(source + n, sizeof source - (size_t)n, "y=v1500\n}\n");
    Arena *arena = arena_new(NULL);
    Plan *plan = plans_fuse(arena, plans_parse(arena, source), 0, false);
    for (uint32_t i = 0; i < plan->kernels.n; i++)
        cr_expect_leq(plan->kernels.data[i].args.n, MAX_KERNEL_ARGS, "kernel %u", i);
    arena_free(arena);
}
