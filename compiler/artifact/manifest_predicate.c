/* Predicates: conditions on pointers and extents. See manifest_writer.h. */
#include "artifact/manifest_writer.h"
#include "plan/launch.h"

#include <frt_manifest.h>
#include <inttypes.h>

/* The position of argument `arg` of kernel `k` among the arguments of the launch. */
uint32_t manifest_position_of(const Plan *plan, const Launch *launch, uint32_t k, uint32_t arg) {
    uint32_t position = 0;
    for (uint32_t i = 0; i <= k; i++)
        for (uint32_t a = 0; a < (i < k ? launch_kernel(plan, launch, i)->args.n : arg); a++)
            position += plan->buffers.data[launch_kernel(plan, launch, i)->args.data[a]].space ==
                        BUFFER_GLOBAL;
    return position;
}

/* A predicate whose terms are written one by one, joined by `&`. */
typedef struct TermWriter {
    Writer *w;
    const Plan *plan;
    const Launch *launch; /* NULL: the predicate is not a launch's, and arguments keep their
                           * numbers */
    bool is_first;
} TermWriter;

static void begin_term(TermWriter *t, const char *what) {
    text_printf(&t->w->text, "%s%s", t->is_first ? "" : "&", what);
    t->is_first = false;
}

static void put_multiple(TermWriter *t, const PredicateTerm *term) {
    begin_term(t, "m:");
    line_expr(t->w, term->dim);
    text_printf(&t->w->text, ":%" PRId64, term->of);
}

/* The runtime has upper bounds only: dim >= least is written as most - dim <= most - least. */
static void put_range(TermWriter *t, const PredicateTerm *term) {
    int64_t most = term->most < INT64_MAX ? term->most : dim_hi(t->w->dims, term->dim);
    if (term->most < INT64_MAX) {
        begin_term(t, "l:");
        line_expr(t->w, term->dim);
        text_printf(&t->w->text, ":%" PRId64, most);
    }
    if (term->least == INT64_MIN) return;
    begin_term(t, "l:");
    text_printf(&t->w->text, "%" PRId64 ",", most);
    line_expr(t->w, term->dim);
    text_printf(&t->w->text, ",-:%" PRId64, most - term->least);
}

/* The position of argument `arg` of kernel `k` among those of the launch, if the runtime must test
 * its pointer; else NO_ARG. */
static uint32_t open_position(const TermWriter *t, uint32_t k, const PredicateTerm *term,
                              uint32_t arg) {
    if (!t->launch) return term->args >> arg & 1 ? arg : NO_ARG;
    const Kernel *kernel = launch_kernel(t->plan, t->launch, k);
    bool is_open = variant_open_args(t->plan, kernel, term) >> arg & 1;
    return is_open ? manifest_position_of(t->plan, t->launch, k, arg) : NO_ARG;
}

static void put_alignment(TermWriter *t, uint32_t k, const PredicateTerm *term) {
    for (uint32_t i = 0; i < MAX_KERNEL_ARGS; i++) {
        uint32_t position = open_position(t, k, term, i);
        if (position == NO_ARG) continue;
        begin_term(t, "a");
        text_printf(&t->w->text, "%u:%" PRId64, position, term->of);
    }
}

static void put_predicate_term(TermWriter *t, uint32_t k, const PredicateTerm *term) {
    switch (term->kind) {
    case TERM_ALIGNED:
        put_alignment(t, k, term);
        return;
    case TERM_LEVEL:
        begin_term(t, "c:");
        text_puts(&t->w->text, term->level);
        return;
    case TERM_MULTIPLE:
        put_multiple(t, term);
        return;
    case TERM_RANGE:
        put_range(t, term);
        return;
    }
}

/* The manifest's order of the kinds of terms. */
static const TermKind term_order[] = {TERM_ALIGNED, TERM_LEVEL, TERM_MULTIPLE, TERM_RANGE};
_Static_assert(sizeof term_order / sizeof *term_order == N_TERM_KINDS,
               "each kind of term has its place in the manifest");

/* Writes a predicate that belongs to no launch. */
void manifest_put_predicate_alone(Writer *w, const Predicate *predicate) {
    TermWriter t = {.w = w, .is_first = true};
    const PredicateTerm *term;
    text_puts(&w->text, " ");
    for (uint32_t i = 0; i < N_TERM_KINDS; i++)
        for (uint32_t n = 0; (term = predicate_term(predicate, term_order[i], n)); n++)
            put_predicate_term(&t, 0, term);
}

/* Whether an earlier kernel of the launch has the same term, so that it is written once. */
static bool is_put_already(const TermWriter *t, uint32_t k, uint32_t v, uint32_t n,
                           const PredicateTerm *term) {
    for (uint32_t i = 0; i < k && term->kind != TERM_ALIGNED; i++) {
        const PredicateTerm *other = predicate_term(
            &launch_kernel(t->plan, t->launch, i)->variants[v].predicate, term->kind, n);
        if (other && predicate_terms_are_equal(other, term)) return true;
    }
    return false;
}

/* Writes the terms of one kind of kernel `k` of the launch. */
static void put_terms(TermWriter *t, uint32_t k, uint32_t v, TermKind kind) {
    const Predicate *predicate = &launch_kernel(t->plan, t->launch, k)->variants[v].predicate;
    const PredicateTerm *term;
    for (uint32_t n = 0; (term = predicate_term(predicate, kind, n)); n++)
        if (!is_put_already(t, k, v, n, term)) put_predicate_term(t, k, term);
}

/* Writes the predicate of variant `v`, the conjunction of those of all kernels of the launch: first
 * the terms on pointers, then kernel by kernel those on extents. Returns whether it is empty. */
bool manifest_put_predicate(Writer *w, const Plan *plan, const Launch *launch, uint32_t v) {
    TermWriter t = {.w = w, .plan = plan, .launch = launch, .is_first = true};
    text_puts(&w->text, " ");
    for (uint32_t k = 0; k < launch->n; k++) put_terms(&t, k, v, term_order[0]);
    for (uint32_t k = 0; k < launch->n; k++)
        for (uint32_t i = 1; i < N_TERM_KINDS; i++) put_terms(&t, k, v, term_order[i]);
    if (t.is_first) text_puts(&w->text, FRT_NONE);
    return t.is_first;
}
