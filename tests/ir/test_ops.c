/* Every row of the op table: its claims, and its two independent definitions against each other.
 * Nothing here names an op, so a new row is tested by being there. */
#include "lib/compare.h"
#include "lib/scalar_eval.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOR_EACH_OP(op) for (OpId op = OP_NONE + 1; op < OP_COUNT; op++)
#define FOR_EACH_DTYPE(op, dtype)                           \
    for (Dtype dtype = (Dtype)0; dtype < DT_COUNT; dtype++) \
        if (dtype_in(dtype, op_info(op)->dtypes))

static bool is_eltwise(OpId op) {
    return op_info(op)->cls == CLASS_ELTWISE;
}

/* Values that break careless code, as elements of the dtype; as many as SPECIALS. */
enum { SPECIALS = 24 };

static void specials(Dtype dtype, double values[SPECIALS]) {
    double max = dtype_kind(dtype) == KIND_FLOAT ? dtype_max(dtype) : INT32_MAX;
    double least = dtype_kind(dtype) == KIND_FLOAT ? dtype_ulp(dtype, 0) : 1;
    double normal = dtype == DT_F64 ? 0x1p-1022 : dtype == DT_F16 ? 0x1p-14 : 0x1p-126;
    const double all[SPECIALS] = {0.0,    -0.0,   NAN,     INFINITY,  -INFINITY, max, -max, least,
                                  -least, normal, -normal, 3 * least, 1,         -1,  0.5,  -0.5,
                                  1.5,    2.5,    -2.5,    2,         3,         -7,  1e-3, 50};
    for (int i = 0; i < SPECIALS; i++) {
        double limit = dtype_is_wide(dtype_compute(dtype)) ? 0x1p26 : INFINITY;
        double number = isnan(all[i]) ? NAN : fmax(-limit, fmin(limit, all[i]));
        values[i] = dtype_round(dtype, number); /* doubles hold the products */
    }
}

static double sample(Rng *rng, OpId op, Dtype dtype) {
    const OpInfo *info = op_info(op);
    double x = rng_uniform(rng, info->domain_lo, info->domain_hi);
    if (rng_chance(rng, 20)) x = nearbyint(x); /* ties, equal operands, exact cases */
    x = dtype_round(dtype, x);
    return x < info->domain_lo || x > info->domain_hi ? dtype_round(dtype, info->domain_hi) : x;
}

/* Table. */

Test(ops, every_row_is_whole) {
    FOR_EACH_OP(op) {
        const OpInfo *info = op_info(op);
        cr_expect(info->name && info->name[0], "op %d has no name", (int)op);
        cr_expect(info->doc && strlen(info->doc) > 3, "%s has no doc", info->name);
        cr_expect_eq(op_by_name(info->name), op, "%s is not found, or is there twice", info->name);
        cr_expect_leq(info->min_args, info->max_args, "%s", info->name);
        cr_expect(info->cls == CLASS_SOURCE || info->min_args >= 1, "%s", info->name);
        cr_expect(info->cls == CLASS_SOURCE || info->dtypes != 0, "%s", info->name);
        cr_expect((info->dtypes & ~(DtypeSet)DTS_ANY) == 0, "%s", info->name);
        if (!is_eltwise(op)) continue;
        cr_expect_leq(info->max_args, 3u, "%s", info->name);
        cr_expect(info->ref && info->body, "%s", info->name);
        bool takes_ints = (info->dtypes & (DTS_INT | DTS_BOOL)) != 0;
        cr_expect_eq(takes_ints, info->ref_int != NULL, "%s", info->name);
        cr_expect_lt(info->domain_lo, info->domain_hi, "%s has an empty domain", info->name);
    }
    cr_expect_eq(op_by_name("no_such_op"), OP_NONE);
}

Test(ops, tolerances_are_sane) {
    FOR_EACH_OP(op) {
        if (!is_eltwise(op)) continue;
        const OpInfo *info = op_info(op);
        cr_expect(info->abs_error >= 0 && info->abs_error < 1e-5, "%s", info->name);
        bool is_exact = true;
        for (int d = 0; d < DT_COUNT; d++) {
            cr_expect(op_ulp(info, d) >= 0 && op_ulp(info, d) <= (d == DT_F32 ? 6 : 4), "%s",
                      info->name);
            is_exact = is_exact && op_ulp(info, d) == 0;
        }
        cr_expect_eq(op_ulp(info, DT_I32), 0, "%s", info->name);
        cr_expect(!is_exact || info->abs_error == 0, "%s is exact but for an absolute error",
                  info->name);
    }
}

/* Every primitive in a body must take the compute type, and the body give what the rule says. */
static void expect_typed(const ScalarTab *tab, ScalarId id, OpId op) {
    const Scalar *s = scalar_get(tab, id);
    if (s->kind == SCALAR_CVT) expect_typed(tab, s->args[0], op);
    if (s->kind != SCALAR_PRIM) return;
    const PrimInfo *info = prim_info(s->prim);
    Dtype operand = scalar_get(tab, s->args[info->arity - 1])->dtype;
    cr_expect(dtype_in(operand, info->operands), "%s uses %s on %s", op_info(op)->name, info->name,
              dtype_name(operand));
    cr_expect_eq(s->dtype, info->result == PRIM_RESULT_BOOL ? DT_BOOL : operand, "%s",
                 op_info(op)->name);
    for (uint32_t i = 0; i < info->arity; i++) expect_typed(tab, s->args[i], op);
}

Test(ops, bodies_are_typed) {
    Arena *arena = arena_new(NULL);
    ScalarTab *tab = scalartab_new(arena, indextab_new(arena, dimtab_new(arena)));
    FOR_EACH_OP(op) {
        if (!is_eltwise(op)) continue;
        FOR_EACH_DTYPE(op, dtype) {
            ScalarId body = op_body_on(tab, op, op_info(op)->max_args, dtype);
            expect_typed(tab, body, op);
            Dtype want = op_info(op)->result == RESULT_BOOL ? DT_BOOL : dtype;
            cr_expect_eq(scalar_get(tab, body)->dtype, want, "%s on %s", op_info(op)->name,
                         dtype_name(dtype));
        }
    }
    arena_free(arena);
}

/* REF against BODY. */

typedef struct Bench {
    OpId op;
    Dtype dtype;
    uint32_t n_args;
    ScalarTab *tab;
    ScalarId body;
    double worst; /* share of the tolerance used */
} Bench;

/* What the row's reference gives on elements of the dtype, before the final rounding of floats. */
static double reference(const Bench *b, const double *v) {
    const OpInfo *info = op_info(b->op);
    if (dtype_kind(b->dtype) == KIND_FLOAT) return info->ref(v[0], v[1], v[2]);
    int64_t value = info->ref_int((int64_t)v[0], (int64_t)v[1], (int64_t)v[2]);
    return info->result == RESULT_BOOL || b->dtype == DT_BOOL ? value != 0
                                                              : (double)dtype_wrap(b->dtype, value);
}

static void expect_agreement(Bench *b, const double *v, bool rounds) {
    const OpInfo *info = op_info(b->op);
    Dtype out = scalar_get(b->tab, b->body)->dtype, compute = dtype_compute(b->dtype);
    double want = reference(b, v), got = scalar_eval_on(b->tab, b->body, v, rounds);
    if (dtype_kind(out) == KIND_FLOAT) {
        want = dtype_round(out, dtype_round(compute, want));
        got = dtype_round(out, dtype_round(compute, got));
    }
    double bound = op_ulp(info, out) * (dtype_kind(out) == KIND_FLOAT ? dtype_ulp(out, want) : 0);
    if (bound > 0 && bound < info->abs_error) bound = info->abs_error;
    if (isnan(want) || (isinf(want) && op_ulp(info, out) == 0)) bound = 0;
    cr_expect(compare_element(out, want, got, bound),
              "%s(%.17g, %.17g, %.17g) on %s%s: reference %.17g, body %.17g, %g ulp", info->name,
              v[0], v[1], v[2], dtype_name(b->dtype), rounds ? ", rounding each step" : "", want,
              got, dtype_ulps(out, want, got));
    double share = bound > 0 ? dtype_distance(out, want, got) / bound : 0;
    if (share > b->worst) b->worst = share;
}

static void fill_default(const Bench *b, double *v) {
    for (uint32_t k = b->n_args; k < 3; k++)
        v[k] = dtype_round(b->dtype, op_info(b->op)->default_last);
}

static void compare_on_domain(Bench *b, Rng *rng) {
    for (int i = 0; i < 2000; i++) {
        double v[3] = {0};
        fill_default(b, v);
        for (uint32_t k = 0; k < b->n_args; k++) v[k] = sample(rng, b->op, b->dtype);
        if (op_info(b->op)->result == RESULT_SELECT) v[0] = rng_below(rng, 2);
        expect_agreement(b, v, true);
        expect_agreement(b, v, false);
    }
}

static void compare_on_specials(Bench *b) {
    double values[SPECIALS];
    specials(b->dtype, values);
    uint32_t n = 1;
    for (uint32_t k = 0; k < b->n_args; k++) n *= SPECIALS;
    for (uint32_t i = 0; i < n; i++) {
        double v[3] = {0};
        fill_default(b, v);
        uint32_t rest = i;
        for (uint32_t k = 0; k < b->n_args; k++, rest /= SPECIALS) v[k] = values[rest % SPECIALS];
        if (op_info(b->op)->result == RESULT_SELECT) v[0] = v[0] != 0;
        expect_agreement(b, v, true);
    }
}

static void for_each_bench(void (*test)(Bench *, Rng *)) {
    Arena *arena = arena_new(NULL);
    Rng rng = rng_new(3);
    FOR_EACH_OP(op) {
        if (!is_eltwise(op)) continue;
        FOR_EACH_DTYPE(op, dtype)
        for (uint32_t n = op_info(op)->min_args; n <= op_info(op)->max_args; n++) {
            Bench b = {.op = op, .dtype = dtype, .n_args = n};
            b.tab = scalartab_new(arena, indextab_new(arena, dimtab_new(arena)));
            b.body = op_body_on(b.tab, op, n, dtype);
            test(&b, &rng);
        }
    }
    arena_free(arena);
}

static void domain_bench(Bench *b, Rng *rng) {
    compare_on_domain(b, rng);
}

static void special_bench(Bench *b, Rng *rng) {
    (void)rng;
    compare_on_specials(b);
}

Test(ops, body_and_reference_agree_on_the_domain, .timeout = 60) {
    for_each_bench(domain_bench);
}

Test(ops, body_and_reference_agree_on_special_values, .timeout = 60) {
    for_each_bench(special_bench);
}

/* Traits are claims. */

static double rounded_reference(const Bench *b, const double *v) {
    double value = reference(b, v);
    return dtype_kind(b->dtype) == KIND_FLOAT && op_info(b->op)->result != RESULT_BOOL
               ? dtype_round(b->dtype, value)
               : value;
}

static void expect_commutes(const Bench *b, double x, double y) {
    double xy[3] = {x, y}, yx[3] = {y, x};
    cr_expect(compare_same(rounded_reference(b, xy), rounded_reference(b, yx)), "%s(%g, %g) on %s",
              op_info(b->op)->name, x, y, dtype_name(b->dtype));
    cr_expect(compare_same(scalar_eval_on(b->tab, b->body, xy, true),
                           scalar_eval_on(b->tab, b->body, yx, true)),
              "body of %s(%g, %g) on %s", op_info(b->op)->name, x, y, dtype_name(b->dtype));
}

static void expect_unary_traits(const Bench *b, double x) {
    const OpInfo *info = op_info(b->op);
    double v[3] = {x};
    double once[3] = {rounded_reference(b, v)};
    if (info->traits & TRAIT_IDEMPOTENT)
        cr_expect(compare_same(rounded_reference(b, once), once[0]), "%s(%s(%g)) on %s", info->name,
                  info->name, x, dtype_name(b->dtype));
    if ((info->traits & TRAIT_ZERO_KEEPING) && x == 0)
        cr_expect_eq(once[0], 0, "%s(%g) on %s", info->name, x, dtype_name(b->dtype));
}

static void trait_bench(Bench *b, Rng *rng) {
    const OpInfo *info = op_info(b->op);
    double values[SPECIALS];
    specials(b->dtype, values);
    if (info->traits & (TRAIT_IDEMPOTENT | TRAIT_MONOTONE | TRAIT_ZERO_KEEPING))
        cr_expect_eq(info->max_args, 1u, "%s: a trait of unary ops", info->name);
    if (info->traits & TRAIT_COMMUTATIVE)
        cr_expect_eq(info->max_args, 2u, "%s: a trait of binary ops", info->name);
    for (int i = 0; i < 400 + SPECIALS; i++) {
        double x = i < SPECIALS ? values[i] : sample(rng, b->op, b->dtype);
        if (b->n_args == 1) expect_unary_traits(b, x);
        if (!(info->traits & TRAIT_COMMUTATIVE) || b->n_args != 2) continue;
        expect_commutes(b, x, sample(rng, b->op, b->dtype));
        for (int k = 0; k < SPECIALS; k++) expect_commutes(b, x, values[k]);
    }
}

Test(ops, claimed_traits_hold, .timeout = 60) {
    for_each_bench(trait_bench);
}

static int ascending(const void *a, const void *b) {
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static void monotone_bench(Bench *b, Rng *rng) {
    const OpInfo *info = op_info(b->op);
    if (!(info->traits & TRAIT_MONOTONE)) return;
    enum { N = 600 };
    double xs[N], values[SPECIALS], last = -INFINITY;
    specials(b->dtype, values);
    for (int i = 0; i < N; i++) xs[i] = i < SPECIALS ? values[i] : sample(rng, b->op, b->dtype);
    for (int i = 0; i < N; i++)
        if (isnan(xs[i])) xs[i] = 0;
    qsort(xs, N, sizeof *xs, ascending);
    for (int i = 0; i < N; i++) {
        double v[3] = {xs[i]};
        double y = rounded_reference(b, v);
        if (isnan(y)) continue; /* outside the domain of definition */
        cr_expect_geq(y, last, "%s falls at %g on %s", info->name, xs[i], dtype_name(b->dtype));
        last = y;
    }
}

Test(ops, monotone_rows_never_fall) {
    for_each_bench(monotone_bench);
}

/* Reductions. */

static bool is_reduction(OpId op) {
    OpClass cls = op_info(op)->cls;
    return cls == CLASS_REDUCE || cls == CLASS_ARGREDUCE || cls == CLASS_SCAN ||
           cls == CLASS_SEGMENT;
}

Test(ops, identities_change_nothing) {
    FOR_EACH_OP(op) {
        if (!is_reduction(op)) continue;
        const OpInfo *info = op_info(op);
        FOR_EACH_DTYPE(op, dtype) {
            double values[SPECIALS];
            specials(dtype, values);
            Dtype compute = dtype_compute(dtype);
            double identity = dtype_round(compute, info->identity);
            for (int i = 0; i < SPECIALS; i++) {
                double left = prim_eval(info->combine, compute, identity, values[i], 0);
                double right = prim_eval(info->combine, compute, values[i], identity, 0);
                cr_expect(compare_same(left, values[i]) && compare_same(right, values[i]),
                          "%s, %g on %s", info->name, values[i], dtype_name(dtype));
            }
        }
    }
}

Test(ops, combines_commute_and_order_claims_hold) {
    Rng rng = rng_new(4);
    FOR_EACH_OP(op) {
        if (!is_reduction(op)) continue;
        const OpInfo *info = op_info(op);
        bool associates = true;
        for (int i = 0; i < 4000; i++) {
            double v[3];
            for (int k = 0; k < 3; k++) v[k] = dtype_round(DT_F32, rng_uniform(&rng, -9, 9));
            double ab = dtype_round(DT_F32, prim_eval(info->combine, DT_F32, v[0], v[1], 0));
            double ba = dtype_round(DT_F32, prim_eval(info->combine, DT_F32, v[1], v[0], 0));
            double bc = dtype_round(DT_F32, prim_eval(info->combine, DT_F32, v[1], v[2], 0));
            cr_expect(compare_same(ab, ba), "%s", info->name);
            double left = dtype_round(DT_F32, prim_eval(info->combine, DT_F32, ab, v[2], 0));
            double right = dtype_round(DT_F32, prim_eval(info->combine, DT_F32, v[0], bc, 0));
            associates = associates && compare_same(left, right);
        }
        cr_expect_eq(associates, !info->orders, "%s and its order claim", info->name);
    }
}

/* A tolerance that no sample comes near, or an agreement test that cannot fail, proves nothing: a
 * body that is off by more than its row allows must be caught. */
Test(ops, a_wrong_body_would_be_seen) {
    FOR_EACH_OP(op) {
        if (!is_eltwise(op)) continue;
        const OpInfo *info = op_info(op);
        for (Dtype d = (Dtype)0; d <= DT_BF16; d++) {
            if (!dtype_in(d, info->dtypes) || info->result == RESULT_BOOL) continue;
            double want = dtype_round(d, 1), bound = op_ulp(info, d) * dtype_ulp(d, want);
            if (bound > 0 && bound < info->abs_error) bound = info->abs_error;
            double off = dtype_round(d, want + 2 * bound + dtype_ulp(d, want));
            cr_expect_not(compare_element(d, want, off, bound), "%s", info->name);
            cr_expect_not(compare_element(d, want, NAN, bound), "%s", info->name);
        }
    }
}
