/* See wgmma_maps.h. Both operands must be plain loads with fixed strides, contiguous along k or
 * along their own axis, or the lhs an im2col. */
#include "schedule/wgmma/wgmma_maps.h"
#include "schedule/gemm.h"
#include "template/find_im2col.h"
#include "template/wgmma.h"

/* Whether the elements may be a multiple of the maps' alignment; if unknown, the runtime checks. */
static bool may_be_aligned(const Wgmma *g, DimId elems) {
    int64_t value;
    return !dim_is_const(g->dims, elems, &value) ||
           value * dtype_bytes(g->dtype) % MAP_STEP_BYTES == 0;
}

/* The stride of the load along `axis`; DIM_NONE: it does not depend on the axis. */
static DimId stride_along(const Wgmma *g, IndexExpr expr, uint32_t axis) {
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(g->tab, expr.terms[i].atom);
        if (atom.axis == axis) return expr.terms[i].coefficient;
    }
    return DIM_NONE;
}

static bool add_axis(const Wgmma *g, TensorMap *map, uint32_t axis, DimId stride) {
    if (map->rank == MAX_MAP_RANK || !may_be_aligned(g, stride)) return false;
    map->axes[map->rank++] = (MapAxis){.axis = axis, .stride = stride, .box = 1};
    return true;
}

/* Whether every term is an axis with a non-negative stride, and none belongs to the other
 * operand. */
static bool steps_evenly(const Wgmma *g, IndexExpr expr, uint32_t own_axis) {
    uint32_t m = gemm_axis_m(g->kernel), k = gemm_axis_k(g->kernel);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(g->tab, expr.terms[i].atom);
        bool is_good = atom.kind == ATOM_AXIS && dim_lo(g->dims, expr.terms[i].coefficient) >= 0;
        if (!is_good || !(atom.axis < m || atom.axis == own_axis || atom.axis == k)) return false;
    }
    return may_be_aligned(g, expr.offset);
}

static bool map_side(const Wgmma *g, Side *side) {
    const Scalar *s = scalar_get(g->kernel->scalars, side->value);
    uint32_t k = gemm_axis_k(g->kernel);
    if (s->kind != SCALAR_LOAD || s->guard) return false;
    IndexExpr expr = index_expr(g->tab, s->index);
    if (!steps_evenly(g, expr, side->axis)) return false;
    DimId own = stride_along(g, expr, side->axis), along_k = stride_along(g, expr, k);
    if (!own || !along_k) return false;
    side->is_mn_major = !dim_equals_const(g->dims, along_k, 1);
    bool may_be_mn_major = dtype_bytes(g->dtype) == 2;
    if (side->is_mn_major && (!may_be_mn_major || !dim_equals_const(g->dims, own, 1))) return false;
    TensorMap *map = &side->map;
    *map = (TensorMap){.arg = kernel_find_arg(g->kernel, s->buffer),
                       .swizzle_bytes = WGMMA_SWIZZLE_BYTES,
                       .is_tf32 = dtype_is_single(g->dtype),
                       .offset = expr.offset,
                       .rank = 1};
    map->axes[0] = (MapAxis){.axis = side->is_mn_major ? side->axis : k,
                             .stride = side->is_mn_major ? own : along_k,
                             .box = wgmma_depth(g->dtype)};
    if (!add_axis(g, map, side->is_mn_major ? k : side->axis, side->is_mn_major ? along_k : own))
        return false;
    for (uint32_t axis = 0; axis < gemm_axis_m(g->kernel); axis++) {
        DimId stride = stride_along(g, expr, axis);
        if (stride && !add_axis(g, map, axis, stride)) return false;
    }
    return true;
}

/* Makes the map of an im2col lhs. The GEMM must be alone in its launch, because the copy engine
 * needs more facts than parallel or joined GEMMs have in common. */
static bool map_windows(const Wgmma *g, Side *side) {
    bool is_alone = g->launch.n_gemms <= 1 && g->launch.n_kernels <= 1;
    const Im2col *windows =
        is_alone ? im2col_find(g->kernel, g->plan->buffers.data, wgmma_depth(g->dtype)) : NULL;
    if (!windows) return false;
    DimId channels = dim_const(g->dims, windows->n_channels);
    side->map = (TensorMap){.arg = kernel_find_arg(g->kernel, windows->buffer),
                            .im2col = windows,
                            .swizzle_bytes = WGMMA_SWIZZLE_BYTES,
                            .is_tf32 = dtype_is_single(g->dtype),
                            .offset = dim_const(g->dims, 0),
                            .rank = 2};
    side->map.axes[0] = (MapAxis){.axis = gemm_axis_k(g->kernel),
                                  .stride = dim_const(g->dims, 1),
                                  .box = wgmma_depth(g->dtype)};
    side->map.axes[1] = (MapAxis){.axis = side->axis, .stride = channels, .box = 1};
    return may_be_aligned(g, channels);
}

/* Describes the GEMM, or the product of an online kernel, without maps. */
static Wgmma describe(const Plan *plan, const Kernel *kernel, GemmLaunch launch) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    const Reduce *reduce = &kernel->reduces.data[0];
    Wgmma g = {
        .plan = plan, .kernel = kernel, .tab = tab, .dims = indextab_dims(tab), .launch = launch};
    g.dtype = scalar_get(kernel->scalars, reduce->rhs)->dtype;
    g.sides[0] = (Side){.value = gemm_unrounded(kernel, reduce->lhs), .axis = gemm_axis_m(kernel)};
    g.sides[1] = (Side){.value = gemm_unrounded(kernel, reduce->rhs), .axis = gemm_axis_n(kernel)};
    return g;
}

bool wgmma_init(Wgmma *g, const Plan *plan, const Kernel *kernel, GemmLaunch launch) {
    *g = describe(plan, kernel, launch);
    return (map_side(g, &g->sides[0]) || map_windows(g, &g->sides[0])) && map_side(g, &g->sides[1]);
}

bool wgmma_init_right(Wgmma *g, const Plan *plan, const Kernel *kernel) {
    *g = describe(plan, kernel, (GemmLaunch){.n_gemms = 1});
    return map_side(g, &g->sides[1]);
}

bool wgmma_has_run_pitch(const Wgmma *g, DimId elems) {
    for (uint32_t i = 0; i < dim_n_symbols(g->dims); i++)
        if (dim_symbol_info(g->dims, i)->rule &&
            dim_exact_div(g->dims, elems, dim_symbol(g->dims, i)) != DIM_NONE)
            return true;
    return false;
}

static bool is_same_map(const TensorMap *a, const TensorMap *b) {
    bool is_same = a->rank == b->rank && a->offset == b->offset && !a->im2col && !b->im2col;
    for (uint32_t i = 0; i < a->rank && is_same; i++)
        is_same = a->axes[i].axis == b->axes[i].axis && a->axes[i].stride == b->axes[i].stride;
    return is_same;
}

bool sched_wgmma_goes_with(const Plan *plan, const Kernel *a, const Kernel *b) {
    Wgmma first, next;
    const GemmLaunch alone = {.n_gemms = 1};
    if (!wgmma_init(&first, plan, a, alone) || !wgmma_init(&next, plan, b, alone)) return false;
    const TensorMap *left = &first.sides[0].map, *other = &next.sides[0].map;
    return a->args.data[left->arg] == b->args.data[other->arg] && is_same_map(left, other) &&
           kernel_axis_extent(first.kernel, gemm_axis_k(a)) ==
               kernel_axis_extent(next.kernel, gemm_axis_k(b)) &&
           first.dtype == next.dtype && first.sides[1].is_mn_major == next.sides[1].is_mn_major;
}

/* Whether the elements are a multiple of the maps' alignment, or a pass makes them so where it
 * pays. */
static bool is_seen_to(const Wgmma *g, DimId elems) {
    return dim_multiple(g->dims, elems) * dtype_bytes(g->dtype) % MAP_STEP_BYTES == 0 ||
           wgmma_has_run_pitch(g, elems);
}

bool wgmma_maps_fit(const Plan *plan, const Kernel *kernel) {
    Wgmma g;
    if (!wgmma_init(&g, plan, kernel, (GemmLaunch){.n_gemms = 1})) return false;
    for (uint32_t i = 0; i < 2; i++) {
        const TensorMap *map = &g.sides[i].map;
        if (!is_seen_to(&g, map->offset)) return false;
        for (uint32_t k = 1; k < map->rank; k++)
            if (!is_seen_to(&g, map->axes[k].stride)) return false;
    }
    return true;
}
