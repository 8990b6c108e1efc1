/* The pipeline: which passes make a plan of a graph, in which order, and the one function that runs
 * them.
 *
 * passes.def is the list. Compilation runs all of it. Search, advice, prices of one kernel for each
 * op and trials inside passes run parts of it, in a mode of modes.def, on plans of their own. The
 * functions are in the folders of the passes, which lie above this one. Two tables hand them down:
 * of the passes that make plans (search/passes.h) and of the driver's own passes. */
#ifndef FUSEC_PIPELINE_PIPELINE_H
#define FUSEC_PIPELINE_PIPELINE_H

#include "base/diag.h"
#include "machine/target.h"
#include "pipeline/decisions.h"
#include "plan/plan.h"

typedef enum PassId {
#define PASS(sym, name, scope, run, extension, requires, leaves, modes, doc) PASS_##sym,
#include "pipeline/passes.def"
    PASS_COUNT
} PassId;

typedef enum Fact {
#define FACT(sym, name, doc) FACT_##sym,
#include "pipeline/facts.def"
    FACT_COUNT
} Fact;

typedef enum PlanMode {
#define MODE(sym, name, fuses, rewrites, doc) MODE_##sym,
#include "pipeline/modes.def"
    MODE_COUNT
} PlanMode;

typedef enum {
    SCOPE_EACH,  /* the pass works on one graph */
    SCOPE_ALL,   /* on every graph of the program */
    SCOPE_DRIVER /* the same; the pass is the driver's own */
} PassScope;

typedef struct PassInfo {
    const char *name, *extension, *doc;
    uint32_t requires, leaves; /* facts, bit sets */
    uint32_t modes, gpu_modes; /* in which it runs, bit sets: for every target; for a GPU */
    PassScope scope;
} PassInfo;
const PassInfo *pass_info(PassId pass);

typedef struct ModeInfo {
    const char *name, *doc;
    bool fuses, rewrites;
} ModeInfo;
const ModeInfo *mode_info(PlanMode mode);
/* The modes of launches that are tried, a bit set over LaunchMode. */
uint32_t mode_launches(PlanMode mode);

typedef struct FactInfo {
    const char *name, *doc;
} FactInfo;
const FactInfo *fact_info(Fact fact);

/* A graph and what passes make of it. */
typedef struct PlanUnit {
    Graph *graph;
    const Decisions *decisions; /* or NULL: nothing is asked */
    Plan *plan;                 /* NULL before PASS_FUSE */
} PlanUnit;

typedef struct Planning Planning;
/* A pass. False: it has reported an error. */
typedef bool PassEach(const Planning *p, PlanUnit *unit);
typedef bool PassAll(const Planning *p);

/* Functions of passes: one of the two for each pass that the table has. */
typedef struct PassTable {
    struct {
        PassEach *each;
        PassAll *all;
    } passes[PASS_COUNT];
} PassTable;

/* What a run of the pipeline works on. */
struct Planning {
    const PassTable *planning; /* the passes that make plans */
    const PassTable *driver;   /* the driver's own; NULL: none of them is run */
    const Target *target;
    PlanMode mode;
    bool may_rewrite; /* the program allows arithmetic to be rewritten */
    Arena *arena;     /* of what passes make */
    Arena *scratch;   /* another one, of what a pass needs while it runs; NULL: it needs none */
    Arena *trial;     /* the same for plans that PASS_SPLIT_K makes; else NULL */
    Diags *diags;
    PlanUnit *units;
    uint32_t n_units;
    uint32_t facts; /* that hold: a bit set */
    void *user;     /* the driver */
    /* Called after each pass, or NULL. */
    void (*after)(const Planning *p, PassId pass, double seconds);
};

/* Runs the passes from `from` to `to`, both included, that the mode has. A pass whose requirements
 * do not hold is an internal error. False: a pass has reported an error, and none behind it ran. */
bool pipeline_run(Planning *p, PassId from, PassId to);

/* A copy of the graph for a trial: passes may give its copy of the dims symbols of their own. */
Graph *graph_for_trial(Arena *arena, const Graph *graph);
/* The plan of a graph for a trial, as far as `to`: for the target of `like`, without reports; NULL:
 * it cannot be. Arenas as in Planning. */
Plan *pipeline_try(const Planning *like, Arena *arena, Arena *scratch, PlanMode mode, Graph *graph,
                   const Decisions *decisions, PassId to);
/* Runs passes on a plan at hand, or on some of its kernels, for a trial. */
void pipeline_retry(const Planning *like, Arena *arena, Arena *scratch, PlanMode mode, Plan *plan,
                    PassId from, PassId to);

#endif
