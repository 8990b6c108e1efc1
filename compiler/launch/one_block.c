/* One-block launches: kernels so small that starting each takes longer than its work become one
 * launch of one block. The buffers between them stay in shared memory, and their inputs are copied
 * to shared memory at the start of the block, all at once. Only kernels with known extents take
 * part, because the launch is the same for all sizes. The price decides, compared with the launches
 * that the kernels would have otherwise, unless a `fuse must` block needs the launch.
 *
 * The longest sequences of small kernels are tried first. If a sequence is not cheaper as one
 * block, it is split at the kernel that loses most. */
#include "launch/compose.h"
#include "launch/smem.h"
#include "launch/trial_memo.h"
#include "machine/tuning.h"
#include "machine/machine.h"
#include "plan/must.h"
#include "schedule/schedule.h"

#include <string.h>

enum { N_SIZES = 3 };
static const uint32_t block_threads[N_SIZES] = {512, 256, 128};

static bool is_known(const Plan *plan, DimId dim, int64_t most) {
    int64_t value;
    return dim_is_const(plan->graph->dims, dim, &value) && value <= most;
}

/* The point at which prices are compared. The kernels of the launch have no dims, but kernels
 * around it may. */
static const int64_t *point_of(const Composer *c) {
    return c->points.dims[0];
}

/* Makes the kernel's variants in a block of `threads`: one for aligned pointers, one for any. */
static bool make_variants(const Plan *plan, const Kernel *kernel, uint32_t threads,
                          Variant out[2]) {
    out[0] = kernel->variants[0];
    if (out[0].n_maps || predicate_asks_extents(&out[0].predicate))
        out[0] = kernel->variants[kernel->n_variants - 1];
    if (!sched_one_block(kernel, threads, &out[0])) return false;
    out[1] = out[0];
    const PredicateTerm *aligned = predicate_term(&out[0].predicate, TERM_ALIGNED, 0);
    predicate_align(&out[1].predicate, aligned ? aligned->of : 1, kernel_own_args(plan, kernel));
    return true;
}

static bool is_small(const Plan *plan, const Kernel *kernel) {
    DimTab *dims = plan->graph->dims;
    DimId visits = dim_mul(dims, kernel_n_rows(kernel), kernel_n_reduced(kernel));
    if (kernel->is_init || !kernel->n_variants ||
        scalar_count(kernel->scalars) > LAUNCH_ONE_BLOCK_SCALARS ||
        !is_known(plan, visits, LAUNCH_ONE_BLOCK_ELEMS) ||
        !is_known(plan, kernel_n_rows(kernel), LAUNCH_ONE_BLOCK_ELEMS))
        return false; /* a kernel without elements may have unlimited rows */
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        const Buffer *buffer = &plan->buffers.data[kernel->args.data[i]];
        if (!is_known(plan, buffer_bytes(dims, buffer), LAUNCH_ONE_BLOCK_ARG_BYTES)) return false;
    }
    return !launch_has_own_kernel(plan, kernel);
}

static uint8_t sizes_of(const Plan *plan, const Kernel *kernel) {
    Variant made[2];
    uint8_t sizes = 0;
    if (!is_small(plan, kernel)) return 0;
    for (uint32_t i = 0; i < N_SIZES; i++)
        if (make_variants(plan, kernel, block_threads[i], made)) sizes |= (uint8_t)(1u << i);
    return sizes;
}

/* Scheduling. */

static bool is_stored(const Trial *t, uint32_t buffer) {
    return launch_stores_to(&t->together, trial_launch(t), buffer);
}

/* Whether the kernel reads most of the buffer: only then is copying all of it worthwhile. */
static bool is_worth_copying(const Composer *c, const Trial *t, const Kernel *kernel,
                             uint32_t buffer) {
    const Plan *plan = &t->together;
    DimId size = buffer_bytes(plan->graph->dims, &plan->buffers.data[buffer]);
    double bytes = dim_number(plan->graph->dims, size, point_of(c));
    Footprint read = footprint_loads(c->scratch, plan, kernel, buffer, NULL, point_of(c));
    return bytes <= LAUNCH_ONE_BLOCK_COPY_BYTES || read.bytes * 2 >= bytes;
}

/* Buffers that only the launch uses stay in shared memory; if they do not fit, there is no launch.
 * Then inputs are copied, in the order of the kernels, as long as there is room. */
static bool fill_smem(const Composer *c, Trial *t) {
    Launch *launch = trial_launch(t);
    uint32_t own = smem_own_bytes(c, t, 0);
    for (uint32_t k = 0; k < launch->n; k++)
        for (uint32_t i = 0; i < trial_kernel(t, k)->args.n; i++) {
            uint32_t buffer = trial_kernel(t, k)->args.data[i];
            if (is_stored(t, buffer) && trial_is_private(c, t, buffer))
                t->together.buffers.data[buffer].space = BUFFER_SHARED;
        }
    if (!smem_fits(c, t, 0, own)) return false;
    for (uint32_t k = 0; k < launch->n; k++) {
        const Kernel *kernel = trial_kernel(t, k);
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            uint32_t buffer = kernel->args.data[i];
            if (launch_copies(launch, buffer) || is_stored(t, buffer) ||
                !is_worth_copying(c, t, kernel, buffer))
                continue;
            vec_push(c->arena, &launch->copied, buffer);
            if (!smem_fits(c, t, 0, own)) launch->copied.n--;
        }
    }
    return true;
}

/* The kernel's arguments (bit set) that the launch copies. */
static uint64_t copied_args(const Launch *launch, const Kernel *kernel) {
    uint64_t args = 0;
    for (uint32_t i = 0; i < kernel->args.n; i++)
        args |= (uint64_t)launch_copies(launch, kernel->args.data[i]) << i;
    return args;
}

/* The arguments (bit set) in shared memory that do not lie on a multiple of `n_bytes` there: pieces
 * of concats. The runtime checks no pointer to shared memory. */
static uint64_t crooked_args(const Trial *t, const Kernel *kernel, int64_t n_bytes) {
    const Plan *plan = &t->together;
    uint64_t args = 0;
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        const Buffer *buffer = &plan->buffers.data[kernel->args.data[i]];
        DimId begin = kernel_arg_begin(kernel, i);
        if (buffer->space == BUFFER_GLOBAL || !begin) continue;
        int64_t multiple = dim_multiple(plan->graph->dims, begin) * dtype_bytes(buffer->dtype);
        args |= (uint64_t)(multiple % n_bytes != 0) << i;
    }
    return args;
}

/* Requires alignment of copied arguments: copies go 16 bytes at a time. */
static void align_args(Trial *t) {
    for (uint32_t k = 0; k < trial_n_kernels(t); k++) {
        const Kernel *kernel = trial_kernel(t, k);
        uint64_t copied = copied_args(trial_launch(t), kernel);
        Predicate *predicate = &kernel->variants[0].predicate;
        const PredicateTerm *asked = predicate_term(predicate, TERM_ALIGNED, 0);
        int64_t of = asked ? asked->of : ACCESS_BYTES;
        uint64_t crooked = crooked_args(t, kernel, of);
        uint64_t args = asked ? asked->args : kernel_own_args(&t->together, kernel);
        if (copied || (args & crooked)) predicate_align(predicate, of, (args | copied) & ~crooked);
    }
}

/* Drops the second variant if the first has no conditions. */
static void drop_needless(Trial *t) {
    bool has_conditions = false;
    for (uint32_t k = 0; k < trial_n_kernels(t); k++) {
        const Kernel *kernel = trial_kernel(t, k);
        has_conditions =
            has_conditions || variant_has_conditions(&t->together, kernel, &kernel->variants[0]);
    }
    for (uint32_t k = 0; k < trial_n_kernels(t) && !has_conditions; k++)
        trial_kernel(t, k)->n_variants = 1;
}

/* Schedules the kernels in the widest block for which all have a schedule. */
static ReasonId schedule(const Composer *c, Trial *t) {
    uint32_t n_args = 0, size = 0, n = trial_n_kernels(t);
    uint8_t sizes = UINT8_MAX;
    for (uint32_t k = 0; k < n; k++)
        sizes &= c->block_sizes[c->plan->launches.data[t->launches[k]].first];
    if (!sizes) return REASON_OTHER_BLOCKS;
    while (!(sizes >> size & 1)) size++;
    trial_merge(t);
    const char *symbol = trial_kernel(t, 0)->variants[0].symbol;
    for (uint32_t k = 0; k < n; k++) {
        Variant made[2];
        Kernel *kernel = trial_kernel(t, k);
        make_variants(&t->together, kernel, block_threads[size], made);
        kernel_set_variants(c->scratch, kernel, made, 2);
        n_args += kernel->args.n;
    }
    if (n_args > MAX_KERNEL_ARGS || !fill_smem(c, t)) return REASON_LAUNCH_FULL;
    align_args(t);
    drop_needless(t);
    const Kernel *first = trial_kernel(t, 0);
    smem_set_kept_bytes(t);
    for (uint32_t v = 0; v < first->n_variants; v++)
        first->variants[v].symbol = v ? str_format(c->arena, "%s_v%u", symbol, v) : symbol;
    return REASON_NONE;
}

/* Prices. */

/* The microseconds that the launch saves. Sets the kernel that loses most. */
static double gain_of(const Composer *c, Trial *t) {
    const Card *card = card_of_target(c->target);
    const PlanCost *apart = cost_kernels(c->scratch, &t->apart, card, point_of(c));
    const PlanCost *together = cost_kernels(c->scratch, &t->together, card, point_of(c));
    double most = 0;
    t->worst = 0;
    for (uint32_t k = 0; k < t->apart.kernels.n; k++) {
        const KernelCost *own = &together->kernels[k];
        double loss = own->us - own->launch_us - apart->kernels[k].us;
        if (k && loss <= most) continue;
        most = loss;
        t->worst = k;
    }
    return apart->us - together->us;
}

/* The price of the launches around those tried, with these as one launch or as they are, after the
 * others are composed. Independent kernels may otherwise join a parallel launch, which uses all SMs
 * and not one, or equal kernels outside. `*n_broken`: edges inside `fuse must` blocks that are
 * stored. */
static const PlanCost *price_around(const Composer *c, const Trial *t, bool is_one,
                                    uint32_t *n_broken) {
    Plan around = trial_compose_near(c, t, is_one);
    *n_broken = must_n_broken(&around);
    return cost_kernels(c->scratch, &around, card_of_target(c->target), point_of(c));
}

static bool pays_anew(const Composer *c, Trial *t) {
    uint32_t n_broken, n_broken_before;
    if (gain_of(c, t) <= 0) return false;
    const PlanCost *with = price_around(c, t, true, &n_broken);
    const PlanCost *without = price_around(c, t, false, &n_broken_before);
    uint32_t n_saved =
        without->n_launches > with->n_launches ? without->n_launches - with->n_launches : 0;
    return n_broken <= n_broken_before && with->us < price_tie_us(without->us, n_saved);
}

/* Counts the kernels apart and together. The plans around the launch are counted as all plans
 * are. */
static void count_work(const Composer *c, const Trial *t) {
    for (uint32_t k = 0; c->most_work && k < t->apart.kernels.n; k++)
        *c->planning->work += 2 * (uint64_t)scalar_count(t->apart.kernels.data[k].scalars);
}

static bool is_spent(const Composer *c) {
    return c->most_work && *c->planning->work > c->most_work;
}

static bool pays(const Composer *c, Trial *t, TrialPrices *prices) {
    (void)prices;
    if (!c->trial_memo) return pays_anew(c, t);
    const Verdict *known = trial_memo_find(c->trial_memo, c, t);
    if (known) {
        t->worst = known->worst;
        return known->pays;
    }
    count_work(c, t);
    bool pays = pays_anew(c, t);
    trial_memo_add(c->trial_memo, (Verdict){.pays = pays, .worst = t->worst});
    return pays;
}

/* Proposals. */

/* The launches of kernels [begin, end), each with one kernel. */
static void list_launches(const Plan *plan, uint32_t begin, uint32_t end, uint32_t *launches) {
    uint32_t first = plan_launch_index(plan, begin);
    for (uint32_t k = 0; k < end - begin; k++) launches[k] = first + k;
}

/* Tries the kernels [begin, end). Returns whether they became a launch. Otherwise kernels before
 * *stop and kernels from *next on remain to be tried: the last kernel did not fit, or a kernel that
 * loses is left out. */
static bool try_run(Composer *c, uint32_t begin, uint32_t end, uint32_t *stop, uint32_t *next) {
    uint32_t launches[MAX_TRIAL_LAUNCHES] = {0};
    list_launches(c->plan, begin, end, launches);
    TrialResult result = launch_try(c, &launch_rules_one_block, launches, end - begin, 2);
    *stop = result.is_scheduled ? begin + result.worst : end - 1;
    *next = *stop + 1;
    return result.is_kept;
}

/* The end of the most kernels from `begin` on, at most to `end`, whose tensors one launch takes. */
static uint32_t last_with_room(const Plan *plan, uint32_t begin, uint32_t end) {
    uint32_t n_args = 0, last = begin;
    while (last < end && n_args + plan->kernels.data[last].args.n <= MAX_KERNEL_ARGS)
        n_args += plan->kernels.data[last++].args.n;
    return last;
}

static void split_run(Composer *c, uint32_t begin, uint32_t end) {
    while (end - begin > 1 && !is_spent(c)) {
        uint32_t last = begin, stop, next;
        uint8_t sizes = c->block_sizes[begin];
        while (last < end && last - begin < MAX_TRIAL_LAUNCHES && (sizes & c->block_sizes[last]))
            sizes &= c->block_sizes[last++];
        if (last - begin < 2) {
            begin = last > begin ? last : begin + 1;
            continue;
        }
        uint32_t fit = last_with_room(c->plan, begin, last);
        if (fit < last) { /* what does not fit stays apart */
            split_run(c, begin, fit);
            begin = last;
            continue;
        }
        if (try_run(c, begin, last, &stop, &next)) {
            begin = last;
            continue;
        }
        split_run(c, begin, stop);
        begin = next;
    }
}

static void propose(Composer *c) {
    c->block_sizes = arena_array(c->arena, uint8_t, c->plan->kernels.n);
    for (uint32_t k = 0; k < c->plan->kernels.n; k++)
        c->block_sizes[k] = sizes_of(c->plan, &c->plan->kernels.data[k]);
    split_run(c, plan_n_init(c->plan), c->plan->kernels.n);
}

const LaunchRules launch_rules_one_block = {.mode = LAUNCH_ONE_BLOCK,
                                            .sets_space = true,
                                            .keeps_blocks = true,
                                            .propose = propose,
                                            .schedule = schedule,
                                            .pays = pays};
