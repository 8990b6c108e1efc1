/* One compilation: source text to artifact bytes, through the passes of
 * pipeline/passes.def in order.
 *
 * Everything lives in the driver's arenas. Whatever goes wrong comes back as a status: driver_guard
 * catches running out of memory and broken invariants. Used by the library and, for its pieces, by
 * the program's subcommands. */
#ifndef FUSEC_DRIVER_DRIVER_H
#define FUSEC_DRIVER_DRIVER_H

#include "base/diag.h"
#include "codegen/codegen.h"
#include "explain/explain.h"
#include "pipeline/pipeline.h"

#include <fusec.h>

/* Watching the passes; all members optional. */
typedef struct DriverWatch {
    void *user;
    uint32_t wants_text; /* bit set of passes whose result `after` gets as text */
    /* After each pass: wall time and, where wanted, its result. */
    void (*after)(void *user, PassId pass, double seconds, const char *text);
} DriverWatch;

/* Changing the plans between passes: `fusec verify` puts probes into them, tests faults. All
 * members optional; what is changed is not verified again. */
typedef struct DriverHook {
    void *user;
    /* Grouped and composed, not scheduled; `is_fused`: not a kernel per op. */
    void (*fused)(void *user, Arena *arena, Plan *plan, bool is_fused);
    /* All but lowered. */
    void (*placed)(void *user, Arena *arena, Plan *plan, bool is_fused);
} DriverHook;

typedef struct DriverOptions {
    fusec_kind kind;
    const Target *target;
    bool is_fast;        /* --numerics=fast, not strict */
    const char *weights; /* replaces the source's name of the weights file; or NULL */
    bool no_fuse, explain, explain_json;
    fusec_rewrites rewrites;
    bool plans;          /* makes plans for kinds of output that need none */
    const Card *card;    /* that the ledger prices for; NULL: the target's */
    const int64_t *dims; /* at these values by symbol, negative where not given; NULL: none is */
    DriverWatch watch;
    DriverHook hook;
} DriverOptions;

typedef struct Driver {
    Escape escape;
    Arena *arena, *scratch;
    Arena *trial; /* of plans that are made to see what follows from advice */
    StrTab *strings;
    Diags diags;
    DriverOptions options;
    const Source *source;
    struct Sema *front; /* what is parsed and not checked */
    Module *module;
    Planning planning;
    const Plan **plans; /* one per graph, NULL before */
    const char *manifest;
    CodeBytes code;      /* the output */
    const char *ledger;  /* with options.explain, or as JSON with options.explain_json */
    const char *failure; /* of a guarded call that did not return: one line, or NULL */
} Driver;

/* False when memory is out. */
bool driver_init(Driver *driver, const DriverOptions *options);
void driver_free(Driver *driver);

/* Calls body(driver, user) and catches what leaves through the driver's escape, which becomes
 * FUSEC_MEMORY or FUSEC_INTERNAL, with `driver->failure`. Not to be nested. */
fusec_status driver_guard(Driver *driver, fusec_status (*body)(Driver *, void *), void *user);

/* To be called under the guard. Diagnostics go to driver->diags. */

/* Parses and checks; sets driver->module. */
fusec_status driver_parse(Driver *driver, const char *name, const char *text, size_t n_bytes);
/* Compiles driver->module; sets plans, code, ledger. */
fusec_status driver_build(Driver *driver);

/* After driver_build: the graph's plan and the one without fusion, priced for options.card at
 * options.dims. False after a diagnostic. */
bool driver_price(Driver *driver, uint32_t graph, ExplainInput *input);

/* Renews the checksum of an artifact whose bytes were changed; false when it is none. */
bool driver_seal(char *artifact, size_t n_bytes);

/* `strict` or `fast`, and back; false: it is neither. */
const char *driver_numerics(bool is_fast);
bool driver_numerics_by_name(const char *name, bool *is_fast);
/* Whether arithmetic may be rewritten, within a bound: as asked for, else in fast programs. */
bool driver_rewrites(const DriverOptions *options);
/* What a kind of output compiles for when no target is named. */
const Target *driver_default_target(fusec_kind kind);
/* Whether `kind` can be made for `target`. */
bool driver_kind_fits(fusec_kind kind, const Target *target);

typedef struct KindInfo {
    const char *name, *extension, *doc;
    enum { KIND_FOR_ANY, KIND_FOR_GPU, KIND_FOR_CPU } device;
    bool is_binary;
} KindInfo;
const KindInfo *kind_info(fusec_kind kind);

#endif
