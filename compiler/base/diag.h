/* Diagnostics: collected, counted, and formatted like clang's. Every kind is a row of diag.def. */
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
    const char *id; /* kebab case; stable, because users rely on it */
    Severity severity;
    const char *hint; /* advice printed as `help:`, or NULL */
} DiagInfo;

const DiagInfo *diag_info(DiagId id);

typedef struct Diag {
    DiagId id;
    Severity severity;
    const Source *source; /* NULL: it concerns no text */
    Span span;
    const char *message; /* one line, lower case, no final period */
    struct Diag *next;   /* in order of report; notes and helps follow their error or warning */
} Diag;

typedef struct Diags Diags;
struct Diags {
    Arena *arena;
    Diag *first, *last;
    uint32_t n_errors, n_warnings;
};

/* Errors beyond this number are counted but not kept, because most are consequences of earlier
 * ones. */
enum { DIAG_MAX_ERRORS = 20 };

/* Reports one diagnostic. Its row's hint, if any, follows as help. Always returns false, so that
 * `return diag_report(...)` returns the failure. */
STR_PRINTF(5, 6)
bool diag_report(Diags *diags, DiagId id, const Source *source, Span span, const char *format, ...);
STR_PRINTF(4, 5)
void diag_note(Diags *diags, const Source *source, Span span, const char *format, ...);
STR_PRINTF(2, 3) void diag_help(Diags *diags, const char *format, ...);

/* Prints all diagnostics as text:
 *   mlp.g:7:9: error: shapes of `add` do not broadcast: (64, 128) and (64, 100) [shape-mismatch]
 *       h = x + b
 *           ^~~~~
 *   mlp.g:4:5: note: `b` is declared here */
void diag_print(const Diags *diags, Text *out);

#endif
