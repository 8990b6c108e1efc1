/* Index expressions: simplified forms against brute force over every value of small axes. */
#include "interp/index_eval.h"
#include "ir/index.h"
#include "random/rng.h"

#include <criterion/criterion.h>

enum { N_AXES = 4, MAX_NODES = 64 };

/* A random expression kept twice: naively as a tree, and as the table's id. */
typedef enum {
    TREE_CONST,
    TREE_AXIS,
    TREE_ADD,
    TREE_SCALE,
    TREE_REVERSE,
    TREE_DIV,
    TREE_MOD
} TreeKind;

typedef struct Tree {
    TreeKind kind;
    int a, b;  /* children */
    DimId dim; /* const, operand, divisor */
    uint32_t axis;
    IndexId id;
} Tree;

typedef struct World {
    Arena *arena;
    DimTab *dims;
    IndexTab *tab;
    Rng rng;
    int64_t symbols[1]; /* value of N in 2..6 */
    int64_t extents[N_AXES];
    Tree trees[MAX_NODES];
    int n_trees;
} World;

static World world_new(uint64_t seed) {
    World w = {.arena = arena_new(NULL), .rng = rng_new(seed)};
    w.dims = dimtab_new(w.arena);
    w.tab = indextab_new(w.arena, w.dims);
    dim_declare(w.dims, (DimSymbol){.name = "N", .lo = 2, .hi = 6, .multiple = 1});
    w.symbols[0] = rng_between(&w.rng, 2, 6);
    static const int64_t choices[] = {1, 2, 3, 4, 6, 8};
    for (int k = 0; k < N_AXES; k++) {
        DimId extent = rng_chance(&w.rng, 30) ? dim_symbol(w.dims, 0)
                                              : dim_const(w.dims, choices[rng_below(&w.rng, 6)]);
        index_new_axis(w.tab, extent);
        cr_assert(dim_eval(w.dims, extent, w.symbols, &w.extents[k]));
    }
    return w;
}

static int64_t dim_value(const World *w, DimId dim) {
    int64_t value = -1;
    cr_assert(dim_eval(w->dims, dim, w->symbols, &value));
    return value;
}

static int64_t tree_eval(const World *w, int at, const int64_t *axes) {
    const Tree *t = &w->trees[at];
    switch (t->kind) {
    case TREE_CONST:
        return dim_value(w, t->dim);
    case TREE_AXIS:
        return axes[t->axis];
    case TREE_ADD:
        return tree_eval(w, t->a, axes) + tree_eval(w, t->b, axes);
    case TREE_SCALE:
        return tree_eval(w, t->a, axes) * dim_value(w, t->dim);
    case TREE_REVERSE:
        return dim_value(w, t->dim) - tree_eval(w, t->a, axes);
    case TREE_DIV:
        return tree_eval(w, t->a, axes) / dim_value(w, t->dim);
    case TREE_MOD:
        return tree_eval(w, t->a, axes) % dim_value(w, t->dim);
    }
    return -1;
}

static int64_t expr_value(const World *w, IndexId id, const int64_t *axes) {
    IndexExpr e = index_expr(w->tab, id);
    int64_t total = dim_value(w, e.offset);
    for (uint32_t i = 0; i < e.n_terms; i++) {
        IndexAtom atom = index_atom(w->tab, e.terms[i].atom);
        int64_t c = dim_value(w, e.terms[i].coefficient), inner = 0, value = 0;
        if (atom.kind == ATOM_DIV || atom.kind == ATOM_MOD) {
            inner = expr_value(w, atom.operand, axes);
            cr_assert_geq(inner, 0, "divides a negative index");
        }
        switch (atom.kind) {
        case ATOM_AXIS:
            value = axes[atom.axis];
            break;
        case ATOM_DIV:
            value = inner / dim_value(w, atom.divisor);
            break;
        case ATOM_MOD:
            value = inner % dim_value(w, atom.divisor);
            break;
        case ATOM_VALUE:
            cr_assert_fail("no values here");
            break;
        }
        total += c * value;
    }
    return total;
}

/* A positive dim: small constants, N, or a product with it. */
static DimId random_dim(World *w) {
    DimId n = dim_symbol(w->dims, 0), c = dim_const(w->dims, rng_between(&w->rng, 1, 6));
    if (rng_chance(&w->rng, 65)) return c;
    return rng_chance(&w->rng, 50) ? n : dim_mul(w->dims, n, c);
}

static int grow(World *w, int depth) {
    Tree t = {.kind = TREE_AXIS, .axis = rng_below(&w->rng, N_AXES)};
    uint32_t choice = depth ? rng_below(&w->rng, 10) : rng_below(&w->rng, 2) * 9;
    if (choice >= 2 && choice <= 8) t.a = grow(w, depth - 1);
    t.dim = random_dim(w);
    if (choice == 9) {
        t.kind = TREE_CONST;
        t.id = index_dim(w->tab, t.dim);
    } else if (choice < 2) {
        t.id = index_axis(w->tab, t.axis);
    } else if (choice <= 4) {
        t.kind = TREE_ADD;
        t.b = grow(w, depth - 1);
        t.id = index_add(w->tab, w->trees[t.a].id, w->trees[t.b].id);
    } else if (choice == 5 && rng_chance(&w->rng, 50) && index_max(w->tab, w->trees[t.a].id)) {
        t.kind = TREE_REVERSE;
        t.dim = index_max(w->tab, w->trees[t.a].id);
        IndexId down = index_scale(w->tab, w->trees[t.a].id, dim_const(w->dims, -1));
        t.id = index_add_dim(w->tab, down, t.dim);
    } else if (choice == 5) {
        t.kind = TREE_SCALE;
        t.id = index_scale(w->tab, w->trees[t.a].id, t.dim);
    } else {
        t.kind = choice == 6 ? TREE_MOD : TREE_DIV;
        t.id = t.kind == TREE_MOD ? index_mod(w->tab, w->trees[t.a].id, t.dim)
                                  : index_div(w->tab, w->trees[t.a].id, t.dim);
    }
    cr_assert_lt(w->n_trees, MAX_NODES);
    w->trees[w->n_trees] = t;
    return w->n_trees++;
}

static bool next_point(const World *w, int64_t *axes) {
    for (int k = N_AXES; k-- > 0;) {
        if (++axes[k] < w->extents[k]) return true;
        axes[k] = 0;
    }
    return false;
}

static const char *index_str(const World *w, IndexId id) {
    Text text = {.arena = w->arena};
    index_print(w->tab, id, &text);
    return text_str(&text);
}

static void expect_values(World *w, int root) {
    IndexId id = w->trees[root].id;
    DimId max = index_max(w->tab, id), min = index_min(w->tab, id);
    int64_t axes[N_AXES] = {0};
    uint32_t depends = index_axes(w->tab, id);
    const IndexCode *code = index_compile(w->arena, w->tab, id, w->symbols);
    IndexPoint point = {.axes = axes};
    cr_assert(code);
    do {
        int64_t want = tree_eval(w, root, axes), got = expr_value(w, id, axes);
        cr_assert_eq(want, got, "%s is %lld, not %lld, at [%lld %lld %lld %lld], N = %lld",
                     index_str(w, id), (long long)got, (long long)want, (long long)axes[0],
                     (long long)axes[1], (long long)axes[2], (long long)axes[3],
                     (long long)w->symbols[0]);
        cr_assert_eq(index_eval(code, &point), want, "%s compiled is %lld", index_str(w, id),
                     (long long)index_eval(code, &point));
        cr_assert(!max || got <= dim_value(w, max), "%s has a larger value than its maximum",
                  index_str(w, id));
        cr_assert(!min || got >= dim_value(w, min), "%s has a smaller value than its minimum",
                  index_str(w, id));
        int64_t other[N_AXES];
        for (int k = 0; k < N_AXES; k++) other[k] = depends >> k & 1 ? axes[k] : 0;
        cr_assert_eq(expr_value(w, id, other), got, "%s depends on more axes than it says",
                     index_str(w, id));
    } while (next_point(w, axes));
}

Test(index, simplified_expressions_keep_their_values, .timeout = 60) {
    for (uint64_t seed = 0; seed < 2500; seed++) {
        World w = world_new(seed);
        expect_values(&w, grow(&w, 4));
        arena_free(w.arena);
    }
}

static int64_t lane_value(const World *w, IndexId id, const int64_t *axes, uint32_t axis,
                          int64_t lane) {
    int64_t moved[N_AXES];
    for (int k = 0; k < N_AXES; k++) moved[k] = axes[k];
    moved[axis] += lane;
    return expr_value(w, id, moved);
}

/* Whole groups of lanes only: an axis whose extent is no multiple of `lanes` ends in a rest that is
 * run lane by lane. */
static void expect_motion(const World *w, IndexId id, uint32_t axis, uint32_t lanes) {
    LaneMotion motion = index_lane_motion(w->tab, id, axis, lanes);
    bool is_multiple = index_is_multiple(w->tab, id, axis, lanes);
    int64_t axes[N_AXES] = {0};
    do {
        if (axes[axis] % lanes || axes[axis] + lanes > w->extents[axis]) continue;
        int64_t first = expr_value(w, id, axes);
        for (int64_t lane = 1; lane < lanes && motion != LANES_VARYING; lane++) {
            int64_t step = motion == LANES_CONTIGUOUS ? lane : 0;
            cr_assert_eq(lane_value(w, id, axes, axis, lane), first + step,
                         "%s, %u lanes along i%u", index_str(w, id), lanes, axis);
        }
        if (is_multiple)
            cr_assert_eq(first % lanes, 0, "%s is no multiple of %u", index_str(w, id), lanes);
    } while (next_point(w, axes));
}

Test(index, lane_motion_is_as_promised, .timeout = 60) {
    uint32_t n_contiguous = 0, n_uniform = 0;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        World w = world_new(seed + 20000);
        IndexId id = w.trees[grow(&w, 3)].id;
        for (uint32_t axis = 0; axis < N_AXES; axis++)
            for (uint32_t lanes = 1; lanes <= 4; lanes *= 2) {
                expect_motion(&w, id, axis, lanes);
                LaneMotion motion = index_lane_motion(w.tab, id, axis, lanes);
                n_contiguous += motion == LANES_CONTIGUOUS;
                n_uniform += motion == LANES_UNIFORM && (index_axes(w.tab, id) >> axis & 1);
            }
        arena_free(w.arena);
    }
    cr_expect_gt(n_contiguous, 100u, "the sample holds contiguous motion");
    cr_expect_gt(n_uniform, 20u, "and uniform motion that is not trivial");
}

/* Named facts. */

typedef struct Plain {
    Arena *arena;
    DimTab *dims;
    IndexTab *tab;
    DimId n; /* symbolic, 1..1000 */
} Plain;

static Plain plain_new(void) {
    Plain p = {.arena = arena_new(NULL)};
    p.dims = dimtab_new(p.arena);
    p.tab = indextab_new(p.arena, p.dims);
    dim_declare(p.dims, (DimSymbol){.name = "N", .lo = 1, .hi = 1000, .multiple = 1});
    p.n = dim_symbol(p.dims, 0);
    return p;
}

Test(index, splitting_and_joining_an_axis_cancels) {
    Plain p = plain_new();
    DimId divisors[] = {dim_const(p.dims, 7), p.n, dim_mul_const(p.dims, p.n, 3)};
    uint32_t axis = index_new_axis(p.tab, dim_mul_const(p.dims, p.n, 100));
    IndexId i = index_axis(p.tab, axis);
    for (int k = 0; k < 3; k++) {
        DimId d = divisors[k];
        IndexId back =
            index_add(p.tab, index_scale(p.tab, index_div(p.tab, i, d), d), index_mod(p.tab, i, d));
        cr_expect_eq(back, i);
    }
    arena_free(p.arena);
}

Test(index, an_axis_split_into_several_joins_again) {
    Plain p = plain_new();
    DimId rows = p.n, columns = dim_mul_const(p.dims, p.n, 3), all = dim_mul(p.dims, rows, columns);
    uint32_t axis = index_new_axis(p.tab, dim_mul_const(p.dims, all, 5));
    IndexId i = index_axis(p.tab, axis);
    IndexId row = index_mod(p.tab, index_div(p.tab, i, columns), rows);
    IndexId parts[3] = {index_mod(p.tab, i, columns), index_scale(p.tab, row, columns),
                        index_scale(p.tab, index_div(p.tab, i, all), all)};
    for (uint32_t first = 0; first < 3; first++) { /* in whichever order they are added */
        IndexId two = index_add(p.tab, parts[first], parts[(first + 1) % 3]);
        cr_expect_eq(index_add(p.tab, two, parts[(first + 2) % 3]), i, "from part %u", first);
    }
    IndexId other = index_scale(p.tab, index_div(p.tab, i, all), dim_mul_const(p.dims, all, 2));
    IndexId apart = index_add(p.tab, index_add(p.tab, parts[0], parts[1]), other);
    cr_expect_neq(index_expr(p.tab, apart).n_terms, 1);
    arena_free(p.arena);
}

Test(index, joining_and_splitting_axes_cancels) {
    Plain p = plain_new();
    DimId extent = dim_add(p.dims, p.n, dim_const(p.dims, 2));
    uint32_t outer = index_new_axis(p.tab, dim_const(p.dims, 5));
    uint32_t inner = index_new_axis(p.tab, extent);
    IndexId i = index_axis(p.tab, outer), j = index_axis(p.tab, inner);
    IndexId flat = index_add(p.tab, index_scale(p.tab, i, extent), j);
    cr_expect_eq(index_div(p.tab, flat, extent), i);
    cr_expect_eq(index_mod(p.tab, flat, extent), j);
    cr_expect_eq(index_max(p.tab, flat),
                 dim_sub(p.dims, dim_mul_const(p.dims, extent, 5), dim_const(p.dims, 1)));
    arena_free(p.arena);
}

Test(index, an_axis_of_one_is_no_axis) {
    Plain p = plain_new();
    uint32_t axis = index_new_axis(p.tab, dim_const(p.dims, 1));
    DimId value = DIM_NONE;
    cr_expect(index_is_dim(p.tab, index_axis(p.tab, axis), &value));
    cr_expect(dim_equals_const(p.dims, value, 0));
    arena_free(p.arena);
}

Test(index, stride_of_an_axis) {
    Plain p = plain_new();
    uint32_t rows = index_new_axis(p.tab, dim_const(p.dims, 5));
    uint32_t columns = index_new_axis(p.tab, dim_mul_const(p.dims, p.n, 8));
    uint32_t other = index_new_axis(p.tab, dim_const(p.dims, 3));
    IndexId row = index_scale(p.tab, index_axis(p.tab, rows), p.n);
    IndexId at = index_add(p.tab, row, index_axis(p.tab, columns));
    DimId stride = DIM_NONE;
    cr_expect(index_stride(p.tab, at, rows, &stride) && stride == p.n);
    cr_expect(index_stride(p.tab, at, columns, &stride) && dim_equals_const(p.dims, stride, 1));
    cr_expect(index_stride(p.tab, at, other, &stride) && stride == DIM_NONE);
    IndexId half = index_div(p.tab, index_axis(p.tab, columns), dim_const(p.dims, 3));
    cr_expect_not(index_stride(p.tab, index_add(p.tab, row, half), columns, &stride));
    arena_free(p.arena);
}
