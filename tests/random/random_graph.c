/* The random program generator: values, shapes, and the outline of a program. */
#include "random/random_graph.h"

#include "random/random_state.h"

#include <math.h>

RandomGraphOptions random_graph_defaults(void) {
    return (RandomGraphOptions){
        .min_statements = 3, .max_statements = 30, .max_elems = 1 << 15, .param_percent = 25};
}

RandomValue *random_value(RandomState *s, int value) {
    return &s->values.data[value];
}

double random_limit(Dtype dtype) {
    if (dtype_in(dtype, DTS_STORED)) return dtype_max(dtype);
    if (!dtype_is_int(dtype)) return dtype == DT_F16 ? 2e4 : 1e8;
    return dtype_is_wide(dtype) ? 0x1p53 : dtype == DT_I32 ? 0x1p31 : dtype_round(dtype, INFINITY);
}

double random_least(Dtype dtype) {
    return dtype_is_unsigned(dtype) ? 0 : -random_limit(dtype);
}

/* The largest number of elements; -1 beyond the limit. */
static int64_t random_n_elems(RandomState *s, const Shape *shape) {
    int64_t n = 1;
    for (uint32_t k = 0; k < shape->rank; k++) {
        int64_t hi = dim_hi(s->dims, shape->dims[k]);
        if (hi > s->options.max_elems) return -1;
        n *= hi > 0 ? hi : 1;
        if (n > s->options.max_elems) return -1;
    }
    return n;
}

bool random_fits(RandomState *s, const Shape *shape) {
    for (uint32_t k = 0; k < shape->rank; k++)
        if (!shape->dims[k] || dim_lo(s->dims, shape->dims[k]) < 0) return false;
    return shape->rank <= 5 && random_n_elems(s, shape) >= 0;
}

const char *random_shape_str(RandomState *s, const Shape *shape) {
    Text text = {.arena = s->arena};
    text_puts(&text, "[");
    for (uint32_t k = 0; k < shape->rank; k++) {
        if (k) text_puts(&text, ", ");
        dim_print(s->dims, shape->dims[k], &text);
    }
    text_puts(&text, "]");
    return text_str(&text);
}

const char *random_number(RandomState *s, Dtype dtype, double value) {
    if (dtype == DT_BOOL) return value != 0 ? "true" : "false";
    if (dtype_is_int(dtype)) return str_format(s->arena, "%.0f", value);
    const char *text = str_format(s->arena, "%.6g", value);
    bool is_float = false;
    for (const char *c = text; *c; c++) is_float = is_float || *c == '.' || *c == 'e';
    return is_float ? text : str_format(s->arena, "%s.0", text);
}

const char *random_within(RandomState *s, int value, double *lo, double *hi) {
    const RandomValue *v = random_value(s, value);
    *lo = fmax(*lo, random_least(v->dtype));
    *hi = fmax(*lo, *hi);
    if (v->dtype == DT_BOOL || (v->lo >= *lo && v->hi <= *hi)) {
        *lo = v->lo;
        *hi = v->hi;
        return v->name;
    }
    bool is_stored = dtype_in(v->dtype, DTS_STORED);
    Dtype dtype = is_stored ? dtype_compute(v->dtype) : v->dtype;
    const char *least = random_number(s, dtype, *lo), *most = random_number(s, dtype, *hi);
    if (!is_stored) return str_format(s->arena, "clamp(%s, %s, %s)", v->name, least, most);
    return str_format(s->arena, "cast(clamp(cast(%s, %s), %s, %s), %s)", v->name, dtype_name(dtype),
                      least, most, dtype_name(v->dtype));
}

/* Tensors without elements. */

bool random_wants_empty(RandomState *s) {
    return s->empty_percent && rng_chance(&s->empties, s->empty_percent);
}

/* How much of a program is empty. A program with many empty tensors computes little. */
static void choose_empties(RandomState *s, uint64_t seed) {
    static const uint32_t percents[] = {0, 4, 12};
    s->empties = rng_new(~seed);
    s->empty_percent = s->options.without_empty ? 0 : percents[rng_below(&s->empties, 3)];
}

DimId random_empty_extent(RandomState *s) {
    uint32_t n_symbols = dim_n_symbols(s->dims);
    if (!n_symbols || rng_chance(&s->empties, 50)) return dim_const(s->dims, 0);
    DimId symbol = dim_symbol(s->dims, rng_below(&s->empties, n_symbols));
    return dim_sub(s->dims, symbol, dim_const(s->dims, dim_lo(s->dims, symbol)));
}

/* Shapes. */

static DimId random_extent(RandomState *s) {
    static const int64_t extents[] = {1, 2, 3, 5, 7, 8, 16, 17, 31, 32, 33, 64, 100};
    uint32_t n_symbols = dim_n_symbols(s->dims);
    if (n_symbols && rng_chance(&s->rng, 45)) {
        DimId symbol = dim_symbol(s->dims, rng_below(&s->rng, n_symbols));
        uint32_t form = rng_below(&s->rng, 8);
        if (form == 0) return dim_add(s->dims, symbol, dim_const(s->dims, 1));
        if (form == 1) return dim_mul_const(s->dims, symbol, 2);
        return symbol;
    }
    if (rng_chance(&s->rng, 1)) return dim_const(s->dims, 0);
    return dim_const(s->dims, extents[rng_below(&s->rng, 13)]);
}

Shape random_shape(RandomState *s, uint32_t min_rank, uint32_t max_rank) {
    static const uint8_t ranks[] = {0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4};
    Shape shape = {.rank = ranks[rng_below(&s->rng, sizeof ranks)]};
    if (shape.rank < min_rank) shape.rank = min_rank;
    if (shape.rank > max_rank) shape.rank = max_rank;
    for (uint32_t k = 0; k < shape.rank; k++)
        shape.dims[k] = s->pool[rng_below(&s->rng, RANDOM_POOL)];
    for (uint32_t k = 0; !random_fits(s, &shape); k = (k + 1) % shape.rank)
        shape.dims[k] = dim_const(s->dims, rng_between(&s->rng, 1, 5));
    if (shape.rank && random_wants_empty(s))
        shape.dims[rng_below(&s->empties, shape.rank)] = random_empty_extent(s);
    return shape;
}

/* Values. */

static int add_value(RandomState *s, RandomValue value) {
    vec_push(s->arena, &s->values, value);
    return (int)s->values.n - 1;
}

static const char *type_str(RandomState *s, Dtype dtype, const Shape *shape) {
    return str_format(s->arena, "%s%s", dtype_name(dtype), random_shape_str(s, shape));
}

int random_input(RandomState *s, Dtype dtype, const Shape *shape) {
    bool is_param = !s->options.without_params && rng_chance(&s->rng, s->options.param_percent);
    ProgramItems *list = is_param ? &s->program.params : &s->program.inputs;
    const char *name = str_format(s->arena, "%c%u", is_param ? 'w' : 'x', list->n);
    ProgramItem item = {.name = name,
                        .type = type_str(s, dtype, shape),
                        .expr = str_format(s->arena, "layer.%s", name)};
    vec_push(s->arena, list, item);
    double reach = dtype_is_int(dtype) ? 10 : 4;
    RandomValue value = {.name = name, .dtype = dtype, .shape = *shape, .lo = -reach, .hi = reach};
    if (dtype == DT_BOOL) value.lo = 0, value.hi = 1;
    value.lo = fmax(value.lo, random_least(dtype));
    return add_value(s, value);
}

/* The last statement's value of fitting rank, cast, so that the program is connected. */
static int cast_of_late_value(RandomState *s, Dtype dtype, uint32_t min_rank, uint32_t max_rank) {
    for (uint32_t i = s->values.n; i-- > 0;) {
        const RandomValue v = *random_value(s, (int)i);
        if (!v.is_statement || v.shape.rank < min_rank || v.shape.rank > max_rank) continue;
        if (v.dtype == dtype || rng_chance(&s->rng, 30)) continue;
        double limit = fmin(random_limit(dtype), 2e9), lo = -limit, hi = limit;
        if (v.dtype == DT_F16) lo = fmax(lo, -3e4), hi = fmin(hi, 3e4);
        const char *text = random_within(s, (int)i, &lo, &hi);
        if (dtype == DT_BOOL) lo = 0, hi = 1;
        if (dtype_is_int(dtype)) lo = random_least(dtype), hi = limit; /* it may wrap */
        return random_bind(s, dtype, &v.shape, lo, hi,
                           str_format(s->arena, "cast(%s, %s)", text, dtype_name(dtype)));
    }
    return RANDOM_NONE;
}

/* Prefers late values and unused ones: long chains, few dead ends. */
int random_pick(RandomState *s, Dtype dtype, uint32_t min_rank, uint32_t max_rank, int arg) {
    if (arg != RANDOM_NONE) {
        const RandomValue *v = random_value(s, arg);
        return v->shape.rank >= min_rank && v->shape.rank <= max_rank ? arg : RANDOM_NONE;
    }
    int found = RANDOM_NONE;
    uint32_t weight = 0;
    for (uint32_t i = 0; i < s->values.n; i++) {
        const RandomValue *v = &s->values.data[i];
        if (v->dtype != dtype || v->shape.rank < min_rank || v->shape.rank > max_rank) continue;
        uint32_t own = 1u + (v->is_statement ? 2u : 0u) + (v->n_uses == 0 ? 6u : 0u) + i / 4;
        weight += own;
        if (rng_below(&s->rng, weight) < own) found = (int)i;
    }
    bool is_loose = found == RANDOM_NONE || !random_value(s, found)->is_statement;
    if (is_loose && rng_chance(&s->rng, 85)) {
        int cast = cast_of_late_value(s, dtype, min_rank, max_rank);
        if (cast != RANDOM_NONE) return cast;
    }
    if (found != RANDOM_NONE && rng_chance(&s->rng, 92)) return found;
    Shape shape = random_shape(s, min_rank, max_rank);
    return random_input(s, dtype, &shape);
}

int random_bind(RandomState *s, Dtype dtype, const Shape *shape, double lo, double hi,
                const char *text) {
    if (!random_fits(s, shape)) return RANDOM_NONE;
    for (uint32_t i = 0; i < s->values.n; i++)
        s->values.data[i].n_uses += program_mentions(text, s->values.data[i].name);
    const char *name = str_format(s->arena, "v%u", s->program.statements.n);
    vec_push(s->arena, &s->program.statements,
             (ProgramItem){.name = name, .type = type_str(s, dtype, shape), .expr = text});
    return add_value(s, (RandomValue){.name = name,
                                      .dtype = dtype,
                                      .shape = *shape,
                                      .lo = lo,
                                      .hi = hi,
                                      .is_statement = true});
}

int random_make(RandomState *s, OpId op, Dtype dtype, int arg) {
    switch (op_info(op)->cls) {
    case CLASS_SOURCE:
        return random_make_source(s, op, dtype, arg);
    case CLASS_ELTWISE:
        return random_make_eltwise(s, op, dtype, arg);
    case CLASS_CAST:
        return random_make_cast(s, op, dtype, arg);
    case CLASS_REDUCE:
        return random_make_reduce(s, op, dtype, arg);
    case CLASS_ARGREDUCE:
        return random_make_argreduce(s, op, dtype, arg);
    case CLASS_SCAN:
        return random_make_scan(s, op, dtype, arg);
    case CLASS_SORT:
        return random_make_sort(s, op, dtype, arg);
    case CLASS_SEGMENT:
        return random_make_segments(s, op, dtype, arg);
    case CLASS_VIEW:
        return random_make_view(s, op, dtype, arg);
    case CLASS_CONCAT:
        return random_make_concat(s, op, dtype, arg);
    case CLASS_UPDATE:
        return random_make_update(s, op, dtype, arg);
    case CLASS_SCAN_BY: /* tests/front/test_scan_function.c */
    case CLASS_LOOP:    /* random_make_loop makes whole loops */
        return RANDOM_NONE;
    case CLASS_ONLINE:
        return random_make_online(s, op, dtype, arg);
    case CLASS_MATMUL:
        return random_make_matmul(s, op, dtype, arg);
    }
    return RANDOM_NONE;
}

/* The outline: items that the seed prescribes, mixed with random ones. */

typedef struct Cell {
    OpId op;
    Dtype dtype, to; /* to: of a cast */
    OpId consumer;   /* or OP_NONE */
} Cell;

typedef Vec(Cell) Cells;

static bool is_allowed(const RandomState *s, OpId op) {
    OpClass cls = op_info(op)->cls;
    if (cls == CLASS_MATMUL) return !s->options.without_matmul;
    return op != OP_INPUT && op != OP_PARAM && cls != CLASS_LOOP && cls != CLASS_SCAN_BY;
}

static bool is_view(OpId op) {
    return op_info(op)->cls == CLASS_VIEW || op_info(op)->cls == CLASS_CONCAT;
}

bool random_bitcasts(Dtype dtype) {
    return dtype != DT_I64 && dtype != DT_U16;
}

static bool takes(OpId op, Dtype dtype) {
    const OpInfo *info = op_info(op);
    if (info->cls == CLASS_SOURCE) return op != OP_IOTA || dtype_in(dtype, DTS_INDEX);
    if (op == OP_BITCAST) return random_bitcasts(dtype);
    return dtype_in(dtype, info->dtypes);
}

/* Lists every op with every dtype, and every view with a consumer of every kind. */
static void list_cells(RandomState *s, Cells *ops, Cells *views) {
    for (OpId op = OP_NONE + 1; op < OP_COUNT; op++) {
        if (!is_allowed(s, op)) continue;
        for (Dtype d = (Dtype)0; d < DT_COUNT; d++)
            for (Dtype to = (Dtype)0; to < DT_COUNT; to++) {
                bool is_cast = op == OP_CAST;
                if (takes(op, d) && (is_cast ? to != d : to == 0))
                    vec_push(s->arena, ops, (Cell){.op = op, .dtype = d, .to = to});
            }
        for (OpId view = OP_NONE + 1; view < OP_COUNT; view++) {
            if (!is_view(view) || op_info(op)->cls == CLASS_SOURCE) continue;
            bool is_sample = op_info(op)->cls != CLASS_ELTWISE || op % 7 == view % 7;
            if (is_sample) vec_push(s->arena, views, (Cell){.op = view, .consumer = op});
        }
    }
}

static Dtype random_dtype(RandomState *s, OpId op) {
    for (;;) {
        Dtype dtype = (Dtype)rng_below(&s->rng, DT_COUNT);
        if (takes(op, dtype)) return dtype;
    }
}

/* The first ops of the table; those after them are made in whole loops. */
enum { N_DRAWN = OP_LOOP_CARRY - 1 };

/* An op of any class: half elementwise. */
static OpId random_op(RandomState *s) {
    bool wants_eltwise = rng_chance(&s->rng, 50);
    for (;;) {
        OpId op = (OpId)(1 + rng_below(&s->rng, N_DRAWN));
        bool is_eltwise = op_info(op)->cls == CLASS_ELTWISE;
        bool is_rare = op_info(op)->cls == CLASS_SOURCE && rng_chance(&s->rng, 70);
        if (is_allowed(s, op) && is_eltwise == wants_eltwise && !is_rare) return op;
    }
}

static void make_any(RandomState *s) {
    if (!s->options.without_prelude && rng_chance(&s->rng, 8)) {
        random_make_composite(s, (Dtype)rng_below(&s->rng, DT_BF16 + 1), RANDOM_NONE);
        return;
    }
    OpId op = random_op(s);
    int arg = RANDOM_NONE;
    /* Usually continues with the last value, if the op takes its dtype. */
    if (s->values.n && rng_chance(&s->rng, 60)) arg = (int)s->values.n - 1;
    if (arg != RANDOM_NONE && !takes(op, random_value(s, arg)->dtype)) arg = RANDOM_NONE;
    Dtype dtype = arg == RANDOM_NONE ? random_dtype(s, op) : random_value(s, arg)->dtype;
    random_make(s, op, dtype, arg);
}

static bool make_view_and_consumer(RandomState *s, const Cell *cell) {
    int view = random_make(s, cell->op, random_dtype(s, cell->consumer), RANDOM_NONE);
    if (view == RANDOM_NONE) return false;
    return random_make(s, cell->consumer, random_value(s, view)->dtype, view) != RANDOM_NONE;
}

static bool folds(OpId op) {
    OpClass cls = op_info(op)->cls;
    return cls == CLASS_REDUCE || cls == CLASS_ARGREDUCE || cls == CLASS_SCAN ||
           cls == CLASS_SORT || cls == CLASS_SEGMENT;
}

/* A reduction, a scan, a sort or segments over the first, an inner, the last, several or all axes,
 * by its number. */
static bool make_reduction(RandomState *s, uint64_t number) {
    static const struct {
        uint32_t rank, axes;
    } positions[] = {{3, 1}, {3, 2}, {3, 4}, {3, 5}, {2, 3},
                     {4, 6}, {1, 1}, {2, 1}, {2, 2}, {4, 4}};
    enum { N_POSITIONS = sizeof positions / sizeof *positions };
    OpId ops[OP_COUNT];
    uint32_t n = 0;
    for (OpId op = OP_NONE + 1; op < OP_COUNT; op++)
        if (folds(op)) ops[n++] = op;
    uint64_t position = number % N_POSITIONS, rest = number / N_POSITIONS;
    OpId op = ops[rest % n];
    Dtype dtype = (Dtype)(rest / n % DT_COUNT);
    if (!takes(op, dtype)) dtype = random_dtype(s, op);
    int arg =
        random_pick(s, dtype, positions[position].rank, positions[position].rank, RANDOM_NONE);
    if (arg == RANDOM_NONE) return false;
    uint32_t axes = positions[position].axes;
    if (op_info(op)->cls == CLASS_REDUCE)
        return random_make_reduce_axes(s, op, arg, axes) != RANDOM_NONE;
    uint32_t axis = 0;
    while (!(axes >> axis & 1)) axis++;
    if (op_info(op)->cls == CLASS_SCAN)
        return random_make_reduce_axes(s, op, arg, 1u << axis) != RANDOM_NONE;
    if (op_info(op)->cls == CLASS_SEGMENT)
        return random_make_segments_axis(s, op, arg, axis) != RANDOM_NONE;
    if (op_info(op)->cls == CLASS_SORT)
        return random_make_sort_axis(s, op, arg, axis) != RANDOM_NONE;
    return random_make_argreduce_axis(s, op, arg, axis) != RANDOM_NONE;
}

/* Items that seed number `seed` prescribes, so that all seeds together cover the table: item k of
 * N_PRESCRIBED. */
enum {
    N_OPS_EACH = 8,
    N_VIEWS_EACH = 7,
    N_REDUCTIONS_EACH = 13,
    N_PATTERNS_EACH = 1,
    N_PARTS_EACH = 1,
    N_PRESCRIBED = N_OPS_EACH + N_VIEWS_EACH + N_REDUCTIONS_EACH + N_PATTERNS_EACH + N_PARTS_EACH
};

static bool try_prescribed(RandomState *s, uint64_t seed, uint32_t k, const Cells *ops,
                           const Cells *views) {
    if (k < N_OPS_EACH) {
        const Cell *cell = &ops->data[(seed * N_OPS_EACH + k) % ops->n];
        if (cell->op == OP_CAST)
            return random_make_cast_to(s, cell->op, cell->dtype, cell->to) != RANDOM_NONE;
        return random_make(s, cell->op, cell->dtype, RANDOM_NONE) != RANDOM_NONE;
    }
    k -= N_OPS_EACH;
    if (k < N_VIEWS_EACH)
        return make_view_and_consumer(s, &views->data[(seed * N_VIEWS_EACH + k) % views->n]);
    k -= N_VIEWS_EACH;
    if (k < N_REDUCTIONS_EACH) return make_reduction(s, seed * N_REDUCTIONS_EACH + k);
    k -= N_REDUCTIONS_EACH;
    if (k < N_PATTERNS_EACH) return random_make_pattern(s, seed) != RANDOM_NONE;
    /* These have several statements each, so only some seeds have them. */
    if (seed % 4 == 1) return random_make_row_pattern(s, seed / 4);
    return seed % 2 || random_make_parts(s, seed / 2);
}

static void make_prescribed(RandomState *s, uint64_t seed, uint32_t k, const Cells *ops,
                            const Cells *views) {
    for (int attempt = 0; attempt < 12; attempt++)
        if (try_prescribed(s, seed, k, ops, views)) return;
}

/* Every unused value is an output, and sometimes a used one. */
static void make_outputs(RandomState *s) {
    for (uint32_t i = 0; i < s->values.n; i++) {
        RandomValue *v = &s->values.data[i];
        bool is_last = i + 1 == s->values.n && !s->program.outputs.n;
        if (!v->is_statement || (v->n_uses && !is_last && !rng_chance(&s->rng, 8))) continue;
        const char *name = str_format(s->arena, "o%u", s->program.outputs.n);
        vec_push(
            s->arena, &s->program.outputs,
            (ProgramItem){.name = name, .type = type_str(s, v->dtype, &v->shape), .expr = v->name});
    }
}

static void declare_dims(RandomState *s) {
    static const DimSymbol symbols[] = {{.name = "B", .lo = 1, .hi = 16, .multiple = 1},
                                        {.name = "T", .lo = 2, .hi = 40, .multiple = 1},
                                        {.name = "H", .lo = 4, .hi = 24, .multiple = 4}};
    uint32_t n =
        s->options.without_symbols || rng_chance(&s->rng, 15) ? 0 : 1 + rng_below(&s->rng, 3);
    uint32_t first = rng_below(&s->rng, 3);
    for (uint32_t i = 0; i < n; i++) {
        DimSymbol symbol = symbols[(first + i) % 3];
        if (random_wants_empty(s)) symbol.lo = 0;
        dim_declare(s->dims, symbol);
        const char *range =
            str_format(s->arena, "%lld..%lld", (long long)symbol.lo, (long long)symbol.hi);
        if (symbol.multiple > 1)
            range = str_format(s->arena, "%s mult %lld", range, (long long)symbol.multiple);
        vec_push(s->arena, &s->program.dims, (ProgramItem){.name = symbol.name, .type = range});
    }
    for (int i = 0; i < RANDOM_POOL; i++) {
        s->pool[i] = random_extent(s);
        if (random_wants_empty(s)) s->pool[i] = random_empty_extent(s);
    }
}

/* Drops inputs, params and dims that no statement uses. */
static void drop_unused(ProgramItems *items, const char *source) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < items->n; i++) {
        const char *once = strstr(source, items->data[i].name);
        if (once && program_mentions(once + 1, items->data[i].name))
            items->data[n++] = items->data[i];
    }
    items->n = n;
}

Program random_program(Arena *arena, uint64_t seed, const RandomGraphOptions *options) {
    RandomState s = {.arena = arena, .rng = rng_new(seed), .dims = dimtab_new(arena)};
    s.options = options ? *options : random_graph_defaults();
    s.program.arena = arena;
    choose_empties(&s, seed);
    declare_dims(&s);
    Cells ops = {0}, views = {0};
    list_cells(&s, &ops, &views);
    uint32_t n = (uint32_t)rng_between(&s.rng, s.options.min_statements, s.options.max_statements);
    /* Each seed has its own order of items, because a short program takes only the first ones. */
    uint32_t n_prescribed = 0, first = rng_below(&s.rng, N_PRESCRIBED);
    bool is_short = rng_chance(&s.rng, 15);
    for (int attempt = 0; s.program.statements.n < n && attempt < 12; attempt++) {
        if (!is_short && n_prescribed < N_PRESCRIBED && n < s.options.max_statements) n++;
        if (n_prescribed < N_PRESCRIBED && rng_chance(&s.rng, 70))
            make_prescribed(&s, seed, (first + n_prescribed++) % N_PRESCRIBED, &ops, &views);
        else
            make_any(&s);
    }
    if (seed % 4 == 1) random_make_again(&s);
    if (seed % 8 == 3) random_make_loop(&s, seed / 8);
    if (s.options.repeats && seed % 8 == 7) random_make_repeated(&s, seed / 8);
    make_outputs(&s);
    drop_unused(&s.program.inputs, program_print(&s.program));
    drop_unused(&s.program.params, program_print(&s.program));
    drop_unused(&s.program.dims, program_print(&s.program));
    return s.program;
}

char *random_graph_source(Arena *arena, uint64_t seed, const RandomGraphOptions *options) {
    Program program = random_program(arena, seed, options);
    return program_print(&program);
}
