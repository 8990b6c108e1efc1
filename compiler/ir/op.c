/* Expands ops.def into the op table: reference functions, bodies, rows, and look-up by name. */
#include "ir/op.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

/* Reference functions. A column that a row leaves out expands to nothing and its function returns
 * 0. */
#define REF(...) __VA_ARGS__
#define IREF(...) __VA_ARGS__
#define NOINT 0
#define WRAPS(x, op, y) (int64_t)((uint64_t)(x)op(uint64_t)(y))
#define ELTWISE(sym, name, lo, hi, dts, res, traits, dflt, ref, iref, body, dom, tol, doc) \
    static double ref_##sym(double a, double b, double c) {                                \
        (void)a, (void)b, (void)c;                                                         \
        return (double)(ref);                                                              \
    }                                                                                      \
    static int64_t ref_int_##sym(int64_t a, int64_t b, int64_t c) {                        \
        (void)a, (void)b, (void)c;                                                         \
        return (int64_t)(iref);                                                            \
    }
#include "ir/ops.def"
#undef REF
#undef IREF
#undef WRAPS
#undef NOINT

/* Bodies. `t` is the table; `r` is the dtype to which the result is rounded; constants have the
 * type of operand `a`. */
#define BODY(...) __VA_ARGS__
#define K(x) scalar_const(t, scalar_get(t, a)->dtype, (x))
#define P1(prim, x) scalar_prim(t, prim_rounded_to(PRIM_##prim, r), (x), SCALAR_NONE, SCALAR_NONE)
#define P2(prim, x, y) scalar_prim(t, PRIM_##prim, (x), (y), SCALAR_NONE)
#define LT_(x, y) P2(LT, x, y)
#define SEL(x, y, z) scalar_prim(t, PRIM_SELECT, (x), (y), (z))
#define ELTWISE(sym, name, lo, hi, dts, res, traits, dflt, ref, iref, body, dom, tol, doc)  \
    static ScalarId body_##sym(ScalarTab *t, Dtype r, ScalarId a, ScalarId b, ScalarId c) { \
        (void)t, (void)r, (void)a, (void)b, (void)c;                                        \
        return body;                                                                        \
    }
#include "ir/ops.def"
#undef BODY

#define HAS_INT(dts) (((dts) & (DTS_INT | DTS_BOOL)) != 0)
#define DOM(lo, hi) .domain_lo = (lo), .domain_hi = (hi)
#define TOL(d, s, abs) .double_ulp = (d), .single_ulp = (s), .abs_error = (abs)
#define EXACT .abs_error = 0
static const OpInfo infos[OP_COUNT] = {
    [OP_NONE] = {.name = "none"},
#define SOURCE(sym, nm, d) \
    [OP_##sym] = {.name = nm, .cls = CLASS_SOURCE, .result = RESULT_NODE, .doc = d},
#define ELTWISE(sym, nm, lo, hi, dts, res, tr, dflt, rf, irf, bd, dom, tol, d) \
    [OP_##sym] = {.name = nm,                                                  \
                  .cls = CLASS_ELTWISE,                                        \
                  .min_args = lo,                                              \
                  .max_args = hi,                                              \
                  .dtypes = dts,                                               \
                  .result = RESULT_##res,                                      \
                  .traits = TRAIT_##tr,                                        \
                  .default_last = dflt,                                        \
                  .ref = ref_##sym,                                            \
                  .ref_int = HAS_INT(dts) ? ref_int_##sym : NULL,              \
                  .body = body_##sym,                                          \
                  dom,                                                         \
                  tol,                                                         \
                  .doc = d},
#define CAST(sym, nm, d)                 \
    [OP_##sym] = {.name = nm,            \
                  .cls = CLASS_CAST,     \
                  .min_args = 1,         \
                  .max_args = 1,         \
                  .dtypes = DTS_ANY,     \
                  .result = RESULT_NODE, \
                  .doc = d},
#define REDUCE(sym, nm, dts, comb, ident, divides, ordered, tr, d) \
    [OP_##sym] = {.name = nm,                                      \
                  .cls = CLASS_REDUCE,                             \
                  .min_args = 1,                                   \
                  .max_args = 1,                                   \
                  .dtypes = dts,                                   \
                  .result = RESULT_SAME,                           \
                  .traits = TRAIT_##tr,                            \
                  .combine = PRIM_##comb,                          \
                  .identity = ident,                               \
                  .divides_by_count = divides,                     \
                  .orders = ordered,                               \
                  .doc = d},
#define NUMBERS(sym, class, nm, dts, comb, ident, d) /* the result is numbers of elements */ \
    [OP_##sym] = {.name = nm,                                                                \
                  .cls = class,                                                              \
                  .min_args = 1,                                                             \
                  .max_args = 1,                                                             \
                  .dtypes = dts,                                                             \
                  .result = RESULT_NODE,                                                     \
                  .combine = PRIM_##comb,                                                    \
                  .identity = ident,                                                         \
                  .doc = d},
#define ARGREDUCE(sym, ...) NUMBERS(sym, CLASS_ARGREDUCE, __VA_ARGS__)
#define SORT(sym, ...) NUMBERS(sym, CLASS_SORT, __VA_ARGS__)
#define COMBINED(sym, class, n, nm, dts, comb, ident, ordered, d) \
    [OP_##sym] = {.name = nm,                                     \
                  .cls = class,                                   \
                  .min_args = n,                                  \
                  .max_args = n,                                  \
                  .dtypes = dts,                                  \
                  .result = RESULT_SAME,                          \
                  .combine = PRIM_##comb,                         \
                  .identity = ident,                              \
                  .orders = ordered,                              \
                  .doc = d},
#define SCAN(sym, ...) COMBINED(sym, CLASS_SCAN, 1, __VA_ARGS__)
#define SCAN_BY(sym, nm, dts, d)          \
    [OP_##sym] = {.name = nm,             \
                  .cls = CLASS_SCAN_BY,   \
                  .min_args = 1,          \
                  .max_args = UINT32_MAX, \
                  .dtypes = dts,          \
                  .result = RESULT_NODE,  \
                  .orders = true,         \
                  .doc = d},
#define SEGMENT(sym, ...) COMBINED(sym, CLASS_SEGMENT, 2, __VA_ARGS__)
#define VIEW(sym, nm, n, d)              \
    [OP_##sym] = {.name = nm,            \
                  .cls = CLASS_VIEW,     \
                  .min_args = n,         \
                  .max_args = n,         \
                  .dtypes = DTS_ANY,     \
                  .result = RESULT_SAME, \
                  .doc = d},
#define CONCAT(sym, nm, d)                \
    [OP_##sym] = {.name = nm,             \
                  .cls = CLASS_CONCAT,    \
                  .min_args = 1,          \
                  .max_args = UINT32_MAX, \
                  .dtypes = DTS_ANY,      \
                  .result = RESULT_SAME,  \
                  .doc = d},
#define UPDATE(sym, nm, d)               \
    [OP_##sym] = {.name = nm,            \
                  .cls = CLASS_UPDATE,   \
                  .min_args = 3,         \
                  .max_args = 3,         \
                  .dtypes = DTS_ANY,     \
                  .result = RESULT_SAME, \
                  .doc = d},
#define LOOP(sym, nm, lo, hi, d)         \
    [OP_##sym] = {.name = nm,            \
                  .cls = CLASS_LOOP,     \
                  .min_args = lo,        \
                  .max_args = hi,        \
                  .dtypes = DTS_ANY,     \
                  .result = RESULT_NODE, \
                  .doc = d},
#define ONLINE(sym, nm, dts, pow, rw, d) \
    [OP_##sym] = {.name = nm,            \
                  .cls = CLASS_ONLINE,   \
                  .min_args = 2,         \
                  .max_args = 3,         \
                  .dtypes = dts,         \
                  .result = RESULT_NODE, \
                  .power = PRIM_##pow,   \
                  .row = PRIM_##rw,      \
                  .orders = true,        \
                  .doc = d},
#define CONTRACT(sym, nm, dts, d)        \
    [OP_##sym] = {.name = nm,            \
                  .cls = CLASS_MATMUL,   \
                  .min_args = 2,         \
                  .max_args = 2,         \
                  .dtypes = dts,         \
                  .result = RESULT_NODE, \
                  .combine = PRIM_ADD,   \
                  .identity = -0.0,      \
                  .orders = true,        \
                  .doc = d},
#include "ir/ops.def"
#undef NUMBERS
};

const OpInfo *op_info(OpId op) {
    return &infos[op];
}

double op_ulp(const OpInfo *info, Dtype dtype) {
    if (dtype_is_double(dtype)) return info->double_ulp;
    if (dtype_is_single(dtype)) return info->single_ulp;
    return dtype_is_narrow(dtype) && info->single_ulp > 0 ? 1 : 0;
}

double op_abs_error(const OpInfo *info, Dtype dtype) {
    return dtype_is_double(dtype) ? info->abs_error * 0x1p-29 : info->abs_error;
}

OpId op_by_name(const char *name) {
    for (int op = OP_NONE + 1; op < OP_COUNT; op++)
        if (infos[op].name[0] == name[0] && strcmp(infos[op].name, name) == 0) return (OpId)op;
    return OP_NONE;
}

uint32_t *op_costs(Arena *arena) {
    uint32_t *cost = arena_array(arena, uint32_t, OP_COUNT);
    for (int op = 1; op < OP_COUNT; op++) {
        const OpInfo *info = op_info((OpId)op);
        if (!info->body) continue;
        ArenaMark mark = arena_mark(arena);
        ScalarTab *tab = scalartab_new(arena, indextab_new(arena, dimtab_new(arena)));
        Dtype dtype = dtype_in(DT_F32, info->dtypes)   ? DT_F32
                      : dtype_in(DT_I32, info->dtypes) ? DT_I32
                                                       : DT_BOOL;
        ScalarId args[3];
        for (uint32_t i = 0; i < 3; i++)
            args[i] =
                scalar_stage(tab, i == 0 && info->result == RESULT_SELECT ? DT_BOOL : dtype, i, 0);
        bool *seen = arena_array(arena, bool, 256);
        cost[op] = scalar_cost(tab, info->body(tab, dtype, args[0], args[1], args[2]), seen);
        arena_rewind(arena, mark);
    }
    return cost;
}
