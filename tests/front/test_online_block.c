/* `online` blocks: spellings of one attention that all become one op, and what such blocks refuse
 * is in tests/negative. */
#include "front/sema.h"
#include "lib/compiled.h"
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* The body of a graph of two heads, five queries and nine keys; `s` has the scores. */
typedef struct Spelling {
    const char *name, *body;
} Spelling;

#define SCORES "s = q @ t * 0.5; "
#define POWERS SCORES "e = exp(s - max(s, axis=2, keep=true)); "

static const Spelling spellings[] = {
    {"scaled by a product", "y = softmax(q @ t * 0.5) @ v"},
    {"scaled by a quotient", "y = softmax(q @ t / 2) @ v"},
    {"queries scaled", "y = softmax(q * 0.5 @ t) @ v"},
    {"keys scaled", "y = softmax(q @ (t * 0.5)) @ v"},
    {"masked by where", SCORES
     "m = iota([5, 9], axis=1) <= iota([5, 9], axis=0) + 2; y = softmax(where(m, s, -inf)) @ v"},
    {"masked by adding", SCORES "y = softmax(s + b) @ v"},
    {"masked by adding bf16", SCORES "y = softmax(s + cast(cast(b, bf16), f32)) @ v"},
    {"spelled out", POWERS "y = (e / sum(e, axis=2, keep=true)) @ v"},
    {"divided after the product", POWERS "y = (e @ v) / sum(e, axis=2, keep=true)"},
    {"multiplied by a reciprocal", POWERS "y = e * (1 / sum(e, axis=2, keep=true)) @ v"},
    {"multiplied by a reciprocal after", POWERS "y = (e @ v) * (1 / sum(e, axis=2, keep=true))"},
    {"in base 2", "x = q @ t * 0.7; e = exp2(x - max(x, axis=2, keep=true)); "
                  "y = (e / sum(e, axis=2, keep=true)) @ v"},
    {"in base 2, scaled twice", SCORES "e = exp2(s * 1.5 - max(s, axis=2, keep=true) * 1.5); "
                                       "y = (e / sum(e, axis=2, keep=true)) @ v"},
    {"scaled below the maximum", "s = q @ t; e = exp((s - max(s, axis=2, keep=true)) * 0.5); "
                                 "y = (e / sum(e, axis=2, keep=true)) @ v"},
    {"einsum", "y = einsum(\"hqk,hkc->hqc\", softmax(einsum(\"hqd,hkd->hqk\", q, k) * 0.5), v)"},
    {"einsum, heads last", "p = softmax(einsum(\"hqd,hkd->qkh\", q, k) * 0.5, axis=1); "
                           "y = einsum(\"qkh,hkc->hqc\", p, v)"},
    {"reductions without their axis",
     SCORES "e = exp(s - reshape(max(s, axis=2), [2, 5, 1])); "
            "y = (e / expand(reshape(sum(e, axis=2), [2, 5, 1]), [2, 5, 9])) @ v"},
    {"keys before queries", "p = softmax(k @ transpose(q, perm=[0, 2, 1]) * 0.5, axis=1); "
                            "y = transpose(transpose(v, perm=[0, 2, 1]) @ p, perm=[0, 2, 1])"},
    {"heads split behind the softmax",
     SCORES "p = reshape(softmax(reshape(s, [10, 9])), [2, 5, 9]); y = p @ v"},
    {"a batch of one",
     SCORES "y = reshape(reshape(softmax(s), [1, 2, 5, 9]) @ reshape(v, [1, 2, 9, 3]), [2, 5, 3])"},
    {"grouped queries by a reshape",
     "g = reshape(q, [1, 10, 4]); y = reshape(softmax(g @ t[:1] * 0.5) @ v[:1], [2, 5, 3])"},
    {"grouped queries by an expand",
     "y = softmax(q @ expand(t[:1], [2, 4, 9]) * 0.5) @ expand(v[:1], [2, 9, 3])"},
    {"a logarithm taken back", SCORES "y = exp(log_softmax(s)) @ v"},
    {"less a logarithm", SCORES "y = exp(s - logsumexp(s, axis=2, keep=true)) @ v"},
    {"without a maximum", SCORES "y = (exp(s) / sum(exp(s), axis=2, keep=true)) @ v"},
    {"capped", SCORES "y = softmax(tanh(s / 30) * 30) @ v"},
    {"biased by distance", SCORES "y = softmax(s - 0.1 * cast(iota([5, 9], axis=1), f32)) @ v"},
    {"scaled after the softmax", SCORES "y = softmax(s) * 2 @ v"},
    {"negated after the softmax", SCORES "y = -softmax(s) @ v"},
    {"a factor of each row", SCORES "y = (softmax(s) * b[:, :1] / (b[:, 1:2] + 3)) @ v"},
    {"rows without weights", SCORES "y = where(b[:, :1] < 0.0, 0.0, softmax(s)) @ v"},
    {"a factor of each key", SCORES "y = (b * softmax(s) / 3) @ v"},
    {"keys without weights", SCORES "y = where(b > 0.0, softmax(s) / 0.9, 0.0) @ v"},
    {"factors before the division", POWERS "y = (e * b * 2 / sum(e, axis=2, keep=true)) @ v"},
    {"factors and a division behind the product",
     POWERS "y = ((e * b) @ v) / sum(e, axis=2, keep=true)"},
    {"factors that the sum has too", POWERS "w = e * 2; y = (w / sum(w, axis=2, keep=true)) @ v"},
    {"powers hidden by a factor",
     POWERS "w = e * cast(b < 1.0, f32); y = (w / sum(w, axis=2, keep=true)) @ v"},
    {"powers hidden by a select",
     POWERS "w = where(b < 1.0, e, 0.0); y = (w / sum(w, axis=2, keep=true)) @ v"},
    {"factors with keys before queries",
     "p = softmax(k @ transpose(q, perm=[0, 2, 1]) * 0.5, axis=1); c = transpose(b); "
     "y = transpose(transpose(v, perm=[0, 2, 1]) @ (p * c * c[:1]), perm=[0, 2, 1])"},
    {"masked by adding -inf", SCORES "y = softmax(s + where(b < 1.0, 0.0, -inf)) @ v"},
    {"keys scaled and transposed", "y = softmax(q @ transpose(k / 2, perm=[0, 2, 1])) @ v"},
    {"bf16 queries scaled",
     "x = (cast(q, bf16) * 0.5) @ cast(t, bf16); y = cast(softmax(x) @ cast(v, bf16), f32)"},
    {"bf16 weights", SCORES "y = matmul(cast(softmax(s), bf16), cast(v, bf16), out=f32)"},
    {"bf16 throughout",
     "x = cast(q, bf16) @ cast(t, bf16); y = cast(softmax(x) @ cast(v, bf16), f32)"},
    {"bf16 divided after",
     POWERS "y = cast(cast(e, bf16) @ cast(v, bf16), f32) / sum(e, axis=2, keep=true)"},
    {"the prelude", "y = attention(q, k, v, b)"},
};

static const char *source_of(Arena *arena, const Spelling *spelling, bool is_online) {
    return str_format(arena,
                      "graph g(q: f32[2, 5, 4], k: f32[2, 9, 4], v: f32[2, 9, 3], b: f32[5, 9]) -> "
                      "(y: f32[2, 5, 3]) {\n%s  t = transpose(k, perm=[0, 2, 1])\n  %s\n%s}\n",
                      is_online ? "  online {\n" : "", spelling->body, is_online ? "  }\n" : "");
}

static void count_ops(const Graph *graph, uint32_t *n_online, uint32_t *n_left) {
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        *n_online += graph_is_online(graph, id);
        *n_left +=
            node->op == OP_EXP || node->op == OP_EXP2 || op_info(node->op)->cls == CLASS_REDUCE;
    }
}

Test(online_block, spellings_are_one_op, .timeout = 60) {
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        Arena *arena = arena_new(NULL);
        bool is_prelude = strstr(spellings[i].body, "attention") != NULL;
        Compiled online = compiled_new(source_of(arena, &spellings[i], !is_prelude), TARGET_CPU);
        const Graph *graph = online.module->graphs.data[0];
        uint32_t n_online = 0, n_left = 0;
        count_ops(graph, &n_online, &n_left);
        cr_expect(n_online == 1 && n_left == 0, "%s: %u ops, %u of the softmax are left",
                  spellings[i].name, n_online, n_left);
        Spelling plain = spellings[i];
        if (is_prelude) plain.body = "y = softmax(q @ t * 0.5 + b) @ v";
        Compiled as_written = compiled_new(source_of(arena, &plain, false), TARGET_CPU);
        const double *want = plans_values(arena, as_written.module->graphs.data[0]);
        const double *got = plans_values(arena, graph);
        double most = strstr(plain.name, "bf16") ? 0.03 : 1e-5;
        for (int k = 0; k < 2 * 5 * 3; k++)
            cr_expect(fabs(got[k] - want[k]) <= most, "%s, element %d: %g, not %g",
                      spellings[i].name, k, got[k], want[k]);
        compile_free(&online), compile_free(&as_written);
        arena_free(arena);
    }
}

/* Logarithms of sums of powers: the type of `y`, and how many reductions and powers are left. */
typedef struct Logarithm {
    const char *type;
    Spelling spelling;
    int n_elems;
    uint32_t n_left;
} Logarithm;

static const Logarithm logarithms[] = {
    {"[2, 5]", {"the prelude", SCORES "y = logsumexp(s)"}, 10, 0},
    {"[2, 5, 1]", {"with its axis", SCORES "y = logsumexp(s, keep=true)"}, 10, 0},
    {"[10]", {"reshaped", SCORES "y = logsumexp(reshape(s, [10, 9]))"}, 10, 0},
    {"[2, 5]",
     {"spelled out", SCORES "m = max(s, axis=2); "
                            "y = log(sum(exp(s - unsqueeze(m, 2)), axis=2)) + m"},
     10,
     0},
    {"[2, 5]", {"without a maximum", SCORES "y = log(sum(exp(s), axis=2))"}, 10, 0},
    {"[2, 9]", {"along another axis", SCORES "y = logsumexp(s, axis=1)"}, 18, 0},
    {"[5, 9]", {"along the first axis", SCORES "y = logsumexp(s, axis=0)"}, 45, 0},
    {"[2, 5]", {"masked", SCORES "y = logsumexp(where(b < 1.0, s, -inf))"}, 10, 0},
    {"[2, 5]",
     {"masked by adding -inf", SCORES "y = logsumexp(s + where(b < 1.0, 0.0, -inf))"},
     10,
     0},
    {"[2, 5]", {"bf16 scores", SCORES "y = cast(logsumexp(cast(s, bf16)), f32)"}, 10, 0},
    {"[2, 5, 9]", {"less the logarithm", SCORES "y = log_softmax(s)"}, 90, 0},
    {"[2, 5, 9]",
     {"less the logarithm along another axis", SCORES "y = log_softmax(s, axis=1)"},
     90,
     0},
    {"[2, 5]", {"a loss", SCORES "y = -sum(where(b > 1.0, log_softmax(s), 0.0), axis=2)"}, 10, 1},
};

static const char *source_of_log(Arena *arena, const Logarithm *log, bool is_online) {
    return str_format(
        arena,
        "graph g(q: f32[2, 5, 4], k: f32[2, 9, 4], b: f32[5, 9]) -> (y: f32%s) {\n%s  "
        "t = transpose(k, perm=[0, 2, 1])\n  %s\n%s}\n",
        log->type, is_online ? "  online {\n" : "", log->spelling.body, is_online ? "  }\n" : "");
}

Test(online_block, logarithms_are_one_op, .timeout = 60) {
    for (size_t i = 0; i < sizeof logarithms / sizeof *logarithms; i++) {
        Arena *arena = arena_new(NULL);
        const Logarithm *log = &logarithms[i];
        const char *name = log->spelling.name;
        Compiled online = compiled_new(source_of_log(arena, log, true), TARGET_CPU);
        Compiled as_written = compiled_new(source_of_log(arena, log, false), TARGET_CPU);
        uint32_t n_online = 0, n_left = 0;
        count_ops(online.module->graphs.data[0], &n_online, &n_left);
        cr_expect(n_online == 1 && n_left == log->n_left, "%s: %u ops, %u are left", name, n_online,
                  n_left);
        const double *want = plans_values(arena, as_written.module->graphs.data[0]);
        const double *got = plans_values(arena, online.module->graphs.data[0]);
        double most = strstr(name, "bf16") ? 0.03 : 1e-5;
        for (int k = 0; k < log->n_elems; k++)
            cr_expect(got[k] == want[k] || fabs(got[k] - want[k]) <= most,
                      "%s, element %d: %g, not %g", name, k, got[k], want[k]);
        compile_free(&online), compile_free(&as_written);
        arena_free(arena);
    }
}

/* A softmax with its product and the logarithm of its sum are two ops with the same scores and
 * values, whichever comes first. */
Test(online_block, logarithms_are_of_the_products_scores) {
    static const char *const bodies[] = {
        "y = softmax(s) @ v; l = logsumexp(s)", "l = logsumexp(s); y = softmax(s) @ v",
        "m = max(s, axis=2, keep=true); e = exp(s - m); u = sum(e, axis=2, keep=true); "
        "l = reshape(m + log(u), [2, 5]); y = (e @ v) / u",
        "y = dropout(softmax(s), 0.1, key) @ v; l = logsumexp(s)",
        "x = transpose(s, perm=[0, 2, 1]); p = softmax(x, axis=1); l = logsumexp(x, axis=1); "
        "y = transpose(transpose(v, perm=[0, 2, 1]) @ p, perm=[0, 2, 1])"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        Arena *arena = arena_new(NULL);
        Compiled p = compiled_new(
            str_format(arena,
                       "graph g(q: f32[2, 5, 4], k: f32[2, 9, 4], v: f32[2, 9, 3], key: u32[2]) -> "
                       "(y: f32[2, "
                       "5, 3], l: f32[2, 5]) {\n online {\n s = q @ transpose(k, perm=[0, 2, 1])\n "
                       "%s\n}\n}\n",
                       bodies[i]),
            TARGET_CPU);
        const Graph *graph = p.module->graphs.data[0];
        const Node *ops[3] = {NULL, NULL, NULL};
        uint32_t n = 0;
        for (NodeId id = 0; id < graph->nodes.n; id++)
            if (graph_is_online(graph, id) && n < 3) ops[n++] = graph_node(graph, id);
        cr_assert_eq(n, 2u, "%s: %u ops", bodies[i], n);
        cr_expect(ops[0]->args[0] == ops[1]->args[0] && ops[0]->args[1] == ops[1]->args[1], "%s",
                  bodies[i]);
        compile_free(&p);
        arena_free(arena);
    }
}

/* A block says what is done inside it alone. */
Test(online_block, what_is_outside_stays) {
    Compiled p =
        compiled_new("graph g(x: f32[5, 9], v: f32[9, 3]) -> (a: f32[5, 3], b: f32[5, 3]) {\n"
                     "  a = softmax(x) @ v\n  online {\n    b = softmax(x) @ v\n  }\n}\n",
                     TARGET_CPU);
    uint32_t n_online = 0, n_left = 0;
    count_ops(p.module->graphs.data[0], &n_online, &n_left);
    cr_expect(n_online == 1 && n_left == 3, "%u, %u", n_online, n_left);
    compile_free(&p);
}

/* The graph of a source that is rewritten as a whole. */
static const Graph *rewritten(Arena *arena, const char *text) {
    StrTab *strings = strtab_new(arena);
    Diags diags = {.arena = arena};
    const Source *source = source_new(arena, "whole.g", text, strlen(text));
    Sema *sema = front_read(arena, strings, &diags, source, NULL);
    Module *module = sema ? front_check(sema, NULL, true) : NULL;
    cr_assert(module, "%s", text);
    return module->graphs.data[0];
}

static const char *printed(Arena *arena, const Graph *graph) {
    Text text = {.arena = arena};
    graph_print(graph, &text);
    return text_str(&text);
}

/* Every spelling becomes what it becomes in a block. That a sum with -infinity hides a key,
 * whatever its score is, a block says alone. */
Test(online_block, whole_graphs_become_what_blocks_become, .timeout = 60) {
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        Arena *arena = arena_new(NULL);
        if (strstr(spellings[i].body, "attention") || strstr(spellings[i].name, "-inf")) continue;
        Compiled online = compiled_new(source_of(arena, &spellings[i], true), TARGET_CPU);
        const Graph *graph = rewritten(arena, source_of(arena, &spellings[i], false));
        cr_expect_str_eq(printed(arena, graph), printed(arena, online.module->graphs.data[0]), "%s",
                         spellings[i].name);
        cr_assert_eq(graph->softmaxes.n, 1u, "%s", spellings[i].name);
        cr_expect_null(graph->softmaxes.data[0].why_left, "%s", spellings[i].name);
        compile_free(&online);
        arena_free(arena);
    }
}

/* What cannot become one op is left, without an error, and noted with the reason. */
Test(online_block, what_whole_graphs_leave_is_noted) {
    static const struct {
        const char *body, *why;
        bool is_made; /* beside what is left */
    } cases[] = {
        {"y = softmax(x) @ v + max(softmax(x))", "something else reads its softmax too", false},
        {"y = (softmax(x) + 1) @ v", "`add` stands between the softmax and its product", false},
        {"y = exp(x) @ v", "the weights of a softmax are not divided by their sum", false},
        {"y = softmax(x, axis=0) @ v",
         "a softmax goes along another axis than the one that its product contracts", false},
        {"y = softmax(x) @ v + max(softmax(x + 1))", "no product contracts its axis", true},
        {"fuse never {\n p = softmax(x)\n }\n y = p @ v",
         "no product of its block contracts its axis", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        const Graph *graph = rewritten(
            arena,
            str_format(arena, "graph g(x: f32[5, 9], v: f32[9, 3]) -> (y: f32[5, 3]) {\n%s\n}\n",
                       cases[i].body));
        uint32_t n_online = 0, n_left = 0, n_noted = 0;
        count_ops(graph, &n_online, &n_left);
        cr_expect_eq(n_online, cases[i].is_made ? 1u : 0u, "%s", cases[i].body);
        for (uint32_t k = 0; k < graph->softmaxes.n; k++) {
            const char *why = graph->softmaxes.data[k].why_left;
            n_noted += why != NULL;
            if (why) cr_expect_str_eq(why, cases[i].why, "%s", cases[i].body);
        }
        cr_expect_eq(n_noted, 1u, "%s", cases[i].body);
        arena_free(arena);
    }
}

/* A product of a block may read exponentials from outside of it. They are no softmax of the block,
 * whether or not the whole graph is rewritten. */
Test(online_block, queries_of_exponentials_are_no_softmax) {
    static const char source[] =
        "graph g(q: f32[6, 8], k: f32[4, 8], v: f32[4, 3]) -> (y: f32[6, 3]) {\n"
        "  y = attention(clamp(mish(q), -1.0, 1.0), k, v)\n}\n";
    Arena *arena = arena_new(NULL);
    Compiled online = compiled_new(source, TARGET_CPU);
    const Graph *graph = rewritten(arena, source);
    cr_expect_str_eq(printed(arena, graph), printed(arena, online.module->graphs.data[0]));
    compile_free(&online);
    arena_free(arena);
}
