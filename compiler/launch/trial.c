/* See trial.h. */
#include "launch/trial.h"

#include "cost/price_memo.h"
#include "machine/tuning.h"
#include "plan/must.h"

#include <string.h>

/* Copies. */

static void push_launch(Arena *arena, Plan *to, const Plan *from, uint32_t launch) {
    Launch own = from->launches.data[launch];
    for (uint32_t k = 0; k < own.n; k++)
        vec_push(arena, &to->kernels, kernel_copy(arena, launch_kernel(from, &own, k)));
    own.first = to->kernels.n - own.n;
    vec_push(arena, &to->launches, own);
}

static void push_both(const Composer *c, Trial *t, uint32_t launch) {
    push_launch(c->scratch, &t->apart, c->plan, launch);
    push_launch(c->scratch, &t->together, c->plan, launch);
}

/* The number of launches right before this one, at most `most`, that belong to the same run. */
static uint32_t count_context(const Composer *c, uint32_t most, uint32_t launch) {
    uint32_t n = 0;
    const Launch *launches = c->plan->launches.data;
    const Kernel *kernel = launch_kernel(c->plan, &launches[launch], 0);
    while (n < most && n < launch && !kernel->is_init &&
           !launch_kernel(c->plan, &launches[launch - n - 1], 0)->is_init)
        n++;
    return n;
}

static Trial begin(const Composer *c, const LaunchRules *rules, uint32_t launch) {
    Trial t = {.rules = rules, .apart = *c->plan};
    t.n_context = count_context(c, rules->n_context, launch);
    memset(&t.apart.kernels, 0, sizeof t.apart.kernels);
    memset(&t.apart.launches, 0, sizeof t.apart.launches);
    t.together = t.apart;
    if (rules->sets_space) t.together.buffers.data = c->placed;
    for (uint32_t i = t.n_context; i > 0; i--) push_both(c, &t, launch - i);
    push_both(c, &t, launch);
    t.launches[t.n_launches++] = launch;
    return t;
}

static Plan copy_kernels(Arena *arena, const Plan *plan) {
    Plan copy = plan_extract(arena, plan, 0, plan->launches.n);
    for (uint32_t k = 0; k < copy.kernels.n; k++)
        copy.kernels.data[k] = kernel_copy(arena, &plan->kernels.data[k]);
    return copy;
}

static ReasonId add(const Composer *c, Trial *t, uint32_t launch) {
    const LaunchRules *rules = t->rules;
    const Trial before = *t;
    Plan kept = t->together;
    if (rules->add) kept = copy_kernels(c->scratch, &t->together);
    push_both(c, t, launch);
    t->launches[t->n_launches++] = launch;
    ReasonId reason = rules->add ? rules->add(c, t) : REASON_NONE;
    if (reason == REASON_NONE) return reason;
    *t = before;
    t->together = kept;
    return reason;
}

void trial_merge(Trial *t) {
    Launch *launch = trial_launch(t);
    launch->mode = t->rules->mode;
    launch->n = t->together.kernels.n - launch->first;
    t->together.launches.n = t->n_context + 1;
}

uint32_t trial_n_kernels(const Trial *t) {
    return t->together.kernels.n - trial_launch(t)->first;
}

Kernel *trial_kernel(const Trial *t, uint32_t k) {
    return &t->together.kernels.data[trial_launch(t)->first + k];
}

Launch *trial_launch(const Trial *t) {
    return &t->together.launches.data[t->n_context];
}

bool trial_is_private(const Composer *c, const Trial *t, uint32_t buffer) {
    uint32_t n_inside = 0;
    for (uint32_t i = 0; i < t->n_launches; i++) {
        const Launch *launch = &c->plan->launches.data[t->launches[i]];
        for (uint32_t k = 0; k < launch->n; k++)
            n_inside += kernel_find_arg(launch_kernel(c->plan, launch, k), buffer) != NO_ARG;
    }
    return c->plan->buffers.data[buffer].kind == BUFFER_TEMP && n_inside == c->n_users[buffer];
}

void kernels_widen_alike(Kernel *kernels, uint32_t n, uint32_t v) {
    bool is_wide = false;
    for (uint32_t k = 0; k < n; k++) is_wide = is_wide || kernels[k].variants[v].sched.is_wide;
    for (uint32_t k = 0; k < n; k++) kernels[k].variants[v].sched.is_wide = is_wide;
}

/* The level's variant without other conditions, which is its last: rows in one work unit are short
 * enough for it. Where the rows have no code of the level, it is that of the best they have. */
Variant trial_cpu_row_variant(const Kernel *rows, const Variant *of_gemm) {
    uint32_t v = kernel_last_of_level(rows, predicate_level(&of_gemm->predicate));
    if (v == rows->n_variants)
        v = kernel_last_of_level(rows, predicate_level(&rows->variants->predicate));
    Variant variant = rows->variants[v];
    if (predicate_level(&of_gemm->predicate))
        predicate_require_level(&variant.predicate, predicate_level(&of_gemm->predicate));
    variant.grid = of_gemm->grid;
    return variant;
}

/* Prices and contracts. */

static Prices price_of(const Composer *c, const Plan *plan) {
    return price_memo_plan(c->price_memo, c->scratch, plan, c->target, &c->points);
}

static TrialPrices trial_prices(const Composer *c, const Trial *t) {
    TrialPrices prices = {price_of(c, &t->together), price_of(c, &t->apart)};
    if (t->n_context == 0) return prices;
    Plan context = plan_extract(c->scratch, &t->apart, 0, t->n_context);
    Prices before = price_of(c, &context);
    for (uint32_t i = 0; i < c->points.n; i++) {
        prices.together.us[i] -= before.us[i];
        prices.apart.us[i] -= before.us[i];
    }
    prices.together.alone_us -= before.alone_us;
    prices.apart.alone_us -= before.alone_us;
    return prices;
}

bool trial_pays(const Composer *c, Trial *t, TrialPrices *prices) {
    *prices = trial_prices(c, t);
    return prices_are_within(&c->points, &prices->together, &prices->apart, PRICES_JOINED);
}

bool launch_has_own_kernel(const Plan *plan, const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        if (graph_block(plan->graph, kernel->nodes.data[i], BLOCK_NEVER)) return true;
    return false;
}

bool trial_is_asked_to_pass(const Trial *t, uint32_t n, uint32_t reader) {
    Launch writers = *trial_launch(t);
    writers.n = n;
    return must_passes(&t->together, &writers, trial_kernel(t, reader));
}

/* Applying the result. */

/* Whether another version of the kernel that makes the buffer's value stores it in global memory.
 */
static bool has_stored_version(const Composer *c, const Plan *plan, uint32_t buffer) {
    NodeId node = plan->buffers.data[buffer].node;
    for (uint32_t i = 0; i < c->of_versions.n; i++) {
        uint32_t to = c->of_versions.data[i];
        const Buffer *other = &plan->buffers.data[to];
        if (to != buffer && other->node == node && other->kind == BUFFER_TEMP &&
            other->space == BUFFER_GLOBAL)
            return true;
    }
    return false;
}

void launch_set_passed_edges(const Composer *c, Plan *plan, const Plan *from, const Launch *launch,
                             uint32_t n, EdgeVerdict verdict, ReasonId reason) {
    Launch before = *launch;
    const Kernel *reader = launch_kernel(from, launch, n - 1);
    before.n = n - 1;
    for (uint32_t i = 0; i < reader->args.n && plan->edges.n; i++) {
        uint32_t buffer = reader->args.data[i];
        NodeId passed = plan->buffers.data[buffer].node;
        if (!launch_stores_to(from, &before, buffer) || has_stored_version(c, plan, buffer))
            continue;
        for (uint32_t e = c->edges_of.first[passed]; e < c->edges_of.first[passed + 1]; e++) {
            Edge *edge = &plan->edges.data[c->edges_of.of[e]];
            if (edge->verdict != EDGE_STORED || edge->consumer == NODE_NONE ||
                !vec_has(&reader->nodes, edge->consumer))
                continue;
            edge->verdict = verdict;
            edge->reason = reason;
        }
    }
}

/* Sets the edges of a buffer that is not in global memory. A user in a `fuse never` block that does
 * not depend on the value does not read it. */
static void set_edges_of(const Composer *c, Plan *plan, uint32_t buffer) {
    NodeId of = plan->buffers.data[buffer].node;
    if (has_stored_version(c, plan, buffer)) return;
    for (uint32_t e = c->edges_of.first[of]; e < c->edges_of.first[of + 1]; e++) {
        Edge *edge = &plan->edges.data[c->edges_of.of[e]];
        bool is_stored = edge->verdict == EDGE_STORED || edge->reason == REASON_SAME_BLOCK;
        if (!is_stored || edge->consumer == NODE_NONE ||
            graph_block(plan->graph, edge->consumer, BLOCK_NEVER))
            continue;
        edge->verdict = EDGE_FUSED;
        edge->reason = REASON_SAME_LAUNCH;
    }
}

static void mark_edges(const Composer *c, Plan *plan, const Launch *launch) {
    if (!launch_shares_blocks(launch) || !plan->edges.n) return;
    for (uint32_t n = launch->n; n > 1; n--)
        launch_set_passed_edges(c, plan, plan, launch, n, EDGE_FUSED, REASON_SAME_BLOCK);
    for (uint32_t k = 0; k < launch->n; k++) {
        const Kernel *kernel = launch_kernel(plan, launch, k);
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            uint32_t buffer = kernel->args.data[i];
            if (plan->buffers.data[buffer].space != BUFFER_GLOBAL) set_edges_of(c, plan, buffer);
        }
    }
}

static void put_launch(Plan *to, const Plan *from, const Launch *launch, uint32_t *kernel,
                       uint32_t *at) {
    Launch own = *launch;
    memcpy(&to->kernels.data[*kernel], launch_kernel(from, launch, 0), own.n * sizeof(Kernel));
    own.first = *kernel;
    *kernel += own.n;
    to->launches.data[(*at)++] = own;
}

/* Makes the tried launches one launch, in the range from the first to the last of them. */
static void join(const Trial *t, Arena *scratch, Plan *plan, uint32_t begin, uint32_t end) {
    Plan before = plan_extract(scratch, plan, begin, end - begin);
    bool is_at_last = t->rules->is_at_last;
    uint32_t kernel = plan->launches.data[begin].first, at = begin, next = 0;
    uint32_t offset = t->launches[0];
    for (uint32_t i = 0; i < end - begin; i++) {
        bool is_tried = next < t->n_launches && t->launches[next] - offset == i;
        next += is_tried;
        if (!is_tried)
            put_launch(plan, &before, &before.launches.data[i], &kernel, &at);
        else if (next == (is_at_last ? t->n_launches : 1))
            put_launch(plan, &t->together, trial_launch(t), &kernel, &at);
    }
    memmove(&plan->launches.data[at], &plan->launches.data[end],
            (plan->launches.n - end) * sizeof *plan->launches.data);
    plan->launches.n -= end - at;
}

/* Copies the spaces of the kernel's arguments. */
static void copy_spaces(Buffer *to, const Buffer *from, const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->args.n; i++)
        to[kernel->args.data[i]].space = from[kernel->args.data[i]].space;
}

/* Puts the launch into `plan`, which is the composer's plan or its launches from `first` on, and
 * marks the edges that the launch fuses. Memory that the plan keeps is allocated in `arena`. */
static void apply(const Composer *c, const Trial *t, Arena *arena, Plan *plan, uint32_t first) {
    uint32_t begin = t->launches[0] - first, end = t->launches[t->n_launches - 1] + 1 - first;
    join(t, c->scratch, plan, begin, end);
    uint32_t at = t->rules->is_at_last ? end - t->n_launches : begin;
    const Launch *launch = &plan->launches.data[at];
    for (uint32_t k = 0; k < launch->n; k++) {
        Kernel *kernel = &plan->kernels.data[launch->first + k];
        kernel_set_variants(arena, kernel, kernel->variants, kernel->n_variants);
        copy_spaces(plan->buffers.data, t->together.buffers.data, kernel);
    }
    mark_edges(c, plan, launch);
}

Plan trial_compose_around(const Composer *c, const Trial *t, uint32_t first, uint32_t n) {
    Plan around = plan_extract(c->scratch, c->plan, first, n);
    around.buffers.data = c->around;
    for (uint32_t k = 0; k < around.kernels.n; k++)
        copy_spaces(c->around, c->plan->buffers.data, &around.kernels.data[k]);
    if (!around.graph->fixed_kernels.n) around.edges.n = 0; /* no block needs them */
    around.edges.data =
        arena_copy(c->scratch, around.edges.data, around.edges.n * sizeof *around.edges.data);
    if (t) apply(c, t, c->scratch, &around, first);
    Planning like = *c->planning;
    like.price_memo = c->price_memo;
    pipeline_retry(&like, c->arena, c->scratch, MODE_SLICES, &around, PASS_LAUNCH, PASS_LAUNCH);
    return around;
}

void trial_find_near(const Composer *c, const Trial *t, uint32_t *begin, uint32_t *n) {
    const Launch *launches = c->plan->launches.data;
    uint32_t first = launches[t->launches[0]].first, least = plan_n_init(c->plan);
    uint32_t end = launches[t->launches[t->n_launches - 1]].first + 1 + LAUNCH_ONE_BLOCK_AROUND;
    first = first > least + LAUNCH_ONE_BLOCK_AROUND ? first - LAUNCH_ONE_BLOCK_AROUND : least;
    if (end > c->plan->kernels.n) end = c->plan->kernels.n;
    *begin = plan_launch_index(c->plan, first);
    *n = plan_launch_index(c->plan, end - 1) + 1 - *begin;
}

Plan trial_compose_near(const Composer *c, const Trial *t, bool is_one) {
    uint32_t first, n;
    trial_find_near(c, t, &first, &n);
    return trial_compose_around(c, is_one ? t : NULL, first, n);
}

/* Whether `fuse must` blocks need the launch, at any price. */
static bool is_asked(Composer *c, const Trial *t) {
    if (!c->n_broken) return t->rules->is_asked && t->rules->is_asked(c, t);
    Plan before = trial_compose_near(c, t, false);
    uint32_t n_before = must_n_broken(&before);
    Plan after = trial_compose_near(c, t, true);
    uint32_t n_after = must_n_broken(&after);
    if (n_after >= n_before) return false;
    c->n_broken -= n_before - n_after < c->n_broken ? n_before - n_after : c->n_broken;
    return true;
}

static bool is_kept(Composer *c, Trial *t, TrialPrices *prices) {
    bool has_price = c->n_broken == 0;
    return is_asked(c, t) || (has_price && t->rules->pays(c, t, prices));
}

/* Whether a launch in this range updates a value in place. No launch is moved across it: the others
 * may read the value before or after. */
static bool has_update(const Plan *plan, uint32_t first, uint32_t last) {
    const Launch *begin = &plan->launches.data[first], *end = &plan->launches.data[last];
    for (uint32_t k = begin->first; k < end->first + end->n; k++)
        if (kernel_updates(&plan->kernels.data[k])) return true;
    return false;
}

TrialResult launch_try(Composer *c, const LaunchRules *rules, const uint32_t *launches, uint32_t n,
                       uint32_t least) {
    TrialResult result = {.reason = REASON_NONE};
    if (has_update(c->plan, launches[0], launches[n - 1])) {
        result.reason = REASON_UPDATED;
        for (uint32_t i = 0; i < n; i++) result.reasons[i] = REASON_UPDATED;
        return result;
    }
    ArenaMark mark = arena_mark(c->scratch);
    Trial t = begin(c, rules, launches[0]);
    for (uint32_t i = 1; i < n; i++) {
        result.reasons[i] = add(c, &t, launches[i]);
        if (result.reasons[i] != REASON_NONE) result.reason = result.reasons[i];
    }
    if (t.n_launches >= least) {
        result.reason = rules->schedule(c, &t);
        result.is_scheduled = result.reason == REASON_NONE;
        result.is_kept = result.is_scheduled && is_kept(c, &t, &result.prices);
        if (result.is_scheduled && !result.is_kept) result.reason = REASON_SLOWER_LAUNCH;
        result.worst = t.worst;
        if (result.is_kept) apply(c, &t, c->arena, c->plan, 0);
    }
    for (uint32_t k = 0; k < t.apart.kernels.n && rules->sets_space; k++)
        copy_spaces(c->placed, c->plan->buffers.data, &t.apart.kernels.data[k]);
    arena_rewind(c->scratch, mark);
    return result;
}
