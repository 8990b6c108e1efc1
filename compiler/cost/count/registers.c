/* Estimating registers. See registers.h.
 *
 * Scalars are taken in the order in which templates ask for them: depth first from reductions and
 * stores. A scalar is live from its computation to its last use. ptxas finishes one lane after the
 * other, so only loaded and stored values have a register per lane, loaded ones in part, because
 * they are consumed on the way. ptxas works on all lanes of a map at once if so many values are
 * made side by side that it gives up ordering them. All lanes are live at a primitive with
 * branches. If all lanes certainly fit, a schedule relies on no order. The registers needed inside
 * a primitive grow with its cost. For columns, values are few beside the accumulators and addresses
 * of the rows in flight. The constants are fitted to ptxas's numbers for random graphs
 * (tests/cost/test_registers.c), the examples and generated chains. */
#include "cost/count/registers.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include <math.h>

typedef struct Walk {
    const Kernel *kernel;
    const ScalarTab *scalars;
    IndexTab *indices;
    uint32_t *place; /* per scalar: position in the order, plus 1; 0: not reached */
    uint32_t *last;  /* per scalar: position of the last use */
    ScalarId *order;
    const Scalar **at; /* per position */
    uint32_t n;
    bool pairs_bf16, has_narrow;
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
    w->at[w->n] = s;
    w->order[w->n++] = id;
    w->place[id] = w->n;
    w->last[id] = w->n;
    for (int i = 0; i < 3; i++)
        if (s->args[i]) w->last[s->args[i]] = w->n;
}

/* Walks the scalars that the stage's reductions and stores need. The last use of a scalar is
 * another scalar; for a root it is the accumulator or store right after it. */
static void reach_stage(Walk *w, const Stage *stage) {
    for (uint32_t i = 0; i < w->n; i++) w->place[w->order[i]] = 0;
    w->n = 0;
    w->has_narrow = false;
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        const Reduce *reduce = stage_reduce(w->kernel, stage, i);
        reach(w, reduce->value);
        reach(w, reduce->rhs);
        reach(w, reduce->arg_index);
        reach(w, reduce->factor);
        for (uint32_t k = 0; reduce->join && k < reduce->join->n; k++)
            reach(w, reduce->join->elements[k]);
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
    w.at = arena_array(arena, const Scalar *, n);
    return w;
}

static PrimCode code_of(const Scalar *s) {
    bool is_float_prim = s->kind == SCALAR_PRIM && dtype_in(s->dtype, DTS_FLOAT);
    return is_float_prim ? prim_info(s->prim)->code : PRIM_CODE_STRAIGHT;
}

/* All lanes run through the loop together. */
static bool is_looping(const Scalar *s) {
    return code_of(s) == PRIM_CODE_LOOPS;
}

/* All lanes are live when the primitive begins. */
static bool is_branching(const Scalar *s) {
    return code_of(s) != PRIM_CODE_STRAIGHT;
}

/* Whether the machine computes two lanes of the dtype per instruction. */
static bool is_paired(const Walk *w, Dtype dtype) {
    return dtype_is_paired(dtype, w->pairs_bf16);
}

/* Whether an f32 value stays in the narrow pairs that it is widened from or rounded to: see
 * codegen/scalar/point_narrow.c. */
static bool is_narrow(const Walk *w, const Scalar *s) {
    if (!dtype_is_single(s->dtype)) return false;
    if (s->kind == SCALAR_CVT) return is_paired(w, scalar_get(w->scalars, s->args[0])->dtype);
    if (s->kind != SCALAR_PRIM || prim_info(s->prim)->cost > 1) return false;
    for (int i = 0; i < 3; i++) {
        const Scalar *arg = s->args[i] ? scalar_get(w->scalars, s->args[i]) : NULL;
        bool is_widened = arg && arg->kind == SCALAR_CVT && is_narrow(w, arg);
        if (arg && arg->kind != SCALAR_CONST && !is_widened) return false;
    }
    return true;
}

static void find_narrow(Walk *w) {
    for (uint32_t i = 0; i < w->n && !w->has_narrow; i++) w->has_narrow = is_narrow(w, w->at[i]);
}

/* The registers of a scalar; two 16-bit elements share one. */
static double own_size(const Scalar *s, uint32_t axes, uint32_t lanes) {
    if (s->kind == SCALAR_CONST) return 0;
    bool varies = (s->axes & axes) != 0;
    double bytes = dtype_bytes(s->dtype) < 2 ? 2 : dtype_bytes(s->dtype);
    return (varies ? lanes : 1) * bytes / 4;
}

/* own_size where narrow pairs stay pairs: a widened value needs no registers of its own. */
static double paired_size(const Walk *w, const Scalar *s, uint32_t axes, uint32_t lanes) {
    if (!w->has_narrow || !is_narrow(w, s)) return own_size(s, axes, lanes);
    bool is_widened = s->kind == SCALAR_CVT;
    return is_widened ? 0 : own_size(s, axes, lanes) / 2;
}

/* The largest registers that are live at once. */
typedef struct Peak {
    double all, branching; /* `branching`: at a primitive with branches */
} Peak;

/* Per position: that of the last use. A narrow value is used until its widened values are. */
static uint32_t *last_uses(Arena *arena, const Walk *w, bool in_pairs) {
    uint32_t *last = arena_array(arena, uint32_t, w->n);
    for (uint32_t i = 0; i < w->n; i++) last[i] = w->last[w->order[i]];
    for (uint32_t i = 0; i < w->n && in_pairs && w->has_narrow; i++) {
        const Scalar *s = w->at[i];
        if (s->kind != SCALAR_CVT || !is_narrow(w, s)) continue;
        uint32_t *of_arg = &last[w->place[s->args[0]] - 1];
        if (last[i] > *of_arg) *of_arg = last[i];
    }
    return last;
}

static Peak peak_of(Arena *arena, const Walk *w, uint32_t axes, uint32_t lanes, bool in_pairs) {
    double *change = arena_array(arena, double, w->n + 2), alive = 0;
    const uint32_t *last = last_uses(arena, w, in_pairs);
    Peak peak = {0, 0};
    for (uint32_t i = 0; i < w->n; i++) {
        const Scalar *s = w->at[i];
        double size = in_pairs ? paired_size(w, s, axes, lanes) : own_size(s, axes, lanes);
        change[i + 1] += size;
        change[last[i] + 1 > w->n + 1 ? w->n + 1 : last[i] + 1] -= size;
    }
    for (uint32_t i = 1; i <= w->n; i++) {
        alive += change[i];
        if (alive > peak.all) peak.all = alive;
        if (alive > peak.branching && is_branching(w->at[i - 1])) peak.branching = alive;
    }
    return peak;
}

static double peak_size(Arena *arena, const Walk *w, uint32_t axes, uint32_t lanes) {
    return peak_of(arena, w, axes, lanes, false).all;
}

/* The most registers of primitives that do not depend on each other. */
static double breadth(Arena *arena, const Walk *w, uint32_t axes, uint32_t lanes) {
    uint32_t *level = arena_array(arena, uint32_t, w->n); /* per position */
    double *sizes = arena_array(arena, double, w->n + 2), most = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        const Scalar *s = w->at[i];
        uint32_t own = 0;
        for (int k = 0; k < 3; k++)
            if (s->args[k] && level[w->place[s->args[k]] - 1] > own)
                own = level[w->place[s->args[k]] - 1];
        level[i] = own + (s->kind == SCALAR_PRIM);
        if (s->kind != SCALAR_PRIM) continue;
        sizes[own + 1] += paired_size(w, s, axes, lanes);
        if (sizes[own + 1] > most) most = sizes[own + 1];
    }
    return most;
}

/* Registers for further lanes of loaded values of the stage, and of values stored together. */
static double wide_size(const Walk *w, const Stage *stage, uint32_t axes, uint32_t lanes) {
    double loaded = 0, stored = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->at[i]->kind != SCALAR_LOAD) continue;
        loaded += own_size(w->at[i], axes, lanes) - own_size(w->at[i], axes, 1);
    }
    for (uint32_t i = 0; i < stage->stores.n; i++) {
        const Scalar *value = scalar_get(w->scalars, stage->stores.data[i].value);
        double own = own_size(value, axes, lanes) - own_size(value, axes, 1);
        if (own > stored) stored = own;
    }
    return REGS_LOADED_SHARE * loaded + REGS_STORED_SHARE * stored;
}

/* Registers that primitives need while they are computed, one at a time, and registers for
 * guards. */
static double own_needs(const Walk *w, uint32_t lanes) {
    double most = 0, guards = 0;
    bool loops = false;
    for (uint32_t i = 0; i < w->n; i++) {
        const Scalar *s = w->at[i];
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

/* Whether values are rounded to bf16 and widened again on a machine without bf16 arithmetic. Two
 * lanes are rounded at once, so they are live together. */
static bool rounds_pairs(const Walk *w) {
    for (uint32_t i = 0; i < w->n; i++) {
        const Scalar *s = w->at[i];
        const Scalar *arg = s->kind == SCALAR_CVT ? scalar_get(w->scalars, s->args[0]) : NULL;
        if (arg && arg->kind == SCALAR_CVT && dtype_is_paired(arg->dtype, true) &&
            !is_paired(w, arg->dtype))
            return true;
    }
    return false;
}

/* Whether ptxas works on all lanes at once: so many values can be made side by side before their
 * use that it gives up an order by lanes. `all`: peak_of in pairs; `broad`: breadth. */
static bool is_spread(const Walk *w, uint32_t lanes, double all, double broad) {
    if (lanes == 1) return false;
    double side_by_side = fmin(all, broad);
    if (rounds_pairs(w)) return side_by_side >= REGS_SPREAD_PAIRS || all >= REGS_MOST_PAIRS;
    return side_by_side >= REGS_SPREAD;
}

/* An estimate. is_least: a lower one, for cases with many values where ptxas may go either way. */
static double size_of_stage(Arena *arena, const Walk *w, const Stage *stage, uint32_t axes,
                            uint32_t lanes, bool is_least) {
    uint32_t together =
        lanes > 1 && !form_info(w->kernel->form)->reduces && rounds_pairs(w) ? 2 : 1;
    Peak all = peak_of(arena, w, axes, lanes, true);
    bool is_known = lanes == together && !w->has_narrow;
    double own = is_known ? all.all : peak_size(arena, w, axes, together);
    if (is_least && own > REGS_MANY_ALIVE * together) return peak_size(arena, w, axes, lanes);
    double broad = breadth(arena, w, axes, lanes);
    if (is_spread(w, lanes, all.all, broad)) return all.all;
    bool is_broad = broad >= REGS_BROAD_SHARE * all.all;
    if (lanes == 1 && is_broad) own = all.all;
    own += wide_size(w, stage, axes, lanes);
    return !form_info(w->kernel->form)->reduces ? fmax(own, all.branching) : own;
}

double registers_of_stages(Arena *arena, const Kernel *kernel, const Sched *sched, bool needs,
                           bool is_least) {
    double peak = 0;
    uint32_t axes = kernel_lane_axes(kernel, sched), lanes = sched->lanes;
    ArenaMark begin = arena_mark(arena);
    Walk w = walk_new(arena, kernel);
    w.pairs_bf16 = sched->pairs_bf16;
    for (uint32_t i = 0; i <= kernel->stages.n; i++) {
        ArenaMark mark = arena_mark(arena);
        Stage rest = {.stores = {.data = kernel->row_stores.data, .n = kernel->row_stores.n}};
        const Stage *stage = i < kernel->stages.n ? &kernel->stages.data[i] : &rest;
        reach_stage(&w, stage);
        find_narrow(&w);
        double own = size_of_stage(arena, &w, stage, axes, lanes, is_least);
        if (needs) own += own_needs(&w, lanes);
        if (own > peak) peak = own;
        arena_rewind(arena, mark);
    }
    arena_rewind(arena, begin);
    return peak;
}

double registers_kept(Arena *arena, const Kernel *kernel, const Sched *sched) {
    if (kernel->stages.n < 2) return 0;
    ArenaMark mark = arena_mark(arena);
    uint32_t n = scalar_count(kernel->scalars) + 1;
    uint32_t *first = arena_array(arena, uint32_t, n), *last = arena_array(arena, uint32_t, n);
    uint32_t axes = kernel_lane_axes(kernel, sched);
    double size = 0, most = 0;
    Walk w = walk_new(arena, kernel);
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        reach_stage(&w, &kernel->stages.data[i]);
        for (uint32_t k = 0; k < w.n; k++) {
            ScalarId id = w.order[k];
            if (!first[id]) first[id] = i + 1;
            bool is_leaf = true;
            const Scalar *s = w.at[k];
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
                size += own_size(scalar_get(kernel->scalars, id), axes, sched->lanes);
        if (size > most) most = size;
    }
    arena_rewind(arena, mark);
    return most;
}

double registers_loaded(Arena *arena, const Kernel *kernel, const Sched *sched) {
    ArenaMark mark = arena_mark(arena);
    Walk w = walk_new(arena, kernel);
    double size = 0;
    reach_stage(&w, &kernel->stages.data[0]);
    for (uint32_t i = 0; i < w.n; i++)
        if (w.at[i]->kind == SCALAR_LOAD)
            size += own_size(w.at[i], kernel_lane_axes(kernel, sched), sched->lanes);
    arena_rewind(arena, mark);
    return size;
}

bool registers_are_spread(Arena *arena, const Kernel *kernel, const Sched *sched) {
    if (form_info(kernel->form)->reduces || sched->lanes == 1) return false;
    ArenaMark mark = arena_mark(arena);
    uint32_t axes = kernel_lane_axes(kernel, sched), lanes = sched->lanes;
    Walk w = walk_new(arena, kernel);
    w.pairs_bf16 = sched->pairs_bf16;
    reach_stage(&w, &kernel->stages.data[0]);
    find_narrow(&w);
    bool spread = is_spread(&w, lanes, peak_of(arena, &w, axes, lanes, true).all,
                            breadth(arena, &w, axes, lanes));
    arena_rewind(arena, mark);
    return spread;
}
