/* See place.h. Rooms are placed one by one, each at the lowest offset that is proven not to overlap
 * the rooms placed before: at 0, at the end of a room, or, if no end is proven to be above all
 * others, at an upper bound of several ends. The best order of rooms depends on how the sizes grow.
 * Therefore several orders are tried, and the one with the smallest workspace at the cost points
 * stays. */
#include "memory/place.h"

#include "cost/cost.h"

#include <stdlib.h>

enum {
    MAX_ENDS = 8,       /* of the workspace; further ends are merged into a bound */
    MAX_END_TERMS = 64, /* of all ends together: small enough for a manifest's expression */
    FIXED = 0           /* growth of a constant size */
};

/* An offset or an end, as a sum: `counts` of each size. A sum that has no more of each size than
 * another is never above it, because sizes are never negative. The values at the cost points
 * quickly rule out comparisons that cannot hold. */
typedef struct Level {
    DimId dim;
    uint32_t *counts; /* per size */
    int64_t at[COST_MAX_POINTS];
} Level;

typedef struct Item {
    uint32_t room, growth;
    uint32_t size_index; /* index into the packer's sizes */
    Level size, from, to;
} Item;

/* The places at the first cost point of the items that an item meets: indices of items, ascending
 * by `from`, and the highest end of the items up to each. */
typedef struct Taken {
    uint32_t *items, n;
    int64_t *highest;
} Taken;

typedef struct Packer {
    Arena *arena;
    DimTab *dims;
    const Room *rooms;
    CostPoints points;
    VecDim sizes;    /* distinct sizes */
    Vec(Item) items; /* in the order that is tried; the first n_placed are placed */
    uint32_t n_placed;
    /* The placed items, ascending by the values of `from` and of `to` at the first cost point; of
     * equal values the item placed first. */
    uint32_t *by_from, *by_to;
    Taken taken; /* of the item that is being placed */
    Vec(Level) ends;
} Packer;

static Level level_of(const Packer *p, DimId dim, uint32_t *counts) {
    Level level = {.dim = dim, .counts = counts};
    for (uint32_t i = 0; i < p->points.n; i++)
        if (!dim_eval(p->dims, dim, p->points.dims[i], &level.at[i])) level.at[i] = INT64_MAX;
    return level;
}

static bool is_below(const Packer *p, const Level *a, const Level *b) {
    if (a->dim == b->dim) return true;
    for (uint32_t i = 0; i < p->points.n; i++)
        if (a->at[i] > b->at[i]) return false;
    bool has_less = true;
    for (uint32_t i = 0; i < p->sizes.n && has_less; i++) has_less = a->counts[i] <= b->counts[i];
    return has_less || dim_always_le(p->dims, a->dim, b->dim);
}

static uint32_t *new_counts(const Packer *p) {
    return arena_array(p->arena, uint32_t, p->sizes.n);
}

/* Returns a level with dim DIM_NONE if it could exceed the limit. */
static Level level_of_counts(const Packer *p, uint32_t *counts) {
    DimId sum = dim_const(p->dims, 0);
    for (uint32_t i = 0; i < p->sizes.n && sum; i++)
        if (counts[i])
            sum = dim_add(p->dims, sum, dim_mul_const(p->dims, p->sizes.data[i], counts[i]));
    return sum ? level_of(p, sum, counts) : (Level){.dim = DIM_NONE};
}

/* The level plus one item's size. */
static Level level_above(const Packer *p, const Level *level, const Item *item) {
    uint32_t *counts = new_counts(p);
    for (uint32_t i = 0; i < p->sizes.n; i++) counts[i] = level->counts[i];
    counts[item->size_index]++;
    DimId end = dim_add(p->dims, level->dim, item->size.dim);
    return end ? level_of(p, end, counts) : (Level){.dim = DIM_NONE};
}

/* The growth of a size if all dims grow: the largest power. */
static uint32_t growth_of(const DimTab *dims, DimId dim) {
    uint32_t most = FIXED;
    for (uint32_t i = 0; i < dim_n_terms(dims, dim); i++) {
        DimTerm term = dim_term(dims, dim, i);
        uint32_t own = 0;
        for (uint32_t k = 0; k < term.n_atoms; k++) {
            DimAtom atom = dim_atom(dims, term.atoms[k]);
            own += atom.is_division ? growth_of(dims, atom.numerator) : 1;
        }
        if (own > most) most = own;
    }
    return most;
}

/* Orders of items. */

static int by_age(const Item *a, const Item *b) {
    return a->room < b->room ? -1 : a->room > b->room;
}

static int by_size(const Item *a, const Item *b) {
    if (a->size.at[0] != b->size.at[0]) return a->size.at[0] > b->size.at[0] ? -1 : 1;
    return by_age(a, b);
}

/* Constant sizes come first, so that most offsets are constants. */
static int compare_sizes(const void *one, const void *other) {
    const Item *a = one, *b = other;
    bool is_fixed = a->growth == FIXED;
    if (is_fixed != (b->growth == FIXED)) return is_fixed ? -1 : 1;
    return by_size(a, b);
}

/* The fastest-growing size comes last and lies above all others. */
static int compare_growth(const void *one, const void *other) {
    const Item *a = one, *b = other;
    if (a->growth != b->growth) return a->growth < b->growth ? -1 : 1;
    return by_size(a, b);
}

/* The same order, with ties from the last launch to the first: an early temporary may then lie
 * inside the fastest-growing one. */
static int compare_growth_late(const void *one, const void *other) {
    const Item *a = one, *b = other;
    bool is_even = a->growth == b->growth && a->size.at[0] == b->size.at[0];
    return is_even ? by_age(b, a) : compare_growth(a, b);
}

static int compare_ages(const void *one, const void *other) {
    return by_age(one, other);
}

/* Placing the items. */

static bool meets(const Packer *p, const Item *a, const Item *b) {
    const Room *one = &p->rooms[a->room], *other = &p->rooms[b->room];
    return one->first <= other->last && other->first <= one->last;
}

/* A level that is at least `a` and at least `b` for all values of the dims. */
static Level bound_of(const Packer *p, const Level *a, const Level *b) {
    if (is_below(p, a, b)) return *b;
    if (is_below(p, b, a)) return *a;
    uint32_t *counts = new_counts(p);
    for (uint32_t i = 0; i < p->sizes.n; i++)
        counts[i] = a->counts[i] > b->counts[i] ? a->counts[i] : b->counts[i];
    return level_of_counts(p, counts);
}

static bool is_clear(const Packer *p, const Item *item, const Level *from, const Level *to) {
    for (uint32_t i = 0; i < p->n_placed; i++) {
        const Item *other = &p->items.data[i];
        if (meets(p, item, other) && !is_below(p, to, &other->from) &&
            !is_below(p, &other->to, from))
            return false;
    }
    return true;
}

static void find_taken(Packer *p, const Item *item) {
    Taken *taken = &p->taken;
    int64_t highest = 0;
    taken->n = 0;
    for (uint32_t i = 0; i < p->n_placed; i++) {
        const Item *other = &p->items.data[p->by_from[i]];
        if (!meets(p, item, other)) continue;
        if (other->to.at[0] > highest) highest = other->to.at[0];
        taken->highest[taken->n] = highest;
        taken->items[taken->n++] = p->by_from[i];
    }
}

/* Whether the item at `from` overlaps another item at the first cost point, which rules the place
 * out before the whole proof is tried. */
static bool is_taken(const Packer *p, const Item *item, int64_t from) {
    const Taken *taken = &p->taken;
    int64_t size = item->size.at[0], to = from > INT64_MAX - size ? INT64_MAX : from + size;
    uint32_t low = 0, high = taken->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->items.data[taken->items[middle]].from.at[0] < to)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && taken->highest[low - 1] > from;
}

static bool try_place(const Packer *p, Item *item, const Level *from) {
    if (is_taken(p, item, from->at[0])) return false;
    Level to = level_above(p, from, item);
    if (!to.dim || !is_clear(p, item, from, &to)) return false;
    item->from = *from;
    item->to = to;
    return true;
}

/* An upper bound of all items that the item meets does not overlap any of them, even if not every
 * pair of ends can be compared: each bound is proven to be above the bound before it. */
static bool place_above_all(const Packer *p, Item *item) {
    Level bound = level_of_counts(p, new_counts(p));
    for (uint32_t i = 0; i < p->n_placed && bound.dim; i++)
        if (meets(p, item, &p->items.data[i])) bound = bound_of(p, &bound, &p->items.data[i].to);
    item->from = bound;
    if (bound.dim) item->to = level_above(p, &bound, item);
    return bound.dim != DIM_NONE && item->to.dim != DIM_NONE;
}

/* Takes the lowest free place; of places equal at the first cost point, the end of the item that
 * was placed first. */
static bool place_item(Packer *p, Item *item) {
    Level bottom = level_of_counts(p, new_counts(p));
    find_taken(p, item);
    if (try_place(p, item, &bottom)) return true;
    for (uint32_t i = 0; i < p->n_placed; i++) {
        const Item *other = &p->items.data[p->by_to[i]];
        if (meets(p, item, other) && try_place(p, item, &other->to)) return true;
    }
    return place_above_all(p, item);
}

/* Inserts the number of the item that was placed last, behind all items with no higher value. */
static void insert_placed(const Packer *p, uint32_t *order, bool by_end) {
    const Item *items = p->items.data;
    uint32_t at = p->n_placed;
    int64_t value = by_end ? items[at].to.at[0] : items[at].from.at[0];
    for (; at > 0; at--) {
        const Item *before = &items[order[at - 1]];
        if ((by_end ? before->to.at[0] : before->from.at[0]) <= value) break;
        order[at] = order[at - 1];
    }
    order[at] = p->n_placed;
}

/* Keeps only the ends that no other end is always above. */
static void note_end(Packer *p, const Level *end) {
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < p->ends.n; i++)
        if (is_below(p, end, &p->ends.data[i])) return;
    for (uint32_t i = 0; i < p->ends.n; i++)
        if (!is_below(p, &p->ends.data[i], end)) p->ends.data[n_kept++] = p->ends.data[i];
    p->ends.n = n_kept;
    vec_push(p->arena, &p->ends, *end);
}

static bool join_ends(Packer *p) {
    uint32_t n_terms = 0;
    for (uint32_t i = 0; i < p->ends.n; i++) n_terms += dim_n_terms(p->dims, p->ends.data[i].dim);
    uint32_t n_most = n_terms > MAX_END_TERMS ? 1 : MAX_ENDS;
    while (p->ends.n > n_most) {
        Level *last = &p->ends.data[p->ends.n - 2];
        *last = bound_of(p, &last[0], &last[1]);
        if (!last->dim) return false;
        p->ends.n--;
    }
    return true;
}

static bool place_all(Packer *p, int (*compare)(const void *, const void *)) {
    p->n_placed = p->ends.n = 0;
    if (p->items.n) qsort(p->items.data, p->items.n, sizeof *p->items.data, compare);
    for (; p->n_placed < p->items.n; p->n_placed++) {
        Item *item = &p->items.data[p->n_placed];
        if (!place_item(p, item)) return false;
        insert_placed(p, p->by_from, false);
        insert_placed(p, p->by_to, true);
        note_end(p, &item->to);
    }
    return join_ends(p);
}

/* The bytes of all rooms at a cost point. */
static double end_at(const Packer *p, uint32_t point) {
    double most = 1;
    for (uint32_t i = 0; i < p->ends.n; i++)
        if ((double)p->ends.data[i].at[point] > most) most = (double)p->ends.data[i].at[point];
    return most;
}

static void keep(const Packer *p, Room *rooms, VecDim *ends) {
    for (uint32_t i = 0; i < p->items.n; i++)
        rooms[p->items.data[i].room].offset = p->items.data[i].from.dim;
    ends->n = 0;
    for (uint32_t i = 0; i < p->ends.n; i++) vec_push(p->arena, ends, p->ends.data[i].dim);
}

static uint32_t index_of_size(Packer *p, DimId bytes) {
    for (uint32_t i = 0; i < p->sizes.n; i++)
        if (p->sizes.data[i] == bytes) return i;
    vec_push(p->arena, &p->sizes, bytes);
    return p->sizes.n - 1;
}

bool place_buffers(Arena *arena, DimTab *dims, VecRoom *rooms, VecDim *ends) {
    static int (*const orders[])(const void *, const void *) = {compare_sizes, compare_growth,
                                                                compare_growth_late, compare_ages};
    Packer p = {.arena = arena, .dims = dims, .rooms = rooms->data};
    double best[COST_MAX_POINTS];
    bool is_done = false;
    /* The points weigh sizes, which no device changes, of dims from 1 on. */
    p.points = cost_points_from(arena, dims, 1);
    for (uint32_t i = 0; i < rooms->n; i++) {
        DimId bytes = rooms->data[i].bytes;
        Item item = {.room = i, .growth = growth_of(dims, bytes)};
        item.size_index = index_of_size(&p, bytes);
        item.size = level_of(&p, bytes, NULL);
        vec_push(arena, &p.items, item);
    }
    p.by_from = arena_array(arena, uint32_t, rooms->n);
    p.by_to = arena_array(arena, uint32_t, rooms->n);
    p.taken.items = arena_array(arena, uint32_t, rooms->n);
    p.taken.highest = arena_array(arena, int64_t, rooms->n);
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        double ratio = 0;
        if (!place_all(&p, orders[o])) continue;
        for (uint32_t i = 0; i < p.points.n && is_done; i++) ratio += end_at(&p, i) / best[i];
        if (is_done && ratio >= p.points.n) continue;
        for (uint32_t i = 0; i < p.points.n; i++) best[i] = end_at(&p, i);
        keep(&p, rooms->data, ends);
        is_done = true;
    }
    return is_done;
}
