/* A kernel function under construction: its set-up, dims as values, linear indices. See point.h. */
#include "codegen/scalar/point.h"

#include "plan/in_place.h"

#include <string.h>

/* Whether it is in memory for good before any kernel of the same phase begins. What inputs hold may
 * come from a kernel that still runs when this one begins to wait for it. */
static bool is_given(const Lower *lower, uint32_t arg) {
    BufferKind kind = lower->plan->buffers.data[lower->kernel->args.data[arg]].kind;
    return kind == BUFFER_PARAM || (kind == BUFFER_PREPARED && !lower->kernel->is_init);
}

void lower_init(Lower *lower, Unit *unit, const Plan *plan, const Kernel *kernel,
                const Variant *variant) {
    *lower = (Lower){.unit = unit,
                     .plan = plan,
                     .kernel = kernel,
                     .variant = variant,
                     .index_type = variant->sched.is_wide ? unit->i64 : unit->i32,
                     .lane_axis = kernel_lane_axis(kernel, &variant->sched),
                     .n_parts = 1,
                     .n_together = 1,
                     .n_codes = 1};
    uint32_t n_args = kernel->args.n;
    lower->pointers = arena_array(unit->arena, LLVMValueRef, n_args);
    lower->may_change = arena_array(unit->arena, bool, n_args);
    for (uint32_t i = 0; i < n_args; i++)
        lower->may_change[i] = kernel_stores_to(kernel, kernel->args.data[i]) ||
                               in_place_may_any(unit->arena, plan, kernel, kernel->args.data[i]) ||
                               (unit->target->has_pdl && !is_given(lower, i));
}

uint32_t lower_arg(const Lower *lower, uint32_t buffer) {
    uint32_t arg = kernel_find_arg(lower->kernel, buffer);
    if (arg == NO_ARG)
        ice(lower->unit->arena, "kernel %s does not take buffer %u", lower->kernel->name, buffer);
    return arg;
}

static LLVMValueRef dim_atom_value(Lower *lower, uint32_t atom_id) {
    DimAtom atom = dim_atom(lower_dims(lower), atom_id);
    if (!atom.is_division) {
        const DimRule *rule = dim_symbol_info(lower_dims(lower), atom.symbol)->rule;
        if (rule && rule->value != DIM_NONE) return lower_dim64(lower, rule->value);
        return lower->symbols[atom.symbol];
    }
    LLVMValueRef n = lower_dim64(lower, atom.numerator);
    LLVMValueRef d = lower_dim64(lower, atom.divisor);
    LLVMBuilderRef builder = lower->unit->builder;
    bool is_positive = dim_lo(lower_dims(lower), atom.numerator) >= 0 &&
                       dim_lo(lower_dims(lower), atom.divisor) > 0;
    if (is_positive) return LLVMBuildUDiv(builder, n, d, "");
    LLVMValueRef zero = unit_int(lower->unit->i64, 0);
    LLVMValueRef q = LLVMBuildSDiv(builder, n, d, "");
    LLVMValueRef rest = LLVMBuildSRem(builder, n, d, "");
    LLVMValueRef below = LLVMBuildICmp(builder, LLVMIntSLT, rest, zero, "");
    LLVMValueRef one = LLVMBuildZExt(builder, below, lower->unit->i64, "");
    return LLVMBuildSub(builder, q, one, "");
}

static LLVMValueRef build_dim(Lower *lower, DimId dim) {
    const DimTab *dims = lower_dims(lower);
    LLVMBuilderRef builder = lower->unit->builder;
    LLVMValueRef total = unit_int(lower->unit->i64, dim_constant_part(dims, dim));
    for (uint32_t i = 0; i < dim_n_terms(dims, dim); i++) {
        DimTerm term = dim_term(dims, dim, i);
        LLVMValueRef product = unit_int(lower->unit->i64, term.coefficient);
        for (uint32_t k = 0; k < term.n_atoms; k++) {
            LLVMValueRef factor = dim_atom_value(lower, term.atoms[k]);
            product = LLVMBuildMul(builder, product, factor, "");
        }
        total = LLVMBuildAdd(builder, total, product, "");
    }
    return total;
}

static void grow_dims(Lower *lower, DimId dim) {
    if (dim < lower->n_dims) return;
    uint32_t n = dim * 2 + 64;
    LLVMValueRef *dims = arena_array(lower->unit->arena, LLVMValueRef, n * (size_t)2);
    if (lower->n_dims) memcpy(dims, lower->dims, lower->n_dims * 2 * sizeof *dims);
    lower->dims = dims;
    lower->n_dims = n;
}

/* [2k] is dim k in index_type, [2k + 1] in 64 bits. Both are made together. */
static LLVMValueRef dim_value(Lower *lower, DimId dim, bool is_64) {
    int64_t value;
    if (dim_is_const(lower_dims(lower), dim, &value))
        return unit_int(is_64 ? lower->unit->i64 : lower->index_type, value);
    grow_dims(lower, dim);
    if (!lower->dims[dim * 2 + 1]) {
        Unit *unit = lower->unit;
        LLVMBasicBlockRef here = unit_here(unit);
        unit_goto(unit, lower->entry);
        LLVMValueRef wide = build_dim(lower, dim);
        grow_dims(lower, dim);
        lower->dims[dim * 2 + 1] = wide;
        lower->dims[dim * 2] = lower->index_type == unit->i64
                                   ? wide
                                   : LLVMBuildTrunc(unit->builder, wide, lower->index_type, "");
        unit_goto(unit, here);
    }
    return lower->dims[dim * 2 + is_64];
}

LLVMValueRef lower_dim(Lower *lower, DimId dim) {
    return dim_value(lower, dim, false);
}

LLVMValueRef lower_dim64(Lower *lower, DimId dim) {
    return dim_value(lower, dim, true);
}

LLVMValueRef lower_index_const(const Lower *lower, int64_t value) {
    return unit_int(lower->index_type, value);
}

LLVMValueRef lower_divisor(Lower *lower, DimId dim) {
    LLVMValueRef d = lower_dim(lower, dim);
    if (dim_lo(lower_dims(lower), dim) >= 1) return d;
    LLVMBuilderRef builder = lower->unit->builder;
    LLVMValueRef one = lower_index_const(lower, 1);
    LLVMValueRef positive = LLVMBuildICmp(builder, LLVMIntSGT, d, one, "");
    return LLVMBuildSelect(builder, positive, d, one, "");
}

void lower_split(Lower *lower, LLVMValueRef linear, uint32_t first, uint32_t n, Point *point) {
    const IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    for (uint32_t k = n; k-- > 1;) {
        LLVMValueRef extent = lower_divisor(lower, index_axis_extent(tab, first + k));
        point->axis[first + k] = LLVMBuildURem(lower->unit->builder, linear, extent, "");
        linear = LLVMBuildUDiv(lower->unit->builder, linear, extent, "");
    }
    if (n) point->axis[first] = linear;
}
