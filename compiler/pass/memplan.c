/* Placing temps. See memplan.h. */
#include "pass/memplan.h"

#include "ir/in_place.h"

#define SLOT_NONE UINT32_MAX

/* The launches, by position of their first kernel, between which a temp holds something; first >
 * last: never. */
typedef struct Lifetime {
    uint32_t first, last;
} Lifetime;

/* A piece of the workspace, used by one temp after the other. */
typedef struct Slot {
    DimId bytes; /* rounded up to WORKSPACE_ALIGN_BYTES */
    uint32_t busy_until;
} Slot;

typedef struct Placer {
    Arena *arena;
    Plan *plan;
    DimTab *dims;
    Lifetime *lifetimes; /* per buffer */
    uint32_t *slot_of;   /* per buffer */
    bool *is_taken;      /* per buffer: another took its place in the kernel where it dies */
    Vec(Slot) slots;
} Placer;

static void find_lifetimes(Placer *p) {
    for (uint32_t i = 0; i < p->plan->buffers.n; i++)
        p->lifetimes[i] = (Lifetime){.first = UINT32_MAX};
    uint32_t launch = 0;
    for (uint32_t k = 0; k < p->plan->kernels.n; k++) {
        const Kernel *kernel = &p->plan->kernels.data[k];
        if (kernel->link == LINK_NONE) launch = k;
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            Lifetime *life = &p->lifetimes[kernel->args.data[i]];
            if (life->first > launch) life->first = launch;
            life->last = launch;
        }
    }
}

/* Whether a free slot of constant size `a` serves `bytes` better than one of size `b`: the smallest
 * that is large enough, else the largest. */
static bool fits_better(int64_t a, int64_t b, int64_t bytes) {
    if ((a >= bytes) != (b >= bytes)) return a >= bytes;
    return a >= bytes ? a < b : a > b;
}

static uint32_t find_free_slot(const Placer *p, DimId bytes, uint32_t kernel) {
    uint32_t best = SLOT_NONE;
    int64_t wanted, size, best_size = 0;
    bool is_const = dim_is_const(p->dims, bytes, &wanted);
    for (uint32_t i = 0; i < p->slots.n; i++) {
        const Slot *slot = &p->slots.data[i];
        if (slot->busy_until >= kernel) continue;
        if (slot->bytes == bytes) return i;
        if (!is_const || !dim_is_const(p->dims, slot->bytes, &size)) continue;
        if (best != SLOT_NONE && !fits_better(size, best_size, wanted)) continue;
        best = i;
        best_size = size;
    }
    return best;
}

static void place_buffer(Placer *p, uint32_t buffer, DimId bytes) {
    Lifetime life = p->lifetimes[buffer];
    uint32_t found = find_free_slot(p, bytes, life.first);
    if (found == SLOT_NONE) {
        vec_push(p->arena, &p->slots, (Slot){.bytes = bytes});
        found = p->slots.n - 1;
    }
    Slot *slot = &p->slots.data[found];
    int64_t wanted, size;
    if (dim_is_const(p->dims, bytes, &wanted) && dim_is_const(p->dims, slot->bytes, &size) &&
        wanted > size)
        slot->bytes = bytes;
    slot->busy_until = life.last;
    p->slot_of[buffer] = found;
}

/* The temp of kernel `k`, alone in its launch, whose memory buffer `id` may take over as it dies
 * there; UINT32_MAX: none. */
static uint32_t find_dying(const Placer *p, uint32_t k, uint32_t id) {
    const Kernel *kernel = &p->plan->kernels.data[k];
    const Store *store = kernel_find_store(kernel, id);
    if (!store || plan_launch(p->plan, k).n > 1 || kernel->link != LINK_NONE) return UINT32_MAX;
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t taken = kernel->args.data[i];
        if (p->slot_of[taken] == SLOT_NONE || p->lifetimes[taken].last != k || p->is_taken[taken] ||
            !in_place_may(p->arena, p->plan, kernel, taken, store))
            continue;
        return taken;
    }
    return UINT32_MAX;
}

static void take_over(Placer *p, uint32_t buffer, uint32_t taken) {
    p->is_taken[taken] = true;
    p->plan->buffers.data[buffer].takes_over = taken + 1;
    p->slot_of[buffer] = p->slot_of[taken];
    p->slots.data[p->slot_of[buffer]].busy_until = p->lifetimes[buffer].last;
}

/* Places every temp of kernel `k` that no launch before its own touches. */
static bool place_new_temps(Placer *p, uint32_t k, DimId *unshared) {
    const Kernel *kernel = &p->plan->kernels.data[k];
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t id = kernel->args.data[i];
        const Buffer *buffer = &p->plan->buffers.data[id];
        if (buffer->kind != BUFFER_TEMP || buffer->is_on_chip || p->slot_of[id] != SLOT_NONE)
            continue;
        DimId bytes = dim_round_up(p->dims, buffer_bytes(p->dims, buffer), WORKSPACE_ALIGN_BYTES);
        if (bytes == DIM_NONE) return false;
        uint32_t dying = find_dying(p, k, id);
        if (dying != UINT32_MAX)
            take_over(p, id, dying);
        else
            place_buffer(p, id, bytes);
        if (*unshared) *unshared = dim_add(p->dims, *unshared, bytes);
    }
    return true;
}

/* Slots of constant size come first, so that most offsets are constants. */
static bool lay_out(Placer *p) {
    DimId *offsets = arena_array(p->arena, DimId, p->slots.n);
    DimId end = dim_const(p->dims, 0);
    int64_t size;
    for (int symbolic = 0; symbolic < 2; symbolic++) {
        for (uint32_t i = 0; i < p->slots.n; i++) {
            if (dim_is_const(p->dims, p->slots.data[i].bytes, &size) == (symbolic == 1)) continue;
            offsets[i] = end;
            end = dim_add(p->dims, end, p->slots.data[i].bytes);
            if (end == DIM_NONE) return false;
        }
    }
    p->plan->workspace_bytes = end;
    for (uint32_t i = 0; i < p->plan->buffers.n; i++)
        if (p->slot_of[i] != SLOT_NONE)
            p->plan->buffers.data[i].offset_bytes = offsets[p->slot_of[i]];
    return true;
}

bool memplan_place(Arena *arena, Plan *plan) {
    Placer p = {.arena = arena, .plan = plan, .dims = plan->graph->dims};
    p.lifetimes = arena_array(arena, Lifetime, plan->buffers.n);
    p.slot_of = arena_array(arena, uint32_t, plan->buffers.n);
    p.is_taken = arena_array(arena, bool, plan->buffers.n);
    for (uint32_t i = 0; i < plan->buffers.n; i++) {
        p.slot_of[i] = SLOT_NONE;
        plan->buffers.data[i].offset_bytes = dim_const(p.dims, 0);
        plan->buffers.data[i].takes_over = 0;
    }
    find_lifetimes(&p);
    DimId unshared = dim_const(p.dims, 0);
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        if (!place_new_temps(&p, k, &unshared)) return false;
    plan->peak_bytes_unshared = unshared;
    return lay_out(&p);
}
