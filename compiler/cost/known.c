/* See known.h. */
#include "cost/known.h"

/* The entry of the kernel's program; NULL: it has none. */
static KnownKernel *entry_of(Coster *c, const Kernel *kernel) {
    if (!kernel->program) return NULL;
    while (c->known.n <= kernel->program)
        vec_push(c->arena, &c->known, ((KnownKernel){.kernel = NULL}));
    return &c->known.data[kernel->program];
}

/* Whether the kernels are still copies of one, and their schedules are the same. */
static bool is_copy(const KnownKernel *known, const Kernel *kernel, const Variant *variant) {
    return known->kernel &&
           scalartab_indices(known->kernel->scalars) == scalartab_indices(kernel->scalars) &&
           known->kernel->args.n == kernel->args.n &&
           known->variant->shared_bytes == variant->shared_bytes &&
           known->variant->kept_shared_bytes == variant->kept_shared_bytes &&
           memcmp(&known->variant->sched, &variant->sched, sizeof variant->sched) == 0;
}

Pressure known_pressure(Coster *c, const Kernel *kernel, const Variant *variant) {
    KnownKernel *known = entry_of(c, kernel);
    if (!known) return pressure_of(c->arena, kernel, variant, c->card);
    if (!is_copy(known, kernel, variant))
        *known = (KnownKernel){.kernel = kernel,
                               .variant = variant,
                               .pressure = pressure_of(c->arena, kernel, variant, c->card)};
    return known->pressure;
}

KnownState known_state(const Coster *c, const Pricing *p) {
    const Kernel *kernel = p->kernel;
    KnownState state = {.is_single = c->launch->n == 1 && kernel->program && !kernel->choice &&
                                     kernel->args.n <= KNOWN_MOST_ARGS,
                        .starts = p->cost->starts,
                        .begins = p->begins,
                        .has_begun = c->has_begun,
                        .n_blocks = p->cost->n_blocks};
    for (uint32_t i = 0; i < kernel->args.n && state.is_single; i++) {
        const FootprintSeen *seen = &c->seen[kernel->args.data[i]];
        state.args[i] = (KnownArg){.is_cached = cost_is_cached(c, kernel->args.data[i]),
                                   .has_hulls = seen->hulls != NULL,
                                   .seen_bytes = seen->bytes};
    }
    return state;
}

/* Hulls of two buffers are not compared. */
static bool is_same_state(const KnownState *a, const KnownState *b, uint32_t n_args) {
    bool is_same = a->is_single && b->is_single && a->starts == b->starts &&
                   a->begins == b->begins && a->has_begun == b->has_begun &&
                   a->n_blocks == b->n_blocks;
    for (uint32_t i = 0; i < n_args && is_same; i++)
        is_same = a->args[i].is_cached == b->args[i].is_cached && !a->args[i].has_hulls &&
                  !b->args[i].has_hulls && a->args[i].seen_bytes == b->args[i].seen_bytes;
    return is_same;
}

static bool are_args_alike(const Plan *plan, const Kernel *a, const Kernel *b) {
    bool alike = true;
    for (uint32_t i = 0; i < a->args.n && alike; i++)
        alike = buffer_is_alike(&plan->buffers.data[a->args.data[i]],
                                &plan->buffers.data[b->args.data[i]]);
    return alike;
}

bool known_price(Coster *c, const Pricing *p, const KnownState *state) {
    const Kernel *kernel = p->kernel;
    const KnownKernel *known = state->is_single ? entry_of(c, kernel) : NULL;
    if (!known || !known->cost || known->cost->variant != p->cost->variant ||
        !is_copy(known, kernel, p->variant) ||
        !is_same_state(&known->before, state, kernel->args.n) ||
        !are_args_alike(c->plan, known->kernel, kernel))
        return false;
    *p->cost = *known->cost;
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t arg = kernel->args.data[i];
        c->seen[arg] = (FootprintSeen){.bytes = known->seen_bytes[i]};
        if (known->is_touched[i]) c->touched[arg] = -1;
    }
    return true;
}

void known_note(Coster *c, const Pricing *p, const KnownState *state) {
    const Kernel *kernel = p->kernel;
    if (!state->is_single) return;
    KnownKernel *known = entry_of(c, kernel);
    known->kernel = kernel;
    known->variant = p->variant;
    known->before = *state;
    known->cost = p->cost;
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        const FootprintSeen *seen = &c->seen[kernel->args.data[i]];
        if (seen->hulls) known->cost = NULL;
        known->seen_bytes[i] = seen->bytes;
        known->is_touched[i] = c->touched[kernel->args.data[i]] < 0;
    }
}
