/* See stride.h. Fitted on one core to softmax over transposed rows, and to softmax with a
 * transposed result, of 64 to 2048 elements with strides of 256 bytes to 256 KiB, powers of two and
 * others.
 *
 * A strided element brings in a cache line of its own. The following rows use the rest of the line,
 * if it is still in the cache. Cache sets are selected by low address bits, so strides of a large
 * power of two leave most sets unused. */
#include "cost/count/stride.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "plan/access.h"
#include "template/cpu_map_tile.h"

#include <math.h>

double cost_axis_stride(const Coster *c, const Kernel *kernel, IndexId address, uint32_t axis) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    IndexExpr expr = index_expr(tab, address);
    double stride = 0;
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        double own = cost_number(c, expr.terms[i].coefficient);
        if (atom.kind == ATOM_AXIS && atom.axis == axis) stride += own;
        if (atom.kind == ATOM_MOD) stride += own * cost_axis_stride(c, kernel, atom.operand, axis);
        if (atom.kind == ATOM_VALUE && (atom.moved_by >> axis & 1)) stride += own;
    }
    return stride;
}

/* The number of lines at this stride that the cache can hold. */
static double places(double stride_bytes, uint32_t n_sets, uint32_t n_ways) {
    double step = stride_bytes / CPU_LINE_BYTES, used = n_sets;
    while (used > 1 && step > 0 && fmod(step, 2) == 0) {
        step /= 2;
        used /= 2;
    }
    return used * n_ways;
}

static double element_clocks(double stride_bytes, double n_lines) {
    double clocks = COST_STRIDE_LANE_CLOCKS,
           near_places = places(stride_bytes, COST_STRIDE_NEAR_SETS, COST_STRIDE_NEAR_WAYS);
    double next_places = places(stride_bytes, COST_STRIDE_NEXT_SETS, COST_STRIDE_NEXT_WAYS);
    if (stride_bytes < CPU_LINE_BYTES) return COST_STRIDE_NEAR_CLOCKS;
    if (n_lines <= COST_STRIDE_FEW_LINES) return clocks;
    if (n_lines > near_places)
        clocks += near_places <= COST_STRIDE_CROWDED_SETS * COST_STRIDE_NEAR_WAYS
                      ? COST_STRIDE_CROWDED_CLOCKS
                      : COST_STRIDE_LINE_CLOCKS;
    if (n_lines > next_places)
        clocks += COST_STRIDE_FAR_CLOCKS * fmin(1, n_lines / next_places / COST_STRIDE_MANY_TIMES);
    if (n_lines * fmin(1, stride_bytes / CPU_PAGE_BYTES) > COST_STRIDE_KNOWN_PAGES)
        clocks += COST_STRIDE_PAGE_CLOCKS;
    return clocks;
}

/* Elements along the lane axis before the next row. The vector of a segment's results takes all
 * rows of the segment. */
static double run_elems(const Coster *c, const Pricing *p, uint32_t axis) {
    double n = footprint_points(p->kernel, 1u << axis, c->values);
    if (form_info(p->kernel->form)->divides) return fmin(n, p->variant->sched.lanes);
    double unit = (double)sched_chunk_elems(&p->variant->sched);
    return unit > 0 ? fmin(n, unit) : n;
}

static double access_clocks(const Coster *c, const Pricing *p, const bool *shared, uint32_t buffer,
                            IndexId address) {
    const Kernel *kernel = p->kernel;
    uint32_t axis = kernel_lane_axis(kernel, &p->variant->sched);
    IndexTab *tab = scalartab_indices(kernel->scalars);
    if (axis == NO_AXIS ||
        index_shared_motion(tab, address, axis, p->variant->sched.lanes, shared) != LANES_VARYING)
        return 0;
    uint32_t lanes = p->variant->sched.lanes;
    if (index_lanes_repeated(tab, address, axis, lanes, shared))
        return COST_STRIDE_NEAR_CLOCKS / lanes;
    uint32_t n_shared = index_lanes_shared(tab, address, axis);
    if (n_shared) return COST_STRIDE_NEAR_CLOCKS / n_shared;
    double stride = fabs(cost_axis_stride(c, kernel, address, axis));
    double bytes = stride * dtype_bytes(c->plan->buffers.data[buffer].dtype);
    return element_clocks(bytes, run_elems(c, p, axis));
}

/* Lanes that are stored one by one are asked one by one whether their guard holds. */
static double store_clocks(const Coster *c, const Pricing *p, const bool *shared,
                           const Store *store) {
    const Kernel *kernel = p->kernel;
    uint32_t axis = kernel_lane_axis(kernel, &p->variant->sched), lanes = p->variant->sched.lanes;
    double clocks = access_clocks(c, p, shared, store->buffer, store->address);
    bool is_asked = store->guard && axis != NO_AXIS && lanes > 1 &&
                    (guard_axes(kernel->scalars, store->guard) >> axis & 1) &&
                    index_lane_motion(scalartab_indices(kernel->scalars), store->address, axis,
                                      lanes) != LANES_CONTIGUOUS;
    return is_asked ? clocks + COST_STRIDE_GUARD_CLOCKS : clocks;
}

/* Whether the load has a mask: a condition holds for some of its lanes, and where it begins to hold
 * depends on other axes. */
static bool is_masked(const Pricing *p, const Scalar *load) {
    const Kernel *kernel = p->kernel;
    IndexTab *tab = scalartab_indices(kernel->scalars);
    uint32_t axis = kernel_lane_axis(kernel, &p->variant->sched), lanes = p->variant->sched.lanes;
    for (GuardId id = load->guard; id && axis != NO_AXIS;
         id = guard_get(kernel->scalars, id).next) {
        IndexId index = guard_get(kernel->scalars, id).index;
        uint32_t axes = index_axes(tab, index);
        if ((axes >> axis & 1) && axes != 1u << axis &&
            index_lane_motion(tab, index, axis, lanes) != LANES_UNIFORM)
            return true;
    }
    return false;
}

/* A CPU does not prefetch for masked loads. */
static double load_clocks(const Coster *c, const Pricing *p, const bool *shared,
                          const Scalar *load) {
    double clocks = access_clocks(c, p, shared, load->buffer, load->index);
    return is_masked(p, load) ? clocks + COST_STRIDE_MASK_CLOCKS : clocks;
}

const bool *cost_shared_scalars(const Coster *c, const Pricing *p) {
    uint32_t axis = kernel_lane_axis(p->kernel, &p->variant->sched);
    uint32_t lanes = p->variant->sched.lanes;
    if (!c->card->has->cores || axis == NO_AXIS || lanes < 2) return NULL;
    return kernel_shared_scalars(c->arena, p->kernel, axis, lanes);
}

double cost_stride_prims(const Coster *c, const Pricing *p, bool *const *live) {
    const Kernel *kernel = p->kernel;
    double clocks = 0;
    if (!c->card->has->cores) return 0;
    const bool *shared = cost_shared_scalars(c, p);
    CpuMapTurned turned = cpu_map_tile_turned(c->arena, kernel, &p->variant->sched);
    clocks += COST_CPU_TURN_CLOCKS * turned.n;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const Stage *stage = &kernel->stages.data[s];
        for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
            const Scalar *load = scalar_get(kernel->scalars, id);
            bool is_read = live[s][id] && load->kind == SCALAR_LOAD &&
                           !row_cache_has(p->variant->row_cache, id, s) &&
                           !(turned.n && turned.under[id]);
            if (is_read) clocks += load_clocks(c, p, shared, load);
        }
        for (uint32_t i = 0; i < stage->stores.n; i++)
            clocks += store_clocks(c, p, shared, &stage->stores.data[i]);
    }
    return clocks * p->rows * p->reduced * c->card->lanes;
}
