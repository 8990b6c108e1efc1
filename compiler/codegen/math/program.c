/* See program.h. The reader is a recursive-descent parser. The steps of a called function are
 * copied into the caller's program; the callee's parameters become names of the arguments. */
#include "codegen/math/program.h"

#include "base/str.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_NAMES = 48, MAX_PARAMETERS = 6, MAX_WINDOW = 32 };

typedef enum { TYPE_ANY, TYPE_F32, TYPE_F64 } TypeFit;

typedef struct Function {
    const char *name;
    TypeFit fit;
    bool needs_ptx;
    const char *parameters, *body;
} Function;

static const Function functions[] = {
#define OF_ANY false
#define OF_PTX true
#define FUNCTION(symbol, fit, device, names, ...) \
    {#symbol, TYPE_##fit, OF_##device, #names, #__VA_ARGS__ ";"},
#include "codegen/math/functions.def"
};

typedef struct Constant {
    const char *name;
    double number[2]; /* indexed by is_f64 */
    uint64_t word[2];
} Constant;

static const Constant constants[] = {
#define NUMBER(symbol, f32, f64) {.name = #symbol, .number = {f32, f64}},
#define WORD(symbol, f32, f64) {.name = #symbol, .word = {f32, f64}},
#include "codegen/math/coefficients.def"
};

typedef struct Table {
    const char *name;
    TypeFit fit;
    const double *numbers;
    uint32_t n;
} Table;

#define TABLE(symbol, fit, ...) static const double symbol##_##fit[] = {__VA_ARGS__};
#include "codegen/math/coefficients.def"

static const Table tables[] = {
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define TABLE(symbol, fit, ...) {#symbol, TYPE_##fit, symbol##_##fit, COUNT_OF(symbol##_##fit)},
#include "codegen/math/coefficients.def"
};

typedef struct OpInfo {
    const char *name;
    MathKind operands, result;
    uint32_t arity;
} OpInfo;

static const OpInfo ops[STEP_COUNT] = {
#define OP(symbol, text, kind, n, to, emitted) [STEP_##symbol] = {text, MATH_##kind, MATH_##to, n},
    STEP_OPS(OP)
#undef OP
};

typedef struct Name {
    const char *text;
    uint32_t step;
} Name;

typedef struct Reader {
    Arena *arena;
    MathProgram *program;
    const char *function, *at;
    bool is_f64;
    Name names[MAX_NAMES];
    uint32_t n_names;
    uint32_t results[MATH_MAX_RESULTS], n_results; /* of the call that was read last */
} Reader;

static bool has_fit(TypeFit fit, bool is_f64) {
    return fit == TYPE_ANY || fit == (is_f64 ? TYPE_F64 : TYPE_F32);
}

static bool are_equal(const char *a, const char *b) {
    return strcmp(a, b) == 0;
}

static uint32_t fail(const Reader *r, const char *what) {
    ice(r->arena, "math function %s: %s at %.20s", r->function, what, r->at);
}

/* Steps of the program. */

static MathStep *step_at(const Reader *r, uint32_t i) {
    return &r->program->steps.data[i];
}

static uint32_t add_step(Reader *r, MathStep step) {
    vec_push(r->arena, &r->program->steps, step);
    return r->program->steps.n - 1;
}

static uint32_t free_constant(Reader *r, double number, uint64_t word) {
    return add_step(
        r, (MathStep){.op = STEP_CONSTANT, .is_free = true, .number = number, .word = word});
}

static uint32_t number_constant(Reader *r, double number) {
    bool is_integer = fabs(number) < 0x1p53 && floor(number) == number;
    return free_constant(r, number, is_integer ? (uint64_t)(int64_t)number : 0);
}

/* The type of the operands: the type of the first operand that has one. */
static MathType operand_type(const Reader *r, MathKind kind, const uint32_t *args, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!step_at(r, args[i])->is_free) return step_at(r, args[i])->type;
    return (MathType){kind, r->is_f64};
}

/* Appends a step. Constants among its operands get the type of the other operands. The condition of
 * a select keeps its own type and is never a constant. */
static uint32_t add_op(Reader *r, StepOp op, const uint32_t *args, uint32_t n, const char *text) {
    uint32_t first = op == STEP_SELECT || op == STEP_RARE_END ? 1 : 0;
    MathType type = operand_type(r, ops[op].operands, args + first, n - first);
    if (n > STEP_MAX_ARGS) fail(r, "operands");
    MathStep step = {.op = op, .type = type, .n_args = n, .text = text};
    for (uint32_t i = 0; i < n; i++) {
        step.args[i] = args[i];
        MathStep constant = *step_at(r, args[i]);
        if (!constant.is_free) continue;
        constant.is_free = false;
        constant.type = type;
        step.args[i] = add_step(r, constant);
    }
    if (ops[op].result != MATH_SAME) step.type.kind = ops[op].result;
    if (op == STEP_WIDEN || op == STEP_NARROW || op == STEP_LOW_BITS)
        step.type.is_f64 = op == STEP_WIDEN;
    return add_step(r, step);
}

static uint32_t add_fma(Reader *r, uint32_t x, uint32_t y, uint32_t z) {
    const uint32_t args[] = {x, y, z};
    return add_op(r, STEP_FMA, args, 3, NULL);
}

static double folded(char sign, double a, double b) {
    return sign == '+' ? a + b : sign == '-' ? a - b : sign == '*' ? a * b : a / b;
}

static uint32_t add_infix(Reader *r, const char *sign, uint32_t a, uint32_t b) {
    const uint32_t args[] = {a, b};
    if (step_at(r, a)->is_free && step_at(r, b)->is_free) {
        double value = folded(*sign, step_at(r, a)->number, step_at(r, b)->number);
        return number_constant(r, value);
    }
    MathKind kind = operand_type(r, MATH_NUMBER, args, 2).kind;
    for (int op = 1; op < STEP_COUNT; op++)
        if (ops[op].operands == kind && are_equal(ops[op].name, sign))
            return add_op(r, (StepOp)op, args, 2, NULL);
    return fail(r, "operator");
}

/* Reading the text. */

static void skip_spaces(Reader *r) {
    while (isspace((unsigned char)*r->at)) r->at++;
}

static bool accept(Reader *r, const char *token) {
    skip_spaces(r);
    size_t length = strlen(token);
    if (strncmp(r->at, token, length) != 0) return false;
    r->at += length;
    return true;
}

static void expect(Reader *r, const char *token) {
    if (!accept(r, token)) fail(r, token);
}

/* Reads a name, which contains dots if it is a PTX instruction. Returns an empty string if there is
 * no name. */
static const char *read_name(Reader *r) {
    skip_spaces(r);
    const char *from = r->at;
    if (isalpha((unsigned char)*from))
        while (isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == '.') r->at++;
    return str_format(r->arena, "%.*s", (int)(r->at - from), from);
}

static uint32_t read_number(Reader *r) {
    char *end_of_number, *end_of_word;
    double number = strtod(r->at, &end_of_number);
    uint64_t word = strtoull(r->at, &end_of_word, 0);
    bool is_word = end_of_number == end_of_word;
    r->at = end_of_number;
    return is_word ? free_constant(r, number, word) : number_constant(r, number);
}

static void bind(Reader *r, const char *name, uint32_t step) {
    if (r->n_names == MAX_NAMES) fail(r, "names");
    r->names[r->n_names++] = (Name){name, step};
}

static uint32_t value_of_name(Reader *r, const char *name) {
    for (uint32_t i = r->n_names; i-- > 0;)
        if (are_equal(r->names[i].text, name)) return r->names[i].step;
    for (size_t i = 0; i < COUNT_OF(constants); i++) {
        if (!are_equal(constants[i].name, name)) continue;
        uint64_t word = constants[i].word[r->is_f64];
        double number = constants[i].number[r->is_f64];
        return word ? free_constant(r, 0, word) : number_constant(r, number);
    }
    return fail(r, "name");
}

static const Table *read_table(Reader *r) {
    const char *name = read_name(r);
    for (size_t i = 0; i < COUNT_OF(tables); i++)
        if (has_fit(tables[i].fit, r->is_f64) && are_equal(tables[i].name, name)) return &tables[i];
    fail(r, "table");
    return NULL;
}

static uint32_t read_expression(Reader *r);

static uint32_t read_poly(Reader *r) {
    uint32_t x = read_expression(r);
    expect(r, ",");
    const Table *table = read_table(r);
    expect(r, ")");
    uint32_t sum = number_constant(r, table->numbers[table->n - 1]);
    for (uint32_t i = table->n - 1; i-- > 0;)
        sum = add_fma(r, sum, x, number_constant(r, table->numbers[i]));
    return sum;
}

/* Each bit of the index selects whether the list is shifted by 16, 8, 4, 2 or 1 places. */
static uint32_t read_slice(Reader *r) {
    const Table *table = read_table(r);
    expect(r, ",");
    uint32_t at = read_expression(r), list[MAX_WINDOW], n_left = table->n;
    expect(r, ",");
    uint32_t n = (uint32_t)step_at(r, read_number(r))->word;
    expect(r, ")");
    for (uint32_t i = 0; i < table->n; i++) list[i] = number_constant(r, table->numbers[i]);
    for (uint32_t places = MAX_WINDOW / 2; places > 0; places /= 2) {
        uint32_t n_needed = n + places - 1;
        uint32_t bit = add_infix(r, "&", at, number_constant(r, places));
        uint32_t is_shifted = add_infix(r, "!=", bit, number_constant(r, 0));
        for (uint32_t i = 0; i < n_needed && i + places < n_left; i++) {
            const uint32_t args[] = {is_shifted, list[i + places], list[i]};
            list[i] = add_op(r, STEP_SELECT, args, 3, NULL);
        }
        if (n_needed < n_left) n_left = n_needed;
    }
    r->n_results = n;
    memcpy(r->results, list, n * sizeof *list);
    return list[0];
}

static uint32_t read_word(Reader *r) {
    MathStep constant = *step_at(r, read_expression(r));
    expect(r, ")");
    constant.is_free = false;
    constant.type = (MathType){MATH_BITS, r->is_f64};
    return add_step(r, constant);
}

static uint32_t read_rare(Reader *r) {
    uint32_t args[3] = {read_expression(r)};
    add_op(r, STEP_RARE, args, 1, NULL);
    expect(r, ",");
    args[1] = read_expression(r);
    expect(r, ",");
    args[2] = read_expression(r);
    expect(r, ")");
    return add_op(r, STEP_RARE_END, args, 3, NULL);
}

static uint32_t read_arguments(Reader *r, uint32_t args[MAX_PARAMETERS]) {
    uint32_t n = 0;
    do {
        if (n == MAX_PARAMETERS) fail(r, "arguments");
        args[n++] = read_expression(r);
    } while (accept(r, ","));
    expect(r, ")");
    return n;
}

static void read_body(Reader *r);

static const Function *find_function(const char *name, bool is_f64, bool has_ptx) {
    for (size_t i = 0; i < COUNT_OF(functions); i++) {
        const Function *f = &functions[i];
        bool fits = has_fit(f->fit, is_f64) && (has_ptx || !f->needs_ptx);
        if (fits && are_equal(f->name, name)) return f;
    }
    return NULL;
}

static void call_function(Reader *r, const Function *f, bool is_f64, const uint32_t *args,
                          uint32_t n_args) {
    Reader own = {.arena = r->arena, .program = r->program, .function = f->name, .is_f64 = is_f64};
    own.at = f->parameters;
    expect(&own, "(");
    for (uint32_t i = 0; i < n_args; i++) {
        bind(&own, read_name(&own), args[i]);
        expect(&own, i + 1 < n_args ? "," : ")");
    }
    own.at = f->body;
    read_body(&own);
    r->n_results = own.n_results;
    memcpy(r->results, own.results, sizeof own.results);
}

static StepOp op_named(const char *name) {
    for (int op = 1; op < STEP_COUNT; op++)
        if (are_equal(ops[op].name, name)) return (StepOp)op;
    return STEP_NONE;
}

static uint32_t read_call(Reader *r, const char *name) {
    static const struct {
        const char *name;
        uint32_t (*read)(Reader *r);
    } forms[] = {
        {"poly", read_poly}, {"slice", read_slice}, {"word", read_word}, {"rare", read_rare}};
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        if (are_equal(forms[i].name, name)) return forms[i].read(r);
    uint32_t args[MAX_PARAMETERS];
    uint32_t n = read_arguments(r, args);
    if (strchr(name, '.')) return add_op(r, STEP_MACHINE, args, n, name);
    bool is_f64 = operand_type(r, MATH_NUMBER, args, n).is_f64;
    const Function *f = find_function(name, is_f64, r->program->has_ptx);
    StepOp op = op_named(name);
    if (f) {
        call_function(r, f, is_f64, args, n);
        return r->results[0];
    }
    if (!op || ops[op].arity != n) fail(r, "call");
    return add_op(r, op, args, n, NULL);
}

static uint32_t read_primary(Reader *r) {
    if (accept(r, "(")) {
        uint32_t value = read_expression(r);
        expect(r, ")");
        return value;
    }
    if (accept(r, "-")) {
        uint32_t value = read_primary(r);
        const MathStep *step = step_at(r, value);
        return step->is_free ? number_constant(r, -step->number)
                             : add_op(r, STEP_NEG, &value, 1, NULL);
    }
    if (isdigit((unsigned char)*r->at)) return read_number(r);
    const char *name = read_name(r);
    if (!*name) fail(r, "value");
    return accept(r, "(") ? read_call(r, name) : value_of_name(r, name);
}

/* The loosest operators are level 0. */
static uint32_t read_infix(Reader *r, uint32_t level) {
    enum { N_LEVELS = 6, N_OPERATORS = 6 };
    static const char *const levels[N_LEVELS][N_OPERATORS] = {
        {"|"}, {"&"}, {"<=", ">=", "==", "!=", "<", ">"}, {"<<", ">>"}, {"+", "-"}, {"*", "/"}};
    if (level == N_LEVELS) return read_primary(r);
    uint32_t value = read_infix(r, level + 1);
    for (uint32_t i = 0; i < N_OPERATORS && levels[level][i]; i++) {
        const char *sign = levels[level][i];
        if (!accept(r, sign)) continue;
        uint32_t right = read_infix(r, level + 1);
        value = add_infix(r, sign, value, right);
        i = UINT32_MAX; /* restarts at the first operator */
    }
    return value;
}

static uint32_t read_expression(Reader *r) {
    uint32_t args[3] = {read_infix(r, 0)};
    if (!accept(r, "?")) return args[0];
    args[1] = read_expression(r);
    expect(r, ":");
    args[2] = read_expression(r);
    return add_op(r, STEP_SELECT, args, 3, NULL);
}

/* Reads an expression, or a call with several results. Returns the number of values. */
static uint32_t read_values(Reader *r, uint32_t values[MATH_MAX_RESULTS]) {
    r->n_results = 0;
    values[0] = read_expression(r);
    if (!r->n_results || values[0] != r->results[0]) return 1;
    memcpy(values, r->results, sizeof r->results);
    return r->n_results;
}

/* Reads `a, b =` and returns the number of names; returns 0 and reads nothing if the text is no
 * assignment. */
static uint32_t read_targets(Reader *r, const char *names[MATH_MAX_RESULTS]) {
    const char *from = r->at;
    uint32_t n = 0;
    do names[n++] = read_name(r);
    while (n < MATH_MAX_RESULTS && accept(r, ","));
    if (*names[n - 1] && accept(r, "=") && *r->at != '=') return n;
    r->at = from;
    return 0;
}

/* Reads statements up to the last one, which lists the results. */
static void read_body(Reader *r) {
    const char *names[MATH_MAX_RESULTS];
    uint32_t values[2 * MATH_MAX_RESULTS], n;
    while ((n = read_targets(r, names)) > 0) {
        if (read_values(r, values) != n) fail(r, "number of results");
        for (uint32_t i = 0; i < n; i++) bind(r, names[i], values[i]);
        expect(r, ";");
    }
    n = 0;
    do n += read_values(r, values + n);
    while (accept(r, ",") && n < MATH_MAX_RESULTS);
    expect(r, ";");
    if (n > MATH_MAX_RESULTS) fail(r, "results");
    r->n_results = n;
    memcpy(r->results, values, n * sizeof *values);
}

static uint32_t count_parameters(const char *text) {
    uint32_t n = 1;
    for (; *text; text++) n += *text == ',';
    return n;
}

MathProgram *math_program_read(Arena *arena, const char *name, bool is_f64, bool has_ptx) {
    MathProgram *program = arena_alloc(arena, sizeof *program);
    *program = (MathProgram){.name = name, .is_f64 = is_f64, .has_ptx = has_ptx};
    Reader r = {.arena = arena, .program = program, .function = name, .at = "", .is_f64 = is_f64};
    const Function *f = find_function(name, is_f64, has_ptx);
    StepOp op = op_named(name);
    if (!f && !op) fail(&r, "no such function");
    uint32_t args[MAX_PARAMETERS], n = f ? count_parameters(f->parameters) : ops[op].arity;
    if (n > MAX_PARAMETERS) fail(&r, "parameters");
    for (uint32_t i = 0; i < n; i++)
        args[i] = add_step(&r, (MathStep){.op = STEP_PARAMETER, .type = {MATH_NUMBER, is_f64}});
    if (f)
        call_function(&r, f, is_f64, args, n);
    else {
        r.results[0] = add_op(&r, op, args, n, NULL);
        r.n_results = 1;
    }
    program->n_results = r.n_results;
    memcpy(program->results, r.results, sizeof r.results);
    return program;
}
