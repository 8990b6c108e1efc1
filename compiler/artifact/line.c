/* See line.h. */
#include "artifact/line.h"

#include <frt_manifest.h>
#include <inttypes.h>
#include <stdio.h>

bool line_report_limit(Diags *diags, const Source *source, Span at, const char *what, uint32_t n) {
    return diag_report(diags, DIAG_LIMIT, source, at, "the artifact would have more than %u %s", n,
                       what);
}

bool line_fail_limit(Writer *w, const char *what, uint32_t limit) {
    if (w->failed) return false;
    w->failed = true;
    Span at = w->graph ? w->graph->span : (Span){0};
    return line_report_limit(w->diags, w->module->source, at, what, limit);
}

void line_begin(Writer *w, const char *directive) {
    w->line_at = w->text.n_bytes;
    text_puts(&w->text, FRT_MANIFEST_PREFIX);
    text_puts(&w->text, directive);
}

void line_end(Writer *w) {
    if (w->text.n_bytes - w->line_at > FRT_MAX_LINE_BYTES)
        line_fail_limit(w, "bytes in a line of its manifest", FRT_MAX_LINE_BYTES);
    if (++w->n_lines > FRT_MAX_LINES) line_fail_limit(w, "manifest lines", FRT_MAX_LINES);
    text_puts(&w->text, "\n");
}

void line_word(Writer *w, const char *word) {
    text_puts(&w->text, " ");
    text_puts(&w->text, word);
}

void line_int(Writer *w, int64_t number) {
    text_printf(&w->text, " %" PRId64, number);
}

/* Writes a name by the escape rule, without a leading blank. */
void line_escaped(Writer *w, const char *name) {
    size_t begin = w->text.n_bytes;
    for (const char *c = name; *c; c++) {
        if (FRT_NAME_BYTE_IS_PLAIN(*c))
            text_add(&w->text, c, 1);
        else
            text_printf(&w->text, "%%%02X", (unsigned)(unsigned char)*c);
    }
    if (w->text.n_bytes - begin > FRT_MAX_NAME_BYTES)
        line_fail_limit(w, "bytes in an escaped name", FRT_MAX_NAME_BYTES);
}

void line_name(Writer *w, const char *name) {
    text_puts(&w->text, " ");
    line_escaped(w, name);
}

/* Expressions in postfix notation. */

static void put_token(Writer *w, bool *is_first, const char *token) {
    if (!*is_first) text_puts(&w->text, ",");
    *is_first = false;
    text_puts(&w->text, token);
}

static void put_number(Writer *w, bool *is_first, int64_t number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, number);
    put_token(w, is_first, digits);
}

/* A dim whose name is an operator's gets its first letter escaped. */
static void put_symbol(Writer *w, bool *is_first, uint32_t symbol) {
    Str name = dim_symbol_info(w->dims, symbol)->name;
    put_token(w, is_first, "");
    bool is_operator = strcmp(name, "max") == 0 || strcmp(name, "min") == 0;
    if (is_operator) text_printf(&w->text, "%%%02X", (unsigned)(unsigned char)*name);
    line_escaped(w, name + is_operator);
}

static void put_postfix(Writer *w, bool *is_first, DimId dim);

static void put_term(Writer *w, bool *is_first, DimTerm term) {
    int64_t factor = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    bool is_alone = factor == 1;
    if (!is_alone) put_number(w, is_first, factor);
    for (uint32_t i = 0; i < term.n_atoms; i++) {
        DimAtom atom = dim_atom(w->dims, term.atoms[i]);
        if (atom.is_division) {
            put_postfix(w, is_first, atom.numerator);
            put_postfix(w, is_first, atom.divisor);
            put_token(w, is_first, "/");
        } else {
            const DimRule *rule = dim_symbol_info(w->dims, atom.symbol)->rule;
            if (rule && rule->value != DIM_NONE)
                put_postfix(w, is_first, rule->value);
            else
                put_symbol(w, is_first, atom.symbol);
        }
        if (!is_alone) put_token(w, is_first, "*");
        is_alone = false;
    }
}

/* Positive terms come first and are added, negative ones are subtracted after them, because numbers
 * of the manifest have no sign. */
static void put_postfix(Writer *w, bool *is_first, DimId dim) {
    int64_t constant = dim_constant_part(w->dims, dim);
    bool has_operand = false;
    for (int negative = 0; negative < 2; negative++) {
        for (uint32_t i = 0; i < dim_n_terms(w->dims, dim); i++) {
            DimTerm term = dim_term(w->dims, dim, i);
            if ((term.coefficient < 0) != (negative == 1)) continue;
            put_term(w, is_first, term);
            if (has_operand) put_token(w, is_first, negative ? "-" : "+");
            has_operand = true;
        }
        bool is_due = negative ? constant < 0 : constant > 0 || !has_operand;
        if (!is_due) continue;
        bool starts = !negative && !has_operand;
        put_number(w, is_first, negative ? -constant : starts && constant < 0 ? 0 : constant);
        if (has_operand) put_token(w, is_first, negative ? "-" : "+");
        has_operand = true;
    }
}

/* Writes the maximum of the dims, without a leading blank. */
void line_largest(Writer *w, const DimId *of, uint32_t n) {
    size_t begin = w->text.n_bytes;
    bool is_first = true;
    for (uint32_t i = 0; i < n; i++) {
        if (of[i] == DIM_NONE) ice(w->text.arena, "an expression of the manifest overflows");
        put_postfix(w, &is_first, of[i]);
        if (i) put_token(w, &is_first, "max");
    }
    uint32_t n_tokens = 1;
    for (size_t i = begin; i < w->text.n_bytes; i++) n_tokens += w->text.data[i] == ',';
    if (n_tokens <= FRT_MAX_EXPR_TOKENS || w->failed) return;
    line_fail_limit(w, "terms in an expression", FRT_MAX_EXPR_TOKENS);
    diag_help(w->diags,
              "Make some dims numbers: in the source, or when a model is imported by "
              "`fusec import` or `python -m fusec.torch`, as --dim=%s=224.",
              dim_n_symbols(w->dims) ? dim_symbol_info(w->dims, 0)->name : "H");
}

void line_expr(Writer *w, DimId dim) {
    line_largest(w, &dim, 1);
}

void line_dim(Writer *w, DimId dim) {
    text_puts(&w->text, " ");
    line_expr(w, dim);
}

/* Of a tensor with more axes than the runtime knows, the first ones are written as one. */
void line_shape(Writer *w, const Shape *shape) {
    uint32_t first = shape->rank > MAX_GIVEN_RANK ? shape->rank - MAX_GIVEN_RANK : 0;
    DimId all = shape->rank ? shape->dims[0] : DIM_NONE;
    for (uint32_t k = 1; k <= first; k++) all = dim_mul(w->dims, all, shape->dims[k]);
    for (uint32_t k = first; k < shape->rank; k++) line_dim(w, k == first ? all : shape->dims[k]);
}
