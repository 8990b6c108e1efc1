/* Diagnostics: collected, counted, formatted like clang's. Every kind is a row of diag.def. */
#ifndef FUSEC_BASE_DIAG_H
#define FUSEC_BASE_DIAG_H

#include "base/source.h"
#include "base/str.h"

typedef enum { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE, SEVERITY_HELP } Severity;

typedef enum {
    DIAG_NONE,
#define DIAG(sym, id, severity, hint) DIAG_##sym,
#include "base/diag.def"
    DIAG_COUNT
} DiagId;

typedef struct DiagInfo {
    const char *id; /* kebab case, stable: part of the interface */
    Severity severity;
    const char *hint; /* advice printed as `help:`, or NULL */
} DiagInfo;

const DiagInfo *diag_info(DiagId id);

typedef struct Diag {
    DiagId id;
    Severity severity;
    const Source *source; /* NULL when it concerns no text */
    Span span;
    const char *message; /* one line, lower case, no final period */
    struct Diag *next;   /* in order of report; notes and helps follow what they belong to */
} Diag;

typedef struct Diags Diags;
struct Diags {
    Arena *arena;
    Diag *first, *last;
    uint32_t n_errors, n_warnings;
};

/* Errors past this many are counted but not kept: the rest is usually their consequence. */
enum { DIAG_MAX_ERRORS = 20 };

/* Reports one diagnostic; its row's hint, if any, follows as help. Always returns false, so that
 * `return diag_report(...)` reads as failure. */
STR_PRINTF(5, 6)
bool diag_report(Diags *diags, DiagId id, const Source *source, Span span, const char *format, ...);
STR_PRINTF(4, 5)
void diag_note(Diags *diags, const Source *source, Span span, const char *format, ...);
STR_PRINTF(2, 3) void diag_help(Diags *diags, const char *format, ...);

/* Prints all as text:
 *   mlp.g:7:9: error: shapes of `add` do not broadcast: (64, 128) and (64, 100) [shape-mismatch]
 *       h = x + b
 *           ^~~~~
 *   mlp.g:4:5: note: `b` is declared here */
void diag_print(const Diags *diags, Text *out);

#endif
