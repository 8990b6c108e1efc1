/* The ledger's numbers and the fused graph's way back to the same plan. */
#include "explain/explain.h"

#include "lib/plans.h"
#include "lib/text_file.h"
#include "random/random_graph.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Fixture {
    Arena *arena;
    Module *module;
    LedgerInput input;
} Fixture;

static Fixture fixture_for(const char *source, uint32_t graph, TargetId target, CardId card) {
    Fixture f = {.arena = arena_new(NULL)};
    f.module = plans_parse(f.arena, source);
    for (int off = 0; off < 2; off++) {
        PricedPlan priced =
            plans_price(f.arena, f.module, graph, off, target, card_get(card), NULL);
        cr_assert(priced.cost);
        if (!off) f.input.advices = advice_settle(f.arena, priced.plan, NULL);
        *(off ? &f.input.unfused_cost : &f.input.cost) = priced.cost;
    }
    return f;
}

static Fixture fixture_new(const char *source, uint32_t graph) {
    return fixture_for(source, graph, TARGET_SM_90A, CARD_H200);
}

static const char *ledger_of(const Fixture *f) {
    Text text = {.arena = f->arena};
    explain_print(ledger_new(f->arena, &f->input), &text);
    return text_str(&text);
}

static void expect_line(const char *ledger, const char *line) {
    cr_expect(strstr(ledger, line), "no `%s` in\n%s", line, ledger);
}

Test(explain, every_edge_has_a_verdict_and_totals_add_up) {
    Fixture f = fixture_new("graph g(x: f32[100, 64], b: f32[64]) -> (y: f32[100, 64]) {\n"
                            "  h = x + b\n  y = relu(h)\n}\n",
                            0);
    const char *ledger = ledger_of(&f);
    expect_line(ledger, "h (line 2:7) -> y (line 3:7): fused  [inlined]");
    expect_line(ledger, "launches                           1 (2 without fusion)");
    expect_line(ledger, "in and out of kernels              51456 bytes");
    expect_line(ledger, "the same without fusion            102656 bytes");
    expect_line(ledger, "least: inputs and outputs once     51456 bytes");
    expect_line(ledger, "workspace                          0 bytes");
    arena_free(f.arena);
}

Test(explain, stored_edges_say_why) {
    Fixture f = fixture_new("graph g(x: f32[64, 100]) -> (y: f32[100]) {\n"
                            "  s = softmax(x, axis=1)\n  y = sum(s, axis=0)\n}\n",
                            0);
    const char *ledger = ledger_of(&f);
    expect_line(ledger, "sum (line 2:7) -> s (line 2:7): stored  [other-domain]");
    expect_line(ledger, "reads t0 t1: 25856 bytes");
    arena_free(f.arena);
}

/* What follows the words in the ledger, as a number. */
static double number_after(const char *ledger, const char *words) {
    const char *at = strstr(ledger, words);
    cr_assert(at, "no `%s` in\n%s", words, ledger);
    return strtod(at + strlen(words), NULL);
}

Test(explain, two_ops_that_are_a_kernel_take_what_it_takes) {
    Fixture f = fixture_for("graph g(y: bf16[257, 3000], j: i32[3000]) -> (v: bf16[3001, 3003]) {\n"
                            "  v = pad(gather(y, j, axis=0), low=[0, 1], high=[1, 2])\n}\n",
                            0, TARGET_SM_90A, CARD_H200);
    const char *ledger = ledger_of(&f);
    cr_expect_eq(number_after(ledger, ", together "), number_after(ledger, "takes "), "%s", ledger);
    arena_free(f.arena);
}

Test(explain, each_output_has_its_name) {
    Fixture f = fixture_new("graph g(x: f32[8]) -> (y: f32[8], z: f32[8], w: f32[8]) {\n"
                            "  y = relu(x)\n  z = relu(x)\n  w = x\n}\n",
                            0);
    const char *ledger = ledger_of(&f);
    expect_line(ledger, "y (line 2:7) -> output y: stored  [output]");
    expect_line(ledger, "y (line 2:7) -> output z: stored  [output]");
    expect_line(ledger, "-> output w: stored  [output]");
    arena_free(f.arena);
}

Test(explain, init_steps_are_listed_before_a_run) {
    Fixture f = fixture_new("graph g(x: f32[100, 64]) -> (y: f32[100, 64]) {\n"
                            "  param w: f32[64, 64] = \"w\"\n  y = x * max(w, axis=0)\n}\n",
                            0);
    const char *ledger = ledger_of(&f);
    const char *init = strstr(ledger, "\ninit steps:\n"), *run = strstr(ledger, "\nkernels:\n");
    cr_assert(init && run && init < run, "%s", ledger);
    cr_expect(strstr(init, "    takes ") < run && strstr(run, "    takes "));
    expect_line(ledger, "max (line 3:11) -> y (line 3:7): stored  [prepared]");
    expect_line(ledger, "launches                           1 (1 without fusion)");
    expect_line(ledger, "init steps, not in a run           1, ");
    expect_line(ledger, "prepared by them                   256 bytes");
    arena_free(f.arena);
}

Test(explain, symbolic_sizes_are_expressions) {
    Fixture f = fixture_new("dim B in 1..100\ngraph g(x: bf16[B, 3]) -> (y: bf16[B, 3]) {\n"
                            "  y = exp(-x)\n}\n",
                            0);
    expect_line(ledger_of(&f), "in and out of kernels              12*B bytes");
    arena_free(f.arena);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What a kernel computes, by what survives printing: its form and the multiset of ops. */
static const char *kernel_text(Arena *arena, const Plan *plan, const Kernel *kernel) {
    Text text = {.arena = arena};
    uint32_t counts[OP_COUNT] = {0};
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        counts[graph_node(plan->graph, kernel->nodes.data[i])->op]++;
    text_printf(&text, "form %d, %u stages, %u args:", kernel->form, kernel->stages.n,
                kernel->args.n);
    for (int op = 0; op < OP_COUNT; op++) {
        bool is_source = op && op_info((OpId)op)->cls == CLASS_SOURCE;
        if (counts[op] && !is_source)
            text_printf(&text, " %ux%s", counts[op], op_info((OpId)op)->name);
    }
    return text_str(&text);
}

/* All kernels, in no order: init steps and what runs may pass one another. */
static const char *partition_of(Arena *arena, const Plan *plan) {
    Text text = {.arena = arena};
    const char **lines = arena_array(arena, const char *, plan->kernels.n);
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        lines[k] = kernel_text(arena, plan, &plan->kernels.data[k]);
    qsort(lines, plan->kernels.n, sizeof *lines, by_text);
    for (uint32_t k = 0; k < plan->kernels.n; k++) text_printf(&text, "%s\n", lines[k]);
    return text_str(&text);
}

static void expect_same_plan(const char *source, const char *what) {
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, source);
    for (uint32_t g = 0; g < module->graphs.n; g++) {
        const Plan *plan = plans_fuse(arena, module, g, false);
        Graph *fused = explain_fused_graph(arena, strtab_new(arena), plan);
        const char *wrong = graph_verify(fused, arena);
        cr_assert(!wrong, "%s: %s", what, wrong);
        Module shown = *module;
        memset(&shown.graphs, 0, sizeof shown.graphs);
        vec_push(arena, &shown.graphs, fused);
        Text text = {.arena = arena};
        module_print(&shown, &text);
        Module *again = plans_parse(arena, text_str(&text));
        const Plan *second = plans_fuse(arena, again, 0, false);
        const char *first_text = partition_of(arena, plan);
        const char *second_text = partition_of(arena, second);
        cr_expect(strcmp(first_text, second_text) == 0, "%s, graph %u:\n%swas\n%safter\n%s", what,
                  g, text_str(&text), first_text, second_text);
    }
    arena_free(arena);
}

Test(explain, the_fused_graph_parses_back_to_the_same_plan) {
    static const char *const sources[] = {
        "graph g(x: f32[100]) -> (y: f32[100]) { y = exp(x) + relu(x) }\n",
        "graph g(x: f32[64, 100]) -> (y: f32[100]) { y = sum(softmax(x, axis=1), axis=0) }\n",
        "dim N in 1..1000000\ngraph g(x: f32[N]) -> (y: f32[N]) { y = x / sum(x) }\n",
        "graph g(x: f32[8, 9]) -> (y: f32[9, 8], z: f32[8, 9]) { z = -x\n y = transpose(z) }\n",
        "graph g(x: f32[1000]) -> (y: f32[998]) { e = exp(x)\n y = e[2:] - e[:-2] + e[1:-1] }\n",
        "graph g(x: f32[4]) -> (y: f32[4]) { y = x }\n",
        "graph g(x: f32[8, 8]) -> (y: f32[8, 8], z: f32[8, 8]) { z = x\n y = x + 1.0 }\n",
        "graph g(x: f32[8, 64]) -> (y: f32[], z: f32[8, 64], u: f32[8, 64])"
        " { z = x\n y = max(x, axis=[0, 1])\n u = x }\n",
        "graph g(x: f32[8, 8], t: f32[8, 8]) -> (y: f32[8, 8], z: f32[8, 8], u: f32[8, 8], s: "
        "f32[8])"
        " { z = x\n s = sum(t, axis=0)\n u = t\n y = x + s }\n",
        "graph g(x: f32[4, 8], w: f32[8, 0]) -> (y: f32[0], z: f32[0, 4])"
        " { p = x @ w\n y = reshape(p, [0])\n z = transpose(p) }\n",
        "graph g(x: f64[3, 0, 8]) -> (y: f64[3, 0, 8], z: f32[1, 3, 0])"
        " { y = cummax(x, axis=0)\n z = cumsum(cast(reshape(y, [1, 3, 0]), f32), axis=1) }\n",
    };
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        expect_same_plan(sources[i], sources[i]);
}

static const char *read_text(Arena *arena, const char *path) {
    size_t n_bytes;
    return text_file_read(arena, path, &n_bytes);
}

Test(explain, random_programs_parse_back_to_the_same_plan) {
    RandomGraphOptions options = random_graph_defaults();
    options.without_matmul = false;
    for (uint64_t seed = 9000; seed < 9060; seed++) {
        Arena *arena = arena_new(NULL);
        options.param_percent = seed % 3 == 0 ? 80 : 20;
        expect_same_plan(random_graph_source(arena, seed, &options),
                         str_format(arena, "seed %d", (int)seed));
        arena_free(arena);
    }
}

Test(explain, every_example_parses_back_to_the_same_plan) {
    Arena *arena = arena_new(NULL);
    glob_t examples;
    cr_assert(glob("dsl/examples/*.g", 0, NULL, &examples) == 0);
    for (size_t i = 0; i < examples.gl_pathc; i++)
        expect_same_plan(read_text(arena, examples.gl_pathv[i]), examples.gl_pathv[i]);
    globfree(&examples);
    arena_free(arena);
}

/* All graphs of tests/explain/ledger.g as JSON, for a target that has launches of several kernels.
 */
static const char *json_of_ledger(Arena *arena) {
    Text text = {.arena = arena};
    JsonText json = {.out = &text};
    const char *source = read_text(arena, "tests/explain/ledger.g");
    jsontext_begin(&json, NULL, '[');
    for (uint32_t g = 0; g < 3; g++) {
        Fixture f = fixture_for(source, g, TARGET_SM_80, CARD_A100);
        Text own = {.arena = f.arena};
        json.out = &own;
        explain_json(ledger_new(f.arena, &f.input), &json);
        text_puts(&text, text_str(&own));
        arena_free(f.arena);
    }
    json.out = &text;
    jsontext_end(&json, ']');
    return text_str(&text);
}

/* FUSEC_UPDATE_GOLDEN writes it anew. */
Test(explain, the_json_is_as_it_was) {
    Arena *arena = arena_new(NULL);
    const char *path = "tests/explain/ledger.json", *text = json_of_ledger(arena);
    json_error_t error;
    json_t *root = json_loads(text, 0, &error);
    cr_assert(root, "line %d: %s", error.line, error.text);
    if (getenv("FUSEC_UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "wb");
        cr_assert(file, "cannot write %s", path);
        fputs(text, file);
        cr_expect_eq(fclose(file), 0);
    } else {
        cr_expect_str_eq(text, read_text(arena, path));
    }
    json_decref(root);
    arena_free(arena);
}

/* Member names in backquotes at the head of a table's row. */
static bool is_documented(const char *manual, const char *name) {
    char row[80];
    snprintf(row, sizeof row, "\n| `%s` |", name);
    return strstr(manual, row) != NULL;
}

static void expect_documented(const char *manual, const json_t *value) {
    const char *name;
    json_t *member;
    size_t i;
    if (json_is_array(value)) {
        json_array_foreach(value, i, member) expect_documented(manual, member);
        return;
    }
    json_object_foreach((json_t *)value, name, member) {
        cr_expect(is_documented(manual, name), "docs/EXPLAIN.md does not tell of `%s`", name);
        expect_documented(manual, member);
    }
}

Test(explain, every_member_of_the_json_is_in_the_manual) {
    Arena *arena = arena_new(NULL);
    json_error_t error;
    json_t *root = json_loads(json_of_ledger(arena), 0, &error);
    cr_assert(root, "line %d: %s", error.line, error.text);
    expect_documented(read_text(arena, "docs/EXPLAIN.md"), root);
    json_decref(root);
    arena_free(arena);
}

Test(explain, json_text_is_escaped) {
    Arena *arena = arena_new(NULL);
    Text text = {.arena = arena};
    JsonText json = {.out = &text};
    jsontext_begin(&json, NULL, '{');
    jsontext_string(&json, "a\"b", "tab\t, \\, \xC3\xA4, \xFF");
    jsontext_number(&json, "n", 0.1);
    jsontext_number(&json, "big", 123456789012345.0);
    jsontext_number(&json, "none", (double)INFINITY);
    jsontext_begin(&json, "empty", '[');
    jsontext_end(&json, ']');
    jsontext_end(&json, '}');
    cr_expect_str_eq(text_str(&text),
                     "{\n  \"a\\\"b\": \"tab\\u0009, \\\\, \xC3\xA4, \xEF\xBF\xBD\",\n"
                     "  \"n\": 0.1,\n  \"big\": 123456789012345,\n"
                     "  \"none\": null,\n  \"empty\": []\n}\n");
    arena_free(arena);
}

/* A chain of ops, and its ledger; how much memory that took. */
static size_t ledger_memory(int n_ops) {
    Arena *arena = arena_new(NULL);
    Text text = {.arena = arena};
    text_puts(&text, "graph g(x: f32[1024]) -> (y: f32[1024]) {\n  v0 = x + x\n");
    for (int i = 1; i < n_ops; i++) text_printf(&text, "  v%d = v%d + x\n", i, i - 1);
    text_printf(&text, "  y = v%d\n}\n", n_ops - 1);
    Fixture f = fixture_new(text_str(&text), 0);
    size_t before = strlen(ledger_of(&f)), used = arena_used_bytes(f.arena);
    cr_assert_gt(before, 0);
    arena_free(f.arena);
    arena_free(arena);
    return used;
}

/* A kernel that is composed costs what it holds, not what the graph has. */
Test(explain, memory_grows_with_the_graph_and_no_faster) {
    double small = (double)ledger_memory(400), large = (double)ledger_memory(3200);
    cr_expect_lt(large / small, 10, "%.0f bytes for 400 ops, %.0f for 3200", small, large);
}
