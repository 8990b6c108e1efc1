/* Counting registers. See pressure.h.
 *
 * Scalars are taken in the order in which the templates ask for them: depth first from reductions
 * and stores. One is alive from where it is made to its last use. The assembler finishes one lane
 * after the other, so that only what is loaded and stored has a register for each lane, the former
 * in part, since it is used up on the way. It works on all lanes of a map at once where so many
 * values are made side by side that it gives up ordering them, and all lanes are alive where a
 * primitive has branches of its own. Where all are safe to fit, a schedule counts on no order. What
 * a primitive needs while it is computed grows with its cost. Over columns values are few beside
 * sums and addresses of the rows in flight. The constants were fitted to what the assembler says of
 * random graphs (tests/cost/test_registers.c), the examples and generated chains. */
#include "cost/pressure.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "template/wgmma.h"
#include "template/map_tile.h"

#include <math.h>

typedef struct Walk {
    const Kernel *kernel;
    const ScalarTab *scalars;
    IndexTab *indices;
    uint32_t *place; /* per scalar: position in the order plus 1; 0: not reached */
    uint32_t *last;  /* per scalar: position of the last use */
    ScalarId *order;
    uint32_t n;
    bool pairs_bf16;
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

static PrimCode code_of(const Scalar *s) {
    bool is_float_prim = s->kind == SCALAR_PRIM && dtype_in(s->dtype, DTS_FLOAT);
    return is_float_prim ? prim_info(s->prim)->code : PRIM_CODE_STRAIGHT;
}

/* All lanes go through the loop together. */
static bool is_looping(const Scalar *s) {
    return code_of(s) == PRIM_CODE_LOOPS;
}

/* All lanes are there when the primitive begins. */
static bool is_branching(const Scalar *s) {
    return code_of(s) != PRIM_CODE_STRAIGHT;
}

/* Whether lanes are computed in pairs. */
static bool is_paired(const Walk *w, Dtype dtype) {
    return dtype == DT_F16 || (dtype == DT_BF16 && w->pairs_bf16);
}

/* Whether an f32 value lies in the pairs that it is widened from, or is rounded to: see
 * codegen/scalar/point_narrow.c. */
static bool is_narrow(const Walk *w, ScalarId id) {
    const Scalar *s = scalar_get(w->scalars, id);
    if (s->dtype != DT_F32) return false;
    if (s->kind == SCALAR_CVT) return is_paired(w, scalar_get(w->scalars, s->args[0])->dtype);
    if (s->kind != SCALAR_PRIM || prim_info(s->prim)->cost > 1) return false;
    for (int i = 0; i < 3; i++) {
        const Scalar *arg = s->args[i] ? scalar_get(w->scalars, s->args[i]) : NULL;
        bool is_widened = arg && arg->kind == SCALAR_CVT && is_narrow(w, s->args[i]);
        if (arg && arg->kind != SCALAR_CONST && !is_widened) return false;
    }
    return true;
}

/* In registers; 16-bit elements are held in pairs. */
static double own_size(const Walk *w, ScalarId id, uint32_t axes, uint32_t lanes) {
    const Scalar *s = scalar_get(w->scalars, id);
    if (s->kind == SCALAR_CONST) return 0;
    bool varies = (s->axes & axes) != 0;
    double bytes = dtype_bytes(s->dtype) < 2 ? 2 : dtype_bytes(s->dtype);
    return (varies ? lanes : 1) * bytes / 4;
}

/* The same where pairs stay pairs: a widened value is the one that it is made from. */
static double paired_size(const Walk *w, ScalarId id, uint32_t axes, uint32_t lanes) {
    if (!is_narrow(w, id)) return own_size(w, id, axes, lanes);
    bool is_widened = scalar_get(w->scalars, id)->kind == SCALAR_CVT;
    return is_widened ? 0 : own_size(w, id, axes, lanes) / 2;
}

/* The largest sums of what is alive at once. */
typedef struct Peak {
    double all, branching; /* `branching`: while the code of a primitive is a branch of its own */
} Peak;

static Peak peak_of(Arena *arena, const Walk *w, uint32_t axes, uint32_t lanes, bool in_pairs) {
    double *change = arena_array(arena, double, w->n + 2), alive = 0;
    uint32_t *last = arena_copy(arena, w->last, (scalar_count(w->scalars) + 1) * sizeof *last);
    Peak peak = {0, 0};
    for (uint32_t i = 0; i < w->n && in_pairs; i++) {
        const Scalar *s = scalar_get(w->scalars, w->order[i]);
        bool is_widened = s->kind == SCALAR_CVT && is_narrow(w, w->order[i]);
        if (is_widened && last[w->order[i]] > last[s->args[0]])
            last[s->args[0]] = last[w->order[i]];
    }
    for (uint32_t i = 0; i < w->n; i++) {
        ScalarId id = w->order[i];
        double size = in_pairs ? paired_size(w, id, axes, lanes) : own_size(w, id, axes, lanes);
        change[i + 1] += size;
        change[last[id] + 1 > w->n + 1 ? w->n + 1 : last[id] + 1] -= size;
    }
    for (uint32_t i = 1; i <= w->n; i++) {
        alive += change[i];
        peak.all = fmax(peak.all, alive);
        if (is_branching(scalar_get(w->scalars, w->order[i - 1])))
            peak.branching = fmax(peak.branching, alive);
    }
    return peak;
}

static double peak_size(Arena *arena, const Walk *w, uint32_t axes, uint32_t lanes) {
    return peak_of(arena, w, axes, lanes, false).all;
}

/* The most primitives, in registers, of which none waits for another of them. */
static double breadth(Arena *arena, const Walk *w, uint32_t axes, uint32_t lanes) {
    uint32_t *level = arena_array(arena, uint32_t, scalar_count(w->scalars) + 1);
    double *sizes = arena_array(arena, double, w->n + 2), most = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        const Scalar *s = scalar_get(w->scalars, w->order[i]);
        uint32_t own = 0;
        for (int k = 0; k < 3; k++)
            if (s->args[k] && level[s->args[k]] > own) own = level[s->args[k]];
        level[w->order[i]] = own + (s->kind == SCALAR_PRIM);
        if (s->kind != SCALAR_PRIM) continue;
        sizes[own + 1] += paired_size(w, w->order[i], axes, lanes);
        most = fmax(most, sizes[own + 1]);
    }
    return most;
}

/* Further lanes of what is loaded in the stage, and of what is stored at once. */
static double wide_size(const Walk *w, const Stage *stage, uint32_t axes, uint32_t lanes) {
    double loaded = 0, stored = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        if (scalar_get(w->scalars, w->order[i])->kind != SCALAR_LOAD) continue;
        loaded += own_size(w, w->order[i], axes, lanes) - own_size(w, w->order[i], axes, 1);
    }
    for (uint32_t i = 0; i < stage->stores.n; i++) {
        ScalarId value = stage->stores.data[i].value;
        double own = own_size(w, value, axes, lanes) - own_size(w, value, axes, 1);
        if (own > stored) stored = own;
    }
    return REGS_LOADED_SHARE * loaded + REGS_STORED_SHARE * stored;
}

/* What primitives need while they are computed, one after the other, and guards. */
static double own_needs(const Walk *w, uint32_t lanes) {
    double most = 0, guards = 0;
    bool loops = false;
    for (uint32_t i = 0; i < w->n; i++) {
        const Scalar *s = scalar_get(w->scalars, w->order[i]);
        if (s->guard) guards = REGS_GUARD_SHARE * lanes;
        if (s->kind != SCALAR_PRIM) continue;
        uint32_t cost = prim_info(s->prim)->cost;
        if (cost < REGS_COSTLY_PRIM) continue;
        loops = loops || is_looping(s);
        double own = (double)cost * dtype_bytes(s->dtype) / 4 / REGS_COST_OF_ONE;
        if (own > REGS_MOST_PRIM) own = REGS_MOST_PRIM;
        if (own > most) most = own;
    }
    return guards + (loops ? REGS_LOOP_PRIM + REGS_LOOP_PRIM_LANE * (lanes - 1) : most);
}

/* Whether values are rounded to bf16 and widened again on a machine that does not compute it by
 * itself: two lanes are rounded at once, so that they go together. */
static bool rounds_pairs(const Walk *w) {
    for (uint32_t i = 0; i < w->n; i++) {
        const Scalar *s = scalar_get(w->scalars, w->order[i]);
        const Scalar *arg = s->kind == SCALAR_CVT ? scalar_get(w->scalars, s->args[0]) : NULL;
        if (arg && arg->kind == SCALAR_CVT && arg->dtype == DT_BF16 && !w->pairs_bf16) return true;
    }
    return false;
}

/* Whether the assembler works on all lanes at once: so many values can be made one beside the
 * other, and wait for their use, that it puts them in no order of lanes any more. */
static bool is_spread(Arena *arena, const Walk *w, uint32_t axes, uint32_t lanes) {
    if (lanes == 1) return false;
    double all = peak_of(arena, w, axes, lanes, true).all;
    double side_by_side = fmin(all, breadth(arena, w, axes, lanes));
    if (rounds_pairs(w)) return side_by_side >= REGS_SPREAD_PAIRS || all >= REGS_MOST_PAIRS;
    return side_by_side >= REGS_SPREAD;
}

/* As an estimate; `is_least`: to be safe, since chains of many values may go either way. */
static double size_of_stage(Arena *arena, const Walk *w, const Stage *stage, uint32_t axes,
                            uint32_t lanes, bool is_least) {
    uint32_t together = lanes > 1 && w->kernel->form == FORM_MAP && rounds_pairs(w) ? 2 : 1;
    double own = peak_size(arena, w, axes, together);
    Peak all = peak_of(arena, w, axes, lanes, true);
    if (is_least && own > REGS_MANY_ALIVE * together) return peak_size(arena, w, axes, lanes);
    if (is_spread(arena, w, axes, lanes)) return all.all;
    bool is_broad = breadth(arena, w, axes, lanes) >= REGS_BROAD_SHARE * all.all;
    if (lanes == 1 && is_broad) own = all.all;
    own += wide_size(w, stage, axes, lanes);
    return w->kernel->form == FORM_MAP ? fmax(own, all.branching) : own;
}

/* The most that a stage has alive; `needs` adds what it takes to compute it. */
static double peak_of_stages(Arena *arena, const Kernel *kernel, const Sched *sched, bool needs,
                             bool is_least) {
    double peak = 0;
    uint32_t axes = kernel_lane_axes(kernel, sched), lanes = sched->lanes;
    for (uint32_t i = 0; i <= kernel->stages.n; i++) {
        ArenaMark mark = arena_mark(arena);
        Walk w = walk_new(arena, kernel);
        w.pairs_bf16 = sched->pairs_bf16;
        Stage rest = {.stores = {.data = kernel->row_stores.data, .n = kernel->row_stores.n}};
        const Stage *stage = i < kernel->stages.n ? &kernel->stages.data[i] : &rest;
        reach_stage(&w, stage);
        double own = size_of_stage(arena, &w, stage, axes, lanes, is_least);
        if (needs) own += own_needs(&w, lanes);
        if (own > peak) peak = own;
        arena_rewind(arena, mark);
    }
    return peak;
}

uint32_t pressure_live(Arena *arena, const Kernel *kernel) {
    return (uint32_t)peak_of_stages(arena, kernel, &(Sched){.lanes = 1}, false, true);
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
                size += own_size(&w, id, kernel_lane_axes(kernel, sched), sched->lanes);
        if (size > most) most = size;
    }
    arena_rewind(arena, mark);
    return most;
}

/* At most. */
static int64_t row_elems(const Kernel *kernel) {
    return dim_hi(indextab_dims(scalartab_indices(kernel->scalars)), kernel_n_reduced(kernel));
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
    double outputs = sched->gemv.lanes_along_k ? (double)sched->gemv.tile_m * sched->gemv.tile_n *
                                                     sched->gemv.threads_along_k / sched->threads
                                               : 1;
    double chains = sched->gemv.slots * sched->lanes, loaded = sched->unroll * bytes / 4.0 * chains;
    return chains * outputs * dtype_bytes(reduce->acc) / 4 + loaded * (outputs + 1) + REGS_GEMV;
}

/* Warps that multiply hold a tile's accumulators. Where there are two groups of them, the warps
 * that copy give up theirs, and a thread of the launch begins with its share of all there are. */
static double wgmma_registers(const Sched *sched) {
    double tile = (double)sched->gemm.tile_m * sched->gemm.tile_n * wgmma_products(sched) /
                  (sched->gemm.warps_m * WARP_THREADS);
    double own = tile + REGS_FRAGMENT;
    bool is_shared_out = sched->gemm.warps_m > WGMMA_GROUP_WARPS;
    double most = PROCESSOR_REGISTERS / sched->threads / REGISTER_STEP * REGISTER_STEP - REGS_TILE;
    return own < most && !is_shared_out ? own : most;
}

/* Where a thread's share of the operands is. */
static double mma_places(const Kernel *kernel, const Sched *sched) {
    double size = REGS_MMA + (kernel->symbols ? REGS_MMA_OPEN : 0);
    bool has_steps = row_elems(kernel) > sched->gemm.tile_k;
    return size + (has_steps ? REGS_MMA_STEPS : 0);
}

static double contract_registers(const Kernel *kernel, const Sched *sched) {
    const Reduce *reduce = &kernel->reduces.data[0];
    GemmEngine engine = sched_engine(sched);
    if (engine == GEMM_NAIVE) return 0;
    if (engine == GEMM_GEMV) return vector_registers(kernel, sched);
    if (engine == GEMM_WGMMA) return wgmma_registers(sched);
    double words = dtype_bytes(reduce->acc) / 4.0;
    double tile = words * sched->gemm.tile_m * sched->gemm.tile_n / sched->threads;
    if (sched_engine(sched) == GEMM_MMA) return REGS_MMA_SHARE * tile + mma_places(kernel, sched);
    double sides = (double)sched->gemm.tile_m / sched->gemm.warps_m +
                   (double)sched->gemm.tile_n / sched->gemm.warps_n;
    return tile + sides / 2 * words + (kernel->symbols ? REGS_FRAGMENT : REGS_FIXED);
}

static uint32_t contract_shared(const Kernel *kernel, const Variant *variant) {
    const Sched *sched = &variant->sched;
    const Reduce *reduce = &kernel->reduces.data[0];
    uint32_t bytes = dtype_bytes(scalar_get(kernel->scalars, reduce->value)->dtype);
    if (variant->shared_bytes) return variant->shared_bytes;
    if (sched_engine(sched) == GEMM_NAIVE) return 0;
    if (sched_engine(sched) == GEMM_GEMV) {
        GemvPasses p = kernel_gemv_passes(kernel, variant);
        uint32_t n_sums = p.n_kept * p.n_parts + (p.n_groups > 1 ? p.n_groups : 0);
        return n_sums * sched->gemv.tile_m * sched->gemv.tile_n * dtype_bytes(reduce->acc);
    }
    return sched->gemm.stages * (sched->gemm.tile_m + sched->gemm.tile_n) * sched->gemm.tile_k *
           bytes;
}

/* A tile's loads, or partial results on their way between warps. */
static uint32_t own_shared(Arena *arena, const Kernel *kernel, const Sched *sched) {
    uint32_t bytes = 0;
    bool take_turns;
    if (sched->template == TEMPLATE_GPU_MAP_TILE) return map_tile_bytes(arena, kernel, sched);
    if (kernel->form == FORM_COLUMN) return kernel_column_shared(kernel, sched, &take_turns);
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        uint32_t own = dtype_bytes(reduce->acc) + (reduce->is_arg ? 4 : 0);
        if (kernel->form == FORM_ROW && sched_row(sched).threads_per_row > WARP_THREADS)
            bytes += WARP_THREADS * own;
        if (kernel->form == FORM_ROW && sched->cluster > 1) bytes += sched->cluster * own;
    }
    return bytes;
}

/* Loaded in a step. */
static double loaded_size(Arena *arena, const Kernel *kernel, const Sched *sched) {
    ArenaMark mark = arena_mark(arena);
    Walk w = walk_new(arena, kernel);
    double size = 0;
    reach_stage(&w, &kernel->stages.data[0]);
    for (uint32_t i = 0; i < w.n; i++)
        if (scalar_get(w.scalars, w.order[i])->kind == SCALAR_LOAD)
            size += own_size(&w, w.order[i], kernel_lane_axes(kernel, sched), sched->lanes);
    arena_rewind(arena, mark);
    return size;
}

/* Sums take the place of what they are made of, but the index of an extreme does not. */
static double arg_size(const Kernel *kernel, uint32_t lanes) {
    double size = 0;
    for (uint32_t i = 0; i < kernel->reduces.n; i++)
        if (kernel->reduces.data[i].is_arg) size += REGS_ARG_SHARE * lanes;
    return size;
}

/* Beside the values of a step. */
static double row_registers(Arena *arena, const Kernel *kernel, const Sched *sched, bool is_least) {
    RowSched row = sched_row(sched);
    double size = (row.threads_per_row > 1 ? REGS_TEAM_SHARE : 0) + arg_size(kernel, sched->lanes);
    if (!row.resident) return size + (is_least ? 0 : REGS_ROW_LOOP);
    double kept = kept_size(arena, kernel, sched);
    if (sched->is_wide) size += row.resident; /* addresses of steps that may not exist */
    double further = row.resident - 1, loaded = loaded_size(arena, kernel, sched);
    size += kept * (further > 0 ? row.resident : REGS_ONLY_STEP_SHARE);
    if (is_least) return size;
    bool is_single = sched->lanes == 1;
    if (kept > 0) return size + (is_single ? REGS_SINGLE_SHARE : REGS_STEP_SHARE) * further;
    double once = is_single ? REGS_SINGLE_ONCE_SHARE : REGS_ONCE_SHARE;
    return size + (once + REGS_LOADED_SHARE * loaded) *
                      (is_single ? fmin(further, REGS_MOST_ONCE) : further);
}

/* Sums of a segment and of the one before it, and where the rows are. */
static double column_registers(const Kernel *kernel, const Sched *sched) {
    int64_t rows = row_elems(kernel);
    double size = REGS_COLUMN + 2 * acc_size(kernel, sched->lanes);
    if (rows > 1) size += REGS_COLUMN_ROWS;
    if (rows > REGS_COLUMN_FEW * (int64_t)sched->column.threads_along) size += REGS_COLUMN_LONG;
    return size;
}

/* Of a tile, beside what an element takes: a thread has the loads of all its elements under way.
 * The assembler begins those that are loaded ahead when it has put the others into shared memory,
 * where it would have too few registers for both. */
static double map_tile_registers(Arena *arena, const Kernel *kernel, const Sched *sched,
                                 double peak) {
    if (sched->template != TEMPLATE_GPU_MAP_TILE) return 0;
    MapTileHeld held = map_tile_held(arena, kernel, sched);
    return fmax(0, fmax(held.staged, held.ahead) - peak) + REGS_MAP_TILE;
}

static double thread_registers(Arena *arena, const Kernel *kernel, const Sched *sched,
                               bool is_least) {
    uint32_t n_arguments =
        kernel->args.n < REGS_MOST_ARGUMENTS ? kernel->args.n : REGS_MOST_ARGUMENTS;
    double size = REGS_OWN + n_arguments + (sched->is_wide ? REGS_WIDE_SHARE : 0);
    double peak = peak_of_stages(arena, kernel, sched, true, is_least);
    switch (kernel->form) {
    case FORM_MAP:
        return size + peak + map_tile_registers(arena, kernel, sched, peak);
    case FORM_ROW:
        return size + peak + row_registers(arena, kernel, sched, is_least);
    case FORM_COLUMN:
        return size + REGS_COLUMN_SHARE * peak + column_registers(kernel, sched);
    case FORM_GEMM: {
        double main = contract_registers(kernel, sched), most = main > peak ? main : peak;
        bool has_tiles = sched_engine(sched) != GEMM_NAIVE && sched_engine(sched) != GEMM_GEMV;
        return (has_tiles ? REGS_TILE : size) + most;
    }
    }
    return size;
}

static uint32_t registers(Arena *arena, const Kernel *kernel, const Sched *sched, bool is_least) {
    ArenaMark mark = arena_mark(arena);
    uint32_t n = (uint32_t)(thread_registers(arena, kernel, sched, is_least) + 0.5);
    arena_rewind(arena, mark);
    return n < REGS_LEAST ? REGS_LEAST : n;
}

uint32_t pressure_registers(Arena *arena, const Kernel *kernel, const Sched *sched) {
    return registers(arena, kernel, sched, false);
}

bool pressure_is_spread(Arena *arena, const Kernel *kernel, const Sched *sched) {
    ArenaMark mark = arena_mark(arena);
    Walk w = walk_new(arena, kernel);
    w.pairs_bf16 = sched->pairs_bf16;
    bool is_map = kernel->form == FORM_MAP;
    if (is_map) reach_stage(&w, &kernel->stages.data[0]);
    bool spread = is_map && is_spread(arena, &w, kernel_lane_axes(kernel, sched), sched->lanes);
    arena_rewind(arena, mark);
    return spread;
}

uint32_t pressure_least(Arena *arena, const Kernel *kernel, const Sched *sched) {
    return registers(arena, kernel, sched, true);
}

uint32_t pressure_lanes(Arena *arena, const Kernel *kernel, Sched sched) {
    for (; sched.lanes > 1; sched.lanes /= 2)
        if (pressure_least(arena, kernel, &sched) <= MAX_THREAD_REGISTERS &&
            !pressure_is_spread(arena, kernel, &sched))
            break;
    return sched.lanes;
}

/* A map's thread has all its steps at once. */
static uint32_t registers_of_thread(Arena *arena, const Kernel *kernel, Sched sched) {
    if (kernel->form == FORM_MAP && sched.unroll > 1) sched.lanes *= sched.unroll;
    return pressure_registers(arena, kernel, &sched);
}

Pressure pressure_of(Arena *arena, const Plan *plan, const Kernel *kernel, const Variant *variant,
                     const Card *card) {
    (void)plan;
    const Sched *sched = &variant->sched;
    if (card->device == DEVICE_CPU) return (Pressure){.n_blocks = 1, .occupancy = 1};
    Pressure p = {.registers = registers_of_thread(arena, kernel, *sched)};
    p.shared_bytes =
        variant->smem_bytes + (kernel->form == FORM_GEMM ? contract_shared(kernel, variant)
                                                         : own_shared(arena, kernel, sched));
    p.spills = p.registers > MAX_THREAD_REGISTERS;
    p.spilled = p.spills ? p.registers - MAX_THREAD_REGISTERS : 0;
    uint32_t held = p.spills ? MAX_THREAD_REGISTERS : p.registers;
    held = (held + REGISTER_STEP - 1) / REGISTER_STEP * REGISTER_STEP;
    p.n_blocks = card->threads / sched->threads;
    uint32_t by_registers = PROCESSOR_REGISTERS / (held * sched->threads);
    if (by_registers < sched->min_blocks) by_registers = sched->min_blocks;
    uint32_t by_shared =
        p.shared_bytes ? card->shared_bytes / p.shared_bytes : MAX_PROCESSOR_BLOCKS;
    if (p.n_blocks > MAX_PROCESSOR_BLOCKS) p.n_blocks = MAX_PROCESSOR_BLOCKS;
    if (by_registers < p.n_blocks) p.n_blocks = by_registers;
    if (by_shared < p.n_blocks) p.n_blocks = by_shared;
    if (p.n_blocks < 1) p.n_blocks = 1;
    p.occupancy = (double)p.n_blocks * sched->threads / card->threads;
    if (p.occupancy > 1) p.occupancy = 1;
    return p;
}
