/* What it is worth that a reader runs in the blocks of its product. See sequence_state.h. */
#include "launch/sequence_state.h"
#include "ir/subgraph.h"

#include <string.h>

enum {
    CONTEXT_LAUNCHES = 2, /* ahead of the pair: one may make what it reads, one a bias */
    BLOCK_COLUMNS = 64
};

/* The first kernel of the launches right ahead of this one. */
static uint32_t context_of(const Sequence *c) {
    const Kernel *kernels = c->plan->kernels.data;
    uint32_t begin = c->first, least = kernels[begin].is_init ? begin : plan_n_init(c->plan);
    for (int i = 0; i < CONTEXT_LAUNCHES && begin > least; i++) {
        begin--;
        while (begin > least && kernels[begin].link != LAUNCH_SINGLE) begin--;
    }
    return begin;
}

static Prices price_of(const Sequence *c, Kernel *kernels, uint32_t n) {
    Plan alone = *c->plan;
    alone.kernels.data = kernels;
    alone.kernels.n = alone.kernels.capacity = n;
    return prices_of_plan(c->scratch, &alone, c->target, &c->points);
}

/* Of kernels behind those that come before the launch, which leave in the cache what these read. */
static Prices price_behind(const Sequence *c, const Kernel *kernels, uint32_t n) {
    uint32_t begin = context_of(c), n_before = c->first - begin;
    Kernel *all = arena_array(c->scratch, Kernel, n_before + (size_t)n);
    memcpy(all, &c->plan->kernels.data[begin], n_before * sizeof *all);
    memcpy(all + n_before, kernels, n * sizeof *all);
    Prices before = price_of(c, all, n_before), prices = price_of(c, all, n_before + n);
    for (uint32_t i = 0; i < c->points.n; i++) prices.us[i] -= before.us[i];
    return prices;
}

/* Products by themselves have tiles of more widths than several at once: for extents that are not
 * known, how full the last wave of such tiles is at some of them says nothing of others. */
static void keep_common_widths(Kernel *kernel) {
    uint32_t n = 0;
    for (uint32_t v = 0; v < kernel->n_variants; v++) {
        const Variant *variant = &kernel->variants[v];
        bool is_common =
            sched_tile(&variant->sched).n % BLOCK_COLUMNS == 0 && variant->sched.cluster <= 1;
        if (!variant->price.group || is_common) kernel->variants[n++] = *variant;
    }
    kernel->n_variants = n;
}

static bool are_at_once(const Kernel *kernel) {
    bool are = false;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        are = are || sched_gemm(&kernel->variants[v].sched).products > 1;
    return are;
}

Prices sequence_price_apart(const Sequence *c, const Kernel *saved) {
    Kernel *kernels = arena_copy(c->scratch, saved, (c->next - c->first + 1) * sizeof *saved);
    kernels[c->launch.n] = saved[c->next - c->first];
    for (uint32_t k = 0; k <= c->launch.n && are_at_once(c->launch.kernels); k++)
        keep_common_widths(&kernels[k]);
    return price_behind(c, kernels, c->launch.n + 1);
}

/* What the launch computes, as a graph of its own. */
static const Graph *subgraph(const Sequence *c) {
    const Graph *graph = c->plan->graph;
    bool *in = arena_array(c->scratch, bool, graph->nodes.n);
    bool *out = arena_array(c->scratch, bool, graph->nodes.n);
    for (uint32_t k = 0; k < c->launch.n; k++) {
        const Kernel *kernel = &c->launch.kernels[k];
        for (uint32_t i = 0; i < kernel->nodes.n; i++) {
            NodeId id = kernel->nodes.data[i];
            in[id] = graph_class(graph, id) != CLASS_SOURCE;
        }
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            uint32_t buffer = kernel->args.data[i];
            const Buffer *of = &c->plan->buffers.data[buffer];
            if (kernel_stores_to(kernel, buffer) && !of->is_on_chip) out[of->node] = true;
        }
    }
    return subgraph_of(c->scratch, graph, in, out).graph;
}

bool sequence_pays(const Sequence *c, const Prices *apart) {
    const CostPoints *points = &c->points;
    Prices together = price_behind(c, c->launch.kernels, c->launch.n), ops;
    if (prices_favor_joining(points, &together, apart)) return true;
    bool has_launches = c->target->device == DEVICE_GPU; /* that a host waits for */
    if (!has_launches || !prices_may_favor_joining(points, &together, apart)) return false;
    Kernel *alone = arena_copy(c->scratch, c->launch.kernels, c->launch.n * sizeof *alone);
    together = price_of(c, alone, c->launch.n);
    return prices_of_unfused(c->arena, c->scratch, subgraph(c), c->target, points, &ops) &&
           prices_are_no_slower(points, &together, &ops);
}
