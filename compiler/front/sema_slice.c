/* Slices and split. Bounds must be provable for every value of the dims: an access that could fall
 * outside is an error here, never a clamp. */
#include "front/sema_state.h"

#include <string.h>

/* One slice under construction: the argument's axes with begin, extent and step, and which are
 * dropped because an integer indexed them. */
typedef struct Slicing {
    NodeId arg;
    Shape from, to;
    Attrs attrs;
    uint32_t dropped; /* bit set of axes */
} Slicing;

static void keep_axis(Sema *sema, Slicing *s, uint32_t axis) {
    s->to.dims[axis] = s->from.dims[axis];
    s->attrs.begin[axis] = dim_const(sema->dims, 0);
    s->attrs.step[axis] = 1;
}

static Slicing slicing_new(Sema *sema, NodeId arg) {
    Slicing s = {.arg = arg, .from = graph_node(sema->graph, arg)->shape};
    s.to.rank = s.from.rank;
    for (uint32_t k = 0; k < s.from.rank; k++) keep_axis(sema, &s, k);
    return s;
}

/* The slice node, unless it takes everything, then a reshape without the dropped axes. */
static Value slicing_finish(Sema *sema, Span span, Slicing *s) {
    Value value = value_tensor(s->arg, span);
    bool is_whole = true;
    for (uint32_t k = 0; k < s->to.rank; k++) {
        if (dim_equals_const(sema->dims, s->to.dims[k], 1)) s->attrs.step[k] = 1;
        is_whole = is_whole && s->attrs.step[k] == 1 && s->to.dims[k] == s->from.dims[k];
    }
    if (!is_whole) value = sema_add_unary(sema, OP_SLICE, span, s->arg, &s->to, &s->attrs);
    if (!s->dropped || value.kind != VALUE_TENSOR) return value;
    Shape rest = {0};
    for (uint32_t k = 0; k < s->to.rank; k++)
        if (!(s->dropped >> k & 1)) rest.dims[rest.rank++] = s->to.dims[k];
    return sema_reshape_to(sema, span, value.node, &rest);
}

/* Where dims were declared and what they range over; `used` is a bit set of symbols. */
static void note_ranges(Sema *sema, uint64_t used) {
    for (uint32_t i = 0; i < dim_n_symbols(sema->dims); i++) {
        if (!(used >> i & 1)) continue;
        const DimSymbol *info = dim_symbol_info(sema->dims, i);
        const Binding *declared = scope_find(&sema->dim_scope, info->name);
        diag_note(sema->diags, sema->file->source, declared ? declared->span : (Span){0},
                  "`%s` ranges over %lld..%lld", info->name, (long long)info->lo,
                  (long long)info->hi);
    }
}

/* a <= b is required: says that it does not hold or is not known, and what would make it known. */
static bool require_le(Sema *sema, Span span, NodeId arg, const char *what, DimId a, DimId b) {
    DimTab *dims = sema->dims;
    if (dim_prove_le(dims, a, b)) return true;
    const char *a_text = dim_str(dims, sema->arena, a), *b_text = dim_str(dims, sema->arena, b);
    bool never = dim_lo(dims, a) > dim_hi(dims, b);
    if (never)
        sema_error(sema, DIAG_SLICE_BOUNDS, span, "%s out of range: %s is more than %s", what,
                   a_text, b_text);
    else
        sema_error(sema, DIAG_SLICE_BOUNDS, span,
                   "%s may be out of range: %s <= %s is not known to hold for all dims", what,
                   a_text, b_text);
    sema_note_tensor(sema, arg);
    if (never) return false;
    int64_t value;
    uint32_t symbol;
    note_ranges(sema, dim_symbols_used(dims, a) | dim_symbols_used(dims, b));
    if (dim_is_const(dims, a, &value) && dim_is_symbol(dims, b, &symbol) &&
        value <= dim_hi(dims, b))
        diag_help(sema->diags, "Declare `dim %s in %lld..%lld`.", b_text, (long long)value,
                  (long long)dim_hi(dims, b));
    return false;
}

static bool require_nonnegative(Sema *sema, Span span, NodeId arg, const char *what, DimId a) {
    if (dim_prove_le(sema->dims, dim_const(sema->dims, 0), a)) return true;
    const char *text = dim_str(sema->dims, sema->arena, a);
    int64_t value;
    if (dim_is_const(sema->dims, a, &value))
        sema_error(sema, DIAG_SLICE_BOUNDS, span, "%s out of range: it lies at %s", what, text);
    else
        sema_error(sema, DIAG_SLICE_BOUNDS, span,
                   "%s may be out of range: %s can be as low as %lld", what, text,
                   (long long)dim_lo(sema->dims, a));
    sema_note_tensor(sema, arg);
    note_ranges(sema, dim_symbols_used(sema->dims, a));
    return false;
}

/* A bound in a subscript: counted from the end when always negative. */
static bool eval_bound(Sema *sema, const Ast *ast, DimId extent, DimId fallback, DimId *bound) {
    *bound = fallback;
    if (!ast) return true;
    Value value = sema_eval(sema, ast);
    if (value.kind == VALUE_POISON) return false;
    if (value.kind != VALUE_INT) {
        sema_error(sema, DIAG_BAD_ARGUMENT, ast->span,
                   "a subscript must be an integer or a dim expression, not %s",
                   value_describe(sema, &value));
        if (value.kind == VALUE_TENSOR)
            diag_help(sema->diags, "To pick rows by a tensor write gather(x, indices, axis=0).");
        return false;
    }
    *bound = value.dim;
    if (dim_hi(sema->dims, value.dim) < 0) *bound = dim_add(sema->dims, extent, value.dim);
    return *bound != DIM_NONE ||
           (sema_error(sema, DIAG_DIM_OVERFLOW, ast->span, "subscript can pass 2^62"), false);
}

static bool eval_step(Sema *sema, const Ast *ast, int64_t *step) {
    *step = 1;
    if (!ast) return true;
    Value value = sema_eval(sema, ast);
    if (value.kind == VALUE_POISON) return false;
    if (value_const_int(sema, &value, step) && *step > 0) return true;
    sema_error(sema, DIAG_BAD_ARGUMENT, ast->span, "a step must be a positive integer, not %s",
               value_describe(sema, &value));
    return false;
}

static bool slice_index(Sema *sema, Slicing *s, uint32_t axis, const Ast *ast) {
    DimId extent = s->from.dims[axis], one = dim_const(sema->dims, 1), at, zero;
    zero = dim_const(sema->dims, 0);
    if (!eval_bound(sema, ast, extent, zero, &at)) return false;
    if (!require_nonnegative(sema, ast->span, s->arg, "index", at) ||
        !require_le(sema, ast->span, s->arg, "index", at, dim_sub(sema->dims, extent, one)))
        return false;
    s->attrs.begin[axis] = at;
    s->to.dims[axis] = one;
    s->dropped |= 1u << axis;
    return true;
}

static bool slice_range(Sema *sema, Slicing *s, uint32_t axis, const Ast *ast) {
    DimId extent = s->from.dims[axis], begin, end, zero = dim_const(sema->dims, 0);
    int64_t step;
    if (!eval_bound(sema, ast->items[0], extent, zero, &begin) ||
        !eval_bound(sema, ast->items[1], extent, extent, &end) ||
        !eval_step(sema, ast->items[2], &step))
        return false;
    Span begin_span = ast->items[0] ? ast->items[0]->span : ast->span;
    Span end_span = ast->items[1] ? ast->items[1]->span : ast->span;
    if (!require_nonnegative(sema, begin_span, s->arg, "begin of the slice", begin) ||
        !require_le(sema, begin_span, s->arg, "begin of the slice", begin, end) ||
        !require_le(sema, end_span, s->arg, "end of the slice", end, extent))
        return false;
    s->attrs.begin[axis] = begin;
    s->attrs.step[axis] = step;
    DimId length = dim_sub(sema->dims, end, begin);
    bool is_exact = length && dim_multiple(sema->dims, length) % step == 0;
    s->to.dims[axis] = is_exact ? dim_div(sema->dims, length, dim_const(sema->dims, step))
                                : dim_ceil_div(sema->dims, length, step);
    return s->to.dims[axis] != DIM_NONE ||
           (sema_error(sema, DIAG_DIM_OVERFLOW, ast->span, "slice can pass 2^62"), false);
}

/* How many axes a `...` stands for; false when the subscripts do not fit the rank. */
static bool count_ellipsis(Sema *sema, const Ast *ast, uint32_t rank, uint32_t *n_skipped) {
    uint32_t n = 0, n_ellipses = 0;
    for (uint32_t i = 1; i < ast->n_items; i++) {
        if (ast->items[i]->kind == AST_ELLIPSIS)
            n_ellipses++;
        else
            n++;
    }
    if (n_ellipses <= 1 && n <= rank) {
        *n_skipped = rank - n;
        return true;
    }
    if (n_ellipses > 1)
        sema_error(sema, DIAG_BAD_ARGUMENT, ast->span, "more than one `...` in a subscript");
    else
        sema_error(sema, DIAG_BAD_AXIS, ast->span, "%u subscripts for a tensor of rank %u", n,
                   rank);
    return false;
}

Value sema_subscript(Sema *sema, const Ast *ast, const Value *base) {
    Slicing s = slicing_new(sema, base->node);
    uint32_t n_skipped, axis = 0;
    if (!count_ellipsis(sema, ast, s.from.rank, &n_skipped)) return value_poison();
    for (uint32_t i = 1; i < ast->n_items; i++) {
        const Ast *item = ast->items[i];
        if (item->kind == AST_ELLIPSIS) {
            axis += n_skipped;
            continue;
        }
        bool ok = item->kind == AST_RANGE ? slice_range(sema, &s, axis, item)
                                          : slice_index(sema, &s, axis, item);
        if (!ok) return value_poison();
        axis++;
    }
    return slicing_finish(sema, ast->span, &s);
}

static Value sema_slice_axis(Sema *sema, Span span, NodeId arg, uint32_t axis, DimId begin,
                             DimId extent) {
    Slicing s = slicing_new(sema, arg);
    s.attrs.begin[axis] = begin;
    s.to.dims[axis] = extent;
    return slicing_finish(sema, span, &s);
}

/* slice(x, begin=[..], shape=[..], step=[..]): the form that dumps use. */

/* The last element taken lies inside, and nothing begins before it. */
static bool check_slice_axis(Sema *sema, const Call *call, const Slicing *s, uint32_t axis) {
    DimTab *dims = sema->dims;
    DimId one = dim_const(dims, 1), begin = s->attrs.begin[axis], extent = s->to.dims[axis];
    Span begin_span = call->args[1].span, extent_span = call->args[2].span;
    if (!require_nonnegative(sema, begin_span, s->arg, "begin of the slice", begin) ||
        !require_nonnegative(sema, extent_span, s->arg, "extent of the slice", extent))
        return false;
    if (dim_equals_const(dims, extent, 0)) return true;
    DimId last = dim_mul_const(dims, dim_sub(dims, extent, one), s->attrs.step[axis]);
    DimId end = dim_add(dims, dim_add(dims, begin, last), one);
    if (!end) return sema_error(sema, DIAG_DIM_OVERFLOW, call->span, "slice can pass 2^62"), false;
    return require_le(sema, extent_span, s->arg, "end of the slice", end, s->from.dims[axis]);
}

Value call_slice(Sema *sema, const Call *call) {
    NodeId arg;
    DimId steps[MAX_RANK];
    if (!sema_want_tensor(sema, &call->args[0], "x", &arg)) return value_poison();
    Slicing s = slicing_new(sema, arg);
    if (!sema_want_per_axis(sema, call, 1, "begin", s.from.rank, s.attrs.begin) ||
        !sema_want_per_axis(sema, call, 2, "shape", s.from.rank, s.to.dims))
        return value_poison();
    bool has_steps = call->args[3].kind != VALUE_ABSENT;
    if (has_steps && !sema_want_per_axis(sema, call, 3, "step", s.from.rank, steps))
        return value_poison();
    for (uint32_t k = 0; k < s.from.rank; k++) {
        if (has_steps &&
            (!dim_is_const(sema->dims, steps[k], &s.attrs.step[k]) || s.attrs.step[k] < 1))
            return sema_error(sema, DIAG_BAD_ARGUMENT, call->args[3].span,
                              "a step must be a positive integer");
        if (!check_slice_axis(sema, call, &s, k)) return value_poison();
    }
    return slicing_finish(sema, call->span, &s);
}

/* split(x, parts, axis=0): `parts` a count of equal parts or a list of extents. */

static bool equal_parts(Sema *sema, const Call *call, DimId extent, uint32_t *n, DimId *sizes) {
    int64_t parts;
    const Value *value = &call->args[1];
    if (!value_const_int(sema, value, &parts) || parts < 1 || parts > MAX_CONCAT_ARGS) {
        sema_error(sema, DIAG_BAD_ARGUMENT, value->span,
                   "`parts` must be a list of extents or a count from 1 to %d, not %s",
                   MAX_CONCAT_ARGS, value_describe(sema, value));
        return false;
    }
    DimId count = dim_const(sema->dims, parts), size = dim_div(sema->dims, extent, count);
    if (!size || !dim_prove_equal(sema->dims, dim_mul(sema->dims, size, count), extent)) {
        sema_error(sema, DIAG_SHAPE_MISMATCH, call->span,
                   "extent %s does not divide into %lld equal parts",
                   dim_str(sema->dims, sema->arena, extent), (long long)parts);
        return false;
    }
    *n = (uint32_t)parts;
    for (uint32_t i = 0; i < *n; i++) sizes[i] = size;
    return true;
}

static bool listed_parts(Sema *sema, const Call *call, DimId extent, uint32_t *n, DimId *sizes) {
    const Value *list = &call->args[1];
    DimId total = dim_const(sema->dims, 0);
    if (list->n_items == 0 || list->n_items > MAX_CONCAT_ARGS) {
        sema_error(sema, DIAG_BAD_ARGUMENT, list->span, "`parts` lists 1 to %d extents, not %u",
                   MAX_CONCAT_ARGS, list->n_items);
        return false;
    }
    for (uint32_t i = 0; i < list->n_items; i++) {
        const Value *item = &list->items[i];
        if (item->kind != VALUE_INT || dim_lo(sema->dims, item->dim) < 0) {
            sema_error(sema, DIAG_BAD_ARGUMENT, item->span,
                       "an extent of `parts` must be a nonnegative integer, not %s",
                       value_describe(sema, item));
            return false;
        }
        sizes[i] = item->dim;
        total = dim_add(sema->dims, total, item->dim);
    }
    *n = list->n_items;
    if (total && dim_prove_equal(sema->dims, total, extent)) return true;
    sema_error(sema, DIAG_SHAPE_MISMATCH, list->span, "parts add up to %s, but the extent is %s",
               dim_str(sema->dims, sema->arena, total), dim_str(sema->dims, sema->arena, extent));
    return false;
}

Value call_split(Sema *sema, const Call *call) {
    NodeId arg;
    uint32_t axis = 0, n = 0;
    if (!sema_want_tensor(sema, &call->args[0], "x", &arg)) return value_poison();
    const Shape shape = graph_node(sema->graph, arg)->shape;
    if (shape.rank == 0)
        return sema_error(sema, DIAG_BAD_AXIS, call->args[0].span, "a scalar has no axis to split");
    if (call->args[2].kind != VALUE_ABSENT &&
        !sema_want_axis(sema, &call->args[2], "axis", shape.rank, &axis))
        return value_poison();
    DimId *sizes = arena_array(sema->arena, DimId, MAX_CONCAT_ARGS);
    DimId begin = dim_const(sema->dims, 0);
    bool ok = call->args[1].kind == VALUE_LIST
                  ? listed_parts(sema, call, shape.dims[axis], &n, sizes)
                  : equal_parts(sema, call, shape.dims[axis], &n, sizes);
    if (!ok) return value_poison();
    Value *items = arena_array(sema->arena, Value, n);
    for (uint32_t i = 0; i < n; i++) {
        items[i] = sema_slice_axis(sema, call->span, arg, axis, begin, sizes[i]);
        if (items[i].kind == VALUE_POISON) return items[i];
        begin = dim_add(sema->dims, begin, sizes[i]);
    }
    return (Value){.kind = VALUE_LIST, .n_items = n, .items = items, .span = call->span};
}
