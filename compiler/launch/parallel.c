/* Horizontal fusion: independent kernels of one graph (three projections of one input, for example)
 * run in one grid, each in its own blocks. A launch takes further kernels if launch/parallel_fit.h
 * can schedule them together and the price agrees: at no point of cost_points may the launch be
 * more than 2 % slower than separate launches. A `fuse must` block with values of both needs no
 * price. GPU only, because a launch on a CPU is a function call. Tiles of wgmma GEMMs are chosen
 * for the tiles of all kernels together.
 *
 * Each launch, in order, is compared with the later launches that do not depend on it: first with
 * all of them at once, because many kernels may fill the machine where two do not, then one by
 * one. */
#include "launch/parallel_fit.h"
#include "machine/tuning.h"
#include "launch/trial.h"

#include <string.h>

typedef struct Searching {
    Composer *c;
    uint32_t *made; /* per buffer: `round` if a kernel of this round stores it */
    uint32_t round; /* number of the search for candidates */
} Searching;

/* Launches that could join a launch, and why they do not. */
typedef struct Candidates {
    /* The first is the launch that the others could join. */
    uint32_t launch[LAUNCH_PARALLEL_TRIES + 1];
    Unjoined apart[LAUNCH_PARALLEL_TRIES + 1]; /* REASON_NONE: nothing forbids it so far */
    uint32_t n;
} Candidates;

/* Whether the kernel loads a buffer stored in this round. Two kernels that store parts of one
 * buffer may run together. */
static bool must_follow(const Searching *s, const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->args.n; i++)
        if (s->made[kernel->args.data[i]] == s->round &&
            kernel_only_reads(kernel, kernel->args.data[i]))
            return true;
    return false;
}

static void note_store(void *user, const Store *store) {
    Searching *s = user;
    s->made[store->buffer] = s->round;
}

/* The kernel's last value, which names it in the ledger. */
static NodeId value_of(const Kernel *kernel) {
    return kernel->nodes.n ? kernel->nodes.data[kernel->nodes.n - 1] : NODE_NONE;
}

static void add_candidate(const Plan *plan, Candidates *to, uint32_t launch) {
    const Kernel *own = launch_kernel(plan, &plan->launches.data[launch], 0);
    const Kernel *first =
        launch_kernel(plan, &plan->launches.data[to->n ? to->launch[0] : launch], 0);
    to->apart[to->n] = (Unjoined){.kernel = own->name,
                                  .other = first->name,
                                  .kernel_node = value_of(own),
                                  .other_node = value_of(first)};
    to->launch[to->n++] = launch;
}

/* Finds later launches that load nothing stored from launch `first` on. */
static void find_candidates(Searching *s, uint32_t first, Candidates *found) {
    const Plan *plan = s->c->plan;
    const Kernel *kernel = launch_kernel(plan, &plan->launches.data[first], 0);
    s->round++;
    found->n = 0;
    for (uint32_t i = first; i < plan->launches.n && found->n <= LAUNCH_PARALLEL_TRIES; i++) {
        const Launch *launch = &plan->launches.data[i];
        const Kernel *own = launch_kernel(plan, launch, 0);
        bool is_free =
            own->is_init == kernel->is_init && kernel_factor(own) == kernel_factor(kernel);
        for (uint32_t k = 0; k < launch->n; k++) is_free = is_free && !must_follow(s, &own[k]);
        for (uint32_t k = 0; k < launch->n; k++) kernel_each_store(&own[k], note_store, s);
        if (i == first || is_free) add_candidate(plan, found, i);
    }
}

/* The place after the last kernel with the same code, with which it is one body; otherwise the
 * end. */
static uint32_t place_of(const Kernel *kernels, uint32_t n) {
    for (uint32_t i = n; i-- > 0;)
        if (kernels[i].code == kernels[n].code) return i + 1;
    return n;
}

static ReasonId add(const Composer *c, Trial *t) {
    Kernel *kernels = trial_kernel(t, 0);
    uint32_t n = trial_launch(t)->n;
    if (launch_shares_blocks(trial_launch(t)) || launch_shares_blocks(trial_launch(t) + 1))
        return REASON_IN_BLOCKS;
    ReasonId reason = parallel_limits(kernels, n, &kernels[n]);
    if (reason == REASON_NONE) reason = parallel_add(c, &t->together, kernels, n);
    if (reason != REASON_NONE) return reason;
    Kernel added = kernels[n];
    uint32_t to = place_of(kernels, n);
    memmove(&kernels[to + 1], &kernels[to], (n - to) * sizeof *kernels);
    kernels[to] = added;
    trial_merge(t);
    return REASON_NONE;
}

/* Checks that the blocks of all kernels together can be expressed as a dim. */
static ReasonId schedule(const Composer *c, Trial *t) {
    (void)c;
    for (uint32_t v = 0; v < trial_kernel(t, 0)->n_variants; v++)
        if (launch_grid(&t->together, trial_launch(t), v) == DIM_NONE) return REASON_LAUNCH_FULL;
    return REASON_NONE;
}

/* Whether the launch computes a value of the block that `other` does not recompute. */
static bool has_own(const Plan *plan, const Launch *launch, const Launch *other, uint32_t block) {
    for (uint32_t k = 0; k < launch->n; k++) {
        const Kernel *kernel = launch_kernel(plan, launch, k);
        for (uint32_t i = 0; i < kernel->nodes.n; i++) {
            NodeId id = kernel->nodes.data[i];
            if (graph_block(plan->graph, id, BLOCK_MUST) == block &&
                !launch_computes(plan, other, id))
                return true;
        }
    }
    return false;
}

/* Whether a `fuse must` block has values of both launches, so that prices do not matter. */
static bool is_asked(const Composer *c, const Trial *t) {
    const Graph *graph = c->plan->graph;
    const Launch *a = &c->plan->launches.data[t->launches[0]],
                 *b = &c->plan->launches.data[t->launches[1]];
    for (uint32_t i = 0; i < graph->fixed_kernels.n && t->n_launches == 2; i++)
        if (graph->fixed_kernels.data[i].kind == BLOCK_MUST && has_own(c->plan, a, b, i + 1) &&
            has_own(c->plan, b, a, i + 1))
            return true;
    return false;
}

/* Joins all candidates at once. Returns false if that does not pay or fewer than two fit. */
static bool join_all(Composer *c, Candidates *candidates) {
    TrialResult result =
        launch_try(c, &launch_rules_parallel, candidates->launch, candidates->n, 3);
    for (uint32_t i = 1; i < candidates->n; i++) candidates->apart[i].reason = result.reasons[i];
    return result.is_kept;
}

static void note_prices(const Composer *c, const TrialPrices *prices, Unjoined *apart) {
    for (uint32_t i = 0; i < c->points.n; i++)
        vec_push(c->arena, &apart->prices,
                 (ChangePrice){.dims = c->points.dims[i],
                               .changed_us = prices->together.us[i],
                               .current_us = prices->apart.us[i]});
}

static void join_each(Composer *c, Candidates *candidates) {
    uint32_t n_gone = 0; /* indices of launches have moved by the joined ones */
    for (uint32_t i = 1; i < candidates->n; i++) {
        if (candidates->apart[i].reason != REASON_NONE) continue;
        const uint32_t both[] = {candidates->launch[0], candidates->launch[i] - n_gone};
        TrialResult result = launch_try(c, &launch_rules_parallel, both, 2, 2);
        candidates->apart[i].reason = result.reason;
        n_gone += result.is_kept;
        if (result.reason == REASON_SLOWER_LAUNCH)
            note_prices(c, &result.prices, &candidates->apart[i]);
    }
}

static void propose(Composer *c) {
    ArenaMark mark = arena_mark(c->scratch);
    Searching s = {.c = c, .made = arena_array(c->scratch, uint32_t, c->plan->buffers.n)};
    Candidates candidates;
    memset(&c->plan->unjoined, 0, sizeof c->plan->unjoined);
    for (uint32_t first = 0; first < c->plan->launches.n; first++) {
        find_candidates(&s, first, &candidates);
        if (candidates.n > 1 && !join_all(c, &candidates)) join_each(c, &candidates);
        for (uint32_t i = 1; i < candidates.n; i++)
            if (candidates.apart[i].reason != REASON_NONE)
                vec_push(c->arena, &c->plan->unjoined, candidates.apart[i]);
    }
    arena_rewind(c->scratch, mark);
}

const LaunchRules launch_rules_parallel = {.mode = LAUNCH_PARALLEL,
                                           .propose = propose,
                                           .add = add,
                                           .schedule = schedule,
                                           .is_asked = is_asked,
                                           .pays = trial_pays};
