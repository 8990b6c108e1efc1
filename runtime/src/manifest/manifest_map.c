/* The manifest's `map` line: `map ARG[:tf32] SWIZZLE OFFSET SIZE:STRIDE:BOX...`. A spatial axis of
 * im2col is SIZE:STRIDE:LOWER:UPPER:STEP. */
#include "manifest/manifest_text.h"

enum { FIRST_AXIS = 4, WIDEST_SWIZZLE = 128 };

static frt_status read_swizzle(TextReader *r, Map *map) {
    int64_t bytes;
    frt_status status = text_int(r, r->fields[2], WIDEST_SWIZZLE, "swizzle", &bytes);
    if (!status && bytes != 0 && bytes != 32 && bytes != 64 && bytes != WIDEST_SWIZZLE) {
        return text_fail(r, "the swizzle of a map is none of 0, 32, 64, 128");
    }
    map->swizzle = status ? 0 : (uint32_t)bytes;
    return status;
}

static frt_status read_corner(TextReader *r, Slice s, int32_t *corner) {
    int64_t value = 0;
    bool is_negative = s.n > 1 && s.bytes[0] == '-';
    if (is_negative) {
        s = (Slice){s.bytes + 1, s.n - 1};
    }
    frt_status status = text_int(r, s, FRT_MAX_MAP_CORNER, "corner", &value);
    *corner = (int32_t)(is_negative ? -value : value);
    return status;
}

/* Reads LOWER:UPPER:STEP of a spatial axis of im2col. */
static frt_status read_windows(TextReader *r, Slice lower, Slice s, MapAxis *axis) {
    Slice upper;
    int64_t step = 0;
    if (!slice_cut(&s, ':', &upper) || !s.bytes) {
        return text_fail(r, "an axis of windows is not SIZE:STRIDE:LOWER:UPPER:STEP");
    }
    frt_status status = read_corner(r, lower, &axis->lower);
    if (!status) {
        status = read_corner(r, upper, &axis->upper);
    }
    if (!status) {
        status = text_int(r, s, FRT_MAX_MAP_STEP, "step", &step);
    }
    if (!status && step < 1) {
        return text_fail(r, "windows of a map take no step");
    }
    axis->step = (uint32_t)step;
    axis->box = 1;
    return status;
}

static frt_status read_axis(TextReader *r, Slice s, MapAxis *axis) {
    Slice size;
    Slice stride;
    Slice lower;
    int64_t box;
    *axis = (MapAxis){.step = 0};
    if (!slice_cut(&s, ':', &size) || !slice_cut(&s, ':', &stride) || !s.bytes) {
        return text_fail(r, "an axis of a map is not SIZE:STRIDE:BOX");
    }
    frt_status status = text_expr(r, size, "size", &axis->size);
    if (!status) {
        status = text_expr(r, stride, "stride", &axis->stride);
    }
    if (!status && slice_cut(&s, ':', &lower) && s.bytes) {
        return read_windows(r, lower, s, axis);
    }
    if (!status) {
        status = text_int(r, lower, FRT_MAX_MAP_BOX, "box", &box);
    }
    if (!status && box < 1) {
        return text_fail(r, "a map has an empty box");
    }
    axis->box = status ? 0 : (uint32_t)box;
    return status;
}

static frt_status read_arg(TextReader *r, int64_t last_arg, Map *map) {
    Slice rest = r->fields[1];
    Slice number;
    int64_t arg = 0;
    slice_cut(&rest, ':', &number);
    frt_status status = text_int(r, number, last_arg, "argument of the map", &arg);
    map->arg = (uint32_t)arg;
    map->is_tf32 = rest.bytes != NULL;
    if (!status && map->is_tf32 && !slice_is(rest, FRT_MAP_TF32)) {
        return text_fail(r, "elements of a map cannot become `%.*s`", (int)rest.n, rest.bytes);
    }
    return status;
}

/* In an im2col map every axis between the first and the last is spatial; in any other map none
 * is. */
static frt_status check_windows(TextReader *r, Map *map) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < map->rank; i++) {
        n += map->axes[i].step > 0;
    }
    map->is_im2col = n > 0;
    bool is_good =
        n == 0 || (n + 2 == map->rank && !map->axes[0].step && !map->axes[map->rank - 1].step);
    return is_good ? FRT_OK : text_fail(r, "windows lie along the wrong axes of a map");
}

frt_status text_map(TextReader *r, int64_t last_arg, Map *map) {
    int64_t stride;
    *map = (Map){.rank = r->n_fields - FIRST_AXIS};
    frt_status status = read_arg(r, last_arg, map);
    if (!status) {
        status = read_swizzle(r, map);
    }
    if (!status) {
        status = text_expr(r, r->fields[3], "offset", &map->offset);
    }
    for (uint32_t i = 0; !status && i < map->rank; i++) {
        status = read_axis(r, r->fields[FIRST_AXIS + i], &map->axes[i]);
    }
    if (!status && (!expr_is_const(r->m->tokens, map->axes[0].stride, &stride) || stride != 1)) {
        return text_fail(r, "the innermost stride of a map is not 1");
    }
    return status ? status : check_windows(r, map);
}

/* The limits of the copy engine for a box: its innermost side has at least 16 bytes, and at most
 * the span of its swizzle. */
frt_status text_check_map(TextReader *r, const Map *map, frt_dtype dtype) {
    if (map->is_tf32 && dtype != FRT_F32) {
        return text_fail(r, "only elements of f32 can become " FRT_MAP_TF32);
    }
    uint64_t n_bytes = (uint64_t)map->axes[0].box * frt_dtype_bytes(dtype);
    if (n_bytes % FRT_MAP_ALIGN_BYTES != 0 || (map->swizzle && n_bytes > map->swizzle)) {
        return text_fail(r, "the inner side of a map's box is %llu bytes",
                         (unsigned long long)n_bytes);
    }
    return FRT_OK;
}
