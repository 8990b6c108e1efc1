/* From source text to graphs: names, dtypes, shapes, broadcasting, expansion of defs. */
#ifndef FUSEC_FRONT_SEMA_H
#define FUSEC_FRONT_SEMA_H

#include "front/include.h"
#include "ir/graph.h"

typedef struct Sema Sema;

/* Parses `source` and, by `reader`, what it includes. NULL: the source is too long or has a NUL
 * byte. Other errors are reported, and the rest of the source can still be checked. */
Sema *front_read(Arena *arena, StrTab *strings, Diags *diags, const Source *source,
                 const IncludeReader *reader);
/* Checks the parsed source. `rewrites`: Builder.rewrites. NULL: an error has been reported, in this
 * call or before. */
Module *front_check(Sema *sema, bool rewrites);

/* Parses and checks `source`, which includes nothing (at most SOURCE_MAX_BYTES), together with the
 * prelude. Returns the module, allocated on `arena`, or NULL after at least one error in `diags`;
 * warnings are no failure. Leaves through the arena's escape only when memory is out. */
Module *front_parse(Arena *arena, StrTab *strings, Diags *diags, const Source *source);

#endif
