/* See predicate.h. */
#include "ir/predicate.h"

/* Building. */

static void add(Predicate *predicate, PredicateTerm term) {
    uint32_t at = predicate->n++;
    for (; at > 0 && predicate->terms[at - 1].kind > term.kind; at--)
        predicate->terms[at] = predicate->terms[at - 1];
    predicate->terms[at] = term;
}

void predicate_drop(Predicate *predicate, TermKind kind) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < predicate->n; i++)
        if (predicate->terms[i].kind != kind) predicate->terms[n++] = predicate->terms[i];
    predicate->n = n;
}

void predicate_align(Predicate *predicate, int64_t bytes, uint64_t args) {
    predicate_drop(predicate, TERM_ALIGNED);
    if (bytes > 1 && args)
        add(predicate, (PredicateTerm){.kind = TERM_ALIGNED, .of = bytes, .args = args});
}

void predicate_require_level(Predicate *predicate, Str level) {
    predicate_drop(predicate, TERM_LEVEL);
    add(predicate, (PredicateTerm){.kind = TERM_LEVEL, .level = level});
}

void predicate_require_multiple(Predicate *predicate, DimId dim, int64_t of) {
    if (of <= 1) return;
    for (uint32_t i = 0; i < predicate->n; i++) {
        PredicateTerm *term = &predicate->terms[i];
        if (term->kind != TERM_MULTIPLE || term->dim != dim) continue;
        if (term->of < of) term->of = of;
        return;
    }
    add(predicate, (PredicateTerm){.kind = TERM_MULTIPLE, .dim = dim, .of = of});
}

void predicate_set_range(Predicate *predicate, DimId dim, int64_t least, int64_t most) {
    predicate_drop(predicate, TERM_RANGE);
    predicate_require_range(predicate, dim, least, most);
}

void predicate_require_range(Predicate *predicate, DimId dim, int64_t least, int64_t most) {
    add(predicate, (PredicateTerm){.kind = TERM_RANGE, .dim = dim, .least = least, .most = most});
}

/* Queries. */

const PredicateTerm *predicate_term(const Predicate *predicate, TermKind kind, uint32_t n) {
    for (uint32_t i = 0; i < predicate->n; i++)
        if (predicate->terms[i].kind == kind && n-- == 0) return &predicate->terms[i];
    return NULL;
}

bool predicate_terms_are_equal(const PredicateTerm *a, const PredicateTerm *b) {
    if (a->kind != b->kind || a->dim != b->dim) return false;
    switch (a->kind) {
    case TERM_ALIGNED:
        return a->of == b->of && a->args == b->args;
    case TERM_LEVEL:
        return a->level == b->level;
    case TERM_MULTIPLE:
        return a->of == b->of;
    case TERM_RANGE:
        return a->least == b->least && a->most == b->most;
    }
    return false;
}

DimId predicate_dim(const Predicate *predicate, TermKind kind) {
    const PredicateTerm *term = predicate_term(predicate, kind, 0);
    return term ? term->dim : DIM_NONE;
}

static bool is_of_extents(const PredicateTerm *term) {
    switch (term->kind) {
    case TERM_ALIGNED:
    case TERM_LEVEL:
        return false;
    case TERM_MULTIPLE:
    case TERM_RANGE:
        break;
    }
    return true;
}

bool predicate_asks_extents(const Predicate *predicate) {
    for (uint32_t i = 0; i < predicate->n; i++)
        if (is_of_extents(&predicate->terms[i])) return true;
    return false;
}

/* The term about pointers comes first. */
bool predicate_same_but_pointers(const Predicate *a, const Predicate *b) {
    uint32_t i = a->n && a->terms->kind == TERM_ALIGNED;
    uint32_t k = b->n && b->terms->kind == TERM_ALIGNED;
    if (a->n - i != b->n - k) return false;
    for (; i < a->n; i++, k++)
        if (!predicate_terms_are_equal(&a->terms[i], &b->terms[k])) return false;
    return true;
}

Str predicate_level(const Predicate *predicate) {
    const PredicateTerm *term = predicate_term(predicate, TERM_LEVEL, 0);
    return term ? term->level : NULL;
}

int64_t predicate_alignment(const Predicate *predicate, uint32_t arg) {
    const PredicateTerm *term = predicate_term(predicate, TERM_ALIGNED, 0);
    return term && (term->args >> arg & 1) ? term->of : 1;
}

int64_t predicate_multiple(const Predicate *predicate, DimId dim) {
    const PredicateTerm *term;
    for (uint32_t i = 0; (term = predicate_term(predicate, TERM_MULTIPLE, i)); i++)
        if (term->dim == dim) return term->of;
    return 1;
}

int64_t predicate_most(const Predicate *predicate, DimId dim) {
    const PredicateTerm *term = predicate_term(predicate, TERM_RANGE, 0);
    return term && term->dim == dim ? term->most : INT64_MAX;
}

static void assume(const PredicateTerm *term, IndexTab *tab) {
    switch (term->kind) {
    case TERM_ALIGNED: /* lowering checks it at each access of the argument */
    case TERM_RANGE:   /* lowering checks it where it counts steps */
    case TERM_LEVEL:   /* lowering emits code for it */
        break;
    case TERM_MULTIPLE:
        index_assume_also(tab, term->dim, term->of);
        break;
    }
}

void predicate_assume(const Predicate *predicate, IndexTab *tab) {
    index_assume_multiple(tab, DIM_NONE, 1);
    for (uint32_t i = 0; predicate && i < predicate->n; i++) assume(&predicate->terms[i], tab);
}

/* Evaluation. */

static bool are_aligned(const PredicateTerm *term, const uint64_t *addresses) {
    for (uint32_t i = 0; addresses && i < 64; i++)
        if ((term->args >> i & 1) && addresses[i] % (uint64_t)term->of) return false;
    return true;
}

bool predicate_term_holds(const PredicateTerm *term, const PredicateAt *at) {
    int64_t value = 0;
    switch (term->kind) {
    case TERM_ALIGNED:
        return are_aligned(term, at->addresses);
    case TERM_LEVEL:
        return true;
    case TERM_MULTIPLE:
        return dim_eval(at->dims, term->dim, at->values, &value) && value % term->of == 0;
    case TERM_RANGE:
        return dim_eval(at->dims, term->dim, at->values, &value) && value >= term->least &&
               value <= term->most;
    }
    return false;
}

bool predicate_holds_at(const Predicate *predicate, const PredicateAt *at) {
    for (uint32_t i = 0; i < predicate->n; i++)
        if (!predicate_term_holds(&predicate->terms[i], at)) return false;
    return true;
}

bool predicate_term_is_certain(const PredicateTerm *term, const DimTab *dims, uint64_t aligned) {
    switch (term->kind) {
    case TERM_ALIGNED:
        return !(term->args & ~aligned);
    case TERM_LEVEL:
        return false;
    case TERM_MULTIPLE:
        return dim_multiple(dims, term->dim) % term->of == 0;
    case TERM_RANGE:
        return dim_lo(dims, term->dim) >= term->least && dim_hi(dims, term->dim) <= term->most;
    }
    return false;
}

/* Conditions. */

Predicate *condition_except(Condition *condition) {
    return &condition->unless[condition->n_unless++];
}

bool condition_holds_at(const Condition *condition, const PredicateAt *at) {
    for (uint32_t i = 0; i < condition->n_unless; i++)
        if (predicate_holds_at(&condition->unless[i], at)) return false;
    return predicate_holds_at(&condition->when, at);
}

/* 1 where the term fails, 0 elsewhere. */
static DimId term_failure(DimTab *dims, const PredicateTerm *term) {
    DimId whole, rest;
    switch (term->kind) {
    case TERM_ALIGNED:
    case TERM_LEVEL:
        break;
    case TERM_RANGE:
        if (term->least == INT64_MIN) return dim_at_least(dims, term->dim, term->most + 1);
        break;
    case TERM_MULTIPLE:
        whole = dim_div(dims, term->dim, dim_const(dims, term->of));
        rest = dim_sub(dims, term->dim, dim_mul_const(dims, whole, term->of));
        return dim_at_least(dims, rest, 1);
    }
    return DIM_NONE;
}

/* 1 where the term holds, 0 elsewhere. */
static DimId term_truth(DimTab *dims, const PredicateTerm *term) {
    bool has_least_alone = term->kind == TERM_RANGE && term->most == INT64_MAX;
    if (has_least_alone) return dim_at_least(dims, term->dim, term->least);
    return dim_sub(dims, dim_const(dims, 1), term_failure(dims, term));
}

/* 1 where some term fails, 0 elsewhere: half the number of failing terms, rounded up. It works for
 * up to two terms. */
static DimId predicate_failure(DimTab *dims, const Predicate *predicate) {
    DimId sum = predicate->n > 2 ? DIM_NONE : dim_const(dims, 0);
    for (uint32_t i = 0; i < predicate->n; i++)
        sum = dim_add(dims, sum, term_failure(dims, &predicate->terms[i]));
    return dim_ceil_div(dims, sum, 2);
}

DimId condition_dim(DimTab *dims, const Condition *condition) {
    DimId value = dim_const(dims, 1);
    for (uint32_t i = 0; i < condition->when.n && value; i++)
        value = dim_mul(dims, value, term_truth(dims, &condition->when.terms[i]));
    for (uint32_t i = 0; i < condition->n_unless && value; i++)
        value = dim_mul(dims, value, predicate_failure(dims, &condition->unless[i]));
    return value;
}

/* Printing. */

static void print_term(const PredicateTerm *term, const DimTab *dims, Text *out) {
    switch (term->kind) {
    case TERM_ALIGNED:
        text_printf(out, "aligned %lld", (long long)term->of);
        return;
    case TERM_LEVEL:
        text_printf(out, "level %s", term->level);
        return;
    case TERM_MULTIPLE:
        dim_print(dims, term->dim, out);
        text_printf(out, " mult %lld", (long long)term->of);
        return;
    case TERM_RANGE:
        if (term->least > INT64_MIN && term->most < INT64_MAX)
            text_printf(out, "%lld <= ", (long long)term->least);
        dim_print(dims, term->dim, out);
        if (term->most == INT64_MAX) text_printf(out, " >= %lld", (long long)term->least);
        if (term->most < INT64_MAX) text_printf(out, " <= %lld", (long long)term->most);
        return;
    }
}

void predicate_print(const Predicate *predicate, const DimTab *dims, Text *out) {
    for (uint32_t i = 0; i < predicate->n; i++) {
        text_puts(out, ", ");
        print_term(&predicate->terms[i], dims, out);
    }
}

/* Prints the opposite of the term. */
static void print_failure(const PredicateTerm *term, const DimTab *dims, Text *out) {
    switch (term->kind) {
    case TERM_ALIGNED:
        text_printf(out, "not aligned %lld", (long long)term->of);
        return;
    case TERM_LEVEL:
        text_printf(out, "no level %s", term->level);
        return;
    case TERM_RANGE:
        dim_print(dims, term->dim, out);
        if (term->least > INT64_MIN) text_printf(out, " < %lld", (long long)term->least);
        if (term->least > INT64_MIN && term->most < INT64_MAX) text_puts(out, " or");
        if (term->most < INT64_MAX) text_printf(out, " > %lld", (long long)term->most);
        return;
    case TERM_MULTIPLE:
        dim_print(dims, term->dim, out);
        text_printf(out, " is no multiple of %lld", (long long)term->of);
        return;
    }
}

void condition_print(const Condition *condition, const DimTab *dims, Text *out) {
    for (uint32_t i = 0; i < condition->when.n; i++) {
        if (i) text_puts(out, ", ");
        print_term(&condition->when.terms[i], dims, out);
    }
    for (uint32_t i = 0; i < condition->n_unless; i++)
        for (uint32_t k = 0; k < condition->unless[i].n; k++) {
            text_puts(out, k ? " or " : ", if ");
            print_failure(&condition->unless[i].terms[k], dims, out);
        }
}
