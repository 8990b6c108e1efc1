/* Copying scalar programs. See rebuild.h. */
#include "plan/rebuild.h"

static IndexId copy_index(Rebuild *r, IndexId id);

static IndexId rebuild_atom(Rebuild *r, IndexAtom atom) {
    IndexTab *to = scalartab_indices(r->to);
    ScalarId value;
    switch (atom.kind) {
    case ATOM_AXIS:
        return r->axes[atom.axis];
    case ATOM_DIV:
        return index_div(to, copy_index(r, atom.operand), atom.divisor);
    case ATOM_MOD:
        return index_mod(to, copy_index(r, atom.operand), atom.divisor);
    case ATOM_VALUE:
        break;
    }
    value = rebuild_scalar(r, atom.value);
    return scalar_as_index(r->to, value, atom.divisor);
}

static IndexId copy_index(Rebuild *r, IndexId id) {
    const IndexTab *from = scalartab_indices(r->from);
    IndexTab *to = scalartab_indices(r->to);
    IndexExpr expr = index_expr(from, id);
    IndexId sum = index_dim(to, expr.offset);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexId atom = rebuild_atom(r, index_atom(from, expr.terms[i].atom));
        sum = index_add(to, sum, index_scale(to, atom, expr.terms[i].coefficient));
    }
    return sum;
}

static GuardId and_guard(Rebuild *r, GuardId id, GuardId outer) {
    for (; id; id = guard_get(r->from, id).next) {
        Guard guard = guard_get(r->from, id);
        outer = guard_and(r->to, outer, copy_index(r, guard.index), guard.lo, guard.hi);
    }
    return outer;
}

static GuardId copy_guard(Rebuild *r, GuardId id) {
    return and_guard(r, id, GUARD_NONE);
}

static ScalarId copy_scalar(Rebuild *r, const Scalar *s) {
    ScalarId args[3] = {SCALAR_NONE, SCALAR_NONE, SCALAR_NONE};
    for (int i = 0; i < 3 && s->args[i]; i++) args[i] = rebuild_scalar(r, s->args[i]);
    switch (s->kind) {
    case SCALAR_CONST:
        return scalar_const_like(r->to, s);
    case SCALAR_LOAD:
        return scalar_load(r->to, s->dtype, s->buffer == r->buffer ? r->instead : s->buffer,
                           copy_index(r, s->index), and_guard(r, s->guard, r->guard));
    case SCALAR_INDEX:
        return scalar_index(r->to, copy_index(r, s->index));
    case SCALAR_INSIDE:
        return scalar_inside(r->to, copy_guard(r, s->guard));
    case SCALAR_PRIM:
        return scalar_prim(r->to, s->prim, args[0], args[1], args[2]);
    case SCALAR_CVT:
        return scalar_cvt(r->to, args[0], s->dtype);
    case SCALAR_BITCAST:
        return scalar_bitcast(r->to, args[0], s->dtype);
    case SCALAR_STAGE:
        if (r->results && r->results[s->slot]) return r->results[s->slot];
        break;
    case SCALAR_EXTREME:
    case SCALAR_GIVEN:
        break;
    }
    ice(r->arena, "a scalar of a reduction is copied to another kernel");
}

ScalarId rebuild_scalar(Rebuild *r, ScalarId id) {
    if (!r->copies) r->copies = arena_array(r->arena, ScalarId, scalar_count(r->from) + (size_t)1);
    if (!r->copies[id]) {
        Scalar s = *scalar_get(r->from, id);
        r->copies[id] = copy_scalar(r, &s);
    }
    return r->copies[id];
}

Store rebuild_store(Rebuild *r, Store store) {
    store.address = copy_index(r, store.address);
    store.value = rebuild_scalar(r, store.value);
    store.guard = copy_guard(r, store.guard);
    return store;
}

Trace rebuild_trace(Rebuild *r, Trace trace, uint32_t rank) {
    IndexId *coords = arena_array(r->arena, IndexId, rank);
    for (uint32_t k = 0; k < rank; k++) coords[k] = copy_index(r, trace.coords[k]);
    trace.coords = coords;
    trace.value = rebuild_scalar(r, trace.value);
    trace.guard = copy_guard(r, trace.guard);
    return trace;
}

const uint32_t *rebuild_traces(Rebuild *rebuild, const Graph *graph, const Kernel *whole,
                               bool are_operands, Kernel *to) {
    Arena *arena = rebuild->arena;
    const bool *is_operand = kernel_reduced_scalars(arena, whole);
    uint32_t *copy_of = arena_array(arena, uint32_t, whole->traces.n + (size_t)1);
    memset(&to->traces, 0, sizeof to->traces);
    for (uint32_t i = 0; i < whole->traces.n; i++) {
        const Trace *from = &whole->traces.data[i];
        if (is_operand[from->value] != are_operands) continue;
        Trace copy = rebuild_trace(rebuild, *from, graph_node(graph, from->node)->shape.rank);
        memset(&copy.operands, 0, sizeof copy.operands);
        for (uint32_t k = 0; k < from->operands.n; k++)
            if (copy_of[from->operands.data[k]])
                vec_push(arena, &copy.operands, copy_of[from->operands.data[k]] - 1);
        vec_push(arena, &to->traces, copy);
        copy_of[i] = to->traces.n;
    }
    return copy_of;
}
