/* See flat.h. */
#include "template/flat.h"

bool flat_is_in_order(const Kernel *kernel, IndexId index, DimId *offset) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    IndexId number = index_row_major(tab, kernel->n_parallel);
    IndexExpr own = index_expr(tab, index), wanted = index_expr(tab, number);
    bool is_same = own.n_terms == wanted.n_terms;
    for (uint32_t i = 0; i < own.n_terms && is_same; i++)
        is_same = own.terms[i].atom == wanted.terms[i].atom &&
                  own.terms[i].coefficient == wanted.terms[i].coefficient;
    *offset = own.offset;
    return is_same && own.offset != DIM_NONE;
}

uint32_t flat_coordinates(Arena *arena, const Kernel *kernel) {
    const bool *live = kernel_live_scalars(arena, kernel);
    uint32_t axes = 0;
    DimId offset;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (!live[id]) continue;
        bool is_placed = s->kind == SCALAR_LOAD || s->kind == SCALAR_INDEX;
        if (is_placed && !flat_is_in_order(kernel, s->index, &offset))
            axes |= index_axes(scalartab_indices(kernel->scalars), s->index);
        axes |= guard_axes(kernel->scalars, s->guard);
    }
    return axes;
}

DimId flat_room(const Kernel *kernel, uint32_t lanes) {
    DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    DimId n = kernel_n_rows(kernel);
    if (flat_is_whole(kernel, lanes)) return n;
    return dim_add(dims, n, dim_const(dims, (int64_t)lanes * (lanes - 1)));
}

bool flat_is_whole(const Kernel *kernel, uint32_t lanes) {
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    return dim_multiple(dims, kernel_n_rows(kernel)) % lanes == 0;
}
