/* Guards: lists of random conditions against brute force over every point of small loops. */
#include "interp/index_eval.h"
#include "ir/scalar.h"
#include "random/rng.h"

#include <criterion/criterion.h>

enum { N_AXES = 2, EXTENT = 12, N_LISTS = 400, N_CONDITIONS = 5 };

typedef struct World {
    Arena *arena;
    DimTab *dims;
    IndexTab *tab;
    ScalarTab *scalars;
    Rng rng;
    int64_t symbols[1]; /* value of N in 2..6 */
} World;

static World world_new(uint64_t seed) {
    World w = {.arena = arena_new(NULL), .rng = rng_new(seed)};
    w.dims = dimtab_new(w.arena);
    w.tab = indextab_new(w.arena, w.dims);
    w.scalars = scalartab_new(w.arena, w.tab);
    dim_declare(w.dims, (DimSymbol){.name = "N", .lo = 2, .hi = 6, .multiple = 1});
    w.symbols[0] = rng_between(&w.rng, 2, 6);
    for (int k = 0; k < N_AXES; k++) index_new_axis(w.tab, dim_const(w.dims, EXTENT));
    return w;
}

static bool is_inside(const World *w, const Guard *g, const int64_t *axes) {
    int64_t lo = 0, hi = 0;
    cr_assert(dim_eval(w->dims, g->lo, w->symbols, &lo));
    cr_assert(dim_eval(w->dims, g->hi, w->symbols, &hi));
    const IndexPoint point = {.axes = axes};
    int64_t at = index_eval(index_compile(w->arena, w->tab, g->index, w->symbols), &point);
    return lo <= at && at < hi;
}

static bool all_hold(const World *w, GuardId list, const int64_t *axes) {
    bool all = true;
    for (; list; list = guard_get(w->scalars, list).next) {
        Guard g = guard_get(w->scalars, list);
        all = all && is_inside(w, &g, axes);
    }
    return all;
}

/* A range of c * axis + offset, or of (axis + another) / d, from a number or N on. */
static Guard random_condition(World *w) {
    static const int64_t steps[] = {1, 1, 1, 2, 3, -1, -2};
    IndexId index = index_axis(w->tab, rng_below(&w->rng, N_AXES));
    if (rng_chance(&w->rng, 25)) index = index_add(w->tab, index, index_axis(w->tab, 0));
    if (rng_chance(&w->rng, 25))
        index = index_div(w->tab, index, dim_const(w->dims, rng_between(&w->rng, 2, 3)));
    int64_t step = steps[rng_below(&w->rng, sizeof steps / sizeof *steps)];
    index = index_scale(w->tab, index, dim_const(w->dims, step));
    DimId offset = dim_const(w->dims, rng_between(&w->rng, -12, 12));
    Guard g = {.index = index_add_dim(w->tab, index, offset)};
    g.lo = rng_chance(&w->rng, 30) ? dim_symbol(w->dims, 0)
                                   : dim_const(w->dims, rng_between(&w->rng, -9, 9));
    g.hi = dim_add(w->dims, g.lo, dim_const(w->dims, rng_between(&w->rng, 0, 14)));
    return g;
}

/* Adds a condition to the list, and compares it with both at every point. Counts the conditions
 * that are excluded. */
static GuardId add_condition(World *w, GuardId list, uint32_t *n_excluded) {
    Guard own = random_condition(w);
    GuardId both = guard_and(w->scalars, list, own.index, own.lo, own.hi);
    bool is_excluded = guard_excludes(w->scalars, both, list);
    *n_excluded += is_excluded;
    for (int64_t i = 0; i < EXTENT * EXTENT; i++) {
        const int64_t axes[N_AXES] = {i / EXTENT, i % EXTENT};
        bool expected = all_hold(w, list, axes) && is_inside(w, &own, axes);
        cr_assert_eq(all_hold(w, both, axes), expected, "point %ld", (long)i);
        cr_assert(!is_excluded || !expected, "point %ld is not excluded", (long)i);
    }
    return is_excluded ? list : both;
}

Test(guard, a_list_holds_where_all_its_conditions_do) {
    World w = world_new(1);
    uint32_t n_excluded = 0;
    for (int i = 0; i < N_LISTS; i++) {
        GuardId list = GUARD_NONE;
        for (int k = 0; k < N_CONDITIONS; k++) list = add_condition(&w, list, &n_excluded);
    }
    cr_expect_gt(n_excluded, N_LISTS / 4);
    arena_free(w.arena);
}

static GuardId and_range(World *w, GuardId outer, int64_t step, int64_t lo, int64_t hi) {
    IndexId index = index_scale(w->tab, index_axis(w->tab, 0), dim_const(w->dims, step));
    return guard_and(w->scalars, outer, index, dim_const(w->dims, lo), dim_const(w->dims, hi));
}

Test(guard, ranges_within_ranges_are_one_condition) {
    World w = world_new(1);
    GuardId list = GUARD_NONE;
    for (int64_t hi = EXTENT - 1; hi > 1; hi--) {
        list = and_range(&w, list, 1, 0, hi);
        cr_expect_not(guard_get(w.scalars, list).next, "0 to %ld", (long)hi);
        cr_expect_eq(and_range(&w, list, 1, 0, hi + 1), list, "0 to %ld again", (long)hi);
    }
    arena_free(w.arena);
}

/* 2 * i in [4, 8) and 4 * i in [0, 4), 4 * i in [1, 4), which no number is. */
Test(guard, ranges_of_different_steps_exclude_each_other) {
    World w = world_new(1);
    GuardId two = and_range(&w, GUARD_NONE, 2, 4, 8), four = and_range(&w, two, 4, 0, 4);
    cr_expect(guard_excludes(w.scalars, four, two));
    cr_expect(guard_excludes(w.scalars, and_range(&w, GUARD_NONE, 4, 1, 4), GUARD_NONE));
    cr_expect_not(guard_excludes(w.scalars, and_range(&w, two, 4, 8, 12), two));
    arena_free(w.arena);
}
