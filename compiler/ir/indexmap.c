/* Index maps of the view ops. */
#include "ir/indexmap.h"

#include <string.h>

IndexId indexmap_address(IndexTab *tab, const Shape *shape, const IndexId *coords) {
    return index_address(tab, shape->rank, coords, shape->dims);
}

void indexmap_broadcast(IndexTab *tab, const Shape *shape, const IndexId *coords,
                        const Shape *arg_shape, IndexId *arg_coords) {
    DimTab *dims = indextab_dims(tab);
    uint32_t skip = shape->rank - arg_shape->rank;
    for (uint32_t k = 0; k < arg_shape->rank; k++)
        arg_coords[k] = dim_equals_const(dims, arg_shape->dims[k], 1)
                            ? index_dim(tab, dim_const(dims, 0))
                            : coords[k + skip];
}

/* Turns coordinates of `from` axes [f0, f1) into those of `to` axes [t0, t1), which have the same
 * number of elements. */
static void resplit(IndexTab *tab, const Shape *from, uint32_t f0, uint32_t f1,
                    const IndexId *coords, const Shape *to, uint32_t t0, uint32_t t1,
                    IndexId *out) {
    DimTab *dims = indextab_dims(tab);
    Shape part = {.rank = f1 - f0};
    memcpy(part.dims, from->dims + f0, part.rank * sizeof(DimId));
    IndexId linear = indexmap_address(tab, &part, coords + f0);
    for (uint32_t k = t1; k-- > t0;) {
        if (dim_equals_const(dims, to->dims[k], 1)) {
            out[k] = index_dim(tab, dim_const(dims, 0));
            continue;
        }
        bool is_first = true;
        for (uint32_t j = t0; j < k; j++)
            is_first = is_first && dim_equals_const(dims, to->dims[j], 1);
        out[k] = is_first ? linear : index_mod(tab, linear, to->dims[k]);
        if (!is_first) linear = index_div(tab, linear, to->dims[k]);
    }
}

/* Row-major reshape, group by group. A group is the shortest sequence of axes on both sides with
 * equal products, so that symbolic axes that the reshape does not touch stay unchanged. */
static void reshape_coords(IndexTab *tab, const Shape *from, const IndexId *coords, const Shape *to,
                           IndexId *out) {
    DimTab *dims = indextab_dims(tab);
    uint32_t f = 0, t = 0;
    while (f < from->rank || t < to->rank) {
        uint32_t f0 = f, t0 = t;
        DimId product_f = f < from->rank ? from->dims[f++] : dim_const(dims, 1);
        DimId product_t = t < to->rank ? to->dims[t++] : dim_const(dims, 1);
        while (product_f != product_t && (f < from->rank || t < to->rank)) {
            bool extend_f =
                f < from->rank && (t == to->rank || dim_exact_div(dims, product_t, product_f) ||
                                   !dim_exact_div(dims, product_f, product_t));
            if (extend_f)
                product_f = dim_mul(dims, product_f, from->dims[f++]);
            else
                product_t = dim_mul(dims, product_t, to->dims[t++]);
        }
        resplit(tab, from, f0, f, coords, to, t0, t, out);
    }
}

static void windows_coords(IndexTab *tab, const Node *view, uint32_t rank, const IndexId *coords,
                           IndexId *arg_coords) {
    DimTab *dims = indextab_dims(tab);
    for (uint32_t k = 0; k < rank; k++) {
        arg_coords[k] = coords[windows_axis(view->attrs.axes, k)];
        if (!(view->attrs.axes >> k & 1)) continue;
        IndexId tap = coords[windows_tap_axis(view->attrs.axes, k)];
        tap = index_scale(tab, tap, dim_const(dims, view->attrs.per_axis->dilation[k]));
        arg_coords[k] =
            index_scale(tab, arg_coords[k], dim_const(dims, view->attrs.per_axis->step[k]));
        arg_coords[k] = index_add(tab, arg_coords[k], tap);
    }
}

bool indexmap_can_pull(OpId op) {
    return op_info(op)->cls == CLASS_VIEW && op != OP_PAD && op != OP_GATHER;
}

void indexmap_pull(IndexTab *tab, const Graph *graph, const Node *view, const IndexId *coords,
                   IndexId *arg_coords) {
    const Shape *arg_shape = &graph_node(graph, view->args[0])->shape;
    if (view->op == OP_TRANSPOSE) {
        for (uint32_t k = 0; k < view->shape.rank; k++)
            arg_coords[view->attrs.per_axis->perm[k]] = coords[k];
    } else if (view->op == OP_RESHAPE) {
        reshape_coords(tab, &view->shape, coords, arg_shape, arg_coords);
    } else if (view->op == OP_EXPAND) {
        indexmap_broadcast(tab, &view->shape, coords, arg_shape, arg_coords);
    } else if (view->op == OP_WINDOWS) {
        windows_coords(tab, view, arg_shape->rank, coords, arg_coords);
    } else { /* OP_SLICE */
        for (uint32_t k = 0; k < view->shape.rank; k++) {
            DimId step = dim_const(indextab_dims(tab), view->attrs.per_axis->step[k]);
            arg_coords[k] = index_add_dim(tab, index_scale(tab, coords[k], step),
                                          view->attrs.per_axis->begin[k]);
        }
    }
}

bool indexmap_keeps_order(OpId op) {
    return op == OP_RESHAPE;
}

bool indexmap_is_bijective(OpId op) {
    return op == OP_TRANSPOSE || indexmap_keeps_order(op);
}

bool indexmap_can_push(OpId op) {
    return indexmap_is_bijective(op) || op == OP_SLICE;
}

void indexmap_push(IndexTab *tab, const Graph *graph, NodeId node, IndexId *coords) {
    const Node *view = graph_node(graph, node);
    IndexId pushed[MAX_RANK];
    if (view->op == OP_TRANSPOSE)
        for (uint32_t k = 0; k < view->shape.rank; k++)
            pushed[k] = coords[view->attrs.per_axis->perm[k]];
    else
        reshape_coords(tab, &graph_node(graph, view->args[0])->shape, coords, &view->shape, pushed);
    memcpy(coords, pushed, view->shape.rank * sizeof *coords);
}

static uint32_t last_value(const IndexTab *tab, IndexId id, const uint32_t *of_scalar) {
    uint32_t last = 0;
    IndexExpr expr = index_expr(tab, id);
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        IndexAtom atom = index_atom(tab, expr.terms[i].atom);
        uint32_t own = 0;
        if (atom.kind == ATOM_VALUE) own = of_scalar[atom.value];
        if (atom.kind == ATOM_DIV || atom.kind == ATOM_MOD)
            own = last_value(tab, atom.operand, of_scalar);
        if (own > last) last = own;
    }
    return last;
}

uint32_t indexmap_last_value(const IndexTab *tab, const ScalarTab *scalars, const Scalar *s,
                             const uint32_t *of_scalar) {
    uint32_t last = s->index ? last_value(tab, s->index, of_scalar) : 0;
    for (GuardId id = s->guard; id; id = guard_get(scalars, id).next) {
        uint32_t own = last_value(tab, guard_get(scalars, id).index, of_scalar);
        if (own > last) last = own;
    }
    return last;
}
