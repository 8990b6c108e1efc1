/* Dims: canonical forms against naive evaluation of random expressions over random symbol values.
 */
#include "ir/dim/dim_sum.h"
#include "ir/graph.h"
#include "ir/predicate.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdlib.h>

enum { N_SYMBOLS = 4 };

typedef struct World {
    Arena *arena;
    DimTab *tab;
    Rng rng;
} World;

static World world_new(uint64_t seed) {
    World w = {.arena = arena_new(NULL), .rng = rng_new(seed)};
    w.tab = dimtab_new(w.arena);
    dim_declare(w.tab, (DimSymbol){.name = "B", .lo = 1, .hi = 64, .multiple = 1});
    dim_declare(w.tab, (DimSymbol){.name = "H", .lo = 8, .hi = 96, .multiple = 8});
    dim_declare(w.tab, (DimSymbol){.name = "W", .lo = 0, .hi = 33, .multiple = 3});
    dim_declare(w.tab, (DimSymbol){.name = "S", .lo = 5, .hi = 5, .multiple = 5});
    return w;
}

/* The same random sequence over an empty table: look-up is linear in what a table holds. */
static void world_renew(World *w) {
    Rng rng = w->rng;
    arena_free(w->arena);
    *w = world_new(0);
    w->rng = rng;
}

static void draw_symbols(World *w, int64_t values[N_SYMBOLS]) {
    for (uint32_t s = 0; s < N_SYMBOLS; s++) {
        const DimSymbol *symbol = dim_symbol_info(w->tab, s);
        int64_t first = (symbol->lo + symbol->multiple - 1) / symbol->multiple;
        values[s] = rng_between(&w->rng, first, symbol->hi / symbol->multiple) * symbol->multiple;
    }
}

/* A random expression, with its value for one set of symbol values computed beside it. */
typedef struct Pair {
    DimId dim;
    int64_t value;
} Pair;

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static Pair leaf(World *w, const int64_t *values) {
    if (rng_chance(&w->rng, 40)) {
        int64_t c = rng_between(&w->rng, -4, 9);
        return (Pair){dim_const(w->tab, c), c};
    }
    uint32_t s = rng_below(&w->rng, N_SYMBOLS);
    return (Pair){dim_symbol(w->tab, s), values[s]};
}

static Pair grow(World *w, const int64_t *values, int depth) {
    if (depth == 0 || rng_chance(&w->rng, 15)) return leaf(w, values);
    Pair a = grow(w, values, depth - 1), b = grow(w, values, depth - 1), r = a;
    int64_t factor = rng_between(&w->rng, -3, 5), step = rng_between(&w->rng, 1, 5);
    switch (rng_below(&w->rng, 6)) {
    case 0:
        r = (Pair){dim_add(w->tab, a.dim, b.dim), a.value + b.value};
        break;
    case 1:
        r = (Pair){dim_sub(w->tab, a.dim, b.dim), a.value - b.value};
        break;
    case 2:
        r = (Pair){dim_mul(w->tab, a.dim, b.dim), a.value * b.value};
        break;
    case 3:
        r = (Pair){dim_mul_const(w->tab, a.dim, factor), a.value * factor};
        break;
    case 4:
        r = (Pair){dim_ceil_div(w->tab, a.dim, step), -floor_div(-a.value, step)};
        break;
    case 5:
        if (!b.dim || dim_lo(w->tab, b.dim) <= 0) return a;
        r = (Pair){dim_div(w->tab, a.dim, b.dim), floor_div(a.value, b.value)};
        break;
    }
    return r.dim ? r : a; /* too large: keep what there was */
}

Test(dim, random_expressions_have_their_value) {
    World w = world_new(1);
    uint32_t n_divisions = 0;
    for (int i = 0; i < 6000; i++) {
        if (i % 50 == 0) world_renew(&w);
        int64_t values[N_SYMBOLS], value = 0;
        draw_symbols(&w, values);
        Pair p = grow(&w, values, 4);
        cr_assert(dim_eval(w.tab, p.dim, values, &value));
        cr_assert_eq(value, p.value, "%s", dim_str(w.tab, w.arena, p.dim));
        cr_assert(value >= dim_lo(w.tab, p.dim) && value <= dim_hi(w.tab, p.dim),
                  "%s is %lld, outside [%lld, %lld]", dim_str(w.tab, w.arena, p.dim),
                  (long long)value, (long long)dim_lo(w.tab, p.dim),
                  (long long)dim_hi(w.tab, p.dim));
        int64_t multiple = dim_multiple(w.tab, p.dim);
        cr_assert(multiple ? value % multiple == 0 : value == 0, "%s is %lld, no multiple of %lld",
                  dim_str(w.tab, w.arena, p.dim), (long long)value, (long long)multiple);
        for (uint32_t t = 0; t < dim_n_terms(w.tab, p.dim); t++)
            n_divisions += dim_atom(w.tab, dim_term(w.tab, p.dim, t).atoms[0]).is_division;
    }
    cr_expect_gt(n_divisions, 100u, "the sample holds divisions");
    arena_free(w.arena);
}

#define EXPECT_SAME(x, y)                                                              \
    do {                                                                               \
        DimId x_ = (x), y_ = (y);                                                      \
        cr_expect(x_ == y_ || !x_ || !y_, "%s is not %s", dim_str(w.tab, w.arena, x_), \
                  dim_str(w.tab, w.arena, y_));                                        \
    } while (0)

Test(dim, equal_polynomials_have_one_id) {
    World w = world_new(2);
    for (int i = 0; i < 1500; i++) {
        if (i % 50 == 0) world_renew(&w);
        int64_t values[N_SYMBOLS];
        draw_symbols(&w, values);
        DimId a = grow(&w, values, 2).dim, b = grow(&w, values, 2).dim, c = grow(&w, values, 2).dim;
        EXPECT_SAME(dim_add(w.tab, a, b), dim_add(w.tab, b, a));
        EXPECT_SAME(dim_mul(w.tab, a, b), dim_mul(w.tab, b, a));
        EXPECT_SAME(dim_sub(w.tab, dim_add(w.tab, a, b), b), a);
        EXPECT_SAME(dim_sub(w.tab, a, a), dim_const(w.tab, 0));
        EXPECT_SAME(dim_add(w.tab, dim_add(w.tab, a, b), c),
                    dim_add(w.tab, a, dim_add(w.tab, b, c)));
        EXPECT_SAME(dim_mul(w.tab, dim_mul(w.tab, a, b), c),
                    dim_mul(w.tab, a, dim_mul(w.tab, b, c)));
        EXPECT_SAME(dim_mul(w.tab, a, dim_add(w.tab, b, c)),
                    dim_add(w.tab, dim_mul(w.tab, a, b), dim_mul(w.tab, a, c)));
        EXPECT_SAME(dim_mul_const(w.tab, a, -2),
                    dim_sub(w.tab, dim_sub(w.tab, a, a), dim_add(w.tab, a, a)));
    }
    arena_free(w.arena);
}

Test(dim, exact_division_undoes_multiplication) {
    World w = world_new(3);
    uint32_t n_found = 0;
    for (int i = 0; i < 3000; i++) {
        if (i % 50 == 0) world_renew(&w);
        int64_t values[N_SYMBOLS];
        draw_symbols(&w, values);
        DimId a = grow(&w, values, 2).dim, b = grow(&w, values, 2).dim;
        DimId q = dim_exact_div(w.tab, a, b);
        if (q) {
            n_found++;
            cr_assert_eq(dim_mul(w.tab, q, b), a, "%s / %s", dim_str(w.tab, w.arena, a),
                         dim_str(w.tab, w.arena, b));
        }
        int64_t c;
        DimId ab = dim_mul(w.tab, a, b);
        bool is_single = dim_n_terms(w.tab, b) == 1 && dim_constant_part(w.tab, b) == 0;
        if (ab && (is_single || (dim_is_const(w.tab, b, &c) && c)))
            cr_assert_eq(dim_exact_div(w.tab, ab, b), a, "(%s) * (%s)", dim_str(w.tab, w.arena, a),
                         dim_str(w.tab, w.arena, b));
    }
    cr_expect_gt(n_found, 100u);
    arena_free(w.arena);
}

Test(dim, questions_are_answered_soundly) {
    World w = world_new(4);
    for (int i = 0; i < 3000; i++) {
        if (i % 50 == 0) world_renew(&w);
        int64_t values[N_SYMBOLS];
        draw_symbols(&w, values);
        Pair a = grow(&w, values, 3), b = grow(&w, values, 3);
        if (dim_always_le(w.tab, a.dim, b.dim))
            cr_assert_leq(a.value, b.value, "%s <= %s", dim_str(w.tab, w.arena, a.dim),
                          dim_str(w.tab, w.arena, b.dim));
        int64_t c;
        if (dim_is_const(w.tab, a.dim, &c)) cr_assert_eq(a.value, c);
        uint64_t used = dim_symbols_used(w.tab, a.dim);
        for (uint32_t s = 0; s < N_SYMBOLS; s++) { /* a symbol not used does not matter */
            if (used >> s & 1) continue;
            int64_t value, other[N_SYMBOLS], drawn[N_SYMBOLS];
            draw_symbols(&w, drawn);
            for (uint32_t k = 0; k < N_SYMBOLS; k++) other[k] = k == s ? drawn[k] : values[k];
            cr_assert(dim_eval(w.tab, a.dim, other, &value));
            cr_assert_eq(value, a.value);
        }
    }
    arena_free(w.arena);
}

/* Reads what dim_print wrote: sums of products of names, numbers and bracketed divisions. */
typedef struct Reader {
    const char *at;
    const World *world;
    const int64_t *values;
} Reader;

static int64_t read_sum(Reader *r);

static void skip_blanks(Reader *r) {
    while (*r->at == ' ') r->at++;
}

static int64_t read_factor(Reader *r) {
    skip_blanks(r);
    if (*r->at == '-') {
        r->at++;
        return -read_factor(r);
    }
    if (*r->at == '(') {
        r->at++;
        int64_t value = read_sum(r);
        skip_blanks(r);
        cr_assert_eq(*r->at, ')');
        r->at++;
        return value;
    }
    if (isdigit((unsigned char)*r->at)) {
        char *end;
        int64_t value = strtoll(r->at, &end, 10);
        r->at = end;
        return value;
    }
    for (uint32_t s = 0; s < N_SYMBOLS; s++)
        if (*r->at == *dim_symbol_info(r->world->tab, s)->name) {
            r->at++;
            return r->values[s];
        }
    cr_assert_fail("unreadable: %s", r->at);
    return 0;
}

static int64_t read_product(Reader *r) {
    int64_t value = read_factor(r);
    for (skip_blanks(r); *r->at == '*' || *r->at == '/'; skip_blanks(r)) {
        bool divides = *r->at++ == '/';
        int64_t other = read_factor(r);
        value = divides ? floor_div(value, other) : value * other;
    }
    return value;
}

static int64_t read_sum(Reader *r) {
    int64_t value = read_product(r);
    for (skip_blanks(r); *r->at == '+' || *r->at == '-'; skip_blanks(r)) {
        bool subtracts = *r->at++ == '-';
        int64_t other = read_product(r);
        value = subtracts ? value - other : value + other;
    }
    return value;
}

/* Halves and thirds that are rounded down and up, and what is left of them. */
Test(dim, rounded_parts_are_no_more_than_the_whole) {
    World w = world_new(1);
    DimTab *tab = w.tab;
    DimId b = dim_symbol(tab, 0), one = dim_const(tab, 1), two = dim_const(tab, 2);
    DimId low = dim_div(tab, b, two), high = dim_ceil_div(tab, b, 2);
    DimId both = dim_add(tab, low, high);
    cr_expect(dim_prove_le(tab, both, b) && dim_prove_le(tab, b, both));
    cr_expect(!dim_prove_le(tab, both, dim_sub(tab, b, one)));
    DimId rest = dim_sub(tab, dim_round_up(tab, b, 3), b), half = dim_div(tab, rest, two);
    cr_expect(dim_prove_le(tab, dim_sub(tab, rest, half), one));
    cr_expect(dim_prove_le(tab, half, one));
    cr_expect(!dim_prove_le(tab, rest, one));
    cr_expect(!dim_prove_le(tab, half, dim_const(tab, 0)));
    arena_free(w.arena);
}

Test(dim, printing_reads_back_to_the_value) {
    World w = world_new(5);
    for (int i = 0; i < 3000; i++) {
        if (i % 50 == 0) world_renew(&w);
        int64_t values[N_SYMBOLS];
        draw_symbols(&w, values);
        Pair p = grow(&w, values, 3);
        const char *text = dim_str(w.tab, w.arena, p.dim);
        Reader r = {.at = text, .world = &w, .values = values};
        cr_assert_eq(read_sum(&r), p.value, "%s", text);
        cr_assert_eq(*r.at, '\0', "%s", text);
    }
    arena_free(w.arena);
}

Test(dim, divisions_that_simplify_do) {
    World w = world_new(6);
    DimTab *t = w.tab;
    DimId b = dim_symbol(t, 0), h = dim_symbol(t, 1), one = dim_const(t, 1), two = dim_const(t, 2);
    DimId bh = dim_mul(t, b, h);
    cr_expect_eq(dim_div(t, bh, b), h);
    cr_expect_eq(dim_div(t, dim_mul_const(t, b, 6), two), dim_mul_const(t, b, 3));
    cr_expect_eq(dim_exact_div(t, dim_add(t, bh, h), dim_add(t, b, one)), h);
    cr_expect_eq(dim_div(t, dim_add(t, dim_mul_const(t, b, 4), one), two), dim_mul_const(t, b, 2));
    cr_expect_eq(dim_ceil_div(t, dim_const(t, 7), 2), dim_const(t, 4));
    cr_expect_eq(dim_div(t, dim_const(t, -7), two), dim_const(t, -4));
    cr_expect_str_eq(dim_str(t, w.arena, dim_div(t, dim_add(t, b, one), two)), "((B + 1) / (2))");
    cr_expect_eq(dim_div(t, b, dim_symbol(t, 2)), DIM_NONE, "W may be 0");
    arena_free(w.arena);
}

Test(dim, too_large_is_none_and_none_propagates) {
    World w = world_new(7);
    DimTab *t = w.tab;
    DimId b = dim_symbol(t, 0), large = dim_const(t, DIM_LIMIT / 2);
    cr_expect_neq(large, DIM_NONE);
    cr_expect_eq(dim_mul(t, large, b), DIM_NONE);
    cr_expect_eq(dim_mul_const(t, large, 3), DIM_NONE);
    cr_expect_eq(dim_add(t, dim_add(t, large, large), dim_const(t, 1)), DIM_NONE);
    cr_expect_eq(dim_const(t, INT64_MAX), DIM_NONE);
    cr_expect_eq(dim_add(t, DIM_NONE, b), DIM_NONE);
    cr_expect_eq(dim_mul(t, b, DIM_NONE), DIM_NONE);
    cr_expect_eq(dim_div(t, DIM_NONE, b), DIM_NONE);
    cr_expect_eq(dim_sub(t, b, DIM_NONE), DIM_NONE);
    DimId power = b;
    for (int i = 0; i < 12; i++) power = dim_mul(t, power, b);
    cr_expect_eq(power, DIM_NONE, "64^13 passes 2^62");
    arena_free(w.arena);
}

/* A remainder lies below its divisor, and rounding up adds less than one step, whatever the dim. */
Test(dim, remainders_have_their_bounds) {
    Arena *arena = arena_new(NULL);
    DimTab *dims = dimtab_new(arena);
    dim_declare(dims, (DimSymbol){.name = "A", .lo = 0, .hi = 40, .multiple = 1});
    DimId a = dim_symbol(dims, 0);
    DimId seven = dim_const(dims, 7), four = dim_const(dims, 4);
    DimId quotient = dim_div(dims, a, seven);
    DimId rest = dim_sub(dims, a, dim_mul(dims, seven, quotient));
    cr_expect(dim_lo(dims, rest) == 0 && dim_hi(dims, rest) == 6);
    DimId up = dim_mul(dims, four, dim_ceil_div(dims, a, 4));
    DimId added = dim_sub(dims, up, a);
    cr_expect(dim_lo(dims, added) == 0 && dim_hi(dims, added) == 3);
    DimId both = dim_add(dims, dim_mul_const(dims, rest, 3), added);
    cr_expect(dim_lo(dims, both) >= 0 && dim_hi(dims, both) == 21);
    arena_free(arena);
}

/* The bytes of many temporaries, each rounded up: bounds stay right, and are found at once. */
Test(dim, sums_of_many_rounded_sizes_take_no_time, .timeout = 10) {
    Arena *arena = arena_new(NULL);
    DimTab *dims = dimtab_new(arena);
    dim_declare(dims, (DimSymbol){.name = "A", .lo = 1, .hi = 40, .multiple = 1});
    DimId a = dim_symbol(dims, 0), sum = dim_const(dims, 0);
    int64_t most = 0, least = 0, values[1] = {40}, value = 0;
    for (int64_t i = 1; i <= 40; i++) {
        sum = dim_add(dims, sum, dim_round_up(dims, dim_mul_const(dims, a, 2 * i - 1), 256));
        most += (40 * (2 * i - 1) + 255) / 256 * 256;
        least += 256;
    }
    cr_expect(dim_hi(dims, sum) >= most && dim_lo(dims, sum) <= least);
    cr_expect(dim_eval(dims, sum, values, &value) && value == most);
    arena_free(arena);
}

/* The table outlives whoever declares a symbol that follows a rule. */
Test(dim, rules_are_the_tables_own) {
    World w = world_new(1);
    Arena *other = arena_new(NULL);
    DimRule rule = {.extent = dim_symbol(w.tab, 0), .padded = 64};
    DimSymbol symbol = {.name = str_format(other, "x.pitch"),
                        .lo = 1,
                        .hi = 64,
                        .multiple = 1,
                        .rule = arena_copy(other, &rule, sizeof rule)};
    uint32_t index = dim_declare(w.tab, symbol);
    const DimSymbol *own = dim_symbol_info(w.tab, index);
    cr_expect(own->rule != symbol.rule && own->name != symbol.name);
    arena_free(other);
    cr_expect_str_eq(own->name, "x.pitch");
    cr_expect_eq(own->rule->padded, 64);
    arena_free(w.arena);
}

/* More different dims than the sum keeps apart, each several times. */
Test(dim, a_quotient_of_a_quotient_is_one) {
    World w = world_new(1);
    DimId t = dim_symbol(w.tab, 0), two = dim_const(w.tab, 2), half = dim_div(w.tab, t, two);
    cr_expect_eq(dim_div(w.tab, half, two), dim_div(w.tab, t, dim_const(w.tab, 4)));
    DimId up = dim_ceil_div(w.tab, dim_ceil_div(w.tab, t, 4), 2);
    cr_expect_eq(up, dim_ceil_div(w.tab, t, 8));
    DimId more = dim_div(w.tab, dim_add(w.tab, half, dim_const(w.tab, 3)), t);
    for (int64_t at = 1; at <= 64; at++) {
        int64_t values[DIM_MAX_SYMBOLS] = {at}, found;
        cr_expect(dim_eval(w.tab, up, values, &found) && found == (at + 7) / 8);
        cr_expect(dim_eval(w.tab, more, values, &found) && found == (at / 2 + 3) / at);
    }
    arena_free(w.arena);
}

Test(dim, a_sum_of_many_dims_is_what_additions_give) {
    World w = world_new(3);
    DimId b = dim_symbol(w.tab, 0), expected = dim_const(w.tab, 0);
    DimSum sum = dim_sum_new(w.tab);
    for (int64_t i = 0; i < 1000; i++) {
        DimId dim = dim_mul_const(w.tab, i % 3 ? b : dim_const(w.tab, 1), i * i % 29);
        dim_sum_add(&sum, dim);
        expected = dim_add(w.tab, expected, dim);
    }
    cr_expect_eq(dim_sum_total(&sum), expected);
    dim_sum_add(&sum, dim_const(w.tab, DIM_LIMIT - 1));
    cr_expect_eq(dim_sum_total(&sum), DIM_NONE, "the sum is beyond the limit");
    dim_sum_add(&sum, b);
    cr_expect_eq(dim_sum_total(&sum), DIM_NONE);
    arena_free(w.arena);
}

/* What is left of a dim behind its half, and of a number by a dim. */
Test(dim, rests_of_divisions_are_in_their_ranges) {
    World w = world_new(5);
    DimTab *dims = w.tab;
    DimId b = dim_symbol(dims, 0), s = dim_symbol(dims, 3), two = dim_const(dims, 2);
    DimId half = dim_div(dims, b, two), behind = dim_sub(dims, b, half);
    cr_expect_eq(dim_lo(dims, behind), 1);
    cr_expect_eq(dim_hi(dims, behind), 32);
    DimId third = dim_sub(dims, behind, dim_div(dims, b, dim_const(dims, 3)));
    cr_expect_eq(dim_lo(dims, third), 1);
    DimId rest = dim_sub(dims, two, dim_mul(dims, b, dim_div(dims, two, b)));
    cr_expect_eq(dim_lo(dims, rest), 0);
    cr_expect_eq(dim_hi(dims, rest), 2, "%lld", (long long)dim_hi(dims, rest));
    DimId of_s = dim_sub(dims, b, dim_mul(dims, s, dim_div(dims, b, s)));
    cr_expect_eq(dim_lo(dims, of_s), 0);
    cr_expect_eq(dim_hi(dims, of_s), 4);
    arena_free(w.arena);
}

/* Terms of which each by itself reaches far: they are bounded together. */
Test(dim, ranges_of_products_beside_their_factors) {
    World w = world_new(5);
    DimTab *dims = w.tab;
    DimId one = dim_const(dims, 1), m, k;
    m = dim_symbol(dims, dim_declare(dims, (DimSymbol){"m", 2, 8, 1, NULL}));
    k = dim_symbol(dims, dim_declare(dims, (DimSymbol){"k", 1, 64, 1, NULL}));
    DimId less = dim_sub(dims, m, one), rows = dim_mul(dims, less, k);
    cr_expect(dim_lo(dims, rows) == 1 && dim_hi(dims, rows) == 448);
    DimId square = dim_mul(dims, m, less);
    cr_expect(dim_lo(dims, square) == 2 && dim_hi(dims, square) == 56);
    DimId negative = dim_sub(dims, k, dim_mul(dims, m, k));
    cr_expect(dim_lo(dims, negative) == -448 && dim_hi(dims, negative) == -1);
    DimId corner = dim_mul(dims, less, dim_sub(dims, k, one));
    cr_expect(dim_lo(dims, corner) == 0 && dim_hi(dims, corner) == 441);
    arena_free(w.arena);
}
