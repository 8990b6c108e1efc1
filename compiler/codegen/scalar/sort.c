/* An order lists the row's elements by index. Runs of 1, 2, 4 .. of them are in order; a level
 * merges pairs of runs from one order to the other. Each element finds its own place: its place in
 * its run, and the number of elements of the other run that come before it, by binary search. Equal
 * elements of the left run come first, so places are distinct and the sort is stable. See sort.h.
 */
#include "codegen/scalar/sort.h"

int64_t sort_local_elems(const Kernel *kernel, const Variant *variant) {
    int64_t most = variant_row_elems(kernel, variant);
    if (most < 1) return 1; /* no array is empty */
    return most <= SORT_LOCAL ? most : 0;
}

static const Store *find_scratch(const Kernel *kernel) {
    const Stage *stage = &kernel->stages.data[0];
    for (uint32_t i = 0; i < stage->stores.n; i++)
        if (stage->stores.data[i].is_scratch) return &stage->stores.data[i];
    return NULL;
}

void sort_place_orders(Lower *lower, SortRow *sort, Val row, Val local) {
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    sort->orders = local;
    sort->second = lower_index_const(lower, sort_local_elems(kernel, lower->variant));
    if (local) return;
    Val n = lower_extent(lower, kernel->first_reduced);
    Val scratch = lower->pointers[lower_arg(lower, find_scratch(kernel)->buffer)];
    Val first = k_mul(k, row, n);
    if (LLVMTypeOf(first) == k->i32) first = k_sext(k, first, k->i64);
    sort->orders = k_gep(k, k->i32, scratch, first);
    sort->second = k_mul(k, lower_dim(lower, kernel_n_rows(kernel)), n);
}

static const Reduce *keys_of(const SortRow *sort) {
    return &sort->row->lower->kernel->reduces.data[0];
}

static Val place_in(const SortRow *sort, Val order, Val at) {
    const Codegen *k = sort->row->lower->k;
    Val place = k_add(k, order, at);
    if (LLVMTypeOf(place) == k->i32) place = k_sext(k, place, k->i64);
    return k_gep(k, k->i32, sort->orders, place);
}

static void barrier(const SortRow *sort) {
    if (sort->barrier) sort->barrier(sort->row->lower->k);
}

/* A loop over the thread's elements of the row. */
static Loop each_element(const SortRow *sort) {
    Lower *lower = sort->row->lower;
    Val n = lower_extent(lower, lower->kernel->first_reduced);
    return loop_begin(lower->k, sort->thread, n, sort->n_threads);
}

/* The key of element `index` (i32) of the row. */
static Acc key_at(const SortRow *sort, Val index) {
    const Lower *lower = sort->row->lower;
    Point point = point_inside(sort->row);
    point.axis[lower->kernel->first_reduced] = k_index_cast(lower->k, index, lower->index_type);
    return acc_element(&point, keys_of(sort));
}

/* Whether key `a` comes before key `b`, whatever their places. */
static Val comes_before(const SortRow *sort, Acc a, Acc b) {
    Reduce ranks = *keys_of(sort);
    bool descends = ranks.combine == PRIM_MAX;
    ranks.combine = PRIM_MAX; /* a NaN first, then the greater */
    return acc_is_ahead(sort->row->lower, &ranks, descends ? b : a, descends ? a : b);
}

/* A level: the orders that it reads and writes, and the length of the runs that are in order. */
typedef struct Level {
    Val number, from, to, run; /* index_type; run is 2^number */
} Level;

/* The number of elements of the order in [low, high) that come before `key`; `is_left`: the key is
 * one of the run to their left, and equal elements come after it. */
static Val count_before(const SortRow *sort, const Level *level, Acc key, Val is_left, Val low,
                        Val high) {
    Lower *lower = sort->row->lower;
    const Codegen *k = lower->k;
    Val bounds[2] = {low, high};
    Val last = k_subi(k, lower_extent(lower, lower->kernel->first_reduced), 1);
    Loop loop = loop_over(k, k_addi(k, level->number, 1), 1);
    loop_carry(k, &loop, bounds, 2);
    Val is_open = k_slt(k, bounds[0], bounds[1]);
    Val middle = k_udivi(k, k_add(k, bounds[0], bounds[1]), 2);
    Val at = k_select(k, k_slt(k, last, middle), last, middle);
    Acc other = key_at(sort, k_load(k, k->i32, place_in(sort, level->from, at)));
    Val is_before = comes_before(sort, other, key);
    Val is_not_after = k_not(k, comes_before(sort, key, other));
    Val counts = k_select(k, is_left, is_before, is_not_after);
    Val rises = k_and(k, is_open, counts), falls = k_and(k, is_open, k_not(k, counts));
    bounds[0] = k_select(k, rises, k_addi(k, middle, 1), bounds[0]);
    bounds[1] = k_select(k, falls, middle, bounds[1]);
    loop_end(k, &loop);
    return k_sub(k, bounds[0], low);
}

static Val at_most(const Codegen *k, Val a, Val b) {
    return k_select(k, k_slt(k, a, b), a, b);
}

/* Puts the element at `at` of the order to its place in the merged run. */
static void merge_one(const SortRow *sort, const Level *level, Val at) {
    Lower *lower = sort->row->lower;
    const Codegen *k = lower->k;
    Val n = lower_extent(lower, lower->kernel->first_reduced);
    Val begin = k_sub(k, at, k_and(k, at, k_subi(k, level->run, 1)));
    Val is_left = k_eqi(k, k_and(k, at, level->run), 0);
    Val before = k_sub(k, begin, level->run), behind = k_add(k, begin, level->run);
    Val other = k_select(k, is_left, behind, before);
    Val low = at_most(k, other, n), high = at_most(k, k_add(k, other, level->run), n);
    Val index = k_load(k, k->i32, place_in(sort, level->from, at));
    Val count = count_before(sort, level, key_at(sort, index), is_left, low, high);
    Val first = k_select(k, is_left, at, k_sub(k, at, level->run));
    k_store(k, index, place_in(sort, level->to, k_add(k, first, count)));
}

/* The number of levels: the runs of the last one are half of a row, or more. */
static Val count_levels(const SortRow *sort) {
    Lower *lower = sort->row->lower;
    const Codegen *k = lower->k;
    Val n = lower_extent(lower, lower->kernel->first_reduced);
    Val levels = lower_index_const(lower, 0);
    int64_t most = variant_row_elems(lower->kernel, lower->variant);
    if (!lower->variant->sched.is_wide && most > INT32_MAX) most = INT32_MAX;
    for (int64_t run = 1; run < most; run *= 2) {
        Val is_shorter = k_slt(k, lower_index_const(lower, run), n);
        levels = k_add(k, levels, k_zext(k, is_shorter, lower->index_type));
    }
    return levels;
}

/* Merges runs until the row is one; returns where its order is. */
static Val merge_all(const SortRow *sort) {
    Lower *lower = sort->row->lower;
    const Codegen *k = lower->k;
    Val carried[2] = {lower_index_const(lower, 0), lower_index_const(lower, 1)};
    Loop levels = loop_over(k, count_levels(sort), 1);
    loop_carry(k, &levels, carried, 2);
    Level level = {.number = levels.index, .from = carried[0], .run = carried[1]};
    level.to = k_sub(k, sort->second, level.from);
    Loop elements = each_element(sort);
    merge_one(sort, &level, elements.index);
    loop_end(k, &elements);
    barrier(sort);
    carried[0] = level.to;
    carried[1] = k_add(k, level.run, level.run);
    loop_end(k, &levels);
    return carried[0];
}

static void store_results(const SortRow *sort, Val order) {
    const Lower *lower = sort->row->lower;
    const Kernel *kernel = lower->kernel;
    const Stage *stage = &kernel->stages.data[0];
    Loop elements = each_element(sort);
    Point point = point_inside(sort->row);
    point.axis[kernel->first_reduced] = elements.index;
    point.results[0] = k_load(lower->k, lower->k->i32, place_in(sort, order, elements.index));
    for (uint32_t i = 0; i < stage->stores.n; i++)
        if (!stage->stores.data[i].is_scratch) point_store(&point, &stage->stores.data[i]);
    loop_end(lower->k, &elements);
}

void sort_row(const SortRow *sort) {
    const Lower *lower = sort->row->lower;
    const Codegen *k = lower->k;
    Val first = lower_index_const(lower, 0);
    Loop elements = each_element(sort);
    Val index = k_index_cast(k, elements.index, k->i32);
    k_store(k, index, place_in(sort, first, elements.index));
    loop_end(k, &elements);
    barrier(sort);
    store_results(sort, merge_all(sort));
}
