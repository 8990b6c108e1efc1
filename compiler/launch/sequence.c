/* Sequences: a GEMM and kernels that read its result at the same position run in the same blocks,
 * one after the other. The result stays in shared memory. If it does not fit, or other kernels read
 * it too, the block that stored the result reads it back from global memory. The consumer may be
 * another GEMM of the same extents (a dual GEMM), or a row kernel, if a tile holds whole rows.
 * wgmma GEMMs with one lhs run at once and keep the values between them in registers, even if the
 * values are stored too; so do GEMMs with one lhs on a CPU. */
#include "launch/sequence_state.h"
#include "plan/access.h"

#include <string.h>

static const Store *row_store_to(const Kernel *kernel, uint32_t buffer) {
    for (uint32_t i = 0; i < kernel->row_stores.n; i++)
        if (kernel->row_stores.data[i].buffer == buffer) return &kernel->row_stores.data[i];
    return NULL;
}

/* Whether the kernel reads the buffer as a matmul operand. A block fetches operands for its whole
 * tile before the first element of its result exists. With a k of one element the index alone does
 * not show it. */
static bool is_operand(Arena *scratch, const Kernel *kernel, uint32_t buffer) {
    if (!form_info(kernel->form)->multiplies) return false;
    ArenaMark mark = arena_mark(scratch);
    const bool *is_reduced = kernel_reduced_scalars(scratch, kernel);
    bool is = false;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        is = is || (is_reduced[id] && s->kind == SCALAR_LOAD && s->buffer == buffer);
    }
    arena_rewind(scratch, mark);
    return is;
}

/* Whether all loads of the buffer are at the position of the kernel's own loops. */
static bool reads_in_place(const Composer *c, const Kernel *kernel, uint32_t buffer) {
    uint32_t n =
        kernel->n_parallel + (form_info(kernel->form)->reduces_rows ? kernel->n_reduced : 0);
    AccessAxes axes = access_first_axes(n);
    return access_reads(c->plan, kernel, &axes, buffer) && !is_operand(c->scratch, kernel, buffer);
}

/* A sequence and a kernel that may continue it, in the composer's plan. */
typedef struct Pair {
    const Plan *plan;
    const Launch *launch;
    const Kernel *consumer;
} Pair;

/* Whether each block of the consumer reads from the buffer exactly the elements that the same block
 * of the sequence stored. */
static bool passes(const Composer *c, const Pair *pair, uint32_t buffer) {
    const Plan *plan = pair->plan;
    NodeId node = plan->buffers.data[buffer].node;
    if (launch_has_own_kernel(plan, pair->consumer) || graph_block(plan->graph, node, BLOCK_NEVER))
        return false;
    for (uint32_t k = 0; k < pair->launch->n; k++) {
        const Kernel *kernel = launch_kernel(plan, pair->launch, k);
        const Store *store = row_store_to(kernel, buffer);
        if (!store) continue;
        AccessAxes axes = access_first_axes(kernel->n_parallel);
        return !store->piece && !store->guard && form_info(kernel->form)->multiplies &&
               axes.n > 0 &&
               store->address == access_address(kernel, &axes, &plan->buffers.data[buffer]) &&
               reads_in_place(c, pair->consumer, buffer);
    }
    return false;
}

/* Whether the consumer reads a result of the sequence. Most kernels of a large graph do not, so
 * this cheap test comes first. */
static bool goes_on(const Pair *pair) {
    for (uint32_t i = 0; i < pair->consumer->args.n; i++)
        if (launch_stores_to(pair->plan, pair->launch, pair->consumer->args.data[i])) return true;
    return false;
}

/* Whether all inputs of the consumer exist: computed before the sequence, or by the same blocks. At
 * least one must be the latter. `end`: the consumer's index among the kernels. */
static bool has_operands(const Composer *c, const Pair *pair, uint32_t end) {
    const Kernel *kernels = pair->plan->kernels.data, *consumer = pair->consumer;
    uint32_t n_passed = 0, first = pair->launch->first;
    for (uint32_t i = 0; i < consumer->args.n; i++) {
        uint32_t buffer = consumer->args.data[i];
        for (uint32_t k = first; k < end; k++) {
            if (!kernel_stores_to(&kernels[k], buffer)) continue;
            bool is_inside = k < first + pair->launch->n;
            if (!is_inside || !passes(c, pair, buffer)) return false;
            n_passed++;
        }
    }
    return n_passed > 0;
}

static bool has_room(const Pair *pair) {
    uint32_t n_args = pair->consumer->args.n;
    for (uint32_t k = 0; k < pair->launch->n; k++)
        n_args += launch_kernel(pair->plan, pair->launch, k)->args.n;
    return n_args <= MAX_KERNEL_ARGS;
}

static bool may_continue(const Composer *c, const Launch *launch, const Launch *next) {
    const Pair pair = {c->plan, launch, launch_kernel(c->plan, next, 0)};
    return next->n == 1 && goes_on(&pair) && !pair.consumer->choice &&
           pair.consumer->is_init == launch_kernel(c->plan, launch, 0)->is_init &&
           has_operands(c, &pair, next->first) && has_room(&pair);
}

static ReasonId schedule(const Composer *c, Trial *t) {
    bool is_rows = sequence_has_rows(c, t), has_blocks = c->target->has->blocks;
    if (is_rows ? !sequence_continue_rows(c, t) : !sequence_continue_gemms(c, t))
        return REASON_OTHER_BLOCKS;
    bool has_smem =
        (!is_rows || sequence_passes_rows(c, t)) && (!has_blocks || sequence_fits(c, t));
    const Kernel *consumer = sequence_consumer(t);
    for (uint32_t i = 0; i < consumer->args.n && has_smem; i++)
        sequence_set_space(c, t, consumer->args.data[i], BUFFER_SHARED);
    trial_merge(t);
    if (has_blocks) sequence_set_kept_bytes(t);
    return REASON_NONE;
}

/* Whether a `fuse must` block contains a value that passes to the consumer. */
static bool is_asked(const Composer *c, const Trial *t) {
    uint32_t n = trial_n_kernels(t);
    return trial_is_asked_to_pass(c, t, n, n - 1);
}

/* Records that the values are stored because that is faster. */
static void note_slower(const Composer *c, uint32_t launch, uint32_t next) {
    Plan pair = *c->plan;
    Launch both = c->plan->launches.data[launch];
    const Launch *own = &c->plan->launches.data[next];
    Kernel *kernels = arena_array(c->scratch, Kernel, both.n + (size_t)1);
    memcpy(kernels, launch_kernel(c->plan, &both, 0), both.n * sizeof *kernels);
    kernels[both.n] = *launch_kernel(c->plan, own, 0);
    pair.kernels.data = kernels;
    both.first = 0;
    both.n++;
    launch_set_passed_edges(c->plan, &pair, &both, both.n, EDGE_STORED, REASON_SLOWER);
}

/* Greedy: the GEMM takes the first kernel that can continue it, if the price agrees. */
static void grow(Composer *c, uint32_t first) {
    for (uint32_t next = first + 1; next < c->plan->launches.n; next++) {
        const Launch *launches = c->plan->launches.data;
        if (!may_continue(c, &launches[first], &launches[next])) continue;
        const uint32_t both[] = {first, next};
        TrialResult result = launch_try(c, &launch_rules_sequence, both, 2, 2);
        if (result.is_kept) next = first;
        if (result.reason == REASON_SLOWER_LAUNCH) note_slower(c, first, next);
    }
}

static void propose(Composer *c) {
    for (uint32_t i = 0; i < c->plan->launches.n; i++) {
        const Launch *launch = &c->plan->launches.data[i];
        ArenaMark mark = arena_mark(c->scratch);
        if (launch->n == 1 && sequence_is_tiled(launch_kernel(c->plan, launch, 0))) grow(c, i);
        arena_rewind(c->scratch, mark);
    }
}

/* The context of a price is two launches: one may compute the matmul's input, one a bias. */
const LaunchRules launch_rules_sequence = {.mode = LAUNCH_SEQUENCE,
                                           .n_context = 2,
                                           .sets_space = true,
                                           .has_cpu = true,
                                           .propose = propose,
                                           .schedule = schedule,
                                           .is_asked = is_asked,
                                           .pays = sequence_pays};
