/* A greedy choice. Values are tried from the last to the first, so that a cached value is as near
 * to its uses as possible. Values that paid only before later ones were cached are dropped again.
 * See row_cache.h.
 *
 * A slot holds one value after the other. A value of the same width may even be stored in the stage
 * that reads the slot's previous one, because a step loads its elements before it stores them. */
#include "schedule/row_cache.h"
#include "machine/tuning.h"

#include "cost/count/prims.h"

#include <string.h>

typedef struct RowCacher {
    Arena *arena;
    const Kernel *kernel;
    uint32_t lanes_axis; /* bit set */
    int64_t n_elems;     /* of all rows of a group */
    uint32_t *first;     /* per scalar: the first stage that needs it */
    CachedValue row_cache[MAX_CACHED_VALUES];
    uint32_t n;
} RowCacher;

static RowCache row_cache_of(const RowCacher *k) {
    return (RowCache){k->row_cache, k->n};
}

static uint32_t bytes_of(const RowCacher *k, const CachedValue *keep) {
    return dtype_bytes(scalar_get(k->kernel->scalars, keep->value)->dtype);
}

/* The cost of one element of a row in all stages. */
static uint32_t total_cost(const RowCacher *k) {
    const ScalarTab *scalars = k->kernel->scalars;
    uint32_t cost = k->n * COST_ROW_CACHE_PRIMS;
    ArenaMark mark = arena_mark(k->arena);
    for (uint32_t s = 0; s < k->kernel->stages.n; s++) {
        const bool *live = stage_live_scalars(k->arena, k->kernel, row_cache_of(k), s);
        for (ScalarId id = 1; id <= scalar_count(scalars); id++)
            if (live[id] && (scalar_get(scalars, id)->axes & k->lanes_axis))
                cost += row_cache_has(row_cache_of(k), id, s) ? COST_ROW_CACHE_PRIMS
                                                              : scalar_own_cost(scalars, id);
    }
    arena_rewind(k->arena, mark);
    return cost;
}

static uint32_t last_use(const RowCacher *k, ScalarId value) {
    uint32_t last = 0;
    ArenaMark mark = arena_mark(k->arena);
    for (uint32_t s = 0; s < k->kernel->stages.n; s++)
        if (stage_live_scalars(k->arena, k->kernel, row_cache_of(k), s)[value]) last = s;
    arena_rewind(k->arena, mark);
    return last;
}

/* A slot during the assignment. */
typedef struct Slot {
    uint32_t last, last_bytes, bytes; /* last stage that reads it; bytes of an element of the last
                                       * value, and of the widest */
} Slot;

static bool is_free(const Slot *slot, uint32_t stage, uint32_t bytes) {
    return slot->last < stage || (slot->last == stage && slot->last_bytes == bytes);
}

/* Assigns every cached value a slot. False: they exceed the stack limit. */
static bool give_slots(RowCacher *k) {
    Slot slots[MAX_CACHED_VALUES];
    uint32_t n_slots = 0, row_bytes = 0;
    for (uint32_t s = 0; s < k->kernel->stages.n; s++)
        for (uint32_t i = 0; i < k->n; i++) {
            CachedValue *keep = &k->row_cache[i];
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
    return k->n_elems * row_bytes <= SCHED_ROW_CACHE_BYTES;
}

/* Caches the value if that pays and there is room. */
static void try_value(RowCacher *k, ScalarId value, uint32_t *cost) {
    if (k->n == MAX_CACHED_VALUES) return;
    k->row_cache[k->n++] = (CachedValue){.value = value, .stage = k->first[value]};
    uint32_t with = total_cost(k);
    if (with + SCHED_ROW_CACHE_GAIN <= *cost && give_slots(k))
        *cost = with;
    else
        k->n--;
}

static void drop_value(RowCacher *k, uint32_t i, uint32_t *cost) {
    CachedValue dropped = k->row_cache[i];
    memmove(&k->row_cache[i], &k->row_cache[i + 1], (k->n - i - 1) * sizeof *k->row_cache);
    k->n--;
    uint32_t without = total_cost(k);
    if (without < *cost + SCHED_ROW_CACHE_GAIN && give_slots(k)) {
        *cost = without;
        return;
    }
    memmove(&k->row_cache[i + 1], &k->row_cache[i], (k->n - i) * sizeof *k->row_cache);
    k->row_cache[i] = dropped;
    k->n++;
}

/* Per scalar: whether several stages need it, and caching it is better than caching its users in
 * the stage that computes it first. Fills `first`. */
static bool *find_candidates(RowCacher *k) {
    const ScalarTab *scalars = k->kernel->scalars;
    uint32_t n = scalar_count(scalars) + 1;
    bool *is_candidate = arena_array(k->arena, bool, n);
    uint32_t *n_stages = arena_array(k->arena, uint32_t, n);
    uint32_t *n_users = arena_array(k->arena, uint32_t, n);
    for (uint32_t s = k->kernel->stages.n; s-- > 0;) {
        const bool *live = stage_live_scalars(k->arena, k->kernel, (RowCache){.n = 0}, s);
        for (ScalarId id = 1; id < n; id++) {
            if (live[id]) k->first[id] = s;
            n_stages[id] += live[id];
        }
    }
    for (ScalarId id = n - 1; id > 0; id--) {
        const Scalar *s = scalar_get(scalars, id);
        bool is_element = (s->axes & k->lanes_axis) && !dtype_is_bool(s->dtype);
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

RowCache row_cache_choose(Arena *arena, const Kernel *kernel, const Variant *variant) {
    RowCacher k = {.arena = arena, .kernel = kernel};
    uint32_t n = scalar_count(kernel->scalars) + 1, lanes = variant->sched.lanes;
    int64_t most = variant_row_elems(kernel, variant);
    if (kernel->stages.n < 2 || most > SCHED_ROW_CACHE_BYTES) return (RowCache){.n = 0};
    k.n_elems = (most + lanes - 1) / lanes * lanes;
    if (kernel_has_groups(kernel, variant)) k.n_elems *= lanes; /* of all rows of a group */
    k.lanes_axis = 1u << (kernel->first_reduced + kernel->n_reduced - 1);
    ArenaMark mark = arena_mark(arena);
    k.first = arena_array(arena, uint32_t, n);
    const bool *is_candidate = find_candidates(&k);
    uint32_t cost = total_cost(&k), n_tried = 0;
    for (ScalarId id = n - 1; id > 0; id--)
        if (is_candidate[id] && n_tried++ < SCHED_ROW_CACHE_TRIES) try_value(&k, id, &cost);
    for (uint32_t i = k.n; i-- > 0;) drop_value(&k, i, &cost);
    arena_rewind(arena, mark);
    return (RowCache){arena_copy(arena, k.row_cache, k.n * sizeof *k.row_cache), k.n};
}
