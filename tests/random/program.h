/* A one-graph program as text in parts, so that it can be printed, and shrunk while it keeps
 * failing. Expressions refer to values by name; every statement is one line that binds one name. */
#ifndef FUSEC_TESTS_PROGRAM_H
#define FUSEC_TESTS_PROGRAM_H

#include "ir/graph.h"

typedef struct ProgramItem {
    const char *name;
    const char *type; /* `f32[B, 8]`; of a dim its range, `1..16 mult 4` */
    const char
        *expr; /* statements: what is bound; outputs: the name of the value; params: the key */
} ProgramItem;

typedef Vec(ProgramItem) ProgramItems;

typedef struct Program {
    Arena *arena;
    ProgramItems dims, inputs, params, statements, outputs;
} Program;

/* The program as source text, on its arena. */
char *program_print(const Program *program);
/* A statement for every op of the graph, defs expanded and blocks left out. */
Program program_of_graph(Arena *arena, const Graph *graph);
/* With all texts on another arena. */
Program program_clone(Arena *arena, const Program *program);
/* Whether `name` occurs in `text` as a whole word. */
bool program_mentions(const char *text, const char *name);

/* Whether the program still shows what is being looked for (and so is still a valid program). */
typedef bool (*ProgramFails)(void *user, const char *source);

/* A program that fails as `program` does and from which nothing more can be taken: no output or
 * statement removed, value turned into an input, nor extent made smaller. Calls `fails` often
 * (quadratic in the number of statements); `program` itself must fail. */
Program program_reduce(const Program *program, ProgramFails fails, void *user);

#endif
