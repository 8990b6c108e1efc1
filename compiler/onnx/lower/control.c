/* Graphs inside nodes: branches, loops and scans, whose steps are known and are written out one
 * after the other. */
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

/* Body: (step, condition, carried..) -> (condition, carried.., collected..) */
bool onnx_loop(Call *c) {
    const OnnxGraph *body = body_of(c, "body");
    int64_t n_steps;
    bool goes_on = true;
    if (!body || !int_argument(c, 0, MAX_STEPS + 1, &n_steps)) return false;
    uint32_t n_carried = c->node->inputs.n > 2 ? c->node->inputs.n - 2 : 0;
    uint32_t n_made = body->outputs.n, n_collected = n_made - 1 - n_carried;
    if (n_made < 1 + n_carried)
        return onnx_fail(c, DIAG_WRONG_ARITY, "its body makes %u values, not %u at least", n_made,
                         1 + n_carried);
    Value *state = arena_array(c->im->arena, Value, n_carried + 3), **made = values_new(c, n_made);
    Collected *all = arena_array(c->im->arena, Collected, n_collected + 1);
    state[1] = (Value){.name = "", .node = NODE_NONE, .known = known_scalar(c, ELEM_BOOL, 1)};
    if (has_input(c, 1)) state[1] = *input_value(c, 1);
    for (uint32_t i = 0; i < n_carried; i++)
        if (!take_input(c, 2 + i, &state[2 + i])) return false;
    for (int64_t t = 0; t < n_steps; t++) {
        if (!holds(c, &state[1], &goes_on)) return false;
        if (!goes_on) break;
        if (t >= MAX_STEPS)
            return onnx_fail(c, DIAG_LIMIT, "it takes more than %d steps", (int)MAX_STEPS);
        state[0] = (Value){.name = "", .node = NODE_NONE, .known = known_scalar(c, ELEM_INT64, t)};
        if (!onnx_run_body(c, body, true, 2 + n_carried, state, n_made, made)) return false;
        for (uint32_t i = 0; i < n_collected; i++)
            if (!collect(c, &all[i], made[1 + n_carried + i], MAX_STEPS)) return false;
        for (uint32_t i = 0; i <= n_carried; i++) state[1 + i] = *made[i];
    }
    for (uint32_t i = 0; i < n_carried; i++) output_value(c, i, &state[2 + i]);
    for (uint32_t i = 0; i < n_collected; i++)
        if (has_output(c, n_carried + i) && !output(c, n_carried + i, joined(c, &all[i], 0, false)))
            return false;
    return true;
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

static bool scan_inputs(Call *c, uint32_t first, uint32_t n, ScanInput *inputs, int64_t *n_steps) {
    const VecInt *axes, *directions;
    attr_ints(c, "scan_input_axes", &axes);
    attr_ints(c, "scan_input_directions", &directions);
    for (uint32_t i = 0; i < n; i++) {
        NodeId x = inputs[i].node = input(c, first + i);
        if (x == NODE_NONE || !axis_of(c, entry(axes, i), shape_of(c, x)->rank, &inputs[i].axis))
            return false;
        inputs[i].is_down = entry(directions, i) != 0;
        if (!dim_is_const(c->im->b->dims, shape_of(c, x)->dims[inputs[i].axis], n_steps) ||
            *n_steps > MAX_STEPS)
            return onnx_fail(c, DIAG_NO_LOWERING, "it needs a constant number of steps, to %d",
                             (int)MAX_STEPS);
    }
    return true;
}

/* Body: (carried.., elements..) -> (carried.., collected..) */
bool onnx_scan(Call *c) {
    const OnnxGraph *body = body_of(c, "body");
    const VecInt *axes, *directions;
    int64_t n_scanned = attr_int(c, "num_scan_inputs", 0), n_steps = 0;
    if (!body) return false;
    uint32_t n = c->node->inputs.n, n_made = body->outputs.n;
    if (n_scanned < 1 || n_scanned > n || n_made < n - n_scanned)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "num_scan_inputs is %lld", (long long)n_scanned);
    uint32_t n_carried = n - (uint32_t)n_scanned, n_collected = n_made - n_carried;
    ScanInput *inputs = arena_array(c->im->arena, ScanInput, (size_t)n_scanned + 1);
    Value *state = arena_array(c->im->arena, Value, n + 1), **made = values_new(c, n_made);
    Collected *all = arena_array(c->im->arena, Collected, n_collected + 1);
    if (!scan_inputs(c, n_carried, (uint32_t)n_scanned, inputs, &n_steps)) return false;
    for (uint32_t i = 0; i < n_carried; i++)
        if (!take_input(c, i, &state[i])) return false;
    for (int64_t t = 0; t < n_steps; t++) {
        for (uint32_t i = 0; i < n_scanned; i++) {
            int64_t at = inputs[i].is_down ? n_steps - 1 - t : t;
            NodeId element = at_index(c, inputs[i].node, inputs[i].axis, at);
            state[n_carried + i] = (Value){.name = "", .node = element};
        }
        if (!onnx_run_body(c, body, true, n, state, n_made, made)) return false;
        for (uint32_t i = 0; i < n_collected; i++)
            if (!collect(c, &all[i], made[n_carried + i], (uint32_t)n_steps)) return false;
        for (uint32_t i = 0; i < n_carried; i++) state[i] = *made[i];
    }
    attr_ints(c, "scan_output_axes", &axes);
    attr_ints(c, "scan_output_directions", &directions);
    for (uint32_t i = 0; i < n_carried; i++) output_value(c, i, &state[i]);
    for (uint32_t i = 0; i < n_collected; i++) {
        uint32_t axis = 0;
        if (!has_output(c, n_carried + i)) continue;
        if (n_steps && !axis_of(c, entry(axes, i), shape_of(c, all[i].parts[0])->rank + 1, &axis))
            return false;
        if (!output(c, n_carried + i, joined(c, &all[i], axis, entry(directions, i) != 0)))
            return false;
    }
    return true;
}
