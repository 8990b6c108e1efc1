/* The functions of all passes, from every folder. */
#include "driver/driver_passes.h"

#include "fuse/fuse.h"
#include "fuse/hoist.h"
#include "launch/compose.h"
#include "launch/dedup.h"
#include "layout/layout.h"
#include "memory/memplan.h"
#include "schedule/schedule.h"
#include "search/search.h"
#include "search/split_k_choice.h"
#include "split/dispatch_rows.h"
#include "split/split.h"

const Pipeline driver_pipeline = {{
#define EACH(run) .each = run
#define ALL(run) .all = run
#define DRIVER(run) .all = run
#define PASS(sym, name, scope, run, extension, requires, leaves, modes, doc) \
    [PASS_##sym] = {scope(run)},
#include "pipeline/passes.def"
}};
