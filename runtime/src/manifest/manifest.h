/* The manifest in memory. Lists are flat and in the file's order; a graph or step owns a range of
 * each. The reader has checked everything that is used as an index: tensor, dim and expression
 * references are in range, names are unique, ranks and counts are bounded. Immutable once read. */
#ifndef FRT_MANIFEST_MODEL_H
#define FRT_MANIFEST_MODEL_H

#include "manifest/expr.h"

#include <frt_manifest.h>
#include <fusert.h>

/* Instruction sets that code of the artifact is for, in one word. */
typedef struct Level {
    const char *name;
    const char *arch, *features; /* as the target's */
} Level;

typedef struct Dim {
    const char *name;
    uint32_t hash; /* hash of the name */
    int64_t lo, hi, multiple;
} Dim;

typedef struct Tensor {
    const char *name;
    uint32_t hash;
    const char *key; /* param: its name in the weights file, or NULL */
    frt_role role;
    frt_dtype dtype;
    int32_t rank;
    bool is_persistent; /* temp: the program keeps it, and `offset` is unused */
    int32_t stands_for; /* temp without elements: an earlier tensor of the graph whose address it
                         * gets; -1: none */
    uint32_t
        in_place;   /* output: the input of the graph that may have its address, plus 1; 0: none */
    uint32_t whole; /* temp: the tensor of the graph that contains it, plus 1; 0: none */
    Expr offset;    /* temp: offset in bytes into that tensor or the workspace */
    Expr extents[FRT_MAX_RANK];
} Tensor;

typedef enum TermKind {
    TERM_POINTER, /* the pointer of launch argument `arg` is a multiple of `number` bytes */
    TERM_LEVEL,   /* the machine has level `arg` */
    TERM_MULTIPLE,
    TERM_AT_MOST
} TermKind;

typedef struct Term {
    TermKind kind;
    uint32_t arg;
    Expr expr;
    int64_t number;
} Term;

/* A conjunction of terms; no terms: always true. */
typedef struct Predicate {
    uint32_t first_term, n_terms;
} Predicate;

/* Two dims that the runtime computes: the pitch of a matrix's rows, `extent` rounded up to a
 * multiple, and the width of its padded copy, the same number. If a predicate of `unless` holds
 * (its argument 0 is the matrix), there is no copy: the pitch is `extent` and the width is 0. */
typedef struct Pitch {
    uint32_t pitch, width; /* indices of the dims */
    int32_t source;        /* tensor index in the graph */
    Expr extent;
    int64_t multiple;
    uint32_t n_unless;
    Predicate unless[FRT_MAX_UNLESS];
} Pitch;

/* One axis of a tensor map, in elements. */
typedef struct MapAxis {
    Expr size, stride;
    uint32_t box;
    int32_t lower, upper; /* im2col, on a spatial axis: corners of the pixel box */
    uint32_t step;        /* im2col: stride between pixels; 0: not a spatial axis */
} MapAxis;

/* A launch argument for the copy engine: a box of up to FRT_MAX_MAP_RANK axes that it moves to
 * shared memory, innermost axis first. The innermost stride is the constant 1. */
typedef struct Map {
    uint32_t arg;
    bool is_tf32;     /* the copy engine rounds f32 elements to tf32 */
    uint32_t swizzle; /* bytes: 0, 32, 64 or 128 */
    Expr offset;      /* elements from the argument's address */
    uint32_t rank;    /* 1 to FRT_MAX_MAP_RANK */
    bool is_im2col;   /* every axis but the first and the last is a spatial axis */
    MapAxis axes[FRT_MAX_MAP_RANK];
} Map;

/* The predicted time by which the variants of a group are compared. The time of a block is `fixed`
 * plus each measure times its weight. `percent` of it scales with the blocks, the rest with the
 * waves. */
typedef struct Price {
    uint32_t group; /* from 1; 0: the variant has no price */
    Expr blocks;
    int64_t per_wave, percent;
    int64_t fixed, weights[FRT_MAX_MEASURES];
    uint32_t n_measures;
    Expr measures[FRT_MAX_MEASURES]; /* shared by the group */
} Price;

typedef struct Variant {
    const char *symbol;
    Expr grid;   /* blocks, or work units on the CPU */
    Expr shared; /* CUDA: bytes; CPU: the least number of units for a thread of its own */
    int32_t block;
    int32_t cluster;  /* CUDA: a persistent grid in clusters of this many blocks; 0: an ordinary
                       * grid */
    int32_t resident; /* CUDA: of a persistent grid, the most blocks per multiprocessor */
    bool waits;       /* CUDA: the kernel waits at its entry for the launch before it (PDL) */
    Price price;      /* the cheapest applicable variant of a group runs */
    Predicate when;
    uint32_t first_map, n_maps; /* no terms and no maps: it always applies */
} Variant;

typedef struct Step {
    frt_step_kind kind;
    frt_phase phase;
    int32_t line;
    const char *label;
    uint32_t first_arg, n_args; /* indices of the graph's tensors; for a copy: destination,
                                 * source */
    uint32_t first_dim, n_dims;
    uint32_t first_number, n_numbers; /* of Manifest.numbers */
    uint32_t first_variant, n_variants;
    Expr n_bytes; /* for a copy */
} Step;

/* Steps [first, odd) run in iterations 0, 2, .. of `count`, and steps [odd, end) in iterations 1,
 * 3, ..; they are steps of phase `run`, numbered within the graph. */
typedef struct Repeat {
    uint32_t first, odd, end;
    uint32_t inner_odd, next; /* those between this repeat and inner_odd are inside of its even
                               * steps, those from there to `next` of its odd ones; numbered within
                               * the graph */
    Expr count;
} Repeat;

typedef struct Graph {
    const char *name;
    uint32_t first_tensor, n_tensors;
    uint32_t first_step, n_steps;
    uint32_t first_pitch, n_pitches;
    uint32_t first_repeat, n_repeats; /* in the order of their first lines */
    bool has_workspace;
    Expr workspace; /* bytes, valid if has_workspace */
} Graph;

/* What is known of a kind of target: targets.def. */
typedef struct TargetInfo {
    const char *word;
    uint32_t most_fields;
    int64_t most_block, most_grid;
    bool has_launches;
} TargetInfo;
enum {
    N_TARGETS = 0
#define TARGET(...) +1
#include "manifest/targets.def"
};
const TargetInfo *target_info(frt_target target);

typedef struct Manifest {
    frt_target target;
    const char *arch;
    const char *features; /* comma-separated CPU features beyond those of the arch, or NULL */
    Level levels[FRT_MAX_LEVELS]; /* CPU: best first; the last is the target itself */
    uint32_t n_levels;            /* 0: the code is for the target alone */
    const char *numerics, *compiler, *source, *weights;
    const char *rewrites; /* "on", "off" or NULL */
    uint32_t checksum;
    size_t checksum_at; /* offset of the checksum's digits in the text */
    size_t n_text;      /* bytes up to and including the newline of `end` */

    Dim *dims; /* first the caller's dims, then those of pitches */
    Graph *graphs;
    Tensor *tensors;
    Step *steps;
    Variant *variants;
    Pitch *pitches;
    Repeat *repeats;
    Term *terms;
    Map *maps;
    ExprToken *tokens;
    uint32_t *refs;    /* tensor and dim indices of steps */
    uint64_t *numbers; /* constants of steps */
    uint32_t n_given_dims, n_pitches;
    uint32_t n_dims, n_graphs, n_tensors, n_steps, n_variants, n_terms, n_maps, n_tokens, n_refs,
        n_numbers, n_repeats;
    const char *dim_names[FRT_MAX_DIMS];
    char *strings;
} Manifest;

/* Reads the manifest that starts at `text`. Bytes after its `end` line are ignored. Every failure
 * names the line. FRT_E_ARTIFACT, _VERSION, _OUT_OF_MEMORY. Free `manifest` in any case. */
frt_status manifest_read(const char *text, size_t n_bytes, Manifest *manifest, frt_error *err);
void manifest_free(Manifest *manifest);

/* The index in the graph of the tensor called `name`, or -1. */
int32_t graph_find_tensor(const Manifest *m, const Graph *graph, const char *name);

/* The subject of a message: "input x axis 1", "the grid of softmax", "the workspace". Its text is
 * made only for an error, because preparing a run needs all subjects. */
typedef struct Subject {
    const char *kind;
    const char *name; /* NULL: none */
    int32_t axis;     /* NO_AXIS: none */
} Subject;

enum { NO_AXIS = -1, SUBJECT_BYTES = 160 };

extern const Subject the_caller;
void subject_print(Subject subject, char text[SUBJECT_BYTES]);

frt_status manifest_eval(const Manifest *m, Expr expr, DimValues dims, Subject what, int64_t *value,
                         frt_error *err);

/* Checks one dim's value against its declaration. */
frt_status manifest_check_dim(const Manifest *m, uint32_t dim, int64_t value, Subject by,
                              frt_error *err);

/* Computes the extents (each at least 0) and the size in bytes of a tensor. Either result may be
 * NULL. */
frt_status manifest_shape(const Manifest *m, const Tensor *tensor, DimValues dims, int64_t *extents,
                          int64_t *n_bytes, frt_error *err);

/* Whether all terms hold. `args` has an entry for every argument that the predicate may name, and
 * `levels` (bit set) are those that run. A dim without a value, or an overflow, makes a term
 * false. */
bool predicate_holds(const Manifest *m, Predicate predicate, uint32_t levels, void *const *args,
                     DimValues dims);

/* Computes the two dims of a pitch whose matrix lies at `address`, if its extent has a value. */
void pitch_resolve(const Manifest *m, const Pitch *pitch, void *address, int64_t *values,
                   bool *known);

uint32_t name_hash(const char *name);
const char *role_name(frt_role role);

#endif
