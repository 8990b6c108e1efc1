/* Errors of nodes, the values that names stand for, and names of the language. */
#include "onnx/call/import_state.h"

/* Errors. */

static const char *node_name(const Call *c) {
    if (c->node->name[0]) return c->node->name;
    return c->node->outputs.n ? c->node->outputs.data[0] : "without a name";
}

bool onnx_fail(Call *c, DiagId id, const char *format, ...) {
    va_list args;
    if (c->has_failed) return false;
    va_start(args, format);
    const char *what = str_vformat(c->im->arena, format, args);
    va_end(args);
    c->has_failed = true;
    return diag_report(c->im->diags, id, NULL, (Span){0}, "%s: node `%s` (%s%s%s, opset %lld): %s",
                       c->im->source->name, node_name(c), c->node->domain,
                       c->node->domain[0] ? "." : "", c->node->op, (long long)c->opset, what);
}

enum { MAX_BOUNDS = 64 };

static bool holds(const Import *im, DimId value, int64_t least, uint32_t symbol, int64_t at) {
    int64_t symbols[DIM_MAX_SYMBOLS] = {0}, found;
    symbols[symbol] = at;
    return dim_eval(im->b->dims, value, symbols, &found) && found >= least;
}

/* Narrows the range in which a value of this symbol alone is at least `least`. The range reaches to
 * one end of the symbol's. False: there is none. */
static bool narrowed(const Import *im, DimId value, int64_t least, uint32_t symbol,
                     DimBound *range) {
    bool holds_low = holds(im, value, least, symbol, range->least),
         holds_high = holds(im, value, least, symbol, range->most);
    if (holds_low == holds_high) return false;
    int64_t yes = holds_high ? range->most : range->least,
            no = holds_high ? range->least : range->most;
    while (yes - no > 1 || no - yes > 1) {
        int64_t middle = (yes + no) / 2;
        *(holds(im, value, least, symbol, middle) ? &yes : &no) = middle;
    }
    *(holds_high ? &range->least : &range->most) = yes;
    return true;
}

/* The value where all used dims are at least `at`, and as small as they may be. */
static bool lowest_value(const Import *im, DimId value, int64_t at, int64_t *found) {
    int64_t symbols[DIM_MAX_SYMBOLS] = {0};
    uint32_t symbol;
    for (uint32_t i = 0; i < im->dims.n; i++) {
        if (!dim_is_symbol(im->b->dims, im->dims.data[i].unit, &symbol)) continue;
        const DimBound *bound = &im->dims.data[i].bound;
        symbols[symbol] = bound->least > at ? bound->least : at < bound->most ? at : bound->most;
    }
    return dim_eval(im->b->dims, value, symbols, found);
}

/* Raises the least values of several dims to one number, the smallest with which the value is at
 * least `least`, as of the product of two extents. False: there is none. */
static bool raise(Import *im, DimId value, int64_t least, uint64_t used) {
    int64_t found, no = 0, yes = im->highest_dim;
    uint32_t symbol, n = im->bounds.n;
    if (!lowest_value(im, value, no, &found) || found >= least) return false;
    if (!lowest_value(im, value, yes, &found) || found < least) return false;
    while (yes - no > 1) {
        int64_t middle = (yes + no) / 2;
        *(lowest_value(im, value, middle, &found) && found >= least ? &yes : &no) = middle;
    }
    for (uint32_t i = 0; i < im->dims.n && im->bounds.n < MAX_BOUNDS; i++) {
        DimBound bound = im->dims.data[i].bound;
        if (!dim_is_symbol(im->b->dims, im->dims.data[i].unit, &symbol)) continue;
        if (!(used >> symbol & 1) || bound.least >= yes) continue;
        bound.least = yes < bound.most ? yes : bound.most;
        vec_push(im->arena, &im->bounds, bound);
    }
    return im->bounds.n > n;
}

bool onnx_need_least(Call *c, DimId value, int64_t least) {
    Import *im = c->im;
    uint32_t symbol;
    if (value == DIM_NONE || dim_lo(im->b->dims, value) >= least || im->bounds.n == MAX_BOUNDS)
        return true;
    uint64_t used = dim_symbols_used(im->b->dims, value);
    bool is_found = false, is_one = (used & (used - 1)) == 0;
    for (uint32_t i = 0; i < im->dims.n && is_one && !is_found; i++) {
        if (!dim_is_symbol(im->b->dims, im->dims.data[i].unit, &symbol)) continue;
        DimBound range = im->dims.data[i].bound;
        is_found = used == (uint64_t)1 << symbol && narrowed(im, value, least, symbol, &range);
        if (is_found) vec_push(im->arena, &im->bounds, range);
    }
    if (!is_found && (is_one || !raise(im, value, least, used))) return true;
    im->is_given_up = c->has_failed = true;
    return false;
}

/* Where sizes pass the limit, the import begins again. Dims that neither the model nor the caller
 * bounds are smaller then. False: these dims are small already. */
static bool lower_highest(Call *c) {
    enum { STEP = 2, LEAST = 64 };
    if (c->im->highest_dim / STEP < LEAST) return false;
    c->im->highest_dim /= STEP;
    c->im->is_given_up = c->has_failed = true;
    return true;
}

bool onnx_check(Call *c) {
    BuildError error, more;
    if (!build_take_error(c->im->b, &error)) return !c->has_failed;
    while (build_take_error(c->im->b, &more)) continue;
    if (error.id == DIAG_DIM_OVERFLOW && lower_highest(c)) return false;
    onnx_fail(c, error.id, "%s", error.message);
    if (error.help) diag_help(c->im->diags, "%s", error.help);
    uint32_t n = c->im->dims.n;
    if (n && (error.id == DIAG_DIM_OVERFLOW || error.id == DIAG_SHAPE_MISMATCH)) {
        Str name = c->im->dims.data[n - 1].name;
        diag_help(c->im->diags,
                  "`fusec import` takes values of a dim: --dim=%s=224, or "
                  "--dim=%s=64..1024:32 (multiples of 32).",
                  name, name);
    }
    return false;
}

bool onnx_fail_model(Import *im, DiagId id, const char *what, const char *name) {
    return diag_report(im->diags, id, NULL, (Span){0}, "%s: %s%s%s", im->source->name, what,
                       name ? " " : "", name ? name : "");
}

/* Scopes and names. */

static uint64_t name_hash(Str name) {
    return hash_mix(0, (uint64_t)(uintptr_t)name);
}

Scope *onnx_scope_new(Import *im, const Scope *outer, const VecOpset *opsets) {
    Scope *scope = arena_array(im->arena, Scope, 1);
    scope->outer = outer;
    scope->opsets = opsets;
    return scope;
}

Value *onnx_scope_own(const Scope *scope, Str name) {
    uint32_t probe = 0, id;
    while ((id = hashids_next(&scope->ids, name_hash(name), &probe)) != 0)
        if (scope->values.data[id - 1]->name == name) return scope->values.data[id - 1];
    return NULL;
}

Value *onnx_scope_find(const Scope *scope, Str name) {
    Value *value = NULL;
    for (; scope && !value; scope = scope->outer) value = onnx_scope_own(scope, name);
    return value;
}

Value *onnx_scope_add(Import *im, Scope *scope, Str name) {
    Value *value = arena_array(im->arena, Value, 1);
    *value = (Value){.name = name, .node = NODE_NONE};
    vec_push(im->arena, &scope->values, value);
    hashids_add(im->arena, &scope->ids, name_hash(name), scope->values.n);
    return value;
}

static bool is_used(const HashIds *names, Str name) {
    uint32_t probe = 0;
    return hashids_next(names, hash_bytes(STR_HASH_SEED, name, strlen(name)), &probe) != 0;
}

static Str use(Import *im, HashIds *names, const char *name) {
    hashids_add(im->arena, names, hash_bytes(STR_HASH_SEED, name, strlen(name)), 1);
    return strtab_intern_z(im->strings, name);
}

bool onnx_may_name(const char *name) {
    return graph_is_name(name) && strcmp(name, "_") != 0;
}

char *onnx_plain_name(Import *im, const char *name, const char *otherwise) {
    enum { MAX_PLAIN = 200 };
    if (!name[0]) name = otherwise;
    bool is_digit = name[0] >= '0' && name[0] <= '9';
    char *plain = str_format(im->arena, "%s%.*s", is_digit ? "_" : "", (int)MAX_PLAIN, name);
    for (char *c = plain; *c; c++)
        if (!(*c >= '0' && *c <= '9') && !(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z'))
            *c = '_';
    return onnx_may_name(plain) ? plain : str_format(im->arena, "%s_", plain);
}

Str onnx_unique_name(Import *im, const char *name, const char *otherwise) {
    const char *plain = onnx_plain_name(im, name, otherwise), *unique = plain;
    for (uint32_t k = 2; is_used(&im->names, unique) || !onnx_may_name(unique); k++)
        unique = str_format(im->arena, "%s_%u", plain, k);
    return use(im, &im->names, unique);
}

Str onnx_unique_key(Import *im, const char *name, Str otherwise) {
    return use(im, &im->keys, is_used(&im->keys, name) ? otherwise : name);
}

int64_t onnx_scope_opset(const Scope *scope, Str domain) {
    for (; scope; scope = scope->outer)
        for (uint32_t i = 0; scope->opsets && i < scope->opsets->n; i++)
            if (strcmp(scope->opsets->data[i].domain, domain) == 0 ||
                (!domain[0] && strcmp(scope->opsets->data[i].domain, "ai.onnx") == 0))
                return scope->opsets->data[i].version;
    return 0;
}

bool onnx_add_initializers(Import *im, Scope *scope, const OnnxGraph *graph) {
    if (graph->n_sparse)
        return onnx_fail_model(im, DIAG_UNSUPPORTED_DTYPE, "sparse initializers are not supported",
                               NULL);
    for (uint32_t i = 0; i < graph->initializers.n; i++) {
        const OnnxTensor *tensor = &graph->initializers.data[i];
        if (onnx_scope_own(scope, tensor->name))
            return onnx_fail_model(im, DIAG_REDEFINITION, "two initializers are called",
                                   tensor->name);
        onnx_scope_add(im, scope, tensor->name)->tensor = tensor;
    }
    return true;
}
