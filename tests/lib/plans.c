/* Source text to plans. See plans.h. */
#include "lib/plans.h"

#include "front/sema.h"

#include <string.h>

static const char *rendered(Arena *arena, const Diags *diags) {
    Text text = {.arena = arena};
    diag_print(diags, &text);
    return text_str(&text);
}

Module *plans_parse(Arena *arena, const char *source, const char **errors) {
    Diags diags = {.arena = arena};
    const Source *text = source_new(arena, "test.g", source, strlen(source));
    Module *module = front_parse(arena, strtab_new(arena), &diags, text);
    *errors = rendered(arena, &diags);
    return module;
}

Plan *plans_fuse(Arena *arena, const Module *module, uint32_t index, bool off,
                 const char **errors) {
    Diags diags = {.arena = arena};
    Arena *scratch = arena_new(NULL);
    Plan *plan =
        fuse_graph(arena, scratch, module->graphs.data[index], (FuseOptions){.off = off}, &diags);
    arena_free(scratch);
    *errors = rendered(arena, &diags);
    return plan;
}
