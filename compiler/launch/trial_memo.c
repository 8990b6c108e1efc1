/* See trial_memo.h. */
#include "launch/trial_memo.h"

#include "base/recent.h"
#include "cost/price_key.h"
#include "plan/words.h"

struct TrialMemo {
    Arena *arena;
    Recent *verdicts;
    bool has_key;      /* the last trial's verdict can be kept */
    uint32_t *numbers; /* per node of the graph: its number in the key that is written, or 0 */
    VecU32 numbered;   /* nodes */
};

TrialMemo *trial_memo_new(Arena *arena, const Graph *graph) {
    TrialMemo *memo = arena_array(arena, TrialMemo, 1);
    memo->arena = arena;
    memo->verdicts = recent_new(arena, sizeof(Verdict));
    memo->numbers = arena_array(arena, uint32_t, graph->nodes.n);
    return memo;
}

/* Nodes have numbers in the order of their first use. */
static uint32_t number_of(TrialMemo *memo, NodeId id) {
    if (!memo->numbers[id]) {
        vec_push(memo->arena, &memo->numbered, id);
        memo->numbers[id] = memo->numbered.n;
    }
    return memo->numbers[id];
}

/* A node that the kernel computes: prices do not depend on the value of a literal. */
static void write_node(TrialMemo *memo, Words *words, const Graph *graph, NodeId id) {
    Node node = *graph_node(graph, id);
    if (graph_is_literal(graph, id)) node.attrs.number = 0, node.attrs.whole = 0;
    words_put(words, number_of(memo, id));
    words_put_node(words, &node);
    words_put(words, node.n_args);
    for (uint32_t i = 0; i < node.n_args; i++) words_put(words, number_of(memo, node.args[i]));
}

static void write_nodes(TrialMemo *memo, Words *words, const Plan *plan) {
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        words_put(words, kernel->nodes.n);
        for (uint32_t i = 0; i < kernel->nodes.n; i++)
            write_node(memo, words, plan->graph, kernel->nodes.data[i]);
        for (uint32_t i = 0; i < kernel->args.n; i++)
            words_put(words, number_of(memo, plan->buffers.data[kernel->args.data[i]].node));
    }
    for (uint32_t i = 0; i < memo->numbered.n; i++) memo->numbers[memo->numbered.data[i]] = 0;
    memo->numbered.n = 0;
}

/* The buffers that only the launch uses. */
static void write_private(Words *words, const Composer *c, const Trial *t) {
    for (uint32_t k = 0; k < trial_n_kernels(t); k++)
        for (uint32_t i = 0; i < trial_kernel(t, k)->args.n; i++)
            words_put(words, trial_is_private(c, t, trial_kernel(t, k)->args.data[i]));
}

const Verdict *trial_memo_find(TrialMemo *memo, const Composer *c, const Trial *t) {
    uint32_t first, n;
    ArenaMark mark = arena_mark(c->scratch);
    Words words = {.arena = memo->arena, .key = recent_begin(memo->verdicts)};
    trial_find_near(c, t, &first, &n);
    Plan near = plan_extract(c->scratch, c->plan, first, n);
    words_put(&words, t->rules->mode);
    words_put(&words, t->n_launches);
    for (uint32_t i = 0; i < t->n_launches; i++) words_put(&words, t->launches[i] - first);
    write_private(&words, c, t);
    write_nodes(memo, &words, &near);
    memo->has_key = price_key_write(memo->arena, words.key, c->scratch, &near, c->target);
    arena_rewind(c->scratch, mark);
    return memo->has_key ? recent_find(memo->verdicts) : NULL;
}

void trial_memo_add(TrialMemo *memo, Verdict verdict) {
    if (memo->has_key) recent_add(memo->verdicts, &verdict);
}
