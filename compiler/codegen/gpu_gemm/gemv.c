/* GEMMs with one row or column: a matrix times a vector, at the speed of memory.
 *
 * Chains of GEMM_GEMV are spread over threads, so that each holds some of them for some
 * outputs. Where the matrix lies along k, a thread's lanes are neighbouring chains of one output,
 * a team of threads has the chains of an output, and a block several outputs. Where it lies along
 * the outputs, lanes are neighbouring outputs, a thread has a few neighbouring chains of each, and
 * the rest are other threads', passes and blocks of a cluster. Within a thread, chains are `slots`
 * accumulators.
 *
 * Chain numbers are laid out so that joining lanes, slots (or slots last), threads, warps, passes
 * and blocks, in this order, is the tree. Its last part is joined from shared memory by the thread
 * that goes on with the output; whole sums end there, for gpu_gemm_epilogue. */
#include "codegen/gpu_gemm/gemm.h"

#include <string.h>

enum { MAX_SLOTS = 8, MAX_OUTPUTS = 4, MAX_UNROLL = 8, MAX_PARTS = 64 };

typedef struct Vector {
    Lower *lower;
    Unit *unit;
    const Sched *sched;
    GemmBlock block;
    Dtype acc;
    ScalarId matrix, vector;
    uint32_t axis;         /* of the outputs: m or n */
    uint32_t n_chains;     /* of an output */
    uint32_t n_outputs;    /* of a block */
    uint32_t team_outputs; /* of a team: 1 where lanes lie along the outputs */
    uint32_t across;       /* teams, or groups of lanes along the outputs, in a block */
    uint32_t n_groups, n_passes, n_rounds, n_kept, n_parts; /* GemvPasses */
    LLVMValueRef along, which; /* i32: number in the team, and of the team or group */
    LLVMValueRef rank;         /* i32: in the cluster */
    LLVMValueRef own_k;        /* index_type: the thread's first chain (of this pass) */
    Point outputs[MAX_OUTPUTS];
    LLVMValueRef sums[MAX_OUTPUTS][MAX_SLOTS];
    /* In shared memory, of n_outputs each: n_parts of each pass that is kept; n_groups, where there
     * are several of them. */
    LLVMValueRef parts, groups;
    GemmOne *ones; /* a thread's outputs, where it joins what there is of them; NULL: not begun */
} Vector;

static LLVMValueRef add(const Vector *v, LLVMValueRef a, LLVMValueRef b) {
    return unit_prim(v->unit, PRIM_ADD, v->acc, a, b, NULL);
}

/* The tree over `n` values, a power of two, in place. */
static LLVMValueRef join(const Vector *v, LLVMValueRef *values, uint32_t n) {
    for (; n > 1; n /= 2)
        for (uint32_t i = 0; i < n / 2; i++) values[i] = add(v, values[2 * i], values[2 * i + 1]);
    return values[0];
}

/* Outputs. */

static GemmPart part_of(const Vector *v) {
    const Sched *sched = v->sched;
    return (GemmPart){.shared = v->parts,
                      .pitch = sched->tile_n,
                      .n_rows = sched->tile_m,
                      .n_columns = sched->tile_n,
                      .run = sched->tile_m,
                      .run_stride = sched->tile_m};
}

/* Of an output in shared memory: then a thread joins them, and goes on with the output. */
static bool has_several_sums(const Vector *v) {
    return v->n_groups > 1 || v->n_parts > 1;
}

/* The thread's own of `total` things, i32, when `done` of them are others', and whether it exists.
 */
static LLVMValueRef own_of(const Vector *v, uint32_t total, uint32_t done, LLVMValueRef *exists) {
    LLVMBuilderRef builder = v->unit->builder;
    LLVMValueRef own = LLVMBuildAdd(builder, v->block.thread, unit_i32(v->unit, done), "");
    *exists = LLVMBuildICmp(builder, LLVMIntULT, own, unit_i32(v->unit, total), "");
    return own;
}

/* Begins, once, what a thread loads for its outputs: it is there when the sums are. Threads without
 * an output load the first one's. */
static void begin_outputs(Vector *v) {
    Unit *unit = v->unit;
    GemmPart part = part_of(v);
    uint32_t threads = v->sched->threads;
    if (v->ones || !has_several_sums(v)) return;
    v->ones = arena_array(unit->arena, GemmOne, (v->n_outputs + threads - 1) / threads);
    for (uint32_t done = 0; done < v->n_outputs; done += threads) {
        LLVMValueRef exists, output = own_of(v, v->n_outputs, done, &exists);
        output = LLVMBuildSelect(unit->builder, exists, output, unit_i32(unit, 0), "");
        v->ones[done / threads] = gpu_gemm_begin_one(&v->block, &part, output);
    }
}

/* Walking k. */

static LLVMValueRef to_acc(const Vector *v, ScalarId id, LLVMValueRef value) {
    Dtype dtype = scalar_get(v->lower->kernel->scalars, id)->dtype;
    return convert_value(&v->unit->math, value, unit_convert_type(dtype),
                         unit_convert_type(v->acc));
}

static LLVMValueRef multiply_add(const Vector *v, LLVMValueRef a, LLVMValueRef b,
                                 LLVMValueRef sum) {
    Unit *unit = v->unit;
    LLVMTypeRef type = LLVMTypeOf(sum);
    LLVMValueRef args[3] = {a, b, sum};
    if (dtype_kind(v->acc) == KIND_FLOAT)
        return unit_intrinsic(unit, "llvm.fma", &type, 1, args, 3);
    return LLVMBuildAdd(unit->builder, LLVMBuildMul(unit->builder, a, b, ""), sum, "");
}

/* What one slot of a round takes: the vector's elements and, per output, the matrix's. */
typedef struct Step {
    LLVMValueRef active; /* i1, or NULL: inside k */
    LLVMValueRef vector; /* scalar or lanes, in its dtype */
    LLVMValueRef matrix[MAX_OUTPUTS];
} Step;

static LLVMValueRef k_of_slot(const Vector *v, LLVMValueRef from, uint32_t slot) {
    uint32_t stride = v->sched->lanes_along_k ? v->sched->threads_per_row * v->sched->lanes : 1;
    LLVMValueRef offset = lower_index_const(v->lower, (int64_t)slot * stride);
    return LLVMBuildAdd(v->unit->builder, from, offset, "");
}

/* Where lanes lie along the outputs, a thread's elements of the vector lie side by side. */
static void load_vector_run(const Vector *v, LLVMValueRef from, Step *steps) {
    Point point = point_inside(&v->block.point);
    point.lanes = v->sched->slots;
    point.lane_axis = gemm_axis_k(v->lower->kernel);
    point.axis[point.lane_axis] = from;
    LLVMValueRef run = point_lanes(&point, v->vector);
    for (uint32_t s = 0; s < v->sched->slots; s++)
        steps[s].vector = v->sched->slots == 1 ? run
                                               : LLVMBuildExtractElement(v->unit->builder, run,
                                                                         unit_i32(v->unit, s), "");
}

/* The loads of a round of chains, whose first element of this thread is `from`. */
static void load_round(const Vector *v, LLVMValueRef from, bool is_whole, Step *steps) {
    const Sched *sched = v->sched;
    LLVMBuilderRef builder = v->unit->builder;
    uint32_t k = gemm_axis_k(v->lower->kernel);
    bool has_run = is_whole && !sched->lanes_along_k;
    if (has_run) load_vector_run(v, from, steps);
    for (uint32_t s = 0; s < sched->slots; s++) {
        LLVMValueRef at = k_of_slot(v, from, s);
        steps[s].active = is_whole ? NULL : LLVMBuildICmp(builder, LLVMIntSLT, at, v->block.k, "");
        for (uint32_t r = 0; r < v->team_outputs; r++) {
            Point point = point_inside(&v->outputs[r]);
            point.axis[k] = at;
            point.active = steps[s].active;
            steps[s].matrix[r] = point_lanes(&point, v->matrix);
        }
        if (has_run) continue;
        Point point = point_inside(&v->block.point);
        point.lanes = sched->lanes_along_k ? sched->lanes : 1;
        point.lane_axis = k;
        point.axis[k] = at;
        point.active = steps[s].active;
        steps[s].vector = point_lanes(&point, v->vector);
    }
}

static void add_round(Vector *v, const Step *steps) {
    for (uint32_t s = 0; s < v->sched->slots; s++) {
        LLVMValueRef x = to_acc(v, v->vector, steps[s].vector);
        x = unit_splat(v->unit, x, v->sched->lanes);
        for (uint32_t r = 0; r < v->team_outputs; r++) {
            LLVMValueRef before = v->sums[r][s];
            LLVMValueRef sum = multiply_add(v, to_acc(v, v->matrix, steps[s].matrix[r]), x, before);
            if (steps[s].active)
                sum = LLVMBuildSelect(v->unit->builder, steps[s].active, sum, before, "");
            v->sums[r][s] = sum;
        }
    }
}

static uint32_t flatten(Vector *v, LLVMValueRef *values, bool is_back) {
    ValueList lists[MAX_OUTPUTS];
    for (uint32_t r = 0; r < v->team_outputs; r++)
        lists[r] = (ValueList){v->sums[r], v->sched->slots};
    return loop_flatten(lists, v->team_outputs, values, is_back);
}

/* Rounds from `from` on, `width` at a time while they are inside k (the last one, which is not
 * whole, where `width` is 0); returns where they end. */
static LLVMValueRef loop_rounds(Vector *v, LLVMValueRef from, uint32_t width) {
    Lower *lower = v->lower;
    LLVMBuilderRef builder = v->unit->builder;
    uint32_t n_rounds = width ? width : 1;
    int64_t stride = (int64_t)n_rounds * v->n_chains;
    LLVMValueRef step = lower_index_const(lower, stride), values[MAX_OUTPUTS * MAX_SLOTS];
    LLVMValueRef to = v->block.k;
    if (width) to = LLVMBuildSub(builder, to, lower_index_const(lower, stride - 1), "");
    LLVMValueRef enters = LLVMBuildICmp(builder, LLVMIntSLT, from, to, "");
    if (LLVMIsConstant(enters) && LLVMIsNull(enters)) return from;
    uint32_t n = flatten(v, values, false);
    Loop loop = loop_begin(v->unit, lower->function, from, to, step);
    loop_carry(v->unit, &loop, values, n);
    flatten(v, values, true);
    Step steps[MAX_UNROLL][MAX_SLOTS];
    LLVMValueRef own = LLVMBuildAdd(builder, loop.index, v->own_k, "");
    for (uint32_t u = 0; u < n_rounds; u++) {
        LLVMValueRef ahead = lower_index_const(lower, (int64_t)u * v->n_chains);
        load_round(v, LLVMBuildAdd(builder, own, ahead, ""), width > 0, steps[u]);
    }
    for (uint32_t u = 0; u < n_rounds; u++) add_round(v, steps[u]);
    flatten(v, values, false);
    loop_end_carry(v->unit, &loop, values, n);
    flatten(v, values, true);
    LLVMValueRef whole = LLVMBuildUDiv(builder, v->block.k, step, "");
    return LLVMBuildMul(builder, whole, step, "");
}

static void clear_sums(Vector *v) {
    LLVMValueRef zero = unit_splat(v->unit, unit_number(v->unit, v->acc, 0), v->sched->lanes);
    for (uint32_t r = 0; r < v->team_outputs; r++)
        for (uint32_t s = 0; s < v->sched->slots; s++) v->sums[r][s] = zero;
}

static void sum_over_k(Vector *v) {
    clear_sums(v);
    LLVMValueRef at = lower_index_const(v->lower, 0);
    if (v->sched->unroll > 1) at = loop_rounds(v, at, v->sched->unroll);
    at = loop_rounds(v, at, 1);
    loop_rounds(v, at, 0);
}

/* Joining chains. */

static LLVMValueRef shared_at(const Vector *v, LLVMValueRef array, LLVMValueRef row,
                              LLVMValueRef column) {
    LLVMBuilderRef builder = v->unit->builder;
    LLVMValueRef at = LLVMBuildMul(builder, row, unit_i32(v->unit, v->n_outputs), "");
    at = LLVMBuildAdd(builder, at, column, "");
    return gpu_shared_at(v->unit, array, unit_value_type(v->unit, v->acc, 1), at);
}

static LLVMValueRef element(const Vector *v, LLVMValueRef value, uint32_t lane) {
    if (!unit_is_vector(value)) return value;
    return LLVMBuildExtractElement(v->unit->builder, value, unit_i32(v->unit, lane), "");
}

/* Lanes are outputs: slots, then threads of the warp with the same outputs; the sums of warp w are
 * part w, of those of pass `kept`. */
static void leave_outputs(const Vector *v, uint32_t kept) {
    Unit *unit = v->unit;
    LLVMBuilderRef builder = unit->builder;
    uint32_t lanes = v->sched->lanes;
    LLVMValueRef slots[MAX_SLOTS], values[16];
    for (uint32_t s = 0; s < v->sched->slots; s++) slots[s] = v->sums[0][s];
    LLVMValueRef sum = join(v, slots, v->sched->slots);
    for (uint32_t j = 0; j < lanes; j++) {
        values[j] = element(v, sum, j);
        for (uint32_t offset = v->across; offset < WARP; offset *= 2)
            values[j] = add(v, values[j], gpu_shuffle_xor(unit, values[j], offset));
    }
    LLVMValueRef warp = LLVMBuildUDiv(builder, v->block.thread, unit_i32(unit, WARP), "");
    warp = LLVMBuildAdd(builder, warp, unit_i32(unit, (int64_t)kept * v->n_parts), "");
    LLVMValueRef lane = LLVMBuildURem(builder, v->block.thread, unit_i32(unit, WARP), "");
    LLVMValueRef leads = LLVMBuildICmp(builder, LLVMIntULT, lane, unit_i32(unit, v->across), "");
    LLVMValueRef column = LLVMBuildMul(builder, v->which, unit_i32(unit, lanes), "");
    If writes = if_begin(unit, v->lower->function, leads);
    LLVMValueRef pointer = shared_at(v, v->parts, warp, column);
    LLVMValueRef all = values[0];
    if (lanes > 1) all = LLVMGetPoison(unit_value_type(unit, v->acc, lanes));
    for (uint32_t j = 0; j < lanes && lanes > 1; j++)
        all = LLVMBuildInsertElement(builder, all, values[j], unit_i32(unit, j), "");
    uint32_t n_bytes = lanes * dtype_bytes(v->acc);
    LLVMSetAlignment(LLVMBuildStore(builder, all, pointer),
                     n_bytes < GPU_SHARED_ALIGN ? n_bytes : GPU_SHARED_ALIGN);
    if_end(unit, &writes);
}

/* Lanes are chains: lanes, then threads of the warp; of a team within a warp slots too. The sums
 * of slot s and the team's warp w are part s * (warps of the team) + w. */
static void leave_chains(const Vector *v) {
    Unit *unit = v->unit;
    LLVMBuilderRef builder = unit->builder;
    uint32_t threads_per_row = v->sched->threads_per_row, team_warps = threads_per_row / WARP,
             in_warp = threads_per_row < WARP ? threads_per_row : WARP;
    LLVMValueRef sums[MAX_OUTPUTS][MAX_SLOTS], lanes[16];
    for (uint32_t r = 0; r < v->team_outputs; r++)
        for (uint32_t s = 0; s < v->sched->slots; s++) {
            for (uint32_t j = 0; j < v->sched->lanes; j++) lanes[j] = element(v, v->sums[r][s], j);
            sums[r][s] = join(v, lanes, v->sched->lanes);
            for (uint32_t offset = 1; offset < in_warp; offset *= 2)
                sums[r][s] = add(v, sums[r][s], gpu_shuffle_xor(unit, sums[r][s], offset));
        }
    uint32_t n_slots = team_warps > 1 ? v->sched->slots : 1;
    LLVMValueRef in_team = LLVMBuildUDiv(builder, v->along, unit_i32(unit, WARP), "");
    LLVMValueRef lane = LLVMBuildURem(builder, v->along, unit_i32(unit, WARP), "");
    LLVMValueRef first = LLVMBuildMul(builder, v->which, unit_i32(unit, v->team_outputs), "");
    If leads = if_begin(unit, v->lower->function,
                        LLVMBuildICmp(builder, LLVMIntEQ, lane, unit_i32(unit, 0), ""));
    for (uint32_t r = 0; r < v->team_outputs; r++) {
        if (n_slots == 1) join(v, sums[r], v->sched->slots);
        LLVMValueRef column = LLVMBuildAdd(builder, first, unit_i32(unit, r), "");
        for (uint32_t s = 0; s < n_slots; s++) {
            LLVMValueRef row = LLVMBuildAdd(
                builder, in_team, unit_i32(unit, (int64_t)s * (team_warps ? team_warps : 1)), "");
            LLVMBuildStore(builder, sums[r][s], shared_at(v, v->parts, row, column));
        }
    }
    if_end(unit, &leads);
}

/* Joins `n` rows of `from` from row `first` (i32) on. */
static LLVMValueRef join_rows(const Vector *v, LLVMValueRef from, LLVMValueRef first, uint32_t n,
                              LLVMValueRef column) {
    LLVMBuilderRef builder = v->unit->builder;
    LLVMTypeRef type = unit_value_type(v->unit, v->acc, 1);
    LLVMValueRef values[MAX_PARTS];
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef at = LLVMBuildAdd(builder, first, unit_i32(v->unit, i), "");
        values[i] = LLVMBuildLoad2(builder, type, shared_at(v, from, at, column), "");
    }
    return join(v, values, n);
}

/* The sums of the groups of chains from `group` (i32) on that are kept, from the block's threads to
 * the first block: a thread for each output and group. */
static void join_kept(const Vector *v, LLVMValueRef group) {
    Unit *unit = v->unit;
    LLVMBuilderRef builder = unit->builder;
    uint32_t total = v->n_kept * v->n_outputs;
    gpu_barrier(unit);
    for (uint32_t done = 0; done < total; done += v->sched->threads) {
        LLVMValueRef exists, sum = own_of(v, total, done, &exists);
        If one = if_begin(unit, v->lower->function, exists);
        LLVMValueRef kept = LLVMBuildUDiv(builder, sum, unit_i32(unit, v->n_outputs), "");
        LLVMValueRef column = LLVMBuildURem(builder, sum, unit_i32(unit, v->n_outputs), "");
        LLVMValueRef first = LLVMBuildMul(builder, kept, unit_i32(unit, v->n_parts), "");
        LLVMValueRef row = LLVMBuildAdd(builder, group, kept, "");
        LLVMValueRef joined = join_rows(v, v->parts, first, v->n_parts, column);
        LLVMValueRef pointer = shared_at(v, v->groups, row, column);
        if (v->rank) pointer = gpu_cluster_at(unit, pointer, unit_i32(unit, 0));
        LLVMBuildStore(builder, joined, pointer);
        if_end(unit, &one);
    }
}

/* The first block of a cluster, or the only one, goes on when it has all sums. */
static void wait_for_sums(const Vector *v, If *first) {
    const Unit *unit = v->unit;
    if (!v->rank) {
        gpu_barrier(v->unit);
        return;
    }
    gpu_cluster_arrive(v->unit);
    gpu_cluster_wait(v->unit);
    LLVMValueRef is_first = LLVMBuildICmp(unit->builder, LLVMIntEQ, v->rank, unit_i32(unit, 0), "");
    *first = if_begin(v->unit, v->lower->function, is_first);
}

static void epilogue_joined(const Vector *v) {
    LLVMValueRef from = v->n_groups > 1 ? v->groups : v->parts, zero = unit_i32(v->unit, 0), exists;
    uint32_t n = v->n_groups > 1 ? v->n_groups : v->n_parts, threads = v->sched->threads;
    If first = {.after = NULL};
    wait_for_sums(v, &first);
    for (uint32_t done = 0; done < v->n_outputs; done += threads) {
        LLVMValueRef output = own_of(v, v->n_outputs, done, &exists);
        If one = if_begin(v->unit, v->lower->function, exists);
        gpu_gemm_epilogue_one(&v->ones[done / threads], join_rows(v, from, zero, n, output));
        if_end(v->unit, &one);
    }
    if (first.after) if_end(v->unit, &first);
}

static void finish(Vector *v) {
    if (has_several_sums(v)) {
        epilogue_joined(v);
        return;
    }
    GemmPart part = part_of(v);
    gpu_barrier(v->unit);
    gpu_gemm_epilogue(&v->block, &part);
}

/* Set-up. */

/* The output's index, kept inside the extent: what lies beyond is computed for nothing. */
static LLVMValueRef clamp(const Vector *v, LLVMValueRef index, uint32_t lanes) {
    const Lower *lower = v->lower;
    bool is_left = v->axis == gemm_axis_m(lower->kernel);
    if (gpu_gemm_axis_is_multiple(lower, v->axis, v->n_outputs)) return index;
    LLVMTypeRef type = lower->index_type;
    LLVMValueRef extent = is_left ? v->block.m : v->block.n;
    LLVMValueRef args[2] = {
        index, LLVMBuildSub(v->unit->builder, extent, lower_index_const(lower, lanes), "")};
    return unit_intrinsic(v->unit, "llvm.smin", &type, 1, args, 2);
}

static void place_outputs(Vector *v) {
    LLVMBuilderRef builder = v->unit->builder;
    const Kernel *kernel = v->lower->kernel;
    const Sched *sched = v->sched;
    bool is_left = v->axis == gemm_axis_m(kernel);
    uint32_t own = sched->lanes_along_k ? v->team_outputs : sched->lanes;
    uint32_t inner = 1u << gemm_axis_k(kernel);
    LLVMValueRef first = LLVMBuildMul(builder, v->which, unit_i32(v->unit, own), "");
    v->block.point.axis[gemm_axis_m(kernel)] = v->block.m0;
    v->block.point.axis[gemm_axis_n(kernel)] = v->block.n0;
    point_prepare(&v->block.point, &v->vector, 1, inner);
    for (uint32_t r = 0; r < v->team_outputs; r++) {
        Point *point = &v->outputs[r];
        *point = point_inside(&v->block.point);
        LLVMValueRef in_tile =
            gpu_index(v->lower, LLVMBuildAdd(builder, first, unit_i32(v->unit, r), ""));
        LLVMValueRef index =
            LLVMBuildAdd(builder, is_left ? v->block.m0 : v->block.n0, in_tile, "");
        point->lanes = sched->lanes;
        point->lane_axis = sched->lanes_along_k ? gemm_axis_k(kernel) : v->axis;
        point->axis[v->axis] = clamp(v, index, sched->lanes_along_k ? 1 : sched->lanes);
        for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
            if (scalar_get(kernel->scalars, id)->axes >> v->axis & 1) point->values[id] = NULL;
        point_prepare(point, &v->matrix, 1, inner);
    }
}

/* This thread's first chain of a group. */
static LLVMValueRef chain_of(const Vector *v, LLVMValueRef group) {
    LLVMBuilderRef builder = v->unit->builder;
    const Sched *sched = v->sched;
    uint32_t own = sched->lanes_along_k ? sched->lanes : sched->slots;
    LLVMValueRef run = LLVMBuildMul(builder, group, unit_i32(v->unit, sched->threads_per_row), "");
    run = LLVMBuildAdd(builder, run, v->along, "");
    return gpu_index(v->lower, LLVMBuildMul(builder, run, unit_i32(v->unit, own), ""));
}

/* Group of chains of a pass: a block's own lie side by side. */
static LLVMValueRef group_of(const Vector *v, LLVMValueRef pass) {
    LLVMBuilderRef builder = v->unit->builder;
    if (!v->rank) return pass;
    LLVMValueRef first = LLVMBuildMul(builder, v->rank, unit_i32(v->unit, v->n_passes), "");
    return LLVMBuildAdd(builder, first, pass, "");
}

static void make_shared(Vector *v) {
    LLVMTypeRef type = unit_value_type(v->unit, v->acc, 1);
    if (v->n_parts > MAX_PARTS || v->n_groups > MAX_PARTS)
        ice(v->unit->arena, "more than %d parts of a sum", MAX_PARTS);
    v->parts = gpu_shared(v->unit, type, v->n_kept * v->n_parts * v->n_outputs, "parts");
    if (v->n_groups > 1)
        v->groups = gpu_shared(v->unit, type, v->n_groups * v->n_outputs, "groups");
}

static void place_thread(Vector *v) {
    Unit *unit = v->unit;
    const Sched *sched = v->sched;
    LLVMValueRef split = unit_i32(unit, sched->lanes_along_k ? sched->threads_per_row : v->across);
    LLVMValueRef outer = LLVMBuildUDiv(unit->builder, v->block.thread, split, "");
    LLVMValueRef inner = LLVMBuildURem(unit->builder, v->block.thread, split, "");
    v->along = sched->lanes_along_k ? inner : outer;
    v->which = sched->lanes_along_k ? outer : inner;
    if (sched->cluster <= 1) return;
    LLVMValueRef block = gpu_block(v->lower);
    LLVMValueRef n = lower_index_const(v->lower, sched->cluster);
    v->rank =
        LLVMBuildTrunc(unit->builder, LLVMBuildURem(unit->builder, block, n, ""), unit->i32, "");
}

static void vector_init(Vector *v, Lower *lower) {
    const Kernel *kernel = lower->kernel;
    const Reduce *reduce = &kernel->reduces.data[0];
    const Sched *sched = &lower->variant->sched;
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    bool is_left = sched->tile_n == 1;
    *v = (Vector){.lower = lower, .unit = lower->unit, .sched = sched, .acc = reduce->acc};
    v->block = gpu_gemm_block(lower);
    v->matrix = is_left ? reduce->value : reduce->factor;
    v->vector = is_left ? reduce->factor : reduce->value;
    v->axis = is_left ? gemm_axis_m(kernel) : gemm_axis_n(kernel);
    v->n_outputs = is_left ? sched->tile_m : sched->tile_n;
    v->n_chains = gemv_n_chains(indextab_dims(tab), index_axis_extent(tab, gemm_axis_k(kernel)));
    v->across = sched->threads / sched->threads_per_row;
    v->team_outputs = sched->lanes_along_k ? v->n_outputs / v->across : 1;
    GemvPasses passes = kernel_gemv_passes(kernel, lower->variant);
    v->n_groups = passes.n_groups;
    v->n_passes = passes.n_passes;
    v->n_rounds = passes.n_rounds;
    v->n_kept = passes.n_kept;
    v->n_parts = passes.n_parts;
    place_thread(v);
}

/* Lanes along k: all chains at once. */
static void run_chains(Vector *v) {
    v->own_k = chain_of(v, unit_i32(v->unit, 0));
    begin_outputs(v);
    sum_over_k(v);
    gpu_pdl_trigger(v->lower);
    leave_chains(v);
}

typedef Step Round[MAX_UNROLL][MAX_SLOTS];

/* The loads of round `i` of a pass's chains from `own` on. */
static void load_straight(const Vector *v, LLVMValueRef own, uint32_t i, Round *round) {
    for (uint32_t u = 0; u < v->sched->unroll; u++) {
        int64_t ahead = ((int64_t)i * v->sched->unroll + u) * v->n_chains;
        LLVMValueRef from =
            LLVMBuildAdd(v->unit->builder, own, lower_index_const(v->lower, ahead), "");
        load_round(v, from, true, (*round)[u]);
    }
}

/* The passes that are kept, of the groups from `group` (i32) on, one after the other without a
 * barrier: a round's loads are on their way before the round before is used. */
static void run_straight(Vector *v, LLVMValueRef group) {
    uint32_t n_rounds = v->n_rounds;
    Round rounds[2];
    for (uint32_t i = 0; i <= v->n_kept * n_rounds; i++) {
        uint32_t kept = i / n_rounds, before = i - 1;
        LLVMValueRef own =
            chain_of(v, LLVMBuildAdd(v->unit->builder, group, unit_i32(v->unit, kept), ""));
        if (kept < v->n_kept) load_straight(v, own, i % n_rounds, &rounds[i % 2]);
        if (i == 0) continue;
        if (kept == v->n_kept) begin_outputs(v); /* behind the last of the matrix */
        if (before % n_rounds == 0) clear_sums(v);
        for (uint32_t u = 0; u < v->sched->unroll; u++) add_round(v, rounds[before % 2][u]);
        if (i % n_rounds == 0) leave_outputs(v, before / n_rounds);
    }
}

/* All blocks at once: what passes without loops leave registers for. */
static void ask_for_occupancy(const Vector *v) {
    static const char key[] = "nvvm.minctasm";
    const Lower *lower = v->lower;
    int64_t grid;
    if (lower->is_turn || !dim_is_const(lower_dims(lower), lower->variant->grid, &grid)) return;
    const char *value =
        str_format(v->unit->arena, "%d", (int)((grid + GEMV_PROCESSORS - 1) / GEMV_PROCESSORS));
    LLVMAddAttributeAtIndex(lower->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(v->unit->context, key, sizeof key - 1, value,
                                                      (unsigned)strlen(value)));
}

static void run_kept(Vector *v, LLVMValueRef group) {
    if (v->n_rounds) {
        ask_for_occupancy(v);
        run_straight(v, group);
        return;
    }
    for (uint32_t kept = 0; kept < v->n_kept; kept++) {
        v->own_k = chain_of(v, LLVMBuildAdd(v->unit->builder, group, unit_i32(v->unit, kept), ""));
        sum_over_k(v);
        leave_outputs(v, kept);
    }
}

/* Lanes along the outputs: a group of chains in each pass. */
static void run_outputs(Vector *v) {
    Unit *unit = v->unit;
    Loop passes = {.index = NULL};
    LLVMValueRef pass = unit_i32(unit, 0);
    bool has_loop = v->n_passes > v->n_kept;
    if (has_loop || !v->n_rounds) begin_outputs(v);
    if (has_loop) {
        if (v->rank) gpu_cluster_wait(unit);
        passes = loop_begin(unit, v->lower->function, pass, unit_i32(unit, v->n_passes),
                            unit_i32(unit, v->n_kept));
        pass = passes.index;
    }
    LLVMValueRef group = group_of(v, pass);
    run_kept(v, group);
    if (!has_loop) gpu_pdl_trigger(v->lower);
    if (v->rank && !has_loop) gpu_cluster_wait(unit);
    if (v->n_groups > 1) join_kept(v, group);
    if (!has_loop) return;
    gpu_barrier(unit);
    loop_end(unit, &passes);
    gpu_pdl_trigger(v->lower);
}

/* A block of a cluster writes to the first one's memory when it knows that all have begun. The next
 * launch is let in when the matrix has been read: what it loads would only delay the rest of it. */
void template_gpu_gemm_vector(Lower *lower) {
    Vector *v = arena_array(lower->unit->arena, Vector, 1);
    if (!lower->is_turn) lower->read_once = kernel_args_read_once(lower->plan, lower->kernel);
    vector_init(v, lower);
    if (v->rank) gpu_cluster_begin(v->unit);
    make_shared(v);
    place_outputs(v);
    if (v->sched->lanes_along_k)
        run_chains(v);
    else
        run_outputs(v);
    finish(v);
}
