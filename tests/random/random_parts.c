/* A value and several slices of it: of a matmul, a reduction, a value computed from one, or a
 * map. */
#include "random/random_state.h"

enum { MAX_PARTS = 3 };

/* Makes the sliced value, by its number. */
static int make_whole(RandomState *s, uint64_t number) {
    static const Dtype dtypes[] = {DT_F32, DT_F16, DT_BF16, DT_F64};
    Dtype dtype = dtypes[number / 4 % 4];
    int from = RANDOM_NONE;
    if (number % 4 == 0 && !s->options.without_matmul)
        return random_make_matmul(s, OP_MATMUL, dtype, RANDOM_NONE);
    if (number % 4 == 1) {
        from = random_pick(s, dtype, 2, 4, RANDOM_NONE);
        return from == RANDOM_NONE ? from : random_make_reduce_axes(s, OP_MAX, from, 1);
    }
    if (number % 4 == 2 && !s->options.without_prelude)
        return random_make_composite(s, dtype, RANDOM_NONE);
    return random_make_eltwise(s, number % 8 < 4 ? OP_MUL : OP_SIGMOID, dtype, RANDOM_NONE);
}

/* Repeats one of the cuts, so that a part is empty. Returns the new number of parts. */
static uint32_t cut_twice(RandomState *s, DimId *cuts, uint32_t n) {
    uint32_t at = rng_below(&s->empties, n + 1);
    for (uint32_t i = n + 1; i > at; i--) cuts[i] = cuts[i - 1];
    return n + 1;
}

/* Cuts an extent: the beginnings of its parts, then its end. Returns the number of parts. */
static uint32_t cut_extent(RandomState *s, DimId extent, DimId *cuts) {
    DimId half = dim_exact_div(s->dims, extent, dim_const(s->dims, 2));
    int64_t least = dim_lo(s->dims, extent);
    uint32_t n = 0;
    cuts[n++] = dim_const(s->dims, 0);
    if (half && rng_chance(&s->rng, 40)) {
        cuts[n++] = half;
    } else {
        int64_t first = rng_between(&s->rng, 1, least - 1);
        cuts[n++] = dim_const(s->dims, first);
        if (least > first + 1 && rng_chance(&s->rng, 50))
            cuts[n++] = dim_const(s->dims, rng_between(&s->rng, first + 1, least - 1));
    }
    cuts[n] = extent;
    return n < MAX_PARTS && random_wants_empty(s) ? cut_twice(s, cuts, n) : n;
}

/* A slice along `axis` from one cut to the next, sometimes overlapping the slice before it. */
static int make_part(RandomState *s, int whole, uint32_t axis, DimId begin, DimId end) {
    const RandomValue v = *random_value(s, whole);
    Shape shape = v.shape;
    Text text = {.arena = s->arena};
    if (dim_lo(s->dims, begin) > 0 && rng_chance(&s->rng, 15))
        begin = dim_sub(s->dims, begin, dim_const(s->dims, 1));
    shape.dims[axis] = dim_sub(s->dims, end, begin);
    text_printf(&text, "%s[", v.name);
    for (uint32_t k = 0; k < axis; k++) text_puts(&text, ":, ");
    dim_print(s->dims, begin, &text);
    text_puts(&text, ":");
    dim_print(s->dims, end, &text);
    text_puts(&text, "]");
    return random_bind(s, v.dtype, &shape, v.lo, v.hi, text_str(&text));
}

/* Adds random ops after a slice. */
static void follow_part(RandomState *s, int part) {
    static const OpId ops[] = {OP_TRANSPOSE, OP_RESHAPE, OP_ABS, OP_SIGMOID, OP_ADD, OP_SLICE};
    for (uint32_t n = rng_below(&s->rng, 3); n > 0 && part != RANDOM_NONE; n--) {
        OpId op = ops[rng_below(&s->rng, sizeof ops / sizeof *ops)];
        part = random_make(s, op, random_value(s, part)->dtype, part);
    }
}

bool random_make_parts(RandomState *s, uint64_t number) {
    int whole = make_whole(s, number);
    if (whole == RANDOM_NONE) return false;
    const Shape shape = random_value(s, whole)->shape;
    if (shape.rank == 0) return false;
    uint32_t axis = rng_below(&s->rng, shape.rank);
    if (dim_lo(s->dims, shape.dims[axis]) < 2) return false;
    DimId cuts[MAX_PARTS + 1];
    int parts[MAX_PARTS];
    uint32_t n = cut_extent(s, shape.dims[axis], cuts);
    for (uint32_t i = 0; i < n; i++) {
        parts[i] = make_part(s, whole, axis, cuts[i], cuts[i + 1]);
        if (parts[i] == RANDOM_NONE) return false;
    }
    for (uint32_t i = 0; i < n; i++) follow_part(s, parts[i]);
    return true;
}
