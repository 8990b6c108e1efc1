/* The manifest's `map` line: `map ARG[:tf32] SWIZZLE OFFSET SIZE:STRIDE:BOX...`. */
#include "manifest_text.h"

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

static frt_status read_axis(TextReader *r, Slice s, MapAxis *axis) {
    Slice size;
    Slice stride;
    int64_t box;
    if (!slice_cut(&s, ':', &size) || !slice_cut(&s, ':', &stride) || !s.bytes) {
        return text_fail(r, "an axis of a map is not SIZE:STRIDE:BOX");
    }
    frt_status status = text_expr(r, size, "size", &axis->size);
    if (!status) {
        status = text_expr(r, stride, "stride", &axis->stride);
    }
    if (!status) {
        status = text_int(r, s, FRT_MAX_MAP_BOX, "box", &box);
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
    return status;
}
