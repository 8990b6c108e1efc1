/* Offsets of a CPU GEMM's operands, and operands that are not packed. See gemm.h.
 *
 * The address of an element of a window divides k by the extents of the windows, which takes longer
 * than its load. Where the address is a sum of what k adds and of what the other axes add, the
 * former is computed once and kept in a table. A packed operand has an entry for each vector of a
 * block of k. An operand that the register tile reads where it is has one for each k. If k is too
 * long for a table of all its steps, that is a table of the block of k too.
 *
 * A table that depends on no dim of the run is a constant of the code. */
#include "codegen/cpu_gemm/gemm.h"
#include "interp/index_eval.h"

enum { MOST_OFFSETS = 6144 };

/* A run of k that repeats one element has none: a vector of the table's places is contiguous. */
static bool has_offsets(const Gemm *gemm, const GemmOperand *operand) {
    const ScalarTab *scalars = gemm->lower->kernel->scalars;
    IndexTab *tab = scalartab_indices(scalars);
    const Scalar *load = scalar_get(scalars, operand->value);
    if (cpu_pack_has_places(operand->pack)) return true;
    if (!operand->pack.run || !gemm_operand_is_plain(gemm, operand) || load->guard ||
        index_lane_motion(tab, load->index, gemm->k_axis, operand->pack.run) != LANES_CONTIGUOUS)
        return false;
    IndexExpr expr = index_expr(tab, load->index);
    bool is_sum = true;
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        uint32_t axes = index_atom(tab, expr.terms[i].atom).axes, own = 1u << gemm->k_axis;
        is_sum = is_sum && (!(axes & own) || axes == own);
    }
    return is_sum;
}

/* The address (i64) at a point. */
static Val address_at(const Gemm *gemm, const GemmOperand *operand, Point *point) {
    const Codegen *k = gemm->lower->k;
    const Scalar *load = scalar_get(gemm->lower->kernel->scalars, operand->value);
    return k_index_cast(k, point_index(point, load->index), k->i64);
}

static Val offset_place(const Gemm *gemm, const GemmOperand *operand, Val at_k) {
    const Codegen *k = gemm->lower->k;
    Val at = operand->has_all_offsets ? at_k : k_sub(k, at_k, gemm->k_begin);
    return k_gep(k, k->i64, operand->offsets, at);
}

typedef struct Offsets {
    Gemm *gemm;
    GemmOperand *operand;
} Offsets;

static void offset_step(void *user, Val at, Val mask) {
    (void)mask;
    const Offsets *offsets = user;
    const Gemm *gemm = offsets->gemm;
    Lower *lower = gemm->lower;
    Point point = point_new(lower, 1);
    for (uint32_t axis = 0; axis < lower->kernel->first_reduced; axis++)
        point.axis[axis] = lower_index_const(lower, 0);
    point.axis[gemm->k_axis] = at;
    Val address = address_at(gemm, offsets->operand, &point);
    k_store_aligned(lower->k, address, offset_place(gemm, offsets->operand, at), 8);
}

static void each_offset(Gemm *gemm, GemmOperand *operand, CpuSpan span) {
    Offsets offsets = {gemm, operand};
    if (operand->pack.way == PACK_NONE) {
        cpu_each_step(gemm->lower, span.begin, span.n, 1, true, offset_step, &offsets);
        return;
    }
    operand->span = span;
    gemm_each_k_step(gemm, operand, NULL, offset_step, &offsets);
}

/* Whether no dim of the run is in the expression. */
static bool is_constant(const IndexTab *tab, IndexId id) {
    const DimTab *dims = indextab_dims(tab);
    IndexExpr expr = index_expr(tab, id);
    int64_t value;
    bool is = dim_is_const(dims, expr.offset, &value);
    for (uint32_t i = 0; i < expr.n_terms && is; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        bool divides = atom.kind == ATOM_DIV || atom.kind == ATOM_MOD;
        is = dim_is_const(dims, expr.terms[i].coefficient, &value) && atom.kind != ATOM_VALUE &&
             (!divides ||
              (dim_is_const(dims, atom.divisor, &value) && is_constant(tab, atom.operand)));
    }
    return is;
}

/* The table of all of K as a constant; NULL: it depends on dims of the run. */
static Val constant_offsets(const Gemm *gemm, const GemmOperand *operand, int64_t n_k) {
    const Codegen *k = gemm->lower->k;
    const ScalarTab *scalars = gemm->lower->kernel->scalars;
    const IndexTab *tab = scalartab_indices(scalars);
    IndexId address = scalar_get(scalars, operand->value)->index;
    int64_t extent, axes[MAX_AXES] = {0};
    if (!dim_is_const(indextab_dims(tab), gemm->k_extent, &extent) || !is_constant(tab, address))
        return NULL;
    const IndexCode *code = index_compile(k->arena, tab, address, NULL);
    Val *values = arena_array(k->arena, Val, (size_t)n_k);
    for (int64_t *at = &axes[gemm->k_axis]; *at < n_k; (*at)++)
        values[*at] = k_int(k->i64, index_eval(code, &(IndexPoint){.axes = axes}));
    return k_constant_array(k, values, (uint32_t)n_k, "offsets");
}

/* Elements of an operand that is read where it is from one k to the next, if they are the same for
 * all; else 0. */
static int64_t stride_along_k(const Gemm *gemm, const GemmOperand *operand) {
    const ScalarTab *scalars = gemm->lower->kernel->scalars;
    IndexId address = scalar_get(scalars, operand->value)->index;
    if (operand->pack.way != PACK_NONE) return 0;
    return index_stride_const(scalartab_indices(scalars), address, gemm->k_axis);
}

/* The table of any block of k, whose place is added to that of the operand. */
static Val even_offsets(const Gemm *gemm, int64_t stride) {
    const Codegen *k = gemm->lower->k;
    Val *values = arena_array(k->arena, Val, (size_t)gemm->depth);
    for (int64_t at = 0; at < gemm->depth; at++) values[at] = k_int(k->i64, at * stride);
    return k_constant_array(k, values, (uint32_t)gemm->depth, "offsets");
}

void gemm_make_offsets(Gemm *gemm) {
    Lower *lower = gemm->lower;
    GemmOperand *operands[2] = {gemm->sweep ? NULL : &gemm->row,
                                gemm->has_panels ? NULL : &gemm->column};
    int64_t n_k = dim_hi(lower_dims(lower), gemm->k_extent);
    for (int i = 0; i < 2; i++) {
        GemmOperand *operand = operands[i];
        if (!operand || !has_offsets(gemm, operand)) continue;
        if (operand->strips) {
            operand->offsets = gemm_strip_offsets(gemm, operand->strips);
            continue;
        }
        bool has_room = n_k > 0 && n_k <= MOST_OFFSETS;
        operand->offsets = has_room ? constant_offsets(gemm, operand, n_k) : NULL;
        operand->has_all_offsets =
            operand->offsets || (operand->pack.way == PACK_NONE && n_k <= MOST_OFFSETS);
        if (operand->offsets) continue;
        operand->even_stride = has_room ? 0 : stride_along_k(gemm, operand);
        if (operand->even_stride) {
            operand->offsets = even_offsets(gemm, operand->even_stride);
            continue;
        }
        int64_t n = operand->has_all_offsets ? n_k : gemm->depth;
        operand->offsets = cpu_array_new(lower, DT_I64, false, n).values;
        CpuSpan all = {lower_index_const(lower, 0), lower_dim(lower, gemm->k_extent)};
        if (operand->has_all_offsets) each_offset(gemm, operand, all);
    }
}

void gemm_find_offsets(Gemm *gemm) {
    GemmOperand *operands[2] = {&gemm->row, &gemm->column};
    for (int i = 0; i < 2; i++)
        if (operands[i]->offsets && !operands[i]->has_all_offsets && !operands[i]->strips &&
            !operands[i]->even_stride)
            each_offset(gemm, operands[i], (CpuSpan){gemm->k_begin, gemm->n_k});
}

Val gemm_block_offsets(const Gemm *gemm, const GemmOperand *operand) {
    return offset_place(gemm, operand, gemm->k_begin);
}

Val gemm_offsets_base(const Gemm *gemm, const GemmOperand *operand, const Point *point) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    const ScalarTab *scalars = lower->kernel->scalars;
    const Scalar *load = scalar_get(scalars, operand->value);
    Point first = point_inside(point);
    first.axis[gemm->k_axis] = lower_index_const(lower, 0);
    Val address = address_at(gemm, operand, &first);
    DimId constant = index_expr(scalartab_indices(scalars), load->index).offset;
    return k_sub(k, address, lower_dim64(lower, constant));
}

Val gemm_place(const Gemm *gemm, const GemmOperand *operand, Val at) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    const Scalar *load = scalar_get(lower->kernel->scalars, operand->value);
    Point point = point_inside(&gemm->point);
    point.axis[operand->axis] = at;
    Val base = gemm_offsets_base(gemm, operand, &point);
    if (operand->even_stride) {
        Val begin = k_index_cast(k, gemm->k_begin, k->i64);
        base = k_add(k, base, k_muli(k, begin, operand->even_stride));
    }
    LLVMTypeRef one = k_memory_type(k, operand->dtype, 1);
    return k_gep(k, one, lower->pointers[lower_arg(lower, load->buffer)], base);
}

Val gemm_offset_lanes(const Gemm *gemm, const GemmOperand *operand, Val base, Val at, Val mask) {
    const Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    const Scalar *load = scalar_get(lower->kernel->scalars, operand->value);
    uint32_t arg = lower_arg(lower, load->buffer);
    Val offset = k_load(k, k->i64, offset_place(gemm, operand, at));
    LLVMTypeRef one = k_memory_type(k, operand->dtype, 1);
    Val pointer = k_gep(k, one, k_gep(k, one, lower->pointers[arg], base), offset);
    Val values = point_load_lanes(lower, arg, operand->dtype, operand->lanes, pointer, mask);
    return convert_value(k, values, operand->dtype, gemm->packed);
}
