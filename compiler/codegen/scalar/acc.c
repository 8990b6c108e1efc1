/* Accumulators of reductions. See acc.h. */
#include "codegen/scalar/acc.h"

#include <stdint.h>

bool acc_is_ordered(const Lower *lower, const Reduce *reduce) {
    return op_info(graph_node(lower->plan->graph, reduce->node)->op)->orders;
}

bool acc_stage_is_ordered(const Lower *lower, const Stage *stage) {
    for (uint32_t i = 0; i < stage->reduces.n; i++)
        if (acc_is_ordered(lower, stage_reduce(lower->kernel, stage, i))) return true;
    return false;
}

Acc acc_identity(const Lower *lower, const Reduce *reduce, uint32_t lanes) {
    const Unit *unit = lower->unit;
    Acc acc = {unit_splat(unit, unit_number(unit, reduce->acc, reduce->identity), lanes), NULL};
    if (reduce->is_arg) acc.index = unit_splat(unit, unit_i32(unit, INT32_MAX), lanes);
    return acc;
}

/* Whether b's value comes before a's: a NaN before numbers, then the greater (or smaller). */
static LLVMValueRef is_ahead(const Lower *lower, const Reduce *reduce, Acc a, Acc b) {
    LLVMBuilderRef builder = lower->unit->builder;
    bool is_max = reduce->combine == PRIM_MAX;
    if (dtype_kind(reduce->acc) != KIND_FLOAT)
        return unit_prim(lower->unit, PRIM_LT, reduce->acc, is_max ? a.value : b.value,
                         is_max ? b.value : a.value, NULL);
    LLVMRealPredicate better = is_max ? LLVMRealUGT : LLVMRealULT; /* or one is a NaN */
    LLVMValueRef wins = LLVMBuildFCmp(builder, better, b.value, a.value, "");
    LLVMValueRef is_number = LLVMBuildFCmp(builder, LLVMRealORD, a.value, a.value, "");
    return LLVMBuildAnd(builder, wins, is_number, "");
}

/* Whether b's element comes before a's: by value, then the lower index. */
static LLVMValueRef is_better(const Lower *lower, const Reduce *reduce, Acc a, Acc b) {
    LLVMBuilderRef builder = lower->unit->builder;
    LLVMValueRef is_behind = is_ahead(lower, reduce, b, a);
    LLVMValueRef is_lower = LLVMBuildICmp(builder, LLVMIntSLT, b.index, a.index, "");
    LLVMValueRef wins_tie =
        LLVMBuildAnd(builder, is_lower, LLVMBuildNot(builder, is_behind, ""), "");
    return LLVMBuildOr(builder, is_ahead(lower, reduce, a, b), wins_tie, "");
}

/* Whether it is the identity, written as such: constants of a kind are one. */
static bool is_identity(const Lower *lower, const Reduce *reduce, LLVMValueRef value) {
    return value == acc_identity(lower, reduce, unit_lanes(value)).value;
}

Acc acc_combine(const Lower *lower, const Reduce *reduce, Acc a, Acc b) {
    if (reduce->is_arg) return acc_select(lower, is_better(lower, reduce, a, b), b, a);
    if (is_identity(lower, reduce, a.value)) return b;
    return (Acc){unit_prim(lower->unit, reduce->combine, reduce->acc, a.value, b.value, NULL),
                 NULL};
}

/* Elements that equal the identity leave its index, which becomes 0 in the end: if all of them do,
 * the first is the one. */
Acc acc_take(const Lower *lower, const Reduce *reduce, Acc acc, Acc element) {
    if (!reduce->is_arg) return acc_combine(lower, reduce, acc, element);
    return acc_select(lower, is_ahead(lower, reduce, acc, element), element, acc);
}

Acc acc_element(Point *point, const Reduce *reduce) {
    Acc acc = {point_lanes(point, reduce->value), NULL};
    if (reduce->is_arg) acc.index = point_lanes(point, reduce->arg_index);
    return acc;
}

Acc acc_select(const Lower *lower, LLVMValueRef condition, Acc a, Acc b) {
    LLVMBuilderRef builder = lower->unit->builder;
    Acc acc = {LLVMBuildSelect(builder, condition, a.value, b.value, ""), NULL};
    if (a.index) acc.index = LLVMBuildSelect(builder, condition, a.index, b.index, "");
    return acc;
}

static Acc lane_of(const Lower *lower, Acc acc, uint32_t lane) {
    LLVMBuilderRef builder = lower->unit->builder;
    LLVMValueRef at = unit_i32(lower->unit, lane);
    Acc one = {LLVMBuildExtractElement(builder, acc.value, at, ""), NULL};
    if (acc.index) one.index = LLVMBuildExtractElement(builder, acc.index, at, "");
    return one;
}

Acc acc_join_lanes(const Lower *lower, const Reduce *reduce, Acc acc, uint32_t lanes) {
    Acc parts[64];
    if (lanes == 1) return acc;
    for (uint32_t i = 0; i < lanes; i++) parts[i] = lane_of(lower, acc, i);
    for (uint32_t n = lanes; n > 1; n /= 2)
        for (uint32_t i = 0; i < n / 2; i++)
            parts[i] = acc_combine(lower, reduce, parts[2 * i], parts[2 * i + 1]);
    return parts[0];
}

/* Of the values alone. */
static Reduce extreme_of(const Reduce *reduce) {
    Reduce extreme = *reduce;
    extreme.is_arg = false;
    return extreme;
}

/* Of the indices alone. */
static Reduce first_of(const Reduce *reduce) {
    Reduce first = extreme_of(reduce);
    first.combine = PRIM_MIN;
    first.acc = DT_I32;
    first.identity = INT32_MAX;
    return first;
}

Acc acc_join_arg(const Lower *lower, const Reduce *reduce, Acc acc, AccJoin *join,
                 const void *user) {
    Reduce extreme = extreme_of(reduce), first = first_of(reduce);
    uint32_t lanes = unit_lanes(acc.value);
    Acc best = join(user, &extreme, (Acc){acc.value, NULL}), index = {acc.index, NULL};
    Acc spread = {unit_splat(lower->unit, best.value, lanes), NULL};
    Acc place = acc_select(lower, is_ahead(lower, reduce, acc, spread),
                           acc_identity(lower, &first, lanes), index);
    return (Acc){best.value, join(user, &first, place).value};
}

static LLVMValueRef divide(const Lower *lower, const Reduce *reduce, LLVMValueRef value) {
    const Unit *unit = lower->unit;
    Lower *writable = (Lower *)(uintptr_t)lower;
    LLVMValueRef count = lower_dim64(writable, reduce->divisor);
    LLVMTypeRef type = unit_value_type(unit, reduce->acc, 1);
    LLVMValueRef number = LLVMBuildSIToFP(unit->builder, count, type, "");
    number = unit_splat(unit, number, unit_lanes(value));
    return LLVMBuildFDiv(unit->builder, value, number, "");
}

void acc_finish(Point *point, uint32_t slot, Acc acc) {
    const Lower *lower = point->lower;
    const Unit *unit = lower->unit;
    const Reduce *reduce = &lower->kernel->reduces.data[slot];
    if (reduce->is_arg) {
        LLVMTypeRef type = LLVMTypeOf(acc.index);
        LLVMValueRef none = unit_splat(unit, unit_i32(unit, INT32_MAX), unit_lanes(acc.index));
        LLVMValueRef is_empty = LLVMBuildICmp(unit->builder, LLVMIntEQ, acc.index, none, "");
        point->results[slot] =
            LLVMBuildSelect(unit->builder, is_empty, LLVMConstNull(type), acc.index, "");
        point->extremes[slot] = acc.value;
        return;
    }
    LLVMValueRef value = acc.value;
    if (reduce->divisor) value = divide(lower, reduce, value);
    point->results[slot] = convert_value(&unit->math, value, unit_convert_type(reduce->acc),
                                         unit_convert_type(reduce->result));
}

/* Accumulators, and what is beside them, as the flat list of values that a loop carries. */
static LLVMValueRef *flatten(const Unit *unit, const Acc *accs, uint32_t n,
                             const LLVMValueRef *beside, uint32_t *count) {
    LLVMValueRef *values = arena_array(unit->arena, LLVMValueRef, 2 * (size_t)n + 1);
    *count = 0;
    for (uint32_t i = 0; i < n; i++) {
        values[(*count)++] = accs[i].value;
        if (accs[i].index) values[(*count)++] = accs[i].index;
    }
    if (beside) values[(*count)++] = *beside;
    return values;
}

static void unflatten(const LLVMValueRef *values, Acc *accs, uint32_t n, LLVMValueRef *beside) {
    for (uint32_t i = 0; i < n; i++) {
        accs[i].value = *values++;
        if (accs[i].index) accs[i].index = *values++;
    }
    if (beside) *beside = *values;
}

void acc_loop_carry(const Unit *unit, Loop *loop, Acc *accs, uint32_t n, LLVMValueRef *beside) {
    uint32_t count;
    LLVMValueRef *values = flatten(unit, accs, n, beside, &count);
    loop_carry(unit, loop, values, count);
    unflatten(values, accs, n, beside);
}

void acc_loop_end(const Unit *unit, Loop *loop, Acc *accs, uint32_t n, LLVMValueRef *beside) {
    uint32_t count;
    LLVMValueRef *values = flatten(unit, accs, n, beside, &count);
    loop_end_carry(unit, loop, values, count);
    unflatten(values, accs, n, beside);
}
