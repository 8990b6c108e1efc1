/* Evaluating tensor maps. See tensor_map.h. The limits are those of the driver's
 * cuTensorMapEncodeTiled. */
#include "device/tensor_map.h"

#define MAX_SIZE ((int64_t)1 << 31) /* coordinates are signed 32-bit integers */
#define MAX_STRIDE_BYTES ((int64_t)1 << 40)

static bool is_whole(int64_t n_bytes) {
    return n_bytes % FRT_MAP_ALIGN_BYTES == 0;
}

/* Evaluates an expression and checks that its value is in [least, end). */
static bool value_in(const Manifest *m, Expr expr, DimValues dims, int64_t least, int64_t end,
                     int64_t *value) {
    return expr_eval(m->tokens, expr, dims, value) == EXPR_OK && *value >= least && *value < end;
}

bool map_make(const Manifest *m, const Map *map, frt_dtype dtype, void *data, DimValues dims,
              MapSpec *spec) {
    int64_t elem_bytes = (int64_t)frt_dtype_bytes(dtype);
    int64_t offset;
    *spec = (MapSpec){.dtype = dtype,
                      .is_tf32 = map->is_tf32,
                      .swizzle = map->swizzle,
                      .rank = map->rank,
                      .is_im2col = map->is_im2col};
    if (!value_in(m, map->offset, dims, 0, INT64_MAX / elem_bytes, &offset)) {
        return false;
    }
    uintptr_t address = (uintptr_t)data + (uintptr_t)(offset * elem_bytes);
    if (address % FRT_MAP_ALIGN_BYTES != 0) {
        return false;
    }
    spec->data = (char *)data + offset * elem_bytes;
    for (uint32_t i = 0; i < map->rank; i++) {
        const MapAxis *axis = &map->axes[i];
        int64_t size;
        int64_t stride;
        if (!value_in(m, axis->size, dims, 1, MAX_SIZE, &size) ||
            !value_in(m, axis->stride, dims, 1, MAX_STRIDE_BYTES / elem_bytes, &stride) ||
            (i > 0 && !is_whole(stride * elem_bytes))) {
            return false;
        }
        spec->sizes[i] = (uint64_t)size;
        spec->stride_bytes[i] = (uint64_t)(stride * elem_bytes);
        spec->box[i] = axis->box;
        spec->steps[i] = axis->step ? axis->step : 1;
        spec->lower[i] = axis->lower;
        spec->upper[i] = axis->upper;
    }
    return true;
}

bool map_is_same(const MapSpec *a, const MapSpec *b) {
    bool is_same = a->data == b->data && a->dtype == b->dtype && a->is_tf32 == b->is_tf32 &&
                   a->swizzle == b->swizzle && a->rank == b->rank && a->is_im2col == b->is_im2col;
    for (uint32_t i = 0; is_same && i < a->rank; i++) {
        is_same = a->sizes[i] == b->sizes[i] && a->stride_bytes[i] == b->stride_bytes[i] &&
                  a->box[i] == b->box[i] && a->steps[i] == b->steps[i] &&
                  a->lower[i] == b->lower[i] && a->upper[i] == b->upper[i];
    }
    return is_same;
}
