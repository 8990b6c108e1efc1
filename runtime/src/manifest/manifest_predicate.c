/* The optional fields of a variant: a predicate (terms joined by `&`), launch options, and a
 * price. */
#include "manifest/manifest_text.h"

static frt_status read_level(TextReader *r, Slice name, Term *term) {
    const Manifest *m = r->m;
    term->kind = TERM_LEVEL;
    while (term->arg < m->n_levels && !slice_is(name, m->levels[term->arg].name)) {
        term->arg++;
    }
    return term->arg < m->n_levels
               ? FRT_OK
               : text_fail(r, "the predicate asks for a level that is not declared");
}

/* `aN:BYTES`, `c:LEVEL`, `m:EXPR:K` or `l:EXPR:K`. */
static frt_status read_term(TextReader *r, Slice s, uint32_t n_args, Term *term) {
    Slice head = {NULL, 0};
    Slice middle = {NULL, 0};
    int64_t arg = 0;
    frt_status status = FRT_OK;
    slice_cut(&s, ':', &head);
    if (slice_is(head, "c")) {
        return read_level(r, s, term);
    }
    if (head.n > 1 && head.bytes[0] == 'a') {
        term->kind = TERM_POINTER;
        status = text_int(r, (Slice){head.bytes + 1, head.n - 1}, (int64_t)n_args - 1,
                          "argument of the predicate", &arg);
        term->arg = (uint32_t)arg;
    } else if (slice_is(head, "m") || slice_is(head, "l")) {
        term->kind = head.bytes[0] == 'm' ? TERM_MULTIPLE : TERM_AT_MOST;
        if (!slice_cut(&s, ':', &middle)) {
            return text_fail(r, "a predicate term lacks its expression");
        }
        status = text_expr(r, middle, "predicate", &term->expr);
    } else {
        return text_fail(r, "predicate term `%.*s` is not known", (int)(head.n < 40 ? head.n : 40),
                         head.bytes);
    }
    if (!status && !s.bytes) {
        return text_fail(r, "a predicate term lacks its number");
    }
    if (!status) {
        status = text_int(r, s, INT64_MAX, "number of the predicate", &term->number);
    }
    if (!status && term->kind != TERM_AT_MOST && term->number < 1) {
        return text_fail(r, "a predicate asks for a multiple of 0");
    }
    return status;
}

frt_status text_predicate(TextReader *r, Slice s, uint32_t n_args, Predicate *predicate) {
    Manifest *m = r->m;
    Slice piece;
    frt_status status = FRT_OK;
    *predicate = (Predicate){.first_term = m->n_terms};
    if (slice_is(s, FRT_NONE)) {
        return FRT_OK;
    }
    while (!status && slice_cut(&s, '&', &piece)) {
        Term term = {0};
        if (predicate->n_terms++ == FRT_MAX_TERMS) {
            return text_fail(r, "a predicate has more than %d terms", FRT_MAX_TERMS);
        }
        status = read_term(r, piece, n_args, &term);
        if (!status && GROW(r, m->terms, r->terms_capacity, m->n_terms)) {
            return FRT_E_OUT_OF_MEMORY;
        }
        if (!status) {
            m->terms[m->n_terms++] = term;
        }
    }
    return status;
}

frt_status text_launch_options(TextReader *r, Variant *variant, uint32_t *next) {
    variant->waits = *next < r->n_fields && slice_is(r->fields[*next], FRT_WAITS);
    *next += variant->waits;
    Slice piece, rest = *next < r->n_fields ? r->fields[*next] : (Slice){NULL, 0};
    if (!slice_cut(&rest, ':', &piece) || !slice_is(piece, FRT_RESIDENT)) {
        return FRT_OK;
    }
    ++*next;
    int64_t cluster = 0, resident = 1;
    piece = (Slice){NULL, 0};
    slice_cut(&rest, ':', &piece);
    frt_status status = text_int(r, piece, FRT_MAX_CLUSTER, "cluster", &cluster);
    if (!status && rest.bytes) {
        status = text_int(r, rest, FRT_MAX_RESIDENT, "number of resident blocks", &resident);
    }
    variant->cluster = (int32_t)cluster;
    variant->resident = (int32_t)resident;
    if (!status && cluster < 1) {
        return text_fail(r, "a cluster of 0 blocks");
    }
    return !status && resident < 1 ? text_fail(r, "0 resident blocks") : status;
}

frt_status text_price(TextReader *r, Slice s, Price *price) {
    Slice piece;
    slice_cut(&s, ':', &piece);
    if (!slice_is(piece, FRT_PRICE) || !slice_cut(&s, ':', &piece)) {
        return text_fail(r, "a variant of a group ends in something else than its price");
    }
    int64_t *numbers[3 + FRT_MAX_MEASURES] = {&price->per_wave, &price->percent, &price->fixed};
    frt_status status = text_expr(r, piece, "price", &price->blocks);
    for (uint32_t i = 0; i < price->n_measures; i++) {
        numbers[3 + i] = &price->weights[i];
    }
    for (uint32_t i = 0; !status && i < 3 + price->n_measures; i++) {
        if (!slice_cut(&s, ':', &piece)) {
            return text_fail(r, "a price lacks numbers: it has three, and one for each measure");
        }
        status = text_int(r, piece, i == 1 ? 100 : INT64_MAX, "number of the price", numbers[i]);
    }
    if (!status && price->per_wave < 1) {
        return text_fail(r, "a price has waves of 0 blocks");
    }
    return !status && s.bytes ? text_fail(r, "a price has more numbers than measures") : status;
}

frt_status text_measures(TextReader *r, Price *price) {
    frt_status status = FRT_OK;
    for (uint32_t i = 1; !status && i < r->n_fields; i++) {
        status = text_expr(r, r->fields[i], "measure", &price->measures[price->n_measures++]);
    }
    return status;
}
