/* Prices of a reader that runs in the blocks of its GEMM. See sequence_state.h. */
#include "launch/sequence_state.h"
#include "machine/tuning.h"
#include "ir/subgraph.h"

/* Keeps only tile widths that a dual GEMM has too. A single GEMM has more widths; with unknown
 * extents, how full the last wave of such a tile is at some sizes says nothing about other
 * sizes. */
static void keep_common_widths(Kernel *kernel) {
    uint32_t n = 0;
    for (uint32_t v = 0; v < kernel->n_variants; v++) {
        const Variant *variant = &kernel->variants[v];
        bool is_common = sched_tile(&variant->sched).n % LAUNCH_COMMON_TILE_COLUMNS == 0 &&
                         variant->sched.cluster <= 1;
        if (!variant->price.group || is_common) kernel->variants[n++] = *variant;
    }
    kernel->n_variants = n;
}

static bool are_at_once(const Kernel *kernel) {
    bool are = false;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        are = are || sched_gemm(&kernel->variants[v].sched).n_gemms > 1;
    return are;
}

/* The nodes that the sequence computes, as a graph. */
static const Graph *subgraph(const Composer *c, const Trial *t) {
    const Graph *graph = c->plan->graph;
    NodeFlags flags = node_flags_new(c->scratch, graph->nodes.n);
    for (uint32_t k = 0; k < trial_n_kernels(t); k++) {
        const Kernel *kernel = trial_kernel(t, k);
        for (uint32_t i = 0; i < kernel->nodes.n; i++) {
            NodeId id = kernel->nodes.data[i];
            if (graph_class(graph, id) != CLASS_SOURCE) node_add(flags, id, SUBGRAPH_IN);
        }
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            uint32_t buffer = kernel->args.data[i];
            const Buffer *of = &t->together.buffers.data[buffer];
            if (kernel_stores_to(kernel, buffer) && of->space == BUFFER_GLOBAL)
                node_add(flags, of->node, SUBGRAPH_OUT);
        }
    }
    return subgraph_of(c->scratch, graph, flags).graph;
}

/* Whether the launch, without its context, is no slower than one kernel per op. */
static bool is_no_slower_than_ops(const Composer *c, const Trial *t) {
    Plan alone = plan_extract(c->scratch, &t->together, t->n_context, 1);
    Prices together = prices_of_plan(c->scratch, &alone, c->target, &c->points), ops;
    return prices_of_unfused(c->planning, c->arena, c->scratch, subgraph(c, t), &c->points, &ops) &&
           prices_are_within(&c->points, &together, &ops, PRICES_NO_SLOWER);
}

bool sequence_pays(const Composer *c, Trial *t, TrialPrices *prices) {
    uint32_t first = t->apart.launches.data[t->n_context].first;
    for (uint32_t k = first; k < t->apart.kernels.n && are_at_once(sequence_first(t)); k++)
        keep_common_widths(&t->apart.kernels.data[k]);
    if (trial_pays(c, t, prices)) return true;
    bool has_launches = c->target->has->launches;
    return has_launches &&
           prices_may_favor_joining(&c->points, &prices->together, &prices->apart) &&
           is_no_slower_than_ops(c, t);
}
