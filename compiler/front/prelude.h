/* The prelude: the functions that every program may call, written in the language, by theme
 * (dsl/prelude). It is part of the compiler. A def is parsed when a program first names it. */
#ifndef FUSEC_FRONT_PRELUDE_H
#define FUSEC_FRONT_PRELUDE_H

#include "front/ast.h"

typedef struct PreludeFile {
    const char *name, *text;
    uint32_t n_bytes;
} PreludeFile;

typedef struct PreludeDef {
    const char *name;
    uint32_t file; /* in prelude_files */
    Span span;     /* from `def` to behind its body, with what lies before the next def */
} PreludeDef;

/* Generated; the defs are sorted by name. */
extern const PreludeFile prelude_files[];
extern const PreludeDef prelude_defs[];
extern const uint32_t prelude_n_files, prelude_n_defs;

/* What one compilation has parsed of it. */
typedef struct Prelude Prelude;

Prelude *prelude_new(Arena *arena, StrTab *strings, Diags *diags);
/* Whether `source` is one of its files. */
bool prelude_is_source(const Prelude *prelude, const Source *source);
bool prelude_has(const char *name);
/* The parsed def; NULL: the prelude has none of that name. */
const AstDef *prelude_def(Prelude *prelude, Str name);

#endif
