/* The manifest's text layer: lines, fields, numbers, names and expressions, each bounds-checked. It
 * knows no directive. The text may be hostile. */
#ifndef FRT_MANIFEST_TEXT_H
#define FRT_MANIFEST_TEXT_H

#include "manifest/manifest.h"
#include "host/port.h"

typedef struct Slice {
    const char *bytes;
    size_t n;
} Slice;

enum { MAX_FIELDS = 20 };

typedef struct TextReader {
    Manifest *m;
    const char *text;
    size_t n_bytes;
    size_t at;                /* start of the next line */
    size_t line_at;           /* start of the current line */
    uint32_t line;            /* of the manifest, from 1 */
    Slice fields[MAX_FIELDS]; /* [0] is the directive */
    uint32_t n_fields;
    char *strings_end; /* next free byte of m->strings */
    uint32_t tokens_capacity, terms_capacity;
    frt_status out_of_memory; /* sticky */
    frt_error *err;
} TextReader;

/* Fails with FRT_E_ARTIFACT and "manifest line N: " before the message. */
frt_status text_fail(TextReader *r, const char *format, ...) FRT_PRINTF(2, 3);

/* Advances to the next line and splits it into fields. */
frt_status text_next_line(TextReader *r);

bool slice_is(Slice s, const char *word);

/* Cuts the piece before the next `separator` off the front of `rest`; false when `rest` is
 * empty. */
bool slice_cut(Slice *rest, char separator, Slice *piece);

/* Reads a decimal number without sign or leading zeros, at most `max`. */
frt_status text_int(TextReader *r, Slice s, int64_t max, const char *what, int64_t *value);
/* Bits: `0x` and up to 16 lower-case hex digits, without leading zeros. */
frt_status text_bits(TextReader *r, Slice s, const char *what, uint64_t *bits);

/* Unescapes a name into the manifest's strings. */
frt_status text_name(TextReader *r, Slice s, const char *what, const char **name);

/* Copies a field without unescaping (versions, architectures). */
const char *text_word(TextReader *r, Slice s);

/* Parses a postfix expression over the dims declared so far. */
frt_status text_expr(TextReader *r, Slice s, const char *what, Expr *expr);

/* Reads a field with a predicate over `n_args` arguments; `-` has no terms. In
 * manifest_predicate.c. */
/* The line of the target, and of a level, which must follow it. */
frt_status text_target(TextReader *r);
frt_status text_level(TextReader *r);

frt_status text_predicate(TextReader *r, Slice s, uint32_t n_args, Predicate *predicate);
/* Reads the options `waits` and `resident:CLUSTER` of a CUDA variant, in this order, from field
 * `next` on. `next` becomes the field after them. */
frt_status text_launch_options(TextReader *r, Variant *variant, uint32_t *next);
/* Reads `price:BLOCKS:PER_WAVE:PERCENT:FIXED`, followed by `:WEIGHT` for each measure of
 * `price`. */
frt_status text_price(TextReader *r, Slice s, Price *price);
/* Reads the fields of a `measures` line. */
frt_status text_measures(TextReader *r, Price *price);

/* Reads the name of a tensor and finds its index in the graph; -1 if the graph has none yet. The
 * name is valid until the next one is read. In manifest_tensor.c. */
frt_status text_declared(TextReader *r, const Graph *graph, Slice s, const char *what,
                         const char **name, int32_t *index);
/* Read the parts of a tensor line: name, device ordinal and dtype (fields 1 to 3); the extents
 * (fields [first, end)); and the place of a temp (field 4), OFFSET into the workspace or
 * NAME:OFFSET into an output or another temp. In manifest_tensor.c. */
frt_status text_tensor_head(TextReader *r, Tensor *tensor);
frt_status text_extents(TextReader *r, Tensor *tensor, uint32_t first, uint32_t end);
frt_status text_place(TextReader *r, const Graph *graph, Tensor *tensor);
/* Finds a tensor of an earlier line by name. */
frt_status text_tensor(TextReader *r, const Graph *graph, Slice s, const char *what,
                       int32_t *index);
/* The line's output may be bound to the address of its input, which has the same type. */
frt_status text_in_place(TextReader *r, const Graph *graph);

/* Where the reader is in a `repeat`. */
typedef struct RepeatState {
    uint32_t capacity;                   /* of the manifest's list */
    uint32_t n_open;                     /* repeats that have begun and not ended */
    uint32_t open[FRT_MAX_REPEATS_DEEP]; /* numbered within the graph */
    bool is_odd[FRT_MAX_REPEATS_DEEP];
} RepeatState;

/* Reads a line `repeat`, `odd` or `end-repeat`. In manifest_repeat.c. */
frt_status text_repeat(TextReader *r, Graph *graph, RepeatState *state);

/* Reads the fields of a map line. It checks ARG against `last_arg`. In manifest_map.c. */
frt_status text_map(TextReader *r, int64_t last_arg, Map *map);
/* Checks the map against the dtype of its argument. */
frt_status text_check_map(TextReader *r, const Map *map, frt_dtype dtype);

int32_t text_find_dim(const TextReader *r, const char *name);
/* The index of the declared dim of this name. `what` refers to it, for messages. */
frt_status text_dim(TextReader *r, Slice s, const char *what, int32_t *dim);

/* Makes room for item `n` of a list whose capacity doubles: `list = text_grow(...)`. On failure the
 * list is as before and r->out_of_memory is set. GROW yields the status. */
void *text_grow(TextReader *r, void *list, uint32_t *capacity, uint32_t n, size_t item);
#define GROW(r, list, capacity, n) \
    ((list) = text_grow(r, list, &(capacity), n, sizeof *(list)), (r)->out_of_memory)

#endif
