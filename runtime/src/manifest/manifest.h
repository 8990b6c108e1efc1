/* The manifest in memory. Lists are flat and in the file's order; a graph or step owns a range of
 * each. Everything a consumer indexes with has been checked by the reader: tensor, dim and
 * expression references are in range, names are unique, ranks and counts are bounded.
 * Immutable once read. */
#ifndef FRT_MANIFEST_MODEL_H
#define FRT_MANIFEST_MODEL_H

#include "manifest/expr.h"

#include <frt_manifest.h>
#include <fusert.h>

typedef struct Dim {
    const char *name;
    uint32_t hash; /* of the name */
    int64_t lo, hi, multiple;
} Dim;

typedef struct Tensor {
    const char *name;
    uint32_t hash;
    const char *key; /* param: in the weights file, or NULL */
    frt_role role;
    frt_dtype dtype;
    int32_t rank;
    bool is_persistent; /* temp: kept by the program, `offset` is unused */
    int32_t stands_for; /* temp: the earlier tensor of the graph that it is where it has no
                         * elements; -1: none */
    uint32_t whole;     /* temp: the graph's tensor that it is part of, plus 1; 0: none */
    Expr offset;        /* temp: bytes into that, or into the workspace */
    Expr extents[FRT_MAX_RANK];
} Tensor;

typedef enum TermKind {
    TERM_POINTER, /* pointer of launch argument `arg` is a multiple of `number` bytes */
    TERM_MULTIPLE,
    TERM_AT_MOST
} TermKind;

typedef struct Term {
    TermKind kind;
    uint32_t arg;
    Expr expr;
    int64_t number;
} Term;

/* All of its terms hold; without any it always does. */
typedef struct Predicate {
    uint32_t first_term, n_terms;
} Predicate;

/* Two dims that the runtime gives: how far apart the rows of a matrix are, `extent` rounded up to
 * a multiple, and how wide its copy is, the same. Where a predicate of `unless` holds, in which
 * argument 0 is the matrix, there is no copy: they are `extent` and 0. */
typedef struct Pitch {
    uint32_t pitch, width; /* dims */
    int32_t source;        /* tensor of the graph */
    Expr extent;
    int64_t multiple;
    uint32_t n_unless;
    Predicate unless[FRT_MAX_UNLESS];
} Pitch;

/* An axis of a tensor map, in elements. */
typedef struct MapAxis {
    Expr size, stride;
    uint32_t box;
    int32_t lower, upper; /* im2col, of an axis along which windows lie: corners of their pixels */
    uint32_t step;        /* and how many pixels apart these are; 0: of no such axis */
} MapAxis;

/* How the copy engine is to see a launch argument: a box of up to FRT_MAX_MAP_RANK axes that it
 * moves to shared memory, innermost first. The innermost stride is the constant 1. */
typedef struct Map {
    uint32_t arg;
    bool is_tf32;     /* elements, of f32, are rounded on their way */
    uint32_t swizzle; /* bytes: 0, 32, 64 or 128 */
    Expr offset;      /* elements from the argument's address */
    uint32_t rank;    /* 1 to FRT_MAX_MAP_RANK */
    bool is_im2col;   /* all axes but the first and the last are such that windows lie along */
    MapAxis axes[FRT_MAX_MAP_RANK];
} Map;

/* What the group's variants are compared by: the time of a block is `fixed` and each measure times
 * its weight; so many percent of it go with the blocks, the rest with the waves that they run in.
 */
typedef struct Price {
    uint32_t group; /* from 1; 0: it has no price */
    Expr blocks;
    int64_t per_wave, percent;
    int64_t fixed, weights[FRT_MAX_MEASURES];
    uint32_t n_measures;
    Expr measures[FRT_MAX_MEASURES]; /* the group's */
} Price;

typedef struct Variant {
    const char *symbol;
    Expr grid;   /* blocks, or work units on the CPU */
    Expr shared; /* bytes */
    int32_t block;
    int32_t cluster; /* CUDA: no more blocks than processors, in clusters of so many; 0: all */
    bool waits;      /* at its entry for what was launched before it: CUDA */
    Price price;     /* the cheapest of a group that applies is taken */
    Predicate when;
    uint32_t first_map, n_maps; /* neither terms nor maps: always applies */
} Variant;

typedef struct Step {
    frt_step_kind kind;
    frt_phase phase;
    int32_t line;
    const char *label;
    const char *rewrite;        /* or NULL */
    uint32_t first_arg, n_args; /* indices into the graph's tensors; copy: destination, source */
    uint32_t first_dim, n_dims;
    uint32_t first_variant, n_variants;
    Expr n_bytes; /* copy */
} Step;

typedef struct Graph {
    const char *name;
    uint32_t first_tensor, n_tensors;
    uint32_t first_step, n_steps;
    uint32_t first_pitch, n_pitches;
    bool has_workspace;
    Expr workspace; /* bytes, if has_workspace */
} Graph;

typedef struct Manifest {
    frt_target target;
    const char *arch;
    const char *features; /* comma-separated CPU features beyond a known arch, or NULL */
    const char *numerics, *compiler, *source, *weights;
    const char *rewrites; /* or NULL */
    uint32_t checksum;
    size_t checksum_at; /* offset of the checksum's digits in the text */
    size_t n_text;      /* bytes up to and with the line feed of `end` */

    Dim *dims; /* first those that are given, then those of pitches */
    Graph *graphs;
    Tensor *tensors;
    Step *steps;
    Variant *variants;
    Pitch *pitches;
    Term *terms;
    Map *maps;
    ExprToken *tokens;
    uint32_t *refs; /* step arguments and step dims */
    uint32_t n_given_dims, n_pitches;
    uint32_t n_dims, n_graphs, n_tensors, n_steps, n_variants, n_terms, n_maps, n_tokens, n_refs;
    const char *dim_names[FRT_MAX_DIMS];
    char *strings;
} Manifest;

/* Read the manifest that starts at `text`; bytes after its `end` line are left alone. Every
 * failure names the line. FRT_E_ARTIFACT, _VERSION, _OUT_OF_MEMORY. Free `manifest` in any case. */
frt_status manifest_read(const char *text, size_t n_bytes, Manifest *manifest, frt_error *err);
void manifest_free(Manifest *manifest);

/* Index in the graph of the tensor called `name`, or -1. */
int32_t graph_find_tensor(const Manifest *m, const Graph *graph, const char *name);

/* What a message is about: "input x axis 1", "the grid of softmax", "the workspace". It becomes
 * text only when something is wrong, since preparing a run asks for all of them. */
typedef struct Subject {
    const char *kind;
    const char *name; /* or NULL */
    int32_t axis;     /* or NO_AXIS */
} Subject;

enum { NO_AXIS = -1, SUBJECT_BYTES = 160 };

extern const Subject the_caller;
void subject_print(Subject subject, char text[SUBJECT_BYTES]);

frt_status manifest_eval(const Manifest *m, Expr expr, DimValues dims, Subject what, int64_t *value,
                         frt_error *err);

/* Check one dim's value against its declaration. */
frt_status manifest_check_dim(const Manifest *m, uint32_t dim, int64_t value, Subject by,
                              frt_error *err);

/* Extents (each at least 0) and size in bytes of a tensor; either result may be NULL. */
frt_status manifest_shape(const Manifest *m, const Tensor *tensor, DimValues dims, int64_t *extents,
                          int64_t *n_bytes, frt_error *err);

/* Whether all terms hold; `args` has as many as the predicate may name. A dim without a value, or a
 * value too large, makes a term false. */
bool predicate_holds(const Manifest *m, Predicate predicate, void *const *args, DimValues dims);

/* The two dims of a pitch whose matrix lies at `address`, if its extent has a value. */
void pitch_resolve(const Manifest *m, const Pitch *pitch, void *address, int64_t *values,
                   bool *known);

uint32_t name_hash(const char *name);
const char *role_name(frt_role role);

#endif
