/* Attention in its spellings: a softmax of scaled and masked scores, and its product, in one
 * expression; or the prelude's function. See random_state.h. */
#include "random/random_state.h"

#define TEXT(...) str_format(a->s->arena, __VA_ARGS__)

/* The operands: queries [.., m, d], keys [.., n, d] or stored as [.., d, n], values [.., n, c]. */
typedef struct Attention {
    RandomState *s;
    Dtype dtype, scores; /* of the operands, of the scores */
    Shape shape;         /* of the scores, [.., m, n] */
    const char *q, *k, *v;
    bool are_transposed; /* keys stored as [.., d, n] */
} Attention;

static bool chance(const Attention *a, uint32_t percent) {
    return rng_chance(&a->s->rng, percent);
}

/* `x` in the scores' dtype, from `dtype`. */
static const char *widened(const Attention *a, const char *x, Dtype dtype) {
    return dtype == a->scores ? x : TEXT("cast(%s, %s)", x, dtype_name(a->scores));
}

static const char *keys_of(const Attention *a) {
    static const char *const perms[] = {"[1, 0]", "[0, 2, 1]", "[0, 1, 3, 2]"};
    return a->are_transposed ? a->k
                             : TEXT("transpose(%s, perm=%s)", a->k, perms[a->shape.rank - 2]);
}

static const char *product(const Attention *a, const char *q, const char *k) {
    if (a->dtype == a->scores) return TEXT("(%s @ %s)", q, k);
    if (chance(a, 60)) return TEXT("matmul(%s, %s, out=f32)", q, k);
    return widened(a, TEXT("(%s @ %s)", q, k), a->dtype);
}

/* Scaled on the scores, on the queries or on the keys. */
static const char *scores_of(const Attention *a) {
    const char *k = keys_of(a);
    switch (rng_below(&a->s->rng, 5)) {
    case 0:
        return TEXT("(%s * 0.25)", product(a, a->q, k));
    case 1:
        return TEXT("(%s / 4)", product(a, a->q, k));
    case 2:
        return product(a, TEXT("(%s * 0.25)", a->q), k);
    case 3:
        return product(a, a->q, TEXT("(%s / 4)", k));
    default:
        return TEXT("(4 * tanh(%s / 16))", product(a, a->q, k));
    }
}

/* Masked by where, or by what is added. */
static const char *masked(const Attention *a, const char *scores) {
    RandomState *s = a->s;
    Shape matrix = {.rank = 2,
                    .dims = {a->shape.dims[a->shape.rank - 2], a->shape.dims[a->shape.rank - 1]}};
    const char *mn = random_shape_str(s, &matrix);
    const char *past = TEXT("iota(%s, axis=1) <= iota(%s, axis=0)", mn, mn);
    switch (rng_below(&s->rng, 5)) {
    case 0:
        return TEXT("where(%s, %s, -inf)", past, scores);
    case 1:
        return TEXT("where(!(%s), -inf, %s)", past, scores);
    case 2: {
        Dtype dtype = chance(a, 50) ? a->scores : DT_BF16;
        int bias = random_input(s, dtype, &matrix);
        return TEXT("(%s + %s)", scores, widened(a, random_value(s, bias)->name, dtype));
    }
    default:
        return scores;
    }
}

/* The softmax and the product. */
static const char *attended(const Attention *a, const char *x) {
    RandomState *s = a->s;
    bool is_short = a->dtype != a->scores;
    const char *axis = TEXT(", axis=%u, keep=true)", a->shape.rank - 1);
    const char *power = TEXT("exp(%s - max(%s%s)", x, x, axis);
    const char *total = TEXT("sum(%s%s", power, axis), *weights;
    switch (rng_below(&s->rng, 5)) {
    case 0:
        weights = TEXT("(%s / %s)", power, total);
        break;
    case 1:
        weights = TEXT("(%s * (1 / %s))", power, total);
        break;
    case 2: {
        const char *of = is_short ? TEXT("cast(%s, %s)", power, dtype_name(a->dtype)) : power;
        const char *y = widened(a, TEXT("(%s @ %s)", of, a->v), a->dtype);
        y = TEXT("%s / %s", y, total);
        return is_short ? TEXT("cast(%s, %s)", y, dtype_name(a->dtype)) : y;
    }
    default:
        weights = TEXT("softmax(%s)", x);
        break;
    }
    if (is_short) weights = TEXT("cast(%s, %s)", weights, dtype_name(a->dtype));
    return TEXT("%s @ %s", weights, a->v);
}

static const char *by_name(const Attention *a) {
    const char *more = chance(a, 40) ? ", is_causal=true" : "";
    return TEXT("attention(%s, %s, %s, scale=0.25%s)", a->q, a->k, a->v, more);
}

int random_make_attention(RandomState *s, Dtype dtype, int arg) {
    int from = random_pick(s, dtype, 2, 4, arg);
    if (from == RANDOM_NONE) return RANDOM_NONE;
    Shape queries = random_value(s, from)->shape, keys = queries, values = queries;
    uint32_t rank = queries.rank;
    Attention a = {.s = s, .dtype = dtype, .scores = dtype_compute(dtype), .shape = queries};
    DimId n = s->pool[rng_below(&s->rng, RANDOM_POOL)];
    Shape result = queries;
    bool is_named = chance(&a, 30);
    keys.dims[rank - 2] = values.dims[rank - 2] = a.shape.dims[rank - 1] = n;
    values.dims[rank - 1] = result.dims[rank - 1] = s->pool[rng_below(&s->rng, RANDOM_POOL)];
    if (rank > 2 && chance(&a, 20)) /* one head of keys and values */
        keys.dims[rank - 3] = values.dims[rank - 3] = dim_const(s->dims, 1);
    if (!is_named && chance(&a, 40)) {
        a.are_transposed = true;
        keys.dims[rank - 2] = queries.dims[rank - 1], keys.dims[rank - 1] = n;
    }
    if (!random_fits(s, &keys) || !random_fits(s, &values) || !random_fits(s, &result) ||
        !random_fits(s, &a.shape))
        return RANDOM_NONE;
    double lo = -4, hi = 4;
    a.q = random_within(s, from, &lo, &hi);
    a.k = random_value(s, random_input(s, dtype, &keys))->name;
    int v = random_input(s, dtype, &values);
    const RandomValue of = *random_value(s, v);
    a.v = of.name;
    const char *text = is_named ? by_name(&a) : attended(&a, masked(&a, scores_of(&a)));
    int made = random_bind(s, dtype, &result, of.lo, of.hi, text);
    if (made != RANDOM_NONE && !is_named)
        s->program.statements.data[s->program.statements.n - 1].is_online = chance(&a, 50);
    return made;
}
