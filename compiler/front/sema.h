/* From source text to graphs: names, dtypes, shapes, broadcasting, expansion of defs. */
#ifndef FUSEC_FRONT_SEMA_H
#define FUSEC_FRONT_SEMA_H

#include "base/diag.h"
#include "ir/graph.h"

typedef struct Sema Sema;

/* Parses `source` and the prelude. NULL: it has more bytes than a source may have, or a NUL byte;
 * other errors are reported, and the rest of the source is there to be checked. */
Sema *front_read(Arena *arena, StrTab *strings, Diags *diags, const Source *source);
/* Checks what was parsed. NULL: an error has been reported, now or before. */
Module *front_check(Sema *sema);

/* Both: parses and checks `source` (at most SOURCE_MAX_BYTES). Returns the module, allocated on
 * `arena`, or NULL after having reported at least one error to `diags`; warnings do not fail it.
 * The prelude is parsed along. Leaves through the arena's escape only when memory is out. */
Module *front_parse(Arena *arena, StrTab *strings, Diags *diags, const Source *source);

#endif
