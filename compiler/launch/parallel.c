/* Each launch, in order, is held against those behind it that need not follow it: first all that it
 * may take together, since many fill the machine where two do not, then one by one. See launch.h.
 */
#include "launch/parallel.h"
#include "plan/launch.h"

#include "launch/parallel_fit.h"
#include "cost/compare.h"

#include <string.h>

enum { MAX_TRIES = 16 }; /* launches that one is held against */

typedef struct Joiner {
    Arena *arena, *scratch;
    Plan *plan;
    const Target *target;
    CostPoints points;
    uint64_t *stored; /* per kernel of the plan: the arguments that it stores to */
    uint32_t *made;   /* per buffer: `round` where a kernel of it stores there */
    uint32_t round;   /* of looking for candidates */
} Joiner;

/* A launch that could start with another, by its first kernel, and why it does not. */
typedef struct Candidate {
    uint32_t kernel;
    Apart apart; /* its reason is REASON_NONE as long as nothing stands in the way */
} Candidate;

typedef struct Candidates {
    Candidate of[MAX_TRIES];
    uint32_t n;
} Candidates;

static uint64_t stored_args(const Kernel *kernel) {
    uint64_t args = 0;
    for (uint32_t i = 0; i < kernel->args.n; i++)
        if (kernel_stores_to(kernel, kernel->args.data[i])) args |= (uint64_t)1 << i;
    return args;
}

/* Whether the kernel reads what is made in this round. Two that write to one buffer write apart. */
static bool must_follow(const Joiner *j, uint32_t k) {
    const Kernel *kernel = &j->plan->kernels.data[k];
    for (uint32_t i = 0; i < kernel->args.n; i++)
        if (!(j->stored[k] >> i & 1) && j->made[kernel->args.data[i]] == j->round) return true;
    return false;
}

static void note_made(const Joiner *j, uint32_t k) {
    const Kernel *kernel = &j->plan->kernels.data[k];
    for (uint32_t i = 0; i < kernel->args.n; i++)
        if (j->stored[k] >> i & 1) j->made[kernel->args.data[i]] = j->round;
}

/* Launches behind the one at `first` that read nothing made from there on. */
static Candidates find_candidates(Joiner *j, uint32_t first) {
    Candidates found = {.n = 0};
    const Kernel *kernels = j->plan->kernels.data;
    uint32_t begin = first, n;
    j->round++;
    for (; begin < j->plan->kernels.n && found.n < MAX_TRIES; begin += n) {
        bool is_free = begin > first && kernels[begin].is_init == kernels[first].is_init &&
                       kernels[begin].when == kernels[first].when;
        n = plan_launch(j->plan, begin).n;
        for (uint32_t k = begin; k < begin + n; k++) is_free = is_free && !must_follow(j, k);
        for (uint32_t k = begin; k < begin + n; k++) note_made(j, k);
        if (is_free) found.of[found.n++] = (Candidate){.kernel = begin};
    }
    return found;
}

/* Behind the last part of its code, which is one body with it; else at the end. */
static uint32_t place_of(const Launch *launch, const Kernel *kernel) {
    for (uint32_t i = launch->n; i-- > 0;)
        if (launch->kernels[i].code == kernel->code) return i + 1;
    return launch->n;
}

static Prices price_of(const Joiner *j, Kernel *kernels, uint32_t n) {
    Plan alone = *j->plan;
    alone.kernels.data = kernels;
    alone.kernels.n = alone.kernels.capacity = n;
    return prices_of_plan(j->scratch, &alone, j->target, &j->points);
}

static bool follows_in_blocks(const Launch *launch) {
    return launch->n > 1 && !launch_is_parallel(launch);
}

/* A launch that grows, and the same kernels in launches of their own. */
typedef struct Trial {
    Kernel *together, *apart;
    uint32_t n;
} Trial;

static Trial trial_of(const Joiner *j, uint32_t first) {
    Launch launch = plan_launch(j->plan, first);
    Trial trial = {.n = launch.n};
    trial.together = arena_array(j->scratch, Kernel, launch.n + MAX_TRIES);
    trial.apart = arena_array(j->scratch, Kernel, launch.n + MAX_TRIES);
    memcpy(trial.together, launch.kernels, launch.n * sizeof(Kernel));
    memcpy(trial.apart, launch.kernels, launch.n * sizeof(Kernel));
    return trial;
}

/* Adds kernel `k` to the trial. REASON_NONE, or why it cannot. */
static ReasonId add(const Joiner *j, Trial *trial, uint32_t k) {
    const Kernel *kernel = &j->plan->kernels.data[k];
    const Launch own = plan_launch(j->plan, k), launch = {trial->together, trial->n};
    if (follows_in_blocks(&launch) || follows_in_blocks(&own)) return REASON_IN_BLOCKS;
    ReasonId reason = parallel_limits(trial->together, trial->n, kernel);
    if (reason != REASON_NONE) return reason;
    Kernel *before = arena_copy(j->scratch, trial->together, trial->n * sizeof *before);
    trial->together[trial->n] = trial->apart[trial->n] = *kernel;
    reason = parallel_add(j->arena, j->plan, trial->together, trial->n, j->target);
    if (reason == REASON_NONE) {
        Kernel added = trial->together[trial->n];
        uint32_t to = place_of(&launch, &added);
        memmove(&trial->together[to + 1], &trial->together[to],
                (trial->n - to) * sizeof *trial->together);
        trial->together[to] = added;
        trial->n++;
    } else {
        memcpy(trial->together, before, trial->n * sizeof *before);
    }
    return reason;
}

typedef struct TrialPrices {
    Prices together, apart;
} TrialPrices;

/* REASON_NONE where the launch pays. */
static ReasonId judge(const Joiner *j, const Trial *trial, TrialPrices *prices) {
    if (!parallel_grids_add_up(j->plan, trial->together, trial->n)) return REASON_LAUNCH_FULL;
    prices->together = price_of(j, trial->together, trial->n);
    prices->apart = price_of(j, trial->apart, trial->n);
    return prices_are_better(&j->points, &prices->together, &prices->apart, &prices->apart)
               ? REASON_SLOWER_LAUNCH
               : REASON_NONE;
}

/* Whether it computes a value of the block that the other does not compute again. */
static bool has_own(const Graph *graph, const Launch *launch, const Launch *other, uint32_t block) {
    for (uint32_t k = 0; k < launch->n; k++)
        for (uint32_t i = 0; i < launch->kernels[k].nodes.n; i++) {
            NodeId id = launch->kernels[k].nodes.data[i];
            if (graph_block(graph, id, BLOCK_MUST) == block && !launch_computes(other, id))
                return true;
        }
    return false;
}

/* Whether a `fuse must` block has values of both, so that no price keeps them apart. */
static bool is_insisted(const Joiner *j, uint32_t first, uint32_t k) {
    const Graph *graph = j->plan->graph;
    const Launch launch = plan_launch(j->plan, first), other = plan_launch(j->plan, k);
    for (uint32_t b = 0; b < graph->fixed_kernels.n; b++)
        if (graph->fixed_kernels.data[b].kind == BLOCK_MUST &&
            has_own(graph, &launch, &other, b + 1) && has_own(graph, &other, &launch, b + 1))
            return true;
    return false;
}

/* Moves kernel `k` to the end of the launch at `first`, which gets `n` kernels. */
static void move(const Joiner *j, uint32_t first, uint32_t n, uint32_t k) {
    Kernel *kernels = j->plan->kernels.data, moved = kernels[k];
    uint64_t stored = j->stored[k];
    uint32_t to = first + n - 1;
    memmove(&kernels[to + 1], &kernels[to], (k - to) * sizeof *kernels);
    memmove(&j->stored[to + 1], &j->stored[to], (k - to) * sizeof *j->stored);
    kernels[to] = moved;
    j->stored[to] = stored;
}

static void accept(const Joiner *j, uint32_t first, const Trial *trial) {
    memcpy(&j->plan->kernels.data[first], trial->together, trial->n * sizeof *trial->together);
    for (uint32_t k = first; k < first + trial->n; k++)
        j->stored[k] = stored_args(&j->plan->kernels.data[k]);
}

/* All candidates that the launch may take. False: that does not pay, or there are fewer than two.
 */
static bool join_all(const Joiner *j, uint32_t first, Candidates *candidates) {
    Trial trial = trial_of(j, first);
    uint32_t n_before = trial.n, n = n_before;
    for (uint32_t i = 0; i < candidates->n; i++)
        candidates->of[i].apart.reason = add(j, &trial, candidates->of[i].kernel);
    TrialPrices prices;
    if (trial.n < n_before + 2 || judge(j, &trial, &prices) != REASON_NONE) return false;
    for (uint32_t i = 0; i < candidates->n; i++)
        if (candidates->of[i].apart.reason == REASON_NONE)
            move(j, first, ++n, candidates->of[i].kernel);
    accept(j, first, &trial);
    return true;
}

static void note_prices(const Joiner *j, const TrialPrices *prices, Apart *apart) {
    for (uint32_t i = 0; i < j->points.n; i++)
        vec_push(j->arena, &apart->prices,
                 (ChangePrice){.dims = j->points.dims[i],
                               .then_us = prices->together.us[i],
                               .now_us = prices->apart.us[i]});
}

static void join_one(const Joiner *j, uint32_t first, Candidate *candidate) {
    ArenaMark mark = arena_mark(j->scratch);
    Trial trial = trial_of(j, first);
    ReasonId reason = add(j, &trial, candidate->kernel);
    TrialPrices prices;
    if (reason == REASON_NONE) reason = judge(j, &trial, &prices);
    if (reason == REASON_SLOWER_LAUNCH && is_insisted(j, first, candidate->kernel))
        reason = REASON_NONE;
    candidate->apart.reason = reason;
    if (reason == REASON_SLOWER_LAUNCH) note_prices(j, &prices, &candidate->apart);
    if (reason == REASON_NONE) {
        move(j, first, trial.n, candidate->kernel);
        accept(j, first, &trial);
    }
    arena_rewind(j->scratch, mark);
}

/* What others of its kernel lead to. */
static NodeId value_of(const Kernel *kernel) {
    return kernel->nodes.n ? kernel->nodes.data[kernel->nodes.n - 1] : NODE_NONE;
}

static void join(Joiner *j, uint32_t first) {
    Candidates candidates = find_candidates(j, first);
    if (candidates.n == 0) return;
    const Kernel *kernels = j->plan->kernels.data;
    for (uint32_t i = 0; i < candidates.n; i++) {
        const Kernel *own = &kernels[candidates.of[i].kernel];
        candidates.of[i].apart = (Apart){.kernel = own->name,
                                         .other = kernels[first].name,
                                         .kernel_node = value_of(own),
                                         .other_node = value_of(&kernels[first])};
    }
    ArenaMark mark = arena_mark(j->scratch);
    bool is_done = join_all(j, first, &candidates);
    arena_rewind(j->scratch, mark);
    for (uint32_t i = 0; i < candidates.n && !is_done; i++)
        if (candidates.of[i].apart.reason == REASON_NONE) join_one(j, first, &candidates.of[i]);
    for (uint32_t i = 0; i < candidates.n; i++)
        if (candidates.of[i].apart.reason != REASON_NONE)
            vec_push(j->arena, &j->plan->aparts, candidates.of[i].apart);
}

void parallel_kernels(Arena *arena, Arena *scratch, Plan *plan, const Target *target) {
    ArenaMark mark = arena_mark(scratch);
    Joiner j = {.arena = arena,
                .scratch = scratch,
                .plan = plan,
                .target = target,
                .points = cost_points(arena, plan->graph->dims, target->device),
                .stored = arena_array(scratch, uint64_t, plan->kernels.n),
                .made = arena_array(scratch, uint32_t, plan->buffers.n)};
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        j.stored[k] = stored_args(&plan->kernels.data[k]);
    plan->aparts.n = 0;
    for (uint32_t first = 0; first < plan->kernels.n; first += plan_launch(plan, first).n)
        join(&j, first);
    arena_rewind(scratch, mark);
}
