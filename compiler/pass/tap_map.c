/* Values that a kernel cannot store where it computes them, the operands of a contraction: a map of
 * its own computes them by a copy of the kernel's scalar program. It reads what the kernel reads,
 * just before it, so that nothing else moves. See tap.h. */
#include "pass/tap_map.h"

#include <string.h>

typedef struct Copier {
    const ScalarTab *from;
    ScalarTab *to;
    IndexTab *indices;      /* of `to` */
    IndexId axes[MAX_AXES]; /* by axis of the kernel */
    ScalarId *map;          /* by scalar of the kernel, SCALAR_NONE: not yet */
} Copier;

static ScalarId copy_scalar(Copier *c, ScalarId id);

static IndexId copy_atom(Copier *c, IndexAtom atom);

static IndexId copy_index(Copier *c, IndexId id) {
    IndexExpr expr = index_expr(scalartab_indices(c->from), id);
    IndexId sum = index_dim(c->indices, expr.offset);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(scalartab_indices(c->from), expr.terms[i].atom);
        IndexId term = index_scale(c->indices, copy_atom(c, atom), expr.terms[i].coefficient);
        sum = index_add(c->indices, sum, term);
    }
    return sum;
}

static IndexId copy_atom(Copier *c, IndexAtom atom) {
    ScalarId value;
    switch (atom.kind) {
    case ATOM_AXIS:
        break;
    case ATOM_DIV:
        return index_div(c->indices, copy_index(c, atom.operand), atom.divisor);
    case ATOM_MOD:
        return index_mod(c->indices, copy_index(c, atom.operand), atom.divisor);
    case ATOM_VALUE:
        value = copy_scalar(c, atom.value);
        return index_value(c->indices, value, atom.divisor, scalar_get(c->to, value)->axes);
    }
    return c->axes[atom.axis];
}

static GuardId copy_guard(Copier *c, GuardId id) {
    if (!id) return GUARD_NONE;
    Guard guard = guard_get(c->from, id);
    GuardId outer = copy_guard(c, guard.next);
    return guard_and(c->to, outer, copy_index(c, guard.index), guard.lo, guard.hi);
}

static ScalarId copy_kind(Copier *c, const Scalar *s) {
    ScalarId args[3];
    for (int i = 0; i < 3; i++) args[i] = copy_scalar(c, s->args[i]);
    switch (s->kind) {
    case SCALAR_CONST:
        return scalar_const(c->to, s->dtype, s->number);
    case SCALAR_LOAD:
        return scalar_load(c->to, s->dtype, s->buffer, copy_index(c, s->index),
                           copy_guard(c, s->guard));
    case SCALAR_INDEX:
        return scalar_index(c->to, copy_index(c, s->index));
    case SCALAR_INSIDE:
        return scalar_inside(c->to, copy_guard(c, s->guard));
    case SCALAR_PRIM:
        return scalar_prim(c->to, s->prim, args[0], args[1], args[2]);
    case SCALAR_CVT:
        return scalar_cvt(c->to, args[0], s->dtype);
    case SCALAR_STAGE:
    case SCALAR_EXTREME:
        break;
    }
    return SCALAR_NONE; /* no operand hangs on a result */
}

static ScalarId copy_scalar(Copier *c, ScalarId id) {
    if (!id || c->map[id]) return c->map[id];
    c->map[id] = copy_kind(c, scalar_get(c->from, id));
    return c->map[id];
}

static void insert(Arena *arena, Plan *plan, uint32_t at, Kernel kernel) {
    vec_push(arena, &plan->kernels, kernel);
    Kernel *kernels = plan->kernels.data;
    memmove(kernels + at + 1, kernels + at, (plan->kernels.n - 1 - at) * sizeof *kernels);
    kernels[at] = kernel;
}

void tap_map(Arena *arena, Plan *plan, const Kernel *kernel, const Tap *tap,
             const uint32_t *buffers) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    Copier c = {.from = kernel->scalars, .indices = indextab_new(arena, indextab_dims(tab))};
    c.to = scalartab_new(arena, c.indices);
    c.map = arena_array(arena, ScalarId, scalar_count(c.from) + 1);
    Kernel map = {.name = str_format(arena, "%s_tap%u", kernel->name, tap->trace),
                  .span = kernel->span,
                  .form = FORM_MAP,
                  .n_parallel = tap->n_axes,
                  .first_reduced = tap->n_axes,
                  .segment_axis = NO_AXIS,
                  .scalars = c.to};

    IndexId at = index_dim(c.indices, dim_const(indextab_dims(tab), 0));
    for (uint32_t k = 0; k < tap->n_axes; k++) {
        DimId extent = index_axis_extent(tab, tap->axes[k]);
        uint32_t axis = index_new_axis(c.indices, extent);
        c.axes[tap->axes[k]] = index_axis(c.indices, axis);
        at = index_add(c.indices, index_scale(c.indices, at, extent), c.axes[tap->axes[k]]);
    }
    Stage stage = {.reduces = {.n = 0}};
    for (uint32_t i = 0; i < tap->scalars.n; i++)
        vec_push(arena, &stage.stores,
                 (Store){.buffer = buffers[i],
                         .address = at,
                         .value = copy_scalar(&c, tap->scalars.data[i]),
                         .node = kernel->traces.data[tap->trace].node});
    vec_push(arena, &map.stages, stage);
    kernel_note_interface(arena, &map);
    insert(arena, plan, tap->kernel, map);
}
