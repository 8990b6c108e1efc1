/* The pipeline: the passes that turn a graph into a plan, their order, and the one function that
 * runs them.
 *
 * passes.def lists the passes. Compilation runs all of them. Search, advice, prices of one kernel
 * per op, and trials inside passes run parts of the list, in a mode of modes.def, on plans of their
 * own. The functions are in the folders of the passes, which include this folder and not the other
 * way round. Two tables provide the functions: one of the passes that make plans (search/passes.h),
 * one of the driver's own passes. */
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
#define MODE(sym, name, fuses, doc) MODE_##sym,
#include "pipeline/modes.def"
    MODE_COUNT
} PlanMode;

typedef enum {
    SCOPE_EACH,  /* the pass works on one graph */
    SCOPE_ALL,   /* the pass works on all graphs of the program */
    SCOPE_DRIVER /* like SCOPE_ALL, for a pass of the driver */
} PassScope;

typedef struct PassInfo {
    const char *name, *extension, *doc;
    uint32_t requires, leaves; /* facts, bit sets */
    uint32_t modes, gpu_modes; /* modes in which it runs, bit sets: every target; GPUs */
    PassScope scope;
} PassInfo;
const PassInfo *pass_info(PassId pass);

typedef struct ModeInfo {
    const char *name, *doc;
    bool fuses;
} ModeInfo;
const ModeInfo *mode_info(PlanMode mode);
/* The launch modes that the mode tries, a bit set of LaunchMode. */
uint32_t mode_launches(PlanMode mode);

typedef struct FactInfo {
    const char *name, *doc;
} FactInfo;
const FactInfo *fact_info(Fact fact);

/* The work of grouping for all plans of a program. */
typedef struct GroupingWork {
    uint64_t n_scalars; /* that trials of groups have made */
    uint64_t n_steps;   /* nodes, facts, loads and groups that it has looked at */
} GroupingWork;

/* What PASS_FUSE has learned of groups of one graph (fuse/group_memo.h). */
typedef struct GroupMemo GroupMemo;
/* The part of it that graphs share. */
typedef struct KnownGroups KnownGroups;

/* A graph and the results of passes on it. */
typedef struct PlanUnit {
    Graph *graph;
    const Decisions *decisions; /* NULL: no directives */
    Plan *plan;                 /* NULL before PASS_FUSE */
    GroupMemo *group_memo;      /* NULL before PASS_DECIDE */
    PassId is_made_to;          /* the plan has the results of the passes up to this one */
} PlanUnit;

typedef struct Planning Planning;
/* A pass. It returns false if it has reported an error. */
typedef bool PassEach(const Planning *p, PlanUnit *unit);
typedef bool PassAll(const Planning *p);

/* The functions of passes: one of the two for each pass of the table. */
typedef struct PassTable {
    struct {
        PassEach *each;
        PassAll *all;
    } passes[PASS_COUNT];
} PassTable;

/* What PASS_DECIDE has learned of parts of graphs (search/region_memo.h). */
typedef struct RegionMemo RegionMemo;

/* Threads on which PASS_DECIDE prices parts of graphs (search/ahead.h). */
typedef struct RegionsAhead RegionsAhead;

/* Prices of parts of one plan (cost/price_memo.h). */
typedef struct PriceMemo PriceMemo;

/* The state of a run of the pipeline. */
struct Planning {
    const PassTable *plan_passes;   /* the passes that make plans */
    const PassTable *driver_passes; /* the driver's own; NULL: they do not run */
    const Target *target;
    PlanMode mode;
    bool has_traces;           /* kernels have traces, for probes; not in trials */
    bool has_texts;            /* `after` shows what single passes leave */
    bool is_trial;             /* the plans are only priced, so nothing verifies them */
    Arena *arena;              /* for the results of passes */
    Arena *scratch;            /* another arena, for temporary data; may be NULL */
    Arena *trial;              /* another arena, for plans that are only priced; NULL: in trials */
    Arena *group_trials;       /* another arena, for trials of groups that grow; may be NULL */
    RegionMemo *region_memo;   /* shared with trials; NULL: none is kept */
    RegionsAhead *ahead;       /* not in trials; NULL: there is one thread */
    KnownGroups *known_groups; /* shared by graphs; NULL: each has its own */
    const uint32_t *op_cost;   /* op_costs, of the search that tries plans; otherwise NULL */
    GroupMemo *group_memo;     /* of the graph whose plans the search tries; otherwise NULL */
    PriceMemo *price_memo;     /* of the plan that is tried again; otherwise NULL */
    Diags *diags;
    /* Whether the result may have a plan with so many buffers, or the error is reported; NULL: any.
     * Later passes add buffers and take none away. Not in trials. */
    bool (*may_hold)(const Graph *graph, uint32_t n_buffers, Diags *diags);
    PlanUnit *units;
    uint32_t n_units;
    uint32_t facts; /* facts that hold, a bit set */
    /* Adds up the scalars of the kernels that each pass has left, in trials too: it grows as time
     * does. NULL: nobody asks. */
    uint64_t *work;
    /* Adds up the work of grouping, in trials too, until fusion stops trying. NULL: nobody asks,
     * and it never stops. */
    GroupingWork *grouped;
    /* Work after which the search for ways to keep `fuse must` blocks ends; 0: it never does. */
    uint64_t most_work;
    void *user; /* the driver */
    /* Called after each pass; may be NULL. */
    void (*after)(const Planning *p, PassId pass, double seconds);
};

/* Runs the passes of the mode from `from` to `to`, both included. A pass whose required facts do
 * not hold is an internal error. Returns false if a pass has reported an error; then no later pass
 * has run. */
bool pipeline_run(Planning *p, PassId from, PassId to);

/* A copy of the graph for a trial: passes may add symbols to its copy of the dims. */
Graph *graph_for_trial(Arena *arena, const Graph *graph);
/* Plans a graph for a trial, up to pass `to`, for the target of `like`, without diagnostics.
 * Returns NULL if it cannot be planned. The arenas are as in Planning. */
Plan *pipeline_try(const Planning *like, Arena *arena, Arena *scratch, PlanMode mode, Graph *graph,
                   const Decisions *decisions, PassId to);
/* Runs passes on an existing plan, or on a plan of some of its kernels, for a trial. */
void pipeline_retry(const Planning *like, Arena *arena, Arena *scratch, PlanMode mode, Plan *plan,
                    PassId from, PassId to);

#endif
