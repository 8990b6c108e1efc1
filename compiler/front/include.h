/* Files that a source includes: their dims and defs become the source's own. */
#ifndef FUSEC_FRONT_INCLUDE_H
#define FUSEC_FRONT_INCLUDE_H

#include "front/ast.h"

/* How files are read. `path` is that in the source, behind the folder of the file that includes it.
 * The text must outlive the compilation. False: the file cannot be read. */
typedef struct IncludeReader {
    bool (*read)(void *user, const char *path, const char **text, size_t *n_bytes);
    void *user;
} IncludeReader;

/* Parses `source` and the files that it includes, at any depth, each once, and reports errors. In
 * the result all dims are in the order in which they stand in the text, an included file's in the
 * place of its `include`. `reader` may be NULL: no file can be read then. NULL: the source is no
 * text. */
AstFile *include_parse(Arena *arena, StrTab *strings, Diags *diags, const Source *source,
                       const IncludeReader *reader);

#endif
