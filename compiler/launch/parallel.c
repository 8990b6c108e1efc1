/* Horizontal fusion: independent kernels of one graph (three projections of one input, for example)
 * run in one grid, each in its own blocks, so programs, extents and epilogues may differ. GPU only,
 * because a launch on a CPU is a function call.
 *
 * A launch has one block size, one cluster size and one function. So its kernels must have the same
 * form (and engine, if GEMMs), block size and cluster size. Persistent blocks (wgmma) have one loop
 * that multiplies for all kernels; it requires equal tiles, stages, operand dtypes and layouts in
 * shared memory. A function needs as many registers and as much shared memory as its costliest
 * kernel; the price decides whether that pays: at no point of cost_points may the launch be more
 * than 2 % slower than separate launches. A `fuse must` block with values of both needs no price.
 *
 * Each launch, in order, is compared with the later launches that do not depend on it: first with
 * all of them at once, because many kernels may fill the machine where two do not, then one by
 * one. */
#include "launch/trial.h"
#include "plan/must.h"
#include "machine/tuning.h"
#include "schedule/schedule.h"

#include <string.h>

enum {
    MAX_BODY_TERMS = 4,
    MAX_TERMS = 64, /* terms of a condition: one per argument, and those of each body */
    BLOCK = 64      /* launches that are passed over at once */
};

/* Candidates. */

/* That a launch stores a buffer. */
typedef struct Storing {
    uint32_t launch; /* of the plan in which nothing is joined */
    uint32_t before; /* index of the buffer's storing before it, plus 1; 0: none */
} Storing;

/* Launches have numbers from 1 on. */
typedef struct Searching {
    Composer *c;
    uint32_t *follows;   /* per launch: the number of the last launch before it that stores a buffer
                          * that it reads; 0: none */
    uint32_t *least;     /* per block: the least `follows` of its launches */
    uint32_t *place;     /* per launch of the plan in which nothing is joined: its number */
    uint32_t *moved_to;  /* per number: the one after a join */
    uint32_t *stored_by; /* per buffer: index of the last of its storings, plus 1; 0: none */
    Vec(Storing) storings;
    uint32_t launch;  /* whose stores are noted */
    uint32_t n_apart; /* launches of the plan in which nothing is joined */
} Searching;

/* Launches that could join a launch, and why they do not. */
typedef struct Candidates {
    /* The first is the launch that the others could join. */
    uint32_t launch[LAUNCH_PARALLEL_TRIES + 1];
    Unjoined apart[LAUNCH_PARALLEL_TRIES + 1]; /* REASON_NONE: nothing forbids it so far */
    uint32_t n;
} Candidates;

static void note_store(void *user, const Store *store) {
    Searching *s = user;
    uint32_t *last = &s->stored_by[store->buffer];
    vec_push(s->c->scratch, &s->storings, ((Storing){s->launch, *last}));
    *last = s->storings.n;
}

/* The number of the last launch before number `end` that stores the buffer. */
static uint32_t last_storing(const Searching *s, uint32_t buffer, uint32_t end) {
    uint32_t last = 0;
    for (uint32_t i = s->stored_by[buffer]; i; i = s->storings.data[i - 1].before) {
        uint32_t number = s->place[s->storings.data[i - 1].launch];
        if (number < end && number > last) last = number;
    }
    return last;
}

/* The number of the last launch before this one that stores a buffer that it reads. Two kernels
 * that store parts of one buffer may run together. */
static uint32_t last_before(const Searching *s, uint32_t number) {
    const Plan *plan = s->c->plan;
    const Launch *launch = &plan->launches.data[number - 1];
    uint32_t last = 0;
    for (uint32_t k = 0; k < launch->n; k++) {
        const Kernel *kernel = launch_kernel(plan, launch, k);
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            uint32_t own = last_storing(s, kernel->args.data[i], number);
            if (own > last && kernel_only_reads(kernel, kernel->args.data[i])) last = own;
        }
    }
    return last;
}

/* Clears the kernels' arguments alone: a trial has few kernels of a plan with many buffers. */
static void forget_stores(const Searching *s) {
    const Plan *plan = s->c->plan;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        for (uint32_t i = 0; i < plan->kernels.data[k].args.n; i++)
            s->stored_by[plan->kernels.data[k].args.data[i]] = 0;
}

static void set_follows(Searching *s, uint32_t number, uint32_t last) {
    uint32_t i = number - 1;
    s->follows[i] = last;
    if (i % BLOCK == 0 || last < s->least[i / BLOCK]) s->least[i / BLOCK] = last;
}

/* Finds out which launches follow which. */
static void find_order(Searching *s) {
    const Plan *plan = s->c->plan;
    forget_stores(s);
    for (uint32_t i = 0; i < plan->launches.n; i++) {
        const Launch *launch = &plan->launches.data[i];
        s->launch = i;
        s->place[i] = i + 1;
        set_follows(s, i + 1, last_before(s, i + 1));
        for (uint32_t k = 0; k < launch->n; k++)
            kernel_each_store(launch_kernel(plan, launch, k), note_store, s);
    }
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
static void find_candidates(const Searching *s, uint32_t first, Candidates *found) {
    const Plan *plan = s->c->plan;
    const Kernel *kernel = launch_kernel(plan, &plan->launches.data[first], 0);
    found->n = 0;
    add_candidate(plan, found, first);
    for (uint32_t i = first + 1; i < plan->launches.n && found->n <= LAUNCH_PARALLEL_TRIES; i++) {
        if (i % BLOCK == 0 && s->least[i / BLOCK] > first) i += BLOCK - 1;
        if (i >= plan->launches.n || s->follows[i] > first) continue;
        const Kernel *own = launch_kernel(plan, &plan->launches.data[i], 0);
        if (own->is_init == kernel->is_init && kernel_factor(own) == kernel_factor(kernel))
            add_candidate(plan, found, i);
    }
}

/* Schedules. */

/* The largest number of tensor maps of a variant. In a parallel launch there are no narrow tail
 * tiles, which have a map of their own. */
static uint32_t most_maps(const Kernel *kernel) {
    uint32_t most = 0;
    for (uint32_t v = 0; v < kernel->n_variants; v++) {
        const Variant *variant = &kernel->variants[v];
        uint32_t n_maps = variant->n_maps - (sched_gemm(&variant->sched).tail_n > 0);
        if (n_maps > most) most = n_maps;
    }
    return most;
}

/* The limits of a launch of `n` kernels and `kernel`. Returns REASON_NONE or why not. */
static ReasonId check_limits(const Kernel *kernels, uint32_t n, const Kernel *kernel) {
    uint32_t n_args = kernel->args.n, n_maps = most_maps(kernel), n_codes = 1;
    uint32_t n_scalars = scalar_count(kernel->scalars);
    bool is_new = true;
    for (uint32_t k = 0; k < n; k++) {
        n_args += kernels[k].args.n;
        n_maps += most_maps(&kernels[k]);
        is_new = is_new && kernels[k].code != kernel->code;
        if (k == 0 || kernels[k].code == kernels[k - 1].code) continue;
        n_codes++;
        n_scalars += scalar_count(kernels[k].scalars);
    }
    if (is_new) {
        n_codes++;
        n_scalars += scalar_count(kernels->scalars);
    }
    bool fits = n_args <= MAX_KERNEL_ARGS && n_args + MAX_BODY_TERMS * n_codes <= MAX_TERMS &&
                n_maps <= MAX_LAUNCH_MAPS && n_codes <= LAUNCH_PARALLEL_BODIES &&
                (n_codes == 1 || n_scalars <= LAUNCH_PARALLEL_SCALARS);
    return fits ? REASON_NONE : REASON_LAUNCH_FULL;
}

/* Whether one loop can multiply the tiles of both kernels. */
static bool multiply_alike(const Kernel *a, const Variant *of_a, const Kernel *b,
                           const Variant *of_b) {
    const GemmSched *s = &of_a->sched.gemm, *t = &of_b->sched.gemm;
    bool is_same = s->tile_m == t->tile_m && s->tile_n == t->tile_n && s->stages == t->stages &&
                   s->n_gemms == t->n_gemms && s->store_warps == t->store_warps &&
                   of_a->is_persistent == of_b->is_persistent &&
                   gemm_left_dtype(a) == gemm_left_dtype(b) &&
                   gemm_operand_dtype(a) == gemm_operand_dtype(b);
    for (uint32_t i = 0; i < of_a->n_maps && is_same; i++)
        is_same = of_a->maps[i].axes[1].box == of_b->maps[i].axes[1].box &&
                  (of_a->maps[i].axes[0].axis == gemm_axis_k(a)) ==
                      (of_b->maps[i].axes[0].axis == gemm_axis_k(b));
    return is_same;
}

static ReasonId go_together(const Kernel *a, const Variant *of_a, const Kernel *b,
                            const Variant *of_b) {
    const Sched *s = &of_a->sched, *t = &of_b->sched;
    if (a->form != b->form || sched_engine(s) != sched_engine(t)) return REASON_OTHER_LOOPS;
    if (template_info(s->template)->uses_copy_engine && !multiply_alike(a, of_a, b, of_b))
        return REASON_OTHER_TILES;
    return s->threads == t->threads && s->cluster == t->cluster ? REASON_NONE : REASON_OTHER_BLOCKS;
}

/* Pairs of variants. Both sides have their variants in order of preference; the last has no
 * conditions. The function go_on walks down both lists at once. After a variant with a condition on
 * extents comes the next variant of its own list. A variant with conditions on pointers only stays
 * as long as the other list continues. So the launch has variants for the sizes of both sides, and
 * few for unaligned pointers. */

typedef struct Pair {
    uint32_t own, other; /* of the launch's variants; of the new kernel's */
} Pair;

typedef struct Pairs {
    const Plan *plan;
    Kernel *kernels; /* the new kernel follows the n kernels */
    uint32_t n;
    Kernel *other;
    Pair pairs[MAX_VARIANTS];
    uint32_t n_pairs;
} Pairs;

/* The number of variants without the last one, which always applies; 1 if it is the only one. */
static uint32_t n_preferred(const Kernel *kernel) {
    return kernel->n_variants > 1 ? kernel->n_variants - 1 : 1;
}

static bool asks_extents(const Variant *variant) {
    return predicate_asks_extents(&variant->predicate) || variant->n_maps;
}

static bool any_asks_extents(const Kernel *kernels, uint32_t n, uint32_t v) {
    bool any = false;
    for (uint32_t k = 0; k < n; k++) any = any || asks_extents(&kernels[k].variants[v]);
    return any;
}

static ReasonId match(const Pairs *p, Pair pair) {
    return go_together(p->kernels, &p->kernels->variants[pair.own], p->other,
                       &p->other->variants[pair.other]);
}

/* Finds the next pair of variants from `at` on that can run together. Returns false if none of the
 * preferred variants can. */
static bool find_match(const Pairs *p, Pair *at) {
    uint32_t n_own = n_preferred(p->kernels), n_other = n_preferred(p->other);
    for (uint32_t away = 0; away < n_own + n_other; away++)
        for (uint32_t i = 0; i <= away; i++) {
            Pair pair = {at->own + away - i, at->other + i};
            if (pair.own >= n_own || pair.other >= n_other || match(p, pair)) continue;
            *at = pair;
            return true;
        }
    return false;
}

static bool has_conditions(const Pairs *p, Pair pair) {
    bool has = variant_has_conditions(p->plan, p->other, &p->other->variants[pair.other]);
    for (uint32_t k = 0; k < p->n; k++)
        has = has ||
              variant_has_conditions(p->plan, &p->kernels[k], &p->kernels[k].variants[pair.own]);
    return has;
}

/* Advances the lists that can continue, or only those with a condition on extents. Returns false at
 * the end of both. */
static bool go_on(const Pairs *p, Pair *at) {
    bool own = at->own + 1 < n_preferred(p->kernels);
    bool other = at->other + 1 < n_preferred(p->other);
    bool own_asks = own && any_asks_extents(p->kernels, p->n, at->own);
    bool other_asks = other && asks_extents(&p->other->variants[at->other]);
    bool any_asks = own_asks || other_asks;
    at->own += any_asks ? own_asks : own;
    at->other += any_asks ? other_asks : other;
    return own || other;
}

static void find_pairs(Pairs *p) {
    const Pair last = {p->kernels->n_variants - 1, p->other->n_variants - 1};
    Pair at = {0, 0};
    while (p->n_pairs + 1 < MAX_VARIANTS && find_match(p, &at)) {
        p->pairs[p->n_pairs++] = at;
        if (!has_conditions(p, at) && !p->kernels->variants[at.own].price.group) return;
        if (!go_on(p, &at)) break;
    }
    p->pairs[p->n_pairs++] = last;
}

static void set_variants(const Pairs *p, const Composer *c) {
    Str symbol = p->kernels->variants[0].symbol;
    for (uint32_t k = 0; k <= p->n; k++) {
        Kernel *kernel = &p->kernels[k];
        Variant paired[MAX_VARIANTS];
        for (uint32_t v = 0; v < p->n_pairs; v++)
            paired[v] = kernel->variants[k < p->n ? p->pairs[v].own : p->pairs[v].other];
        kernel_set_variants(c->scratch, kernel, paired, p->n_pairs);
    }
    for (uint32_t v = 0; v < p->n_pairs; v++) {
        p->kernels->variants[v].symbol = v ? str_format(c->arena, "%s_v%u", symbol, v) : symbol;
        if (template_info(p->kernels->variants[v].sched.template)->uses_copy_engine)
            kernels_widen_alike(p->kernels, p->n + 1, v);
    }
}

/* The first kernel with the code of kernel `n`, which is `n` itself if none before it has it. */
static uint32_t first_with_code(const Kernel *kernels, uint32_t n) {
    uint32_t k = 0;
    while (kernels[k].code != kernels[n].code) k++;
    return k;
}

/* Takes the variants of a kernel with the same code, because they are one body. Returns false if
 * there is none. */
static bool take_variants(const Composer *c, Kernel *kernels, uint32_t n) {
    const Kernel *first = &kernels[first_with_code(kernels, n)];
    if (first == &kernels[n]) return false;
    kernel_set_variants(c->scratch, &kernels[n], first->variants, first->n_variants);
    return true;
}

static ReasonId pair_variants(const Composer *c, const Plan *plan, Kernel *kernels, uint32_t n) {
    Pairs p = {.plan = plan, .kernels = kernels, .n = n, .other = &kernels[n]};
    if (take_variants(c, kernels, n)) return REASON_NONE;
    ReasonId reason = match(&p, (Pair){kernels->n_variants - 1, p.other->n_variants - 1});
    if (reason != REASON_NONE) return reason;
    find_pairs(&p);
    set_variants(&p, c);
    return REASON_NONE;
}

/* Schedules kernel `n` of the array together with the `n` before it, which are one launch already:
 * gives all of them matching variants. Returns REASON_NONE, or why that is impossible; then the
 * kernels must be discarded. Together GEMMs fill the machine with other tiles than each alone. */
static ReasonId schedule_beside(const Composer *c, const Plan *plan, Kernel *kernels, uint32_t n) {
    if (kernels->form != kernels[n].form) return REASON_OTHER_LOOPS;
    bool is_by_copies = template_info(kernels->variants[0].sched.template)->uses_copy_engine;
    if (!form_info(kernels->form)->multiplies) /* by copies, blocks walk over one kernel's tiles */
        return is_by_copies ? REASON_LAUNCH_FULL : pair_variants(c, plan, kernels, n);
    bool has_maps = most_maps(kernels) || most_maps(&kernels[n]);
    for (uint32_t k = 0; k <= n; k++) {
        if (first_with_code(kernels, k) < k) continue; /* it takes the variants of that one */
        sched_in_launch(c->arena, c->scratch, plan, &kernels[k],
                        (GemmLaunch){.n_gemms = 1, .n_kernels = n + 1, .kernels = kernels},
                        c->target);
    }
    ReasonId reason = REASON_NONE;
    for (uint32_t k = 1; k <= n && reason == REASON_NONE; k++)
        reason = pair_variants(c, plan, kernels, k);
    return reason == REASON_NONE && has_maps && !most_maps(kernels) ? REASON_OTHER_TILES : reason;
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
    ReasonId reason = check_limits(kernels, n, &kernels[n]);
    if (reason == REASON_NONE) reason = schedule_beside(c, &t->together, kernels, n);
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

/* Whether a `fuse must` block has values of both launches, so that prices do not matter. */
static bool is_asked(const Composer *c, const Trial *t) {
    const Launch *launches = c->plan->launches.data;
    return t->n_launches == 2 &&
           must_spans(c->plan, &launches[t->launches[0]], &launches[t->launches[1]]);
}

/* Counts the kernels of launches that are tried as one. */
static void count_work(Composer *c, const uint32_t *launches, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const Launch *launch = &c->plan->launches.data[launches[i]];
        for (uint32_t k = 0; k < launch->n; k++)
            c->n_beside += scalar_count(launch_kernel(c->plan, launch, k)->scalars);
    }
}

/* Whether only `fuse must` blocks are reasons for more launches. */
static bool is_spent(const Composer *c) {
    return c->n_beside > LAUNCH_PARALLEL_WORK / c->planning->n_units;
}

/* Joins all candidates at once. Returns false if that does not pay or fewer than two fit. */
static bool join_all(Composer *c, Candidates *candidates) {
    if (is_spent(c)) return false;
    count_work(c, candidates->launch, candidates->n);
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

static TrialResult join_two(Composer *c, const uint32_t *both) {
    const Launch *launches = c->plan->launches.data;
    if (is_spent(c) && !must_spans(c->plan, &launches[both[0]], &launches[both[1]]))
        return (TrialResult){.reason = REASON_SPENT};
    count_work(c, both, 2);
    return launch_try(c, &launch_rules_parallel, both, 2, 2);
}

/* Returns whether any is joined. */
static bool join_each(Composer *c, Candidates *candidates) {
    uint32_t n_gone = 0; /* indices of launches have moved by the joined ones */
    for (uint32_t i = 1; i < candidates->n; i++) {
        if (candidates->apart[i].reason != REASON_NONE) continue;
        const uint32_t both[] = {candidates->launch[0], candidates->launch[i] - n_gone};
        TrialResult result = join_two(c, both);
        candidates->apart[i].reason = result.reason;
        n_gone += result.is_kept;
        if (result.reason == REASON_SLOWER_LAUNCH)
            note_prices(c, &result.prices, &candidates->apart[i]);
    }
    return n_gone > 0;
}

/* Gives launches their numbers after some of the candidates have joined the first one. Only
 * launches behind that one are asked for from now on. */
static void renumber(Searching *s, const Candidates *candidates) {
    uint32_t first = candidates->launch[0] + 1, n_gone = 0, n = s->c->plan->launches.n;
    for (uint32_t i = 1; i < candidates->n; i++)
        n_gone += candidates->apart[i].reason == REASON_NONE;
    n += n_gone;
    for (uint32_t number = 0; number <= n; number++) s->moved_to[number] = number;
    for (uint32_t i = 1, shift = 0; i < candidates->n; i++) {
        uint32_t end = i + 1 < candidates->n ? candidates->launch[i + 1] : n;
        bool is_gone = candidates->apart[i].reason == REASON_NONE;
        shift += is_gone;
        for (uint32_t number = candidates->launch[i] + 1; number <= end; number++)
            s->moved_to[number] = number - shift;
        if (is_gone) s->moved_to[candidates->launch[i] + 1] = first;
    }
    for (uint32_t i = 0; i < s->n_apart; i++) s->place[i] = s->moved_to[s->place[i]];
    for (uint32_t number = 1; number <= n; number++) {
        uint32_t last = s->follows[number - 1], to = s->moved_to[number];
        if (number > first && to == first) continue;
        bool is_gone = last > first && s->moved_to[last] == first;
        set_follows(s, to, is_gone ? last_before(s, to) : s->moved_to[last]);
    }
}

static void propose(Composer *c) {
    ArenaMark mark = arena_mark(c->scratch);
    uint32_t n = c->plan->launches.n;
    Searching s = {.c = c,
                   .follows = arena_array(c->scratch, uint32_t, n),
                   .least = arena_array(c->scratch, uint32_t, n / BLOCK + 1),
                   .place = arena_array(c->scratch, uint32_t, n),
                   .moved_to = arena_array(c->scratch, uint32_t, n + 1),
                   .stored_by =
                       arena_extend(c->scratch, NULL, 0, c->plan->buffers.n * sizeof *s.stored_by),
                   .n_apart = n};
    Candidates candidates;
    memset(&c->plan->unjoined, 0, sizeof c->plan->unjoined);
    find_order(&s);
    for (uint32_t first = 0; first < c->plan->launches.n; first++) {
        find_candidates(&s, first, &candidates);
        bool is_alone = candidates.n == 1;
        if (!is_alone && (join_all(c, &candidates) || join_each(c, &candidates)))
            renumber(&s, &candidates);
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
