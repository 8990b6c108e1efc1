/* Fuzz entry: arbitrary bytes as source text. The front end reports errors or returns a program,
 * and a program prints as text with the same meaning. */
#include "front/sema.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* Reports a broken promise to the fuzzer. */
static void require(bool holds) {
    if (!holds) abort();
}

static Module *parse(Arena *arena, Diags *diags, const char *text, size_t n_bytes) {
    const Source *source = source_new(arena, "fuzz.g", text, n_bytes);
    *diags = (Diags){.arena = arena};
    return front_parse(arena, strtab_new(arena), diags, source);
}

static void check(Arena *arena, const uint8_t *data, size_t n_bytes) {
    Diags diags;
    Text messages = {.arena = arena}, first = {.arena = arena}, second = {.arena = arena};
    Module *module = parse(arena, &diags, (const char *)data, n_bytes);
    diag_print(&diags, &messages);
    require((module == NULL) == (diags.n_errors > 0));
    if (!module) return;
    for (uint32_t i = 0; i < module->graphs.n; i++)
        require(graph_verify(module->graphs.data[i], arena) == NULL);
    module_print(module, &first);
    Module *again = parse(arena, &diags, text_str(&first), first.n_bytes);
    require(again != NULL);
    module_print(again, &second);
    require(again->graphs.n == module->graphs.n);
    for (uint32_t i = 0; i < module->graphs.n; i++)
        require(again->graphs.data[i]->nodes.n == module->graphs.data[i]->nodes.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    Escape escape = {.message = ""};
    Arena *arena = arena_new(&escape);
    if (!arena) return 0;
    /* An escape may only mean that memory is out, never a broken invariant. */
    if (setjmp(escape.jump) == 0)
        check(arena, data, n_bytes);
    else
        require(escape.message[0] == '\0');
    arena_free(arena);
    return 0;
}
