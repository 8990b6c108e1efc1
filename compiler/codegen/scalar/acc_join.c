/* Joins of scans by a function. A part of a row without elements has no value, since a function
 * need not have an identity. See acc.h. */
#include "codegen/scalar/acc.h"

#include <stdint.h>

static Acc *accs_new(const Lower *lower, const ScanJoin *join) {
    return arena_array(lower->k->arena, Acc, join->n);
}

Acc *acc_join_none(const Lower *lower, const ScanJoin *join, uint32_t lanes) {
    const Codegen *k = lower->k;
    Acc *none = accs_new(lower, join);
    for (uint32_t i = 0; i < join->n; i++)
        none[i] = (Acc){LLVMConstNull(k_value_type(k, join->types[i], lanes)), k_int(k->i1, 0)};
    return none;
}

Acc *acc_join_element(Point *point, const ScanJoin *join) {
    const Codegen *k = point->lower->k;
    Acc *element = accs_new(point->lower, join);
    for (uint32_t i = 0; i < join->n; i++)
        element[i] = (Acc){point_lanes(point, join->elements[i]), k_int(k->i1, 1)};
    return element;
}

/* The primitive on the values of the function's scalars so far. */
static Val prim_value(const Codegen *k, const ScalarTab *scalars, const Scalar *s,
                      const Val *values) {
    uint32_t arity = prim_info(s->prim)->arity, lanes = 1;
    Val args[3] = {NULL};
    for (uint32_t i = 0; i < arity; i++) {
        args[i] = values[s->args[i]];
        if (k_is_vector(args[i])) lanes = k_lanes(args[i]);
    }
    for (uint32_t i = 0; i < arity; i++) args[i] = k_splat(k, args[i], lanes);
    Dtype operand = scalar_get(scalars, s->args[arity - 1])->dtype;
    return math_prim(k, s->prim, operand, args[0], args[1], args[2]);
}

static Val scalar_value(const Lower *lower, const ScanJoin *join, const Scalar *s, const Val *given,
                        const Val *values) {
    const Codegen *k = lower->k;
    Val arg = s->args[0] ? values[s->args[0]] : NULL;
    Dtype from = s->args[0] ? scalar_get(join->scalars, s->args[0])->dtype : s->dtype;
    switch (s->kind) {
    case SCALAR_CONST:
        return dtype_is_int(s->dtype) ? k_whole(k, s->dtype, s->whole)
                                      : k_number(k, s->dtype, s->number);
    case SCALAR_STAGE:
        return given[s->slot];
    case SCALAR_PRIM:
        return prim_value(k, join->scalars, s, values);
    case SCALAR_CVT:
        return convert_value(k, arg, from, s->dtype);
    case SCALAR_BITCAST:
        return bitcast_value(k, arg, from, s->dtype);
    case SCALAR_GIVEN:
    case SCALAR_LOAD:
    case SCALAR_INDEX:
    case SCALAR_INSIDE:
    case SCALAR_EXTREME:
        break;
    }
    ice(k->arena, "a scan's function reads other values than elements");
}

static bool *needed_scalars(const Lower *lower, const ScanJoin *join) {
    bool *needed = arena_array(lower->k->arena, bool, scalar_count(join->scalars) + (size_t)1);
    for (uint32_t i = 0; i < join->n; i++) needed[join->results[i]] = true;
    scalar_mark_arguments(join->scalars, needed);
    return needed;
}

/* What is known of a part's having elements. */
static bool is_known(const Acc *part, bool has_elements) {
    return LLVMIsAConstantInt(part->index) &&
           (LLVMConstIntGetZExtValue(part->index) != 0) == has_elements;
}

/* The values that the function makes of two parts with elements. */
static Val *join_values(const Lower *lower, const ScanJoin *join, const Acc *before,
                        const Acc *behind) {
    const Codegen *k = lower->k;
    uint32_t n = scalar_count(join->scalars);
    Val *given = arena_array(k->arena, Val, 2 * (size_t)join->n);
    Val *values = arena_array(k->arena, Val, n + (size_t)1);
    Val *results = arena_array(k->arena, Val, join->n);
    const bool *needed = needed_scalars(lower, join);
    for (uint32_t i = 0; i < join->n; i++) {
        given[i] = before[i].value;
        given[join->n + i] = behind[i].value;
    }
    for (ScalarId id = 1; id <= n; id++)
        if (needed[id])
            values[id] = scalar_value(lower, join, scalar_get(join->scalars, id), given, values);
    for (uint32_t i = 0; i < join->n; i++)
        results[i] = k_splat(k, values[join->results[i]], k_lanes(behind[i].value));
    return results;
}

Acc *acc_join_parts(const Lower *lower, const ScanJoin *join, const Acc *before,
                    const Acc *behind) {
    const Codegen *k = lower->k;
    Acc *joined = accs_new(lower, join);
    for (uint32_t i = 0; i < join->n; i++)
        joined[i] = is_known(before, false) ? behind[i] : before[i];
    if (is_known(before, false) || is_known(behind, false)) return joined;
    const Val *values = join_values(lower, join, before, behind);
    Val has_any = k_or(k, before->index, behind->index);
    for (uint32_t i = 0; i < join->n; i++) {
        Val value = values[i];
        if (!is_known(behind, true)) value = k_select(k, behind->index, value, before[i].value);
        if (!is_known(before, true)) value = k_select(k, before->index, value, behind[i].value);
        joined[i] = (Acc){value, has_any};
    }
    return joined;
}
