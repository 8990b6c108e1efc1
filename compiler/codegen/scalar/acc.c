/* Accumulators of reductions. See acc.h. */
#include "codegen/scalar/acc.h"

#include <stdint.h>

/* Accumulators combine numbers, by these primitives alone: identities, joins of lanes and shuffles
 * know no others. Scans have none of these, and combine by LOGADDEXP too. */
#define COMBINES(comb)                                                                \
    (PRIM_##comb == PRIM_ADD || PRIM_##comb == PRIM_MUL || PRIM_##comb == PRIM_MIN || \
     PRIM_##comb == PRIM_MAX)
#define REDUCE(sym, name, dtypes, comb, ...)                       \
    _Static_assert(COMBINES(comb) && ((dtypes) & ~(DTS_NUM)) == 0, \
                   "ir/ops.def: accumulators (codegen/scalar/acc.c) cannot combine `" name "`");
#define SCAN(sym, name, dtypes, comb, ...)                              \
    _Static_assert((COMBINES(comb) || PRIM_##comb == PRIM_LOGADDEXP) && \
                       ((dtypes) & ~(DTS_NUM)) == 0,                    \
                   "ir/ops.def: accumulators (codegen/scalar/acc.c) cannot scan `" name "`");
#define SEGMENT(sym, name, dtypes, comb, ...)                      \
    _Static_assert(COMBINES(comb) && ((dtypes) & ~(DTS_NUM)) == 0, \
                   "ir/ops.def: accumulators (codegen/scalar/acc.c) cannot combine `" name "`");
#define ARGREDUCE(sym, name, dtypes, comb, ...)                            \
    _Static_assert((PRIM_##comb == PRIM_MIN || PRIM_##comb == PRIM_MAX) && \
                       ((dtypes) & ~(DTS_NUM)) == 0,                       \
                   "ir/ops.def: accumulators (codegen/scalar/acc.c) cannot rank `" name "`");
#include "ir/ops.def"

bool acc_is_ordered(const Lower *lower, const Reduce *reduce) {
    return op_info(graph_node(lower->plan->graph, reduce->node)->op)->orders;
}

bool acc_stage_is_ordered(const Lower *lower, const Stage *stage) {
    for (uint32_t i = 0; i < stage->reduces.n; i++)
        if (acc_is_ordered(lower, stage_reduce(lower->kernel, stage, i))) return true;
    return false;
}

Acc acc_identity(const Lower *lower, const Reduce *reduce, uint32_t lanes) {
    const Codegen *k = lower->k;
    Acc acc = {k_splat(k, k_number(k, reduce->acc, reduce->identity), lanes), NULL};
    if (reduce->is_arg) acc.index = k_splat(k, k_i32(k, INT32_MAX), lanes);
    return acc;
}

Val acc_is_ahead(const Lower *lower, const Reduce *reduce, Acc a, Acc b) {
    const Codegen *k = lower->k;
    bool is_max = reduce->combine == PRIM_MAX;
    if (!dtype_is_float(reduce->acc))
        return math_prim(k, PRIM_LT, reduce->acc, is_max ? a.value : b.value,
                         is_max ? b.value : a.value, NULL);
    LLVMRealPredicate better = is_max ? LLVMRealUGT : LLVMRealULT; /* unordered comparisons: true if
                                                                    * one operand is a NaN */
    Val wins = k_fcmp(k, better, b.value, a.value);
    Val is_number = k_fcmp(k, LLVMRealORD, a.value, a.value);
    return k_and(k, wins, is_number);
}

/* Whether b's element ranks before a's: by value, then by the lower index. */
static Val is_better(const Lower *lower, const Reduce *reduce, Acc a, Acc b) {
    const Codegen *k = lower->k;
    Val is_behind = acc_is_ahead(lower, reduce, b, a);
    Val is_lower = k_slt(k, b.index, a.index);
    Val wins_tie = k_and(k, is_lower, k_not(k, is_behind));
    return k_or(k, acc_is_ahead(lower, reduce, a, b), wins_tie);
}

/* Whether the value is the identity constant. LLVM interns constants, so pointers tell. */
static bool is_identity(const Lower *lower, const Reduce *reduce, Val value) {
    return value == acc_identity(lower, reduce, k_lanes(value)).value;
}

Acc acc_combine(const Lower *lower, const Reduce *reduce, Acc a, Acc b) {
    if (reduce->is_arg) return acc_select(lower, is_better(lower, reduce, a, b), b, a);
    if (is_identity(lower, reduce, a.value)) return b;
    return (Acc){math_prim(lower->k, reduce->combine, reduce->acc, a.value, b.value, NULL), NULL};
}

/* An element equal to the identity leaves the index of the identity, which is 0 in the end. So if
 * all elements equal the identity, the result is the first element. */
Acc acc_take(const Lower *lower, const Reduce *reduce, Acc acc, Acc element) {
    if (!reduce->is_arg) return acc_combine(lower, reduce, acc, element);
    return acc_select(lower, acc_is_ahead(lower, reduce, acc, element), element, acc);
}

Acc acc_element(Point *point, const Reduce *reduce) {
    Acc acc = {point_lanes(point, reduce->value), NULL};
    if (reduce->is_arg) acc.index = point_lanes(point, reduce->arg_index);
    return acc;
}

Acc acc_select(const Lower *lower, Val condition, Acc a, Acc b) {
    const Codegen *k = lower->k;
    Acc acc = {k_select(k, condition, a.value, b.value), NULL};
    if (a.index) acc.index = k_select(k, condition, a.index, b.index);
    return acc;
}

static Acc lane_of(const Lower *lower, Acc acc, uint32_t lane) {
    const Codegen *k = lower->k;
    Val at = k_i32(k, lane);
    Acc one = {k_extract_at(k, acc.value, at), NULL};
    if (acc.index) one.index = k_extract_at(k, acc.index, at);
    return one;
}

Acc acc_join_lanes(const Lower *lower, const Reduce *reduce, Acc acc, uint32_t lanes) {
    Acc partials[64];
    if (lanes == 1) return acc;
    for (uint32_t i = 0; i < lanes; i++) partials[i] = lane_of(lower, acc, i);
    return acc_join_pairs(lower, reduce, partials, lanes);
}

/* The reduction of the values without indices. */
static Reduce extreme_of(const Reduce *reduce) {
    Reduce extreme = *reduce;
    extreme.is_arg = false;
    return extreme;
}

/* The reduction of the indices: their minimum. */
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
    uint32_t lanes = k_lanes(acc.value);
    Acc best = join(user, &extreme, (Acc){acc.value, NULL}), index = {acc.index, NULL};
    Acc splat = {k_splat(lower->k, best.value, lanes), NULL};
    Acc place = acc_select(lower, acc_is_ahead(lower, reduce, acc, splat),
                           acc_identity(lower, &first, lanes), index);
    return (Acc){best.value, join(user, &first, place).value};
}

static Val divide(const Lower *lower, const Reduce *reduce, Val value) {
    const Codegen *k = lower->k;
    Lower *writable = (Lower *)(uintptr_t)lower;
    Val count = lower_dim64(writable, reduce->divisor);
    Val number = k_sitofp(k, count, k_value_type(k, reduce->acc, 1));
    number = k_splat(k, number, k_lanes(value));
    return k_fdiv(k, value, number);
}

void acc_finish(Point *point, uint32_t slot, Acc acc) {
    const Lower *lower = point->lower;
    const Codegen *k = lower->k;
    const Reduce *reduce = &lower->kernel->reduces.data[slot];
    if (reduce->is_arg) {
        LLVMTypeRef type = LLVMTypeOf(acc.index);
        Val none = k_splat(k, k_i32(k, INT32_MAX), k_lanes(acc.index));
        Val is_empty = k_eq(k, acc.index, none);
        point->results[slot] = k_select(k, is_empty, LLVMConstNull(type), acc.index);
        point->extremes[slot] = acc.value;
        return;
    }
    Val value = acc.value;
    if (reduce->divisor) value = divide(lower, reduce, value);
    point->results[slot] = convert_value(k, value, reduce->acc, reduce->result);
}

void acc_loop_carry(const Codegen *k, Loop *loop, Acc *accs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        loop_carry(k, loop, &accs[i].value, 1);
        if (accs[i].index) loop_carry(k, loop, &accs[i].index, 1);
    }
}

Acc acc_join_pairs(const Lower *lower, const Reduce *reduce, Acc *accs, uint32_t n) {
    for (; n > 1; n /= 2)
        for (uint32_t i = 0; i < n / 2; i++)
            accs[i] = acc_combine(lower, reduce, accs[2 * i], accs[2 * i + 1]);
    return accs[0];
}
