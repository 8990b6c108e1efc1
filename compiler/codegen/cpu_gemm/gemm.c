/* A CPU GEMM and its memory. See gemm.h. */
#include "codegen/cpu_gemm/gemm.h"
#include "plan/launch.h"

static GemmUnits units_of(const CpuGemmSched *sched) {
    GemmUnits units = {sched->unit_m, sched->unit_n, sched->tile_m, sched->tile_n};
    if (sched->is_transposed)
        units = (GemmUnits){sched->unit_n, sched->unit_m, sched->tile_n, sched->tile_m};
    return units;
}

/* The variant for few rows that has the same function as this one, see launch/dedup.c; or NULL. */
static const Variant *find_few(const Lower *lower) {
    const Kernel *first = launch_kernel(lower->plan, lower->launch, 0);
    uint32_t v = (uint32_t)(lower->variant - lower->kernel->variants);
    bool has_few = v > 0 && first->variants[v - 1].is_shared &&
                   first->variants[v - 1].symbol == first->variants[v].symbol;
    return has_few ? lower->variant - 1 : NULL;
}

/* Whether all ranges of extents hold that the predicate requires. */
static Val are_in_range(Lower *lower, const Predicate *predicate) {
    const Codegen *k = lower->k;
    Val all = LLVMConstInt(k->i1, 1, 0);
    const PredicateTerm *term;
    for (uint32_t i = 0; (term = predicate_term(predicate, TERM_RANGE, i)); i++) {
        Val dim = lower_dim64(lower, term->dim);
        if (term->least != INT64_MIN) all = k_and(k, all, k_sge(k, dim, k_i64(k, term->least)));
        if (term->most != INT64_MAX) all = k_and(k, all, k_sle(k, dim, k_i64(k, term->most)));
    }
    return all;
}

Gemm gemm_new(Lower *lower) {
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    const Variant *few = find_few(lower);
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    const Reduce *reduce = &kernel->reduces.data[0];
    uint32_t m = kernel->n_parallel - 2, n = kernel->n_parallel - 1;
    GemmOperand left = {.value = reduce->lhs, .axis = m, .extent = index_axis_extent(tab, m)};
    GemmOperand right = {.value = reduce->rhs, .axis = n, .extent = index_axis_extent(tab, n)};
    left.dtype = scalar_get(kernel->scalars, left.value)->dtype;
    right.dtype = scalar_get(kernel->scalars, right.value)->dtype;
    bool is_transposed = cpu_pack_is_transposed(sched);
    Gemm gemm = {
        .lower = lower,
        .acc = reduce->acc,
        .packed = sched->cpu_gemm.has_amx ? left.dtype : reduce->acc,
        .has_amx = sched->cpu_gemm.has_amx,
        .row = is_transposed ? right : left,
        .column = is_transposed ? left : right,
        .k_axis = kernel->first_reduced,
        .k_extent = index_axis_extent(tab, kernel->first_reduced),
        .lanes = sched->lanes,
        .n_batches = sched->cpu_gemm.sweeps ? 1 : sched->cpu_gemm.more_batches + 1,
        .n_swept = sched->cpu_gemm.sweeps ? sched->cpu_gemm.more_batches + 1 : 0,
        .is_streamed = !sched->cpu_gemm.is_blocked,
        .n_tile_rows = is_transposed ? sched->cpu_gemm.register_n : sched->cpu_gemm.register_m,
        .tile_columns = is_transposed ? sched->cpu_gemm.register_m : sched->cpu_gemm.register_n,
        .depth = sched->cpu_gemm.tile_k,
        .units = units_of(&sched->cpu_gemm),
        .few = units_of(few ? &few->sched.cpu_gemm : &sched->cpu_gemm),
        .is_few = few ? are_in_range(lower, &few->predicate) : NULL,
        .point = point_new(lower, 1)};
    gemm.n_vectors = gemm.tile_columns / gemm.lanes * gemm.n_batches;
    gemm.has_panels = kernel->panel_columns && !gemm.is_streamed;
    gemm.panel_dtype = gemm.has_panels ? gemm.column.dtype : gemm.acc;
    gemm.panel_columns = gemm.has_panels ? kernel->panel_columns : gemm.tile_columns;
    if (gemm.panel_columns % gemm.tile_columns)
        ice(lower->k->arena, "the panels of %s are %u wide, its tile %u", kernel->name,
            kernel->panel_columns, gemm.tile_columns);
    uint32_t left_axes = scalar_get(kernel->scalars, left.value)->axes;
    uint32_t right_axes = scalar_get(kernel->scalars, right.value)->axes;
    if ((left_axes >> n & 1) || (right_axes >> m & 1))
        ice(lower->k->arena, "an operand of %s moves with both m and n", kernel->name);
    gemm_choose_layout(&gemm);
    return gemm;
}

uint32_t gemm_pitch(const Gemm *gemm) {
    uint32_t n_beside = gemm->n_batches;
    if (gemm->sweep) n_beside = gemm->n_swept + 2 * gemm->sweep->across.reach;
    return n_beside * gemm->units.block_columns;
}

void gemm_set_batch(const Gemm *gemm, Val number, Point *point) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Val last = k_subi(k, lower_dim(lower, gemm_n_batches(lower->kernel)), 1);
    Val batch = k_smin(k, k_add(k, gemm->batch, number), last);
    lower_split(lower, batch, 0, lower->kernel->n_parallel - 2, point);
}

bool gemm_has_one_k_block(const Gemm *gemm) {
    return dim_hi(lower_dims(gemm->lower), gemm->k_extent) <= gemm->depth;
}

Point gemm_row_point(const Gemm *gemm, Val number, uint32_t lanes) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    CpuRoots roots = {arena_array(k->arena, ScalarId, kernel->row_stores.n), 0};
    for (uint32_t i = 0; i < kernel->row_stores.n; i++)
        roots.ids[roots.n++] = kernel->row_stores.data[i].value;
    Point point = point_inside(&gemm->point);
    point.lanes = lanes;
    point.lane_axis = gemm->column.axis;
    point.axis[gemm->row.axis] = k_add(k, gemm->panel_begin, number);
    if (lanes > 1) point_prepare(&point, roots.ids, roots.n, 1u << gemm->column.axis);
    return point;
}

/* Memory. */

static Val element_of(const Gemm *gemm, Dtype dtype, Val base, Val at) {
    const Codegen *k = gemm->lower->k;
    return k_gep(k, k_value_type(k, dtype, 1), base, at);
}

static Val load_of(const Gemm *gemm, Dtype dtype, Val pointer) {
    const Codegen *k = gemm->lower->k;
    return k_load_aligned(k, k_value_type(k, dtype, gemm->lanes), pointer,
                          gemm->lanes * dtype_bytes(dtype));
}

static void store_of(const Gemm *gemm, Dtype dtype, Val pointer, Val value) {
    k_store_aligned(gemm->lower->k, value, pointer, gemm->lanes * dtype_bytes(dtype));
}

Val gemm_element(const Gemm *gemm, Val base, Val at) {
    return element_of(gemm, gemm->acc, base, at);
}

Val gemm_element_by(const Gemm *gemm, Val base, int64_t elems) {
    return gemm_element(gemm, base, k_int(gemm->lower->k->i64, elems));
}

Val gemm_load_strip(const Gemm *gemm, Val pointer, uint32_t lanes) {
    const Codegen *k = gemm->lower->k;
    return k_load_aligned(k, k_value_type(k, gemm->acc, lanes), pointer, dtype_bytes(gemm->acc));
}

Val gemm_load(const Gemm *gemm, Val pointer) {
    return load_of(gemm, gemm->acc, pointer);
}

void gemm_store(const Gemm *gemm, Val pointer, Val value) {
    store_of(gemm, gemm->acc, pointer, value);
}

Val gemm_packed_element(const Gemm *gemm, Val base, Val at) {
    return element_of(gemm, gemm->packed, base, at);
}

Val gemm_packed_load(const Gemm *gemm, Val pointer) {
    return load_of(gemm, gemm->packed, pointer);
}

void gemm_packed_store(const Gemm *gemm, Val pointer, Val value) {
    store_of(gemm, gemm->packed, pointer, value);
}

bool gemm_operand_is_plain(const Gemm *gemm, const GemmOperand *operand) {
    const ScalarTab *scalars = gemm->lower->kernel->scalars;
    const Scalar *load = scalar_get(scalars, operand->value);
    return load->kind == SCALAR_LOAD && !index_is_gathered(scalartab_indices(scalars), load->index);
}

Val gemm_operand_address(const Gemm *gemm, const GemmOperand *operand, Point *point) {
    const Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    const Scalar *load = scalar_get(lower->kernel->scalars, operand->value);
    Val at = point_index(point, load->index);
    if (LLVMTypeOf(at) == k->i32) at = k_sext(k, at, k->i64);
    uint32_t arg = lower_arg(lower, load->buffer);
    return k_gep(k, k_memory_type(k, operand->dtype, 1), lower->pointers[arg], at);
}

Val gemm_clamp(Lower *lower, Val at, DimId extent) {
    const Codegen *k = lower->k;
    Val last = k_subi(k, lower_dim(lower, extent), 1);
    return k_select(k, k_slt(k, at, last), at, last);
}

Val gemm_lanes_before(const Gemm *gemm, Val at, Val end) {
    const Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Val *numbers = arena_array(k->arena, Val, gemm->lanes);
    for (uint32_t i = 0; i < gemm->lanes; i++) numbers[i] = lower_index_const(lower, i);
    Val rest = k_splat(k, k_sub(k, end, at), gemm->lanes);
    Val lane = gemm->lanes > 1 ? LLVMConstVector(numbers, gemm->lanes) : numbers[0];
    return k_slt(k, lane, rest);
}
