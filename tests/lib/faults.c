/* The planted faults. See faults.h. */
#include "lib/faults.h"

#include "ir/indexmap.h"
#include "plan/launch.h"
#include "random/rng.h"

#include <string.h>

/* One plan being changed. A fault selects a value of the graph by its op, and rebuilds the kernel's
 * scalars with a substitute for it. */
typedef struct Plant {
    Arena *arena;
    Plan *plan;
    Kernel *kernel;
    ScalarTab *scalars;
    IndexTab *indices;
    Trace *trace;  /* of the selected value */
    ScalarId *map; /* per old scalar: the new one */
    ScalarId old;  /* the scalar that is being rebuilt */
    bool is_done;
} Plant;

/* Returns the substitute of scalar plant->old, whose arguments are in plant->map; SCALAR_NONE: no
 * substitute. */
typedef ScalarId Substitute(Plant *plant, const Scalar *s);

static DimId number(const Plant *p, int64_t value) {
    return dim_const(p->plan->graph->dims, value);
}

/* Finds the first value of an op, in the first kernel that has it. */
static bool find(Plant *p, OpId op) {
    for (uint32_t k = 0; k < p->plan->kernels.n; k++) {
        p->kernel = &p->plan->kernels.data[k];
        p->scalars = p->kernel->scalars;
        p->indices = scalartab_indices(p->scalars);
        for (uint32_t t = 0; t < p->kernel->traces.n; t++) {
            p->trace = &p->kernel->traces.data[t];
            if (graph_node(p->plan->graph, p->trace->node)->op == op && !p->trace->is_loaded)
                return true;
        }
    }
    return false;
}

static ScalarId copy(Plant *p, const Scalar *s) {
    ScalarId args[3];
    for (int i = 0; i < 3; i++) args[i] = p->map[s->args[i]];
    if (s->kind == SCALAR_CVT) return scalar_cvt(p->scalars, args[0], s->dtype);
    if (s->kind == SCALAR_PRIM) return scalar_prim(p->scalars, s->prim, args[0], args[1], args[2]);
    return p->old;
}

static void map_stores(const Plant *p, Store *stores, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) stores[i].value = p->map[stores[i].value];
}

/* Rebuilds all scalars of the kernel. */
static void rebuild(Plant *p, Substitute *substitute) {
    uint32_t n = scalar_count(p->scalars);
    Kernel *kernel = p->kernel;
    p->map = arena_array(p->arena, ScalarId, n + 1);
    for (p->old = 1; p->old <= n; p->old++) {
        Scalar s = *scalar_get(p->scalars, p->old);
        ScalarId other = substitute(p, &s);
        if (other) p->is_done = true;
        p->map[p->old] = other ? other : copy(p, &s);
    }
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        Reduce *reduce = &kernel->reduces.data[i];
        reduce->value = p->map[reduce->value];
        reduce->rhs = p->map[reduce->rhs];
        reduce->arg_index = p->map[reduce->arg_index];
    }
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        map_stores(p, kernel->stages.data[i].stores.data, kernel->stages.data[i].stores.n);
    map_stores(p, kernel->row_stores.data, kernel->row_stores.n);
    for (uint32_t t = 0; t < kernel->traces.n; t++)
        kernel->traces.data[t].value = p->map[kernel->traces.data[t].value];
    kernel_note_interface(p->arena, kernel);
}

static void plant_in(Plant *p, OpId op, Substitute *substitute) {
    if (find(p, op)) rebuild(p, substitute);
}

/* Whether it is the last primitive of the op's body. */
static bool is_body(const Plant *p, const Scalar *s, PrimId prim) {
    return s->kind == SCALAR_PRIM && s->prim == prim && p->old == p->trace->value;
}

static ScalarId apply(Plant *p, PrimId prim, ScalarId a, ScalarId b, ScalarId c) {
    return scalar_prim(p->scalars, prim, a, b, c);
}

/* Wrong bodies of ops. */

static ScalarId add_for_mul(Plant *p, const Scalar *s) {
    if (!is_body(p, s, PRIM_MUL)) return SCALAR_NONE;
    return apply(p, PRIM_ADD, p->map[s->args[0]], p->map[s->args[1]], SCALAR_NONE);
}

static void wrong_op(Plant *p) {
    plant_in(p, OP_MUL, add_for_mul);
}

static void wrong_everywhere(Plant *p) {
    plant_in(p, OP_MUL, add_for_mul);
}

static ScalarId swapped_sub(Plant *p, const Scalar *s) {
    if (!is_body(p, s, PRIM_SUB)) return SCALAR_NONE;
    return apply(p, PRIM_SUB, p->map[s->args[1]], p->map[s->args[0]], SCALAR_NONE);
}

static void swapped_operands(Plant *p) {
    plant_in(p, OP_SUB, swapped_sub);
}

static ScalarId select_for_max(Plant *p, const Scalar *s) {
    if (!is_body(p, s, PRIM_MAX)) return SCALAR_NONE;
    ScalarId a = p->map[s->args[0]], b = p->map[s->args[1]];
    return apply(p, PRIM_SELECT, apply(p, PRIM_LT, b, a, SCALAR_NONE), a, b);
}

static void drops_nan(Plant *p) {
    plant_in(p, OP_MAXIMUM, select_for_max);
}

static ScalarId zero_minus(Plant *p, const Scalar *s) {
    if (!is_body(p, s, PRIM_NEG)) return SCALAR_NONE;
    ScalarId zero = scalar_const(p->scalars, s->dtype, 0);
    return apply(p, PRIM_SUB, zero, p->map[s->args[0]], SCALAR_NONE);
}

static void lost_minus_zero(Plant *p) {
    plant_in(p, OP_NEG, zero_minus);
}

static ScalarId swapped_select(Plant *p, const Scalar *s) {
    if (!is_body(p, s, PRIM_SELECT)) return SCALAR_NONE;
    return apply(p, PRIM_SELECT, p->map[s->args[0]], p->map[s->args[2]], p->map[s->args[1]]);
}

static void wrong_branch(Plant *p) {
    plant_in(p, OP_WHERE, swapped_select);
}

static ScalarId half_up(Plant *p, const Scalar *s) {
    if (!is_body(p, s, PRIM_RINT)) return SCALAR_NONE;
    ScalarId half = scalar_const(p->scalars, s->dtype, 0.5);
    ScalarId sum = apply(p, PRIM_ADD, p->map[s->args[0]], half, SCALAR_NONE);
    return apply(p, PRIM_FLOOR, sum, SCALAR_NONE, SCALAR_NONE);
}

static void rounding_mode(Plant *p) {
    plant_in(p, OP_ROUND, half_up);
}

/* For a conversion f32 to bf16 to f32: the value before both. */
static ScalarId not_narrowed(Plant *p, const Scalar *s) {
    if (s->kind != SCALAR_CVT || s->dtype != DT_F32) return SCALAR_NONE;
    const Scalar *narrow = scalar_get(p->scalars, s->args[0]);
    return narrow->kind == SCALAR_CVT ? p->map[narrow->args[0]] : SCALAR_NONE;
}

static void dropped_cast(Plant *p) {
    plant_in(p, OP_CAST, not_narrowed);
}

static ScalarId with_last_load(Plant *p, const Scalar *s) {
    if (!is_body(p, s, PRIM_ADD)) return SCALAR_NONE;
    ScalarId other = SCALAR_NONE;
    for (ScalarId id = 1; id <= scalar_count(p->scalars); id++)
        if (scalar_get(p->scalars, id)->kind == SCALAR_LOAD) other = id;
    return apply(p, PRIM_ADD, p->map[s->args[0]], other, SCALAR_NONE);
}

static void wrong_epilogue(Plant *p) {
    plant_in(p, OP_ADD, with_last_load);
}

/* Wrong indices. */

static ScalarId without_mask(Plant *p, const Scalar *s) {
    return is_body(p, s, PRIM_SELECT) ? p->map[s->args[1]] : SCALAR_NONE;
}

static void missing_mask(Plant *p) {
    plant_in(p, OP_PAD, without_mask);
}

static ScalarId one_later(Plant *p, const Scalar *s) {
    if (!is_body(p, s, PRIM_SELECT)) return SCALAR_NONE;
    Guard guard = guard_get(p->scalars, scalar_get(p->scalars, s->args[0])->guard);
    DimId later = dim_add(p->plan->graph->dims, guard.hi, number(p, 1));
    GuardId wider = guard_and(p->scalars, GUARD_NONE, guard.index, guard.lo, later);
    return apply(p, PRIM_SELECT, scalar_inside(p->scalars, wider), p->map[s->args[1]],
                 p->map[s->args[2]]);
}

static void off_by_one(Plant *p) {
    plant_in(p, OP_CONCAT, one_later);
}

static ScalarId moved_load(Plant *p, const Scalar *s) {
    for (uint32_t t = 0; t < p->kernel->traces.n; t++) {
        const Trace *trace = &p->kernel->traces.data[t];
        if (s->kind != SCALAR_LOAD || trace->value != p->old) continue;
        const Shape *shape = &graph_node(p->plan->graph, trace->node)->shape;
        IndexId address = indexmap_address(p->indices, shape, trace->coords);
        if (address != s->index)
            return scalar_load(p->scalars, s->dtype, s->buffer, address, s->guard);
    }
    return SCALAR_NONE;
}

typedef void Move(Plant *p, IndexId *coords);

/* Changes the indices of all loads below a trace, as a wrong index map of its op would. */
static void move_below(Plant *p, const Trace *above, Move *move) {
    for (uint32_t i = 0; i < above->operands.n; i++) {
        Trace *trace = &p->kernel->traces.data[above->operands.data[i]];
        uint32_t rank = graph_node(p->plan->graph, trace->node)->shape.rank;
        IndexId *coords = arena_copy(p->arena, trace->coords, rank * sizeof *coords);
        move(p, coords);
        trace->coords = coords;
        move_below(p, trace, move);
    }
}

static void plant_move(Plant *p, OpId op, Move *move) {
    if (!find(p, op)) return;
    move_below(p, p->trace, move);
    rebuild(p, moved_load);
}

static void swap_coords(Plant *p, IndexId *coords) {
    IndexId first = coords[0];
    (void)p;
    coords[0] = coords[1];
    coords[1] = first;
}

static void wrong_index_map(Plant *p) {
    plant_move(p, OP_TRANSPOSE, swap_coords);
}

static void one_earlier(Plant *p, IndexId *coords) {
    coords[1] = index_add_dim(p->indices, coords[1], number(p, -1));
}

static void shifted_slice(Plant *p) {
    plant_move(p, OP_SLICE, one_earlier);
}

/* Loads the last operand from another address. It models a lowering error: the plan still has the
 * right address. */
static ScalarId bias_by_row(Plant *p, const Scalar *s) {
    const Scalar *add = scalar_get(p->scalars, p->trace->value);
    if (p->old != add->args[1]) return SCALAR_NONE;
    IndexId row = index_mod(p->indices, index_axis(p->indices, 0), number(p, 8));
    return scalar_load(p->scalars, s->dtype, s->buffer, row, s->guard);
}

static void wrong_axis(Plant *p) {
    plant_in(p, OP_ADD, bias_by_row);
}

static ScalarId first_row(Plant *p, const Scalar *s) {
    if (p->old != p->trace->value) return SCALAR_NONE;
    return scalar_load(p->scalars, s->dtype, s->buffer, index_axis(p->indices, 1), s->guard);
}

static void wrong_row(Plant *p) {
    plant_in(p, OP_GATHER, first_row);
}

/* Wrong reductions. */

static Reduce *find_reduce(Plant *p, OpId op) {
    for (uint32_t k = p->plan->kernels.n; k-- > 0;) {
        p->kernel = &p->plan->kernels.data[k];
        p->scalars = p->kernel->scalars;
        p->indices = scalartab_indices(p->scalars);
        for (uint32_t i = 0; i < p->kernel->reduces.n; i++) {
            Reduce *reduce = &p->kernel->reduces.data[i];
            if (graph_node(p->plan->graph, reduce->node)->op != op) continue;
            p->is_done = true;
            return reduce;
        }
    }
    return NULL;
}

static void wrong_identity(Plant *p) {
    Reduce *reduce = find_reduce(p, OP_MAX);
    if (reduce) reduce->identity = 0;
}

static void wrong_count(Plant *p) {
    Reduce *reduce = find_reduce(p, OP_MEAN);
    if (reduce) reduce->divisor = dim_add(p->plan->graph->dims, reduce->divisor, number(p, 1));
}

static void wrong_extreme(Plant *p) {
    Reduce *reduce = find_reduce(p, OP_ARGMAX);
    if (!reduce) return;
    reduce->combine = PRIM_MIN;
    reduce->identity = -reduce->identity;
}

/* Leaves the last element of the axis out of the reduction. */
static void drop_last(Plant *p) {
    Reduce *reduce = find_reduce(p, OP_SUM);
    if (!reduce) return;
    uint32_t axis = p->kernel->first_reduced;
    int64_t extent;
    if (!dim_is_const(p->plan->graph->dims, index_axis_extent(p->indices, axis), &extent)) return;
    ScalarId at = scalar_index(p->scalars, index_axis(p->indices, axis));
    ScalarId last = scalar_const(p->scalars, DT_I32, (double)(extent - 1));
    ScalarId is_last = apply(p, PRIM_EQ, at, last, SCALAR_NONE);
    ScalarId identity = scalar_const(p->scalars, reduce->acc, reduce->identity);
    reduce->value = apply(p, PRIM_SELECT, is_last, identity, reduce->value);
    kernel_note_interface(p->arena, p->kernel);
}

static void dropped_element(Plant *p) {
    drop_last(p);
}

/* The last kernel with the reduction adds up the segments. */
static void wrong_segments(Plant *p) {
    drop_last(p);
}

/* Changes the reduction of the kernel before the last. */
static void wrong_accumulate(Plant *p) {
    if (p->plan->kernels.n < 2 || !p->plan->kernels.data[p->plan->kernels.n - 2].reduces.n) return;
    p->kernel = &p->plan->kernels.data[p->plan->kernels.n - 2];
    p->scalars = p->kernel->scalars;
    Reduce *reduce = &p->kernel->reduces.data[0];
    ScalarId two = scalar_const(p->scalars, reduce->acc, 2);
    reduce->value = apply(p, PRIM_MUL, reduce->value, two, SCALAR_NONE);
    p->is_done = true;
}

/* Wrong memory. Temporaries are numbered t0 p, t1 q, t2 r, t3 s, or t0 a, t1 b. */

static Buffer *find_temp(const Plant *p, uint32_t ordinal) {
    for (uint32_t i = 0; i < p->plan->buffers.n; i++)
        if (p->plan->buffers.data[i].kind == BUFFER_TEMP &&
            p->plan->buffers.data[i].ordinal == ordinal)
            return &p->plan->buffers.data[i];
    return NULL;
}

static void share_place(Plant *p, uint32_t one, uint32_t other) {
    Buffer *a = find_temp(p, one), *b = find_temp(p, other);
    if (!a || !b) return;
    b->offset_bytes = a->offset_bytes;
    p->is_done = true;
}

static void aliasing(Plant *p) {
    share_place(p, 0, 1);
}

static void early_reuse(Plant *p) {
    share_place(p, 0, 2);
}

static void wrong_in_place(Plant *p) {
    share_place(p, 0, 1);
}

static void in_place_early(Plant *p) {
    share_place(p, 0, 1);
}

/* The kernel whose first result has this name. */
static Kernel *find_making(const Plant *p, const char *name) {
    for (uint32_t k = 0; k < p->plan->kernels.n; k++) {
        Kernel *kernel = &p->plan->kernels.data[k];
        if (!kernel->row_stores.n) continue;
        Str made = graph_node(p->plan->graph, kernel->row_stores.data[0].node)->name;
        if (made && strcmp(made, name) == 0) return kernel;
    }
    return NULL;
}

static void launch_order(Plant *p) {
    Kernel *one = find_making(p, "r"), *other = find_making(p, "s");
    if (!one || !other) return;
    Kernel kept = *one;
    *one = *other;
    *other = kept;
    p->is_done = true;
}

/* Makes the first kernel store the op's elements in reverse order. */
static void mirror(Plant *p, OpId op) {
    DimTab *dims = p->plan->graph->dims;
    p->kernel = &p->plan->kernels.data[0];
    p->indices = scalartab_indices(p->kernel->scalars);
    for (uint32_t i = 0; i < p->kernel->row_stores.n; i++) {
        Store *store = &p->kernel->row_stores.data[i];
        const Shape *shape = &graph_node(p->plan->graph, store->node)->shape;
        if (graph_node(p->plan->graph, store->node)->op != op) continue;
        DimId last = dim_add(dims, dim_mul(dims, shape->dims[0], shape->dims[1]), number(p, -1));
        store->address =
            index_add_dim(p->indices, index_scale(p->indices, store->address, number(p, -1)), last);
        p->is_done = true;
    }
}

static void wrong_place(Plant *p) {
    mirror(p, OP_MUL);
}

static void wrong_prepared(Plant *p) {
    mirror(p, OP_SUM);
}

static void wrong_init(Plant *p) {
    drop_last(p);
    p->is_done = p->is_done && p->kernel->is_init;
}

/* A layout kernel computes nothing of the graph. This fault swaps its padding with its elements. */
static void wrong_layout(Plant *p) {
    for (uint32_t k = 0; k < p->plan->kernels.n; k++) {
        const Kernel *kernel = &p->plan->kernels.data[k];
        if (!kernel->is_init || kernel->nodes.n) continue;
        Store *store = &kernel->stages.data[0].stores.data[0];
        Scalar s = *scalar_get(kernel->scalars, store->value);
        store->value = scalar_prim(kernel->scalars, PRIM_SELECT, s.args[0], s.args[2], s.args[1]);
        p->is_done = true;
    }
}

static void wrong_reader(Plant *p) {
    plant_in(p, OP_MUL, add_for_mul);
}

static void wrong_in_concat(Plant *p) {
    plant_in(p, OP_MUL, add_for_mul);
}

static void shift_stores(Plant *p, Store *stores, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (!stores[i].begin) continue;
        stores[i].begin = dim_sub(p->plan->graph->dims, stores[i].begin, number(p, 1));
        p->is_done = true;
    }
}

static void shifted_in_concat(Plant *p) {
    for (uint32_t k = 0; k < p->plan->kernels.n; k++) {
        Kernel *kernel = &p->plan->kernels.data[k];
        for (uint32_t i = 0; i < kernel->stages.n; i++)
            shift_stores(p, kernel->stages.data[i].stores.data, kernel->stages.data[i].stores.n);
        shift_stores(p, kernel->row_stores.data, kernel->row_stores.n);
    }
}

static void wrong_slice(Plant *p) {
    plant_in(p, OP_MUL, add_for_mul);
}

static void wrong_in_update(Plant *p) {
    plant_in(p, OP_MUL, add_for_mul);
}

static void wrong_updated(Plant *p) {
    plant_in(p, OP_SUB, swapped_sub);
}

static void wrong_power(Plant *p) {
    for (uint32_t k = 0; k < p->plan->kernels.n; k++) {
        Kernel *kernel = &p->plan->kernels.data[k];
        if (!form_info(kernel->form)->weighs) continue;
        kernel->reduces.data[0].power = PRIM_EXP2;
        p->is_done = true;
    }
}

/* The table of faults. */

static const FaultInfo infos[FAULT_COUNT] = {
#define FAULT(sym, doc, op, line, place, source) \
    [FAULT_##sym] = {#sym, doc, op, line, FAULT_IN_##place, source},
#include "lib/faults.def"
};

static void (*const mistakes[FAULT_COUNT])(Plant *) = {
#define FAULT(sym, doc, op, line, place, source) [FAULT_##sym] = sym,
#include "lib/faults.def"
};

const FaultInfo *fault_info(FaultId id) {
    return &infos[id];
}

typedef struct Planter {
    FaultId id;
    uint32_t *n_planted;
} Planter;
static Planter planters[FAULT_COUNT];

/* Whether the fault changes what another pass after fusion than placing decides. */
static bool is_scheduled(FaultId id) {
    return id == FAULT_launch_order || id == FAULT_wrong_layout;
}

/* Whether the fault changes where temporaries lie. */
static bool is_placed(FaultId id) {
    return id == FAULT_aliasing || id == FAULT_early_reuse || id == FAULT_wrong_in_place ||
           id == FAULT_in_place_early;
}

static void plant(const Planter *planter, Arena *arena, Plan *plan, bool is_fused) {
    Plant p = {.arena = arena, .plan = plan};
    if (!is_fused && infos[planter->id].place != FAULT_IN_BOTH) return;
    mistakes[planter->id](&p);
    *planter->n_planted += p.is_done;
}

static void when_fused(void *user, Arena *arena, Plan *plan, bool is_fused) {
    const Planter *planter = user;
    bool is_later = is_scheduled(planter->id) || is_placed(planter->id);
    if (!is_later) plant(planter, arena, plan, is_fused);
}

static void when_scheduled(void *user, Arena *arena, Plan *plan, bool is_fused) {
    const Planter *planter = user;
    if (is_scheduled(planter->id)) plant(planter, arena, plan, is_fused);
}

static void when_placed(void *user, Arena *arena, Plan *plan, bool is_fused) {
    const Planter *planter = user;
    if (is_placed(planter->id)) plant(planter, arena, plan, is_fused);
}

DriverHook fault_hook(FaultId id, uint32_t *n_planted) {
    planters[id] = (Planter){id, n_planted};
    return (DriverHook){.user = &planters[id],
                        .fused = when_fused,
                        .scheduled = when_scheduled,
                        .placed = when_placed};
}

/* A fault for any op. */

static ScalarId one_more(Plant *p, const Scalar *s) {
    if (p->old != p->trace->value) return SCALAR_NONE;
    ScalarId right = copy(p, s);
    if (s->dtype == DT_BOOL) return apply(p, PRIM_NOT, right, SCALAR_NONE, SCALAR_NONE);
    Dtype compute = dtype_compute(s->dtype);
    ScalarId sum = apply(p, PRIM_ADD, scalar_cvt(p->scalars, right, compute),
                         scalar_const(p->scalars, compute, 1), SCALAR_NONE);
    return scalar_cvt(p->scalars, sum, s->dtype);
}

static bool is_split(const Plan *plan, const Kernel *kernel) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        n += plan->kernels.data[k].traces.data == kernel->traces.data;
    return n > 1;
}

/* Whether the scalar belongs to one op. Widening conversions are shared with other ops that read
 * the same value. */
static bool is_own(const ScalarTab *scalars, const Scalar *s) {
    if (s->kind != SCALAR_CVT) return s->kind == SCALAR_PRIM;
    return dtype_bytes(s->dtype) < dtype_bytes(scalar_get(scalars, s->args[0])->dtype);
}

/* Draws kernels and traces until it finds a value that is computed elementwise. */
static bool draw(Plant *p, Rng *rng) {
    for (int tries = 0; tries < 100; tries++) {
        p->kernel = &p->plan->kernels.data[rng_below(rng, p->plan->kernels.n)];
        if (!p->kernel->traces.n || is_split(p->plan, p->kernel)) continue;
        p->scalars = p->kernel->scalars;
        p->indices = scalartab_indices(p->scalars);
        p->trace = &p->kernel->traces.data[rng_below(rng, p->kernel->traces.n)];
        if (is_own(p->scalars, scalar_get(p->scalars, p->trace->value))) return true;
    }
    return false;
}

static void plant_random(void *user, Arena *arena, Plan *plan, bool is_fused) {
    RandomFault *fault = user;
    Plant p = {.arena = arena, .plan = plan};
    Rng rng = rng_new(fault->seed);
    if (!is_fused || !draw(&p, &rng)) return;
    ScalarId right = p.trace->value;
    bool *is_hit = arena_array(arena, bool, p.kernel->traces.n);
    for (uint32_t t = 0; t < p.kernel->traces.n; t++)
        is_hit[t] = p.kernel->traces.data[t].value == right;
    rebuild(&p, one_more);
    fault->n_planted += p.is_done;
    fault->n_lines = 0;
    for (uint32_t t = 0; t < p.kernel->traces.n; t++) {
        const Node *node = graph_node(plan->graph, p.kernel->traces.data[t].node);
        if (is_hit[t] && fault->n_lines < 64)
            fault->lines[fault->n_lines++] =
                source_position(plan->graph->source, node->span.begin).line;
    }
}

DriverHook fault_random_hook(RandomFault *fault) {
    return (DriverHook){.user = fault, .fused = plant_random};
}
