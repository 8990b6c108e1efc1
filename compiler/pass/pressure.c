/* Counting registers. See pressure.h.
 *
 * Scalars are taken in the order in which the templates ask for them: depth first from reductions
 * and stores. One is alive from where it is made to its last use. The assembler finishes one lane
 * after the other as long as few values are alive, so that only what is loaded and stored has a
 * register for each lane; beyond MANY_ALIVE it works on all lanes at once. The constants were
 * fitted to what the assembler says of the examples and of generated chains. */
#include "pass/pressure.h"

#include "ir/wgmma.h"

enum {
    OWN_REGISTERS = 10, /* counters, the thread's place, parameters */
    POINTER_REGISTERS = 2,
    MAX_POINTERS = 2, /* in use at once */
    MANY_ALIVE = 64,
    LEAST_REGISTERS = 16,
    FRAGMENT_REGISTERS = 24, /* of a contraction's addresses and copies on their way */
    WARP_THREADS = 32,
    MAX_BLOCKS = 32,
    GRANULE = 8 /* registers are handed out in such steps */
};

typedef struct Walk {
    const Kernel *kernel;
    const ScalarTab *scalars;
    IndexTab *indices;
    uint32_t *place; /* per scalar: position in the order plus 1; 0: not reached */
    uint32_t *last;  /* per scalar: position of the last use */
    ScalarId *order;
    uint32_t n;
} Walk;

static void reach(Walk *w, ScalarId id);

static void reach_index(Walk *w, IndexId id) {
    IndexExpr expr = index_expr(w->indices, id);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(w->indices, expr.terms[i].atom);
        if (atom.kind == ATOM_VALUE) reach(w, atom.value);
        if (atom.kind == ATOM_DIV || atom.kind == ATOM_MOD) reach_index(w, atom.operand);
    }
}

static void reach(Walk *w, ScalarId id) {
    if (id == SCALAR_NONE || w->place[id]) return;
    const Scalar *s = scalar_get(w->scalars, id);
    if (s->index) reach_index(w, s->index);
    for (int i = 0; i < 3; i++) reach(w, s->args[i]);
    w->order[w->n++] = id;
    w->place[id] = w->n;
    w->last[id] = w->n;
    for (int i = 0; i < 3; i++)
        if (s->args[i]) w->last[s->args[i]] = w->n;
}

/* Names what the stage's reductions and stores need; a later use is by another scalar or, of a
 * root, by the accumulator or store right behind it. */
static void reach_stage(Walk *w, const Stage *stage) {
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        const Reduce *reduce = stage_reduce(w->kernel, stage, i);
        reach(w, reduce->value);
        reach(w, reduce->factor);
        reach(w, reduce->arg_index);
    }
    for (uint32_t i = 0; i < stage->stores.n; i++) {
        reach_index(w, stage->stores.data[i].address);
        reach(w, stage->stores.data[i].value);
        w->last[stage->stores.data[i].value] = w->n;
    }
}

static Walk walk_new(Arena *arena, const Kernel *kernel) {
    Walk w = {.kernel = kernel,
              .scalars = kernel->scalars,
              .indices = scalartab_indices(kernel->scalars)};
    uint32_t n = scalar_count(kernel->scalars) + 1;
    w.place = arena_array(arena, uint32_t, n);
    w.last = arena_array(arena, uint32_t, n);
    w.order = arena_array(arena, ScalarId, n);
    return w;
}

/* In registers; 16-bit elements are held in pairs. */
static double own_size(const Walk *w, ScalarId id, uint32_t axis, uint32_t lanes) {
    const Scalar *s = scalar_get(w->scalars, id);
    if (s->kind == SCALAR_CONST) return 0;
    bool varies = axis != NO_AXIS && (s->axes >> axis & 1);
    double bytes = dtype_bytes(s->dtype) < 2 ? 2 : dtype_bytes(s->dtype);
    return (varies ? lanes : 1) * bytes / 4;
}

/* The largest sum of what is alive at once. */
static double peak_size(Arena *arena, const Walk *w, uint32_t axis, uint32_t lanes) {
    double *change = arena_array(arena, double, w->n + 2);
    double alive = 0, peak = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        double size = own_size(w, w->order[i], axis, lanes);
        change[i + 1] += size;
        change[w->last[w->order[i]] + 1 > w->n + 1 ? w->n + 1 : w->last[w->order[i]] + 1] -= size;
    }
    for (uint32_t i = 1; i <= w->n; i++) {
        alive += change[i];
        if (alive > peak) peak = alive;
    }
    return peak;
}

/* Further lanes of what is loaded and stored in the stage. */
static double wide_size(const Walk *w, const Stage *stage, uint32_t axis, uint32_t lanes) {
    double size = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        if (scalar_get(w->scalars, w->order[i])->kind != SCALAR_LOAD) continue;
        size += own_size(w, w->order[i], axis, lanes) - own_size(w, w->order[i], axis, 1);
    }
    if (stage->stores.n)
        size += own_size(w, stage->stores.data[0].value, axis, lanes) -
                own_size(w, stage->stores.data[0].value, axis, 1);
    return size;
}

static double peak_of_stages(Arena *arena, const Kernel *kernel, const Sched *sched) {
    double peak = 0;
    uint32_t axis = kernel_lane_axis(kernel, sched), lanes = sched->lanes;
    for (uint32_t i = 0; i <= kernel->stages.n; i++) {
        ArenaMark mark = arena_mark(arena);
        Walk w = walk_new(arena, kernel);
        Stage rest = {.stores = {.data = kernel->row_stores.data, .n = kernel->row_stores.n}};
        const Stage *stage = i < kernel->stages.n ? &kernel->stages.data[i] : &rest;
        reach_stage(&w, stage);
        double own = peak_size(arena, &w, axis, 1);
        own = own > MANY_ALIVE ? peak_size(arena, &w, axis, lanes)
                               : own + wide_size(&w, stage, axis, lanes);
        if (own > peak) peak = own;
        arena_rewind(arena, mark);
    }
    return peak;
}

uint32_t pressure_live(Arena *arena, const Kernel *kernel) {
    return (uint32_t)peak_of_stages(arena, kernel, &(Sched){.lanes = 1});
}

/* What a resident row keeps from stage to stage, per step: scalars made in one and used in a later
 * one. */
static double kept_size(Arena *arena, const Kernel *kernel, const Sched *sched) {
    ArenaMark mark = arena_mark(arena);
    uint32_t n = scalar_count(kernel->scalars) + 1;
    uint32_t *first = arena_array(arena, uint32_t, n), *last = arena_array(arena, uint32_t, n);
    double size = 0, most = 0;
    Walk w = {0};
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        w = walk_new(arena, kernel);
        reach_stage(&w, &kernel->stages.data[i]);
        for (uint32_t k = 0; k < w.n; k++) {
            ScalarId id = w.order[k];
            if (!first[id]) first[id] = i + 1;
            bool is_leaf = true;
            const Scalar *s = scalar_get(kernel->scalars, id);
            for (int a = 0; a < 3; a++) {
                ScalarId arg = s->args[a];
                if (!arg) continue;
                is_leaf = false;
                if (first[id] == i + 1) last[arg] = i + 1;
            }
            if (is_leaf) last[id] = last[id] ? last[id] : i + 1;
        }
    }
    for (uint32_t i = 1; i < kernel->stages.n; i++, size = 0) {
        for (ScalarId id = 1; id < n; id++)
            if (first[id] && first[id] <= i && last[id] > i)
                size += own_size(&w, id, kernel_lane_axis(kernel, sched), sched->lanes);
        if (size > most) most = size;
    }
    arena_rewind(arena, mark);
    return most;
}

static double acc_size(const Kernel *kernel, uint32_t lanes) {
    double size = 0;
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        size += lanes * ((double)dtype_bytes(reduce->acc) / 4 + (reduce->is_arg ? 1 : 0));
    }
    return size;
}

/* Accumulators and what is loaded for the next rounds, which has a register for each pair of 16-bit
 * elements. */
static double vector_registers(const Kernel *kernel, const Sched *sched) {
    const Reduce *reduce = &kernel->reduces.data[0];
    uint32_t bytes = dtype_bytes(scalar_get(kernel->scalars, reduce->value)->dtype);
    double outputs = sched->lanes_along_k
                         ? (double)sched->tile_m * sched->tile_n * sched->team / sched->threads
                         : 1;
    double chains = sched->slots * sched->lanes, loaded = sched->unroll * bytes / 4.0 * chains;
    return chains * outputs * dtype_bytes(reduce->acc) / 4 + loaded * (outputs + 1);
}

/* Warps that multiply hold a tile's accumulators. Where there are two groups of them, the warps
 * that copy give up theirs, and a thread of the launch begins with its share of all there are. */
static double wgmma_registers(const Sched *sched) {
    double tile = (double)sched->tile_m * sched->tile_n * wgmma_products(sched) /
                  (sched->warps_m * WARP_THREADS);
    double own = tile + FRAGMENT_REGISTERS;
    bool is_shared_out = sched->warps_m > WGMMA_GROUP_WARPS;
    double most = PROCESSOR_REGISTERS / sched->threads / GRANULE * GRANULE - OWN_REGISTERS -
                  MAX_POINTERS * POINTER_REGISTERS;
    return own < most && !is_shared_out ? own : most;
}

static double contract_registers(const Kernel *kernel, const Sched *sched) {
    const Reduce *reduce = &kernel->reduces.data[0];
    if (sched->engine == CONTRACT_PLAIN) return 16;
    if (sched->engine == CONTRACT_VECTOR) return vector_registers(kernel, sched);
    if (sched->engine == CONTRACT_WGMMA) return wgmma_registers(sched);
    double tile = (double)sched->tile_m * sched->tile_n / sched->threads;
    double sides = (double)sched->tile_m / sched->warps_m + (double)sched->tile_n / sched->warps_n;
    return (tile + sides / 2) * dtype_bytes(reduce->acc) / 4 + FRAGMENT_REGISTERS;
}

static uint32_t contract_shared(const Kernel *kernel, const Variant *variant) {
    const Sched *sched = &variant->sched;
    const Reduce *reduce = &kernel->reduces.data[0];
    uint32_t bytes = dtype_bytes(scalar_get(kernel->scalars, reduce->value)->dtype);
    if (variant->shared_bytes) return variant->shared_bytes;
    if (sched->engine == CONTRACT_PLAIN) return 0;
    if (sched->engine == CONTRACT_VECTOR) {
        VectorPasses p = kernel_vector_passes(kernel, variant);
        uint32_t n_sums = 1 + (p.n_groups > 1 ? p.n_groups : 0);
        if (p.n_parts > 1 || p.n_groups > 1) n_sums += p.n_kept * p.n_parts;
        return n_sums * sched->tile_m * sched->tile_n * dtype_bytes(reduce->acc);
    }
    return sched->stages * (sched->tile_m + sched->tile_n) * sched->tile_k * bytes;
}

/* Partial results on their way between warps. */
static uint32_t reduce_shared(const Kernel *kernel, const Sched *sched) {
    uint32_t bytes = 0;
    bool take_turns;
    if (kernel->form == FORM_COLUMN) return kernel_column_shared(kernel, sched, &take_turns);
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        uint32_t own = dtype_bytes(reduce->acc) + (reduce->is_arg ? 4 : 0);
        if (kernel->form == FORM_ROW && sched->team > WARP_THREADS) bytes += WARP_THREADS * own;
        if (kernel->form == FORM_ROW && sched->cluster > 1) bytes += sched->cluster * own;
    }
    return bytes;
}

static double thread_registers(Arena *arena, const Kernel *kernel, const Sched *sched) {
    uint32_t n_pointers = kernel->args.n < MAX_POINTERS ? kernel->args.n : MAX_POINTERS;
    double size = OWN_REGISTERS + POINTER_REGISTERS * n_pointers;
    double peak = peak_of_stages(arena, kernel, sched);
    switch (kernel->form) {
    case FORM_MAP:
        return size + peak;
    case FORM_ROW: {
        size += peak + acc_size(kernel, sched->lanes);
        if (sched->is_wide) size += sched->resident; /* addresses of steps that may not exist */
        if (sched->resident) size += kept_size(arena, kernel, sched) * sched->resident;
        return size;
    }
    case FORM_COLUMN:
        return size + peak + acc_size(kernel, sched->lanes);
    case FORM_CONTRACT: {
        double main = contract_registers(kernel, sched);
        return size + (main > peak ? main : peak);
    }
    }
    return size;
}

uint32_t pressure_registers(Arena *arena, const Kernel *kernel, const Sched *sched) {
    ArenaMark mark = arena_mark(arena);
    uint32_t n = (uint32_t)(thread_registers(arena, kernel, sched) + 0.5);
    arena_rewind(arena, mark);
    return n < LEAST_REGISTERS ? LEAST_REGISTERS : n;
}

Pressure pressure_of(Arena *arena, const Plan *plan, const Kernel *kernel, const Variant *variant,
                     const Card *card) {
    (void)plan;
    const Sched *sched = &variant->sched;
    if (card->device == DEVICE_CPU) return (Pressure){.n_blocks = 1, .occupancy = 1};
    Pressure p = {.registers = pressure_registers(arena, kernel, sched)};
    p.shared_bytes =
        variant->chip_bytes + (kernel->form == FORM_CONTRACT ? contract_shared(kernel, variant)
                                                             : reduce_shared(kernel, sched));
    p.spills = p.registers > MAX_THREAD_REGISTERS;
    p.spilled = p.spills ? p.registers - MAX_THREAD_REGISTERS : 0;
    uint32_t held = p.spills ? MAX_THREAD_REGISTERS : p.registers;
    held = (held + GRANULE - 1) / GRANULE * GRANULE;
    p.n_blocks = card->threads / sched->threads;
    uint32_t by_registers = PROCESSOR_REGISTERS / (held * sched->threads);
    if (by_registers < sched->min_blocks) by_registers = sched->min_blocks;
    uint32_t by_shared = p.shared_bytes ? card->shared_bytes / p.shared_bytes : MAX_BLOCKS;
    if (p.n_blocks > MAX_BLOCKS) p.n_blocks = MAX_BLOCKS;
    if (by_registers < p.n_blocks) p.n_blocks = by_registers;
    if (by_shared < p.n_blocks) p.n_blocks = by_shared;
    if (p.n_blocks < 1) p.n_blocks = 1;
    p.occupancy = (double)p.n_blocks * sched->threads / card->threads;
    if (p.occupancy > 1) p.occupancy = 1;
    return p;
}
