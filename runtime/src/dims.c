/* Resolving dims from shapes, with messages that name both sides of a conflict. */
#include "error.h"
#include "program.h"

#include <inttypes.h>
#include <stdio.h>

static void origin_print(const Tensor *tensor, int32_t axis, char *text, size_t n_bytes) {
    if (tensor) {
        snprintf(text, n_bytes, "%s %.80s axis %d", role_name(tensor->role), tensor->name, axis);
    } else {
        snprintf(text, n_bytes, "the caller");
    }
}

frt_status dims_fix(const Manifest *m, DimState *dims, uint32_t dim, int64_t value,
                    const Tensor *tensor, int32_t axis, frt_error *err) {
    char by[128];
    origin_print(tensor, axis, by, sizeof by);
    if (dims->known[dim] && dims->values[dim] != value) {
        char before[128];
        origin_print(dims->tensor[dim], dims->axis[dim], before, sizeof before);
        return frt_fail(err, FRT_E_DIM_CONFLICT,
                        "dim %s is %" PRId64 " by %s but %" PRId64 " by %s", m->dims[dim].name,
                        dims->values[dim], before, value, by);
    }
    if (dims->known[dim]) {
        return FRT_OK;
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

void extents_print(const int64_t *extents, int32_t rank, char *text, size_t n_bytes) {
    size_t n = (size_t)snprintf(text, n_bytes, "[");
    for (int32_t i = 0; i < rank && n < n_bytes; i++) {
        n += (size_t)snprintf(text + n, n_bytes - n, "%s%" PRId64, i ? ", " : "", extents[i]);
    }
    if (n < n_bytes) {
        snprintf(text + n, n_bytes - n, "]");
    }
}
