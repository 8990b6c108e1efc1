/* GPU column reductions. A block is a grid of threads: threads_along along the columns (each with
 * `lanes` columns), by 8 along the reduced elements, by groups. Thread row y of a group takes
 * elements y, y + 8, ... of its segment. It is chain y of ReduceOrder, and the tree over the eight
 * chains runs through shared memory. Groups work on different segments at the same time. In a
 * partial reduction each group stores its own segment. Otherwise all groups take the results of one
 * round into the chains of the next level. */
#include "codegen/gpu/stage.h"

enum { N_CHAINS = 8 };

typedef struct Column {
    Lower *lower;
    Codegen *k;
    const Kernel *kernel;
    const Sched *sched;
    ReduceOrder order;
    uint32_t n_groups;
    Val x, y, z;       /* i32: along columns, chain, group */
    Val chain;         /* index_type: y */
    Val exists;        /* i1: whether the thread has columns (and, in a partial reduction, a
                        * segment) */
    Val first, length; /* index_type: first reduced element (of the segment), and their number */
    Point point;
    SharedAccs *chains; /* [groups,8,threads_along,lanes]; all reductions use one array in turn,
                         * sized for the widest accumulator */
    bool shares_smem;
    SharedAccs sums; /* [groups,threads_along,lanes] for the groups' segments */
} Column;

/* Splits the step number into the parallel axes. A step is `lanes` columns of the last axis. */
static void find_columns(Column *column, Val step) {
    Lower *lower = column->lower;
    const Codegen *k = column->k;
    Val total = lower_dim(lower, kernel_n_rows(column->kernel));
    Val n_steps = k_udivi(k, total, column->sched->lanes);
    Val has_columns = k_ult(k, step, n_steps);
    column->exists = column->exists ? k_and(k, column->exists, has_columns) : has_columns;
    column->point.active = column->exists;
    lower_split_vectors(lower, step, &column->point);
}

/* For a partial reduction: assigns one segment to each group of the block, and returns the number
 * of the block's strip of columns. */
static Val find_segment(Column *column, Val block) {
    Lower *lower = column->lower;
    const Codegen *k = column->k;
    const Kernel *kernel = column->kernel;
    int64_t strip = (int64_t)column->sched->lanes * column->sched->column.threads_along;
    DimId strips = dim_ceil_div(lower_dims(lower), kernel_n_rows(kernel), strip);
    Val n_strips = lower_dim(lower, strips);
    Val segment = k_udiv(k, block, n_strips);
    if (column->n_groups > 1) {
        segment = k_muli(k, segment, column->n_groups);
        segment = k_add(k, segment, gpu_index(column->lower, column->z));
        Val n = lower_extent(lower, kernel->segment_axis);
        column->exists = k_ult(k, segment, n);
    }
    column->point.axis[kernel->segment_axis] = segment;
    column->first = k_muli(k, segment, column->order.segment_elems);
    Val rest = k_sub(k, column->length, column->first);
    column->length = gpu_segment_count(lower, rest);
    return k_urem(k, block, n_strips);
}

static void find_place(Column *column) {
    Lower *lower = column->lower;
    Codegen *k = column->k;
    uint32_t threads_per_row = column->sched->column.threads_along;
    Val thread = gpu_thread(k), block = gpu_block(lower);
    column->x = k_andi(k, thread, (int64_t)threads_per_row - 1);
    Val row = k_udivi(k, thread, threads_per_row);
    column->y = column->n_groups > 1 ? k_andi(k, row, N_CHAINS - 1) : row;
    column->z = k_udivi(k, row, N_CHAINS);
    column->chain = gpu_index(column->lower, column->y);
    column->first = lower_index_const(lower, 0);
    column->length = lower_dim(lower, kernel_n_reduced(column->kernel));
    if (column->kernel->segment_axis != NO_AXIS) block = find_segment(column, block);
    Val step = k_muli(k, block, threads_per_row);
    step = k_add(k, step, gpu_index(column->lower, column->x));
    find_columns(column, step);
}

/* Accumulators in shared memory. */

/* The position of the thread's columns in row `row` of an array. */
static Val place_in_row(const Column *column, Val row) {
    return k_madi(column->k, row, column->sched->column.threads_along, column->x);
}

/* Row `at` (i32) of the group's eight rows. */
static Val group_row(const Column *column, Val at) {
    Codegen *k = column->k;
    return k_madi(k, column->z, N_CHAINS, at);
}

static const SharedAccs *chains_of(const Column *column, uint32_t slot) {
    return &column->chains[column->shares_smem ? 0 : slot];
}

static void put_chain(const Column *column, uint32_t slot, Acc acc) {
    Val place = place_in_row(column, group_row(column, column->y));
    gpu_shared_accs_put(column->k, chains_of(column, slot), place, acc);
}

/* Loads and joins the eight chains of the thread's columns in its group. */
static Acc get_chains(const Column *column, uint32_t slot, Acc like) {
    const Reduce *reduce = &column->kernel->reduces.data[slot];
    Acc partials[N_CHAINS];
    for (uint32_t y = 0; y < N_CHAINS; y++) {
        Val place = place_in_row(column, group_row(column, k_i32(column->k, y)));
        partials[y] = gpu_shared_accs_get(column->k, chains_of(column, slot), place, like);
    }
    return acc_join_pairs(column->lower, reduce, partials, N_CHAINS);
}

/* Joins the chains; every thread gets the result. */
static Acc join_chains(const Column *column, uint32_t slot, Acc acc) {
    gpu_barrier(column->k);
    put_chain(column, slot, acc);
    gpu_barrier(column->k);
    return get_chains(column, slot, acc);
}

/* Passes over elements. */

static Point point_at(const void *user, Val at, int64_t ahead) {
    const Column *column = user;
    const Kernel *kernel = column->kernel;
    const Codegen *k = column->k;
    Point point = point_inside(&column->point);
    Val element = k_addi(k, k_add(k, column->first, at), ahead);
    lower_split(column->lower, element, kernel->first_reduced, kernel->n_reduced, &point);
    point.active = NULL; /* a thread without columns has no elements at all */
    return point;
}

static void pass_elements(Column *column, const Stage *stage, Acc *accs) {
    Lower *lower = column->lower;
    gpu_stage_begin(lower, stage, accs);
    Val count = k_select(column->k, column->exists, column->length, lower_index_const(lower, 0));
    GpuElements elements = {.lower = lower,
                            .own = column->chain,
                            .count = count,
                            .stride = column->order.n_chains,
                            .unroll = column->sched->unroll,
                            .at = point_at,
                            .user = column};
    gpu_each_element(&elements, stage, accs);
}

/* Segments. Level 0 of a sum has elements; level k + 1 has results of runs of
 * segment_elems^(k+1). */

static int64_t run_elems(const Column *column, uint32_t level) {
    int64_t n = 1;
    while (level-- > 0) n *= column->order.segment_elems;
    return n;
}

/* The largest number of levels. */
static uint32_t n_levels(const Column *column) {
    int64_t n = gpu_most_reduced(column->lower), segment = column->order.segment_elems;
    uint32_t levels = 1;
    for (; n > segment; levels++) n = n / segment + (n % segment != 0);
    return levels;
}

/* Adds partial result `number` (index_type) of a level to its chain. All threads of the block have
 * the same `part`. */
static Acc take_partial(const Column *column, const Reduce *reduce, Acc outer, Val number,
                        Acc partial) {
    Lower *lower = column->lower;
    const Codegen *k = column->k;
    Val chain = k_andi(k, number, N_CHAINS - 1);
    Val is_own = k_eq(k, chain, column->chain);
    return acc_select(lower, is_own, acc_combine(lower, reduce, outer, partial), outer);
}

/* Adds the groups' partial results, the first of which is number `number`, to their chains in
 * ascending order. A group without elements has the identity. */
static Acc take_groups(const Column *column, const Reduce *reduce, Acc outer, Val number,
                       Acc partial) {
    Codegen *k = column->k;
    If one = if_begin(k, k_eqi(k, column->y, 0));
    gpu_shared_accs_put(k, &column->sums, place_in_row(column, column->z), partial);
    if_end(k, &one);
    gpu_barrier(k);
    uint32_t n = column->n_groups;
    for (uint32_t first = 0; first < n; first += N_CHAINS) {
        Val at = k_addi(k, column->y, first);
        if (n < N_CHAINS) at = k_andi(k, at, n - 1);
        Acc theirs = gpu_shared_accs_get(k, &column->sums, place_in_row(column, at), partial);
        Val group = k_add(k, number, k_index_cast(k, at, column->lower->index_type));
        outer = n < N_CHAINS ? take_partial(column, reduce, outer, group, theirs)
                             : acc_combine(column->lower, reduce, outer, theirs);
    }
    return outer;
}

static Val at_most(const Column *column, Val rest, int64_t limit) {
    const Codegen *k = column->k;
    Val most = lower_index_const(column->lower, limit);
    return k_select(k, k_slt(k, rest, most), rest, most);
}

static void fold(Column *column, const Stage *stage, uint32_t level, Acc *accs);

/* One step of a level's loop: each group folds one of the runs that begin at element `at`. */
static void fold_runs(Column *column, const Stage *stage, uint32_t level, Val at, Acc *outer) {
    const Codegen *k = column->k;
    Acc accs[MAX_STAGE_VALUES];
    Val first = column->first, length = column->length, own = at;
    int64_t run = run_elems(column, level);
    bool in_groups = level == 1 && column->n_groups > 1;
    Val run_length = lower_index_const(column->lower, run);
    if (in_groups) {
        own = k_add(k, at, k_mul(k, gpu_index(column->lower, column->z), run_length));
    }
    column->first = k_add(k, first, own);
    Val rest = k_sub(k, length, own);
    column->length = at_most(column, rest, run);
    fold(column, stage, level - 1, accs);
    Val number = k_udiv(k, at, run_length);
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        const Reduce *reduce = stage_reduce(column->kernel, stage, i);
        Acc partial = join_chains(column, stage->reduces.data[i], accs[i]);
        outer[i] = in_groups ? take_groups(column, reduce, outer[i], number, partial)
                             : take_partial(column, reduce, outer[i], number, partial);
    }
    column->first = first;
    column->length = length;
}

/* Folds the column's elements from `first` on into the thread's chain of a level. */
static void fold(Column *column, const Stage *stage, uint32_t level, Acc *accs) {
    Lower *lower = column->lower;
    Codegen *k = column->k;
    if (level == 0) {
        pass_elements(column, stage, accs);
        return;
    }
    gpu_stage_begin(lower, stage, accs);
    int64_t step = run_elems(column, level) * (level == 1 ? column->n_groups : 1);
    /* All threads walk the same runs, even those without columns, because the loop has barriers. */
    Loop loop = loop_over(k, column->length, step);
    acc_loop_carry(k, &loop, accs, stage->reduces.n);
    fold_runs(column, stage, level, loop.index, accs);
    loop_end(k, &loop);
}

static void store_columns(Column *column) {
    const Kernel *kernel = column->kernel;
    point_prepare_stores(&column->point, kernel->row_stores.data, kernel->row_stores.n);
    point_store_all(&column->point, kernel->row_stores.data, kernel->row_stores.n);
}

/* Whether the thread stores results: one thread per column; in a partial reduction, one per column
 * and group. */
static Val leads(const Column *column) {
    const Codegen *k = column->k;
    bool is_partial = column->kernel->segment_axis != NO_AXIS;
    Val row = is_partial ? column->y : k_or(k, column->y, column->z);
    Val is_first = k_eqi(k, row, 0);
    return k_and(k, is_first, column->exists);
}

/* Finishes results that only the final stores of a row need. Only the storing threads join the
 * chains: if all threads read shared memory, this would take as long as loading a few rows. */
static void finish_alone(Column *column, const Stage *stage, const Acc *accs, bool is_fresh) {
    Codegen *k = column->k;
    if (!is_fresh) gpu_barrier(k);
    for (uint32_t i = 0; i < stage->reduces.n; i++)
        put_chain(column, stage->reduces.data[i], accs[i]);
    gpu_barrier(k);
    If first = if_begin(k, leads(column));
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        uint32_t slot = stage->reduces.data[i];
        acc_finish(&column->point, slot, get_chains(column, slot, accs[i]));
    }
    store_columns(column);
    if_end(k, &first);
}

static void run_stage(Column *column, const Stage *stage) {
    Acc accs[MAX_STAGE_VALUES];
    gpu_stage_prepare(&column->point, stage);
    bool is_grouped = column->kernel->segment_axis == NO_AXIS && column->n_groups > 1;
    bool has_levels = is_grouped || gpu_stage_has_segments(column->lower, stage);
    fold(column, stage, has_levels ? n_levels(column) - 1 : 0, accs);
    if (column->kernel->stages.n == 1 && !column->shares_smem) {
        finish_alone(column, stage, accs, !has_levels);
        return;
    }
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        uint32_t slot = stage->reduces.data[i];
        acc_finish(&column->point, slot, join_chains(column, slot, accs[i]));
    }
}

static void run_stages(Column *column) {
    const Kernel *kernel = column->kernel;
    for (uint32_t i = 0; i < kernel->stages.n; i++) run_stage(column, &kernel->stages.data[i]);
    if (!kernel->row_stores.n || (kernel->stages.n == 1 && !column->shares_smem)) return;
    If first = if_begin(column->k, leads(column));
    store_columns(column);
    if_end(column->k, &first);
}

static void make_shared(Column *column) {
    const Codegen *k = column->k;
    const Kernel *kernel = column->kernel;
    const Sched *sched = column->sched;
    uint32_t n = sched->threads * sched->lanes, n_reduces = kernel->reduces.n;
    bool has_wide = false, has_arg = false;
    for (uint32_t i = 0; i < n_reduces; i++) {
        has_wide = has_wide || dtype_bytes(kernel->reduces.data[i].acc) == 8;
        has_arg = has_arg || kernel->reduces.data[i].is_arg;
    }
    Dtype widest = has_wide ? DT_F64 : DT_F32;
    kernel_column_shared(kernel, sched, &column->shares_smem);
    column->chains = arena_array(column->k->arena, SharedAccs, n_reduces);
    for (uint32_t i = 0; i < (column->shares_smem ? 1 : n_reduces); i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        Dtype dtype = column->shares_smem ? widest : reduce->acc;
        bool has_index = column->shares_smem ? has_arg : reduce->is_arg;
        column->chains[i] = gpu_shared_accs(k, k_value_type(k, dtype, 1), has_index, n, "chains");
    }
    if (column->n_groups > 1 && kernel->segment_axis == NO_AXIS)
        column->sums =
            gpu_shared_accs(k, k_value_type(k, widest, 1), has_arg, n / N_CHAINS, "sums");
}

void emit_gpu_column(Lower *lower) {
    const Sched *sched = &lower->variant->sched;
    Column column = {.lower = lower,
                     .k = lower->k,
                     .kernel = lower->kernel,
                     .sched = sched,
                     .order = reduce_order(lower->kernel->form, lower->k->target->device),
                     .n_groups = sched->threads / (sched->column.threads_along * N_CHAINS)};
    if (!lower->is_one_block) lower->read_once = kernel_args_read_once(lower->plan, lower->kernel);
    column.point = point_new(lower, sched->lanes);
    find_place(&column);
    make_shared(&column);
    run_stages(&column);
}
