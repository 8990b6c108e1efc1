/* Checking shapes and resolving dims from them. A message of a conflict names both sides. */
#include "host/error.h"
#include "exec/program.h"

#include <inttypes.h>
#include <stdio.h>

static frt_status check_extents(const Manifest *m, const Tensor *tensor, const frt_tensor *given,
                                int64_t *n_bytes, frt_error *err) {
    int64_t n = (int64_t)frt_dtype_bytes(tensor->dtype);
    bool is_empty = false;
    for (int32_t i = 0; i < tensor->rank; i++) {
        int64_t wanted;
        int64_t extent = given->dims[i];
        bool is_const = expr_is_const(m->tokens, tensor->extents[i], &wanted);
        if (extent < 0 || !checked_mul(n, extent ? extent : 1, &n)) {
            return frt_fail(err, FRT_E_SHAPE, "%s %s axis %d is %" PRId64, role_name(tensor->role),
                            tensor->name, i, extent);
        }
        if (is_const && extent != wanted) {
            return frt_fail(err, FRT_E_SHAPE,
                            "%s %s axis %d is %" PRId64 ", but the graph has %" PRId64,
                            role_name(tensor->role), tensor->name, i, extent, wanted);
        }
        is_empty = is_empty || extent == 0;
    }
    *n_bytes = is_empty ? 0 : n;
    return FRT_OK;
}

frt_status given_check(const Manifest *m, const Tensor *tensor, const frt_tensor *given,
                       int64_t *n_bytes, frt_error *err) {
    const char *role = role_name(tensor->role);
    if (given->dtype != tensor->dtype) {
        const char *found = frt_dtype_name(given->dtype);
        return frt_fail(err, FRT_E_DTYPE, "%s %s is %s, but the graph has %s", role, tensor->name,
                        found ? found : "of no known dtype", frt_dtype_name(tensor->dtype));
    }
    if (given->rank != tensor->rank) {
        return frt_fail(err, FRT_E_SHAPE, "%s %s has rank %d, but the graph has rank %d", role,
                        tensor->name, given->rank, tensor->rank);
    }
    frt_status status = check_extents(m, tensor, given, n_bytes, err);
    if (status) {
        return status;
    }
    if (!given->data && *n_bytes > 0) {
        return frt_fail(err, FRT_E_NULL, "%s %s is at NULL", role, tensor->name);
    }
    return FRT_OK;
}

/* The tensor, or the caller, that fixed a dim. */
static Subject origin_of(const Tensor *tensor, int32_t axis) {
    return tensor ? (Subject){role_name(tensor->role), tensor->name, axis} : the_caller;
}

static frt_status fail_conflict(const Manifest *m, const DimState *dims, uint32_t dim,
                                int64_t value, Subject by, frt_error *err) {
    char before[SUBJECT_BYTES];
    char now[SUBJECT_BYTES];
    subject_print(origin_of(dims->tensor[dim], dims->axis[dim]), before);
    subject_print(by, now);
    return frt_fail(err, FRT_E_DIM_CONFLICT, "dim %s is %" PRId64 " by %s but %" PRId64 " by %s",
                    m->dims[dim].name, dims->values[dim], before, value, now);
}

frt_status dims_fix(const Manifest *m, DimState *dims, uint32_t dim, int64_t value,
                    const Tensor *tensor, int32_t axis, frt_error *err) {
    Subject by = origin_of(tensor, axis);
    if (dims->known[dim]) {
        return dims->values[dim] == value ? FRT_OK : fail_conflict(m, dims, dim, value, by, err);
    }
    frt_status status = manifest_check_dim(m, dim, value, by, err);
    if (status) {
        return status;
    }
    dims->known[dim] = true;
    dims->values[dim] = value;
    dims->tensor[dim] = tensor;
    dims->axis[dim] = axis;
    return FRT_OK;
}

frt_status dims_fix_by_shape(const Manifest *m, DimState *dims, const Tensor *tensor,
                             const int64_t *extents, frt_error *err) {
    for (int32_t i = 0; i < tensor->rank; i++) {
        int32_t dim = expr_bare_dim(m->tokens, tensor->extents[i]);
        frt_status status =
            dim < 0 ? FRT_OK : dims_fix(m, dims, (uint32_t)dim, extents[i], tensor, i, err);
        if (status) {
            return status;
        }
    }
    return FRT_OK;
}

frt_status dims_solve_by_shape(const Manifest *m, DimState *dims, const Tensor *tensor,
                               const int64_t *extents, frt_error *err) {
    for (int32_t i = 0; i < tensor->rank; i++) {
        int64_t factor;
        int64_t rest;
        int64_t scaled;
        int32_t dim = expr_linear_dim(m->tokens, tensor->extents[i], &factor, &rest);
        if (dim < 0 || dims->known[dim] || __builtin_sub_overflow(extents[i], rest, &scaled)) {
            continue;
        }
        if (scaled % factor != 0) {
            char wanted[128];
            expr_print(m->tokens, tensor->extents[i], m->dim_names, wanted, sizeof wanted);
            return frt_fail(err, FRT_E_SHAPE, "%s %s axis %d is %" PRId64 ", which %s is for no %s",
                            role_name(tensor->role), tensor->name, i, extents[i], wanted,
                            m->dims[dim].name);
        }
        frt_status status = dims_fix(m, dims, (uint32_t)dim, scaled / factor, tensor, i, err);
        if (status) {
            return status;
        }
    }
    return FRT_OK;
}

void extents_print(const int64_t *extents, int32_t rank, char *text, size_t n_bytes) {
    size_t n = (size_t)snprintf(text, n_bytes, "[");
    for (int32_t i = 0; i < rank && n < n_bytes; i++) {
        n += (size_t)snprintf(text + n, n_bytes - n, "%s%" PRId64, i ? ", " : "", extents[i]);
    }
    if (n < n_bytes) {
        snprintf(text + n, n_bytes - n, "]");
    }
}

/* " (N is 2 by param w axis 0)": who fixed the dims of an extent. */
static void sources_print(const Manifest *m, const DimState *dims, Expr extent, char *text,
                          size_t n_bytes) {
    bool is_told[FRT_MAX_DIMS] = {false};
    size_t n = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < extent.n; i++) {
        const ExprToken *token = &m->tokens[extent.first + i];
        if (token->op != EXPR_DIM || is_told[token->value]) {
            continue;
        }
        size_t dim = (size_t)token->value;
        char by[SUBJECT_BYTES];
        is_told[dim] = true;
        subject_print(origin_of(dims->tensor[dim], dims->axis[dim]), by);
        if (n < n_bytes) {
            n += (size_t)snprintf(text + n, n_bytes - n, "%s%s is %" PRId64 " by %s",
                                  n ? ", " : " (", m->dims[dim].name, dims->values[dim], by);
        }
    }
    if (n > 0 && n < n_bytes) {
        snprintf(text + n, n_bytes - n, ")");
    }
}

frt_status shape_check(const Manifest *m, const Tensor *tensor, const DimState *dims,
                       const int64_t *given, int64_t *n_bytes, frt_error *err) {
    int64_t extents[FRT_MAX_RANK];
    DimValues values = {dims->values, dims->known};
    frt_status status = manifest_shape(m, tensor, values, extents, n_bytes, err);
    for (int32_t i = 0; !status && i < tensor->rank; i++) {
        if (given[i] == extents[i]) {
            continue;
        }
        char wanted[128];
        char sources[256];
        expr_print(m->tokens, tensor->extents[i], m->dim_names, wanted, sizeof wanted);
        sources_print(m, dims, tensor->extents[i], sources, sizeof sources);
        status = frt_fail(err, FRT_E_SHAPE, "%s %s axis %d is %" PRId64 ", but %s is %" PRId64 "%s",
                          role_name(tensor->role), tensor->name, i, given[i], wanted, extents[i],
                          sources);
    }
    return status;
}

bool shape_is_known(const Manifest *m, const Tensor *tensor, const DimState *dims) {
    DimValues values = {dims->values, dims->known};
    for (int32_t i = 0; i < tensor->rank; i++) {
        int64_t extent;
        if (expr_eval(m->tokens, tensor->extents[i], values, &extent) == EXPR_UNKNOWN_DIM) {
            return false;
        }
    }
    return true;
}
