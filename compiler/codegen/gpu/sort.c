/* GPU sorts: a block sorts a row (codegen/scalar/sort.h). Short rows have their orders in shared
 * memory.
 *
 * Of a row of which few first places are read, each round finds one: the least item that is greater
 * than that of the round before. An item is a key's rank and, in its lower half, the element's
 * number, so no two are equal. A thread keeps the items of a short row in registers. */
#include "codegen/gpu/gpu.h"
#include "codegen/scalar/sort.h"

enum { MAX_HELD = 8 };

typedef struct Select {
    Lower *lower;
    const Point *row;
    Val n, thread;        /* index_type */
    uint32_t n_held;      /* items of a thread in registers; 0: the row is long */
    Val held[MAX_HELD];   /* i64 */
    Val best_of_warps[2]; /* shared memory of even and of odd rounds */
} Select;

static Val least(const Codegen *k, Val a, Val b) {
    return k_select(k, k_ult(k, a, b), a, b);
}

/* The item (i64) of an element of the row; -1 behind its end, which is the greatest. */
static Val item_at(const Select *select, Val at) {
    const Lower *lower = select->lower;
    const Codegen *k = lower->k;
    Point point = point_inside(select->row);
    Val exists = k_slt(k, at, select->n);
    Val inside = k_select(k, exists, at, lower_index_const(lower, 0));
    point.axis[lower->kernel->first_reduced] = inside;
    Acc element = acc_element(&point, &lower->kernel->reduces.data[0]);
    Val rank = k_zext(k, sort_rank(lower, element.value, 1), k->i64);
    Val number = k_zext(k, k_index_cast(k, inside, k->i32), k->i64);
    Val high = k_shli(k, rank, 32);
    return k_select(k, exists, k_or(k, high, number), k_i64(k, -1));
}

static void hold(Select *select) {
    const Lower *lower = select->lower;
    int64_t most = variant_row_elems(lower->kernel, lower->variant);
    uint32_t threads = lower->variant->sched.threads;
    if (most > (int64_t)MAX_HELD * threads) return;
    select->n_held = (uint32_t)((most + threads - 1) / threads);
    for (uint32_t i = 0; i < select->n_held; i++) {
        Val at = k_addi(lower->k, select->thread, (int64_t)i * threads);
        select->held[i] = item_at(select, at);
    }
}

/* The lesser of `best` and of the item, if that is not below `next`. */
static Val take(const Codegen *k, Val best, Val item, Val next) {
    Val taken = k_select(k, k_ult(k, item, next), k_i64(k, -1), item);
    return least(k, best, taken);
}

/* The least item of the thread that is not below `next`. */
static Val best_of_thread(const Select *select, Val next) {
    const Codegen *k = select->lower->k;
    Val best = k_i64(k, -1);
    for (uint32_t i = 0; i < select->n_held; i++) best = take(k, best, select->held[i], next);
    if (select->n_held) return best;
    Loop items = loop_begin(k, select->thread, select->n, select->lower->variant->sched.threads);
    loop_carry(k, &items, &best, 1);
    best = take(k, best, item_at(select, items.index), next);
    loop_end(k, &items);
    return best;
}

/* Of `n` neighbouring lanes, a power of two. */
static Val best_of_lanes(const Codegen *k, Val best, uint32_t n) {
    for (uint32_t offset = 1; offset < n; offset *= 2) {
        Val own = k_bitcast(k, best, k->f64);
        Val other = gpu_shuffle_xor(k, own, offset);
        best = least(k, best, k_bitcast(k, other, k->i64));
    }
    return best;
}

/* Of all warps, by an array that the next round leaves alone: one barrier is enough. */
static Val best_of_block(const Select *select, Val best, Val round) {
    const Codegen *k = select->lower->k;
    uint32_t n_warps = select->lower->variant->sched.threads / WARP_THREADS;
    if (n_warps == 1) return best;
    Val thread = gpu_thread(k), parity = k_andi(k, k_index_cast(k, round, k->i32), 1);
    Val array =
        k_select(k, k_nei(k, parity, 0), select->best_of_warps[1], select->best_of_warps[0]);
    Val lane = k_andi(k, thread, WARP_THREADS - 1);
    If leads = if_begin(k, k_eqi(k, lane, 0));
    Val warp = k_lshri(k, thread, 5);
    k_store(k, best, k_gep(k, k->i64, array, warp));
    if_end(k, &leads);
    gpu_barrier(k);
    uint32_t n_lanes = 1;
    while (n_lanes < n_warps) n_lanes *= 2;
    Val one = k_smin(k, k_andi(k, lane, n_lanes - 1), k_i32(k, n_warps - 1));
    best = best_of_lanes(k, k_load(k, k->i64, k_gep(k, k->i64, array, one)), n_lanes);
    return best;
}

/* Thread i finds the number of the element at place i, and stores what the stage stores there. */
static void select_row(Select *select) {
    Lower *lower = select->lower;
    const Codegen *k = lower->k;
    Val most = lower_index_const(lower, sort_kept(lower->kernel));
    Val n_places = k_select(k, k_slt(k, select->n, most), select->n, most);
    Val next = k_i64(k, 0), number = k_i32(k, 0);
    hold(select);
    Val own = best_of_thread(select, next);
    Loop rounds = loop_over(k, n_places, 1);
    loop_carry(k, &rounds, &next, 1);
    loop_carry(k, &rounds, &number, 1);
    loop_carry(k, &rounds, &own, 1);
    /* A thread whose item was taken has another one. */
    Val is_taken = k_ult(k, own, next);
    LLVMBasicBlockRef before = k_here(k);
    If was_taken = if_begin(k, is_taken);
    Val other = best_of_thread(select, next);
    LLVMBasicBlockRef behind = k_here(k);
    if_end(k, &was_taken);
    own = k_merge(k, other, behind, own, before);
    Val best = best_of_lanes(k, own, WARP_THREADS);
    best = best_of_block(select, best, rounds.index);
    Val is_own = k_eq(k, select->thread, rounds.index);
    number = k_select(k, is_own, k_trunc(k, best, k->i32), number);
    next = k_addi(k, best, 1);
    loop_end(k, &rounds);
    If has_place = if_begin(k, k_slt(k, select->thread, n_places));
    sort_store(select->row, select->thread, number);
    if_end(k, &has_place);
}

static void emit_select(Lower *lower, const Point *row) {
    const Codegen *k = lower->k;
    uint32_t n_warps = lower->variant->sched.threads / WARP_THREADS;
    Select select = {.lower = lower,
                     .row = row,
                     .n = lower_extent(lower, lower->kernel->first_reduced),
                     .thread = gpu_index(lower, gpu_thread(k))};
    if (n_warps > 1) {
        select.best_of_warps[0] = gpu_shared(k, k->i64, 2 * n_warps, "best");
        select.best_of_warps[1] = k_gep(k, k->i64, select.best_of_warps[0], k_i32(k, n_warps));
    }
    If has_elements = if_begin(k, k_slt(k, lower_index_const(lower, 0), select.n));
    select_row(&select);
    if_end(k, &has_elements);
}

static void emit_sort(Lower *lower, Point *row, Val number) {
    const Codegen *k = lower->k;
    int64_t n_local = sort_local_elems(lower->kernel, lower->variant);
    int64_t most = variant_row_elems(lower->kernel, lower->variant);
    SortRow sort = {.row = row,
                    .thread = gpu_index(lower, gpu_thread(k)),
                    .n_threads = lower->variant->sched.threads,
                    .span_log2 = sort_span_log2(most),
                    .n_chunks = 1,
                    .barrier = gpu_barrier};
    sort_place_orders(lower, &sort, number,
                      n_local ? gpu_shared(k, k->i32, (uint32_t)(2 * n_local), "orders") : NULL);
    sort_row(&sort);
}

void emit_gpu_sort(Lower *lower) {
    Point point = point_new(lower, 1);
    Val row = gpu_block(lower);
    lower_split(lower, row, 0, lower->kernel->n_parallel, &point);
    if (sort_selects(lower->kernel, false))
        emit_select(lower, &point);
    else
        emit_sort(lower, &point, row);
}
