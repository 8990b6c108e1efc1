/* See access.h. */
#include "plan/access.h"

#include "ir/indexmap.h"

PlainAxes plain_first_axes(uint32_t n) {
    PlainAxes axes = {.n = n <= MAX_RANK ? n : 0};
    for (uint32_t k = 0; k < axes.n; k++) axes.of[k] = k;
    return axes;
}

IndexId plain_address(const Kernel *kernel, const PlainAxes *axes, const Buffer *buffer) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    Shape shape = {.rank = axes->n};
    IndexId coords[MAX_RANK];
    for (uint32_t k = 0; k < axes->n; k++) {
        shape.dims[k] = index_axis_extent(tab, axes->of[k]);
        coords[k] = index_axis(tab, axes->of[k]);
    }
    if (buffer->pitch) shape.dims[axes->n - 1] = buffer->pitch;
    return indexmap_address(tab, &shape, coords);
}

bool plain_reads(const Plan *plan, const Kernel *kernel, const PlainAxes *axes, uint32_t buffer) {
    if (!axes->n) return false;
    IndexId plain = plain_address(kernel, axes, &plan->buffers.data[buffer]);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (s->kind == SCALAR_LOAD && s->buffer == buffer && (s->index != plain || s->guard))
            return false;
    }
    return true;
}
