/* See ulp.h. Chunks of arguments run one after the other, each on all threads of the runtime.
 * Threads of this file make the arguments and compare the results, a share each. */
#include "tools/ulp.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

enum { MAX_CHUNK = 1 << 20, MAX_THREADS = 64 };

/* The op table's definitions in long double. */
#define REF(...) __VA_ARGS__
#define ELTWISE(sym, name, lo, hi, dts, res, traits, dflt, ref, iref, body, dom, tol, doc) \
    static long double wide_##sym(long double a, long double b, long double c) {           \
        (void)a, (void)b, (void)c;                                                         \
        return (long double)(ref);                                                         \
    }
#include "ir/ops.def"

typedef long double (*WideReference)(long double a, long double b, long double c);
static const WideReference wide_references[OP_COUNT] = {
#define ELTWISE(sym, ...) [OP_##sym] = wide_##sym,
#include "ir/ops.def"
};
#undef REF

/* The functions of the prelude, as if they were ops. */
#define FUNCTION(name, ref, ...)                                                  \
    static double ref_##name(double a, double b, double c) {                      \
        (void)b, (void)c;                                                         \
        return (double)(ref);                                                     \
    }                                                                             \
    static long double wide_##name(long double a, long double b, long double c) { \
        (void)b, (void)c;                                                         \
        return (long double)(ref);                                                \
    }
#include "ulp/functions.def"

static const OpInfo function_infos[] = {
#define FUNCTION(nm, definition, d, s, abs) \
    {.name = #nm,                           \
     .cls = CLASS_ELTWISE,                  \
     .min_args = 1,                         \
     .dtypes = DTS_FLOAT,                   \
     .result = RESULT_SAME,                 \
     .ref = ref_##nm,                       \
     .double_ulp = (d),                     \
     .single_ulp = (s),                     \
     .abs_error = (abs)},
#include "ulp/functions.def"
};
static const WideReference function_wides[] = {
#define FUNCTION(name, ...) wide_##name,
#include "ulp/functions.def"
};

const OpInfo *ulp_info(OpId op) {
    return (int)op < OP_COUNT ? op_info(op) : &function_infos[op - OP_COUNT];
}

static WideReference wide_reference(OpId op) {
    return (int)op < OP_COUNT ? wide_references[op] : function_wides[op - OP_COUNT];
}

OpId ulp_subject(const char *name) {
    for (int i = OP_COUNT; i < ULP_N_SUBJECTS; i++)
        if (strcmp(ulp_info((OpId)i)->name, name) == 0) return (OpId)i;
    return op_by_name(name);
}

typedef union Word64 {
    double number;
    uint64_t bits;
} Word64;

bool ulp_takes(OpId op, Dtype dtype) {
    const OpInfo *info = ulp_info(op);
    return info->cls == CLASS_ELTWISE && info->min_args == 1 && info->result == RESULT_SAME &&
           dtype_is_float(dtype) && dtype_in(dtype, info->dtypes);
}

uint64_t ulp_n_values(Dtype dtype) {
    if (dtype_is_double(dtype)) return (uint64_t)1 << 26;
    return (uint64_t)1 << 8 * dtype_bytes(dtype);
}

/* Elements of one run. */
static uint32_t chunk_elems(Dtype dtype) {
    uint64_t n = ulp_n_values(dtype);
    return n < MAX_CHUNK ? (uint32_t)n : MAX_CHUNK;
}

static size_t chunk_bytes(Dtype dtype) {
    return (size_t)chunk_elems(dtype) * dtype_bytes(dtype);
}

/* Arguments. */

static uint64_t mixed(uint64_t z) {
    z = (z + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 30)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Where the functions of functions.def change their formula, overflow, become subnormal or zero. */
static const double edges[] = {
    0,        0x1p-1074,  0x1p-1022, 0x1p-537,   0x1p-511,  0x1p-54, 0x1p-27,   0.25,    0.46875,
    0.5,      0.55,       0.6,       0.70710678, 0.84375,   0.9375,  1,         1.25,    1.41421356,
    1.5,      2,          2.5,       3,          3.75,      4,       5,         6,       8,
    9,        10,         17.5,      19.0625,    20,        27,      36.7,      37.5,    40,
    64,       87.3365,    88.7228,   103.972,    110,       128,     150,       230,     354.9,
    512,      690,        700,       708.3964,   709.78271, 710,     745.13322, 746,     751.9,
    760,      800,        1022,      1023,       1024,      1074,    1075,      1119,    1500,
    0x1p20,   0x1p27,     0x1p31,    0x1p52,     0x1p53,    0x1p54,  0x1p63,    0x1p128, 0x1p512,
    0x1p1000, 0x1.fp1023, INFINITY,  NAN};

/* Sample number i of f64: bits at random, numbers of every exponent near 1, the neighbours of
 * edges, and of multiples of pi/2. */
static double sample(uint64_t i) {
    uint64_t bits = mixed(i), other = mixed(~i);
    double sign = other >> 63 ? -1 : 1, fraction = (double)(bits >> 11) * 0x1p-53;
    double edge = edges[other % (sizeof edges / sizeof *edges)];
    switch (i % 8) {
    case 0:
        return (Word64){.bits = bits}.number;
    case 1:
        return sign * (double)(bits >> (other % 44 + 20)) * 1.5707963267948966;
    case 2:
    case 3: /* up to 2^10 places away */
        return sign * (Word64){.bits = (Word64){.number = edge}.bits + (bits & 2047) - 1024}.number;
    case 4: /* up to 2^-4 of it away */
        return sign * edge * (1 + ldexp(fraction - 0.5, -(int)(other >> 32) % 40 - 3));
    case 5:
        return sign * ldexp(1 + fraction, (int)(other >> 32 & 127) - 64);
    default:
        return sign * fraction * (i % 16 < 8 ? 16 : 1200);
    }
}

/* Argument number i of the sweep, as bits of the dtype. */
static uint64_t argument_bits(Dtype dtype, uint64_t i) {
    return dtype_is_double(dtype) ? (Word64){.number = sample(i)}.bits : i;
}

/* Errors. */

static double load(Dtype dtype, const uint8_t *bytes) {
    float narrow;
    double wide;
    if (dtype_is_single(dtype)) return memcpy(&narrow, bytes, sizeof narrow), (double)narrow;
    if (dtype_is_double(dtype)) return memcpy(&wide, bytes, sizeof wide), wide;
    return dtype_load(dtype, bytes);
}

/* The part of a chunk that one thread does, and what it finds. */
typedef struct Share {
    const UlpSweep *sweep;
    const OpInfo *info;
    uint32_t begin, end;
    uint64_t first, step; /* numbers of the chunk's arguments */
    double last;          /* the value of an omitted argument */
    double bound, absolute_bound;
    double limit, least_normal, unit; /* 2^1024 in f64; the unit in the last place of 1 */
    double ulp, absolute, at;
} Share;

/* Takes `distance`, from an exact result whose unit in the last place is `unit`. */
static void note(Share *share, double x, long double distance, long double unit) {
    double ulp = (double)(distance / unit);
    bool is_allowed = distance <= share->absolute_bound;
    if (is_allowed && ulp > share->bound && distance > share->absolute)
        share->absolute = (double)distance;
    if (is_allowed || ulp <= share->ulp) return;
    share->ulp = ulp;
    share->at = x;
}

/* NaN, infinity and zero: whether they need no measure. Infinite errors are noted. */
static bool is_special(Share *share, double x, double got, long double want) {
    bool is_wrong = isnan(got) ? !isnan(want) : isnan(want) || isinf(want);
    is_wrong = is_wrong && !(isinf(want) && got == (double)want);
    is_wrong = is_wrong || (want == 0 && got == 0 && !signbit(got) != !signbit(want));
    if (is_wrong) note(share, x, INFINITY, 1);
    return is_wrong || isnan(got) || got == want;
}

/* An infinite result counts as 2^128, in f64 as 2^1024, and so does a larger exact one. */
static void compare_wide(Share *share, double x, double got) {
    WideReference wide = wide_reference(share->sweep->row.op);
    long double want = share->bound > 0 ? wide((long double)x, (long double)share->last, 0)
                                        : (long double)share->info->ref(x, share->last, 0);
    if (is_special(share, x, got, want)) return;
    long double limit = 0x1p1024L, value = isinf(got) ? copysign(limit, (long double)got) : got;
    if (fabs(want) > limit) want = copysign(limit, want);
    int exponent = -1022;
    if (fabs(want) > 0x1p-1022L) exponent = ilogb(want);
    note(share, x, fabs(value - want), ldexp(1.0L, exponent - 52));
}

/* As every op does it: to f32 first. */
static double rounded(Dtype dtype, double value) {
    value = (double)(float)value;
    return dtype_is_single(dtype) ? value : dtype_round(dtype, value);
}

static void compare(Share *share, double x, double got) {
    Dtype dtype = share->sweep->row.dtype;
    double want = share->info->ref(x, share->last, 0);
    if (share->bound == 0) want = rounded(dtype, want);
    if (got == want && want != 0) return;
    if (fabs(want) > share->limit && share->bound > 0 && !isinf(want))
        want = copysign(share->limit, want);
    else if (is_special(share, x, got, (long double)want))
        return;
    if (isinf(got)) got = copysign(share->limit, got);
    double size = fabs(want) < share->least_normal ? share->least_normal : fabs(want);
    Word64 power = {.number = size};
    power.bits &= 0x7ff0000000000000;
    note(share, x, fabs(got - want), power.number * share->unit);
}

static void *fill_share(void *user) {
    const Share *share = user;
    Dtype dtype = share->sweep->row.dtype;
    uint32_t n_bytes = dtype_bytes(dtype);
    for (uint32_t i = share->begin; i < share->end; i++) {
        uint64_t bits = argument_bits(dtype, share->first + i * share->step);
        memcpy(share->sweep->x + (size_t)i * n_bytes, &bits, n_bytes);
    }
    return NULL;
}

static void *compare_share(void *user) {
    Share *share = user;
    Dtype dtype = share->sweep->row.dtype;
    uint32_t n_bytes = dtype_bytes(dtype);
    for (uint32_t i = share->begin; i < share->end; i++) {
        double x = load(dtype, share->sweep->x + (size_t)i * n_bytes);
        double got = load(dtype, share->sweep->y + (size_t)i * n_bytes);
        if (dtype_is_double(dtype))
            compare_wide(share, x, got);
        else
            compare(share, x, got);
    }
    return NULL;
}

/* Of the first `n` elements of a chunk whose arguments have the numbers first, first + step, .. */
static Share share_of(const UlpSweep *sweep, uint32_t n, uint64_t first, uint64_t step) {
    Dtype dtype = sweep->row.dtype;
    const OpInfo *info = ulp_info(sweep->row.op);
    const DtypeInfo *format = dtype_info(dtype);
    int bias = (1 << (format->n_exponent_bits - 1)) - 1;
    return (Share){.sweep = sweep,
                   .info = info,
                   .end = n,
                   .first = first,
                   .step = step,
                   .last = dtype_round(dtype, info->default_last),
                   .bound = op_ulp(info, dtype),
                   .absolute_bound = op_abs_error(info, dtype),
                   .limit = ldexp(1.0, bias + 1),
                   .least_normal = ldexp(1.0, 1 - bias),
                   .unit = ldexp(1.0, 1 - (int)format->n_digits)};
}

static void add_share(UlpRow *row, const Share *share) {
    if (share->absolute > row->absolute) row->absolute = share->absolute;
    if (share->ulp <= row->ulp) return;
    row->ulp = share->ulp;
    row->at = share->at;
}

/* Does `whole` by threads. The share of a thread that cannot be made is done by this one. */
static void in_parallel(UlpSweep *sweep, void *(*work)(void *), const Share *whole) {
    Share shares[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    bool is_running[MAX_THREADS];
    uint32_t n = sweep->n_threads < MAX_THREADS ? sweep->n_threads : MAX_THREADS;
    for (uint32_t t = 0; t < n; t++) {
        shares[t] = *whole;
        shares[t].begin = whole->end / n * t;
        if (t + 1 < n) shares[t].end = whole->end / n * (t + 1);
        is_running[t] = t > 0 && pthread_create(&threads[t], NULL, work, &shares[t]) == 0;
    }
    for (uint32_t t = 0; t < n; t++)
        if (!is_running[t]) work(&shares[t]);
    for (uint32_t t = 0; t < n; t++) {
        if (is_running[t]) pthread_join(threads[t], NULL);
        add_share(&sweep->row, &shares[t]);
    }
}

/* Runs. */

static bool fail(UlpSweep *sweep, const char *why) {
    snprintf(sweep->error, sizeof sweep->error, "%s", why);
    return false;
}

/* A CPU computes in the host's memory. */
static bool bind(UlpSweep *sweep, const char *name, uint8_t *host, void **device,
                 frt_error *error) {
    frt_tensor tensor = {.data = host, .dtype = (frt_dtype)sweep->row.dtype, .rank = 1};
    size_t n_bytes = chunk_bytes(sweep->row.dtype);
    tensor.dims[0] = chunk_elems(sweep->row.dtype);
    if (sweep->row.target->ptx_version) {
        if (frt_device_alloc(sweep->program, n_bytes, device, error)) return false;
        tensor.data = *device;
    }
    return frt_bind(sweep->exec, name, &tensor, error) == FRT_OK;
}

static bool load_program(UlpSweep *sweep) {
    const UlpRow *row = &sweep->row;
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    frt_error error = FRT_ERROR_INIT;
    options.n_threads = (int32_t)sweep->n_threads;
    char source[200];
    const char *dtype = dtype_name(row->dtype);
    snprintf(source, sizeof source, "graph g(x: %s[%u]) -> (y: %s[%u]) { y = %s(x) }", dtype,
             chunk_elems(row->dtype), dtype, chunk_elems(row->dtype), ulp_info(row->op)->name);
    Compiled compiled;
    bool is_good = compile_source(&compiled, source, row->target, COMPILE_FUSED) ||
                   fail(sweep, compiled.messages);
    if (is_good &&
        (frt_module_load_memory(compiled.bytes, compiled.n_bytes, &sweep->module, &error) ||
         frt_program_create(sweep->module, NULL, &options, &sweep->program, &error) ||
         frt_exec_create(sweep->program, &sweep->exec, &error) ||
         !bind(sweep, "x", sweep->x, &sweep->device_x, &error) ||
         !bind(sweep, "y", sweep->y, &sweep->device_y, &error)))
        is_good = fail(sweep, error.message);
    compile_free(&compiled);
    return is_good;
}

static bool run(UlpSweep *sweep) {
    frt_error error = FRT_ERROR_INIT;
    size_t n_bytes = chunk_bytes(sweep->row.dtype);
    bool has_device = sweep->device_x != NULL;
    if (has_device &&
        frt_copy_to_device(sweep->program, sweep->device_x, sweep->x, n_bytes, &error))
        return fail(sweep, error.message);
    if (frt_run(sweep->exec, NULL, &error) || frt_sync(sweep->program, NULL, &error))
        return fail(sweep, error.message);
    if (has_device &&
        frt_copy_from_device(sweep->program, sweep->y, sweep->device_y, n_bytes, &error))
        return fail(sweep, error.message);
    return true;
}

/* Runs arguments of the whole range. The digest is a hash of the results' bits, with one NaN; those
 * of a narrow dtype count 16 times. */
static bool find_digest(UlpSweep *sweep, uint32_t *digest) {
    Dtype dtype = sweep->row.dtype;
    uint64_t hash = 0;
    uint32_t n = chunk_elems(dtype);
    Share all = share_of(sweep, n, 0, dtype_is_single(dtype) ? 4097 : 1);
    in_parallel(sweep, fill_share, &all);
    if (!run(sweep)) return false;
    for (size_t i = 0; i < MAX_CHUNK; i++) {
        uint64_t bits = 0;
        const uint8_t *bytes = sweep->y + i % n * dtype_bytes(dtype);
        memcpy(&bits, bytes, dtype_bytes(dtype));
        if (isnan(load(dtype, bytes))) bits = UINT64_MAX;
        hash = mixed(hash ^ bits);
    }
    *digest = (uint32_t)hash;
    return true;
}

bool ulp_open(UlpSweep *sweep, const UlpRow *row, uint32_t n_threads) {
    *sweep = (UlpSweep){.row = *row, .n_threads = n_threads};
    size_t n_bytes = chunk_bytes(row->dtype);
    uint32_t digest;
    sweep->x = malloc(n_bytes);
    sweep->y = malloc(n_bytes);
    if (!sweep->x || !sweep->y) return fail(sweep, "out of memory");
    if (!load_program(sweep) || !find_digest(sweep, &digest)) return false;
    if (digest != row->digest)
        sweep->row =
            (UlpRow){.op = row->op, .dtype = row->dtype, .target = row->target, .digest = digest};
    return true;
}

bool ulp_sample(UlpSweep *sweep) {
    uint32_t digest;
    Share all = share_of(sweep, chunk_elems(sweep->row.dtype), 0, 1);
    if (!find_digest(sweep, &digest)) return false;
    in_parallel(sweep, compare_share, &all);
    return true;
}

bool ulp_step(UlpSweep *sweep) {
    UlpRow *row = &sweep->row;
    uint64_t n = ulp_n_values(row->dtype) - row->n_values;
    Share chunk = share_of(sweep, chunk_elems(row->dtype), row->n_values, 1);
    in_parallel(sweep, fill_share, &chunk);
    if (!run(sweep)) return false;
    if (n < chunk.end) chunk.end = (uint32_t)n;
    in_parallel(sweep, compare_share, &chunk);
    row->n_values += chunk.end;
    return true;
}

void ulp_close(UlpSweep *sweep) {
    size_t n_bytes = chunk_bytes(sweep->row.dtype);
    frt_exec_free(sweep->exec);
    if (sweep->device_x) frt_device_free(sweep->program, sweep->device_x, n_bytes);
    if (sweep->device_y) frt_device_free(sweep->program, sweep->device_y, n_bytes);
    frt_program_free(sweep->program);
    frt_module_free(sweep->module);
    free(sweep->x);
    free(sweep->y);
}

bool ulp_is_within(const UlpRow *row) {
    const OpInfo *info = ulp_info(row->op);
    return row->ulp <= op_ulp(info, row->dtype) && row->absolute <= op_abs_error(info, row->dtype);
}

/* Rows. */

bool ulp_read_row(const char *line, UlpRow *row) {
    char op[32], dtype[8], target[16];
    *row = (UlpRow){0};
    int n = sscanf(line,
                   "ULP(%31[a-z0-9_], %7[a-z0-9], %15[a-z0-9_-], %lf, %lf, %la, %" SCNu64
                   ", 0x%" SCNx32 ", \"%10[0-9-]\")",
                   op, dtype, target, &row->ulp, &row->absolute, &row->at, &row->n_values,
                   &row->digest, row->date);
    if (n != 9) return false;
    row->op = ulp_subject(op);
    row->target = target_by_name(target);
    return row->op && row->target && dtype_by_name(dtype, &row->dtype);
}

void ulp_print_row(const UlpRow *row, Text *out) {
    text_printf(out, "ULP(%s, %s, %s, %.3f, %.3g, %a, %" PRIu64 ", 0x%08" PRIx32 ", \"%s\")\n",
                ulp_info(row->op)->name, dtype_name(row->dtype), row->target->name, row->ulp,
                row->absolute, row->at, row->n_values, row->digest, row->date);
}
