/* Threads of rows. See row.h; measurements are in docs/RESULTS.md. */
#include "schedule/row.h"

enum {
    WARP_THREADS = 32,
    BLOCK_THREADS = 128, /* of rows of a warp or less; a larger team is a block, as barriers are */
    MOST_BLOCK_THREADS = 512,
    /* Of a block that takes as long as it takes a processor to begin it: 4.4 TB/s by 12 blocks in a
     * microsecond on each of 132 processors. Where all begin at once that does not matter. */
    LEAST_BLOCK_BYTES = 3072,
    MACHINE_THREADS = 132 * 1024,
    /* Steps of a team of few threads. With more than that and than threads its rows lie so far
     * apart that what a warp has at once is in too many sectors. */
    LOADED_STEPS = 13,
    STORED_STEPS = 6,
    /* Of stores as wide as there are: threads side by side, and what a block has that needs no more
     * rows. */
    VECTOR_BYTES = 16,
    WORD_BYTES = 4,
    WIDE_TEAM = 4,
    WIDE_BLOCK_BYTES = 8192,
    /* Of a few rows, which all run at once: threads that other kernels' blocks have too, beside
     * which such rows may start, and steps of single elements that one may have which waits for
     * them alone, and a whole warp. Whether any are stored is the same to them, so that they start
     * together. */
    LONE_THREADS = 256,
    LONE_STEPS = 4,
    LONE_WARP_STEPS = 16
};

static int64_t row_steps(const Sched *sched, uint32_t team, int64_t length) {
    int64_t stride = (int64_t)team * sched->lanes;
    return (length + stride - 1) / stride;
}

/* Of as many rows as a block of `threads` has. */
static int64_t block_bytes(const RowUse *use, uint32_t threads, uint32_t team) {
    return threads / team * use->length * use->elem_bytes * (use->n_loads + use->n_stores);
}

static int64_t set_team(Sched *sched, const RowUse *use, uint32_t team, uint32_t slots) {
    sched->team = team;
    sched->slots = slots;
    sched->threads = team > WARP_THREADS ? team : BLOCK_THREADS;
    bool is_queued = team <= WARP_THREADS && use->rows > MACHINE_THREADS / team;
    while (is_queued && sched->threads < MOST_BLOCK_THREADS &&
           block_bytes(use, sched->threads, team) < LEAST_BLOCK_BYTES)
        sched->threads *= 2;
    return row_steps(sched, team, use->length);
}

int64_t sched_row_all(Sched *sched, const RowUse *use) {
    uint32_t most = reduce_order(FORM_ROW, DEVICE_GPU).n_chains / sched->lanes, team = 1;
    while (team < most && row_steps(sched, team, use->length) > 1) team *= 2;
    return set_team(sched, use, team, 1);
}

/* Whether it has more of a row than it should whatever else there is to do. */
static bool has_many_steps(const Sched *sched, const RowUse *use, uint32_t team) {
    int64_t steps = row_steps(sched, team, use->length);
    bool is_wide = use->n_stores && sched->lanes * use->elem_bytes >= VECTOR_BYTES;
    uint32_t few = !use->n_stores ? LOADED_STEPS : is_wide ? 1 : STORED_STEPS;
    int64_t words = steps * sched->lanes * (use->elem_bytes > WORD_BYTES ? 2 : 1);
    if (steps > use->most_steps || words > FEW_RESIDENT_ELEMS) return true;
    if (team >= WARP_THREADS) return false;
    if (is_wide &&
        (team < WIDE_TEAM || block_bytes(use, BLOCK_THREADS, 2 * team) >= WIDE_BLOCK_BYTES))
        return true;
    return steps > few && steps * use->n_loads > team;
}

/* Whether machine and row have room for twice as many threads. */
static bool is_lone(const Sched *sched, const RowUse *use, uint32_t team) {
    int64_t steps = row_steps(sched, team, use->length);
    if (team >= LONE_THREADS || use->rows > MACHINE_THREADS / (2 * (int64_t)team)) return false;
    if (sched->lanes > 1) return steps > 1 && team != WARP_THREADS;
    return steps > (team == WARP_THREADS ? LONE_WARP_STEPS : LONE_STEPS);
}

int64_t sched_row_few(Sched *sched, const RowUse *use) {
    sched_row_all(sched, use);
    uint32_t all = sched->team, team = 1;
    while (team < all && (has_many_steps(sched, use, team) || is_lone(sched, use, team))) team *= 2;
    return set_team(sched, use, team, all / team);
}

bool sched_row_widen(Sched *sched, uint32_t team) {
    uint32_t by = team / sched->team;
    if (!sched->resident || team % sched->team || sched->slots % by) return false;
    sched->team = team;
    sched->slots /= by;
    sched->resident = (sched->resident + by - 1) / by;
    if (team > WARP_THREADS) sched->threads = team;
    return true;
}
