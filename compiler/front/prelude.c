/* Parses the defs of the prelude that a program names. */
#include "front/prelude.h"

#include <stdlib.h>
#include <string.h>

struct Prelude {
    Arena *arena;
    StrTab *strings;
    Diags *diags;
    const Source **sources; /* by file; NULL: none of its defs has been named */
    const AstDef **defs;    /* by row of prelude_defs; NULL: not yet parsed */
};

Prelude *prelude_new(Arena *arena, StrTab *strings, Diags *diags) {
    Prelude *prelude = arena_array(arena, Prelude, 1);
    *prelude = (Prelude){.arena = arena,
                         .strings = strings,
                         .diags = diags,
                         .sources = arena_array(arena, const Source *, prelude_n_files),
                         .defs = arena_array(arena, const AstDef *, prelude_n_defs)};
    return prelude;
}

static int compare_name(const void *name, const void *row) {
    return strcmp(name, ((const PreludeDef *)row)->name);
}

static const PreludeDef *find_row(const char *name) {
    return bsearch(name, prelude_defs, prelude_n_defs, sizeof *prelude_defs, compare_name);
}

bool prelude_has(const char *name) {
    return find_row(name) != NULL;
}

bool prelude_is_source(const Prelude *prelude, const Source *source) {
    for (uint32_t i = 0; i < prelude_n_files; i++)
        if (prelude->sources[i] == source) return true;
    return false;
}

static const AstDef *parse_row(Prelude *prelude, const PreludeDef *row) {
    const PreludeFile *file = &prelude_files[row->file];
    const Source **source = &prelude->sources[row->file];
    if (!*source) *source = source_new(prelude->arena, file->name, file->text, file->n_bytes);
    return ast_parse_part(prelude->arena, prelude->strings, prelude->diags, *source, row->span)
        ->defs.data[0];
}

const AstDef *prelude_def(Prelude *prelude, Str name) {
    const PreludeDef *row = find_row(name);
    if (!row) return NULL;
    const AstDef **def = &prelude->defs[row - prelude_defs];
    if (!*def) *def = parse_row(prelude, row);
    return *def;
}
