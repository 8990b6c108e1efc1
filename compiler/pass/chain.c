/* Greedy: each contraction takes the first kernel that can continue it, if the price agrees. See
 * chain.h. */
#include "pass/chain.h"

#include "ir/simt.h"
#include "ir/wgmma.h"
#include "pass/choose.h"
#include "pass/indexmap.h"
#include "pass/sched.h"

#include <string.h>

enum {
    MAX_CHIP_BYTES = 64 * 1024, /* leaves two blocks of large tiles on a multiprocessor */
    MAX_DYNAMIC_BYTES = 96 * 1024,
    MAX_BLOCK_BYTES = 99 * 1024, /* of targets without clusters */
    MIN_STAGES = 3,
    VECTOR_BYTES = 16,
    WARP_THREADS = 32,
    ROW_LEAST_TEAM = 4, /* threads */
    ROW_ELEMS = 32,     /* of a thread: with 64 they were slower (256 columns), with 16 too (128) */
    ROW_STEPS = 8,      /* of a thread, each with an accumulator */
    ROW_LEAST_BYTES = 2, /* what narrower elements are computed in takes as many registers */
    MAX_ROW_BYTES = 1024 /* leaves wgmma two stages */
};

typedef struct Chain {
    Arena *arena, *scratch;
    Plan *plan;
    const Target *target;
    DimTab *dims;
    CostPoints points;
    uint32_t first, next; /* kernels: the one that opens the launch, and the one to continue it */
    Launch launch;        /* so far */
    bool has_chip;        /* blocks have room for what passes and is needed nowhere else */
} Chain;

static const Store *row_store_to(const Kernel *kernel, uint32_t buffer) {
    for (uint32_t i = 0; i < kernel->row_stores.n; i++)
        if (kernel->row_stores.data[i].buffer == buffer) return &kernel->row_stores.data[i];
    return NULL;
}

/* The address in the buffer that runs through the first `n_axes` axes of the kernel in order. */
static IndexId plain_address(const Kernel *kernel, uint32_t n_axes, const Buffer *buffer) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    Shape shape = {.rank = n_axes};
    IndexId coords[MAX_RANK];
    for (uint32_t k = 0; k < n_axes; k++) {
        shape.dims[k] = index_axis_extent(tab, k);
        coords[k] = index_axis(tab, k);
    }
    if (buffer->pitch) shape.dims[n_axes - 1] = buffer->pitch;
    return indexmap_address(tab, &shape, coords);
}

static uint32_t n_place_axes(const Kernel *kernel) {
    return kernel->n_parallel + (kernel->form == FORM_ROW ? kernel->n_reduced : 0);
}

/* Whether all loads of the buffer are where the kernel's own loops stand. */
static bool reads_in_place(const Plan *plan, const Kernel *kernel, uint32_t buffer) {
    uint32_t n_axes = n_place_axes(kernel);
    if (n_axes > MAX_RANK) return false;
    IndexId plain = plain_address(kernel, n_axes, &plan->buffers.data[buffer]);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (s->kind == SCALAR_LOAD && s->buffer == buffer && (s->index != plain || s->guard))
            return false;
    }
    return true;
}

/* Whether the source wants a value of the kernel kept apart. */
static bool is_apart(const Plan *plan, const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        if (graph_block(plan->graph, kernel->nodes.data[i], BLOCK_NEVER)) return true;
    return false;
}

/* Whether no kernel but those of the launch and the reader needs the buffer. */
static bool is_private(const Chain *c, uint32_t buffer) {
    if (c->plan->buffers.data[buffer].kind != BUFFER_TEMP) return false;
    for (uint32_t k = 0; k < c->plan->kernels.n; k++) {
        bool is_inside = k >= c->first && k < c->first + c->launch.n;
        if (!is_inside && k != c->next &&
            kernel_find_arg(&c->plan->kernels.data[k], buffer) != NO_ARG)
            return false;
    }
    return true;
}

/* Whether a block of the reader takes of the buffer just what the same block of the launch made. */
static bool passes(const Chain *c, uint32_t buffer) {
    const Kernel *reader = &c->plan->kernels.data[c->next];
    NodeId node = c->plan->buffers.data[buffer].node;
    if (is_apart(c->plan, reader) || graph_block(c->plan->graph, node, BLOCK_NEVER)) return false;
    for (uint32_t k = 0; k < c->launch.n; k++) {
        const Kernel *kernel = &c->launch.kernels[k];
        const Store *store = row_store_to(kernel, buffer);
        if (!store) continue;
        return !store->piece && !store->guard && kernel->form == FORM_CONTRACT &&
               kernel->n_parallel <= MAX_RANK &&
               store->address ==
                   plain_address(kernel, kernel->n_parallel, &c->plan->buffers.data[buffer]) &&
               reads_in_place(c->plan, reader, buffer);
    }
    return false;
}

/* Whether the reader takes anything of what the launch makes: most kernels of a large graph do not,
 * and to ask for all that they take would be long. */
static bool goes_on(const Chain *c) {
    const Kernel *reader = &c->plan->kernels.data[c->next];
    for (uint32_t i = 0; i < reader->args.n; i++)
        if (launch_stores_to(&c->launch, reader->args.data[i])) return true;
    return false;
}

/* Whether what the reader takes is there: made before the launch, or by the same blocks. At least
 * one buffer must be the latter. */
static bool has_operands(const Chain *c) {
    const Kernel *kernels = c->plan->kernels.data, *reader = &kernels[c->next];
    uint32_t n_passed = 0;
    for (uint32_t i = 0; i < reader->args.n; i++) {
        uint32_t buffer = reader->args.data[i];
        for (uint32_t k = c->first; k < c->next; k++) {
            if (!kernel_stores_to(&kernels[k], buffer)) continue;
            bool is_inside = k < c->first + c->launch.n;
            if (!is_inside || !passes(c, buffer)) return false;
            n_passed++;
        }
    }
    return n_passed > 0;
}

static bool has_engine(const Kernel *kernel, ContractEngine engine) {
    bool has = false;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        has = has || kernel->variants[v].sched.engine == engine;
    return has;
}

static bool is_tiled(const Kernel *kernel) {
    return kernel->form == FORM_CONTRACT && !has_engine(kernel, CONTRACT_PLAIN);
}

/* Contractions: the same blocks, tile by tile and variant by variant; where they multiply at once,
 * the same threads for the same results. */
static bool goes_with(const Variant *a, const Variant *b) {
    bool is_at_once = a->sched.engine == CONTRACT_WGMMA;
    return a->sched.engine == b->sched.engine && a->sched.tile_m == b->sched.tile_m &&
           a->sched.tile_n == b->sched.tile_n && a->sched.tail_n == b->sched.tail_n &&
           a->sched.threads == b->sched.threads && a->sched.cluster == b->sched.cluster &&
           (!is_at_once ||
            (a->sched.lanes == b->sched.lanes && a->sched.stages == b->sched.stages)) &&
           a->grid == b->grid && a->multiple_dim == b->multiple_dim &&
           a->multiple_of == b->multiple_of && a->limit_dim == b->limit_dim &&
           a->limit == b->limit && a->least == b->least;
}

static bool all_go_with(const Kernel *first, const Kernel *reader) {
    if (first->n_variants != reader->n_variants) return false;
    for (uint32_t v = 0; v < first->n_variants; v++)
        if (!goes_with(&first->variants[v], &reader->variants[v])) return false;
    return true;
}

/* Indices of both are computed once. */
static void widen_alike(Kernel *const *kernels, uint32_t n) {
    for (uint32_t v = 0; v < kernels[0]->n_variants; v++) {
        bool is_wide = false;
        for (uint32_t k = 0; k < n; k++) is_wide = is_wide || kernels[k]->variants[v].sched.is_wide;
        for (uint32_t k = 0; k < n; k++) kernels[k]->variants[v].sched.is_wide = is_wide;
    }
}

/* Where blocks multiply for all phases at once, tiles are chosen anew for as many products. */
static bool joins_products(Chain *c) {
    Kernel *kernels[WGMMA_MAX_PRODUCTS], *saved[WGMMA_MAX_PRODUCTS];
    uint32_t n = c->launch.n + 1;
    Kernel *first = &c->plan->kernels.data[c->first], *reader = &c->plan->kernels.data[c->next];
    if (n > WGMMA_MAX_PRODUCTS || !sched_gemm_wgmma_goes_with(first, reader)) return false;
    bool go_together = true;
    for (uint32_t k = 0; k < n; k++) {
        kernels[k] = k < c->launch.n ? first + k : reader;
        saved[k] = arena_copy(c->arena, kernels[k], sizeof *kernels[k]);
        sched_in_launch(c->arena, c->plan, kernels[k], (GemmLaunch){.products = n}, c->target);
        go_together = go_together && all_go_with(first, kernels[k]);
    }
    if (go_together)
        widen_alike(kernels, n);
    else
        for (uint32_t k = 0; k < n; k++) *kernels[k] = *saved[k];
    return go_together;
}

static bool continues_tile(Chain *c) {
    const Kernel *first = c->launch.kernels, *reader = &c->plan->kernels.data[c->next];
    if (!is_tiled(reader) || reader->n_parallel != first->n_parallel) return false;
    for (uint32_t k = 0; k < first->n_parallel; k++)
        if (index_axis_extent(scalartab_indices(first->scalars), k) !=
            index_axis_extent(scalartab_indices(reader->scalars), k))
            return false;
    bool is_at_once = has_engine(first, CONTRACT_WGMMA) && has_engine(reader, CONTRACT_WGMMA);
    return is_at_once ? joins_products(c) : all_go_with(first, reader);
}

/* Rows. */

/* What the vectors of a row are whole multiples of, where the variant applies. */
static int64_t multiple_of_row(const Chain *c, const Variant *of_first) {
    const Kernel *first = &c->plan->kernels.data[c->first];
    DimId extent = index_axis_extent(scalartab_indices(first->scalars), gemm_axis_n(first));
    return of_first->multiple_dim == extent ? of_first->multiple_of : dim_multiple(c->dims, extent);
}

/* As many elements as one access has of the widest that the reader takes or stores. */
static uint32_t row_lanes(const Chain *c, const Variant *of_first) {
    const Kernel *reader = &c->plan->kernels.data[c->next];
    uint32_t widest = ROW_LEAST_BYTES;
    for (uint32_t i = 0; i < reader->args.n; i++) {
        uint32_t own = dtype_bytes(c->plan->buffers.data[reader->args.data[i]].dtype);
        if (own > widest) widest = own;
    }
    uint32_t lanes = VECTOR_BYTES / widest;
    while (multiple_of_row(c, of_first) % lanes) lanes /= 2;
    return lanes;
}

/* A few threads for each of at most `n` elements, so that a warp has several rows at once, whose
 * steps wait for one another; but no more rows than there are. */
static uint32_t row_team(const Sched *first, uint32_t lanes, int64_t n) {
    uint32_t warp_rows = first->tile_m * WARP_THREADS / first->threads;
    if (first->engine == CONTRACT_WGMMA) warp_rows = WGMMA_DRAIN_ROWS;
    uint32_t team = warp_rows < WARP_THREADS ? WARP_THREADS / warp_rows : 1;
    if (team < ROW_LEAST_TEAM) team = ROW_LEAST_TEAM;
    while (team < WARP_THREADS && (team * ROW_ELEMS < n || team * lanes * ROW_STEPS < n)) team *= 2;
    return team;
}

/* The last variant must ask nothing of pointers. */
static Variant row_variant(const Chain *c, const Variant *of_first, bool is_last, int64_t n) {
    const Kernel *reader = &c->plan->kernels.data[c->next];
    Variant variant = *of_first;
    Sched own = reader->variants[0].sched;
    own.lanes = row_lanes(c, of_first);
    own.threads = of_first->sched.threads;
    own.team = row_team(&of_first->sched, own.lanes, n);
    own.unroll = 1;
    own.resident = 1;
    while (own.resident * own.team * own.lanes < n) own.resident *= 2;
    own.slots = own.resident;
    own.tile_m = of_first->sched.tile_m;
    own.is_wide = own.is_wide || of_first->sched.is_wide;
    variant.sched = own;
    variant.shared_bytes = 0;
    variant.n_maps = 0;
    variant.align_bytes = VECTOR_BYTES;
    variant.align_args =
        is_last ? kernel_own_args(c->plan, reader) : UINT64_MAX >> (64 - reader->args.n);
    return variant;
}

/* Whether a block of the variant has whole rows; of a cluster that shares one row's chains one
 * block has it. */
static bool leaves_rows(const Variant *variant, int64_t n) {
    return variant->sched.engine != CONTRACT_VECTOR && variant->sched.tile_n >= n;
}

/* Columns of the product that opens the launch, at most. */
static int64_t most_columns(const Chain *c) {
    const Kernel *first = &c->plan->kernels.data[c->first];
    IndexTab *tab = scalartab_indices(first->scalars);
    return dim_hi(c->dims, index_axis_extent(tab, gemm_axis_n(first)));
}

static bool continues_rows(const Chain *c) {
    const Kernel *first = &c->plan->kernels.data[c->first],
                 *reader = &c->plan->kernels.data[c->next];
    IndexTab *tab = scalartab_indices(first->scalars);
    DimId extent = index_axis_extent(tab, gemm_axis_n(first));
    return reader->form == FORM_ROW && reader->segment_axis == NO_AXIS && c->launch.n == 1 &&
           kernel_n_reduced(reader) == extent && dim_lo(c->dims, extent) > 0 &&
           dim_mul(c->dims, kernel_n_rows(reader), extent) == kernel_n_rows(first) &&
           most_columns(c) <= sched_gemm_widest_rows(c->plan, first);
}

/* Bytes of a row that pass from the launch to the reader alone. */
static uint32_t row_bytes(const Chain *c) {
    const Kernel *reader = &c->plan->kernels.data[c->next];
    int64_t bytes = 0;
    for (uint32_t i = 0; i < reader->args.n; i++) {
        uint32_t buffer = reader->args.data[i];
        if (launch_stores_to(&c->launch, buffer) && is_private(c, buffer))
            bytes += most_columns(c) * dtype_bytes(c->plan->buffers.data[buffer].dtype);
    }
    return bytes <= MAX_ROW_BYTES ? (uint32_t)bytes : 0;
}

/* Gives the product variants that have whole rows, and the reader those that go with them. */
static bool set_row_variants(Chain *c, uint32_t bytes) {
    Kernel *first = &c->plan->kernels.data[c->first], *reader = &c->plan->kernels.data[c->next];
    GemmLaunch launch = {.products = 1, .has_rows = true, .row_bytes = bytes};
    int64_t n = most_columns(c);
    sched_in_launch(c->arena, c->plan, first, launch, c->target);
    uint32_t kept = 0;
    Variant made[MAX_VARIANTS];
    bool holds = leaves_rows(&first->variants[first->n_variants - 1], n);
    for (uint32_t v = 0; holds && v < first->n_variants; v++) {
        if (!leaves_rows(&first->variants[v], n)) continue;
        first->variants[kept] = first->variants[v];
        made[kept] = row_variant(c, &first->variants[kept], v + 1 == first->n_variants, n);
        kept++;
    }
    if (!holds) return false;
    first->n_variants = reader->n_variants = kept;
    memcpy(reader->variants, made, sizeof made);
    return true;
}

/* What the launch makes and the reader takes, of which nothing else needs to know. */
static void set_on_chip(Chain *c, uint32_t buffer, bool is_on_chip) {
    if (launch_stores_to(&c->launch, buffer) && is_private(c, buffer))
        c->plan->buffers.data[buffer].is_on_chip = is_on_chip;
}

static bool computes(const Kernel *kernel, NodeId node) {
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        if (kernel->nodes.data[i] == node) return true;
    return false;
}

/* Of the edges over which the last kernel of the launch takes what those before it made. */
static void set_passed_edges(Chain *c, EdgeVerdict verdict, ReasonId reason) {
    Launch before = {.kernels = c->launch.kernels, .n = c->launch.n - 1};
    const Kernel *reader = &c->launch.kernels[before.n];
    for (uint32_t i = 0; i < reader->args.n; i++) {
        uint32_t buffer = reader->args.data[i];
        const Buffer *passed = &c->plan->buffers.data[buffer];
        if (!launch_stores_to(&before, buffer)) continue;
        for (uint32_t e = 0; e < c->plan->edges.n; e++) {
            Edge *edge = &c->plan->edges.data[e];
            if (edge->producer != passed->node || edge->verdict != EDGE_STORED ||
                edge->consumer == NODE_NONE || !computes(reader, edge->consumer))
                continue;
            edge->verdict = verdict;
            edge->reason = reason;
        }
    }
}

void chain_mark_edges(Plan *plan) {
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        Edge *edge = &plan->edges.data[i];
        bool is_stored = edge->verdict == EDGE_STORED || edge->reason == REASON_SAME_BLOCK;
        if (!is_stored || edge->consumer == NODE_NONE) continue;
        /* A user in a `fuse never` block that the value makes no difference to reads none of it. */
        if (graph_block(plan->graph, edge->consumer, BLOCK_NEVER)) continue;
        for (uint32_t b = 0; b < plan->buffers.n; b++) {
            const Buffer *buffer = &plan->buffers.data[b];
            if (!buffer->is_on_chip || buffer->node != edge->producer) continue;
            edge->verdict = EDGE_FUSED;
            edge->reason = REASON_ON_CHIP;
        }
    }
}

/* Moves the reader to the end of the launch and takes what passes on chip out of memory. */
static void link(Chain *c) {
    Kernel *kernels = c->plan->kernels.data, moved = kernels[c->next];
    uint32_t end = c->first + c->launch.n;
    moved.link = LINK_PHASE;
    for (uint32_t i = 0; i < moved.args.n && c->has_chip; i++)
        set_on_chip(c, moved.args.data[i], true);
    memmove(&kernels[end + 1], &kernels[end], (c->next - end) * sizeof *kernels);
    kernels[end] = moved;
    c->launch = plan_launch(c->plan, c->first);
}

/* Deep stages give way to what is on chip, so that a block has what every target's blocks may.
 * Where wgmma is, they have done so already. */
static void make_room(Variant *variant, uint32_t chip_bytes) {
    Sched *sched = &variant->sched;
    if (sched->engine == CONTRACT_WGMMA) return;
    while (variant->shared_bytes + chip_bytes > MAX_DYNAMIC_BYTES && sched->stages > MIN_STAGES) {
        variant->shared_bytes -= variant->shared_bytes / sched->stages;
        sched->stages--;
    }
}

static void set_chip_bytes(Chain *c) {
    Kernel *kernels = &c->plan->kernels.data[c->first];
    for (uint32_t v = 0; v < kernels->n_variants; v++) {
        Variant *variant = &kernels->variants[v];
        bool is_at_once = kernels[c->launch.n - 1].form == FORM_CONTRACT;
        if (variant->sched.engine == CONTRACT_WGMMA && is_at_once)
            continue; /* it passes in registers */
        variant->chip_bytes =
            launch_chip_place(c->plan, &c->launch, &variant->sched, UINT32_MAX, NULL);
        for (uint32_t k = 0; k < c->launch.n; k++)
            if (kernels[k].variants[v].shared_bytes)
                make_room(&kernels[k].variants[v], variant->chip_bytes);
    }
}

/* What a block of the contraction must have beside what is on chip, of its own or dynamic. */
static uint32_t least_shared(const Kernel *kernel, const Variant *variant) {
    const Sched *sched = &variant->sched;
    uint32_t stage =
        (sched->tile_m + sched->tile_n) * sched->tile_k * dtype_bytes(gemm_factor_dtype(kernel));
    uint32_t acc_bytes = dtype_bytes(kernel->reduces.data[0].acc);
    uint32_t part = sched->engine == CONTRACT_FMA ? simt_part_bytes(sched, acc_bytes) : 0;
    uint32_t own = sched->stages * stage > part ? sched->stages * stage : part;
    if (!variant->shared_bytes) return own;
    return sched->stages > MIN_STAGES ? variant->shared_bytes / sched->stages * MIN_STAGES
                                      : variant->shared_bytes;
}

/* Whether the largest tile leaves room on chip for what would pass to the reader. */
static bool fits(Chain *c) {
    const Kernel *kernels = c->plan->kernels.data, *reader = &kernels[c->next];
    Kernel both[2] = {*c->launch.kernels, *reader};
    uint32_t most = 0,
             block_bytes = c->target->max_cluster > 1 ? WGMMA_SHARED_BYTES : MAX_BLOCK_BYTES;
    bool has_room = true;
    for (uint32_t i = 0; i < reader->args.n; i++) set_on_chip(c, reader->args.data[i], true);
    for (uint32_t v = 0; v < both[0].n_variants; v++) {
        Launch pair = {.kernels = both, .n = 2};
        if (both[0].variants[v].sched.engine == CONTRACT_WGMMA) continue;
        uint32_t bytes =
            launch_chip_place(c->plan, &pair, &both[0].variants[v].sched, UINT32_MAX, NULL);
        if (bytes > most) most = bytes;
        has_room = has_room && least_shared(&both[0], &both[0].variants[v]) + bytes <= block_bytes;
    }
    for (uint32_t i = 0; i < reader->args.n; i++) set_on_chip(c, reader->args.data[i], false);
    return has_room && both[0].variants[0].chip_bytes + most <= MAX_CHIP_BYTES;
}

static bool has_room(const Chain *c) {
    uint32_t n_args = c->plan->kernels.data[c->next].args.n;
    for (uint32_t k = 0; k < c->launch.n; k++) n_args += c->launch.kernels[k].args.n;
    return n_args <= MAX_KERNEL_ARGS;
}

/* Prices. */

/* Of some kernels by themselves. */
static Prices price_of(const Chain *c, const Kernel *kernels, uint32_t n) {
    Plan alone = *c->plan;
    alone.kernels.data = arena_copy(c->scratch, kernels, n * sizeof *kernels);
    alone.kernels.n = alone.kernels.capacity = n;
    return choose_price(c->scratch, &alone, c->target, &c->points);
}

/* Of the launch and the reader as they were: kernels from `first` to `next`. */
static Prices price_apart(const Chain *c, const Kernel *saved) {
    Kernel *kernels = arena_copy(c->scratch, saved, (c->next - c->first + 1) * sizeof *saved);
    kernels[c->launch.n] = saved[c->next - c->first];
    return price_of(c, kernels, c->launch.n + 1);
}

/* Whether the kernel computes something of the value that is in the block. */
static bool has_user(const Graph *graph, const Kernel *kernel, NodeId value, uint32_t block) {
    for (uint32_t i = 0; i < kernel->nodes.n; i++) {
        NodeId id = kernel->nodes.data[i];
        const Node *node = graph_node(graph, id);
        for (uint32_t k = 0; k < node->n_args; k++)
            if (node->args[k] == value && graph_block(graph, id, BLOCK_MUST) == block) return true;
    }
    return false;
}

/* Whether a contract of the source asks for what passes to the last kernel. */
static bool is_contract(const Chain *c) {
    const Graph *graph = c->plan->graph;
    const Kernel *reader = &c->launch.kernels[c->launch.n - 1];
    for (uint32_t i = 0; i < reader->args.n; i++) {
        uint32_t buffer = reader->args.data[i];
        NodeId node = c->plan->buffers.data[buffer].node;
        uint32_t block = graph_block(graph, node, BLOCK_MUST);
        if (block && launch_stores_to(&c->launch, buffer) && has_user(graph, reader, node, block))
            return true;
    }
    return false;
}

/* What was to pass on chip to the last kernel goes through memory. */
static void leave_chip(Chain *c) {
    const Kernel *reader = &c->launch.kernels[c->launch.n - 1];
    for (uint32_t i = 0; i < reader->args.n; i++)
        c->plan->buffers.data[reader->args.data[i]].is_on_chip = false;
}

/* Puts back the kernels from `first` to `next`. */
static void put_back(Chain *c, const Kernel *saved) {
    memcpy(&c->plan->kernels.data[c->first], saved, (c->next - c->first + 1) * sizeof *saved);
    c->launch = plan_launch(c->plan, c->first);
}

static bool try_continue(Chain *c) {
    const Kernel *reader = &c->plan->kernels.data[c->next];
    if (!goes_on(c) || reader->link != LINK_NONE || plan_launch(c->plan, c->next).n > 1 ||
        reader->is_init != c->launch.kernels->is_init || !has_operands(c) || !has_room(c))
        return false;
    Kernel *saved = arena_copy(c->scratch, &c->plan->kernels.data[c->first],
                               (c->next - c->first + 1) * sizeof *saved);
    bool is_rows = continues_rows(c);
    uint32_t bytes = is_rows ? row_bytes(c) : 0;
    if (is_rows ? !set_row_variants(c, bytes) : !continues_tile(c)) {
        put_back(c, saved);
        return false;
    }
    c->has_chip = is_rows ? bytes && fits(c) : fits(c);
    Prices apart = price_apart(c, saved);
    link(c);
    set_chip_bytes(c);
    Prices together = price_of(c, c->launch.kernels, c->launch.n);
    if (!is_contract(c) && choose_is_better(&c->points, &together, &apart, &apart)) {
        set_passed_edges(c, EDGE_STORED, REASON_SLOWER);
        leave_chip(c);
        put_back(c, saved);
        return false;
    }
    set_passed_edges(c, EDGE_FUSED, REASON_SAME_BLOCK);
    chain_mark_edges(c->plan);
    return true;
}

void chain_kernels(Arena *arena, Arena *scratch, Plan *plan, const Target *target) {
    CostPoints points = cost_points(arena, plan->graph->dims, target->device);
    for (uint32_t first = 0; first < plan->kernels.n; first++) {
        if (plan_is_turn(plan, first) || plan->kernels.data[first].link != LINK_NONE ||
            !is_tiled(&plan->kernels.data[first]))
            continue;
        ArenaMark mark = arena_mark(scratch);
        Chain c = {.arena = arena,
                   .scratch = scratch,
                   .plan = plan,
                   .target = target,
                   .dims = plan->graph->dims,
                   .points = points,
                   .first = first,
                   .launch = plan_launch(plan, first)};
        for (c.next = first + c.launch.n; c.next < plan->kernels.n; c.next++)
            if (try_continue(&c)) c.next = first + c.launch.n - 1;
        arena_rewind(scratch, mark);
    }
}
