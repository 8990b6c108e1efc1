/* Placing temporaries. See memplan.h. */
#include "memory/memplan.h"
#include "ir/dim/dim_sum.h"
#include "plan/launch.h"

#include "memory/place.h"
#include "plan/in_place.h"

#define ROOM_NONE UINT32_MAX

/* The launches (by position of their first kernel) during which a temporary holds a value; first >
 * last: none. */
typedef struct Lifetime {
    uint32_t first, last;
} Lifetime;

typedef struct Placer {
    Arena *arena;
    Plan *plan;
    DimTab *dims;
    Lifetime *lifetimes; /* per buffer */
    uint32_t *room_of;   /* per buffer */
    bool *is_taken;      /* per buffer: another buffer is stored in its place by the kernel where it
                          * dies */
    VecRoom rooms;       /* a room serves temporaries that take over one another */
} Placer;

/* What is copied for an update is needed until then. */
static void note_copied(void *user, const Store *store) {
    VecU32 *copied = user;
    if (store->copied) copied->data[copied->n++] = store->copied - 1;
}

static void find_copied(Placer *p, const Kernel *kernel, uint32_t launch) {
    if (!kernel_updates(kernel)) return;
    VecU32 copied = {0};
    copied.data = arena_array(p->arena, uint32_t, kernel->stages.data[0].stores.n);
    kernel_each_store(kernel, note_copied, &copied);
    for (uint32_t i = 0; i < copied.n; i++)
        if (p->lifetimes[copied.data[i]].last < launch) p->lifetimes[copied.data[i]].last = launch;
}

static void find_lifetimes(Placer *p) {
    for (uint32_t i = 0; i < p->plan->buffers.n; i++)
        p->lifetimes[i] = (Lifetime){.first = UINT32_MAX};
    const Launch *launches = p->plan->launches.data;
    for (uint32_t k = 0, l = 0; k < p->plan->kernels.n; k++) {
        const Kernel *kernel = &p->plan->kernels.data[k];
        while (!launch_has(&launches[l], k)) l++;
        uint32_t launch = launches[l].first;
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            Lifetime *life = &p->lifetimes[kernel->args.data[i]];
            if (life->first > launch) life->first = launch;
            life->last = launch;
        }
        find_copied(p, kernel, launch);
    }
}

/* A temporary that dies in kernel `k` and in whose memory buffer `id` may be stored; UINT32_MAX if
 * none. `k` must be alone in its launch. */
static uint32_t find_dying(const Placer *p, uint32_t k, uint32_t id) {
    const Kernel *kernel = &p->plan->kernels.data[k];
    const Store *store = kernel_find_store(kernel, id);
    if (!store || plan_launch_of(p->plan, k)->n > 1) return UINT32_MAX;
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t taken = kernel->args.data[i];
        if (p->room_of[taken] == ROOM_NONE || p->lifetimes[taken].last != k || p->is_taken[taken] ||
            !in_place_may(p->arena, p->plan, kernel, taken, store))
            continue;
        return taken;
    }
    return UINT32_MAX;
}

static void take_over(Placer *p, uint32_t buffer, uint32_t taken) {
    p->is_taken[taken] = true;
    p->plan->buffers.data[buffer].in_place_of = taken + 1;
    p->room_of[buffer] = p->room_of[taken];
    p->rooms.data[p->room_of[buffer]].last = p->lifetimes[buffer].last;
}

static void open_room(Placer *p, uint32_t buffer, DimId bytes) {
    Lifetime life = p->lifetimes[buffer];
    p->room_of[buffer] = p->rooms.n;
    vec_push(p->arena, &p->rooms, (Room){.bytes = bytes, .first = life.first, .last = life.last});
}

/* Finds a room for each temporary of kernel `k` that no earlier launch touches. */
static bool house_new_temps(Placer *p, uint32_t k, DimSum *unshared) {
    const Kernel *kernel = &p->plan->kernels.data[k];
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t id = kernel->args.data[i];
        const Buffer *buffer = &p->plan->buffers.data[id];
        if (buffer->kind != BUFFER_TEMP || buffer->space != BUFFER_GLOBAL ||
            p->room_of[id] != ROOM_NONE)
            continue;
        DimId bytes = dim_round_up(p->dims, buffer_bytes(p->dims, buffer), WORKSPACE_ALIGN_BYTES);
        if (bytes == DIM_NONE) return false;
        uint32_t dying = find_dying(p, k, id);
        if (dying != UINT32_MAX)
            take_over(p, id, dying);
        else
            open_room(p, id, bytes);
        dim_sum_add(unshared, bytes);
    }
    return true;
}

bool memplan_place(Arena *arena, Plan *plan) {
    Placer p = {.arena = arena, .plan = plan, .dims = plan->graph->dims};
    p.lifetimes = arena_array(arena, Lifetime, plan->buffers.n);
    p.room_of = arena_array(arena, uint32_t, plan->buffers.n);
    p.is_taken = arena_array(arena, bool, plan->buffers.n);
    for (uint32_t i = 0; i < plan->buffers.n; i++) {
        p.room_of[i] = ROOM_NONE;
        plan->buffers.data[i].offset_bytes = dim_const(p.dims, 0);
        plan->buffers.data[i].in_place_of = 0;
    }
    find_lifetimes(&p);
    DimSum unshared = dim_sum_new(p.dims);
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        if (!house_new_temps(&p, k, &unshared)) return false;
    plan->peak_bytes_unshared = dim_sum_total(&unshared);
    if (!place_buffers(arena, p.dims, &p.rooms, &plan->workspace)) return false;
    for (uint32_t i = 0; i < plan->buffers.n; i++)
        if (p.room_of[i] != ROOM_NONE)
            plan->buffers.data[i].offset_bytes = p.rooms.data[p.room_of[i]].offset;
    return true;
}

bool place_pass(const Planning *p, PlanUnit *unit) {
    const Graph *graph = unit->plan->graph;
    VecDim *workspace = &unit->plan->workspace;
    bool has_room = memplan_place(p->scratch, unit->plan);
    workspace->data = arena_copy(p->arena, workspace->data, workspace->n * sizeof *workspace->data);
    workspace->capacity = workspace->n;
    bool is_verified = has_room && !p->is_trial;
    const char *fault = is_verified ? plan_verify_places(unit->plan, p->scratch) : NULL;
    if (fault) ice(p->arena, "places of %s: %s", graph->name, fault);
    if (has_room) return true;
    return diag_report(p->diags, DIAG_DIM_OVERFLOW, graph->source, graph->span,
                       "the workspace of graph `%s` could pass 2^62 bytes", graph->name);
}
