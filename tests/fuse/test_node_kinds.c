/* Layers of a model have nodes of the same kinds, and grouping with the memo of trials makes the
 * same kernels as without. */
#include "fuse/node_kinds.h"
#include "fuse/group_memo.h"
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <string.h>

static NodeId node_of(const Graph *graph, const char *name) {
    NodeId id = 0;
    while (id < graph->nodes.n &&
           (!graph_node(graph, id)->name || strcmp(graph_node(graph, id)->name, name) != 0))
        id++;
    cr_assert(id < graph->nodes.n, "%s", name);
    return id;
}

Test(node_kinds, nodes_of_one_kind_differ_in_their_place_alone) {
    static const struct {
        const char *one, *other;
        bool are_alike;
    } pairs[] = {
        {"a1", "a2", true},  /* equal arguments at equal distances, and an input */
        {"b1", "b2", true},  /* a literal is an argument of both */
        {"a1", "b1", false}, /* another op */
        {"b2", "b3", false}, /* another literal */
        {"a2", "a3", false}, /* the argument lies farther away */
        {"a1", "a4", false}, /* another input */
        {"c1", "c2", false}, /* another axis */
        {"x", "z", false},   /* an input is a kind by itself */
    };
    Arena *arena = arena_new(NULL);
    const Graph *graph = plans_parse(arena, "graph g(x: f32[8,8], z: f32[8,8]) -> (y: f32[8,8]) {\n"
                                            "  v = exp(x) + 2.0\n  a1 = v * x\n  b1 = a1 + 2.0\n"
                                            "  a2 = b1 * x\n  b2 = a2 + 2.0\n"
                                            "  a3 = a2 * x\n  b3 = a3 + 3.0\n"
                                            "  a4 = b3 * z\n  c1 = sum(a4, axis=0)\n"
                                            "  c2 = sum(c1 * a4, axis=1)\n  y = c2 + a4 + b2\n}\n")
                             ->graphs.data[0];
    KindTab tab = {.looks = {.keys = {0}}};
    NodeKinds *kinds = node_kinds_new(arena, &tab, graph);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        NodeId one = node_of(graph, pairs[i].one), other = node_of(graph, pairs[i].other);
        cr_expect_eq(node_kind(kinds, one) == node_kind(kinds, other), pairs[i].are_alike, "%s, %s",
                     pairs[i].one, pairs[i].other);
    }
    cr_expect(node_is_fixed(kinds, node_of(graph, "x")));
    cr_expect_not(node_is_fixed(kinds, node_of(graph, "a1")));
    arena_free(arena);
}

Test(node_kinds, weights_and_tables_of_layers_make_no_kinds) {
    Arena *arena = arena_new(NULL);
    const Graph *graph =
        plans_parse(arena, "graph g(x: f32[8,8], s: f32[8]) -> (y: f32[8,8]) {\n"
                           "  param v: f32[8,8]\n  m1 = x @ v\n"
                           "  t = cos(cast(iota([8,8], axis=0), f32))\n"
                           "  a1 = m1 * t + t\n  r1 = sum(a1 + s, axis=0, keep=true) + a1\n"
                           "  param w: f32[8,8]\n  m2 = r1 @ w\n"
                           "  u = cos(cast(iota([8,8], axis=0), f32) * 1.0)\n"
                           "  a2 = m2 * u + u\n  r2 = sum(a2 + s, axis=0, keep=true) + a2\n"
                           "  param z: f32[8,8]\n  m3 = r2 @ z\n"
                           "  y = m3 + s\n}\n")
            ->graphs.data[0];
    KindTab tab = {.looks = {.keys = {0}}};
    NodeKinds *kinds = node_kinds_new(arena, &tab, graph);
    cr_expect_eq(node_kind(kinds, node_of(graph, "m2")), node_kind(kinds, node_of(graph, "m3")));
    cr_expect_eq(node_kind(kinds, node_of(graph, "a1")), node_kind(kinds, node_of(graph, "a2")));
    cr_expect_not(node_is_fixed(kinds, node_of(graph, "w")));
    cr_expect_not(node_is_fixed(kinds, node_of(graph, "t")));
    cr_expect(node_is_fixed(kinds, node_of(graph, "s")));
    arena_free(arena);
}

/* A graph of `n` statements, each of which reads the value before. In a statement `#` stands for
 * its number, `$` for that of the one before, `&` for half of it. */
static const char *chain(Arena *arena, const char *statement, int n) {
    Text text = {.arena = arena};
    text_puts(
        &text,
        "weights \"w\"\ngraph g(x: f32[8,8], s: f32[8], b: f32[8]) -> (y: f32[8,8]) {\n  v0 = x\n");
    for (int i = 1; i <= n; i++)
        for (const char *at = statement; *at; at++) {
            if (strchr("#$&", *at))
                text_printf(&text, "%d", *at == '#' ? i : *at == '$' ? i - 1 : i / 2);
            else
                text_add(&text, at, 1);
        }
    text_printf(&text, "  y = v%d\n}\n", n);
    return text_str(&text);
}

static const char *fused_text(Arena *arena, const Graph *graph, GroupMemo *memo) {
    Diags diags = {.arena = arena};
    Text text = {.arena = arena};
    plan_print(plans_fuse_with(arena, graph, (FuseOptions){.memo = memo}, &diags), &text);
    return text_str(&text);
}

Test(node_kinds, the_memo_of_trials_changes_no_kernel) {
    static const char *const statements[] = {
        "  v# = softmax(v$)\n",
        "  v# = layernorm(v$, s, b)\n",
        "  v# = softmax(v$ @ x) + v&\n",
        "  v# = v$ - median(v$, keep=true)\n",
        "  v# = transpose(softmax(v$)) + sum(v&, axis=0)\n",
        "  v# = concat([exp(v$[:, 4:]), v&[:, :4] * #], 1)\n",
        "  param w#: f32[8,8] = \"w#\"\n  v# = softmax(v$ + w#) * w#\n",
        "  fuse must {\n  a# = exp(v$)\n  v# = softmax(a#)\n  }\n",
    };
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        Arena *arena = arena_new(NULL), *trials = arena_new(NULL);
        const Graph *graph = plans_parse(arena, chain(arena, statements[i], 60))->graphs.data[0];
        GroupingWork work = {0};
        GroupMemo *memo = group_memo_new(known_groups_new(arena), trials, graph, &work);
        const char *without = fused_text(arena, graph, NULL);
        cr_expect_str_eq(fused_text(arena, graph, memo), without, "%s", statements[i]);
        cr_expect(work.n_scalars > 0, "%s: no scalars of trials are counted", statements[i]);
        arena_free(trials);
        arena_free(arena);
    }
}

/* A graph of the same statements needs no trials, one of others some. */
Test(node_kinds, graphs_share_trials_and_no_kernel_changes) {
    static const char *const statements[] = {
        "  v# = softmax(v$) + 2.0\n",         "  v# = softmax(v$) + 2.0\n",
        "  v# = softmax(v$ * s) + 2.0\n",     "  v# = softmax(v$ * b) + 2.0\n",
        "  v# = softmax(v$, axis=0) + 3.0\n", "  v# = softmax(v$ @ x) + v&\n",
        "  v# = softmax(v$ @ x) + v&\n",
    };
    enum { N = sizeof statements / sizeof *statements };
    Arena *arena = arena_new(NULL), *trials = arena_new(NULL);
    Text text = {.arena = arena};
    for (size_t i = 0; i < N; i++) {
        const char *graph = strstr(chain(arena, statements[i], 20), "graph g(");
        text_printf(&text, "graph g%zu%s", i, graph + strlen("graph g"));
    }
    const Module *module = plans_parse(arena, text_str(&text));
    KnownGroups *known = known_groups_new(arena);
    for (size_t i = 0; i < N; i++) {
        const Graph *graph = module->graphs.data[i];
        GroupingWork work = {0};
        GroupMemo *memo = group_memo_new(known, trials, graph, &work);
        const char *without = fused_text(arena, graph, NULL);
        cr_expect_str_eq(fused_text(arena, graph, memo), without, "%s", statements[i]);
        bool is_known = i > 0 && strcmp(statements[i], statements[i - 1]) == 0;
        cr_expect_eq(work.n_scalars == 0, is_known, "%s: %d scalars", statements[i],
                     (int)work.n_scalars);
    }
    arena_free(trials);
    arena_free(arena);
}

/* What is computed from inputs alone, as angles of positions, and read by all layers. */
Test(node_kinds, what_inputs_determine_is_shared_by_layers) {
    Arena *arena = arena_new(NULL);
    const char *layers = chain(arena, "  a# = v$ * t\n  v# = softmax(a#) + a#\n", 20);
    const char *at = strstr(layers, "  v0 = x\n");
    const char *source =
        str_format(arena, "%.*s  t = cos(s * b)\n%s", (int)(at - layers), layers, at);
    const Graph *graph = plans_parse(arena, source)->graphs.data[0];
    KindTab tab = {.looks = {.keys = {0}}};
    NodeKinds *kinds = node_kinds_new(arena, &tab, graph);
    cr_expect(node_is_fixed(kinds, node_of(graph, "t")));
    cr_expect_eq(node_kind(kinds, node_of(graph, "a2")), node_kind(kinds, node_of(graph, "a20")));
    arena_free(arena);
}

/* Not again for each product, with all that the layers before it add up. */
Test(node_kinds, products_of_one_operand_inline_it_once) {
    Arena *arena = arena_new(NULL), *trials = arena_new(NULL);
    uint64_t n[2];
    for (int i = 0; i < 2; i++) {
        static const char *const layers[] = {
            "  a# = relu(v$)\n  v# = v$ + a# @ x\n",
            "  a# = relu(v$)\n  v# = v$ + (a# @ x) * (a# @ transpose(x)) * (a# @ v0)\n"};
        GroupingWork work = {0};
        const Graph *graph = plans_parse(arena, chain(arena, layers[i], 30))->graphs.data[0];
        fused_text(arena, graph, group_memo_new(known_groups_new(arena), trials, graph, &work));
        n[i] = work.n_scalars;
    }
    cr_expect(2 * n[1] < 3 * n[0], "%d and %d scalars", (int)n[0], (int)n[1]);
    arena_free(trials);
    arena_free(arena);
}

/* The second plan of a graph, one of whose nodes has a directive, tries few of the groups anew,
 * also where each layer has a trial of its own. */
Test(node_kinds, another_plan_of_a_graph_finds_the_trials_of_each_layer) {
    enum { N = 60 };
    Arena *arena = arena_new(NULL), *trials = arena_new(NULL);
    const char *source = chain(arena, "  v# = v$ + softmax(v$)\n", N);
    const Graph *graph = plans_parse(arena, source)->graphs.data[0];
    Diags diags = {.arena = arena};
    GroupingWork work = {0};
    GroupMemo *memo = group_memo_new(known_groups_new(arena), trials, graph, &work);
    fused_text(arena, graph, memo);
    uint64_t n_first = work.n_scalars;
    Decisions *decisions = decisions_new(arena, graph->nodes.n);
    decisions_add(decisions, node_of(graph, "v60"), DIRECTIVE_OWN_KERNEL);
    FuseOptions options = {.memo = memo, .decisions = decisions};
    cr_assert(plans_fuse_with(arena, graph, options, &diags));
    cr_expect(work.n_scalars - n_first < n_first / 8, "%d of %d scalars",
              (int)(work.n_scalars - n_first), (int)n_first);
    arena_free(trials);
    arena_free(arena);
}
