/* See loops.h. */
#include "cost/kernel/loops.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "cost/count/prims.h"
#include "cost/count/stride.h"
#include "template/map_tile.h"

#include <math.h>

double cost_lane_fill(const Coster *c, const Pricing *p) {
    uint32_t axis = kernel_lane_axis(p->kernel, &p->variant->sched);
    uint32_t lanes = p->variant->sched.lanes;
    if (!c->card->has->cores || axis == NO_AXIS || lanes < 2) return 1;
    double n = footprint_points(p->kernel, 1u << axis, c->values);
    return n > 0 ? ceil(n / lanes) * lanes / n : 1;
}

/* Elements of a row that its threads process: for a resident row all that its steps cover. */
static double walked(const Pricing *p) {
    const Sched *sched = &p->variant->sched;
    RowSched row = sched_row(sched);
    double room = (double)row.resident * row.threads_per_row * sched->lanes;
    return fmax(p->reduced, sched->cluster > 1 ? room * sched->cluster : room);
}

/* Primitives to write an element of each staged load to shared memory and to read it again. */
static double tile_prims(const Pricing *p) {
    double n = 0;
    for (ScalarId id = 1; id <= scalar_count(p->kernel->scalars); id++)
        n += map_tile_stages(p->kernel, &p->variant->sched, scalar_get(p->kernel->scalars, id));
    return n * COST_TILE_PRIMS;
}

/* Primitives of an element on a CPU beside its own: for each column's accumulators a load and a
 * store, and for an element of several reduced axes the division of its number. */
static double step_prims(const Coster *c, const Pricing *p) {
    const FormInfo *form = form_info(p->kernel->form);
    double clocks = 0, lanes = fmax(p->variant->sched.lanes, 1);
    if (!c->card->has->cores) return 0;
    if (form->reduces_columns) clocks += COST_CPU_COLUMN_CLOCKS * p->kernel->reduces.n;
    if (form->reduces_rows && lanes == 1 && p->kernel->n_reduced > 1)
        clocks += COST_CPU_SPLIT_CLOCKS;
    return clocks * c->card->lanes / lanes;
}

/* The least primitives of an element of a CPU's map: a vector is loaded and stored. */
static double least_prims(const Coster *c, const Pricing *p) {
    if (!c->card->has->cores || form_info(p->kernel->form)->reduces) return 0;
    return COST_CPU_STEP_CLOCKS * c->card->lanes / fmax(p->variant->sched.lanes, 1);
}

/* The elements of a row that a CPU computes together. */
static FootprintStep lane_step(const Coster *c, const Pricing *p) {
    const Sched *sched = &p->variant->sched;
    uint32_t axis = kernel_lane_axis(p->kernel, sched);
    double n = (double)sched->lanes * sched->unroll;
    if (!c->card->has->cores || axis == NO_AXIS) return footprint_no_step;
    if (n > footprint_points(p->kernel, 1u << axis, c->values)) n = sched->lanes;
    return (FootprintStep){axis, fmax(n, 1)};
}

/* A scalar is computed once per point of the axes that it depends on. One that depends on the lane
 * axis alone is still computed in every row. */
static void count(const Coster *c, Pricing *p, bool *const *live) {
    const Kernel *kernel = p->kernel;
    uint32_t n = scalar_count(kernel->scalars) + 1;
    bool *is_done = arena_array(c->arena, bool, n);
    uint32_t lanes = kernel_lane_axes(kernel, &p->variant->sched);
    double n_points = p->rows * walked(p) * cost_lane_fill(c, p);
    double together = c->card->has->cores ? fmax(p->variant->sched.lanes, 1) : WARP_THREADS;
    double n_rows = p->rows * walked(p) / fmax(1, footprint_points(kernel, lanes, c->values));
    FootprintStep step = lane_step(c, p);
    bool is_map = c->card->has->cores && !form_info(kernel->form)->reduces && lanes;
    const bool *shared = is_map ? cost_shared_scalars(c, p) : NULL;
    for (uint32_t s = 0; s <= kernel->stages.n; s++) {
        const double *shares = footprint_shares(c->arena, kernel, s, step, c->values);
        for (ScalarId id = 1; id < n; id++) {
            if (!live[s][id] || is_done[id]) continue;
            bool varies = (scalar_get(kernel->scalars, id)->axes & lanes) != 0;
            double points = s == kernel->stages.n ? p->rows
                            : varies              ? n_points
                                                  : n_points / together;
            bool is_kept = row_cache_has(p->variant->row_cache, id, s);
            double prims = is_kept ? row_cache_prims(c->card, kernel, id)
                                   : scalar_prims(c->card, kernel, id, p->variant->sched.lanes) -
                                         map_shared_prims(c->card, kernel, &p->variant->sched, id);
            if (is_map && (!varies || (shared && shared[id]))) {
                points = varies ? n_points / together : n_rows;
                prims = scalar_prims(c->card, kernel, id, 1);
            }
            p->cost->n_prims += points * shares[id] * prims;
            is_done[id] = sched_row(&p->variant->sched).resident > 0;
        }
    }
    p->cost->n_prims = fmax(p->cost->n_prims, n_points * least_prims(c, p));
    p->cost->n_prims += p->rows * row_end_prims(c->card, kernel, p->variant, c->values, live);
    p->cost->n_prims +=
        p->cost->n_blocks * map_unit_prims(c->card, kernel, &p->variant->sched, live);
    if (template_info(p->variant->sched.template)->lanes_cross_rows)
        p->cost->n_prims += n_points * flat_prims(c->arena, kernel);
    for (uint32_t i = 0; i < kernel->reduces.n; i++)
        p->cost->n_prims +=
            n_points * reduce_prims(c->card, &kernel->reduces.data[i], p->variant->sched.lanes);
    p->cost->n_prims += cost_stride_prims(c, p, live);
    p->cost->n_prims += n_points * step_prims(c, p);
    p->cost->n_prims += n_points * tile_prims(p);
    p->cost->n_prims +=
        n_points * single_access_prims(c->card, c->plan, kernel, &p->variant->sched);
    for (uint32_t i = 0; i < p->variant->row_cache.n; i++) {
        ScalarId kept = p->variant->row_cache.data[i].value;
        p->cost->n_prims += n_points * row_cache_prims(c->card, kernel, kept);
    }
}

/* Times. */

double cost_use(const Coster *c, const Pricing *p, double wanted) {
    if (!c->card->has->blocks) return fmin(1, p->cost->n_blocks / c->card->n_processors);
    double at_once = fmin(p->n_beside, c->card->n_processors * p->cost->pressure.n_blocks);
    double warps = at_once * p->variant->sched.threads / WARP_THREADS / c->card->n_processors;
    return warps < wanted ? warps / wanted : 1;
}

static uint32_t index_depth(const IndexTab *tab, IndexId id, const uint32_t *depth) {
    IndexExpr expr = index_expr(tab, id);
    uint32_t most = 0;
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        uint32_t own = atom.kind == ATOM_VALUE ? depth[atom.value]
                       : atom.kind == ATOM_DIV || atom.kind == ATOM_MOD
                           ? index_depth(tab, atom.operand, depth)
                           : 0;
        if (own > most) most = own;
    }
    return most;
}

/* The longest chain of loads of the stage that depend on each other, as gathers do. */
static uint32_t load_depth(const Coster *c, const Kernel *kernel, const bool *live) {
    uint32_t n = scalar_count(kernel->scalars) + 1, most = 1;
    uint32_t *depth = arena_array(c->arena, uint32_t, n);
    for (ScalarId id = 1; id < n; id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        for (int i = 0; i < 3; i++)
            if (depth[s->args[i]] > depth[id]) depth[id] = depth[s->args[i]];
        if (s->kind != SCALAR_LOAD) continue;
        depth[id] = 1 + index_depth(scalartab_indices(kernel->scalars), s->index, depth);
        if (live[id] && depth[id] > most) most = depth[id];
    }
    return most;
}

/* Whether the lanes of a warp read different elements. */
static bool lanes_differ(const Coster *c, const Pricing *p, const Scalar *load) {
    uint32_t axis = kernel_lane_axis(p->kernel, &p->variant->sched);
    return axis == NO_AXIS || cost_axis_stride(c, p->kernel, load->index, axis) != 0;
}

void cost_steps_load(const Coster *c, Pricing *p, bool *const *live, double steps) {
    const Kernel *kernel = p->kernel;
    const Sched *sched = &p->variant->sched;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (s->kind == SCALAR_LOAD && live[0][id] && lanes_differ(c, p, s))
            p->bytes_in_flight += steps * sched->lanes * dtype_bytes(s->dtype);
    }
    /* Gather positions are mostly cached, because neighbours read them too. */
    p->wait_us *= (1 + load_depth(c, kernel, live[0])) / 2.0;
}

static void load(const Coster *c, Pricing *p, bool *const *live) {
    cost_steps_load(c, p, live, p->variant->sched.unroll);
}

static double use(const Coster *c, const Pricing *p, double wanted) {
    return sqrt(cost_use(c, p, wanted));
}

static void compute(const Coster *c, Pricing *p, double prims_per_us) {
    (void)c;
    p->cost->arithmetic_us = p->cost->n_prims / prims_per_us;
}

/* The share of the shorter of memory and arithmetic time that the longer does not hide. Blocks of a
 * cluster wait for each other. The more of them there are, and the fewer other blocks are in
 * different phases, the more they load, compute and store at the same time. */
static double bared_share(const Coster *c, const Pricing *p) {
    const Sched *sched = &p->variant->sched;
    double elems = (double)sched_row(sched).resident * sched->lanes;
    double wanted = elems > COST_HIDING_ELEMS ? COST_HIDING_WARPS * COST_HIDING_ELEMS / elems
                                              : COST_HIDING_WARPS;
    double exposed = 1 - cost_use(c, p, wanted);
    double in_step = sched->cluster > 1
                         ? COST_CLUSTER_STEP_SHARE * sched->cluster / p->cost->pressure.n_blocks
                         : 0;
    return fmin(1, fmax(exposed, in_step));
}

static double exposed_us(const Coster *c, const Pricing *p, double busy) {
    return bared_share(c, p) * fmin(p->cost->memory_us, busy);
}

const TemplateCost cost_loops = {
    .count = count, .load = load, .use = use, .compute = compute, .exposed_us = exposed_us};
