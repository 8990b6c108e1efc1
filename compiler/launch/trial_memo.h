/* Verdicts on trials of launches. Layers of a network are alike, and so are the launches
 * that are tried in them and the kernels around these. A verdict depends on those kernels, on the
 * nodes that they compute, and on which buffers only the launch uses. */
#ifndef FUSEC_LAUNCH_TRIAL_MEMO_H
#define FUSEC_LAUNCH_TRIAL_MEMO_H

#include "launch/trial.h"

typedef struct Verdict {
    bool pays;
    uint32_t worst; /* see Trial */
} Verdict;

/* A new empty memo of the plans of one graph. It keeps what it knows on the arena. */
TrialMemo *trial_memo_new(Arena *arena, const Graph *graph);
/* The verdict on a trial like this one; NULL: there is none. */
const Verdict *trial_memo_find(TrialMemo *memo, const Composer *c, const Trial *t);
/* Keeps the verdict on the trial that was looked up last. */
void trial_memo_add(TrialMemo *memo, Verdict verdict);

#endif
