/* GPU row reductions, threads_per_row threads per row. Thread t takes `lanes` elements at t *
 * lanes, and again every n_chains elements. So its lanes are the chains t * lanes + j of
 * ReduceOrder. Joining lanes, then the threads of a warp, then warps is the tree of the order.
 *
 * A short row is resident: its few steps are unrolled and their points live through all stages, so
 * every input is read once and nothing is recomputed. For a longer row each block of a cluster has
 * one segment, also resident. The blocks exchange their results, and every block joins them in the
 * order of segments. Otherwise each stage loops over the row. */
#include "codegen/gpu/stage.h"

#include <llvm-c/Target.h>

/* Bytes that a thread loads ahead of a store: where more than two blocks share a multiprocessor's
 * registers, and elsewhere. On an H200, loading the whole row ahead spilled in layernorm of
 * [2048,16384] and [512,131072] bf16, which took 77 and 153 us; with this limit they take 39 and
 * 93. Residual and layernorm of [512,131072] f32, with two blocks, takes 226 us; with a smaller
 * limit 264. */
enum { MAX_RESIDENT = 32, MAX_SLOTS = 32, FEW_AHEAD_BYTES = 64, AHEAD_BYTES = 128 };
enum { BAND_CODES = 4 }; /* for different numbers of steps in a band */

typedef struct Row {
    Lower *lower;
    Codegen *k;
    const Kernel *kernel;
    const Sched *sched;
    ReduceOrder order;
    Val thread;   /* i32: thread index within the row's threads */
    Val lane;     /* i32: thread index within the warp */
    Val rank;     /* i32: the block's rank in its cluster, which is also its segment; NULL: no
                   * cluster */
    Val exists;   /* i1: whether the thread's row exists; NULL: it does */
    bool repeats; /* a thread without a row recomputes the last row and stores nothing */
    Val first;    /* index_type: first reduced element (of the segment) */
    Val count;    /* index_type: number of elements from `first`; 0 without a row, unless it repeats
                   * one */
    Val own;      /* index_type: thread * lanes */
    Point point;  /* position of the row */
    GpuBand band; /* of the row, if the kernel has a band */
    Point steps[MAX_RESIDENT];
    uint32_t n_steps;    /* resident steps; 0: the stages loop, or has_none */
    bool has_none;       /* the warp has nothing of the row's band */
    uint32_t sure_steps; /* the first steps, which are in the band */
    uint32_t n_slots; /* accumulators per reduction: step s of a resident row adds to accumulator s
                       * mod n_slots */
    SharedAccs *shared;   /* per slot, with one entry per warp */
    SharedAccs *partials; /* per slot, with one word per block of the cluster */
    Val *sent;            /* per reducing stage: the mbarrier of the words sent to this block */
    bool has_begun;       /* all blocks of the cluster are known to run */
} Row;

static void place_thread(Row *row) {
    Codegen *k = row->k;
    Val thread = gpu_thread(k);
    row->lane = k_andi(k, thread, WARP_THREADS - 1);
    row->thread = k_andi(k, thread, (int64_t)row->sched->row.threads_per_row - 1);
    Val own = k_muli(k, row->thread, row->sched->lanes);
    row->own = gpu_index(row->lower, own);
}

/* Begins the row where its band does, which is at a multiple of the chains. */
static void enter_band(Row *row) {
    row->band = gpu_band(&row->point);
    if (row->rank) return;
    row->first = row->band.first;
    row->count = k_sub(row->k, row->count, row->first);
}

/* Moves to row `index` of the parallel axes. `segment` NULL: the whole row. */
static void enter_row(Row *row, Val index, Val segment) {
    Lower *lower = row->lower;
    const Codegen *k = row->k;
    lower_split(lower, index, 0, row->kernel->n_parallel, &row->point);
    Val n = lower_dim(lower, kernel_n_reduced(row->kernel));
    row->first = lower_index_const(lower, 0);
    row->count = n;
    if (segment) {
        row->first = k_muli(k, segment, row->order.segment_elems);
        Val rest = k_sub(k, n, row->first);
        row->count = gpu_segment_count(lower, rest);
    }
    if (row->kernel->band.first) enter_band(row);
    if (row->exists && !row->repeats)
        row->count = k_select(k, row->exists, row->count, lower_index_const(lower, 0));
}

/* Threads without a row recompute the last row, if rows are resident, because there is no loop to
 * skip. With no elements they would compute unusual values such as a division by zero, whose slow
 * path would delay the other threads of the warp. */
static Val own_or_last(Row *row, Val index, Val n_rows) {
    const Codegen *k = row->k;
    row->exists = k_ult(k, index, n_rows);
    row->repeats = row->sched->row.resident > 0;
    if (!row->repeats) {
        row->point.active = row->exists;
        return index;
    }
    Val last = k_subi(k, n_rows, 1);
    return k_select(k, row->exists, index, last);
}

/* Finds the row (and segment) of this thread from its block and thread number. */
static void find_row(Row *row) {
    Lower *lower = row->lower;
    Codegen *k = row->k;
    uint32_t threads_per_row = row->sched->row.threads_per_row,
             rows_per_block = row->sched->threads / threads_per_row;
    Val thread = gpu_thread(k);
    Val index = gpu_block(lower);
    Val n_rows = lower_dim(lower, kernel_n_rows(row->kernel));
    if (rows_per_block > 1) {
        Val in_block = k_udivi(k, thread, threads_per_row);
        index = k_muli(k, index, rows_per_block);
        index = k_add(k, index, gpu_index(row->lower, in_block));
    }
    uint32_t segment_axis = row->kernel->segment_axis;
    Val segment = NULL;
    if (segment_axis != NO_AXIS) {
        Val n_segments = lower_extent(lower, segment_axis);
        segment = k_urem(k, index, n_segments);
        index = k_udiv(k, index, n_segments);
        row->point.axis[segment_axis] = segment;
    }
    if (row->rank) {
        segment = k_uremi(k, index, row->sched->cluster);
        index = k_udivi(k, index, row->sched->cluster);
        row->rank = k_trunc(k, segment, k->i32);
    }
    if (rows_per_block > 1) index = own_or_last(row, index, n_rows);
    enter_row(row, index, segment);
}

/* The point at element `at + ahead` of the row, counted from row->first. */
static Point point_at(const void *user, Val at, int64_t ahead) {
    const Row *row = user;
    const Codegen *k = row->k;
    Point point = point_inside(&row->point);
    Val element = k_addi(k, k_add(k, row->first, at), ahead);
    lower_split(row->lower, element, row->kernel->first_reduced, row->kernel->n_reduced, &point);
    return point;
}

/* Joining the accumulators of the row's threads: every thread gets the result. */

static Acc shuffle(const Row *row, Acc acc, uint32_t offset) {
    Acc other = {gpu_shuffle_xor(row->k, acc.value, offset), NULL};
    if (acc.index) other.index = gpu_shuffle_xor(row->k, acc.index, offset);
    return other;
}

/* Exchange between the blocks of a cluster. Each block has one word, the unit that st.async sends,
 * for the result of every other block. */

/* The integer type with as many bits as `type`. */
static LLVMTypeRef bits_type(const Codegen *k, LLVMTypeRef type) {
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(k->module);
    return LLVMIntTypeInContext(k->context, (unsigned)LLVMSizeOfTypeInBits(layout, type));
}

static LLVMTypeRef word_type(const Codegen *k, LLVMTypeRef type) {
    return bits_type(k, type) == k->i64 ? k->i64 : k->i32;
}

static void send_partial(const Row *row, Val array, Val value, Val barrier) {
    Codegen *k = row->k;
    LLVMTypeRef word = word_type(k, LLVMTypeOf(value));
    value = k_zext_or_bitcast(k, k_bitcast(k, value, bits_type(k, LLVMTypeOf(value))), word);
    Val pointer = k_gep(k, word, array, row->rank);
    gpu_cluster_send(k, value, pointer, barrier, row->thread);
}

static Val partial_of(const Row *row, Val array, Val like, uint32_t rank) {
    Codegen *k = row->k;
    LLVMTypeRef type = LLVMTypeOf(like), word = word_type(k, type);
    Val pointer = k_gep(k, word, array, k_i32(k, rank));
    Val partial = k_load(k, word, pointer);
    partial = k_trunc_or_bitcast(k, partial, bits_type(k, type));
    return k_bitcast(k, partial, type);
}

static Acc join_partials(const Row *row, const Reduce *reduce, uint32_t slot, Acc own) {
    Acc partials[MAX_CLUSTER];
    uint32_t n = row->sched->cluster;
    for (uint32_t i = 0; i < n; i++) {
        partials[i] = (Acc){.value = partial_of(row, row->partials[slot].values, own.value, i)};
        if (own.index)
            partials[i].index = partial_of(row, row->partials[slot].indices, own.index, i);
    }
    for (; n > 1; n = (n + 1) / 2)
        for (uint32_t i = 0; i < n; i += 2)
            partials[i / 2] = i + 1 < n
                                  ? acc_combine(row->lower, reduce, partials[i], partials[i + 1])
                                  : partials[i];
    return partials[0];
}

/* A block writes to the memory of another only after all blocks run. Each word is written once, so
 * no one waits for readers. A block ends only after it has received all its words. */
static void join_cluster(Row *row, const Stage *stage, Acc *accs) {
    Codegen *k = row->k;
    const uint32_t *slots = stage->reduces.data, n = stage->reduces.n;
    Val barrier = row->sent[stage - row->kernel->stages.data];
    if (!row->has_begun) gpu_cluster_wait(k);
    row->has_begun = true;
    If one = if_begin(k, k_ulti(k, row->thread, row->sched->cluster));
    for (uint32_t i = 0; i < n; i++) {
        const SharedAccs *partials = &row->partials[slots[i]];
        send_partial(row, partials->values, accs[i].value, barrier);
        if (accs[i].index) send_partial(row, partials->indices, accs[i].index, barrier);
    }
    if_end(k, &one);
    gpu_mbarrier_wait(row->lower, barrier, k_i32(k, 0), true);
    for (uint32_t i = 0; i < n; i++)
        accs[i] = join_partials(row, &row->kernel->reduces.data[slots[i]], slots[i], accs[i]);
}

/* The accumulator (slot) that a lane ends with after share_slots. */
static Val own_slot(const Row *row) {
    const Codegen *k = row->k;
    Val slot = k_i32(k, 0), one = k_i32(k, 1);
    for (uint32_t bit = 0; 1u << bit < row->n_slots; bit++) {
        Val own = k_lshri(k, row->lane, bit);
        slot = k_shl(k, slot, one);
        slot = k_or(k, slot, k_and(k, own, one));
    }
    return slot;
}

/* Joins the warps' results for all threads through one array. The low bits of the position are the
 * warp's, the next bits the slot's. */
static void join_warps(const Row *row, const uint32_t *slots, Acc *accs, uint32_t n) {
    Codegen *k = row->k;
    uint32_t n_warps = row->sched->row.threads_per_row / WARP_THREADS,
             n_partials = n_warps * row->n_slots;
    Val writes = k_ulti(k, row->lane, row->n_slots);
    Val to = k_lshri(k, row->thread, 5);
    if (row->n_slots > 1) {
        Val slot = k_muli(k, own_slot(row), n_warps);
        to = k_add(k, to, slot);
    }
    Val from = k_andi(k, row->lane, n_partials - 1);
    If leads = if_begin(k, writes);
    for (uint32_t i = 0; i < n; i++) gpu_shared_accs_put(k, &row->shared[slots[i]], to, accs[i]);
    if_end(k, &leads);
    gpu_barrier(k);
    for (uint32_t i = 0; i < n; i++) {
        const Reduce *reduce = &row->kernel->reduces.data[slots[i]];
        accs[i] = gpu_shared_accs_get(k, &row->shared[slots[i]], from, accs[i]);
        for (uint32_t offset = 1; offset < n_partials; offset *= 2)
            accs[i] = acc_combine(row->lower, reduce, accs[i], shuffle(row, accs[i], offset));
    }
}

/* One step of a butterfly reduction: of two lanes, each keeps half of the `n` slots and gives the
 * other half away. */
static void share_slots(const Row *row, const Reduce *reduce, Acc *partials, uint32_t n,
                        uint32_t offset) {
    const Codegen *k = row->k;
    Val bit = k_andi(k, row->lane, offset);
    Val is_upper = k_nei(k, bit, 0);
    for (uint32_t s = 0; s < n / 2; s++) {
        Acc low = partials[s], high = partials[s + n / 2];
        Acc given = acc_select(row->lower, is_upper, low, high);
        Acc kept = acc_select(row->lower, is_upper, high, low);
        partials[s] = acc_combine(row->lower, reduce, kept, shuffle(row, given, offset));
    }
}

/* Accumulators of a reduction in one thread. An unordered reduction needs one, because its bits do
 * not depend on the order. */
static uint32_t slots_of(const Row *row, const Reduce *reduce) {
    return acc_is_ordered(row->lower, reduce) ? row->n_slots : 1;
}

/* Joins the slots' accumulators over the threads of a warp, or of a row with fewer threads. Then it
 * joins the slots, unless the row has several warps, whose lanes keep a slot each. */
static Acc join_threads(const Row *row, const Reduce *reduce, Acc *partials) {
    uint32_t n = slots_of(row, reduce), offset = 1, shared = 1;
    for (uint32_t s = 0; s < n; s++)
        partials[s] = acc_join_lanes(row->lower, reduce, partials[s], row->sched->lanes);
    for (; offset < row->sched->row.threads_per_row && offset < WARP_THREADS; offset *= 2) {
        if (n == 1) {
            partials[0] =
                acc_combine(row->lower, reduce, partials[0], shuffle(row, partials[0], offset));
            continue;
        }
        share_slots(row, reduce, partials, n, offset);
        shared *= 2;
        n /= 2;
    }
    acc_join_pairs(row->lower, reduce, partials, n);
    for (offset = shared / 2; offset > 0 && row->sched->row.threads_per_row <= WARP_THREADS;
         offset /= 2)
        partials[0] =
            acc_combine(row->lower, reduce, partials[0], shuffle(row, partials[0], offset));
    return partials[0];
}

static Acc join_one(const void *row, const Reduce *reduce, Acc acc) {
    return join_threads(row, reduce, &acc);
}

/* Joins the accumulators of the row's threads. `accs` is [n_slots,MAX_STAGE_VALUES]; the result is
 * in its first row. */
static void join_row_threads(const Row *row, const uint32_t *slots, Acc *accs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const Reduce *reduce = &row->kernel->reduces.data[slots[i]];
        Acc partials[MAX_SLOTS];
        for (uint32_t s = 0; s < row->n_slots; s++) partials[s] = accs[s * MAX_STAGE_VALUES + i];
        accs[i] = reduce->is_arg ? acc_join_arg(row->lower, reduce, partials[0], join_one, row)
                                 : join_threads(row, reduce, partials);
    }
    if (row->sched->row.threads_per_row > WARP_THREADS) join_warps(row, slots, accs, n);
}

/* Passes over elements. */

static void loop_elements(Row *row, const Stage *stage, Acc *accs) {
    GpuElements elements = {.lower = row->lower,
                            .own = row->own,
                            .count = row->count,
                            .stride = (int64_t)row->sched->row.threads_per_row * row->sched->lanes,
                            .unroll = row->sched->unroll,
                            .at = point_at,
                            .user = row};
    gpu_each_element(&elements, stage, accs);
}

/* Whether a resident step stores: i1, or NULL: always. */
static Val store_condition(const Row *row, const Point *point) {
    if (!row->repeats) return point->active;
    if (!point->active) return row->exists;
    return k_and(row->k, point->active, row->exists);
}

/* Lists values that the stage stores without a guard. Values under a guard are computed inside
 * it. */
static uint32_t list_stored(const Stage *stage, ScalarId *roots) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < stage->stores.n; i++)
        if (!stage->stores.data[i].guard) roots[n++] = stage->stores.data[i].value;
    return n;
}

/* Loads the steps from `first` on ahead of the store of step `first`, because no load moves past a
 * store. The first stage loads the whole row, later loads as many steps as registers allow. Returns
 * the first step that is not loaded. */
static uint32_t load_resident(Row *row, const Stage *stage, uint32_t first) {
    ScalarId roots[MAX_STAGE_VALUES], loads[MAX_STAGE_VALUES];
    uint32_t n_roots = list_stored(stage, roots), bytes = 0, s = first;
    uint32_t most = row->sched->min_blocks > 2 ? FEW_AHEAD_BYTES : AHEAD_BYTES;
    bool is_first = stage == &row->kernel->stages.data[0];
    for (; s < row->n_steps && (is_first || bytes < most); s++) {
        uint32_t n = point_list_loads(&row->steps[s], roots, n_roots, loads, MAX_STAGE_VALUES);
        for (uint32_t i = 0; i < n; i++) {
            point_value(&row->steps[s], loads[i]);
            Dtype dtype = scalar_get(row->kernel->scalars, loads[i])->dtype;
            bytes += row->sched->lanes * dtype_bytes(dtype);
        }
    }
    return s;
}

static void divide_resident(Row *row, const Stage *stage) {
    ScalarId roots[MAX_STAGE_VALUES];
    uint32_t n_roots = list_stored(stage, roots);
    for (uint32_t i = 0; i < stage->reduces.n; i++)
        roots[n_roots++] = stage_reduce(row->kernel, stage, i)->value;
    point_divide_together(row->steps, row->n_steps, roots, n_roots);
}

/* Stores a step inside a branch on a copy of the point, because later stages must not use values
 * computed inside the branch. */
static void store_resident(const Row *row, const Stage *stage, Point *point) {
    Val stores = stage->stores.n ? store_condition(row, point) : NULL;
    if (!stores) {
        gpu_stage_store(point, stage);
        return;
    }
    If exists = if_begin(row->k, stores);
    Point inside = point_inside(point);
    gpu_stage_store(&inside, stage);
    if_end(row->k, &exists);
}

static void visit_resident(Row *row, const Stage *stage, Acc *all_accs) {
    divide_resident(row, stage);
    uint32_t n_loaded = 0;
    for (uint32_t s = 0; s < row->n_steps; s++) {
        Point *point = &row->steps[s];
        if (stage->stores.n && s == n_loaded) n_loaded = load_resident(row, stage, s);
        for (uint32_t i = 0; i < stage->reduces.n; i++) {
            const Reduce *reduce = stage_reduce(row->kernel, stage, i);
            Acc *acc = all_accs + s % slots_of(row, reduce) * MAX_STAGE_VALUES + i;
            Acc joined = acc_take(row->lower, reduce, *acc, acc_element(point, reduce));
            *acc = point->active ? acc_select(row->lower, point->active, joined, *acc) : joined;
        }
        point_prepare_stores(point, stage->stores.data, stage->stores.n);
        store_resident(row, stage, point);
    }
}

static void pass_elements(Row *row, const Stage *stage, Acc *accs) {
    for (uint32_t s = 0; s < row->n_slots; s++)
        gpu_stage_begin(row->lower, stage, accs + s * MAX_STAGE_VALUES);
    if (row->n_steps || row->has_none)
        visit_resident(row, stage, accs);
    else
        loop_elements(row, stage, accs);
}

/* Adds a segment's result to lane `chain` (index_type), if the chain belongs to this thread. */
static Acc take_segment(const Row *row, const Reduce *reduce, Acc outer, Val chain, Acc partial) {
    const Codegen *k = row->k;
    uint32_t n_lanes = row->sched->lanes;
    Acc splat = {k_splat(k, partial.value, n_lanes), NULL};
    if (partial.index) splat.index = k_splat(k, partial.index, n_lanes);
    Val lane_chain = k_sub(k, chain, row->own);
    Val lanes[64];
    for (uint32_t j = 0; j < n_lanes; j++) lanes[j] = lower_index_const(row->lower, j);
    Val numbers = n_lanes > 1 ? LLVMConstVector(lanes, n_lanes) : lanes[0];
    lane_chain = k_splat(k, lane_chain, n_lanes);
    Val is_own = k_eq(k, lane_chain, numbers);
    return acc_select(row->lower, is_own, acc_combine(row->lower, reduce, outer, splat), outer);
}

/* One pass per segment. Partial result p goes to chain p mod n_chains of a second set of
 * accumulators. */
static void pass_segments(Row *row, const Stage *stage, Acc *accs) {
    Lower *lower = row->lower;
    Codegen *k = row->k;
    Val n = row->count;
    Acc outer[MAX_STAGE_VALUES];
    gpu_stage_begin(lower, stage, outer);
    /* All threads of a row walk the same segments, even without a row, because the loop has
     * barriers. */
    Loop loop = loop_over(k, n, row->order.segment_elems);
    acc_loop_carry(k, &loop, outer, stage->reduces.n);
    Val rest = k_sub(k, n, loop.index);
    row->first = loop.index;
    row->count = gpu_segment_count(lower, rest);
    pass_elements(row, stage, accs);
    join_row_threads(row, stage->reduces.data, accs, stage->reduces.n);
    Val segment = k_udiv(k, loop.index, loop.step);
    Val chain = k_andi(k, segment, row->order.n_chains - 1);
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        const Reduce *reduce = stage_reduce(row->kernel, stage, i);
        outer[i] = take_segment(row, reduce, outer[i], chain, accs[i]);
    }
    if (row->sched->row.threads_per_row > WARP_THREADS) gpu_barrier(k);
    loop_end(k, &loop);
    row->first = lower_index_const(lower, 0);
    row->count = n;
    for (uint32_t i = 0; i < stage->reduces.n; i++) accs[i] = outer[i];
}

static void prepare_stage(Row *row, const Stage *stage) {
    gpu_stage_prepare(&row->point, stage);
    for (uint32_t s = 0; s < row->n_steps; s++)
        for (ScalarId id = 1; id <= scalar_count(row->kernel->scalars); id++)
            if (!row->steps[s].values[id]) row->steps[s].values[id] = row->point.values[id];
}

static void run_stage(Row *row, const Stage *stage) {
    Acc accs[MAX_SLOTS * MAX_STAGE_VALUES];
    prepare_stage(row, stage);
    if (!row->n_steps && !row->has_none && gpu_stage_has_segments(row->lower, stage))
        pass_segments(row, stage, accs);
    else
        pass_elements(row, stage, accs);
    if (!stage->reduces.n) return;
    join_row_threads(row, stage->reduces.data, accs, stage->reduces.n);
    if (row->rank) join_cluster(row, stage, accs);
    for (uint32_t i = 0; i < stage->reduces.n; i++)
        acc_finish(&row->point, stage->reduces.data[i], accs[i]);
}

static void store_row(Row *row) {
    Codegen *k = row->k;
    const Kernel *kernel = row->kernel;
    if (!kernel->row_stores.n) return;
    Point point = point_inside(&row->point);
    point.lanes = 1;
    point_prepare_stores(&point, kernel->row_stores.data, kernel->row_stores.n);
    Val zero = k_i32(k, 0);
    Val writes = k_eq(k, row->thread, zero);
    if (row->rank) {
        Val leads = k_eq(k, row->rank, zero);
        writes = k_and(k, writes, leads);
    }
    if (row->exists) writes = k_and(k, writes, row->exists);
    If leads = if_begin(k, writes);
    point_store_all(&point, kernel->row_stores.data, kernel->row_stores.n);
    if_end(k, &leads);
}

/* Per slot an array of `n_entries` accumulators, or of words of their size. */
static SharedAccs *shared_accs(const Row *row, uint32_t n_entries, bool are_words,
                               const char *name) {
    uint32_t n = row->kernel->reduces.n;
    SharedAccs *arrays = arena_array(row->k->arena, SharedAccs, n);
    for (uint32_t i = 0; i < n; i++) {
        const Reduce *reduce = &row->kernel->reduces.data[i];
        LLVMTypeRef type = k_value_type(row->k, reduce->acc, 1);
        if (are_words) type = word_type(row->k, type);
        arrays[i] = gpu_shared_accs(row->k, type, reduce->is_arg, n_entries, name);
    }
    return arrays;
}

/* Bytes that a block receives in a stage. */
static uint32_t sent_bytes(const Row *row, const Stage *stage) {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        const Reduce *reduce = stage_reduce(row->kernel, stage, i);
        bytes += dtype_bytes(reduce->acc) > 4 ? 8 : 4;
        if (reduce->is_arg) bytes += 4;
    }
    return bytes * row->sched->cluster;
}

/* The first thread initializes the barriers before the block reports that it runs. */
static void make_barriers(Row *row) {
    Codegen *k = row->k;
    const Kernel *kernel = row->kernel;
    row->sent = arena_array(k->arena, Val, kernel->stages.n);
    If first = if_begin(k, k_eqi(k, row->thread, 0));
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const Stage *stage = &kernel->stages.data[i];
        if (!stage->reduces.n) continue;
        row->sent[i] = gpu_shared(k, k->i64, 1, "sent");
        gpu_mbarrier_init(k, row->sent[i], 1);
        gpu_mbarrier_expect(k, row->sent[i], sent_bytes(row, stage));
    }
    gpu_mbarrier_publish(k);
    if_end(k, &first);
    gpu_cluster_begin(k);
}

static void make_shared(Row *row) {
    if (row->sched->row.threads_per_row > WARP_THREADS)
        row->shared = shared_accs(row, WARP_THREADS, false, "partials");
    if (!row->rank) return;
    row->partials = shared_accs(row, row->sched->cluster, true, "parts");
    make_barriers(row);
}

static int64_t step_elems(const Row *row) {
    return (int64_t)row->sched->row.threads_per_row * row->sched->lanes;
}

/* Whether the thread's element of resident step `s` exists and is in the row's band: i1, or NULL:
 * always. `n`: elements that a row has at least. */
static Val is_taken(const Row *row, uint32_t s, int64_t n) {
    const Codegen *k = row->k;
    const Kernel *kernel = row->kernel;
    bool exists = step_elems(row) * (s + 1) <= n && (!row->exists || row->repeats);
    if (row->band.first)
        exists = dim_multiple(lower_dims(row->lower), kernel_n_reduced(kernel)) % BAND_STEP == 0;
    if (exists && (!row->band.first || s < row->sure_steps)) return NULL;
    Val at = k_addi(k, row->own, step_elems(row) * s);
    Val is_inside = k_slt(k, at, row->count);
    if (!row->band.first) return is_inside;
    at = k_add(k, row->first, at);
    if (row->rank) is_inside = k_and(k, is_inside, k_sge(k, at, row->band.first));
    return k_and(k, is_inside, k_slt(k, at, row->band.end));
}

static void make_resident(Row *row, uint32_t n_steps) {
    int64_t n = dim_lo(lower_dims(row->lower), kernel_n_reduced(row->kernel));
    row->n_steps = n_steps;
    if (row->rank) n -= (int64_t)(row->sched->cluster - 1) * row->order.segment_elems;
    for (uint32_t s = 0; s < row->n_steps; s++) {
        row->steps[s] = point_at(row, row->own, step_elems(row) * s);
        Val taken = is_taken(row, s, n);
        if (taken) row->steps[s].active = taken;
    }
}

static void run_steps(Row *row, uint32_t n_steps) {
    if (n_steps) make_resident(row, n_steps);
    for (uint32_t i = 0; i < row->kernel->stages.n; i++)
        run_stage(row, &row->kernel->stages.data[i]);
    store_row(row);
    if (row->rank && !row->has_begun) gpu_cluster_wait(row->k);
}

/* Rows with a band. */

/* Whether each warp has one row, of which a step is as long as the steps of a band, or shorter. */
static bool has_steps_of_warps(const Row *row) {
    uint32_t threads = row->sched->row.threads_per_row;
    return (threads == WARP_THREADS || threads == row->sched->threads) &&
           BAND_STEP % (WARP_THREADS * row->sched->lanes) == 0;
}

/* Runs `n_steps` steps of the row, the first `n_sure` of which are in the band. */
static void run_some_steps(const Row *row, uint32_t n_steps, uint32_t n_sure) {
    Row own = *row;
    own.point = point_inside(&row->point);
    own.has_none = n_steps == 0;
    own.sure_steps = n_sure;
    run_steps(&own, n_steps);
}

/* A warp takes the steps that it has in the band: there is code for several numbers of them. Warps
 * of a row meet at the same barriers of different code. */
static void run_band(const Row *row) {
    const Codegen *k = row->k;
    uint32_t all = row->sched->row.resident, n_codes = all < BAND_CODES ? all : BAND_CODES;
    if (!has_steps_of_warps(row)) {
        run_some_steps(row, all, 0);
        return;
    }
    LLVMBasicBlockRef done = k_block(k, "ran");
    Val in_warp = gpu_index(row->lower, k_muli(k, row->lane, row->sched->lanes));
    Val of_warp = k_add(k, row->first, k_sub(k, row->own, in_warp));
    Val rest = k_sub(k, row->band.end, of_warp);
    uint32_t n_sure = 0;
    for (uint32_t c = 0; c < n_codes; c++) {
        LLVMBasicBlockRef fewer = k_block(k, "fewer"), more = k_block(k, "more");
        uint32_t n_steps = all * c / n_codes;
        Val most = lower_index_const(row->lower, step_elems(row) * n_steps);
        k_cond_br(k, k_sle(k, rest, most), fewer, more);
        k_goto(k, fewer);
        run_some_steps(row, n_steps, n_sure);
        k_br(k, done);
        k_goto(k, more);
        n_sure = n_steps + 1;
    }
    run_some_steps(row, all, n_sure);
    k_branch(k, done);
}

static void run_row(Row *row) {
    if (row->band.first && !row->rank)
        run_band(row);
    else
        run_steps(row, row->sched->row.resident);
}

static Row row_new(Lower *lower) {
    Row row = {.lower = lower,
               .k = lower->k,
               .kernel = lower->kernel,
               .sched = &lower->variant->sched,
               .order = reduce_order(lower->kernel->form, lower->k->target->device)};
    row.point = point_new(lower, row.sched->lanes);
    row.n_slots = row.sched->row.slots;
    if (row.sched->cluster > 1) row.rank = k_i32(row.k, 0); /* find_row sets the rank */
    place_thread(&row);
    make_shared(&row);
    return row;
}

/* Moves to row `in_tile` (index_type) of the tile. A row beyond the matrix repeats the last one. */
static void enter_tile_row(Row *row, Val in_tile) {
    Lower *lower = row->lower;
    const Codegen *k = row->k;
    Val m0 = k_index_cast(k, lower->tile->m0, lower->index_type);
    Val m = k_index_cast(k, lower->tile->m, lower->index_type);
    Val first = k_index_cast(k, lower->tile->first_row, lower->index_type);
    Val index = own_or_last(row, in_tile, k_sub(k, m, m0));
    enter_row(row, k_add(k, first, index), NULL);
}

/* Runs the row kernel of a sequence on the tile that the kernel before has computed: on all rows of
 * the block, or on those of the warp. */
static void run_tile(Lower *lower) {
    Codegen *k = lower->k;
    const Sched *sched = &lower->variant->sched;
    const BlockTile *tile = lower->tile;
    uint32_t threads = tile->is_warps ? WARP_THREADS : sched->threads;
    Val thread = gpu_thread(k);
    if (tile->is_warps) thread = k_andi(k, thread, WARP_THREADS - 1);
    Val threads_per_row = k_udivi(k, thread, sched->row.threads_per_row);
    Loop loop =
        loop_begin(k, k_index_cast(k, threads_per_row, lower->index_type),
                   lower_index_const(lower, tile->n_rows), threads / sched->row.threads_per_row);
    Row row = row_new(lower);
    enter_tile_row(&row, loop.index);
    run_row(&row);
    loop_end(k, &loop);
}

void emit_gpu_row(Lower *lower) {
    if (lower->tile) {
        run_tile(lower);
        return;
    }
    gpu_stream(lower);
    Row row = row_new(lower);
    find_row(&row);
    run_row(&row);
}
