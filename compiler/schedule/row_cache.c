/* Greedy: values are tried from the last on, so that what is kept is as near to its uses as it can
 * be, and those that paid only before others were kept are dropped again. See row_cache.h.
 *
 * A slot serves values one after the other. One of the same width may even be stored in the stage
 * that reads the one before: a step loads its elements before it stores them. */
#include "schedule/row_cache.h"

#include "cost/prims.h"

#include <string.h>

enum { LEAST_GAIN = 4, MAX_CANDIDATES = 256 }; /* in prims; judged */

typedef struct Keeper {
    Arena *arena;
    const Kernel *kernel;
    uint32_t lanes_axis; /* bit set */
    int64_t n_elems;     /* of rows that are gone over together */
    uint32_t *first;     /* per scalar: the first stage that needs it */
    Keep keeps[MAX_KEEPS];
    uint32_t n;
} Keeper;

static Keeps keeps_of(const Keeper *k) {
    return (Keeps){k->keeps, k->n};
}

static uint32_t bytes_of(const Keeper *k, const Keep *keep) {
    return dtype_bytes(scalar_get(k->kernel->scalars, keep->value)->dtype);
}

/* Of an element of a row, in all stages. */
static uint32_t total_cost(const Keeper *k) {
    const ScalarTab *scalars = k->kernel->scalars;
    uint32_t cost = k->n * KEEP_COST;
    ArenaMark mark = arena_mark(k->arena);
    for (uint32_t s = 0; s < k->kernel->stages.n; s++) {
        const bool *live = stage_live_scalars(k->arena, k->kernel, keeps_of(k), s);
        for (ScalarId id = 1; id <= scalar_count(scalars); id++)
            if (live[id] && (scalar_get(scalars, id)->axes & k->lanes_axis))
                cost += keeps_value(keeps_of(k), id, s) ? KEEP_COST : scalar_own_cost(scalars, id);
    }
    arena_rewind(k->arena, mark);
    return cost;
}

static uint32_t last_use(const Keeper *k, ScalarId value) {
    uint32_t last = 0;
    ArenaMark mark = arena_mark(k->arena);
    for (uint32_t s = 0; s < k->kernel->stages.n; s++)
        if (stage_live_scalars(k->arena, k->kernel, keeps_of(k), s)[value]) last = s;
    arena_rewind(k->arena, mark);
    return last;
}

/* An array while slots are given out. */
typedef struct Slot {
    uint32_t last, last_bytes, bytes; /* bytes of an element: of the last value, of the widest */
} Slot;

static bool is_free(const Slot *slot, uint32_t stage, uint32_t bytes) {
    return slot->last < stage || (slot->last == stage && slot->last_bytes == bytes);
}

/* Gives every kept value a slot; false: they take more stack than there may be. */
static bool give_slots(Keeper *k) {
    Slot slots[MAX_KEEPS];
    uint32_t n_slots = 0, row_bytes = 0;
    for (uint32_t s = 0; s < k->kernel->stages.n; s++)
        for (uint32_t i = 0; i < k->n; i++) {
            Keep *keep = &k->keeps[i];
            uint32_t bytes = bytes_of(k, keep);
            if (keep->stage != s) continue;
            for (keep->slot = 0; keep->slot < n_slots; keep->slot++)
                if (is_free(&slots[keep->slot], s, bytes)) break;
            Slot *slot = &slots[keep->slot];
            if (keep->slot == n_slots) slots[n_slots++] = (Slot){.bytes = 0};
            slot->last = last_use(k, keep->value);
            slot->last_bytes = bytes;
            if (bytes > slot->bytes) slot->bytes = bytes;
        }
    for (uint32_t i = 0; i < n_slots; i++) row_bytes += slots[i].bytes;
    return k->n_elems * row_bytes <= KEEP_BYTES;
}

/* Keeps the value if that pays and there is room. */
static void try_value(Keeper *k, ScalarId value, uint32_t *cost) {
    if (k->n == MAX_KEEPS) return;
    k->keeps[k->n++] = (Keep){.value = value, .stage = k->first[value]};
    uint32_t with = total_cost(k);
    if (with + LEAST_GAIN <= *cost && give_slots(k))
        *cost = with;
    else
        k->n--;
}

static void drop_value(Keeper *k, uint32_t i, uint32_t *cost) {
    Keep dropped = k->keeps[i];
    memmove(&k->keeps[i], &k->keeps[i + 1], (k->n - i - 1) * sizeof *k->keeps);
    k->n--;
    uint32_t without = total_cost(k);
    if (without < *cost + LEAST_GAIN && give_slots(k)) {
        *cost = without;
        return;
    }
    memmove(&k->keeps[i + 1], &k->keeps[i], (k->n - i) * sizeof *k->keeps);
    k->keeps[i] = dropped;
    k->n++;
}

/* Per scalar: whether several stages need it, and it is worth to keep it rather than what is made
 * of it in the stage that computes it first. Fills `first`. */
static bool *find_candidates(Keeper *k) {
    const ScalarTab *scalars = k->kernel->scalars;
    uint32_t n = scalar_count(scalars) + 1;
    bool *is_candidate = arena_array(k->arena, bool, n);
    uint32_t *n_stages = arena_array(k->arena, uint32_t, n);
    uint32_t *n_users = arena_array(k->arena, uint32_t, n);
    for (uint32_t s = k->kernel->stages.n; s-- > 0;) {
        const bool *live = stage_live_scalars(k->arena, k->kernel, (Keeps){.n = 0}, s);
        for (ScalarId id = 1; id < n; id++) {
            if (live[id]) k->first[id] = s;
            n_stages[id] += live[id];
        }
    }
    for (ScalarId id = n - 1; id > 0; id--) {
        const Scalar *s = scalar_get(scalars, id);
        bool is_element = (s->axes & k->lanes_axis) && s->dtype != DT_BOOL;
        for (int i = 0; i < 3 && n_stages[id]; i++) {
            n_users[s->args[i]]++;
            is_candidate[s->args[i]] =
                is_candidate[s->args[i]] || k->first[id] > k->first[s->args[i]];
        }
        bool ends_here = is_candidate[id] || n_users[id] != 1;
        is_candidate[id] = is_element && n_stages[id] > 1 && ends_here && s->kind != SCALAR_LOAD;
    }
    return is_candidate;
}

Keeps keep_values(Arena *arena, const Kernel *kernel, const Variant *variant) {
    Keeper k = {.arena = arena, .kernel = kernel};
    uint32_t n = scalar_count(kernel->scalars) + 1, lanes = variant->sched.lanes;
    int64_t most = variant_row_elems(kernel, variant);
    if (kernel->stages.n < 2 || most > KEEP_BYTES) return (Keeps){.n = 0};
    k.n_elems = (most + lanes - 1) / lanes * lanes;
    if (kernel_has_groups(kernel, variant)) k.n_elems *= lanes; /* of all rows of a group */
    k.lanes_axis = 1u << (kernel->first_reduced + kernel->n_reduced - 1);
    ArenaMark mark = arena_mark(arena);
    k.first = arena_array(arena, uint32_t, n);
    const bool *is_candidate = find_candidates(&k);
    uint32_t cost = total_cost(&k), n_tried = 0;
    for (ScalarId id = n - 1; id > 0; id--)
        if (is_candidate[id] && n_tried++ < MAX_CANDIDATES) try_value(&k, id, &cost);
    for (uint32_t i = k.n; i-- > 0;) drop_value(&k, i, &cost);
    arena_rewind(arena, mark);
    return (Keeps){arena_copy(arena, k.keeps, k.n * sizeof *k.keeps), k.n};
}
