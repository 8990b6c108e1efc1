/* The lines around steps that are repeated: `repeat`, `odd`, `end-repeat`. */
#include "manifest/manifest_text.h"

static frt_status begin(TextReader *r, Graph *graph, RepeatState *state) {
    Manifest *m = r->m;
    Repeat repeat = {.first = graph->n_steps, .odd = graph->n_steps, .end = graph->n_steps};
    frt_status status = text_expr(r, r->fields[1], "count", &repeat.count);
    if (!status && state->is_open) {
        return text_fail(r, "a `repeat` is inside another one");
    }
    if (!status && GROW(r, m->repeats, state->capacity, m->n_repeats)) {
        return FRT_E_OUT_OF_MEMORY;
    }
    if (!status) {
        m->repeats[m->n_repeats++] = repeat;
        graph->n_repeats++;
        state->is_open = true;
        state->is_odd = false;
    }
    return status;
}

static frt_status begin_odd(TextReader *r, const Graph *graph, RepeatState *state) {
    if (!state->is_open || state->is_odd) {
        return text_fail(r, "`odd` must follow the even steps of a `repeat`");
    }
    r->m->repeats[r->m->n_repeats - 1].odd = graph->n_steps;
    state->is_odd = true;
    return FRT_OK;
}

static frt_status end(TextReader *r, const Graph *graph, RepeatState *state) {
    if (!state->is_open || !state->is_odd) {
        return text_fail(r, "`end-repeat` must follow the odd steps of a `repeat`");
    }
    r->m->repeats[r->m->n_repeats - 1].end = graph->n_steps;
    state->is_open = false;
    return FRT_OK;
}

frt_status text_repeat(TextReader *r, Graph *graph, RepeatState *state) {
    Slice word = r->fields[0];
    if (slice_is(word, FRT_D_ODD)) {
        return begin_odd(r, graph, state);
    }
    return slice_is(word, FRT_D_REPEAT) ? begin(r, graph, state) : end(r, graph, state);
}
