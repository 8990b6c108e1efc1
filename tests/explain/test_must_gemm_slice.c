/* A `fuse must` block around ops whose edges fusion fuses anyway is kept: prices, which a block
 * sets aside, cannot refuse it. */
#include "explain/must_check.h"

#include "lib/plans.h"
#include "random/random_graph.h"
#include "random/rng.h"

#include <criterion/criterion.h>

enum { MAX_TRIES = 40, MAX_SLICES = 3, MAX_OPS = 14 };

/* The nodes from `begin` to `end` - 1 in one block. */
typedef struct Range {
    NodeId begin, end;
} Range;

static Module *parse_with(Arena *arena, const char *source, Range range) {
    Module *module = plans_parse(arena, source);
    Graph *graph = module->graphs.data[0];
    while (graph->kernel_of.n < graph->nodes.n) vec_push(graph->arena, &graph->kernel_of, 0);
    vec_push(graph->arena, &graph->fixed_kernels,
             (FixedKernel){.kind = BLOCK_MUST, .name = "must", .span = graph->span});
    for (NodeId id = range.begin; id < range.end; id++)
        if (!graph_is_bound(graph, id)) graph->kernel_of.data[id] = graph->fixed_kernels.n;
    return module;
}

/* Whether the slice has edges, all of them fused. */
static bool is_fused(const Plan *plan, Range range) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        const Edge *edge = &plan->edges.data[i];
        bool is_inside = edge->consumer != NODE_NONE && edge->producer >= range.begin &&
                         edge->consumer < range.end;
        if (!is_inside || edge->reason == REASON_SOURCE) continue;
        if (edge->verdict != EDGE_FUSED) return false;
        n++;
    }
    return n > 0;
}

static const char *messages(Arena *arena, const Plan *plan) {
    Diags diags = {.arena = arena};
    Text text = {.arena = arena};
    must_check(plan, NULL, NULL, &diags);
    diag_print(&diags, &text);
    return text_str(&text);
}

static bool is_kept(const char *source, Range range, TargetId target, uint64_t seed) {
    Arena *arena = arena_new(NULL);
    const Card *card = card_of_target(target_get(target));
    const Module *module = parse_with(arena, source, range);
    const Plan *plan = plans_price(arena, module, 0, false, target, card, NULL).plan;
    bool is_kept = plan && must_n_broken(plan) == 0;
    cr_expect(is_kept, "seed %llu for %s, ops %u to %u:\n%s%s", (unsigned long long)seed,
              target_get(target)->name, range.begin, range.end - 1,
              plan ? messages(arena, plan) : "no plan\n", source);
    arena_free(arena);
    return is_kept;
}

/* Checks one graph, and returns how many slices were tried. */
static uint32_t try_graph(uint64_t seed, TargetId target) {
    Arena *arena = arena_new(NULL);
    RandomGraphOptions options = random_graph_defaults();
    options.without_params = true; /* edges of init steps keep other rules */
    const char *source = random_graph_source(arena, seed, &options);
    const Module *module = plans_parse(arena, source);
    const Card *card = card_of_target(target_get(target));
    const Plan *plan = plans_price(arena, module, 0, false, target, card, NULL).plan;
    Rng rng = rng_new(seed);
    uint32_t n_nodes = plan->graph->nodes.n, n_slices = 0;
    for (int i = 0; i < MAX_TRIES && n_slices < MAX_SLICES; i++) {
        Range range = {.begin = (NodeId)rng_below(&rng, n_nodes)};
        range.end = range.begin + 2 + (NodeId)rng_below(&rng, MAX_OPS - 1);
        if (range.end > n_nodes || !is_fused(plan, range)) continue;
        n_slices++;
        is_kept(source, range, target, seed);
    }
    arena_free(arena);
    return n_slices;
}

Test(must_gemm_slice, edges_fused_without_a_block_are_fused_with_it, .timeout = 300) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_SM_80, TARGET_SM_90A};
    uint32_t n = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) n += try_graph(seed, targets[seed % 3]);
    for (uint64_t seed = 600; seed <= 650; seed++) n += try_graph(seed, targets[seed % 3]);
    cr_expect(n > 90, "%u slices", n);
}
