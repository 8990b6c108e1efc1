/* From source text to graphs: names, dtypes, shapes, broadcasting, expansion of defs. */
#ifndef FUSEC_FRONT_SEMA_H
#define FUSEC_FRONT_SEMA_H

#include "front/include.h"
#include "ir/build/build.h"

typedef struct Sema Sema;

/* Parses `source` and, by `reader`, what it includes. NULL: the source is too long or has a NUL
 * byte. Other errors are reported, and the rest of the source can still be checked. */
Sema *front_read(Arena *arena, StrTab *strings, Diags *diags, const Source *source,
                 const IncludeReader *reader);
/* Checks the parsed source. Nodes lie in `scratch` until their graph is finished, which drops many;
 * NULL: there is none. `rewrites`: Builder.rewrites. NULL: an error has been reported, in this call
 * or before. */
Module *front_check(Sema *sema, Arena *scratch, bool rewrites);

/* Parses and checks `source`, which includes nothing (at most SOURCE_MAX_BYTES), together with the
 * prelude. Returns the module, allocated on `arena`, or NULL after at least one error in `diags`;
 * warnings are no failure. Leaves through the arena's escape only when memory is out. */
Module *front_parse(Arena *arena, StrTab *strings, Diags *diags, const Source *source);

/* Sema for expressions over other graphs, in which only the prelude has defs. */
Sema *front_new(Arena *arena, StrTab *strings, Diags *diags);
/* A tensor, and its name in an expression. */
typedef struct FrontTensor {
    const char *name;
    NodeId node;
} FrontTensor;
/* The tensor that an expression gives for tensors of the builder's graph, to which its nodes are
 * added. NODE_NONE after an error in the Diags. */
NodeId front_express(Sema *sema, Builder *builder, const char *expression, uint32_t n,
                     const FrontTensor *tensors);

#endif
