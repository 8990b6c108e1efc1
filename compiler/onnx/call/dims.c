/* Dims of a model's inputs: numbers, names, and expressions such as `4*T` or `past + 1`. */
#include "base/nearest.h"
#include "onnx/call/import_state.h"

/* How deep the parentheses of an expression may be. */
enum { MAX_NESTED = 32 };

/* The range that is given for a dim, by the model's name or by the graph's; or NULL. */
static const OnnxRange *given_range(const Import *im, Str param, Str name) {
    for (uint32_t i = 0; i < im->source->n_ranges; i++) {
        const OnnxRange *range = &im->source->ranges[i];
        if ((param && strcmp(range->name, param) == 0) || strcmp(range->name, name) == 0)
            return range;
    }
    return NULL;
}

bool onnx_check_ranges(Import *im) {
    for (uint32_t i = 0; i < im->source->n_ranges; i++) {
        const char *wanted = im->source->ranges[i].name;
        Nearest nearest = nearest_to(wanted);
        bool is_dim = false;
        for (uint32_t k = 0; k < im->dims.n && !is_dim; k++) {
            const InputDim *dim = &im->dims.data[k];
            is_dim =
                (dim->param && strcmp(dim->param, wanted) == 0) || strcmp(dim->name, wanted) == 0;
            nearest_try(&nearest, dim->name);
        }
        if (is_dim) continue;
        diag_report(im->diags, DIAG_BAD_ARGUMENT, NULL, (Span){0},
                    "%s: --dim=%s: the model has no dim of this name", im->source->name, wanted);
        if (nearest.best) diag_help(im->diags, "Is it `%s`?", nearest.best);
        return false;
    }
    return true;
}

/* Narrows the range of a dim to the bounds that an earlier try of the import has found. */
static void narrow(const Import *im, DimBound *range) {
    for (uint32_t i = 0; i < im->bounds.n; i++) {
        const DimBound *bound = &im->bounds.data[i];
        if (strcmp(bound->name, range->name) != 0) continue;
        if (bound->least > range->least) range->least = bound->least;
        if (bound->most < range->most) range->most = bound->most;
    }
}

/* The dim of this name; one without a name belongs to its axis alone. One that is given as a
 * multiple is so many times a dim of its own, so that its halves have no rest. */
static DimId named_dim(Import *im, Str param, const char *axis_name) {
    for (uint32_t i = 0; param && i < im->dims.n; i++)
        if (im->dims.data[i].param == param) return im->dims.data[i].dim;
    Str name = onnx_unique_name(im, param ? param : axis_name, "dim");
    const OnnxRange *given = given_range(im, param, name);
    InputDim made = {.param = param, .name = name};
    int64_t times = given ? given->multiple : 1;
    made.bound.name = name;
    if (times > 1)
        made.bound.name =
            onnx_unique_name(im, str_format(im->arena, "%s_%lld", name, (long long)times), "dim");
    made.bound.least = given ? (given->least + times - 1) / times : 1;
    made.bound.most = given ? given->most / times : im->highest_dim;
    narrow(im, &made.bound);
    made.unit = made.bound.least == made.bound.most
                    ? dim_const(im->b->dims, made.bound.least)
                    : build_dim(im->b, made.bound.name, made.bound.least, made.bound.most, 1);
    made.dim = dim_mul_const(im->b->dims, made.unit, times);
    vec_push(im->arena, &im->dims, made);
    return made.dim;
}

/* An expression: sums and products of names and numbers, less numbers, divided by numbers and
 * rounded down. A run must be able to find the dims of its names. So there is one name, times and
 * plus numbers, or each name is by itself a dim of an input. Anything else is a name, as
 * `batch-size` is. */
typedef struct DimText {
    Import *im;
    const char *at;
    bool is_read;  /* its names become dims; else its form alone is looked at */
    bool is_wrong; /* this is no expression */
    bool divides;
    uint32_t n_nested;                  /* parentheses around */
    uint32_t n_names, n_alone, n_steps; /* n_alone: names that are dims by themselves */
} DimText;

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool take(DimText *t, const char *word) {
    while (*t->at == ' ') t->at++;
    size_t n = strlen(word);
    bool is_next = strncmp(t->at, word, n) == 0;
    if (is_next) t->at += n;
    return is_next;
}

/* Notes that the text is no expression. The number that it returns is not used. */
static DimId wrong(DimText *t) {
    t->is_wrong = true;
    return dim_const(t->im->b->dims, 1);
}

static DimId read_number(DimText *t) {
    enum { MAX_DIGITS = 9 };
    int64_t value = 0;
    const char *begin = t->at;
    for (; is_digit(*t->at) && t->at - begin < MAX_DIGITS; t->at++)
        value = 10 * value + (*t->at - '0');
    if (t->at == begin || is_digit(*t->at) || is_letter(*t->at)) return wrong(t);
    return dim_const(t->im->b->dims, value);
}

/* Whether an axis of an input has the name alone. */
static bool is_alone(const Import *im, Str name) {
    const OnnxGraph *graph = im->model->graph;
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        for (uint32_t k = 0; k < graph->inputs.data[i].dims.n; k++)
            if (graph->inputs.data[i].dims.data[k].param == name) return true;
    return false;
}

static DimId read_sum(DimText *t);

/* A name, a number, or a sum in parentheses. */
static DimId read_atom(DimText *t) {
    if (take(t, "(")) {
        if (++t->n_nested > MAX_NESTED) return wrong(t);
        DimId inner = read_sum(t);
        t->n_nested--;
        return take(t, ")") ? inner : wrong(t);
    }
    const char *begin = t->at;
    if (!is_letter(*begin)) return read_number(t);
    while (is_letter(*t->at) || is_digit(*t->at)) t->at++;
    Str name = strtab_intern(t->im->strings, begin, (size_t)(t->at - begin));
    t->n_names++;
    t->n_alone += is_alone(t->im, name);
    return t->is_read ? named_dim(t->im, name, name) : dim_const(t->im->b->dims, 1);
}

/* An operand that must be a number above 0. */
static DimId read_positive(DimText *t) {
    take(t, "");
    DimId value = read_number(t);
    return dim_equals_const(t->im->b->dims, value, 0) ? wrong(t) : value;
}

static DimId read_product(DimText *t) {
    DimTab *dims = t->im->b->dims;
    DimId value = read_atom(t);
    for (; !t->is_wrong; t->n_steps++) {
        if (take(t, "*"))
            value = dim_mul(dims, value, read_atom(t));
        else if (take(t, "//") || take(t, "/"))
            t->divides = true, value = dim_div(dims, value, read_positive(t));
        else
            break;
    }
    return value;
}

static DimId read_sum(DimText *t) {
    DimTab *dims = t->im->b->dims;
    DimId value = read_product(t);
    for (; !t->is_wrong; t->n_steps++) {
        if (take(t, "+"))
            value = dim_add(dims, value, read_product(t));
        else if (take(t, "-"))
            value = dim_sub(dims, value, read_positive(t));
        else
            break;
    }
    return value;
}

/* Whether the text is an expression that a run can solve, and no mere name or number. */
static bool is_expression(Import *im, const char *text) {
    DimText form = {.im = im, .at = text};
    read_sum(&form);
    take(&form, "");
    bool is_solved = form.n_alone == form.n_names || (form.n_names == 1 && !form.divides);
    return !form.is_wrong && !*form.at && form.n_names && form.n_steps && is_solved;
}

bool onnx_input_dim(Call *c, const OnnxDim *dim, const char *axis_name, DimId *made) {
    Import *im = c->im;
    bool is_named = dim->param && dim->param[0];
    if (dim->value >= 0) {
        *made = dim_const(im->b->dims, dim->value);
        return true;
    }
    if (!is_named || !is_expression(im, dim->param)) {
        *made = named_dim(im, is_named ? dim->param : NULL, axis_name);
        return true;
    }
    DimText text = {.im = im, .at = dim->param, .is_read = true};
    *made = read_sum(&text);
    if (!onnx_need_least(c, *made, 0)) return false;
    if (*made != DIM_NONE && dim_lo(im->b->dims, *made) >= 0) return true;
    return onnx_fail(c, DIAG_BAD_DIM, "its dim `%s` may be negative, or beyond 2^62", dim->param);
}
