/* The passes that make plans: the functions for the rows of pipeline/passes.def that are not the
 * driver's own. Search is the highest folder of planning and may include all the others. */
#ifndef FUSEC_SEARCH_PASSES_H
#define FUSEC_SEARCH_PASSES_H

#include "pipeline/pipeline.h"

extern const PassTable plan_passes;

#endif
