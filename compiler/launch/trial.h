/* One trial for all launch modes: some launches of the plan, as they are and as one launch.
 *
 *           plan:   .. [ a ] [ b ] [ c ] [ d ] ..            try b and d as one
 *
 *    trial.apart:      [ a ] [ b ] [ d ]                     copies: context, then the launches
 * trial.together:      [ a ] [ b > d ]
 *
 * launch_try copies the launches, has the mode schedule them as one, compares prices, and puts the
 * launch in their place or drops the copies. The plan stays unchanged until then, so nothing needs
 * to be undone. */
#ifndef FUSEC_LAUNCH_TRIAL_H
#define FUSEC_LAUNCH_TRIAL_H

#include "cost/compare.h"
#include "plan/launch.h"

/* The edges of the plan by their producers: edges of[first[id]] to of[first[id + 1]] read node
 * id. */
typedef struct EdgesOf {
    uint32_t *first, *of;
} EdgesOf;

typedef struct TrialMemo TrialMemo; /* launch/trial_memo.h */

typedef struct Composer {
    const Planning *planning;
    Arena *arena, *scratch;
    Plan *plan;
    const Target *target;
    CostPoints points;
    uint64_t most_work;    /* Planning.work after which no one-block launch is tried; 0: no such */
    uint64_t n_beside;     /* scalars of the kernels that have been tried as parallel launches */
    PriceMemo *price_memo; /* NULL: the plan is too small to have parts alike */
    TrialMemo *trial_memo; /* NULL: likewise, or the graph has blocks */
    /* Per buffer: the kernels that it is an argument of, in whatever launches. NULL: kernels of no
     * mode share blocks. */
    const uint32_t *n_users;
    EdgesOf edges_of;   /* if kernels of a mode share blocks and the plan has edges */
    VecU32 of_versions; /* the buffers in which versions of kernels store rows */
    /* The plan's buffers as a trial places them, if kernels of a mode share blocks. Between trials
     * they are the plan's. */
    Buffer *placed;
    /* Room for the plan's buffers in a plan around a trial of one block. */
    Buffer *around;
    /* While launches are made only to keep `fuse must` blocks: the number of stored edges of such
     * blocks. 0: prices decide. */
    uint32_t n_broken;
    /* One block, per kernel of the plan, whose kernels that mode leaves in their order: bit set of
     * the block sizes with a schedule for it. */
    uint8_t *block_sizes;
} Composer;

typedef struct TrialPrices {
    Prices together, apart; /* without the context's prices */
} TrialPrices;

enum { MAX_TRIAL_LAUNCHES = 24 };

typedef struct LaunchRules LaunchRules;

typedef struct Trial {
    const LaunchRules *rules;
    uint32_t launches[MAX_TRIAL_LAUNCHES], n_launches; /* in the composer's plan, ascending */
    uint32_t n_context; /* launches before them in both plans; they may leave data in the cache */
    Plan apart, together;
    uint32_t worst; /* one block: the kernel that loses most */
} Trial;

/* The functions of a mode. */
struct LaunchRules {
    LaunchMode mode;
    uint32_t n_context;
    bool sets_space;   /* moves buffers out of global memory */
    bool is_at_last;   /* the launch takes its last kernel's place, not its first one's */
    bool has_cpu;      /* for CPUs too */
    bool keeps_blocks; /* keeps `fuse must` blocks that later modes do not */
    /* Calls launch_try for launches that may be one. */
    void (*propose)(Composer *c);
    /* Schedules the launch that was added last together with those before it; NULL: `schedule` does
     * it for all. Returns REASON_NONE, or why that is impossible; then the launch is left out. */
    ReasonId (*add)(const Composer *c, Trial *t);
    /* Schedules the launches as one and places their buffers. Returns REASON_NONE, or why they
     * cannot be one. */
    ReasonId (*schedule)(const Composer *c, Trial *t);
    /* Whether a `fuse must` block needs the launch, at any price. */
    bool (*is_asked)(const Composer *c, const Trial *t);
    /* Whether the launch pays. */
    bool (*pays)(const Composer *c, Trial *t, TrialPrices *prices);
};
#define LAUNCH_MODE(sym, name, ...) extern const LaunchRules launch_rules_##name;
#include "plan/launch_modes.def"

/* The result of a trial. */
typedef struct TrialResult {
    bool is_kept;                         /* the plan has the launch */
    ReasonId reason;                      /* why not; REASON_NONE: too few launches were left */
    ReasonId reasons[MAX_TRIAL_LAUNCHES]; /* why a launch was left out; else REASON_NONE */
    TrialPrices prices;                   /* if `reason` is REASON_SLOWER_LAUNCH */
    bool is_scheduled;                    /* a schedule for them as one exists */
    uint32_t worst;
} TrialResult;

/* Tries n launches of the composer's plan (ascending) as one by the mode's rules, and keeps the
 * launch if a block needs it or it pays. Does nothing if fewer than `least` launches fit
 * together. */
TrialResult launch_try(Composer *c, const LaunchRules *rules, const uint32_t *launches, uint32_t n,
                       uint32_t least);

/* A copy of launches [first, first + n) of the composer's plan, with those of the trial as one
 * (NULL: as they are) and the others composed by the modes after the trial's. */
Plan trial_compose_around(const Composer *c, const Trial *t, uint32_t first, uint32_t n);

/* The launches of the trial and those of a few kernels around them: [*first, *first + *n) of the
 * composer's plan. */
void trial_find_near(const Composer *c, const Trial *t, uint32_t *first, uint32_t *n);
/* trial_compose_around for these. `is_one`: those of the trial are one launch, else as they are. */
Plan trial_compose_near(const Composer *c, const Trial *t, bool is_one);

/* Makes all launches of `together` after the context one launch of the trial's mode. */
void trial_merge(Trial *t);
/* The kernels of the tried launches; `k` counts from the first. */
uint32_t trial_n_kernels(const Trial *t);
Kernel *trial_kernel(const Trial *t, uint32_t k);
/* The first launch after the context, in `together`. */
Launch *trial_launch(const Trial *t);
/* Whether only the tried kernels use the temporary. */
bool trial_is_private(const Composer *c, const Trial *t, uint32_t buffer);
/* Whether a `fuse must` block contains a value that one of the first `n` kernels stores, and a user
 * of it in kernel `reader`. */
bool trial_is_asked_to_pass(const Trial *t, uint32_t n, uint32_t reader);
/* Whether prices allow the launch: at no point more than 2 % slower. */
bool trial_pays(const Composer *c, Trial *t, TrialPrices *prices);

/* Gives variant `v` of n kernels wide indices if one of them has wide indices: one loop computes
 * the indices of all. */
void kernels_widen_alike(Kernel *kernels, uint32_t n, uint32_t v);

/* CPU: the row kernel's variant in the units of that variant of a GEMM. */
Variant trial_cpu_row_variant(const Kernel *rows, const Variant *of_gemm);

/* Whether the source requires a kernel of its own for a value of the kernel. */
bool launch_has_own_kernel(const Plan *plan, const Kernel *kernel);
/* Sets the edges of `plan`, the composer's or a copy, over which the last of the launch's first `n`
 * kernels reads values that the kernels before it store, if the values were stored. `from`: the
 * plan with the launch. */
void launch_set_passed_edges(const Composer *c, Plan *plan, const Plan *from, const Launch *launch,
                             uint32_t n, EdgeVerdict verdict, ReasonId reason);
#endif
