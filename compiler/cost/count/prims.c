/* See prims.h. */
#include "cost/count/prims.h"
#include "machine/tuning.h"

#include "cost/count/footprint.h"
#include "template/flat.h"

#include <math.h>

static double of_dtype(const Card *card, Dtype dtype, double prims) {
    return dtype_is_double(dtype) ? prims / card->f64_rate : prims;
}

static uint32_t reduced_axes(const Kernel *kernel) {
    return ((1u << kernel->n_reduced) - 1) << kernel->first_reduced;
}

/* One reciprocal serves the whole row. */
static bool is_row_quotient(const Kernel *kernel, const Scalar *s) {
    return form_info(kernel->form)->reduces_rows && s->prim == PRIM_DIV &&
           !(scalar_get(kernel->scalars, s->args[1])->axes & reduced_axes(kernel));
}

/* A CPU starts as many operations of single elements in a clock as it starts of vectors. */
static double of_lanes(const Card *card, Dtype dtype, double prims, uint32_t lanes) {
    double vectors = of_dtype(card, dtype, prims);
    double singles = lanes ? prims * card->lanes / (COST_CPU_STARTED * lanes) : 0;
    return card->has->cores ? fmax(vectors, singles) : vectors;
}

static bool is_long(Dtype dtype) {
    return dtype_is_int(dtype) && dtype_bytes(dtype) == 8;
}

/* The instructions of a CPU for a primitive, from the table of measured ones. */
static double cpu_prims(PrimId prim, Dtype dtype) {
    static const struct {
        double single, wide, whole;
    } measured[PRIM_COUNT] = {
#define CPU_PRIM(symbol, f32, f64, integers) [PRIM_##symbol] = {f32, f64, integers},
#include "cost/count/cpu_prims.def"
    };
    PrimId full = prim_full(prim); /* CPUs have no shorter forms */
    double cost = !dtype_is_float(dtype)   ? measured[full].whole
                  : dtype_is_double(dtype) ? measured[full].wide
                                           : measured[full].single;
    if (is_long(dtype)) cost *= COST_CPU_LONG_DIVISION;
    return cost > 0 ? cost : prim_info(full)->cost;
}

/* Whether an integer is divided by a constant. */
static bool divides_by_constant(const Kernel *kernel, const Scalar *s) {
    bool divides = s->prim == PRIM_DIV || s->prim == PRIM_REM;
    return divides && !dtype_is_float(s->dtype) &&
           scalar_get(kernel->scalars, s->args[1])->kind == SCALAR_CONST;
}

/* The primitives of a join, divided among its values. */
static double join_prims(const Card *card, const ScanJoin *join) {
    double prims = 0;
    for (ScalarId id = 1; id <= scalar_count(join->scalars); id++) {
        const Scalar *s = scalar_get(join->scalars, id);
        if (s->kind != SCALAR_PRIM) continue;
        prims += card->has->cores ? cpu_prims(s->prim, s->dtype) : prim_info(s->prim)->cost;
    }
    return prims / join->n;
}

double combine_prims(const Card *card, const Reduce *reduce) {
    if (reduce->join) return join_prims(card, reduce->join);
    if (card->has->cores) return cpu_prims(reduce->combine, reduce->acc);
    return prim_info(reduce->combine)->cost;
}

double reduce_prims(const Card *card, const Reduce *reduce, uint32_t lanes) {
    if (reduce->is_arg && card->has->cores)
        return of_lanes(card, reduce->acc, COST_CPU_ARG_PRIMS, lanes);
    if (reduce->is_arg) return COST_ARG_PRIMS;
    return of_lanes(card, reduce->acc, combine_prims(card, reduce), lanes);
}

/* A conversion: a float is limited to an integer's range by comparisons, and rounded to few bits by
 * integer arithmetic. */
static double cpu_convert(const Scalar *s, Dtype from) {
    double prims = 1;
    if (dtype_is_float(from) && dtype_is_int(s->dtype))
        prims = is_long(s->dtype) ? COST_CPU_TO_I64 : COST_CPU_SATURATE;
    if (is_long(from) && dtype_is_single(s->dtype)) prims = COST_CPU_I64_TO_F32;
    if (dtype_is_soft(s->dtype))
        prims = dtype_bytes(s->dtype) > 1 ? COST_CPU_TO_BF16 : COST_CPU_TO_F8;
    if (dtype_is_soft(from) && dtype_bytes(from) == 1) prims += COST_CPU_FROM_F8;
    if (dtype_is_double(from) && dtype_is_narrow(s->dtype)) prims += COST_CPU_BY_ODD;
    if (is_long(from) && dtype_is_narrow(s->dtype)) prims = COST_CPU_FROM_I64;
    return prims;
}

double scalar_prims(const Card *card, const Kernel *kernel, ScalarId id, uint32_t lanes) {
    const Scalar *s = scalar_get(kernel->scalars, id);
    double prims = scalar_own_cost(kernel->scalars, id);
    if (card->has->blocks) {
        bool is_single = s->kind == SCALAR_PRIM && dtype_is_single(s->dtype);
        if (is_single && is_row_quotient(kernel, s)) return COST_ROW_QUOTIENT;
        if (is_single && s->prim == PRIM_EXP) return COST_GPU_EXP;
        return of_dtype(card, s->dtype, prims);
    }
    Dtype widest = s->dtype;
    if (s->kind == SCALAR_PRIM)
        prims =
            divides_by_constant(kernel, s) ? COST_CPU_BY_CONSTANT : cpu_prims(s->prim, s->dtype);
    if (s->kind == SCALAR_CVT) {
        Dtype from = scalar_get(kernel->scalars, s->args[0])->dtype;
        prims = cpu_convert(s, from);
        bool to_long = is_long(s->dtype) && dtype_is_float(from);
        if (dtype_is_double(from) || to_long) widest = DT_F64;
    }
    return of_lanes(card, widest, prims, lanes);
}

double row_cache_prims(const Card *card, const Kernel *kernel, ScalarId id) {
    return of_dtype(card, scalar_get(kernel->scalars, id)->dtype, COST_ROW_CACHE_PRIMS);
}

static bool is_live(const Kernel *kernel, bool *const *live, ScalarId id) {
    for (uint32_t s = 0; s <= kernel->stages.n; s++)
        if (live[s][id]) return true;
    return false;
}

/* A single row computes its own values in one lane, while later stages wait for them and for the
 * ends of reductions. Groups of rows use all lanes for both. A tail of lanes needs a mask in each
 * stage. */
double row_end_prims(const Card *card, const Kernel *kernel, const Variant *variant,
                     const int64_t *dims, bool *const *live) {
    const DimTab *tab = indextab_dims(scalartab_indices(kernel->scalars));
    uint32_t reduced = reduced_axes(kernel);
    double clocks = 0;
    if (!kernel_lanes_reduce(kernel, &variant->sched) || !card->has->cores) return 0;
    bool is_grouped = kernel_has_groups(kernel, variant);
    bool has_tail =
        fmod(dim_number(tab, kernel_n_reduced(kernel), dims), variant->sched.lanes) != 0;
    if (is_grouped)
        clocks += COST_GROUP_END_CLOCKS * kernel->reduces.n +
                  (has_tail ? COST_GROUP_TAIL_CLOCKS * kernel->stages.n : 0);
    for (uint32_t s = 0; s < kernel->stages.n && !is_grouped; s++) {
        if (kernel->stages.data[s].reduces.n)
            clocks += s + 1 < kernel->stages.n ? COST_ROW_END_CLOCKS : COST_CPU_ROW_CLOCKS;
    }
    for (uint32_t i = 0; i < kernel->reduces.n && !is_grouped; i++)
        if (kernel->reduces.data[i].is_arg) clocks += COST_CPU_ARG_END_CLOCKS;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (s->kind != SCALAR_PRIM || (s->axes & reduced) || !is_live(kernel, live, id)) continue;
        clocks += scalar_own_cost(kernel->scalars, id) * (is_grouped ? 1 / card->lanes
                                                          : prim_info(s->prim)->is_exact
                                                              ? COST_ROW_EXACT_CLOCKS
                                                              : COST_ROW_TARGET_CLOCKS);
    }
    return clocks * card->lanes;
}

/* Fitted on an H200 to softmax and layernorm of rows of 15 to 5001 bf16, which took 83 to 127 us
 * where f32 took 73 to 77 (docs/results); judged for f32. Data that all rows read is in a nearer
 * cache. */
static double of_single(Dtype dtype, bool is_own) {
    double prims = dtype_bytes(dtype) <= 2 ? 9 : 4;
    return is_own ? prims : prims / 2;
}

static bool has_singles(const Card *card, const Kernel *kernel, const Sched *sched) {
    return card->has->blocks && form_info(kernel->form)->reduces_rows && sched->lanes <= 1;
}

/* Whether the load is element by element along the row. */
static bool loads_singles(const Kernel *kernel, const Sched *sched, const Scalar *s) {
    uint32_t axis = kernel_lane_axis(kernel, sched);
    return s->kind == SCALAR_LOAD && axis != NO_AXIS && (s->moved_by >> axis & 1);
}

double single_access_prims(const Card *card, const Plan *plan, const Kernel *kernel,
                           const Sched *sched) {
    double prims = 0;
    uint32_t of_rows = kernel_parallel_axes(kernel);
    if (!has_singles(card, kernel, sched)) return 0;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (loads_singles(kernel, sched, s)) prims += of_single(s->dtype, (s->axes & of_rows) != 0);
    }
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        for (uint32_t k = 0; k < kernel->stages.data[i].stores.n; k++) {
            const Store *store = &kernel->stages.data[i].stores.data[k];
            prims += of_single(plan->buffers.data[store->buffer].dtype, true);
        }
    return prims;
}

double single_access_share(const Card *card, const Kernel *kernel, const Sched *sched) {
    uint32_t least = 8;
    if (!has_singles(card, kernel, sched)) return 1;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        bool is_less = dtype_bytes(s->dtype) < least;
        if (is_less && loads_singles(kernel, sched, s)) least = dtype_bytes(s->dtype);
    }
    return least <= 2 ? COST_SINGLES_2_BYTES_SHARE : least <= 4 ? COST_SINGLES_4_BYTES_SHARE : 1;
}

/* Whether a work unit is a run along one of several axes. */
static bool has_runs(const Card *card, const Kernel *kernel) {
    return card->has->cores && !form_info(kernel->form)->reduces && kernel->n_parallel > 1;
}

double map_shared_prims(const Card *card, const Kernel *kernel, const Sched *sched, ScalarId id) {
    if (!has_runs(card, kernel)) return 0;
    return scalar_shared_cost(kernel->scalars, id, kernel_lane_axes(kernel, sched));
}

double map_unit_prims(const Card *card, const Kernel *kernel, const Sched *sched,
                      bool *const *live) {
    double shared = 0;
    if (!has_runs(card, kernel)) return 0;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
        if (is_live(kernel, live, id)) shared += map_shared_prims(card, kernel, sched, id);
    return (COST_MAP_UNIT_CLOCKS + shared / COST_CPU_STARTED) * card->lanes;
}

double flat_prims(Arena *arena, const Kernel *kernel) {
    uint32_t axes = flat_coordinates(arena, kernel), first = 0;
    while (axes && !(axes >> first & 1)) first++;
    return axes ? COST_COORDINATE * (kernel->n_parallel - first) : 0;
}

double parallel_prims(Arena *arena, const Card *card, const Kernel *kernel, bool *const *live) {
    ArenaMark mark = arena_mark(arena);
    uint32_t n = scalar_count(kernel->scalars) + 1;
    double *path = arena_array(arena, double, n), all = 0, waited = 0;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        double longest = 0;
        for (ScalarId id = 1; id < n; id++) {
            const Scalar *scalar = scalar_get(kernel->scalars, id);
            double own = live[s][id] ? scalar_prims(card, kernel, id, 0) : 0;
            path[id] = 0;
            for (int i = 0; i < 3 && live[s][id]; i++)
                path[id] = fmax(path[id], path[scalar->args[i]]);
            path[id] += own;
            longest = fmax(longest, path[id]);
            all += own;
        }
        waited += longest;
    }
    arena_rewind(arena, mark);
    return waited > 0 ? all / waited : 1;
}
