/* Schedules of maps. See scheduler.h; docs/results/scheduling-rules.md has the rules and their
 * measurements. */
#include "cost/count/prims.h"
#include "cost/pressure.h"
#include "machine/tuning.h"
#include "plan/access.h"
#include "schedule/scheduler.h"

/* The unroll of single elements: several per thread, if registers suffice. If variants with vectors
 * come first, this one is left with odd addresses only and stays small. */
static uint32_t map_unroll(const Scheduler *s, const Variant *variant) {
    uint32_t n = s->n_made;
    const Variant *before = n ? &s->made[n - 1] : NULL;
    bool is_rare = before && !predicate_dim(&before->predicate, TERM_MULTIPLE);
    Sched sched = variant->sched;
    sched.lanes = SCHED_MAP_UNROLL;
    bool has_several = variant->sched.lanes == 1 && !is_rare && !sched_is_long_map(s);
    return has_several ? pressure_lanes(s->arena, s->kernel, sched) : 1;
}

static void add_map(Scheduler *s, Variant variant) {
    variant.sched.threads = SCHED_MAP_THREADS;
    variant.sched.unroll = map_unroll(s, &variant);
    variant.grid = sched_map_grid(s->kernel, &variant.sched);
    sched_add(s, variant);
}

static void propose_map(Scheduler *s, Access access) {
    Variant variant = {.sched = sched_gpu(s, TEMPLATE_GPU_MAP)};
    if (access == ACCESS_SINGLE) {
        add_map(s, variant);
        return;
    }
    if (kernel_updates(s->kernel)) return; /* the part may begin anywhere */
    variant.sched.lanes = sched_flat(s)->row_lanes;
    if (!sched_flat(s)->replaces && sched_make_vectors(s, &variant)) add_map(s, variant);
}

bool sched_map_in_one_block(const Kernel *kernel, uint32_t threads, Variant *variant) {
    variant->sched.threads = threads;
    variant->grid = sched_map_grid(kernel, &variant->sched);
    return true;
}

const TemplateSchedule schedule_gpu_map = {.propose = propose_map,
                                           .in_one_block = sched_map_in_one_block};

/* CPU: a variant for all pointers and extents, with masked tails. */

/* The work per element of a map. */
typedef struct MapWork {
    double prims;      /* without accesses */
    double long_prims; /* those of functions whose code fills the registers by itself */
    uint32_t n_accesses;
    uint32_t n_strided; /* accesses whose lanes are neither contiguous nor equal */
} MapWork;

static void count_access(const Scheduler *s, IndexId address, uint32_t lanes, const bool *shared,
                         MapWork *work) {
    work->n_accesses++;
    work->n_strided +=
        index_shared_motion(s->indices, address, s->lane_axis, lanes, shared) == LANES_VARYING &&
        !index_lanes_shared(s->indices, address, s->lane_axis) &&
        !index_lanes_repeated(s->indices, address, s->lane_axis, lanes, shared);
}

/* Whether the scalar is a function whose code fills the registers by itself. */
static bool is_long_function(const Scalar *s) {
    const PrimInfo *info = prim_info(s->prim);
    return s->kind == SCALAR_PRIM && !info->is_exact && info->code != PRIM_CODE_STRAIGHT;
}

static MapWork map_work(const Scheduler *s, uint32_t lanes) {
    const ScalarTab *scalars = s->kernel->scalars;
    const bool *live = kernel_live_scalars(s->arena, s->kernel);
    const Stage *stage = &s->kernel->stages.data[0];
    const Card *card = card_of_target(s->target);
    const bool *shared = kernel_shared_scalars(s->arena, s->kernel, s->lane_axis, lanes);
    MapWork work = {0};
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        const Scalar *scalar = scalar_get(scalars, id);
        if (!live[id]) continue;
        if (scalar->kind == SCALAR_LOAD) {
            count_access(s, scalar->index, lanes, shared, &work);
            continue;
        }
        double prims = scalar_prims(card, s->kernel, id, lanes);
        work.prims += prims;
        if (is_long_function(scalar)) work.long_prims += prims;
    }
    for (uint32_t i = 0; i < stage->stores.n; i++)
        count_access(s, stage->stores.data[i].address, lanes, shared, &work);
    return work;
}

uint32_t sched_n_strided(const Scheduler *s) {
    if (s->lane_axis == NO_AXIS) return 0;
    return map_work(s, sched_cpu(s, TEMPLATE_CPU_MAP).lanes).n_strided;
}

/* A function is a chain of operations of which each waits for the one before. A core looks ahead by
 * about four such chains; vectors of one step are computed side by side. */
uint32_t sched_cpu_unroll(const Scheduler *s, uint32_t lanes) {
    MapWork work = map_work(s, lanes);
    if (lanes < 2 || work.n_strided || work.prims < SCHED_CPU_MAP_UNROLL_PRIMS) return 1;
    bool is_long = work.long_prims > work.prims / 2;
    uint32_t unroll = is_long ? SCHED_CPU_MAP_UNROLL / 2 : SCHED_CPU_MAP_UNROLL;
    int64_t most = dim_hi(s->dims, sched_lane_extent(s));
    double vector_prims = work.prims * lanes * sizeof(float) / s->target->vector_bytes;
    while (unroll > 1 &&
           (most < (int64_t)unroll * lanes || unroll * vector_prims > SCHED_CPU_MAP_UNROLLED_PRIMS))
        unroll /= 2;
    return unroll;
}

/* The axis for a map's lanes if the last axis is shorter than a vector: the nearest one that may be
 * long; or NO_AXIS. */
static uint32_t long_axis(const Scheduler *s, uint32_t lanes) {
    for (uint32_t axis = s->lane_axis; axis-- > 0;)
        if (dim_hi(s->dims, index_axis_extent(s->indices, axis)) > 2 * (int64_t)lanes) return axis;
    return NO_AXIS;
}

/* The largest row length for which lanes along another axis, with strided accesses one by one, beat
 * one masked step along the row. In clocks, roughly: see docs/results/scheduling-rules.md. */
static int64_t longest_short(MapWork last, MapWork out, uint32_t lanes) {
    double row = SCHED_CPU_ROW_CLOCKS + last.prims + last.n_accesses - last.n_strided;
    double more = out.prims / lanes + SCHED_CPU_STRIDED_CLOCKS * out.n_strided -
                  SCHED_CPU_STRIDED_CLOCKS * last.n_strided;
    return more * (lanes - 1) < row ? lanes - 1 : (int64_t)(row / more);
}

/* A variant for maps of short rows, with lanes across the rows. */
static void add_short(Scheduler *s, Variant variant) {
    uint32_t last = s->lane_axis, lanes = variant.sched.lanes;
    uint32_t axis = last == NO_AXIS ? NO_AXIS : long_axis(s, lanes);
    if (axis == NO_AXIS) return;
    DimId extent = sched_lane_extent(s);
    MapWork along = map_work(s, lanes);
    s->lane_axis = axis;
    int64_t most = longest_short(along, map_work(s, lanes), lanes);
    if (dim_hi(s->dims, extent) > most)
        predicate_set_range(&variant.predicate, extent, INT64_MIN, most);
    variant.sched.unroll = 1;
    variant.sched.cpu_map.lanes_out = last - axis;
    variant.sched.cpu_map.chunk_elems = SCHED_CPU_MAP_OUT_UNIT;
    variant.grid = sched_cpu_grid(s, SCHED_CPU_MAP_OUT_UNIT);
    if (dim_lo(s->dims, extent) <= most) sched_add(s, variant);
    s->lane_axis = last;
}

static void propose_cpu(Scheduler *s, Access access) {
    if (access == ACCESS_SINGLE) return;
    Sched sched = sched_cpu(s, TEMPLATE_CPU_MAP);
    sched.cpu_map.chunk_elems =
        sched_n_strided(s) > 0 ? SCHED_CPU_MAP_STRIDED_UNIT : SCHED_CPU_MAP_UNIT;
    if (s->lane_axis != NO_AXIS) sched.unroll = sched_cpu_unroll(s, sched.lanes);
    Variant variant = {.sched = sched, .grid = sched_cpu_grid(s, sched.cpu_map.chunk_elems)};
    add_short(s, variant);
    sched_add(s, variant);
}

const TemplateSchedule schedule_cpu_map = {.propose = propose_cpu};
