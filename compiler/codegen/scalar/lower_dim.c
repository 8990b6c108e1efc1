/* A kernel function under construction: its setup, dims as values, linear indices. See point.h. */
#include "codegen/scalar/point.h"

#include "plan/in_place.h"

#include <string.h>

void lower_init(Lower *lower, Codegen *k, const Plan *plan, const Kernel *kernel,
                const Variant *variant) {
    *lower = (Lower){.k = k,
                     .plan = plan,
                     .kernel = kernel,
                     .variant = variant,
                     .index_type = variant->sched.is_wide ? k->i64 : k->i32,
                     .lane_axis = kernel_lane_axis(kernel, &variant->sched),
                     .n_kernels = 1,
                     .n_together = 1,
                     .n_codes = 1};
    if (kernel->parts) {
        Kernel *moved = arena_copy(k->arena, kernel, sizeof *kernel);
        moved->scalars = kernel->parts->scalars;
        lower->kernel = moved;
        lower->given = arena_array(k->arena, Val, kernel_n_given(kernel));
    }
    uint32_t n_args = kernel->args.n;
    lower->pointers = arena_array(k->arena, Val, n_args);
    lower->may_change = in_place_find(k->arena, plan, kernel);
    for (uint32_t i = 0; i < n_args; i++)
        lower->may_change[i] = lower->may_change[i] ||
                               kernel_stores_to(kernel, kernel->args.data[i]) ||
                               (k->target->has_pdl && !kernel_arg_is_given(plan, kernel, i));
}

uint32_t lower_arg(const Lower *lower, uint32_t buffer) {
    uint32_t arg = kernel_find_arg(lower->kernel, buffer);
    if (arg == NO_ARG)
        ice(lower->k->arena, "kernel %s does not take buffer %u", lower->kernel->name, buffer);
    return arg;
}

static Val dim_atom_value(Lower *lower, uint32_t atom_id) {
    DimAtom atom = dim_atom(lower_dims(lower), atom_id);
    if (!atom.is_division) {
        const DimRule *rule = dim_symbol_info(lower_dims(lower), atom.symbol)->rule;
        if (rule && rule->value != DIM_NONE) return lower_dim64(lower, rule->value);
        return lower->symbols[atom.symbol];
    }
    Val n = lower_dim64(lower, atom.numerator);
    Val d = lower_dim64(lower, atom.divisor);
    const Codegen *k = lower->k;
    bool is_positive = dim_lo(lower_dims(lower), atom.numerator) >= 0 &&
                       dim_lo(lower_dims(lower), atom.divisor) > 0;
    if (is_positive) return k_udiv(k, n, d);
    Val zero = k_int(k->i64, 0);
    Val q = k_sdiv(k, n, d);
    Val rest = k_srem(k, n, d);
    Val below = k_slt(k, rest, zero);
    Val one = k_zext(k, below, k->i64);
    return k_sub(k, q, one);
}

static Val build_dim(Lower *lower, DimId dim) {
    const DimTab *dims = lower_dims(lower);
    const Codegen *k = lower->k;
    Val total = k_int(k->i64, dim_constant_part(dims, dim));
    for (uint32_t i = 0; i < dim_n_terms(dims, dim); i++) {
        DimTerm term = dim_term(dims, dim, i);
        Val product = k_int(k->i64, term.coefficient);
        for (uint32_t j = 0; j < term.n_atoms; j++) {
            Val factor = dim_atom_value(lower, term.atoms[j]);
            product = k_mul(k, product, factor);
        }
        total = k_add(k, total, product);
    }
    return total;
}

static void grow_dims(Lower *lower, DimId dim) {
    if (dim < lower->n_dims) return;
    uint32_t n = dim * 2 + 64;
    Val *dims = arena_array(lower->k->arena, Val, n * (size_t)2);
    if (lower->n_dims) memcpy(dims, lower->dims, lower->n_dims * 2 * sizeof *dims);
    lower->dims = dims;
    lower->n_dims = n;
}

/* dims[2k] is dim k in index_type and dims[2k + 1] in 64 bits. Both are made together. */
static Val dim_value(Lower *lower, DimId dim, bool is_64) {
    int64_t value;
    if (dim_is_const(lower_dims(lower), dim, &value))
        return k_int(is_64 ? lower->k->i64 : lower->index_type, value);
    grow_dims(lower, dim);
    if (!lower->dims[dim * 2 + 1]) {
        Codegen *k = lower->k;
        LLVMBasicBlockRef here = k_here(k);
        k_goto(k, lower->entry);
        Val wide = build_dim(lower, dim);
        grow_dims(lower, dim);
        lower->dims[dim * 2 + 1] = wide;
        lower->dims[dim * 2] =
            lower->index_type == k->i64 ? wide : k_trunc(k, wide, lower->index_type);
        k_goto(k, here);
    }
    return lower->dims[dim * 2 + is_64];
}

Val lower_dim(Lower *lower, DimId dim) {
    return dim_value(lower, dim, false);
}

Val lower_dim64(Lower *lower, DimId dim) {
    return dim_value(lower, dim, true);
}

Val lower_index_const(const Lower *lower, int64_t value) {
    return k_int(lower->index_type, value);
}

Val lower_divisor(Lower *lower, DimId dim) {
    Val d = lower_dim(lower, dim);
    if (dim_lo(lower_dims(lower), dim) >= 1) return d;
    const Codegen *k = lower->k;
    Val one = lower_index_const(lower, 1);
    return k_select(k, k_sgt(k, d, one), d, one);
}

void lower_split(Lower *lower, Val linear, uint32_t first, uint32_t n, Point *point) {
    const IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    for (uint32_t j = n; j-- > 1;) {
        Val extent = lower_divisor(lower, index_axis_extent(tab, first + j));
        point->axis[first + j] = k_urem(lower->k, linear, extent);
        linear = k_udiv(lower->k, linear, extent);
    }
    if (n) point->axis[first] = linear;
}

void lower_split_vectors(Lower *lower, Val number, Point *point) {
    const Codegen *k = lower->k;
    uint32_t n = lower->kernel->n_parallel;
    if (n == 0) return;
    if (n == 1) {
        point->axis[0] = k_muli(k, number, point->lanes);
        return;
    }
    Val per_row = k_udivi(k, lower_extent(lower, n - 1), point->lanes);
    Val column = k_urem(k, number, per_row);
    Val row = k_udiv(k, number, per_row);
    point->axis[n - 1] = k_muli(k, column, point->lanes);
    lower_split(lower, row, 0, n - 1, point);
}
