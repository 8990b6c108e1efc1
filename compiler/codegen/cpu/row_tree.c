/* The balanced tree over chains that are side by side in vectors. See row.h.
 *
 * Each level joins neighbouring chains and packs the results of two vectors into one: first within
 * blocks of 16 bytes, then block by block, which is one instruction per half. Chains are combined
 * lane by lane, so the order of the lanes does not matter; TreeLanes tracks it. */
#include "codegen/cpu/row.h"

enum { BLOCK_BYTES = 16 };

static Val shuffle(const Codegen *k, Val a, Val b, const uint32_t *from, uint32_t n) {
    Val *lanes = arena_array(k->arena, Val, n);
    for (uint32_t i = 0; i < n; i++) lanes[i] = k_i32(k, from[i]);
    if (!b) b = LLVMGetPoison(LLVMTypeOf(a));
    return k_shuffle(k, a, b, LLVMConstVector(lanes, n));
}

/* A shuffle of value and index. `b` without a value: of `a` alone. */
static Acc shuffle_acc(const Codegen *k, Acc a, Acc b, const uint32_t *from, uint32_t n) {
    Acc acc = {.value = shuffle(k, a.value, b.value, from, n)};
    if (a.index) acc.index = shuffle(k, a.index, b.index, from, n);
    return acc;
}

TreeLanes tree_lanes(uint32_t width) {
    TreeLanes lanes = {.width = width, .n_rows = 1};
    for (uint32_t i = 0; i < width; i++) lanes.chains[i] = (uint8_t)i;
    return lanes;
}

/* The lane distance from each even chain to its neighbour: one lane, or a block. */
static uint32_t neighbour(const TreeLanes *lanes) {
    uint32_t distance = 1;
    while (lanes->rows[distance] != lanes->rows[0] ||
           lanes->chains[distance] != lanes->chains[0] + 1)
        distance++;
    return distance;
}

/* Lists the lanes of even chains of two vectors: alternating within each block, or block after
 * block. */
static void list_even(const TreeLanes *lanes, uint32_t block, uint32_t distance, uint32_t *even) {
    uint32_t n = 0, run = distance < block && block < lanes->width ? block : lanes->width;
    for (uint32_t begin = 0; begin < lanes->width; begin += run)
        for (uint32_t side = 0; side < 2; side++)
            for (uint32_t i = begin; i < begin + run; i++)
                if (lanes->chains[i] % 2 == 0) even[n++] = side * lanes->width + i;
}

/* The lanes of the vector that takes lanes `even` of two vectors. */
static TreeLanes next_lanes(const TreeLanes *lanes, bool are_rows, const uint32_t *even) {
    TreeLanes next = *lanes;
    uint32_t width = lanes->width;
    if (are_rows) next.n_rows *= 2;
    for (uint32_t i = 0; i < width; i++) {
        uint32_t side = even[i] / width, from = even[i] % width;
        uint32_t chain = lanes->chains[from] + (are_rows ? 0 : side * width);
        next.rows[i] = (uint8_t)(lanes->rows[from] + (are_rows ? side * lanes->n_rows : 0));
        next.chains[i] = (uint8_t)(chain / 2);
    }
    return next;
}

Acc tree_join(const Lower *lower, const Reduce *reduce, Acc *partials, uint32_t n, bool are_rows,
              TreeLanes *lanes) {
    const Codegen *k = lower->k;
    uint32_t block = BLOCK_BYTES / dtype_bytes(reduce->acc), width = lanes->width;
    for (; n > 1; n /= 2) {
        uint32_t even[MAX_TREE_LANES], odd[MAX_TREE_LANES], distance = neighbour(lanes);
        list_even(lanes, block, distance, even);
        for (uint32_t i = 0; i < width; i++) odd[i] = even[i] + distance;
        for (uint32_t j = 0; j < n; j += 2) {
            Acc first = shuffle_acc(k, partials[j], partials[j + 1], even, width);
            Acc second = shuffle_acc(k, partials[j], partials[j + 1], odd, width);
            partials[j / 2] = acc_combine(lower, reduce, first, second);
        }
        *lanes = next_lanes(lanes, are_rows, even);
    }
    return partials[0];
}

Acc tree_sort(const Lower *lower, Acc acc, const TreeLanes *lanes) {
    uint32_t from[MAX_TREE_LANES];
    bool is_sorted = true;
    for (uint32_t i = 0; i < lanes->width; i++) {
        from[lanes->rows[i]] = i;
        is_sorted = is_sorted && lanes->rows[i] == i;
    }
    return is_sorted ? acc : shuffle_acc(lower->k, acc, (Acc){NULL, NULL}, from, lanes->width);
}

/* Within one vector every lane takes part in a pair, although half would suffice: this takes one
 * shuffle. */
Acc tree_of_row(const Lower *lower, const Reduce *reduce, Acc *partials, uint32_t n,
                uint32_t width) {
    const Codegen *k = lower->k;
    TreeLanes lanes = tree_lanes(width);
    Acc all = width == 1 ? partials[0] : tree_join(lower, reduce, partials, n, false, &lanes);
    for (uint32_t n_left = width; n_left > 1; n_left /= 2) {
        uint32_t distance = neighbour(&lanes), from[MAX_TREE_LANES];
        for (uint32_t i = 0; i < width; i++) {
            from[i] = lanes.chains[i] % 2 ? i - distance : i + distance;
            lanes.chains[i] /= 2;
        }
        Acc other = shuffle_acc(k, all, (Acc){NULL, NULL}, from, width);
        all = acc_combine(lower, reduce, all, other);
    }
    if (width == 1) return all;
    Val first = k_i32(k, 0);
    all.value = k_extract_at(k, all.value, first);
    if (all.index) all.index = k_extract_at(k, all.index, first);
    return all;
}
