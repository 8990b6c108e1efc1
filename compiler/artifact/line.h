/* Lines of the manifest, a directive and its fields: words, numbers, escaped names, expressions. */
#ifndef FUSEC_ARTIFACT_LINE_H
#define FUSEC_ARTIFACT_LINE_H

#include "artifact/manifest.h"
#include "base/vec.h"

/* A part of a buffer that launches get as an argument, in place of the buffer. */
typedef struct Part {
    uint32_t buffer;
    DimId begin; /* elements before it */
} Part;

/* The graph of a sequence that is written, and in which steps of the loops around it. */
typedef struct SequenceAt {
    const Sequence *sequence; /* NULL: the graph is no sequence */
    const SequenceGraph *sub;
    uint32_t number;
    uint32_t odd; /* a bit per loop around (sequence_value) */
} SequenceAt;

typedef struct Writer {
    const ManifestInput *input;
    const Module *module;
    DimTab *dims;
    Diags *diags;
    const Graph *graph; /* the graph being written */
    Text text;
    uint32_t n_lines, n_refs;
    size_t line_at;  /* offset of the current line */
    Vec(Part) parts; /* of the graph */
    SequenceAt at;
    bool failed; /* an error has been reported */
} Writer;

bool line_report_limit(Diags *diags, const Source *source, Span at, const char *what, uint32_t n);
/* Reports, once, that the artifact would pass a limit of the format; false. */
bool line_fail_limit(Writer *w, const char *what, uint32_t limit);

void line_begin(Writer *w, const char *directive);
void line_end(Writer *w);
/* A field, after a blank. */
void line_word(Writer *w, const char *word);
void line_int(Writer *w, int64_t number);
void line_name(Writer *w, const char *name);
void line_dim(Writer *w, DimId dim);
void line_shape(Writer *w, const Shape *shape);
/* A part of a field, without a blank: a name by the escape rule; an expression; the maximum of
 * some. */
void line_escaped(Writer *w, const char *name);
void line_expr(Writer *w, DimId dim);
void line_largest(Writer *w, const DimId *of, uint32_t n);

#endif
