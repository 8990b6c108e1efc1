/* The lines around steps that are repeated: `repeat`, `odd`, `end-repeat`. */
#include "manifest/manifest_text.h"

static frt_status begin(TextReader *r, Graph *graph, RepeatState *state) {
    Manifest *m = r->m;
    Repeat repeat = {.first = graph->n_steps, .odd = graph->n_steps, .end = graph->n_steps};
    frt_status status = text_expr(r, r->fields[1], "count", &repeat.count);
    if (!status && state->n_open == FRT_MAX_REPEATS_DEEP) {
        return text_fail(r, "more than %d `repeat`s are inside each other", FRT_MAX_REPEATS_DEEP);
    }
    if (!status && GROW(r, m->repeats, state->capacity, m->n_repeats)) {
        return FRT_E_OUT_OF_MEMORY;
    }
    if (!status) {
        m->repeats[m->n_repeats++] = repeat;
        state->is_odd[state->n_open] = false;
        state->open[state->n_open++] = graph->n_repeats++;
    }
    return status;
}

/* The repeat that has begun last and not ended. */
static Repeat *innermost(const TextReader *r, const Graph *graph, const RepeatState *state) {
    return &r->m->repeats[graph->first_repeat + state->open[state->n_open - 1]];
}

static frt_status begin_odd(TextReader *r, const Graph *graph, RepeatState *state) {
    if (!state->n_open || state->is_odd[state->n_open - 1]) {
        return text_fail(r, "`odd` must follow the even steps of a `repeat`");
    }
    Repeat *repeat = innermost(r, graph, state);
    repeat->odd = graph->n_steps;
    repeat->inner_odd = graph->n_repeats;
    state->is_odd[state->n_open - 1] = true;
    return FRT_OK;
}

static frt_status end(TextReader *r, const Graph *graph, RepeatState *state) {
    if (!state->n_open || !state->is_odd[state->n_open - 1]) {
        return text_fail(r, "`end-repeat` must follow the odd steps of a `repeat`");
    }
    Repeat *repeat = innermost(r, graph, state);
    repeat->end = graph->n_steps;
    repeat->next = graph->n_repeats;
    state->n_open--;
    return FRT_OK;
}

frt_status text_repeat(TextReader *r, Graph *graph, RepeatState *state) {
    Slice word = r->fields[0];
    if (slice_is(word, FRT_D_ODD)) {
        return begin_odd(r, graph, state);
    }
    return slice_is(word, FRT_D_REPEAT) ? begin(r, graph, state) : end(r, graph, state);
}
