/* One trial for all launch modes: some launches of the plan, as they are and as one launch.
 *
 *            plan:   .. [ a ] [ b ] [ c ] [ d ] ..            try b and d as one
 *
 *     trial.apart:      [ a ] [ b ] [ d ]                     copies: context, then the launches
 *  trial.together:      [ a ] [ b > d ]
 *
 * launch_try copies the launches, has the mode schedule them as one, judges, and puts the launch in
 * their place or drops the copies. Until then the plan is as it was, so nothing is undone. */
#ifndef FUSEC_LAUNCH_TRIAL_H
#define FUSEC_LAUNCH_TRIAL_H

#include "cost/compare.h"
#include "plan/launch.h"

typedef struct Composer {
    const Planning *planning;
    Arena *arena, *scratch;
    Plan *plan;
    const Target *target;
    CostPoints points;
    /* While launches are tried that keep `fuse must` blocks, whatever they cost: edges of such
     * blocks that stay stored. 0: prices decide. */
    uint32_t n_broken;
} Composer;

typedef struct TrialPrices {
    Prices together, apart; /* without the context's */
} TrialPrices;

enum { MAX_TRIAL_LAUNCHES = 24 };

typedef struct LaunchRules LaunchRules;

typedef struct Trial {
    const LaunchRules *rules;
    uint32_t launches[MAX_TRIAL_LAUNCHES], n_launches; /* of the composer's plan, ascending */
    uint32_t n_context; /* launches ahead of them in both plans, for what they leave in the cache */
    Plan apart, together;
    uint32_t worst; /* one block: the kernel that loses most by it */
} Trial;

/* What a mode adds to a trial. */
struct LaunchRules {
    LaunchMode mode;
    uint32_t n_context;
    bool sets_space;   /* it takes buffers out of global memory */
    bool is_at_last;   /* the launch comes to its last kernel's place, not to its first one's */
    bool has_cpu;      /* it is for CPUs too */
    bool keeps_blocks; /* its launches keep `fuse must` blocks that neither fusion nor the modes
                        * behind it keep */
    /* Calls launch_try for launches that may be one. */
    void (*propose)(Composer *c);
    /* Schedules the launch that was added last as one with those before; NULL: `schedule` does it
     * for all. REASON_NONE, or why that cannot be; then the launch is left out. */
    ReasonId (*add)(const Composer *c, Trial *t);
    /* Schedules the launches as one and places their buffers. REASON_NONE, or why they cannot be
     * one. */
    ReasonId (*schedule)(const Composer *c, Trial *t);
    /* Whether a `fuse must` block asks for the launch, whatever it costs. */
    bool (*is_asked)(const Composer *c, const Trial *t);
    /* Whether the launch is worth it. */
    bool (*pays)(const Composer *c, Trial *t, TrialPrices *prices);
};
#define LAUNCH_MODE(sym, name, blocks, tried, text, word) \
    extern const LaunchRules launch_rules_##name;
#include "plan/launch_modes.def"

/* What came of a trial. */
typedef struct TrialResult {
    bool is_kept;                         /* the plan has the launch */
    ReasonId reason;                      /* why not; REASON_NONE: too few were left */
    ReasonId reasons[MAX_TRIAL_LAUNCHES]; /* why each launch was left out; else REASON_NONE */
    TrialPrices prices;                   /* where `reason` is REASON_SLOWER_LAUNCH */
    bool is_scheduled;                    /* there was a schedule for them as one */
    uint32_t worst;
} TrialResult;

/* Tries n launches of the composer's plan (ascending) as one by the rules of a mode, and keeps it
 * where it is asked for or pays. Fewer than `least` that fit together are not tried. */
TrialResult launch_try(Composer *c, const LaunchRules *rules, const uint32_t *launches, uint32_t n,
                       uint32_t least);

/* A copy of launches [first, first + n) of the composer's plan, with those of the trial as one
 * (NULL: as they are) and the others composed by the modes behind the trial's. */
Plan trial_compose_around(const Composer *c, const Trial *t, uint32_t first, uint32_t n);

/* Makes all launches of `together` behind the context one launch of the trial's mode. */
void trial_merge(Trial *t);
/* The launches tried: `k` counts their kernels from the first on. */
uint32_t trial_n_kernels(const Trial *t);
Kernel *trial_kernel(const Trial *t, uint32_t k);
/* In `together`, the first launch behind the context. */
Launch *trial_launch(const Trial *t);
/* Whether no kernel of the plan but those tried has the temp. */
bool trial_is_private(const Composer *c, const Trial *t, uint32_t buffer);
/* Whether a `fuse must` block holds a value that one of the first `n` kernels stores, and a user of
 * it in kernel `reader`. */
bool trial_is_asked_to_pass(const Composer *c, const Trial *t, uint32_t n, uint32_t reader);
/* Whether the prices speak for the launch: no slower at any point, but for 2 %. */
bool trial_pays(const Composer *c, Trial *t, TrialPrices *prices);

/* Whether the source wants a value of the kernel in a kernel of its own. */
bool launch_has_own_kernel(const Plan *plan, const Kernel *kernel);
/* Edges of `plan` over which the last of the launch's first `n` kernels reads what those before it
 * store: sets them, where the value was stored. `from`: the plan that has the launch. */
void launch_set_passed_edges(Plan *plan, const Plan *from, const Launch *launch, uint32_t n,
                             EdgeVerdict verdict, ReasonId reason);
#endif
