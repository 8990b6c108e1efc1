/* Taps from planes, on a CPU. See template/cpu_planes.h.
 *
 * A unit packs its planes and weights on the stack. A step has a vector of outputs of several rows,
 * whose chains are side by side and share each tap's weight; of vectors along another axis, several
 * outputs of a row. It loops over the outer digit of k: in straight code LLVM would keep the
 * elements that several chains read in registers, which are too few. The last step of an axis
 * begins earlier rather than be shorter, if no output is read again. */
#include "codegen/cpu/strips.h"
#include "codegen/cpu/taps.h"
#include "template/cpu_planes.h"

enum { MOST_CHAINS = 8, MOST_CHAINS_ALONG = 6 };

typedef struct Planes {
    const Taps *taps;
    Point unit;
    CpuPlanes of;
    bool is_wide;      /* elements are vectors, and chains lie along a row */
    int64_t n_outputs; /* rows of outputs of a unit, at most */
    ScalarId weight;
    Val memory, weights; /* weights: per tap, of an element's width */
    int64_t n_inner;     /* taps of one element of the outer digit */
    Val offsets;         /* per element of the outer digit: of the planes; i64 */
    bool may_repeat;
    uint32_t n_chains;
    Val row; /* of the unit, from which the chains begin */
} Planes;

static Val element(const Planes *p, Val base, Val at) {
    const Codegen *k = p->taps->lower->k;
    Dtype acc = p->taps->lower->kernel->reduces.data[0].acc;
    return k_gep(k, k_value_type(k, acc, p->of.width), base, at);
}

static Val constant(const Planes *p, int64_t value) {
    return lower_index_const(p->taps->lower, value);
}

/* Packs the rows of the image whose numbers are alike modulo the stride. */
static void pack_rows(const Planes *p, uint32_t across) {
    const Taps *taps = p->taps;
    const Codegen *k = taps->lower->k;
    const CpuStrips *rows = &p->of.across;
    Val n = k_addi(k, k_sub(k, taps->end, taps->begin), rows->last_shift[across]);
    Loop loop = loop_over(k, n, 1);
    Val number = k_addi(k, loop.index, cpu_planes_first(&p->of, p->n_outputs, across));
    StripRow row = {.lower = taps->lower,
                    .strips = &p->of.along,
                    .value = p->of.image,
                    .acc = taps->lower->kernel->reduces.data[0].acc,
                    .axis = p->of.axis,
                    .lanes = taps->lanes / p->of.width,
                    .width = p->of.width,
                    .outside = p->of.outside,
                    .inside = p->of.inside,
                    .point = point_inside(&p->unit),
                    .begin = constant(p, 0),
                    .n = constant(p, p->of.n_windows),
                    .memory = element(p, p->memory, k_muli(k, number, cpu_planes_row(&p->of))),
                    .pitch = p->of.pitch,
                    .step = p->of.pitch};
    row.point.axis[p->of.walked] = k_add(k, taps->begin, loop.index);
    row.point.axis[taps->lower->kernel->first_reduced] =
        constant(p, rows->first_tap[across] * rows->run);
    if (p->is_wide)
        strips_pack_vectors(&row);
    else
        strips_pack_row(&row);
    loop_end(k, &loop);
}

/* Stores the weights of all taps, which are the same in the whole unit. */
static void pack_weights(Planes *p) {
    const Taps *taps = p->taps;
    Lower *lower = taps->lower;
    Dtype acc = lower->kernel->reduces.data[0].acc;
    uint32_t width = p->of.width;
    CpuArray weights = cpu_array_new(lower, acc, false, taps->depth * width);
    p->weights = weights.values;
    for (int64_t t = 0; t < taps->depth; t++) {
        Point point = point_inside(&p->unit);
        point.axis[lower->kernel->first_reduced] = constant(p, t);
        Acc own = {.value = cpu_value(&point, p->weight, acc)};
        cpu_array_store(lower, &weights, constant(p, t * width), own, width);
    }
}

/* The digits of k are the taps along both axes. */
static void find_digits(Planes *p) {
    const Codegen *k = p->taps->lower->k;
    int64_t along = p->of.along.run, across = p->of.across.run;
    p->n_inner = along > across ? along : across;
    if (p->of.across.n_taps == 1 || p->of.along.n_taps == 1) p->n_inner = p->taps->depth;
    int64_t n_outer = p->taps->depth / p->n_inner;
    Val *offsets = arena_array(k->arena, Val, (size_t)n_outer);
    for (int64_t i = 0; i < n_outer; i++)
        offsets[i] = k_int(k->i64, cpu_planes_offset(&p->of, p->n_outputs, i * p->n_inner));
    p->offsets = k_constant_array(k, offsets, (uint32_t)n_outer, "rows");
}

/* Adds the products of the taps from `weights` on, whose elements are from `place` on. */
static void add_taps(const Planes *p, Val weights, Val place, Val *sums) {
    const Taps *taps = p->taps;
    const Codegen *k = taps->lower->k;
    const Reduce *reduce = &taps->lower->kernel->reduces.data[0];
    bool is_left = p->of.image == reduce->lhs;
    uint32_t bytes = dtype_bytes(reduce->acc);
    int64_t first = cpu_planes_offset(&p->of, p->n_outputs, 0);
    int64_t next = p->is_wide ? 1 : cpu_planes_row(&p->of);
    for (int64_t t = 0; t < p->n_inner; t++) {
        Val from = element(p, weights, k_int(k->i64, t));
        Val weight = k_load_aligned(k, k_value_type(k, reduce->acc, p->of.width), from, bytes);
        weight = k_splat(k, weight, taps->lanes);
        int64_t at = cpu_planes_offset(&p->of, p->n_outputs, t) - first;
        for (uint32_t i = 0; i < p->n_chains; i++, at += next) {
            from = element(p, place, k_int(k->i64, at));
            Val image = k_load_aligned(k, k_value_type(k, reduce->acc, taps->lanes), from, bytes);
            sums[i] = math_multiply_add(k, reduce->acc, is_left ? image : weight,
                                        is_left ? weight : image, sums[i]);
        }
    }
}

/* The outputs of a chain in a step whose first place along the row is `at`. */
static Point chain_point(const Planes *p, Val at, Val mask, uint32_t chain) {
    const Taps *taps = p->taps;
    const Codegen *k = taps->lower->k;
    Point point = point_inside(&p->unit);
    if (!p->is_wide) point = cpu_lane_point(&p->unit, taps->lanes, at, mask);
    point.block = INDEX_ANY_START;
    Val row = p->is_wide ? p->row : k_addi(k, p->row, chain);
    point.axis[p->of.walked] = k_add(k, taps->begin, row);
    if (p->is_wide) point.axis[p->of.axis] = k_addi(k, at, chain);
    return point;
}

/* Computes `lanes` outputs of each chain from `at` on. */
static void outputs(void *user, Val at, Val mask) {
    const Planes *p = user;
    const Taps *taps = p->taps;
    Lower *lower = taps->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    Dtype acc = kernel->reduces.data[0].acc;
    Val sums[MOST_CHAINS];
    Val place = element(p, p->memory, k_muli(k, p->row, cpu_planes_row(&p->of)));
    place = element(p, place, at);
    for (uint32_t i = 0; i < p->n_chains; i++)
        sums[i] = LLVMConstNull(k_value_type(k, acc, taps->lanes));
    Loop outer = loop_over(k, k_int(k->i64, taps->depth / p->n_inner), 1);
    loop_carry(k, &outer, sums, p->n_chains);
    Val offset =
        k_load_aligned(k, k->i64, k_gep(k, k->i64, p->offsets, outer.index), sizeof(int64_t));
    Val weights = element(p, p->weights, k_muli(k, outer.index, p->n_inner));
    add_taps(p, weights, element(p, place, offset), sums);
    loop_end(k, &outer);
    for (uint32_t i = 0; i < p->n_chains; i++) {
        Point point = chain_point(p, at, mask, i);
        acc_finish(&point, 0, (Acc){.value = sums[i]});
        point_store_all(&point, kernel->row_stores.data, kernel->row_stores.n);
    }
}

/* Goes along the lanes, in `n_chains` rows from `row` on. */
static void along_lanes(const Planes *p, Val row, uint32_t n_chains) {
    Planes here = *p;
    here.row = row;
    here.n_chains = n_chains;
    cpu_cover(p->taps->lower, constant(p, p->of.n_windows), p->taps->lanes, p->may_repeat, outputs,
              &here);
}

/* Goes down the rows: a step of several chains while there are so many rows, else of one. */
static void down_rows(const Planes *p) {
    const Codegen *k = p->taps->lower->k;
    Val n = k_sub(k, p->taps->end, p->taps->begin), zero = constant(p, 0);
    Val last = k_subi(k, n, p->n_chains);
    Val whole = k_sub(k, n, k_uremi(k, n, p->n_chains));
    if (p->may_repeat) whole = k_select(k, k_slt(k, last, zero), zero, n);
    Loop loop = loop_over(k, whole, p->n_chains);
    along_lanes(p, p->may_repeat ? k_smin(k, loop.index, last) : loop.index, p->n_chains);
    loop_end(k, &loop);
    if (p->n_chains == 1) return;
    Loop rest = loop_begin(k, whole, n, 1);
    along_lanes(p, rest.index, 1);
    loop_end(k, &rest);
}

/* Goes along a row: a step of several chains while there are so many outputs, else of one. */
static void along_row(const Planes *p) {
    const Codegen *k = p->taps->lower->k;
    Planes one = *p;
    int64_t n = p->of.n_windows, last = n - p->n_chains;
    int64_t whole = p->may_repeat ? n : n - n % p->n_chains;
    Loop loop = loop_over(k, constant(p, whole), p->n_chains);
    outputs((void *)p, k_smin(k, loop.index, constant(p, last)), NULL);
    loop_end(k, &loop);
    one.n_chains = 1;
    if (whole == n) return;
    Loop rest = loop_begin(k, constant(p, whole), constant(p, n), 1);
    outputs(&one, rest.index, NULL);
    loop_end(k, &rest);
}

/* Goes through all rows, whose elements are vectors. */
static void along_rows(Planes *p) {
    const Codegen *k = p->taps->lower->k;
    Loop loop = loop_over(k, k_sub(k, p->taps->end, p->taps->begin), 1);
    p->row = loop.index;
    along_row(p);
    loop_end(k, &loop);
}

/* As many chains as equal steps of all outputs need. Chains along a row share elements, which LLVM
 * keeps in registers beside the sums. */
static uint32_t choose_chains(const Planes *p) {
    int64_t most = p->is_wide ? MOST_CHAINS_ALONG : MOST_CHAINS;
    int64_t n = p->is_wide ? p->of.n_windows : p->n_outputs;
    int64_t n_steps = (n + most - 1) / most;
    return (uint32_t)((n + n_steps - 1) / n_steps);
}

/* Computes the outputs of the unit from their planes. */
static void compute(Planes *p) {
    for (uint32_t i = 0; i < p->of.across.n; i++) pack_rows(p, i);
    pack_weights(p);
    if (p->is_wide)
        along_rows(p);
    else
        down_rows(p);
}

/* Sets the lanes of the unit, whose elements are vectors. */
static void set_lanes(Planes *p) {
    const Taps *taps = p->taps;
    Lower *lower = taps->lower;
    const Codegen *k = lower->k;
    Val at = taps->unit.axis[lower->lane_axis], n = lower_extent(lower, lower->lane_axis);
    DimId extent = kernel_axis_extent(lower->kernel, lower->lane_axis);
    bool is_long = dim_lo(lower_dims(lower), extent) >= taps->lanes;
    Val mask = NULL;
    if (p->may_repeat && is_long)
        at = k_smin(k, at, k_subi(k, n, taps->lanes));
    else if (!cpu_is_multiple(lower, extent, taps->lanes))
        mask = cpu_lanes_below(lower, k_sub(k, n, at), taps->lanes);
    p->unit = cpu_lane_point(&taps->unit, taps->lanes, at, mask);
}

void taps_from_planes(const Taps *taps) {
    Lower *lower = taps->lower;
    const Reduce *reduce = &lower->kernel->reduces.data[0];
    Planes p = {
        .taps = taps, .unit = taps->unit, .n_outputs = lower->variant->sched.cpu_taps.chunk};
    if (!cpu_planes_find(lower->k->arena, lower->kernel, lower->lane_axis, taps->lanes, &p.of))
        ice(lower->k->arena, "kernel %s has no planes", lower->kernel->name);
    p.weight = p.of.image == reduce->lhs ? reduce->rhs : reduce->lhs;
    p.is_wide = p.of.width > 1;
    int64_t n_elems = cpu_planes_rows(&p.of, p.n_outputs) * cpu_planes_row(&p.of) * p.of.width;
    /* A vector with a mask may end behind the last strip. */
    p.memory = cpu_array_new(lower, reduce->acc, false, n_elems + taps->lanes).values;
    p.may_repeat = cpu_may_repeat(lower);
    p.n_chains = choose_chains(&p);
    find_digits(&p);
    if (p.is_wide) set_lanes(&p);
    compute(&p);
}
