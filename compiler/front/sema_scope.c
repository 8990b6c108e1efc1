/* Scopes and the frames that have them. A scope is an open-addressed table over the bindings. It
 * hashes interned pointers, which keeps the output reproducible, because nothing ever iterates over
 * the slots. */
#include "front/sema_state.h"

#include <string.h>

static uint32_t *find_slot(const Scope *scope, Str name) {
    uint32_t mask = scope->n_slots - 1;
    for (uint32_t i = (uint32_t)((uintptr_t)name >> 4) * 2654435761u;; i++) {
        uint32_t *slot = &scope->slots[i & mask];
        if (*slot == 0 || scope->bindings.data[*slot - 1].name == name) return slot;
    }
}

Binding *scope_find(const Scope *scope, Str name) {
    if (scope->n_slots == 0) return NULL;
    uint32_t index = *find_slot(scope, name);
    return index ? &scope->bindings.data[index - 1] : NULL;
}

static void grow(Arena *arena, Scope *scope) {
    scope->n_slots = scope->n_slots ? scope->n_slots * 2 : 16;
    scope->slots = arena_array(arena, uint32_t, scope->n_slots);
    for (uint32_t i = 0; i < scope->bindings.n; i++)
        *find_slot(scope, scope->bindings.data[i].name) = i + 1;
}

Binding *scope_add(Arena *arena, Scope *scope, Str name, Value value, Span span) {
    if ((scope->bindings.n + 1) * 2 > scope->n_slots) grow(arena, scope);
    Binding binding = {.name = name, .value = value, .span = span};
    vec_push(arena, &scope->bindings, binding);
    *find_slot(scope, name) = scope->bindings.n;
    return &scope->bindings.data[scope->bindings.n - 1];
}

void scope_clear(Scope *scope) {
    scope->bindings.n = 0;
    if (scope->n_slots) memset(scope->slots, 0, scope->n_slots * sizeof *scope->slots);
}

Binding *sema_find(const Sema *sema, Str name) {
    for (const Frame *frame = sema->frame; frame; frame = frame->outer) {
        Binding *binding = scope_find(&frame->scope, name);
        if (binding) return binding;
    }
    return NULL;
}

bool sema_enter(Sema *sema, Frame *frame) {
    if (sema->depth == SEMA_MAX_DEPTH) {
        sema_error(sema, DIAG_LIMIT, frame->call_span, "defs and loops nested more than %d deep",
                   SEMA_MAX_DEPTH);
        return false;
    }
    sema->depth++;
    if (sema->spare_scopes.n) frame->scope = sema->spare_scopes.data[--sema->spare_scopes.n];
    sema->frame = frame;
    return true;
}

void sema_leave(Sema *sema) {
    Frame *frame = sema->frame;
    sema->depth--;
    sema->frame = frame->caller;
    scope_clear(&frame->scope);
    vec_push(sema->arena, &sema->spare_scopes, frame->scope);
}

void scope_try_names(const Scope *scope, Nearest *nearest) {
    enum { MAX_TRIED = 2000 };
    uint32_t n = scope->bindings.n, from = n > MAX_TRIED ? n - MAX_TRIED : 0;
    for (uint32_t i = n; i-- > from;) nearest_try(nearest, scope->bindings.data[i].name);
}
