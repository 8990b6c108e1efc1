/* Errors of unary ops on the CPU: the rows of found.def are within the bounds of the op table, are
 * of all values, and are those of this code; f16 and bf16 are swept whole, f32 and f64 at the
 * arguments of the digest. `soak --ulp` sweeps the rest. */
#include "tools/ulp.h"

#include <criterion/criterion.h>
#include <math.h>

typedef struct Found {
    const char *op, *dtype, *target;
    double ulp, absolute;
    uint64_t n_values;
    uint32_t digest;
} Found;

static const Found founds[] = {
#define ULP(op, dtype, target, ulp, absolute, at, n_values, digest, date) \
    {#op, #dtype, #target, ulp, absolute, n_values, digest},
#include "ulp/found.def"
};
enum { N_FOUNDS = sizeof founds / sizeof *founds, N_THREADS = 2 };

static const Found *found_of(OpId op, Dtype dtype, const Target *target) {
    for (size_t i = 0; i < N_FOUNDS; i++)
        if (strcmp(founds[i].op, op_info(op)->name) == 0 &&
            strcmp(founds[i].dtype, dtype_name(dtype)) == 0 &&
            strcmp(founds[i].target, target->name) == 0)
            return &founds[i];
    return NULL;
}

/* Calls `check` for every unary op and float dtype that has a row of the target. */
static void for_each_row(TargetId target, void (*check)(const UlpRow *key, const Found *found)) {
    for (int op = 1; op < OP_COUNT; op++)
        for (Dtype dtype = (Dtype)0; dtype < DT_COUNT; dtype++) {
            if (!ulp_takes((OpId)op, dtype)) continue;
            UlpRow key = {.op = (OpId)op, .dtype = dtype, .target = target_get(target)};
            const Found *found = found_of(key.op, dtype, key.target);
            cr_assert(found, "found.def has no row of %s, %s, %s: run `make soak`",
                      op_info(key.op)->name, dtype_name(dtype), key.target->name);
            check(&key, found);
        }
}

static void expect_whole(const UlpRow *key, const Found *found) {
    UlpRow row = *key;
    row.ulp = found->ulp;
    row.absolute = found->absolute;
    cr_expect(ulp_is_within(&row), "%s of %s on %s: %g ULP, or %g", found->op, found->dtype,
              found->target, found->ulp, found->absolute);
    cr_expect_eq(found->n_values, ulp_n_values(key->dtype), "%s of %s on %s", found->op,
                 found->dtype, found->target);
}

Test(ulp, what_was_found_is_within_the_bounds) {
    for_each_row(TARGET_CPU, expect_whole);
    for_each_row(TARGET_SM_90A, expect_whole);
}

/* The row prints three digits. */
static void expect_same(const UlpRow *key, const Found *found) {
    UlpSweep sweep;
    bool is_run = ulp_open(&sweep, key, N_THREADS) && ulp_sample(&sweep);
    const UlpRow *row = &sweep.row;
    cr_expect(is_run, "%s of %s: %s", found->op, found->dtype, sweep.error);
    cr_expect_eq(row->digest, found->digest,
                 "%s of %s computes other bits than those swept: run `make soak`", found->op,
                 found->dtype);
    cr_expect(ulp_is_within(row) && row->ulp <= found->ulp + 0.001,
              "%s of %s: %g ULP at %a, or %g; found.def has %g", found->op, found->dtype, row->ulp,
              row->at, row->absolute, found->ulp);
    ulp_close(&sweep);
}

/* The functions of the prelude are held to their bounds at the same arguments. */
static void expect_within(OpId function, Dtype dtype) {
    UlpSweep sweep;
    UlpRow key = {.op = function, .dtype = dtype, .target = target_get(TARGET_CPU)};
    const char *name = ulp_info(function)->name;
    bool is_run = ulp_open(&sweep, &key, N_THREADS) && ulp_sample(&sweep);
    cr_expect(is_run, "%s of %s: %s", name, dtype_name(dtype), sweep.error);
    cr_expect(ulp_is_within(&sweep.row), "%s of %s: %g ULP at %a, or %g", name, dtype_name(dtype),
              sweep.row.ulp, sweep.row.at, sweep.row.absolute);
    ulp_close(&sweep);
}

Test(ulp, functions_of_the_prelude_are_within_their_bounds, .timeout = 300) {
    for (int i = OP_COUNT; i < ULP_N_SUBJECTS; i++)
        for (Dtype dtype = (Dtype)0; dtype < DT_COUNT; dtype++)
            if (dtype_in(dtype, DTS_FLOAT)) expect_within((OpId)i, dtype);
}

Test(ulp, ops_have_the_errors_that_were_found, .timeout = 300) {
    for_each_row(TARGET_CPU, expect_same);
}
