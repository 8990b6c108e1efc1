/* Sequences: a GEMM and kernels that read its result at the same position run in the same blocks,
 * one after the other. The result stays in shared memory. If it does not fit, or other kernels read
 * it too, the block that stored the result reads it back from global memory. The consumer may be
 * another GEMM of the same extents (a dual GEMM), or a row kernel, if a tile holds whole rows.
 * wgmma GEMMs with one lhs run at once and keep the values between them in registers, even if the
 * values are stored too; so do GEMMs with one lhs on a CPU.
 *
 * A trial has two launches: the sequence so far, and the kernel that may continue it (the
 * consumer). */
#include "ir/subgraph.h"
#include "cost/price_memo.h"
#include "launch/smem.h"
#include "launch/trial_memo.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "plan/access.h"
#include "schedule/schedule.h"
#include "template/wgmma.h"

#include <string.h>

enum {
    MAX_GEMMS = WGMMA_MAX_GEMMS, /* at once; judged for a CPU */
    ROW_LEAST_BYTES = 2          /* narrower elements are computed in as many registers */
};

/* The GEMM that starts the sequence. */
static Kernel *first_of(const Trial *t) {
    return trial_kernel(t, 0);
}

static Kernel *consumer_of(const Trial *t) {
    return trial_kernel(t, trial_n_kernels(t) - 1);
}

/* Values that pass to the consumer. */

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

/* The buffers that the sequence stores: those with its number. */
typedef struct Stored {
    const uint32_t *users_of; /* per buffer: Composer.n_users */
    uint32_t *by;             /* per buffer */
    uint32_t number, n_users; /* n_users: arguments of kernels that may follow */
} Stored;

static void note_store(void *user, const Store *store) {
    Stored *stored = user;
    if (stored->by[store->buffer] == stored->number) return;
    stored->by[store->buffer] = stored->number;
    stored->n_users += stored->users_of[store->buffer];
}

/* The number of the launch's arguments that the sequence stores. Most kernels of a large graph have
 * none, so this cheap test comes first. */
static uint32_t count_stored(const Plan *plan, const Stored *stored, const Launch *launch) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < launch->n; k++) {
        const Kernel *kernel = launch_kernel(plan, launch, k);
        for (uint32_t i = 0; i < kernel->args.n; i++)
            n += stored->by[kernel->args.data[i]] == stored->number;
    }
    return n;
}

/* Whether all inputs of the consumer exist: computed before the sequence, or by the same blocks. At
 * least one must be the latter. `end`: the consumer's index among the kernels. */
static bool has_operands(const Composer *c, const Pair *pair, uint32_t end) {
    const Kernel *kernels = pair->plan->kernels.data, *consumer = pair->consumer;
    uint32_t n_passed = 0;
    for (uint32_t i = 0; i < consumer->args.n; i++) {
        uint32_t buffer = consumer->args.data[i];
        for (uint32_t k = pair->launch->first; k < end; k++) {
            if (!kernel_stores_to(&kernels[k], buffer)) continue;
            if (!launch_has(pair->launch, k) || !passes(c, pair, buffer)) return false;
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
    return next->n == 1 && !pair.consumer->choice &&
           pair.consumer->is_init == launch_kernel(c->plan, launch, 0)->is_init &&
           has_operands(c, &pair, next->first) && has_room(&pair);
}

/* GEMMs that continue a GEMM. */

static bool may_join_gemms(const Kernel *kernel) {
    bool may = false;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        may = may || template_info(kernel->variants[v].sched.template)->joins_gemms;
    return may;
}

/* Whether both GEMMs use the same threads, or register tiles, for the same elements. */
static bool has_same_mainloop(const Sched *a, const Sched *b) {
    GemmSched s = sched_gemm(a), t = sched_gemm(b);
    CpuGemmSched u = sched_cpu_gemm_params(a), v = sched_cpu_gemm_params(b);
    return a->lanes == b->lanes && sched_tile(a).k == sched_tile(b).k && s.stages == t.stages &&
           s.warps_m == t.warps_m && u.is_blocked == v.is_blocked && u.register_m == v.register_m;
}

static bool has_same_tiles(const Sched *a, const Sched *b) {
    GemmTile of_a = sched_tile(a), of_b = sched_tile(b);
    GemmSched s = sched_gemm(a), t = sched_gemm(b);
    return a->template == b->template && of_a.m == of_b.m && of_a.n == of_b.n &&
           s.tail_n == t.tail_n && s.store_warps == t.store_warps && a->threads == b->threads &&
           a->cluster == b->cluster;
}

/* Whether both variants have the same blocks and tiles and, if the GEMMs run at once, the same
 * mainloop. */
static bool goes_with(const Variant *a, const Variant *b) {
    bool are_at_once = template_info(a->sched.template)->joins_gemms;
    return has_same_tiles(&a->sched, &b->sched) &&
           (!are_at_once || has_same_mainloop(&a->sched, &b->sched)) && a->grid == b->grid &&
           predicate_same_but_pointers(&a->predicate, &b->predicate);
}

static bool all_go_with(const Kernel *first, const Kernel *consumer) {
    if (first->n_variants != consumer->n_variants) return false;
    for (uint32_t v = 0; v < first->n_variants; v++)
        if (!goes_with(&first->variants[v], &consumer->variants[v])) return false;
    return true;
}

/* Gives the GEMMs matching variants. If blocks run all GEMMs at once, tiles are chosen again for
 * their number. */
static bool join_gemms(const Composer *c, Trial *t) {
    Kernel *first = first_of(t);
    uint32_t n = trial_n_kernels(t);
    bool goes = c->target->has->cores ? sched_cpu_gemm_goes_with(first, consumer_of(t))
                                      : sched_wgmma_goes_with(&t->together, first, consumer_of(t));
    bool is_behind_rows = form_info(trial_kernel(t, n - 2)->form)->reduces_rows, all_go = true;
    if (n > MAX_GEMMS || is_behind_rows || !goes) return false;
    for (uint32_t k = 0; k < n; k++) {
        sched_in_launch(c->arena, c->scratch, &t->together, trial_kernel(t, k),
                        (GemmLaunch){.n_gemms = n}, c->target);
        all_go = all_go && all_go_with(first, trial_kernel(t, k));
    }
    for (uint32_t v = 0; all_go && v < first->n_variants; v++) kernels_widen_alike(first, n, v);
    return all_go;
}

static bool is_tiled_gemm(const Kernel *kernel) {
    bool is_tiled = form_info(kernel->form)->multiplies && !kernel->choice;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        is_tiled = is_tiled && template_info(kernel->variants[v].sched.template)->tiles_outputs;
    return is_tiled;
}

/* Whether one loop along k can multiply for both and keep both tiles in registers. */
static bool are_at_once(const Kernel *a, const Kernel *b) {
    return may_join_gemms(a) && may_join_gemms(b);
}

static bool continue_gemms(const Composer *c, Trial *t) {
    const Kernel *first = first_of(t), *consumer = consumer_of(t);
    if (!is_tiled_gemm(consumer) || consumer->n_parallel != first->n_parallel) return false;
    for (uint32_t k = 0; k < first->n_parallel; k++)
        if (kernel_axis_extent(first, k) != kernel_axis_extent(consumer, k)) return false;
    return are_at_once(first, consumer) ? join_gemms(c, t) : all_go_with(first, consumer);
}

/* Row kernels that continue a GEMM. */

/* The largest number of columns of the sequence's first GEMM. */
static int64_t most_columns(const Composer *c, const Trial *t) {
    const Kernel *first = first_of(t);
    return dim_hi(c->plan->graph->dims, kernel_axis_extent(first, gemm_axis_n(first)));
}

static bool has_rows(const Composer *c, const Trial *t) {
    const Kernel *first = first_of(t), *consumer = consumer_of(t);
    DimTab *dims = c->plan->graph->dims;
    DimId extent = kernel_axis_extent(first, gemm_axis_n(first));
    return kernel_lanes_reduce(consumer, &consumer->variants[0].sched) &&
           consumer->segment_axis == NO_AXIS && trial_n_kernels(t) == 2 &&
           kernel_n_reduced(consumer) == extent && dim_lo(dims, extent) > 0 &&
           dim_mul(dims, kernel_n_rows(consumer), extent) == kernel_n_rows(first) &&
           most_columns(c, t) <= (c->target->has->cores
                                      ? sched_cpu_gemm_widest_rows(first, c->target)
                                      : sched_gemm_widest_rows(c->plan, first));
}

/* GPU. */

/* A number of which the row length is a multiple where the variant applies. */
static int64_t multiple_of_row(const Trial *t, const Variant *of_first) {
    const Kernel *first = first_of(t);
    DimId extent = kernel_axis_extent(first, gemm_axis_n(first));
    int64_t asked = predicate_multiple(&of_first->predicate, extent);
    return asked > 1 ? asked : dim_multiple(t->together.graph->dims, extent);
}

/* The elements of one access of the widest dtype that the consumer loads or stores. */
static uint32_t row_lanes(const Trial *t, const Variant *of_first) {
    const Kernel *consumer = consumer_of(t);
    uint32_t widest = ROW_LEAST_BYTES;
    for (uint32_t i = 0; i < consumer->args.n; i++) {
        uint32_t own = dtype_bytes(t->together.buffers.data[consumer->args.data[i]].dtype);
        if (own > widest) widest = own;
    }
    uint32_t lanes = ACCESS_BYTES / widest;
    while (multiple_of_row(t, of_first) % lanes) lanes /= 2;
    return lanes;
}

/* A few threads per row of at most `n` elements, so that a warp has several independent rows at
 * once, but not more rows than exist. */
static uint32_t threads_per_row_of(const Sched *first, uint32_t lanes, int64_t n) {
    uint32_t warp_rows = first->gemm.tile_m * WARP_THREADS / first->threads;
    if (template_info(first->template)->uses_copy_engine) warp_rows = WGMMA_EPILOGUE_ROWS;
    uint32_t threads_per_row = warp_rows < WARP_THREADS ? WARP_THREADS / warp_rows : 1;
    if (threads_per_row < LAUNCH_ROWS_THREADS) threads_per_row = LAUNCH_ROWS_THREADS;
    while (threads_per_row < WARP_THREADS && (threads_per_row * LAUNCH_ROWS_ELEMS < n ||
                                              threads_per_row * lanes * LAUNCH_ROWS_STEPS < n))
        threads_per_row *= 2;
    return threads_per_row;
}

/* The row kernel's variant. The last variant must have no conditions on pointers. */
static Variant gpu_row_variant(const Trial *t, const Variant *of_first, bool is_last, int64_t n) {
    const Kernel *consumer = consumer_of(t);
    Variant variant = *of_first;
    Sched own = consumer->variants[0].sched;
    own.lanes = row_lanes(t, of_first);
    own.threads = of_first->sched.threads;
    own.row.threads_per_row = threads_per_row_of(&of_first->sched, own.lanes, n);
    own.unroll = 1;
    own.row.resident = 1;
    while (own.row.resident * own.row.threads_per_row * own.lanes < n) own.row.resident *= 2;
    own.row.slots = own.row.resident;
    own.is_wide = own.is_wide || of_first->sched.is_wide;
    variant.sched = own;
    variant.shared_bytes = 0;
    variant.n_maps = 0;
    predicate_align(&variant.predicate, ACCESS_BYTES,
                    is_last ? kernel_own_args(&t->together, consumer)
                            : UINT64_MAX >> (64 - consumer->args.n));
    return variant;
}

/* Whether a block of the variant has whole rows. In a cluster that splits k no block has. */
static bool leaves_rows(const Variant *variant, int64_t n) {
    return !template_info(variant->sched.template)->cluster_splits_k &&
           sched_tile(&variant->sched).n >= n;
}

/* Bytes of a row that pass from the launch to the consumer only. */
static uint32_t row_bytes(const Composer *c, const Trial *t) {
    const Kernel *consumer = consumer_of(t);
    int64_t bytes = 0;
    for (uint32_t i = 0; i < consumer->args.n; i++) {
        const Buffer *buffer = &c->plan->buffers.data[consumer->args.data[i]];
        Shape layout = buffer_layout(buffer);
        if (launch_stores_to(&t->together, trial_launch(t), consumer->args.data[i]) &&
            trial_is_private(c, t, consumer->args.data[i]))
            bytes += dim_hi(c->plan->graph->dims, layout.dims[layout.rank - 1]) *
                     dtype_bytes(buffer->dtype);
    }
    return bytes <= LAUNCH_ROWS_BYTES ? (uint32_t)bytes : 0;
}

static bool continue_rows(const Composer *c, Trial *t) {
    Kernel *first = first_of(t);
    GemmLaunch launch = {.n_gemms = 1, .has_rows = true, .row_bytes = row_bytes(c, t)};
    int64_t n = most_columns(c, t);
    sched_in_launch(c->arena, c->scratch, &t->together, first, launch, c->target);
    if (!leaves_rows(&first->variants[first->n_variants - 1], n)) return false;
    uint32_t kept = 0;
    Variant of_first[MAX_VARIANTS], of_rows[MAX_VARIANTS];
    for (uint32_t v = 0; v < first->n_variants; v++) {
        const Variant *variant = &first->variants[v];
        if (!leaves_rows(variant, n)) continue;
        of_first[kept] = *variant;
        of_rows[kept++] = c->target->has->cores
                              ? trial_cpu_row_variant(consumer_of(t), variant)
                              : gpu_row_variant(t, variant, v + 1 == first->n_variants, n);
    }
    kernel_set_variants(c->scratch, first, of_first, kept);
    kernel_set_variants(c->scratch, consumer_of(t), of_rows, kept);
    return true;
}

static bool passes_rows(const Composer *c, const Trial *t) {
    return !c->target->has->blocks || row_bytes(c, t) > 0;
}

static ReasonId schedule(const Composer *c, Trial *t) {
    bool is_rows = has_rows(c, t);
    if (is_rows ? !continue_rows(c, t) : !continue_gemms(c, t)) return REASON_OTHER_BLOCKS;
    bool may_pass = !is_rows || passes_rows(c, t);
    trial_merge(t);
    if (may_pass) smem_keep_passed(c, t);
    if (c->target->has->blocks) smem_set_kept_bytes(t);
    return REASON_NONE;
}

/* Prices. */

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

static bool is_dual_gemm(const Kernel *kernel) {
    bool is = false;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        is = is || sched_gemm(&kernel->variants[v].sched).n_gemms > 1;
    return is;
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
static bool compare_with_ops(const Composer *c, const Trial *t) {
    Plan alone = plan_extract(c->scratch, &t->together, t->n_context, 1);
    Prices together = price_memo_plan(c->price_memo, c->scratch, &alone, c->target, &c->points);
    Prices ops;
    return prices_of_unfused(c->planning, c->arena, c->scratch, subgraph(c, t), &c->points, &ops) &&
           prices_are_within(&c->points, &together, &ops, PRICES_NO_SLOWER);
}

/* compare_with_ops, or its result for a launch like this one. The key has all kernels between the
 * two launches. */
static bool is_no_slower_than_ops(const Composer *c, const Trial *t) {
    bool are_near = t->launches[1] - t->launches[0] < MAX_TRIAL_LAUNCHES;
    if (!c->trial_memo || !are_near) return compare_with_ops(c, t);
    const Verdict *known = trial_memo_find(c->trial_memo, c, t);
    if (known) return known->pays;
    bool is = compare_with_ops(c, t);
    trial_memo_add(c->trial_memo, (Verdict){.pays = is});
    return is;
}

static bool pays(const Composer *c, Trial *t, TrialPrices *prices) {
    uint32_t first = t->apart.launches.data[t->n_context].first;
    for (uint32_t k = first; k < t->apart.kernels.n && is_dual_gemm(first_of(t)); k++)
        keep_common_widths(&t->apart.kernels.data[k]);
    if (trial_pays(c, t, prices)) return true;
    bool has_launches = c->target->has->launches;
    return has_launches &&
           prices_may_favor_joining(&c->points, &prices->together, &prices->apart) &&
           is_no_slower_than_ops(c, t);
}

/* Whether a `fuse must` block contains a value that passes to the consumer. */
static bool is_asked(const Composer *c, const Trial *t) {
    uint32_t n = trial_n_kernels(t);
    (void)c;
    return trial_is_asked_to_pass(t, n, n - 1);
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
    launch_set_passed_edges(c, c->plan, &pair, &both, both.n, EDGE_STORED, REASON_SLOWER);
}

/* Notes the buffers that the launch stores, and how often kernels beside it have them as
 * arguments. */
static void note_stores(const Composer *c, Stored *stored, uint32_t launch) {
    const Launch *own = &c->plan->launches.data[launch];
    stored->number++;
    stored->n_users = 0;
    for (uint32_t k = 0; k < own->n; k++)
        kernel_each_store(launch_kernel(c->plan, own, k), note_store, stored);
    stored->n_users -= count_stored(c->plan, stored, own);
}

/* Greedy: the GEMM takes the first kernel that can continue it, if the price agrees. Behind the
 * last reader of the sequence's results no kernel can. */
static void grow(Composer *c, Stored *stored, uint32_t first) {
    note_stores(c, stored, first);
    for (uint32_t next = first + 1; stored->n_users && next < c->plan->launches.n; next++) {
        const Launch *launches = c->plan->launches.data;
        uint32_t n_read = count_stored(c->plan, stored, &launches[next]);
        stored->n_users -= n_read;
        if (!n_read || !may_continue(c, &launches[first], &launches[next])) continue;
        const uint32_t both[] = {first, next};
        TrialResult result = launch_try(c, &launch_rules_sequence, both, 2, 2);
        if (result.is_kept) {
            note_stores(c, stored, first);
            next = first;
        }
        if (result.reason == REASON_SLOWER_LAUNCH) note_slower(c, first, next);
    }
}

static void propose(Composer *c) {
    Stored stored = {.users_of = c->n_users,
                     .by = arena_array(c->scratch, uint32_t, c->plan->buffers.n)};
    for (uint32_t i = 0; i < c->plan->launches.n; i++) {
        const Launch *launch = &c->plan->launches.data[i];
        ArenaMark mark = arena_mark(c->scratch);
        if (launch->n == 1 && is_tiled_gemm(launch_kernel(c->plan, launch, 0))) grow(c, &stored, i);
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
                                           .pays = pays};
