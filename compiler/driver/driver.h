/* One compilation: source text to artifact bytes, through the passes of pipeline/passes.def in
 * order.
 *
 * All memory is in the driver's arenas. Every failure comes back as a status: driver_guard catches
 * running out of memory and broken invariants. The library uses it, and the program's subcommands
 * use parts of it. */
#ifndef FUSEC_DRIVER_DRIVER_H
#define FUSEC_DRIVER_DRIVER_H

#include "base/diag.h"
#include "codegen/codegen.h"
#include "explain/explain.h"
#include "front/include.h"
#include "ir/sequence.h"
#include "pipeline/pipeline.h"

#include <fusec.h>

/* Observes the passes; all members are optional. */
typedef struct DriverWatch {
    void *user;
    uint32_t wants_text; /* bit set of passes whose result is passed to `after` as text */
    /* Called after each pass with its wall time and, if wanted, its result. */
    void (*after)(void *user, PassId pass, double seconds, const char *text);
} DriverWatch;

/* Changes the plans between passes: `fusec verify` adds probes, tests add faults. All members are
 * optional. A changed plan is not verified again. */
typedef struct DriverHook {
    const struct DriverHook *before; /* its functions are called before these; or NULL */
    void *user;
    /* Called after fusion, before scheduling, with a plan that has traces. is_fused false: the plan
     * has one kernel per op. */
    void (*fused)(void *user, Arena *arena, Plan *plan, bool is_fused);
    /* Called after the passes that change what kernels do, before lowering. */
    void (*scheduled)(void *user, Arena *arena, Plan *plan, bool is_fused);
    /* Called after all passes before the manifest, which changes no code. */
    void (*placed)(void *user, Arena *arena, Plan *plan, bool is_fused);
} DriverHook;

typedef struct DriverOptions {
    fusec_kind kind;
    const Target *target;
    bool is_fast;                  /* --numerics=fast */
    const IncludeReader *includes; /* NULL: the source includes nothing */
    const char *weights; /* replaces the name of the weights file in the source; or NULL */
    bool no_fuse, explain, explain_json;
    fusec_rewrites rewrites;
    bool apart;          /* graphs with loops are replaced by what they are cut into */
    uint32_t n_threads;  /* see BackOptions */
    bool checks_llvm;    /* LLVM's verifier checks every module: in `fusec verify` and in tests */
    bool plans;          /* make plans even for kinds of output that need none */
    const Card *card;    /* the card for which the ledger predicts times; NULL: the target's */
    const int64_t *dims; /* values of dims for the ledger, by symbol, negative if not given; NULL:
                          * none given */
    DriverWatch watch;
    DriverHook hook;
} DriverOptions;

typedef struct Driver {
    Escape escape;
    Arena *arena, *scratch;
    Arena *trial;        /* memory of trial plans, for the effects of advice */
    Arena *group_trials; /* see Planning */
    RegionsAhead *ahead; /* see Planning */
    uint64_t work;       /* see Planning, as is the next one */
    GroupingWork grouped;
    StrTab *strings;
    Diags diags;
    DriverOptions options;
    const Source *source;
    struct Sema *front; /* the parsed source, not yet checked */
    Module *module;
    Module *planned;      /* its graphs are planned one by one: those of `module`, those with
                           * loops cut */
    Sequence **sequences; /* per graph of `module`; NULL: it has no loops */
    Planning planning;
    const Plan **plans; /* one per graph of `planned`; NULL before they are made */
    Emission *emission; /* of the code, in driver_build; else NULL */
    const char *manifest;
    CodeBytes code;      /* the output */
    const char *ledger;  /* the ledger as text with options.explain, as JSON with
                          * options.explain_json */
    const char *failure; /* one line, if a guarded call failed; else NULL */
} Driver;

/* False when memory is out. */
bool driver_init(Driver *driver, const DriverOptions *options);
void driver_free(Driver *driver);

/* Calls body(driver, user). It catches an escape from the driver's arenas and returns FUSEC_MEMORY
 * or FUSEC_INTERNAL, with a line in driver->failure. Calls must not nest. */
fusec_status driver_guard(Driver *driver, fusec_status (*body)(Driver *, void *), void *user);

/* Call the functions below under the guard. Diagnostics go to driver->diags. */

/* Parses and checks the source; sets driver->module. */
fusec_status driver_parse(Driver *driver, const char *name, const char *text, size_t n_bytes);
/* Compiles driver->module; sets plans, code and ledger. */
fusec_status driver_build(Driver *driver);

/* Graphs [first, first + n) of `planned` are what graph `graph` of `module` is planned as. */
uint32_t driver_planned(const Driver *driver, uint32_t graph, uint32_t *n);
/* Whether planned graph `k` is a step that is repeated: its launches are there twice. */
bool driver_is_repeated(const Driver *driver, uint32_t k);
/* After driver_build: predicts the graph's plan and its plan without fusion for options.card at
 * options.dims. False after a diagnostic. */
bool driver_price(Driver *driver, uint32_t graph, LedgerInput *input);

/* Has `told` called where LLVM would end the process because of a fault: for a program, since this
 * is global. `told` must not return. */
void driver_on_fault(void (*told)(const char *why));

/* Recomputes the checksum of a changed artifact; false if it has no manifest. */
bool driver_seal(char *artifact, size_t n_bytes);

/* Whether numerics of this name, `strict` or `fast`, are fast; false: the name is neither. */
bool driver_numerics_by_name(const char *name, bool *is_fast);
/* Whether rewrites of arithmetic are allowed: as the options say; by default only in fast
 * programs. */
bool driver_rewrites(const DriverOptions *options);
/* The target of a kind of output when the options name none: the first that the kind fits. */
const Target *driver_default_target(fusec_kind kind);
/* The kind of output that runs on the target. */
fusec_kind driver_artifact_kind(const Target *target);
/* Whether `kind` can be made for `target`. */
bool driver_kind_fits(fusec_kind kind, const Target *target);

enum { DEVICE_ANY = -1 };
typedef struct KindInfo {
    const char *name, *extension, *doc;
    int device; /* DeviceClass that it is made for, or DEVICE_ANY */
    bool is_binary;
} KindInfo;
const KindInfo *kind_info(fusec_kind kind);

#endif
