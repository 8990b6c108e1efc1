/* Makers of elementwise statements, casts, sources, reductions, matmuls and composites. */
#include "random/random_state.h"

#include <math.h>

/* Infix spellings, from the front end's own list. */
static const char *infix_of(OpId op) {
    static const struct {
        OpId op;
        const char *spelling;
    } all[] = {
#define SUGAR(sym, spelling, of) {OP_##of, spelling},
#include "front/sugar.def"
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].op == op && op_info(op)->min_args == 2) return all[i].spelling;
    return NULL;
}

/* One operand: its text, and the range of its elements. */
typedef struct Operand {
    const char *text;
    Dtype dtype;
    int value; /* RANDOM_NONE for a literal */
    double lo, hi;
} Operand;

/* A shape that broadcasts to `shape`: without some leading axes, and with some extents 1. */
static Shape partner_shape(RandomState *s, const Shape *shape) {
    Shape part = *shape;
    uint32_t form = rng_below(&s->rng, 10);
    if (form < 4 && part.rank) {
        uint32_t drop = rng_below(&s->rng, part.rank + 1);
        for (uint32_t k = drop; k < part.rank; k++) part.dims[k - drop] = part.dims[k];
        part.rank -= drop;
    }
    for (uint32_t k = 0; k < part.rank; k++)
        if (form < 6 && rng_chance(&s->rng, 40)) part.dims[k] = dim_const(s->dims, 1);
    return part;
}

/* A value of the dtype whose shape broadcasts with `*shape`; `*shape` becomes the joint shape. */
static int partner(RandomState *s, Dtype dtype, Shape *shape) {
    int found = RANDOM_NONE;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->values.n && rng_chance(&s->rng, 98); i++) {
        Shape joint = *shape;
        const RandomValue *v = &s->values.data[i];
        if (v->dtype != dtype || !shape_broadcast(s->dims, &joint, &v->shape)) continue;
        if (random_fits(s, &joint) && rng_below(&s->rng, ++n) == 0) found = (int)i;
    }
    if (found == RANDOM_NONE || rng_chance(&s->rng, 20)) {
        Shape part = partner_shape(s, shape);
        found = random_input(s, dtype, &part);
    }
    return shape_broadcast(s->dims, shape, &random_value(s, found)->shape) ? found : RANDOM_NONE;
}

static Operand operand_of(RandomState *s, int value) {
    const RandomValue *v = random_value(s, value);
    return (Operand){v->name, v->dtype, value, v->lo, v->hi};
}

static Operand literal(RandomState *s, OpId op, Dtype dtype) {
    const OpInfo *info = op_info(op);
    double lo = fmax(info->domain_lo, -3), hi = fmin(info->domain_hi, 3);
    double number = dtype_is_int(dtype) ? (double)rng_between(&s->rng, -3, 7)
                                        : floor(rng_uniform(&s->rng, lo, hi) * 8 + 1) / 8;
    number = fmax(number, random_least(dtype));
    return (Operand){random_number(s, dtype, number), dtype, RANDOM_NONE, number, number};
}

/* A sample of the range: the least, the greatest, zero if it is between them, or any. */
static double sample_operand(RandomState *s, const Operand *operand, uint32_t which) {
    double a = operand->lo, b = operand->hi;
    if (which == 0) return a;
    if (which == 1) return b;
    if (which == 2) return a < 0 && b > 0 ? 0 : a;
    return rng_uniform(&s->rng, a, b);
}

/* The range of the op's results on samples of its operands' ranges, corners first. False: a result
 * is not finite or exceeds the limit. */
static bool sample_range(RandomState *s, const OpInfo *info, Dtype data, const Operand *operands,
                         uint32_t n, double *lo, double *hi) {
    static const uint32_t power_of_3[] = {1, 3, 9};
    bool is_int = dtype_kind(data) != KIND_FLOAT;
    *lo = INFINITY;
    *hi = -INFINITY;
    for (uint32_t i = 0; i < 96; i++) {
        double v[3] = {info->default_last, info->default_last, info->default_last};
        for (uint32_t k = 0; k < n; k++) {
            v[k] = sample_operand(s, &operands[k], i < 27 ? i / power_of_3[k] % 3 : 3);
            if (is_int) v[k] = nearbyint(v[k]);
        }
        double y = is_int ? (double)info->ref_int((int64_t)v[0], (int64_t)v[1], (int64_t)v[2])
                          : info->ref(v[0], v[1], v[2]);
        if (is_int && (y > random_limit(data) || y < random_least(data))) { /* it wraps */
            *lo = random_least(data);
            *hi = random_limit(data);
            return true;
        }
        if (!isfinite(y) || fabs(y) > random_limit(data)) return false;
        *lo = fmin(*lo, y);
        *hi = fmax(*hi, y);
    }
    return true;
}

static void confine(RandomState *s, Operand *operand, double lo, double hi) {
    if (operand->value == RANDOM_NONE || operand->dtype == DT_BOOL) return;
    if (dtype_is_int(operand->dtype)) {
        lo = ceil(lo);
        hi = fmax(lo, floor(hi));
    }
    operand->lo = lo;
    operand->hi = hi;
    operand->text = random_within(s, operand->value, &operand->lo, &operand->hi);
}

/* Restricts the operands as little as possible: not at all, to the op's domain, or to a small part
 * of it. Tolerances are promised on the domain only. */
static bool tame(RandomState *s, const OpInfo *info, Dtype data, Operand *operands, uint32_t n,
                 double *lo, double *hi) {
    bool is_exact = op_ulp(info, data) == 0;
    if (is_exact && sample_range(s, info, data, operands, n, lo, hi)) return true;
    for (uint32_t k = 0; k < n; k++) confine(s, &operands[k], info->domain_lo, info->domain_hi);
    if (sample_range(s, info, data, operands, n, lo, hi)) return true;
    for (uint32_t k = 0; k < n; k++)
        confine(s, &operands[k], fmax(info->domain_lo, 0.5), fmin(info->domain_hi, 2));
    return sample_range(s, info, data, operands, n, lo, hi);
}

static const char *call_text(RandomState *s, OpId op, const Operand *operands, uint32_t n) {
    const char *infix = infix_of(op);
    if (infix && n == 2 && rng_chance(&s->rng, 60))
        return str_format(s->arena, "%s %s %s", operands[0].text, infix, operands[1].text);
    Text text = {.arena = s->arena};
    text_printf(&text, "%s(", op_info(op)->name);
    for (uint32_t k = 0; k < n; k++) text_printf(&text, "%s%s", k ? ", " : "", operands[k].text);
    text_puts(&text, ")");
    return text_str(&text);
}

int random_make_eltwise(RandomState *s, OpId op, Dtype dtype, int arg) {
    const OpInfo *info = op_info(op);
    uint32_t n = (uint32_t)rng_between(&s->rng, info->min_args, info->max_args);
    Operand operands[3];
    uint32_t data_at = info->result == RESULT_SELECT ? 1 : 0;
    int first = random_pick(s, dtype, 0, 4, arg);
    if (first == RANDOM_NONE) return RANDOM_NONE;
    operands[data_at] = operand_of(s, first);
    Shape shape = random_value(s, first)->shape;
    for (uint32_t k = 0; k < n; k++) {
        if (k == data_at) continue;
        Dtype own = k < data_at ? DT_BOOL : dtype;
        bool is_literal = own != DT_BOOL && rng_chance(&s->rng, 30);
        int value = is_literal ? RANDOM_NONE : partner(s, own, &shape);
        if (!is_literal && value == RANDOM_NONE) return RANDOM_NONE;
        operands[k] = is_literal ? literal(s, op, dtype) : operand_of(s, value);
    }
    /* A noncommutative op may get the last value as either operand. */
    if (n == 2 && data_at == 0 && rng_chance(&s->rng, 30)) {
        Operand swapped = operands[0];
        operands[0] = operands[1];
        operands[1] = swapped;
    }
    double lo, hi;
    if (!tame(s, info, dtype, operands, n, &lo, &hi)) return RANDOM_NONE;
    Dtype result = info->result == RESULT_BOOL ? DT_BOOL : dtype;
    return random_bind(s, result, &shape, lo, hi, call_text(s, op, operands, n));
}

/* To an integer or bool of the same width: floats of any bits would leave the ops' domains. */
static int make_bitcast(RandomState *s, int from) {
    const RandomValue v = *random_value(s, from);
    uint32_t first = rng_below(&s->rng, DT_COUNT);
    for (uint32_t i = 0; i < DT_COUNT; i++) {
        Dtype to = (Dtype)((first + i) % DT_COUNT);
        if (dtype_bytes(v.dtype) != dtype_bytes(to) || v.dtype == to || dtype_is_float(to))
            continue;
        double hi = dtype_is_bool(to) ? 1 : random_limit(to);
        return random_bind(s, to, &v.shape, dtype_is_bool(to) ? 0 : random_least(to), hi,
                           str_format(s->arena, "bitcast(%s, %s)", v.name, dtype_name(to)));
    }
    return RANDOM_NONE;
}

static int make_cast(RandomState *s, OpId op, int from, Dtype to) {
    if (from == RANDOM_NONE) return RANDOM_NONE;
    if (op == OP_BITCAST) return make_bitcast(s, from);
    double limit = fmin(random_limit(to), 2e9), lo = -limit, hi = limit;
    const char *text = random_within(s, from, &lo, &hi);
    if (to == DT_BOOL) lo = 0, hi = 1;
    if (dtype_is_int(to)) lo = random_least(to), hi = limit; /* it may wrap */
    Shape shape = random_value(s, from)->shape;
    return random_bind(s, to, &shape, lo, hi,
                       str_format(s->arena, "%s(%s, %s)", op_info(op)->name, text, dtype_name(to)));
}

int random_make_cast(RandomState *s, OpId op, Dtype dtype, int arg) {
    int from = random_pick(s, dtype, 0, 4, arg);
    Dtype to = (Dtype)rng_below(&s->rng, DT_COUNT);
    if (to == dtype) to = (Dtype)((to + 1) % DT_COUNT);
    return make_cast(s, op, from, to);
}

int random_make_cast_to(RandomState *s, OpId op, Dtype dtype, Dtype to) {
    return make_cast(s, op, random_pick(s, dtype, 0, 4, RANDOM_NONE), to);
}

int random_make_source(RandomState *s, OpId op, Dtype dtype, int arg) {
    (void)arg;
    if (op == OP_CONST) {
        double number =
            dtype == DT_BOOL ? rng_below(&s->rng, 2) : floor(rng_uniform(&s->rng, -4, 5));
        number = fmax(number, random_least(dtype));
        Shape scalar = {0};
        return random_bind(s, dtype, &scalar, number, number,
                           str_format(s->arena, "const(%s, %s)", random_number(s, dtype, number),
                                      dtype_name(dtype)));
    }
    Shape shape = random_shape(s, 1, 4);
    uint32_t axis = rng_below(&s->rng, shape.rank);
    double hi = (double)dim_hi(s->dims, shape.dims[axis]);
    return random_bind(s, dtype, &shape, 0, hi,
                       str_format(s->arena, "%s(%s, axis=%u%s)", op_info(op)->name,
                                  random_shape_str(s, &shape), axis,
                                  dtype == DT_I64 ? ", dtype=i64" : ""));
}

/* Reductions. */

/* `, axis=1`, a list, or nothing for all axes; sometimes counted from the end. */
static const char *axes_text(RandomState *s, uint32_t rank, uint32_t axes) {
    if (axes == (1u << rank) - 1 && rng_chance(&s->rng, 50)) return "";
    bool is_single = (axes & (axes - 1)) == 0, from_end = rng_chance(&s->rng, 40);
    Text text = {.arena = s->arena};
    text_puts(&text, is_single ? ", axis=" : ", axis=[");
    bool any = false;
    for (int k = 0; k < (int)rank; k++) {
        if (!(axes >> k & 1)) continue;
        text_printf(&text, "%s%d", any ? ", " : "", from_end ? k - (int)rank : k);
        any = true;
    }
    if (!is_single) text_puts(&text, "]");
    return text_str(&text);
}

/* The elements of a reduction of the argument, as text, in a range where no result overflows; and
 * the range of the results. `n`: the most elements of a result. */
static const char *reduced_text(RandomState *s, OpId op, int arg, double n, double *least,
                                double *most) {
    const OpInfo *info = op_info(op);
    const RandomValue v = *random_value(s, arg);
    double limit = random_limit(v.dtype), lo = -limit, hi = limit;
    if (info->combine == PRIM_ADD) lo = -(hi = limit / n);
    if (info->combine == PRIM_MUL && !dtype_is_int(v.dtype)) {
        hi = pow(limit, 1 / n); /* so that the product of all elements stays below the limit */
        lo = 1 / hi;
    }
    if (info->combine == PRIM_LOGADDEXP) lo = -50, hi = 50;
    const char *text = dtype_is_int(v.dtype) ? v.name : random_within(s, arg, &lo, &hi);
    double reach = fmax(fabs(lo), fabs(hi));
    if (dtype_is_int(v.dtype) && (info->orders || dtype_is_unsigned(v.dtype)))
        lo = random_least(v.dtype), hi = limit;
    else if (info->combine == PRIM_ADD && !info->divides_by_count)
        lo = -n * reach, hi = n * reach;
    else if (info->combine == PRIM_LOGADDEXP)
        hi += log(n);
    else if (info->combine == PRIM_MUL)
        lo = 1 / limit, hi = limit;
    *least = lo, *most = hi;
    return text;
}

int random_make_reduce_axes(RandomState *s, OpId op, int arg, uint32_t axes) {
    const OpInfo *info = op_info(op);
    const RandomValue v = *random_value(s, arg);
    double n = 1, lo, hi;
    for (uint32_t k = 0; k < v.shape.rank; k++)
        if (axes >> k & 1) n *= fmax(1, (double)dim_hi(s->dims, v.shape.dims[k]));
    const char *text = reduced_text(s, op, arg, n, &lo, &hi);
    bool keep = rng_chance(&s->rng, 40);
    bool is_scan = info->cls == CLASS_SCAN;
    Shape shape = is_scan ? v.shape : shape_reduced(s->dims, &v.shape, axes, keep);
    return random_bind(s, v.dtype, &shape, lo, hi,
                       str_format(s->arena, "%s(%s%s%s)", info->name, text,
                                  axes_text(s, v.shape.rank, axes),
                                  keep && !is_scan ? ", keep=true" : ""));
}

int random_make_scan(RandomState *s, OpId op, Dtype dtype, int arg) {
    int from = random_pick(s, dtype, 1, 4, arg);
    if (from == RANDOM_NONE) return RANDOM_NONE;
    uint32_t rank = random_value(s, from)->shape.rank;
    return random_make_reduce_axes(s, op, from, 1u << rng_below(&s->rng, rank));
}

int random_make_reduce(RandomState *s, OpId op, Dtype dtype, int arg) {
    int from = random_pick(s, dtype, 1, 4, arg);
    if (from == RANDOM_NONE) return RANDOM_NONE;
    uint32_t rank = random_value(s, from)->shape.rank;
    uint32_t axes = 1 + rng_below(&s->rng, (1u << rank) - 1);
    if (rng_chance(&s->rng, 40)) axes = 1u << (rank - 1);
    return random_make_reduce_axes(s, op, from, axes);
}

int random_make_argreduce_axis(RandomState *s, OpId op, int arg, uint32_t axis) {
    Shape shape = random_value(s, arg)->shape;
    bool keep = rng_chance(&s->rng, 30);
    double hi = (double)dim_hi(s->dims, shape.dims[axis]);
    Shape result = shape_reduced(s->dims, &shape, 1u << axis, keep);
    return random_bind(s, DT_I32, &result, 0, hi,
                       str_format(s->arena, "%s(%s, axis=%u%s)", op_info(op)->name,
                                  random_value(s, arg)->name, axis, keep ? ", keep=true" : ""));
}

int random_make_sort_axis(RandomState *s, OpId op, int arg, uint32_t axis) {
    Shape shape = random_value(s, arg)->shape;
    double hi = (double)dim_hi(s->dims, shape.dims[axis]);
    return random_bind(s, DT_I32, &shape, 0, hi,
                       str_format(s->arena, "%s(%s, axis=%u)", op_info(op)->name,
                                  random_value(s, arg)->name, axis));
}

/* Segments of one, two or three elements, the last ones perhaps without any; extremes, which are
 * infinite of nothing, of all elements. */
int random_make_segments_axis(RandomState *s, OpId op, int arg, uint32_t axis) {
    const RandomValue v = *random_value(s, arg);
    bool is_whole = !op_info(op)->orders;
    uint32_t n = is_whole ? 1 : 1 + rng_below(&s->rng, 6);
    double lo, hi, most = fmax(1, (double)dim_hi(s->dims, v.shape.dims[axis]));
    const char *text = reduced_text(s, op, arg, most, &lo, &hi), *shape_text;
    Shape shape = v.shape;
    shape_text = random_shape_str(s, &shape);
    shape.dims[axis] = dim_const(s->dims, n);
    return random_bind(
        s, v.dtype, &shape, lo, hi,
        str_format(s->arena, "%s(%s, iota(%s, axis=%u%s) %s %u, %u, axis=%u)", op_info(op)->name,
                   text, shape_text, axis, rng_chance(&s->rng, 30) ? ", dtype=i64" : "",
                   is_whole ? "*" : "/", is_whole ? 0 : 1 + rng_below(&s->rng, 3), n, axis));
}

int random_make_segments(RandomState *s, OpId op, Dtype dtype, int arg) {
    int from = random_pick(s, dtype, 1, 4, arg);
    if (from == RANDOM_NONE) return RANDOM_NONE;
    uint32_t rank = random_value(s, from)->shape.rank;
    return random_make_segments_axis(s, op, from, rng_below(&s->rng, rank));
}

int random_make_sort(RandomState *s, OpId op, Dtype dtype, int arg) {
    int from = random_pick(s, dtype, 1, 4, arg);
    if (from == RANDOM_NONE) return RANDOM_NONE;
    uint32_t rank = random_value(s, from)->shape.rank;
    return random_make_sort_axis(s, op, from, rng_below(&s->rng, rank));
}

/* A slice of the value, or all of it, somewhere in the value. */
int random_make_update(RandomState *s, OpId op, Dtype dtype, int arg) {
    int from = random_pick(s, dtype, 1, 4, arg);
    if (from == RANDOM_NONE) return RANDOM_NONE;
    const RandomValue v = *random_value(s, from);
    Shape part = v.shape, one = {.rank = 0};
    uint32_t axis = rng_below(&s->rng, v.shape.rank);
    int place = random_pick(s, DT_I32, 0, 0, RANDOM_NONE);
    if (place == RANDOM_NONE) place = random_input(s, DT_I32, &one);
    if (dim_lo(s->dims, part.dims[axis]) >= 1) part.dims[axis] = dim_const(s->dims, 1);
    Text begin = {.arena = s->arena}, starts = {.arena = s->arena};
    for (uint32_t k = 0; k < part.rank; k++) {
        text_puts(&begin, k ? ", 0" : "0");
        const char *at = k == axis ? random_value(s, place)->name : "0";
        text_printf(&starts, "%s%s", k ? ", " : "", at);
    }
    return random_bind(s, v.dtype, &v.shape, v.lo, v.hi,
                       str_format(s->arena, "%s(%s, slice(%s, begin=[%s], shape=%s), [%s])",
                                  op_info(op)->name, v.name, v.name, text_str(&begin),
                                  random_shape_str(s, &part), text_str(&starts)));
}

int random_make_argreduce(RandomState *s, OpId op, Dtype dtype, int arg) {
    int from = random_pick(s, dtype, 1, 4, arg);
    if (from == RANDOM_NONE) return RANDOM_NONE;
    uint32_t rank = random_value(s, from)->shape.rank;
    return random_make_argreduce_axis(s, op, from, rng_below(&s->rng, rank));
}

/* Matmul: the rhs is a new input, [K,N] or with the batch axes of the lhs. */
int random_make_matmul(RandomState *s, OpId op, Dtype dtype, int arg) {
    int a = random_pick(s, dtype, 2, 4, arg);
    if (a == RANDOM_NONE) return RANDOM_NONE;
    Shape left = random_value(s, a)->shape, right = {.rank = 2}, result = left;
    if (rng_chance(&s->rng, 40)) right = left;
    DimId contracted = left.dims[left.rank - 1];
    right.dims[right.rank - 2] = contracted;
    right.dims[right.rank - 1] = s->pool[rng_below(&s->rng, RANDOM_POOL)];
    for (uint32_t k = 0; k + 2 < right.rank; k++)
        if (rng_chance(&s->rng, 30)) right.dims[k] = dim_const(s->dims, 1);
    result.dims[result.rank - 1] = right.dims[right.rank - 1];
    if (!random_fits(s, &right) || !random_fits(s, &result)) return RANDOM_NONE;
    int b = random_input(s, dtype, &right);
    double n = (double)dim_hi(s->dims, contracted), reach = random_value(s, b)->hi;
    double hi = random_limit(dtype) / (reach * (n + 1)), lo = -hi;
    if (dtype_is_int(dtype)) lo = random_least(dtype), hi = random_limit(dtype);
    const char *text = random_within(s, a, &lo, &hi);
    double most = n * reach * fmax(fabs(lo), fabs(hi)), least = -most;
    const char *name = random_value(s, b)->name, *how = "";
    Dtype out = dtype_compute(dtype);
    if (dtype == DT_F32 && rng_chance(&s->rng, 40)) {
        how = ", precision=\"tf32\"";
        most *= 1 + 0x1p-9; /* error of rounding both operands */
    } else if (out != dtype && rng_chance(&s->rng, 50)) {
        how = str_format(s->arena, ", out=%s", dtype_name(out));
    } else {
        out = dtype;
    }
    if (dtype_is_int(dtype)) least = random_least(out), most = random_limit(out);
    bool is_infix = !*how && rng_chance(&s->rng, 60);
    return random_bind(
        s, out, &result, least, most,
        is_infix ? str_format(s->arena, "%s @ %s", text, name)
                 : str_format(s->arena, "%s(%s, %s%s)", op_info(op)->name, text, name, how));
}

/* The result of an op that quantises rows. The greatest values of rows are at most 60. */
static int quantize(RandomState *s, OpId op, const char *scores, int values, Dtype out,
                    const Shape *result, double n) {
    const RandomValue *v = random_value(s, values);
    Dtype dtype = v->dtype;
    bool is_int = dtype_is_int(dtype), is_stored = dtype_in(dtype, DTS_STORED);
    double scale = is_int || is_stored ? 80 + rng_below(&s->rng, 48) : 1 + rng_below(&s->rng, 3);
    double hi = random_limit(out) / (scale * (n + 1)), lo = -hi;
    if (is_int) lo = random_least(dtype), hi = random_limit(dtype);
    const char *of_values = random_within(s, values, &lo, &hi);
    const char *how =
        out != online_dtype(op, dtype) ? str_format(s->arena, ", out=%s", dtype_name(out)) : "";
    double most = op_info(op)->row ? 60 : n * scale * fmax(fabs(lo), fabs(hi));
    if (!op_info(op)->row)
        how = str_format(s->arena, ", scale=%g%s%s%s", scale,
                         rng_chance(&s->rng, 30) ? ", least=0.5" : "",
                         rng_chance(&s->rng, is_int ? 80 : 20) ? ", round=true" : "", how);
    return random_bind(
        s, out, result, -most, most,
        str_format(s->arena, "%s(%s, %s%s)", op_info(op)->name, scores, of_values, how));
}

/* The other argument is a new input, with the batch axes of the first. Some scores are hidden. */
int random_make_online(RandomState *s, OpId op, Dtype dtype, int arg) {
    Dtype compute = online_compute(dtype);
    int from = random_pick(s, dtype, 2, 4, arg);
    if (from == RANDOM_NONE) return RANDOM_NONE;
    bool is_values = compute != dtype || rng_chance(&s->rng, 50);
    Shape given = random_value(s, from)->shape, other = given, result = given;
    uint32_t rank = given.rank;
    DimId drawn = s->pool[rng_below(&s->rng, RANDOM_POOL)];
    other.dims[rank - 2] = is_values ? drawn : given.dims[rank - 1];
    other.dims[rank - 1] = is_values ? given.dims[rank - 2] : drawn;
    result.dims[rank - (is_values ? 2 : 1)] = drawn;
    if (!random_fits(s, &other) || !random_fits(s, &result)) return RANDOM_NONE;
    int input = random_input(s, is_values ? compute : dtype, &other);
    double lo = -60, hi = 60;
    const char *scores = random_within(s, is_values ? input : from, &lo, &hi);
    bool has_powers = op_info(op)->power;
    if (rng_chance(&s->rng, 25) && has_powers)
        scores = str_format(s->arena, "where(%s >= %s, %s, -inf)", scores,
                            random_number(s, compute, lo / 2), scores);
    const RandomValue *v = random_value(s, is_values ? from : input);
    bool is_log = op_info(op)->row != PRIM_NONE;
    Dtype usual = online_dtype(op, dtype);
    Dtype out = rng_chance(&s->rng, 40) || !dtype_in(dtype, DTS_FLOAT) ? compute : dtype;
    if (!has_powers) {
        double n = (double)dim_hi(s->dims, given.dims[rank - (is_values ? 2 : 1)]);
        return quantize(s, op, scores, is_values ? from : input, out, &result, n);
    }
    const char *how = out != usual ? str_format(s->arena, ", out=%s", dtype_name(out)) : "";
    return random_bind(
        s, out, &result, is_log ? lo : v->lo, is_log ? hi + 64 : v->hi,
        str_format(s->arena, "%s(%s, %s%s)", op_info(op)->name, scores, v->name, how));
}

/* Functions of the prelude by name, with the range of their results. */
static const struct {
    const char *name;
    double lo, hi;
    bool keeps_shape;
} composites[] = {
    {"softmax", 0, 1, true}, {"log_softmax", -200, 0, true}, {"logsumexp", -90, 100, false}};

/* Functions of one number: the range of the argument and that of the result. */
static const struct {
    const char *name;
    double lo, hi, result_lo, result_hi;
} functions[] = {
    {"elu", -60, 60, -1, 60},     {"selu", -60, 60, -2, 64},       {"celu", -60, 60, -1, 60},
    {"mish", -60, 60, -1, 60},    {"hardswish", -60, 60, -1, 60},  {"hardsigmoid", -60, 60, 0, 1},
    {"softsign", -60, 60, -1, 1}, {"logsigmoid", -60, 60, -61, 0}, {"relu6", -60, 60, 0, 6},
    {"expm1", -20, 4, -1, 60},    {"log1p", 0, 60, 0, 5},          {"log10", 0.001, 60, -4, 2},
    {"atan", -60, 60, -2, 2},     {"asin", -1, 1, -2, 2},          {"acos", -1, 1, 0, 4},
    {"tan", -1, 1, -2, 2},        {"sinh", -4, 4, -30, 30},        {"cosh", -4, 4, 1, 30},
    {"asinh", -60, 60, -6, 6},    {"acosh", 1, 60, 0, 6},          {"atanh", -0.9, 0.9, -2, 2},
    {"cbrt", -60, 60, -4, 4},     {"trunc", -60, 60, -60, 60}};

static int make_function(RandomState *s, Dtype dtype, int arg) {
    int from = random_pick(s, dtype, 0, 4, arg);
    if (from == RANDOM_NONE) return RANDOM_NONE;
    uint32_t i = rng_below(&s->rng, sizeof functions / sizeof *functions);
    double lo = functions[i].lo, hi = functions[i].hi;
    const char *text = random_within(s, from, &lo, &hi);
    Shape shape = random_value(s, from)->shape;
    return random_bind(s, dtype, &shape, functions[i].result_lo, functions[i].result_hi,
                       str_format(s->arena, "%s(%s)", functions[i].name, text));
}

/* Functions that move elements, of the last axes or a new one. */
static int make_moved(RandomState *s, Dtype dtype, int arg) {
    int from = random_pick(s, dtype, 2, 4, arg);
    if (from == RANDOM_NONE) return RANDOM_NONE;
    const RandomValue *v = random_value(s, from);
    static const struct {
        const char *name, *parameter;
    } forms[] = {
        {"flip", "axis"}, {"tril", "diagonal"}, {"triu", "diagonal"}, {"unsqueeze", "axis"}};
    uint32_t form = rng_below(&s->rng, sizeof forms / sizeof *forms);
    uint32_t axis = rng_below(&s->rng, v->shape.rank);
    Shape shape = v->shape;
    if (form == 3) {
        for (uint32_t k = shape.rank++; k > axis; k--) shape.dims[k] = shape.dims[k - 1];
        shape.dims[axis] = dim_const(s->dims, 1);
    }
    if (form == 0 && dim_lo(s->dims, shape.dims[axis]) < 1) return RANDOM_NONE;
    return random_bind(s, dtype, &shape, fmin(v->lo, 0), fmax(v->hi, 0),
                       str_format(s->arena, "%s(%s, %s=%u)", forms[form].name, v->name,
                                  forms[form].parameter, axis));
}

int random_make_composite(RandomState *s, Dtype dtype, int arg) {
    if (rng_chance(&s->rng, 10)) return random_make_attention(s, dtype, arg);
    if (rng_chance(&s->rng, 20)) return make_moved(s, dtype, arg);
    if (rng_chance(&s->rng, 50)) return make_function(s, dtype, arg);
    int from = random_pick(s, dtype, 1, 4, arg);
    if (from == RANDOM_NONE) return RANDOM_NONE;
    uint32_t which = rng_below(&s->rng, sizeof composites / sizeof *composites);
    double lo = -60, hi = 60;
    const char *text = random_within(s, from, &lo, &hi);
    Shape shape = random_value(s, from)->shape;
    uint32_t axis = rng_below(&s->rng, shape.rank);
    Shape result = shape;
    if (!composites[which].keeps_shape) result = shape_reduced(s->dims, &shape, 1u << axis, false);
    return random_bind(s, dtype, &result, composites[which].lo, composites[which].hi,
                       str_format(s->arena, "%s(%s, axis=%u)", composites[which].name, text, axis));
}
