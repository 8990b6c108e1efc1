/* The largest error of a unary op, or of a function of the prelude, on a target: its kernel runs on
 * the values of a dtype, and each result is compared with the exact one. f32 and narrower dtypes
 * have all their values as input, in the order of their bits; the reference of the op table in
 * double is exact to 2^-27 of a unit in the last place. f64 has samples; the same definition in
 * long double is exact to 2^-9.
 *
 * Of an op that the table calls exact, every result must be the correctly rounded one. */
#ifndef FUSEC_TESTS_ULP_H
#define FUSEC_TESTS_ULP_H

#include "lib/compile.h"

#include <fusert.h>

/* Errors found, as a row of tests/ulp/found.def. */
typedef struct UlpRow {
    OpId op; /* or OP_COUNT and the number of a row of functions.def */
    Dtype dtype;
    const Target *target;
    double ulp;        /* the largest error, in units in the last place of the dtype; without
                        * results that are within the op's absolute error */
    double absolute;   /* the largest error of results that only the absolute error allows */
    double at;         /* the argument of the largest error in ULP */
    uint64_t n_values; /* arguments so far */
    uint32_t digest;   /* of the results at fixed arguments: it tells another code's row */
    char date[11];     /* of the last run, as 2026-11-27 */
} UlpRow;

/* Runs one op. Functions return false on failure, with the reason in `error`. */
typedef struct UlpSweep {
    UlpRow row;
    uint32_t n_threads;
    frt_module *module;
    frt_program *program;
    frt_exec *exec;
    void *device_x, *device_y;
    uint8_t *x, *y; /* on the host */
    char error[600];
} UlpSweep;

enum {
    ULP_N_SUBJECTS = OP_COUNT
#define FUNCTION(...) +1
#include "ulp/functions.def"
};

/* Name, definition and bounds of an op or function. */
const OpInfo *ulp_info(OpId op);
/* The op or function of that name; OP_NONE: there is none. */
OpId ulp_subject(const char *name);
/* Whether the op takes one float: a second argument may be omitted. */
bool ulp_takes(OpId op, Dtype dtype);
/* The number of arguments of a whole sweep. */
uint64_t ulp_n_values(Dtype dtype);

/* Begins a sweep, with its digest, or goes on with `row` if its digest is the same. Call ulp_close
 * in any case. */
bool ulp_open(UlpSweep *sweep, const UlpRow *row, uint32_t n_threads);
/* Tries the next arguments, 2^20 at most. */
bool ulp_step(UlpSweep *sweep);
/* Tries the arguments of the digest: 2^20 of the whole range, or all; they do not count. */
bool ulp_sample(UlpSweep *sweep);
void ulp_close(UlpSweep *sweep);

/* Whether the errors are within the bounds of the op table. */
bool ulp_is_within(const UlpRow *row);

/* Reads a row of found.def. False: the line is no row. */
bool ulp_read_row(const char *line, UlpRow *row);
void ulp_print_row(const UlpRow *row, Text *out);

#endif
