/* GEMV: a GEMM with one row or one column, bound by memory bandwidth.
 *
 * The chains (accumulators) of GEMM_GEMV are distributed over threads; each thread has some of the
 * chains of some outputs. If the matrix is contiguous along k, a thread's lanes are neighbouring
 * chains of one output, threads_along_k threads have all chains of an output, and a block has
 * several outputs. If the matrix is contiguous along the outputs, lanes are neighbouring outputs. A
 * thread has a few neighbouring chains of each, and other threads, passes and blocks of the cluster
 * have the rest. Within a thread, the chains are `slots` accumulators.
 *
 * Chains are numbered so that joining lanes, slots (or slots last), threads, warps, passes and
 * blocks, in this order, is the tree of the order of sums. The last joins read shared memory, in
 * the thread that continues with the output. Otherwise whole sums are in shared memory for
 * gpu_gemm_epilogue. */
#include "codegen/gpu_gemm/gemm.h"

#include <string.h>

enum { MAX_SLOTS = 8, MAX_OUTPUTS = 4, MAX_UNROLL = 8, MAX_PARTIALS = 64 };

typedef struct Gemv {
    Lower *lower;
    Codegen *k;
    const Sched *sched;
    GemmBlock block;
    Dtype acc;
    ScalarId matrix, vector;
    uint32_t axis;           /* axis of the outputs: m or n */
    uint32_t n_chains;       /* per output */
    uint32_t n_outputs;      /* per block */
    uint32_t thread_outputs; /* outputs per row of threads; 1 if lanes lie along the outputs */
    uint32_t across;         /* rows of threads, or vectors of outputs, in a block */
    GemvPasses passes;
    Val along, which; /* i32: thread along k, and number of its row of threads or vector of
                       * outputs */
    Val rank;         /* i32: rank of the block in the cluster */
    Val own_k;        /* index_type: the thread's first chain (of this pass) */
    Point outputs[MAX_OUTPUTS];
    Val sums[MAX_OUTPUTS][MAX_SLOTS];
    /* Shared memory arrays with rows of n_outputs: `parts` has n_partials rows per pass whose sums
     * are kept, `groups` has n_groups rows, if n_groups > 1. */
    Val partials, groups;
    GemmOne *ones; /* the thread's own outputs, if threads join the sums of an output; NULL: not
                    * begun */
} Gemv;

static Val add(const Gemv *v, Val a, Val b) {
    return math_prim(v->k, PRIM_ADD, v->acc, a, b, NULL);
}

/* Joins `n` values (a power of two) by the tree, in place. */
static Val join(const Gemv *v, Val *values, uint32_t n) {
    for (; n > 1; n /= 2)
        for (uint32_t i = 0; i < n / 2; i++) values[i] = add(v, values[2 * i], values[2 * i + 1]);
    return values[0];
}

/* Outputs. */

static GemmSubtile partial_of(const Gemv *v) {
    const Sched *sched = v->sched;
    return (GemmSubtile){.shared = v->partials,
                         .pitch = sched->gemv.tile_n,
                         .n_rows = sched->gemv.tile_m,
                         .n_columns = sched->gemv.tile_n,
                         .run = sched->gemv.tile_m,
                         .run_stride = sched->gemv.tile_m};
}

/* Whether an output has several sums in shared memory. Then one thread joins them and continues
 * with the output. */
static bool has_several_sums(const Gemv *v) {
    return v->passes.n_groups > 1 || v->passes.n_partials > 1;
}

/* The i32 number of the thread's element of `total`, after `done` of them. *exists: whether there
 * is one. */
static Val own_of(const Gemv *v, uint32_t total, uint32_t done, Val *exists) {
    const Codegen *k = v->k;
    Val own = k_addi(k, v->block.thread, done);
    *exists = k_ulti(k, own, total);
    return own;
}

/* Starts the loads of the thread's outputs, once, so that they arrive before the sums. A thread
 * without an output loads those of the first output. */
static void begin_outputs(Gemv *v) {
    Codegen *k = v->k;
    GemmSubtile partial = partial_of(v);
    uint32_t threads = v->sched->threads;
    if (v->ones || !has_several_sums(v)) return;
    v->ones = arena_array(k->arena, GemmOne, (v->n_outputs + threads - 1) / threads);
    for (uint32_t done = 0; done < v->n_outputs; done += threads) {
        Val exists, output = own_of(v, v->n_outputs, done, &exists);
        output = k_select(k, exists, output, k_i32(k, 0));
        v->ones[done / threads] = gpu_gemm_begin_one(&v->block, &partial, output);
    }
}

/* Walking k. */

/* The operands of one slot in a round: the vector's elements, and the matrix's per output. */
typedef struct Step {
    Val active; /* i1: inside k; NULL: always */
    Val vector; /* a scalar or lanes, in the operand's dtype */
    Val matrix[MAX_OUTPUTS];
} Step;

static Val k_of_slot(const Gemv *v, Val from, uint32_t slot) {
    uint32_t stride =
        v->sched->gemv.lanes_along_k ? v->sched->gemv.threads_along_k * v->sched->lanes : 1;
    return k_addi(v->k, from, (int64_t)slot * stride);
}

/* If lanes lie along the outputs, a thread's elements of the vector are contiguous. */
static void load_vector_run(const Gemv *v, Val from, Step *steps) {
    Point point = point_inside(&v->block.point);
    point.lanes = v->sched->gemv.slots;
    point.lane_axis = gemm_axis_k(v->lower->kernel);
    point.axis[point.lane_axis] = from;
    Val run = point_lanes(&point, v->vector);
    for (uint32_t s = 0; s < v->sched->gemv.slots; s++)
        steps[s].vector = v->sched->gemv.slots == 1 ? run : k_extract(v->k, run, s);
}

/* Starts the loads of one round of chains; the thread's first element is `from`. */
static void load_round(const Gemv *v, Val from, bool is_whole, Step *steps) {
    const Sched *sched = v->sched;
    uint32_t axis_k = gemm_axis_k(v->lower->kernel);
    bool has_run = is_whole && !sched->gemv.lanes_along_k;
    if (has_run) load_vector_run(v, from, steps);
    for (uint32_t s = 0; s < sched->gemv.slots; s++) {
        Val at = k_of_slot(v, from, s);
        steps[s].active = is_whole ? NULL : k_slt(v->k, at, v->block.k);
        for (uint32_t r = 0; r < v->thread_outputs; r++) {
            Point point = point_inside(&v->outputs[r]);
            point.axis[axis_k] = at;
            point.active = steps[s].active;
            steps[s].matrix[r] = point_lanes(&point, v->matrix);
        }
        if (has_run) continue;
        Point point = point_inside(&v->block.point);
        point.lanes = sched->gemv.lanes_along_k ? sched->lanes : 1;
        point.lane_axis = axis_k;
        point.axis[axis_k] = at;
        point.active = steps[s].active;
        steps[s].vector = point_lanes(&point, v->vector);
    }
}

static void add_round(Gemv *v, const Step *steps) {
    for (uint32_t s = 0; s < v->sched->gemv.slots; s++) {
        Val x = gpu_gemm_to_acc(v->lower, v->vector, steps[s].vector);
        x = k_splat(v->k, x, v->sched->lanes);
        for (uint32_t r = 0; r < v->thread_outputs; r++) {
            Val before = v->sums[r][s];
            Val a = gpu_gemm_to_acc(v->lower, v->matrix, steps[s].matrix[r]);
            Val sum = math_multiply_add(v->k, v->acc, a, x, before);
            if (steps[s].active) sum = k_select(v->k, steps[s].active, sum, before);
            v->sums[r][s] = sum;
        }
    }
}

/* Loops over rounds from `from` on, `width` rounds per iteration, while they are inside k. width 0:
 * the last, incomplete round. Returns the end. */
static Val loop_rounds(Gemv *v, Val from, uint32_t width) {
    const Codegen *k = v->k;
    uint32_t n_rounds = width ? width : 1;
    int64_t stride = (int64_t)n_rounds * v->n_chains;
    Val to = v->block.k;
    if (width) to = k_subi(k, to, stride - 1);
    Val enters = k_slt(k, from, to);
    if (LLVMIsConstant(enters) && LLVMIsNull(enters)) return from;
    Loop loop = loop_begin(k, from, to, stride);
    for (uint32_t r = 0; r < v->thread_outputs; r++)
        loop_carry(k, &loop, v->sums[r], v->sched->gemv.slots);
    Step steps[MAX_UNROLL][MAX_SLOTS];
    Val own = k_add(k, loop.index, v->own_k);
    for (uint32_t u = 0; u < n_rounds; u++) {
        load_round(v, k_addi(k, own, (int64_t)u * v->n_chains), width > 0, steps[u]);
    }
    for (uint32_t u = 0; u < n_rounds; u++) add_round(v, steps[u]);
    loop_end(k, &loop);
    return k_muli(k, k_udivi(k, v->block.k, stride), stride);
}

static void clear_sums(Gemv *v) {
    Val zero = k_splat(v->k, k_number(v->k, v->acc, 0), v->sched->lanes);
    for (uint32_t r = 0; r < v->thread_outputs; r++)
        for (uint32_t s = 0; s < v->sched->gemv.slots; s++) v->sums[r][s] = zero;
}

static void sum_over_k(Gemv *v) {
    clear_sums(v);
    Val at = lower_index_const(v->lower, 0);
    if (v->sched->unroll > 1) at = loop_rounds(v, at, v->sched->unroll);
    at = loop_rounds(v, at, 1);
    loop_rounds(v, at, 0);
}

/* Joining chains. */

static Val shared_at(const Gemv *v, Val array, Val row, Val column) {
    const Codegen *k = v->k;
    Val at = k_madi(k, row, v->n_outputs, column);
    return k_gep(k, k_value_type(k, v->acc, 1), array, at);
}

static Val element(const Gemv *v, Val value, uint32_t lane) {
    if (!k_is_vector(value)) return value;
    return k_extract(v->k, value, lane);
}

/* Lanes are outputs: joins slots, then the threads of the warp with the same outputs. The sums of
 * warp w become row w of those of pass `kept`. */
static void leave_outputs(const Gemv *v, uint32_t kept) {
    Codegen *k = v->k;
    uint32_t lanes = v->sched->lanes;
    Val slots[MAX_SLOTS], values[16];
    for (uint32_t s = 0; s < v->sched->gemv.slots; s++) slots[s] = v->sums[0][s];
    Val sum = join(v, slots, v->sched->gemv.slots);
    for (uint32_t j = 0; j < lanes; j++) {
        values[j] = element(v, sum, j);
        for (uint32_t offset = v->across; offset < WARP_THREADS; offset *= 2)
            values[j] = add(v, values[j], gpu_shuffle_xor(k, values[j], offset));
    }
    Val warp =
        k_addi(k, k_udivi(k, v->block.thread, WARP_THREADS), (int64_t)kept * v->passes.n_partials);
    Val lane = k_uremi(k, v->block.thread, WARP_THREADS);
    Val leads = k_ulti(k, lane, v->across);
    Val column = k_muli(k, v->which, lanes);
    If writes = if_begin(k, leads);
    Val pointer = shared_at(v, v->partials, warp, column);
    Val all = k_vector(k, values, lanes);
    uint32_t n_bytes = lanes * dtype_bytes(v->acc);
    k_store_aligned(k, all, pointer, n_bytes < GPU_SHARED_ALIGN ? n_bytes : GPU_SHARED_ALIGN);
    if_end(k, &writes);
}

/* Lanes are chains: joins lanes, then the threads of the warp, and slots too if a row of threads
 * fits a warp. The sums of slot s and warp w of the row become part s * (warps per row) + w. */
static void leave_chains(const Gemv *v) {
    Codegen *k = v->k;
    uint32_t threads_per_row = v->sched->gemv.threads_along_k,
             row_warps = threads_per_row / WARP_THREADS,
             in_warp = threads_per_row < WARP_THREADS ? threads_per_row : WARP_THREADS;
    Val sums[MAX_OUTPUTS][MAX_SLOTS], lanes[16];
    for (uint32_t r = 0; r < v->thread_outputs; r++)
        for (uint32_t s = 0; s < v->sched->gemv.slots; s++) {
            for (uint32_t j = 0; j < v->sched->lanes; j++) lanes[j] = element(v, v->sums[r][s], j);
            sums[r][s] = join(v, lanes, v->sched->lanes);
            for (uint32_t offset = 1; offset < in_warp; offset *= 2)
                sums[r][s] = add(v, sums[r][s], gpu_shuffle_xor(k, sums[r][s], offset));
        }
    uint32_t n_slots = row_warps > 1 ? v->sched->gemv.slots : 1;
    Val in_row = k_udivi(k, v->along, WARP_THREADS);
    Val lane = k_uremi(k, v->along, WARP_THREADS);
    Val first = k_muli(k, v->which, v->thread_outputs);
    If leads = if_begin(k, k_eqi(k, lane, 0));
    for (uint32_t r = 0; r < v->thread_outputs; r++) {
        if (n_slots == 1) join(v, sums[r], v->sched->gemv.slots);
        Val column = k_addi(k, first, r);
        for (uint32_t s = 0; s < n_slots; s++) {
            Val row = k_addi(k, in_row, (int64_t)s * (row_warps ? row_warps : 1));
            k_store(k, sums[r][s], shared_at(v, v->partials, row, column));
        }
    }
    if_end(k, &leads);
}

/* Joins `n` rows of `from`, from row `first` (i32) on. */
static Val join_rows(const Gemv *v, Val from, Val first, uint32_t n, Val column) {
    const Codegen *k = v->k;
    LLVMTypeRef type = k_value_type(k, v->acc, 1);
    Val values[MAX_PARTIALS];
    for (uint32_t i = 0; i < n; i++) {
        Val at = k_addi(k, first, i);
        values[i] = k_load(k, type, shared_at(v, from, at, column));
    }
    return join(v, values, n);
}

/* Sends the sums of the groups of chains from `group` (i32) on to the first block of the cluster,
 * with one thread per output and group. */
static void join_kept(const Gemv *v, Val group) {
    Codegen *k = v->k;
    uint32_t total = v->passes.n_kept * v->n_outputs;
    gpu_barrier(k);
    for (uint32_t done = 0; done < total; done += v->sched->threads) {
        Val exists, sum = own_of(v, total, done, &exists);
        If one = if_begin(k, exists);
        Val kept = k_udivi(k, sum, v->n_outputs);
        Val column = k_uremi(k, sum, v->n_outputs);
        Val first = k_muli(k, kept, v->passes.n_partials);
        Val row = k_add(k, group, kept);
        Val joined = join_rows(v, v->partials, first, v->passes.n_partials, column);
        Val pointer = shared_at(v, v->groups, row, column);
        if (v->rank) pointer = gpu_cluster_at(k, pointer, k_i32(k, 0));
        k_store(k, joined, pointer);
        if_end(k, &one);
    }
}

/* The first block of a cluster, or the only block, continues once all sums have arrived. */
static void wait_for_sums(const Gemv *v) {
    if (!v->rank) {
        gpu_barrier(v->k);
        return;
    }
    gpu_cluster_arrive(v->k);
    gpu_cluster_wait(v->k);
}

static void epilogue_joined(const Gemv *v) {
    Val from = v->passes.n_groups > 1 ? v->groups : v->partials, zero = k_i32(v->k, 0), exists;
    uint32_t n = v->passes.n_groups > 1 ? v->passes.n_groups : v->passes.n_partials,
             threads = v->sched->threads;
    wait_for_sums(v);
    If first = if_begin(v->k, v->rank ? k_eqi(v->k, v->rank, 0) : NULL);
    for (uint32_t done = 0; done < v->n_outputs; done += threads) {
        Val output = own_of(v, v->n_outputs, done, &exists);
        If one = if_begin(v->k, exists);
        gpu_gemm_epilogue_one(&v->ones[done / threads], join_rows(v, from, zero, n, output));
        if_end(v->k, &one);
    }
    if_end(v->k, &first);
}

static void finish(Gemv *v) {
    if (has_several_sums(v)) {
        epilogue_joined(v);
        return;
    }
    GemmSubtile partial = partial_of(v);
    gpu_barrier(v->k);
    gpu_gemm_epilogue(&v->block, &partial);
}

/* Set-up. */

/* Clamps the output's index to the extent. Outputs past the end are computed and discarded. */
static Val clamp(const Gemv *v, Val index, uint32_t lanes) {
    const Lower *lower = v->lower;
    bool is_left = v->axis == gemm_axis_m(lower->kernel);
    if (gpu_gemm_axis_is_multiple(lower, v->axis, v->n_outputs)) return index;
    Val extent = is_left ? v->block.m : v->block.n;
    return k_smin(v->k, index, k_subi(v->k, extent, lanes));
}

static void place_outputs(Gemv *v) {
    const Codegen *k = v->k;
    const Kernel *kernel = v->lower->kernel;
    const Sched *sched = v->sched;
    bool is_left = v->axis == gemm_axis_m(kernel);
    uint32_t own = sched->gemv.lanes_along_k ? v->thread_outputs : sched->lanes;
    uint32_t inner = 1u << gemm_axis_k(kernel);
    Val first = k_muli(k, v->which, own);
    v->block.point.axis[gemm_axis_m(kernel)] = v->block.m0;
    v->block.point.axis[gemm_axis_n(kernel)] = v->block.n0;
    point_prepare(&v->block.point, &v->vector, 1, inner);
    for (uint32_t r = 0; r < v->thread_outputs; r++) {
        Point *point = &v->outputs[r];
        *point = point_inside(&v->block.point);
        Val in_tile = gpu_index(v->lower, k_addi(k, first, r));
        Val index = k_add(k, is_left ? v->block.m0 : v->block.n0, in_tile);
        point->lanes = sched->lanes;
        point->lane_axis = sched->gemv.lanes_along_k ? gemm_axis_k(kernel) : v->axis;
        point->axis[v->axis] = clamp(v, index, sched->gemv.lanes_along_k ? 1 : sched->lanes);
        for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
            if (scalar_get(kernel->scalars, id)->axes >> v->axis & 1) point->values[id] = NULL;
        point_prepare(point, &v->matrix, 1, inner);
    }
}

/* The first chain of this thread in a group. */
static Val chain_of(const Gemv *v, Val group) {
    const Codegen *k = v->k;
    const Sched *sched = v->sched;
    uint32_t own = sched->gemv.lanes_along_k ? sched->lanes : sched->gemv.slots;
    Val run = k_madi(k, group, sched->gemv.threads_along_k, v->along);
    return gpu_index(v->lower, k_muli(k, run, own));
}

/* The group of chains of a pass; the groups of one block are neighbours. */
static Val group_of(const Gemv *v, Val pass) {
    const Codegen *k = v->k;
    if (!v->rank) return pass;
    return k_madi(k, v->rank, v->passes.n_passes, pass);
}

static void make_shared(Gemv *v) {
    LLVMTypeRef type = k_value_type(v->k, v->acc, 1);
    if (v->passes.n_partials > MAX_PARTIALS || v->passes.n_groups > MAX_PARTIALS)
        ice(v->k->arena, "more than %d parts of a sum", MAX_PARTIALS);
    v->partials =
        gpu_shared(v->k, type, v->passes.n_kept * v->passes.n_partials * v->n_outputs, "parts");
    if (v->passes.n_groups > 1)
        v->groups = gpu_shared(v->k, type, v->passes.n_groups * v->n_outputs, "groups");
}

static void place_thread(Gemv *v) {
    Codegen *k = v->k;
    const Sched *sched = v->sched;
    Val split = k_i32(k, sched->gemv.lanes_along_k ? sched->gemv.threads_along_k : v->across);
    Val outer = k_udiv(k, v->block.thread, split);
    Val inner = k_urem(k, v->block.thread, split);
    v->along = sched->gemv.lanes_along_k ? inner : outer;
    v->which = sched->gemv.lanes_along_k ? outer : inner;
    if (sched->cluster <= 1) return;
    Val block = gpu_block(v->lower);
    v->rank = k_trunc(k, k_uremi(k, block, sched->cluster), k->i32);
}

static void gemv_init(Gemv *v, Lower *lower) {
    const Kernel *kernel = lower->kernel;
    const Reduce *reduce = &kernel->reduces.data[0];
    const Sched *sched = &lower->variant->sched;
    bool is_left = sched->gemv.tile_n == 1;
    *v = (Gemv){.lower = lower, .k = lower->k, .sched = sched, .acc = reduce->acc};
    v->block = gpu_gemm_block(lower);
    v->matrix = is_left ? reduce->value : reduce->rhs;
    v->vector = is_left ? reduce->rhs : reduce->value;
    v->axis = is_left ? gemm_axis_m(kernel) : gemm_axis_n(kernel);
    v->n_outputs = is_left ? sched->gemv.tile_m : sched->gemv.tile_n;
    v->n_chains = gemv_n_chains(lower_dims(lower), kernel_axis_extent(kernel, gemm_axis_k(kernel)));
    v->across = sched->threads / sched->gemv.threads_along_k;
    v->thread_outputs = sched->gemv.lanes_along_k ? v->n_outputs / v->across : 1;
    v->passes = kernel_gemv_passes(kernel, lower->variant);
    place_thread(v);
}

/* Lanes along k: a single pass over all chains. */
static void run_chains(Gemv *v) {
    v->own_k = chain_of(v, k_i32(v->k, 0));
    begin_outputs(v);
    sum_over_k(v);
    gpu_pdl_trigger(v->lower);
    leave_chains(v);
}

typedef Step Round[MAX_UNROLL][MAX_SLOTS];

/* Starts the loads of round `i` of a pass whose first chain is `own`. */
static void load_straight(const Gemv *v, Val own, uint32_t i, Round *round) {
    for (uint32_t u = 0; u < v->sched->unroll; u++) {
        int64_t ahead = ((int64_t)i * v->sched->unroll + u) * v->n_chains;
        Val from = k_addi(v->k, own, ahead);
        load_round(v, from, true, (*round)[u]);
    }
}

/* Runs the kept passes for the groups from `group` (i32) on, unrolled and without barriers. The
 * loads of a round start before the round ahead of it is used. */
static void run_straight(Gemv *v, Val group) {
    uint32_t n_rounds = v->passes.n_rounds;
    Round rounds[2];
    for (uint32_t i = 0; i <= v->passes.n_kept * n_rounds; i++) {
        uint32_t kept = i / n_rounds, before = i - 1;
        Val own = chain_of(v, k_addi(v->k, group, kept));
        if (kept < v->passes.n_kept) load_straight(v, own, i % n_rounds, &rounds[i % 2]);
        if (i == 0) continue;
        if (kept == v->passes.n_kept) begin_outputs(v); /* after the last loads of the matrix */
        if (before % n_rounds == 0) clear_sums(v);
        for (uint32_t u = 0; u < v->sched->unroll; u++) add_round(v, rounds[before % 2][u]);
        if (i % n_rounds == 0) leave_outputs(v, before / n_rounds);
    }
}

/* Asks for enough blocks per multiprocessor that all blocks are resident at once. Unrolled passes
 * leave registers for this. */
static void ask_for_occupancy(const Gemv *v) {
    const Lower *lower = v->lower;
    int64_t grid, n = v->sched->gemv.n_processors;
    if (lower->is_one_block || !dim_is_const(lower_dims(lower), lower->variant->grid, &grid))
        return;
    gpu_ask_for_blocks(lower, (uint32_t)((grid + n - 1) / n));
}

static void run_kept(Gemv *v, Val group) {
    if (v->passes.n_rounds) {
        ask_for_occupancy(v);
        run_straight(v, group);
        return;
    }
    for (uint32_t kept = 0; kept < v->passes.n_kept; kept++) {
        v->own_k = chain_of(v, k_addi(v->k, group, kept));
        sum_over_k(v);
        leave_outputs(v, kept);
    }
}

/* Lanes along the outputs: each pass has one group of chains. */
static void run_outputs(Gemv *v) {
    Codegen *k = v->k;
    Loop passes = {.index = NULL};
    Val pass = k_i32(k, 0);
    bool has_loop = v->passes.n_passes > v->passes.n_kept;
    if (has_loop || !v->passes.n_rounds) begin_outputs(v);
    if (has_loop) {
        if (v->rank) gpu_cluster_wait(k);
        passes = loop_begin(k, pass, k_i32(k, v->passes.n_passes), v->passes.n_kept);
        pass = passes.index;
    }
    Val group = group_of(v, pass);
    run_kept(v, group);
    if (!has_loop) gpu_pdl_trigger(v->lower);
    if (v->rank && !has_loop) gpu_cluster_wait(k);
    if (v->passes.n_groups > 1) join_kept(v, group);
    if (!has_loop) return;
    gpu_barrier(k);
    loop_end(k, &passes);
    gpu_pdl_trigger(v->lower);
}

/* A block of a cluster may write to the first block's memory only once all blocks run. The PDL
 * trigger comes after the matrix has been read, because the next launch's loads would delay the
 * rest of it. */
void emit_gpu_gemv(Lower *lower) {
    Gemv *v = arena_array(lower->k->arena, Gemv, 1);
    if (!lower->is_one_block) lower->read_once = kernel_args_read_once(lower->plan, lower->kernel);
    gemv_init(v, lower);
    if (v->rank) gpu_cluster_begin(v->k);
    make_shared(v);
    place_outputs(v);
    if (v->sched->gemv.lanes_along_k)
        run_chains(v);
    else
        run_outputs(v);
    finish(v);
}
