/* Tensors of numbers that the source lists. The numbers stand in a binary tree of selects by the
 * index, which fuses into whatever reads them; equal neighbours are one leaf. See build.h. */
#include "ir/build/build.h"

#include <math.h>

typedef struct Table {
    Builder *b;
    Dtype dtype;
    const NodeId *items; /* constants */
    NodeId index;        /* i32[n] */
} Table;

/* Whether two constants of one dtype have the same bits. */
static bool is_same(const Table *t, uint32_t i, uint32_t k) {
    const Attrs *a = &graph_node(t->b->graph, t->items[i])->attrs;
    const Attrs *c = &graph_node(t->b->graph, t->items[k])->attrs;
    bool are_nan = isnan(a->number) && isnan(c->number);
    bool is_equal = a->number == c->number && signbit(a->number) == signbit(c->number);
    return a->whole == c->whole && (are_nan || is_equal);
}

/* The place between unequal neighbours that is nearest to the middle; `begin` if there is none. */
static uint32_t cut(const Table *t, uint32_t begin, uint32_t end) {
    uint32_t best = begin, middle = begin + (end - begin) / 2, distance = UINT32_MAX;
    for (uint32_t k = begin + 1; k < end; k++) {
        uint32_t off = k < middle ? middle - k : k - middle;
        if (off < distance && !is_same(t, k - 1, k)) best = k, distance = off;
    }
    return best;
}

/* The items from begin to end, where the index lies between. */
static NodeId pick(const Table *t, uint32_t begin, uint32_t end) {
    uint32_t middle = cut(t, begin, end);
    if (middle == begin) return t->items[begin];
    const Operand low = operand_tensor(pick(t, begin, middle));
    const Operand high = operand_tensor(pick(t, middle, end));
    const Operand index = operand_tensor(t->index);
    const Operand bound = operand_int(dim_const(t->b->dims, middle));
    NodeId is_low = build_eltwise(t->b, OP_LESS, 2, (const Operand[]){index, bound});
    return build_eltwise(t->b, OP_WHERE, 3, (const Operand[]){operand_tensor(is_low), low, high});
}

NodeId build_table(Builder *b, DimList shape, uint32_t n, const Operand *items, Dtype dtype) {
    const DimId length = dim_const(b->dims, n);
    const DimList flat = {1, &length};
    NodeId *constants = arena_array(b->arena, NodeId, n);
    const Operand zero = operand_int(dim_const(b->dims, 0));
    if (n == 0) return build_expand(b, build_const(b, &zero, dtype), shape);
    if (n > BUILD_MAX_TABLE) {
        build_fail(b, DIAG_LIMIT, (BuildPlace){0},
                   "a tensor of %u numbers, but at most %d are possible", n, BUILD_MAX_TABLE)
            ->help = "Read more numbers as a param, from a file of weights.";
        return NODE_NONE;
    }
    for (uint32_t i = 0; i < n; i++) {
        constants[i] = build_const(b, &items[i], dtype);
        if (constants[i] == NODE_NONE) return NODE_NONE;
    }
    const Table table = {b, dtype, constants, build_iota(b, flat, 0, DT_I32)};
    return build_reshape(b, build_expand(b, pick(&table, 0, n), flat), shape);
}
