/* See place.h. Rooms are placed one by one, each at the lowest offset that is proven not to overlap
 * the rooms placed before: at 0, at the end of a room, or, if no end is proven to be above all
 * others, at an upper bound of several ends. The best order of rooms depends on how the sizes grow.
 * Therefore several orders are tried, until one needs no more than the rooms of some launch, and
 * the one with the smallest workspace at the cost points stays. */
#include "memory/place.h"

#include "base/checked.h"
#include "base/hashids.h"
#include "cost/cost.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_ENDS = 8,         /* of the workspace; further ends are merged into a bound */
    MAX_END_TERMS = 64,   /* of all ends together: small enough for a manifest's expression */
    MOST_TRIES = 1 << 19, /* after that many tried places, no further order is tried */
    N_PROOFS = 1 << 13,   /* that are kept */
    FIXED = 0             /* growth of a constant size */
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

/* Orders of placed items: by index, or by a value at the first cost point and then by index. Items
 * are placed in the order of their indices. */
typedef enum { BY_INDEX, BY_FROM, BY_TO, N_ORDERS } OrderOf;

#define NO_ITEM UINT32_MAX

/* The placed items that an item meets: a launch needs both. */
typedef struct Met {
    uint32_t *items, n;
    uint32_t *ordered[N_ORDERS];
    bool *is; /* per item: whether it is among them */
    /* At the first cost point, per item of ordered[BY_FROM]: where it begins, and the highest end
     * of the items up to it. */
    int64_t *from, *highest;
    uint32_t n_below; /* of these: they begin below the end of the last place; ends ascend */
    uint32_t in_way;  /* the item of which the last place was not proven to be clear; NO_ITEM: none
                       */
} Met;

/* Finds the placed items that live at some launches in time that grows with their number. A leaf of
 * the binary tree is a room, in the order of `first`, and a node has the latest of the `last` of
 * the placed rooms below it, plus 1; 0: none is placed. */
typedef struct Lives {
    uint32_t *rooms;   /* ascending by `first` */
    uint32_t *leaf_of; /* per room */
    uint32_t *item_of; /* per leaf */
    uint32_t *last;    /* per node of the tree: the children of i are 2 * i and 2 * i + 1 */
    uint32_t n_leaves; /* a power of two */
} Lives;

/* Whether dim `a` is never above dim `b`. */
typedef struct Proof {
    DimId a, b; /* DIM_NONE: there is no proof here */
    bool is_below;
} Proof;

typedef struct Packer {
    Arena *arena;
    DimTab *dims;
    const Room *rooms;
    CostPoints points;
    VecDim sizes;    /* distinct sizes */
    Vec(Item) items; /* in the order that is tried; the first n_placed are placed */
    uint32_t n_placed;
    uint32_t *ordered[N_ORDERS]; /* all placed items */
    Lives lives;
    Met met; /* of the item that is being placed */
    Vec(Level) ends;
    uint64_t n_tries; /* in all orders */
    Proof *proofs;    /* by hash: the same offsets are compared again and again */
} Packer;

static Level level_of(const Packer *p, DimId dim, uint32_t *counts) {
    Level level = {.dim = dim, .counts = counts};
    for (uint32_t i = 0; i < p->points.n; i++)
        if (!dim_eval(p->dims, dim, p->points.dims[i], &level.at[i])) level.at[i] = INT64_MAX;
    return level;
}

static bool are_below(const Packer *p, const int64_t *a, const int64_t *b) {
    for (uint32_t i = 0; i < p->points.n; i++)
        if (a[i] > b[i]) return false;
    return true;
}

static bool is_proven(const Packer *p, DimId a, DimId b) {
    Proof *proof = &p->proofs[hash_mix(a, b) % N_PROOFS];
    if (proof->a != a || proof->b != b) *proof = (Proof){a, b, dim_always_le(p->dims, a, b)};
    return proof->is_below;
}

static bool is_below(const Packer *p, const Level *a, const Level *b) {
    if (a->dim == b->dim) return true;
    if (!are_below(p, a->at, b->at)) return false;
    bool has_less = true;
    for (uint32_t i = 0; i < p->sizes.n && has_less; i++) has_less = a->counts[i] <= b->counts[i];
    return has_less || is_proven(p, a->dim, b->dim);
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

/* The values of the level plus one item's size. */
static void add_size(const Packer *p, const Level *level, const Item *item, int64_t *at) {
    for (uint32_t i = 0; i < p->points.n; i++)
        if (!checked_add(level->at[i], item->size.at[i], &at[i])) at[i] = INT64_MAX;
}

/* The level plus one item's size. */
static Level level_above(const Packer *p, const Level *level, const Item *item) {
    uint32_t *counts = new_counts(p);
    for (uint32_t i = 0; i < p->sizes.n; i++) counts[i] = level->counts[i];
    counts[item->size_index]++;
    Level above = {.dim = dim_add(p->dims, level->dim, item->size.dim), .counts = counts};
    add_size(p, level, item, above.at);
    return above;
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

/* The placed items by their launches. */

static int compare_keys(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static Lives lives_new(Arena *arena, const VecRoom *rooms) {
    uint32_t n = rooms->n;
    Lives lives = {.rooms = arena_array(arena, uint32_t, n),
                   .leaf_of = arena_array(arena, uint32_t, n),
                   .item_of = arena_array(arena, uint32_t, n),
                   .n_leaves = 1};
    uint64_t *keys = arena_array(arena, uint64_t, n); /* `first`, then the room */
    for (uint32_t i = 0; i < n; i++) keys[i] = (uint64_t)rooms->data[i].first << 32 | i;
    if (n) qsort(keys, n, sizeof *keys, compare_keys);
    for (uint32_t leaf = 0; leaf < n; leaf++) {
        lives.rooms[leaf] = (uint32_t)keys[leaf];
        lives.leaf_of[lives.rooms[leaf]] = leaf;
    }
    while (lives.n_leaves < n) lives.n_leaves *= 2;
    lives.last = arena_array(arena, uint32_t, 2 * (size_t)lives.n_leaves);
    return lives;
}

/* Adds the item that was placed last. */
static void note_placed(Packer *p) {
    Lives *lives = &p->lives;
    const Room *room = &p->rooms[p->items.data[p->n_placed].room];
    uint32_t leaf = lives->leaf_of[p->items.data[p->n_placed].room];
    lives->item_of[leaf] = p->n_placed;
    for (uint32_t at = lives->n_leaves + leaf; at > 0; at /= 2)
        if (lives->last[at] < room->last + 1) lives->last[at] = room->last + 1;
}

/* Lists the placed items that the room meets below node `at` of the tree, which has n_leaves from
 * `leaf` on. */
static void list_met(Packer *p, const Room *room, uint32_t at, uint32_t leaf, uint32_t n_leaves) {
    const Lives *lives = &p->lives;
    if (lives->last[at] <= room->first || p->rooms[lives->rooms[leaf]].first > room->last) return;
    if (n_leaves == 1) {
        p->met.items[p->met.n++] = lives->item_of[leaf];
        return;
    }
    list_met(p, room, 2 * at, leaf, n_leaves / 2);
    list_met(p, room, 2 * at + 1, leaf + n_leaves / 2, n_leaves / 2);
}

static int64_t value_of(const Packer *p, uint32_t item, OrderOf order) {
    switch (order) {
    case BY_INDEX:
    case N_ORDERS:
        break;
    case BY_FROM:
        return p->items.data[item].from.at[0];
    case BY_TO:
        return p->items.data[item].to.at[0];
    }
    return item;
}

static bool comes_before(const Packer *p, uint32_t a, uint32_t b, OrderOf order) {
    int64_t of_a = value_of(p, a, order), of_b = value_of(p, b, order);
    return of_a < of_b || (of_a == of_b && a < b);
}

/* Inserts an item into the first n of the order. */
static void insert(const Packer *p, OrderOf order, uint32_t *ordered, uint32_t n, uint32_t item) {
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (comes_before(p, ordered[middle], item, order))
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&ordered[low + 1], &ordered[low], (n - low) * sizeof *ordered);
    ordered[low] = item;
}

/* Orders the met items: few of them one by one, many by picking them out of all placed items. */
static void order_met(Packer *p, OrderOf order) {
    uint32_t *ordered = p->met.ordered[order], n = 0;
    bool are_few = (uint64_t)p->met.n * p->met.n < p->n_placed;
    for (uint32_t i = 0; i < p->met.n && are_few; i++)
        insert(p, order, ordered, i, p->met.items[i]);
    for (uint32_t i = 0; i < p->n_placed && !are_few; i++)
        if (p->met.is[p->ordered[order][i]]) ordered[n++] = p->ordered[order][i];
}

static void find_met(Packer *p, const Item *item) {
    Met *met = &p->met;
    int64_t highest = 0;
    met->n = met->n_below = 0;
    met->in_way = NO_ITEM;
    if (p->n_placed) list_met(p, &p->rooms[item->room], 1, 0, p->lives.n_leaves);
    for (uint32_t i = 0; i < met->n; i++) met->is[met->items[i]] = true;
    for (uint32_t order = 0; order < N_ORDERS; order++) order_met(p, (OrderOf)order);
    for (uint32_t i = 0; i < met->n; i++) {
        const Item *other = &p->items.data[met->ordered[BY_FROM][i]];
        if (other->to.at[0] > highest) highest = other->to.at[0];
        met->from[i] = other->from.at[0];
        met->highest[i] = highest;
        met->is[met->items[i]] = false;
    }
}

/* Placing the items. */

/* A level that is at least `a` and at least `b` for all values of the dims. */
static Level bound_of(const Packer *p, const Level *a, const Level *b) {
    if (is_below(p, a, b)) return *b;
    if (is_below(p, b, a)) return *a;
    uint32_t *counts = new_counts(p);
    for (uint32_t i = 0; i < p->sizes.n; i++)
        counts[i] = a->counts[i] > b->counts[i] ? a->counts[i] : b->counts[i];
    return level_of_counts(p, counts);
}

static bool is_clear_of(const Packer *p, uint32_t item, const Level *from, const Level *to) {
    const Item *other = &p->items.data[item];
    return is_below(p, to, &other->from) || is_below(p, &other->to, from);
}

static bool is_clear(Packer *p, const Level *from, const Level *to) {
    for (uint32_t i = 0; i < p->met.n; i++) {
        if (is_clear_of(p, p->met.ordered[BY_INDEX][i], from, to)) continue;
        p->met.in_way = p->met.ordered[BY_INDEX][i];
        return false;
    }
    return true;
}

/* Whether each other item lies above or below the item at all cost points: is_clear needs that, and
 * the proof. */
static bool may_be_clear(const Packer *p, const Level *from, const Level *to) {
    for (uint32_t i = 0; i < p->met.n; i++) {
        const Item *other = &p->items.data[p->met.ordered[BY_INDEX][i]];
        if (!are_below(p, to->at, other->from.at) && !are_below(p, other->to.at, from->at))
            return false;
    }
    return true;
}

/* Whether the item at `from`, which is no lower than the last place, overlaps another item at the
 * first cost point, which rules the place out before the whole proof is tried. */
static bool is_taken(Packer *p, const Item *item, int64_t from) {
    Met *met = &p->met;
    int64_t size = item->size.at[0], to = from > INT64_MAX - size ? INT64_MAX : from + size;
    while (met->n_below < met->n && met->from[met->n_below] < to) met->n_below++;
    return met->n_below > 0 && met->highest[met->n_below - 1] > from;
}

/* Most places that are refused are refused because of the item that was in the way of the place
 * before. */
static bool try_place(Packer *p, Item *item, const Level *from) {
    p->n_tries++;
    if (is_taken(p, item, from->at[0])) return false;
    uint32_t in_way = p->met.in_way;
    Level to = level_above(p, from, item);
    if (!to.dim || (in_way != NO_ITEM && !is_clear_of(p, in_way, from, &to)) ||
        !may_be_clear(p, from, &to) || !is_clear(p, from, &to))
        return false;
    item->from = *from;
    item->to = to;
    return true;
}

/* An upper bound of all items that the item meets does not overlap any of them, even if not every
 * pair of ends can be compared: each bound is proven to be above the bound before it. */
static bool place_above_all(const Packer *p, Item *item) {
    Level bound = level_of_counts(p, new_counts(p));
    for (uint32_t i = 0; i < p->met.n && bound.dim; i++)
        bound = bound_of(p, &bound, &p->items.data[p->met.ordered[BY_INDEX][i]].to);
    item->from = bound;
    if (bound.dim) item->to = level_above(p, &bound, item);
    return bound.dim != DIM_NONE && item->to.dim != DIM_NONE;
}

/* Takes the lowest free place; of places equal at the first cost point, the end of the item that
 * was placed first. */
static bool place_item(Packer *p, Item *item) {
    Level bottom = level_of_counts(p, new_counts(p));
    find_met(p, item);
    if (try_place(p, item, &bottom)) return true;
    for (uint32_t i = 0; i < p->met.n; i++)
        if (try_place(p, item, &p->items.data[p->met.ordered[BY_TO][i]].to)) return true;
    return place_above_all(p, item);
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
    memset(p->lives.last, 0, 2 * p->lives.n_leaves * sizeof *p->lives.last);
    if (p->items.n) qsort(p->items.data, p->items.n, sizeof *p->items.data, compare);
    for (; p->n_placed < p->items.n; p->n_placed++) {
        Item *item = &p->items.data[p->n_placed];
        if (!place_item(p, item)) return false;
        for (uint32_t order = 0; order < N_ORDERS; order++)
            insert(p, (OrderOf)order, p->ordered[order], p->n_placed, p->n_placed);
        note_placed(p);
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

/* The most bytes that are needed at once, at a cost point: no order leads to fewer. */
static double least_end(const Packer *p, uint32_t n_launches, uint32_t point) {
    double *change = arena_array(p->arena, double, (size_t)n_launches + 1), now = 0, most = 1;
    for (uint32_t i = 0; i < p->items.n; i++) {
        const Item *item = &p->items.data[i];
        change[p->rooms[item->room].first] += (double)item->size.at[point];
        change[p->rooms[item->room].last + 1] -= (double)item->size.at[point];
    }
    for (uint32_t k = 0; k < n_launches; k++) {
        now += change[k];
        if (now > most) most = now;
    }
    return most;
}

/* Whether no other order can lead to fewer bytes, at any cost point. */
static bool is_least(const Packer *p) {
    uint32_t n_launches = 0;
    bool is = true;
    for (uint32_t i = 0; i < p->items.n; i++)
        if (p->rooms[i].last + 1 > n_launches) n_launches = p->rooms[i].last + 1;
    ArenaMark mark = arena_mark(p->arena);
    for (uint32_t i = 0; i < p->points.n && is; i++)
        is = end_at(p, i) <= least_end(p, n_launches, i);
    arena_rewind(p->arena, mark);
    return is;
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
    p.lives = lives_new(arena, rooms);
    for (uint32_t order = 0; order < N_ORDERS; order++) {
        p.ordered[order] = arena_array(arena, uint32_t, rooms->n);
        p.met.ordered[order] = arena_array(arena, uint32_t, rooms->n);
    }
    p.met.items = arena_array(arena, uint32_t, rooms->n);
    p.met.is = arena_array(arena, bool, rooms->n);
    p.met.from = arena_array(arena, int64_t, rooms->n);
    p.met.highest = arena_array(arena, int64_t, rooms->n);
    p.proofs = arena_array(arena, Proof, N_PROOFS);
    bool is_best = false;
    for (size_t o = 0; o < sizeof orders / sizeof *orders && !is_best; o++) {
        double ratio = 0;
        if (!place_all(&p, orders[o])) continue;
        for (uint32_t i = 0; i < p.points.n && is_done; i++) ratio += end_at(&p, i) / best[i];
        if (is_done && ratio >= p.points.n) continue;
        for (uint32_t i = 0; i < p.points.n; i++) best[i] = end_at(&p, i);
        keep(&p, rooms->data, ends);
        is_done = true;
        is_best = p.n_tries > MOST_TRIES || is_least(&p);
    }
    return is_done;
}
