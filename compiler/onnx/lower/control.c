/* Graphs inside nodes: branches, loops and scans. Steps of a known number are written out one after
 * the other. Where the number is a dim, a loop of the language repeats one step at run time. */
#include "onnx/call/import_state.h"

enum { MAX_BODY_DEPTH = 32, MAX_STEPS = 4096 };

bool onnx_run_body(Call *c, const OnnxGraph *body, bool is_repeated, uint32_t n_given,
                   const Value *given, uint32_t n_made, Value **made) {
    Import *im = c->im;
    if (body->inputs.n != n_given || body->outputs.n < n_made)
        return onnx_fail(c, DIAG_WRONG_ARITY,
                         "its body has %u inputs and %u outputs, not %u and %u", body->inputs.n,
                         body->outputs.n, n_given, n_made);
    if (im->depth >= MAX_BODY_DEPTH)
        return onnx_fail(c, DIAG_RECURSION, "its bodies lie in each other too deep");
    Scope *scope = onnx_scope_new(im, c->scope, NULL);
    scope->call = c->scope->call;
    scope->function = c->scope->function;
    scope->is_repeated = c->scope->is_repeated || is_repeated;
    for (uint32_t i = 0; i < n_given; i++) {
        Value *inner = onnx_scope_add(im, scope, body->inputs.data[i].name);
        value_copy(inner, &given[i]);
    }
    im->depth++;
    bool good = onnx_add_initializers(im, scope, body) &&
                im->run(im, scope, body->nodes.data, body->nodes.n);
    im->depth--;
    c->has_failed = c->has_failed || !good;
    for (uint32_t i = 0; good && i < n_made; i++) {
        made[i] = onnx_scope_find(scope, body->outputs.data[i].name);
        if (!made[i])
            return onnx_fail(c, DIAG_MISSING_OUTPUT, "its body does not make `%s`",
                             body->outputs.data[i].name);
    }
    return good;
}

/* The value as output i. */
static void output_value(Call *c, uint32_t i, const Value *from) {
    if (!has_output(c, i)) return;
    Value *made = onnx_scope_add(c->im, c->scope, c->node->outputs.data[i]);
    value_copy(made, from);
}

static const OnnxGraph *body_of(Call *c, const char *name) {
    const OnnxAttr *attr = find_attr(c, name);
    if (attr && attr->graph) return attr->graph;
    onnx_fail(c, DIAG_BAD_ARGUMENT, "it has no graph `%s`", name);
    return NULL;
}

static Value **values_new(Call *c, uint32_t n) {
    return arena_array(c->im->arena, Value *, n + 1);
}

/* Branches. */

/* Both branches, and a choice of each output. */
static bool choose(Call *c, NodeId condition, Value *const *yes, Value *const *no) {
    if (condition == NODE_NONE) return false;
    condition = build_reshape(c->im->b, condition, (DimList){0, NULL});
    for (uint32_t i = 0; i < c->node->outputs.n; i++) {
        NodeId a = value_node(c, yes[i]), b = value_node(c, no[i]);
        if (a == NODE_NONE || b == NODE_NONE) return false;
        if (!shape_equal(shape_of(c, a), shape_of(c, b)))
            return onnx_fail(c, DIAG_SHAPE_MISMATCH, "its branches differ in shape%s",
                             onnx_constants_needed(c->im, condition));
        output(c, i, where(c, condition, a, b));
    }
    return true;
}

bool onnx_if(Call *c) {
    const OnnxGraph *then_branch = body_of(c, "then_branch"), *other = body_of(c, "else_branch");
    const Known *condition = input_known(c, 0);
    uint32_t n = c->node->outputs.n;
    Value **yes = values_new(c, n), **no = values_new(c, n);
    int64_t holds;
    if (!then_branch || !other) return false;
    if (!condition || condition->n != 1 || !known_int(c->im, condition, 0, &holds))
        return onnx_run_body(c, then_branch, false, 0, NULL, n, yes) &&
               onnx_run_body(c, other, false, 0, NULL, n, no) && choose(c, input(c, 0), yes, no);
    if (!onnx_run_body(c, holds ? then_branch : other, false, 0, NULL, n, yes)) return false;
    for (uint32_t i = 0; i < n; i++) output_value(c, i, yes[i]);
    return true;
}

/* Loops. */

typedef struct Collected {
    uint32_t n;
    NodeId *parts;
} Collected;

static bool collect(Call *c, Collected *all, Value *value, uint32_t n_most) {
    if (!all->parts) all->parts = arena_array(c->im->arena, NodeId, n_most + 1);
    all->parts[all->n] = value_node(c, value);
    return all->parts[all->n++] != NODE_NONE;
}

/* What was collected, as one tensor; `is_down`: the last comes first. */
static NodeId joined(Call *c, const Collected *all, uint32_t axis, bool is_down) {
    NodeId *order = arena_array(c->im->arena, NodeId, all->n + 1);
    for (uint32_t i = 0; i < all->n; i++) order[i] = all->parts[is_down ? all->n - 1 - i : i];
    if (all->n) return stacked(c, all->n, order, axis);
    onnx_fail(c, DIAG_NO_LOWERING, "it collects values in no step");
    return NODE_NONE;
}

static Known *known_scalar(Call *c, int64_t type, int64_t value) {
    Known *known = known_new(c->im, type, 0, NULL);
    known->ints[0] = number(c, value);
    return known;
}

/* Whether the value, that of a condition, holds; an error if it is not known. */
static bool holds(Call *c, Value *value, bool *is_true) {
    const Known *known = value_known(c->im, value);
    int64_t number_of = 1;
    if (!known || known->n != 1 || !known_int(c->im, known, 0, &number_of))
        return onnx_fail(c, DIAG_NO_LOWERING,
                         "whether it takes another step is not known while importing%s",
                         onnx_constants_needed(c->im, value->node));
    *is_true = number_of != 0;
    return true;
}

static bool take_input(Call *c, uint32_t i, Value *value) {
    if (!has_input(c, i)) return onnx_fail(c, DIAG_WRONG_ARITY, "input %u is left out", i + 1);
    *value = *input_value(c, i);
    return true;
}

/* Steps that are repeated at run time. Carried values are tensors then. */
typedef struct Repeated {
    Repeat loop;
    NodeId index, *carries;
    uint32_t n_carried;
} Repeated;

/* Puts carries in the place of the values that the first step receives. */
static bool carry_first(Call *c, Repeated *r, DimId count, Dtype dtype, uint32_t n, Value *values) {
    if (!repeat_begin(c, count, dtype, &r->loop, &r->index)) return false;
    r->carries = arena_array(c->im->arena, NodeId, n + 1);
    r->n_carried = n;
    for (uint32_t i = 0; i < n; i++) {
        r->carries[i] = build_loop_carry(c->im->b, value_node(c, &values[i]));
        values[i] = (Value){.name = "", .node = r->carries[i]};
        if (r->carries[i] == NODE_NONE) return false;
    }
    return true;
}

/* Ends the step, which made the next carried values, and values that are collected as element `at`
 * if the node has an output for them; makes the node's outputs. Result i is that of the loop for
 * output i, or UINT32_MAX. */
static bool finish_repeated(Call *c, Repeated *r, Value **made, uint32_t n_collected,
                            const NodeId *at, uint32_t *results) {
    Builder *b = c->im->b;
    for (uint32_t i = 0; i < r->n_carried; i++) {
        results[i] = i;
        build_repeat_carry(b, &r->loop, r->carries[i], value_node(c, made[i]));
    }
    for (uint32_t i = r->n_carried; i < r->n_carried + n_collected; i++) {
        results[i] = r->loop.carries.n;
        if (has_output(c, i))
            build_repeat_collect(b, &r->loop, at[i - r->n_carried], value_node(c, made[i]));
    }
    repeat_end(c, &r->loop, r->index);
    for (uint32_t i = 0; i < r->n_carried; i++)
        if (has_output(c, i) && !output(c, i, build_repeat_result(b, &r->loop, i))) return false;
    return true;
}

typedef struct LoopNode {
    const OnnxGraph *body;
    uint32_t n_carried, n_collected, n_made;
    Value *state, **made; /* step, condition, carried..; condition, carried.., collected.. */
} LoopNode;

static bool repeat_loop(Call *c, LoopNode *l, DimId count) {
    uint32_t *results = arena_array(c->im->arena, uint32_t, l->n_made + 1);
    NodeId *at = arena_array(c->im->arena, NodeId, l->n_collected + 1);
    bool goes_on;
    Repeated r;
    if (!carry_first(c, &r, count, DT_I64, l->n_carried, &l->state[2])) return false;
    l->state[0] = (Value){.name = "", .node = r.index};
    if (!onnx_run_body(c, l->body, false, 2 + l->n_carried, l->state, l->n_made, l->made) ||
        !holds(c, l->made[0], &goes_on))
        return false;
    if (!goes_on)
        return onnx_fail(c, DIAG_NO_LOWERING,
                         "it ends after a step, though its number of steps is a dim");
    for (uint32_t i = 0; i < l->n_collected; i++) at[i] = r.index;
    if (!finish_repeated(c, &r, l->made + 1, l->n_collected, at, results)) return false;
    for (uint32_t i = l->n_carried; i + 1 < l->n_made; i++)
        if (has_output(c, i) &&
            !output(c, i, build_repeat_collected(c->im->b, &r.loop, results[i])))
            return false;
    return true;
}

static bool write_loop(Call *c, LoopNode *l, int64_t n_steps) {
    Collected *all = arena_array(c->im->arena, Collected, l->n_collected + 1);
    uint32_t n = l->n_carried;
    bool goes_on = true;
    for (int64_t t = 0; t < n_steps; t++) {
        if (!holds(c, &l->state[1], &goes_on)) return false;
        if (!goes_on) break;
        if (t >= MAX_STEPS)
            return onnx_fail(c, DIAG_LIMIT, "it takes more than %d steps", (int)MAX_STEPS);
        l->state[0] =
            (Value){.name = "", .node = NODE_NONE, .known = known_scalar(c, ELEM_INT64, t)};
        if (!onnx_run_body(c, l->body, true, 2 + n, l->state, l->n_made, l->made)) return false;
        for (uint32_t i = 0; i < l->n_collected; i++)
            if (!collect(c, &all[i], l->made[1 + n + i], MAX_STEPS)) return false;
        for (uint32_t i = 0; i <= n; i++) l->state[1 + i] = *l->made[i];
    }
    for (uint32_t i = 0; i < n; i++) output_value(c, i, &l->state[2 + i]);
    for (uint32_t i = 0; i < l->n_collected; i++)
        if (has_output(c, n + i) && !output(c, n + i, joined(c, &all[i], 0, false))) return false;
    return true;
}

/* Body: (step, condition, carried..) -> (condition, carried.., collected..) */
bool onnx_loop(Call *c) {
    LoopNode l = {.body = body_of(c, "body")};
    const Known *count = input_known(c, 0);
    int64_t n_steps = MAX_STEPS + 1;
    bool goes_on = true;
    if (!l.body) return false;
    if (has_input(c, 0) && (!count || count->n != 1 || !count->ints)) return fail_unknown(c, 0);
    l.n_carried = c->node->inputs.n > 2 ? c->node->inputs.n - 2 : 0;
    l.n_made = l.body->outputs.n;
    if (l.n_made < 1 + l.n_carried)
        return onnx_fail(c, DIAG_WRONG_ARITY, "its body makes %u values, not %u at least", l.n_made,
                         1 + l.n_carried);
    l.n_collected = l.n_made - 1 - l.n_carried;
    l.state = arena_array(c->im->arena, Value, l.n_carried + 3);
    l.made = values_new(c, l.n_made);
    l.state[1] = (Value){.name = "", .node = NODE_NONE, .known = known_scalar(c, ELEM_BOOL, 1)};
    if (has_input(c, 1)) l.state[1] = *input_value(c, 1);
    for (uint32_t i = 0; i < l.n_carried; i++)
        if (!take_input(c, 2 + i, &l.state[2 + i])) return false;
    if (!count || known_int(c->im, count, 0, &n_steps)) return write_loop(c, &l, n_steps);
    if (!holds(c, &l.state[1], &goes_on)) return false;
    return goes_on ? repeat_loop(c, &l, count->ints[0]) : write_loop(c, &l, 0);
}

/* Scans. */

static int64_t entry(const VecInt *list, uint32_t i) {
    return list && i < list->n ? list->data[i] : 0;
}

typedef struct ScanInput {
    NodeId node;
    uint32_t axis;
    bool is_down;
} ScanInput;

typedef struct ScanNode {
    const OnnxGraph *body;
    uint32_t n_carried, n_scanned, n_collected, n_made;
    ScanInput *inputs;
    const VecInt *axes, *directions; /* of the collected outputs; NULL: 0 for each */
    DimId n_steps;
    Value *state, **made; /* carried.., elements..; carried.., collected.. */
} ScanNode;

static bool scan_inputs(Call *c, ScanNode *s) {
    DimTab *dims = c->im->b->dims;
    const VecInt *axes, *directions;
    attr_ints(c, "scan_input_axes", &axes);
    attr_ints(c, "scan_input_directions", &directions);
    for (uint32_t i = 0; i < s->n_scanned; i++) {
        ScanInput *in = &s->inputs[i];
        NodeId x = in->node = input(c, s->n_carried + i);
        if (x == NODE_NONE || !axis_of(c, entry(axes, i), shape_of(c, x)->rank, &in->axis))
            return false;
        in->is_down = entry(directions, i) != 0;
        DimId n_steps = shape_of(c, x)->dims[in->axis];
        if (i && n_steps != s->n_steps)
            return onnx_fail(c, DIAG_SHAPE_MISMATCH, "its inputs have %s and %s steps",
                             dim_str(dims, c->im->arena, s->n_steps),
                             dim_str(dims, c->im->arena, n_steps));
        s->n_steps = n_steps;
    }
    return true;
}

/* Whether collected output i has the last step first. */
static bool is_turned(const ScanNode *s, uint32_t i) {
    return entry(s->directions, i) != 0;
}

/* The axis of the steps of collected output i, a tensor of this rank. */
static bool collected_axis(Call *c, const ScanNode *s, uint32_t i, uint32_t rank, uint32_t *axis) {
    return axis_of(c, entry(s->axes, i), rank, axis);
}

static bool repeat_scan(Call *c, ScanNode *s) {
    Import *im = c->im;
    uint32_t *results = arena_array(im->arena, uint32_t, s->n_made + 1), axis;
    NodeId *at = arena_array(im->arena, NodeId, s->n_collected + 1);
    DimId last_step = dim_sub(im->b->dims, s->n_steps, number(c, 1));
    Repeated r;
    if (!carry_first(c, &r, s->n_steps, DT_I32, s->n_carried, s->state)) return false;
    NodeId down = op2(c, OP_SUB, number_node(c, last_step, DT_I32), r.index);
    for (uint32_t i = 0; i < s->n_scanned; i++) {
        const ScanInput *in = &s->inputs[i];
        NodeId element = element_at(c, in->node, in->axis, in->is_down ? down : r.index);
        s->state[s->n_carried + i] = (Value){.name = "", .node = element};
    }
    if (!onnx_run_body(c, s->body, false, s->n_carried + s->n_scanned, s->state, s->n_made,
                       s->made))
        return false;
    for (uint32_t i = 0; i < s->n_collected; i++) at[i] = is_turned(s, i) ? down : r.index;
    if (!finish_repeated(c, &r, s->made, s->n_collected, at, results)) return false;
    for (uint32_t i = 0; i < s->n_collected; i++) {
        uint32_t out = s->n_carried + i;
        if (!has_output(c, out)) continue;
        NodeId all = build_repeat_collected(im->b, &r.loop, results[out]);
        if (all == NODE_NONE || !collected_axis(c, s, i, shape_of(c, all)->rank, &axis) ||
            !output(c, out, move_axis(c, all, 0, axis)))
            return false;
    }
    return true;
}

static bool write_scan(Call *c, ScanNode *s, int64_t n_steps) {
    Collected *all = arena_array(c->im->arena, Collected, s->n_collected + 1);
    for (int64_t t = 0; t < n_steps; t++) {
        for (uint32_t i = 0; i < s->n_scanned; i++) {
            int64_t at = s->inputs[i].is_down ? n_steps - 1 - t : t;
            NodeId element = at_index(c, s->inputs[i].node, s->inputs[i].axis, at);
            s->state[s->n_carried + i] = (Value){.name = "", .node = element};
        }
        if (!onnx_run_body(c, s->body, true, s->n_carried + s->n_scanned, s->state, s->n_made,
                           s->made))
            return false;
        for (uint32_t i = 0; i < s->n_collected; i++)
            if (!collect(c, &all[i], s->made[s->n_carried + i], (uint32_t)n_steps)) return false;
        for (uint32_t i = 0; i < s->n_carried; i++) s->state[i] = *s->made[i];
    }
    for (uint32_t i = 0; i < s->n_carried; i++) output_value(c, i, &s->state[i]);
    for (uint32_t i = 0; i < s->n_collected; i++) {
        uint32_t axis = 0, out = s->n_carried + i;
        if (!has_output(c, out)) continue;
        if (n_steps && !collected_axis(c, s, i, shape_of(c, all[i].parts[0])->rank + 1, &axis))
            return false;
        if (!output(c, out, joined(c, &all[i], axis, is_turned(s, i)))) return false;
    }
    return true;
}

/* Body: (carried.., elements..) -> (carried.., collected..) */
bool onnx_scan(Call *c) {
    ScanNode s = {.body = body_of(c, "body")};
    int64_t n_scanned = attr_int(c, "num_scan_inputs", 0), n_steps = 0;
    if (!s.body) return false;
    uint32_t n = c->node->inputs.n;
    s.n_made = s.body->outputs.n;
    if (n_scanned < 1 || n_scanned > n || s.n_made < n - n_scanned)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "num_scan_inputs is %lld", (long long)n_scanned);
    s.n_scanned = (uint32_t)n_scanned;
    s.n_carried = n - s.n_scanned;
    s.n_collected = s.n_made - s.n_carried;
    s.inputs = arena_array(c->im->arena, ScanInput, (size_t)n_scanned + 1);
    s.state = arena_array(c->im->arena, Value, n + 1);
    s.made = values_new(c, s.n_made);
    attr_ints(c, "scan_output_axes", &s.axes);
    attr_ints(c, "scan_output_directions", &s.directions);
    if (!scan_inputs(c, &s)) return false;
    for (uint32_t i = 0; i < s.n_carried; i++)
        if (!take_input(c, i, &s.state[i])) return false;
    if (dim_is_const(c->im->b->dims, s.n_steps, &n_steps) && n_steps <= MAX_STEPS)
        return write_scan(c, &s, n_steps);
    return repeat_scan(c, &s);
}
