/* See passes.h. */
#include "search/passes.h"

#include "fuse/fuse.h"
#include "fuse/hoist.h"
#include "launch/band.h"
#include "launch/compose.h"
#include "launch/dedup.h"
#include "launch/mask_bounds.h"
#include "layout/layout.h"
#include "memory/memplan.h"
#include "schedule/schedule.h"
#include "search/search.h"
#include "search/split_k_segments.h"
#include "split/dispatch_rows.h"
#include "split/split.h"

const PassTable plan_passes = {{
#define EACH(run) .each = run
#define ALL(run) .all = run
#define DRIVER(run) .all = NULL
#define PASS(sym, name, scope, run, extension, requires, leaves, modes, doc) \
    [PASS_##sym] = {scope(run)},
#include "pipeline/passes.def"
}};
