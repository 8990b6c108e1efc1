/* A one-graph program as a list of text items, so that it can be printed, and shrunk while it keeps
 * failing. Expressions refer to values by name. Every statement is one line that binds one name. */
#ifndef FUSEC_TESTS_PROGRAM_H
#define FUSEC_TESTS_PROGRAM_H

#include "ir/graph.h"

typedef struct ProgramItem {
    const char *name;
    const char *type; /* `f32[B, 8]`; for a dim its range, `1..16 mult 4` */
    const char
        *expr; /* for statements the expression; for outputs the value's name; for params the key */
    bool is_online; /* for statements: in an `online` block of its own */
} ProgramItem;

typedef Vec(ProgramItem) ProgramItems;

typedef struct Program {
    Arena *arena;
    ProgramItems dims, inputs, params, statements, outputs;
} Program;

/* The program as source text, on its arena. */
char *program_print(const Program *program);
/* The program of a graph: a statement for every op, with defs expanded and without blocks. */
Program program_of_graph(Arena *arena, const Graph *graph);
/* A copy with all texts on another arena. */
Program program_clone(Arena *arena, const Program *program);
/* Whether `name` occurs in `text` as a whole word. */
bool program_mentions(const char *text, const char *name);

/* Whether the program still shows the failure; an invalid program does not. */
typedef bool (*ProgramFails)(void *user, const char *source);

/* The smallest program that fails as `program` does: no output or statement can be removed, no
 * value turned into an input, and no extent made smaller. It calls `fails` often (quadratic in the
 * number of statements); `program` itself must fail. */
Program program_reduce(const Program *program, ProgramFails fails, void *user);

#endif
