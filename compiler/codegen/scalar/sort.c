/* An order lists the row's elements. Runs of SORT_RUN elements are put in order in registers. A
 * level then merges pairs of runs from one order to the other, until one run is left. A merged run
 * is cut into chunks of consecutive places. A binary search finds how many elements of the left and
 * of the right run come before a chunk (merge path); two pointers then merge the chunk. Of equal
 * elements those of the left run come first, so the sort is stable. See sort.h.
 *
 * On a GPU an element of an order is its number in the row, and its key is read through it. On a
 * CPU (`is_packed`) it is an integer of twice the key's bits: the key in the upper half, as an
 * unsigned number that has the order of the sort, and the number in the lower half.
 *
 * If the stores read the first places of an order alone, a merge of two runs that have as many
 * leaves out what comes behind them. The runs of the next level then lie half as far. A CPU that
 * keeps few places inserts items into a list, which few items enter. */
#include "codegen/scalar/sort.h"

#include <math.h>

int64_t sort_local_elems(const Kernel *kernel, const Variant *variant) {
    int64_t most = variant_row_elems(kernel, variant);
    if (most < 1) return 1; /* no array is empty */
    return most <= SORT_LOCAL ? most : 0;
}

static const Reduce *reduce_of(const Lower *lower) {
    return &lower->kernel->reduces.data[0];
}

static const Store *find_scratch(const Kernel *kernel) {
    const Stage *stage = &kernel->stages.data[0];
    for (uint32_t i = 0; i < stage->stores.n; i++)
        if (stage->stores.data[i].is_scratch) return &stage->stores.data[i];
    return NULL;
}

static bool is_packed(const Lower *lower) {
    return lower->k->target->has->cores;
}

static LLVMTypeRef item_type(const Lower *lower) {
    uint32_t n_bytes = sort_item_bytes(lower->kernel, is_packed(lower));
    return LLVMIntTypeInContext(lower->k->context, 8 * n_bytes);
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
    sort->orders = k_gep(k, item_type(lower), scratch, first);
    sort->second = k_mul(k, lower_dim(lower, kernel_n_rows(kernel)), n);
}

static Lower *lower_of(const SortRow *sort) {
    return sort->row->lower;
}

/* The number of elements of the row. */
static Val length(const SortRow *sort) {
    return lower_extent(lower_of(sort), lower_of(sort)->kernel->first_reduced);
}

/* The address of the item at a place of an order. */
static Val place_in(const SortRow *sort, Val order, Val at) {
    const Codegen *k = lower_of(sort)->k;
    return k_gep(k, item_type(lower_of(sort)), order, k_index_cast(k, at, k->i64));
}

/* The order that begins `first` (index_type) items after the first one. */
static Val order_at(const SortRow *sort, Val first) {
    return place_in(sort, sort->orders, first);
}

static void barrier(const SortRow *sort) {
    if (sort->barrier) sort->barrier(lower_of(sort)->k);
}

/* Items: an element on its way from order to order. A packed one is a value alone, another one has
 * its key as value and its number as index. */

static bool descends(const Lower *lower) {
    return reduce_of(lower)->combine == PRIM_MAX;
}

/* An integer of the keys' width for each of `lanes` lanes. */
static Val rank_const(const Lower *lower, int64_t value, uint32_t lanes) {
    const Codegen *k = lower->k;
    uint32_t n_bits = 8 * dtype_bytes(reduce_of(lower)->acc);
    Val one = k_int(LLVMIntTypeInContext(k->context, n_bits), value);
    return lanes > 1 ? k_splat(k, one, lanes) : one;
}

Val sort_rank(const Lower *lower, Val key, uint32_t lanes) {
    const Codegen *k = lower->k;
    uint32_t n_bits = 8 * dtype_bytes(reduce_of(lower)->acc);
    int64_t most = n_bits == 64 ? INT64_MAX : INT32_MAX;
    Val rank = key, zero = rank_const(lower, 0, lanes);
    if (dtype_is_float(reduce_of(lower)->acc)) {
        Val is_nan = k_fcmp(k, LLVMRealUNO, key, key);
        Val is_zero = k_fcmp(k, LLVMRealOEQ, key, LLVMConstNull(LLVMTypeOf(key)));
        Val bits = k_select(k, is_zero, zero, k_bitcast(k, key, LLVMTypeOf(zero)));
        Val sign = k_ashr(k, bits, rank_const(lower, n_bits - 1, lanes));
        Val below = k_lshr(k, sign, rank_const(lower, 1, lanes));
        rank = k_xor(k, bits, below); /* as a signed number */
        rank = k_select(k, is_nan, rank_const(lower, most, lanes), rank);
    }
    return k_xor(k, rank, rank_const(lower, descends(lower) ? most : -most - 1, lanes));
}

/* The item of element `index` (i32) of the row. */
static Acc item_of(const SortRow *sort, Val index) {
    const Lower *lower = lower_of(sort);
    const Codegen *k = lower->k;
    Point point = point_inside(sort->row);
    point.axis[lower->kernel->first_reduced] = k_index_cast(k, index, lower->index_type);
    Acc item = acc_element(&point, reduce_of(lower));
    item.index = index;
    if (!is_packed(lower)) return item;
    LLVMTypeRef type = item_type(lower);
    Val rank = k_zext(k, sort_rank(lower, item.value, 1), type);
    rank = k_shli(k, rank, 8 * dtype_bytes(reduce_of(lower)->acc));
    return (Acc){k_or(k, rank, k_zext(k, index, type)), NULL};
}

/* An item that no item comes behind. */
static Acc item_last(const SortRow *sort) {
    const Lower *lower = lower_of(sort);
    const Codegen *k = lower->k;
    const Reduce *reduce = reduce_of(lower);
    if (is_packed(lower)) return (Acc){k_int(item_type(lower), -1), NULL};
    Acc last = acc_identity(lower, reduce, 1);
    if (dtype_is_float(reduce->acc) && !descends(lower_of(sort)))
        last.value = LLVMConstReal(LLVMTypeOf(last.value), NAN);
    last.index = k_i32(k, INT32_MAX);
    return last;
}

static Acc item_load(const SortRow *sort, Val order, Val at) {
    const Lower *lower = lower_of(sort);
    Val item = k_load(lower->k, item_type(lower), place_in(sort, order, at));
    return is_packed(lower) ? (Acc){item, NULL} : item_of(sort, item);
}

static void item_store(const SortRow *sort, Val order, Val at, Acc item) {
    Val value = is_packed(lower_of(sort)) ? item.value : item.index;
    k_store(lower_of(sort)->k, value, place_in(sort, order, at));
}

/* Whether the key of `b` comes before that of `a`. */
static Val key_is_ahead(const SortRow *sort, Acc a, Acc b) {
    const Lower *lower = lower_of(sort);
    if (is_packed(lower)) return k_ult(lower->k, b.value, a.value);
    Reduce ranks = *reduce_of(lower);
    ranks.combine = PRIM_MAX; /* a NaN first, then the greater */
    return descends(lower_of(sort)) ? acc_is_ahead(lower, &ranks, a, b)
                                    : acc_is_ahead(lower, &ranks, b, a);
}

/* Whether `b` comes before `a`; of equal keys the lower number comes first. */
static Val item_is_ahead(const SortRow *sort, Acc a, Acc b) {
    const Codegen *k = lower_of(sort)->k;
    Val is_ahead = key_is_ahead(sort, a, b);
    if (is_packed(lower_of(sort))) return is_ahead;
    Val is_lower = k_slt(k, b.index, a.index), is_behind = key_is_ahead(sort, b, a);
    return k_or(k, is_ahead, k_and(k, is_lower, k_not(k, is_behind)));
}

/* Runs. */

/* Puts the elements from `first` (index_type) in order, up to SORT_RUN or the end of the row: a
 * network that exchanges neighbours, so that equal ones keep their order. */
static void sort_run(const SortRow *sort, Val first, uint32_t n) {
    const Codegen *k = lower_of(sort)->k;
    Val rest = k_sub(k, length(sort), first), exists[SORT_RUN];
    Acc items[SORT_RUN];
    for (uint32_t i = 0; i < n; i++) {
        exists[i] = i ? k_slt(k, lower_index_const(lower_of(sort), i), rest) : NULL;
        Val at = k_offset(k, first, i);
        if (i) at = k_select(k, exists[i], at, first);
        items[i] = item_of(sort, k_index_cast(k, at, k->i32));
        if (i) items[i] = acc_select(lower_of(sort), exists[i], items[i], item_last(sort));
    }
    for (uint32_t round = 0; round < n; round++)
        for (uint32_t i = round % 2; i + 1 < n; i += 2) {
            Val swaps = key_is_ahead(sort, items[i], items[i + 1]);
            Acc low = acc_select(lower_of(sort), swaps, items[i + 1], items[i]);
            items[i + 1] = acc_select(lower_of(sort), swaps, items[i], items[i + 1]);
            items[i] = low;
        }
    for (uint32_t i = 0; i < n; i++) {
        If is_in = if_begin(k, exists[i]);
        item_store(sort, sort->orders, k_offset(k, first, i), items[i]);
        if_end(k, &is_in);
    }
}

/* The number of parts of 2^`shift` items of `n`, the last of which may be shorter. */
static Val count_parts(const Codegen *k, Val n, Val shift) {
    return k_addi(k, k_ashr(k, k_subi(k, n, 1), shift), 1);
}

static void sort_runs(const SortRow *sort) {
    Lower *lower = lower_of(sort);
    int64_t most = variant_row_elems(lower->kernel, lower->variant);
    uint32_t n = most >= SORT_RUN ? SORT_RUN : most > 1 ? (uint32_t)most : 1;
    Val shift = lower_index_const(lower, SORT_RUN_LOG2);
    Val n_runs = count_parts(lower->k, length(sort), shift);
    Loop runs = loop_begin(lower->k, sort->thread, n_runs, sort->n_threads);
    sort_run(sort, k_shl(lower->k, runs.index, shift), n);
    loop_end(lower->k, &runs);
    barrier(sort);
}

/* Merges. */

/* A level: the orders that it reads and writes, and the runs that are in order. */
typedef struct Level {
    Val from, to;    /* pointers */
    Val length;      /* index_type: the items of `from` */
    Val run_log2;    /* index_type: the length of the runs, 2^run_log2 */
    Val merged_log2; /* index_type: of two runs */
    Val places_log2; /* index_type: the places of two runs that are kept, 2^places_log2 */
} Level;

/* Two neighbouring runs: the places where they begin, and where the right one ends. Equal places: a
 * run has no elements. */
typedef struct Pair {
    Val left, right, end;
} Pair;

/* A chunk of a merge: the next place to write, the next places to read, and their items. */
typedef struct Chunk {
    Val to, left, right;
    Acc a, b;
} Chunk;

static Val least(const Codegen *k, Val a, Val b) {
    return k_select(k, k_slt(k, a, b), a, b);
}

static Val greatest(const Codegen *k, Val a, Val b) {
    return k_select(k, k_slt(k, a, b), b, a);
}

/* The item at a place of a run that ends at `end`, where the last item stands. A packed one is read
 * there too: the memory has one item more. */
static Acc item_before(const SortRow *sort, const Level *level, Val at, Val end) {
    Lower *lower = lower_of(sort);
    const Codegen *k = lower->k;
    Val last = k_index_cast(k, k_subi(k, level->length, 1), LLVMTypeOf(at));
    Acc item = item_load(sort, level->from, is_packed(lower) ? at : least(k, at, last));
    Acc behind = item_last(sort);
    return acc_select(lower, k_slt(k, at, end), item, behind);
}

/* Sets where the chunk reads: how many elements of the left run are among the first `n` of the
 * merged run, by binary search. */
static void find_chunk(const SortRow *sort, const Level *level, const Pair *pair, Val n,
                       Chunk *chunk) {
    const Codegen *k = lower_of(sort)->k;
    Val n_left = k_sub(k, pair->right, pair->left), n_right = k_sub(k, pair->end, pair->right);
    Val zero = k_int(LLVMTypeOf(n), 0);
    Val low = greatest(k, zero, k_sub(k, n, n_right)), high = least(k, n, n_left);
    Val bounds[2] = {low, high};
    Loop steps = loop_over(k, k_addi(k, level->run_log2, 1), 1);
    loop_carry(k, &steps, bounds, 2);
    Val middle = k_lshri(k, k_add(k, bounds[0], bounds[1]), 1);
    Val other = k_subi(k, k_sub(k, k_add(k, pair->right, n), middle), 1);
    Acc left = item_before(sort, level, k_add(k, pair->left, middle), pair->right);
    Acc right = item_before(sort, level, greatest(k, other, pair->right), pair->end);
    Val is_open = k_slt(k, bounds[0], bounds[1]);
    Val is_later = item_is_ahead(sort, left, right);
    Val falls = k_and(k, is_open, is_later), rises = k_and(k, is_open, k_not(k, is_later));
    bounds[0] = k_select(k, rises, k_addi(k, middle, 1), bounds[0]);
    bounds[1] = k_select(k, falls, middle, bounds[1]);
    loop_end(k, &steps);
    chunk->left = k_add(k, pair->left, bounds[0]);
    chunk->right = k_add(k, pair->right, k_sub(k, n, bounds[0]));
}

/* Reads the item behind the one that was written, which was that of the right run if `takes`. A CPU
 * reads both runs: a load costs less than the choice of an address. */
static void read_chunk(const SortRow *sort, const Level *level, const Pair *pair, Val takes,
                       Chunk *chunk) {
    const Lower *lower = lower_of(sort);
    const Codegen *k = lower->k;
    LLVMTypeRef type = LLVMTypeOf(chunk->left);
    chunk->right = k_add(k, chunk->right, k_zext(k, takes, type));
    chunk->left = k_add(k, chunk->left, k_zext(k, k_not(k, takes), type));
    if (is_packed(lower)) {
        chunk->a = item_before(sort, level, chunk->left, pair->right);
        chunk->b = item_before(sort, level, chunk->right, pair->end);
        return;
    }
    Val at = k_select(k, takes, chunk->right, chunk->left);
    Acc item = item_before(sort, level, at, k_select(k, takes, pair->end, pair->right));
    chunk->a = acc_select(lower, takes, chunk->a, item);
    chunk->b = acc_select(lower, takes, item, chunk->b);
}

/* Merges `n` places of the pair, from place `first` of the merged run on, which begins at `to`. */
static void merge_span(const SortRow *sort, const Level *level, const Pair *pair, Val to, Val first,
                       Val n) {
    const Codegen *k = lower_of(sort)->k;
    Chunk chunks[SORT_MAX_CHUNKS];
    uint32_t n_chunks = sort->n_chunks;
    Val steps = n_chunks > 1 ? k_udivi(k, k_addi(k, n, n_chunks - 1), n_chunks) : n;
    for (uint32_t i = 0; i < n_chunks; i++) {
        Chunk *chunk = &chunks[i];
        Val at = first;
        if (i) { /* the last chunks may overlap */
            Val last = k_sub(k, n, steps);
            at = k_add(k, first, least(k, k_muli(k, steps, i), last));
        }
        chunk->to = k_add(k, to, at);
        if (i || sort->span_log2 != SORT_WHOLE)
            find_chunk(sort, level, pair, at, chunk);
        else
            chunk->left = pair->left, chunk->right = pair->right;
        chunk->a = item_before(sort, level, chunk->left, pair->right);
        chunk->b = item_before(sort, level, chunk->right, pair->end);
    }
    Loop loop = loop_over(k, steps, 1);
    for (uint32_t i = 0; i < n_chunks; i++) {
        loop_carry(k, &loop, &chunks[i].left, 1);
        loop_carry(k, &loop, &chunks[i].right, 1);
        acc_loop_carry(k, &loop, &chunks[i].a, 1);
        acc_loop_carry(k, &loop, &chunks[i].b, 1);
    }
    for (uint32_t i = 0; i < n_chunks; i++) {
        Val takes = item_is_ahead(sort, chunks[i].a, chunks[i].b);
        Acc item = acc_select(lower_of(sort), takes, chunks[i].b, chunks[i].a);
        item_store(sort, level->to, k_add(k, chunks[i].to, loop.index), item);
        read_chunk(sort, level, pair, takes, &chunks[i]);
    }
    loop_end(k, &loop);
}

/* An index as code computes with it in loops: of 64 bits on a CPU, which has no others in
 * addresses. */
static Val widen(const SortRow *sort, Val index) {
    const Codegen *k = lower_of(sort)->k;
    return is_packed(lower_of(sort)) ? k_index_cast(k, index, k->i64) : index;
}

/* Sets the runs of the pair that becomes merged run number `number`. */
static Pair find_pair(const SortRow *sort, const Level *level, Val number) {
    Lower *lower = lower_of(sort);
    const Codegen *k = lower->k;
    Val left = k_shl(k, number, level->merged_log2);
    Val run = k_shl(k, lower_index_const(lower, 1), level->run_log2);
    Val rest = k_sub(k, level->length, left), n_left = least(k, run, rest);
    Val n_right = least(k, run, k_sub(k, rest, n_left));
    Pair pair = {.left = widen(sort, left)};
    pair.right = k_add(k, pair.left, widen(sort, n_left));
    pair.end = k_add(k, pair.right, widen(sort, n_right));
    return pair;
}

/* The items that a level leaves: those of all merged runs. */
static Val length_merged(const Lower *lower, const Level *level) {
    const Codegen *k = lower->k;
    Val last = k_subi(k, count_parts(k, level->length, level->merged_log2), 1);
    Val rest = k_sub(k, level->length, k_shl(k, last, level->merged_log2));
    Val places = k_shl(k, lower_index_const(lower, 1), level->places_log2);
    Val of_last = least(k, places, rest);
    return k_add(k, k_shl(k, last, level->places_log2), of_last);
}

static void merge_level(const SortRow *sort, const Level *level, Val merged) {
    Lower *lower = lower_of(sort);
    const Codegen *k = lower->k;
    Val shift = level->places_log2;
    if (sort->span_log2 != SORT_WHOLE)
        shift = least(k, lower_index_const(lower, sort->span_log2), shift);
    Loop spans = loop_begin(k, sort->thread, count_parts(k, merged, shift), sort->n_threads);
    Val at = k_shl(k, spans.index, shift), number = k_lshr(k, at, level->places_log2);
    Pair pair = find_pair(sort, level, number);
    Val begin = k_shl(k, number, level->places_log2), one = lower_index_const(lower, 1);
    Val rest = k_sub(k, merged, begin);
    Val places = least(k, k_shl(k, one, level->places_log2), rest);
    Val n = k_sub(k, k_add(k, begin, places), at);
    if (sort->span_log2 != SORT_WHOLE) n = least(k, n, k_shl(k, one, shift));
    Val to = widen(sort, begin), first = widen(sort, k_sub(k, at, begin));
    merge_span(sort, level, &pair, to, first, widen(sort, n));
    loop_end(k, &spans);
    barrier(sort);
}

/* The number of levels: the runs of the last one are half of a row, or more. */
static Val count_levels(const SortRow *sort) {
    Lower *lower = lower_of(sort);
    const Codegen *k = lower->k;
    Val levels = lower_index_const(lower, 0);
    int64_t most = variant_row_elems(lower->kernel, lower->variant);
    if (!lower->variant->sched.is_wide && most > INT32_MAX) most = INT32_MAX;
    for (int64_t run = SORT_RUN; run < most; run *= 2) {
        Val is_shorter = k_slt(k, lower_index_const(lower, run), length(sort));
        levels = k_add(k, levels, k_zext(k, is_shorter, lower->index_type));
    }
    return levels;
}

/* Merges runs until the row is one, or its first places; returns where its order is, and sets how
 * many places it has. */
static Val merge_all(const SortRow *sort, Val *n_places) {
    Lower *lower = lower_of(sort);
    const Codegen *k = lower->k;
    Val kept_log2 = lower_index_const(lower, sort_kept_log2(lower->kernel));
    Val from = lower_index_const(lower, 0);
    *n_places = length(sort);
    Loop levels = loop_over(k, count_levels(sort), 1);
    loop_carry(k, &levels, &from, 1);
    loop_carry(k, &levels, n_places, 1);
    Val to = k_sub(k, sort->second, from), run = k_addi(k, levels.index, SORT_RUN_LOG2);
    Level level = {.length = *n_places, .run_log2 = least(k, run, kept_log2)};
    level.merged_log2 = k_addi(k, level.run_log2, 1);
    level.places_log2 = least(k, level.merged_log2, kept_log2);
    level.from = order_at(sort, from);
    level.to = order_at(sort, to);
    *n_places = length_merged(lower, &level);
    merge_level(sort, &level, *n_places);
    from = to;
    loop_end(k, &levels);
    return order_at(sort, from);
}

void sort_store(const Point *row, Val place, Val number) {
    const Stage *stage = &row->lower->kernel->stages.data[0];
    Point point = point_inside(row);
    point.axis[row->lower->kernel->first_reduced] = place;
    point.results[0] = number;
    for (uint32_t i = 0; i < stage->stores.n; i++)
        if (!stage->stores.data[i].is_scratch) point_store(&point, &stage->stores.data[i]);
}

static void store_results(const SortRow *sort, Val order, Val n) {
    const Lower *lower = lower_of(sort);
    const Codegen *k = lower->k;
    Loop elements = loop_begin(k, sort->thread, n, sort->n_threads);
    Val item = k_load(k, item_type(lower), place_in(sort, order, elements.index));
    sort_store(sort->row, elements.index, is_packed(lower) ? k_trunc(k, item, k->i32) : item);
    loop_end(k, &elements);
}

void sort_row(const SortRow *sort) {
    Val n_places;
    sort_runs(sort);
    Val order = merge_all(sort, &n_places);
    store_results(sort, order, n_places);
}
