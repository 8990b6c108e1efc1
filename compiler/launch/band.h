/* Bands of softmax between two products, on a GPU. A mask may hide most of the scores: of causal
 * attention half of them. Where these are three launches, each need know only the band of the
 * matrix: of each tile of rows, the columns from the first to the last that some row sees.
 *
 *     columns    0    128   256   384           small kernels in front of the launches
 *     rows   0   [ seen |     |     |     ]      finite   [batch, 256]    values that are not
 *          256   [ seen | seen| seen|     ]      seen     [batch, rows]   columns of each row
 *          512   [ seen | seen| seen| seen]      band     [batch, tiles]  of both
 *
 * No bit changes. A hidden score is -infinity, so its weight is 0, or NaN as the whole row; the
 * product of 0 and a finite value adds nothing. So the band also has the columns of values that are
 * not finite, and at least BAND_STEP columns, from which a row without columns gets its NaN. */
#ifndef FUSEC_LAUNCH_BAND_H
#define FUSEC_LAUNCH_BAND_H

#include "pipeline/pipeline.h"

/* Adds row kernels and their launches to the plan, and Kernel.band to the three kernels. Requires
 * composed launches. */
bool band_pass(const Planning *p, PlanUnit *unit);

#endif
