/* Threads per row. See row.h; measurements are in docs/results. */
#include "schedule/row.h"
#include "machine/machine.h"
#include "machine/tuning.h"

static int64_t row_steps(const Sched *sched, uint32_t threads_per_row, int64_t length) {
    int64_t stride = (int64_t)threads_per_row * sched->lanes;
    return (length + stride - 1) / stride;
}

static int64_t machine_threads(const RowUse *use) {
    return (int64_t)use->n_processors * SCHED_PROCESSOR_THREADS;
}

/* Bytes of the rows in a block of `threads`. */
static int64_t block_bytes(const RowUse *use, uint32_t threads, uint32_t threads_per_row) {
    return threads / threads_per_row * use->length * use->elem_bytes *
           (use->n_loads + use->n_stores);
}

static int64_t set_threads_per_row(Sched *sched, const RowUse *use, uint32_t threads_per_row,
                                   uint32_t slots) {
    sched->row.threads_per_row = threads_per_row;
    sched->row.slots = slots;
    sched->threads = threads_per_row > WARP_THREADS ? threads_per_row : SCHED_ROW_BLOCK_THREADS;
    bool is_queued =
        threads_per_row <= WARP_THREADS && use->rows > machine_threads(use) / threads_per_row;
    while (is_queued && sched->threads < SCHED_ROW_MOST_THREADS &&
           block_bytes(use, sched->threads, threads_per_row) < SCHED_ROW_BLOCK_BYTES)
        sched->threads *= 2;
    return row_steps(sched, threads_per_row, use->length);
}

int64_t sched_row_all(Sched *sched, const RowUse *use) {
    uint32_t most = reduce_order(FORM_ROW, DEVICE_GPU).n_chains / sched->lanes, threads_per_row = 1;
    while (threads_per_row < most && row_steps(sched, threads_per_row, use->length) > 1)
        threads_per_row *= 2;
    return set_threads_per_row(sched, use, threads_per_row, 1);
}

/* Whether a thread has too many steps of a row, whatever the other work is. */
static bool has_many_steps(const Sched *sched, const RowUse *use, uint32_t threads_per_row) {
    int64_t steps = row_steps(sched, threads_per_row, use->length);
    bool is_wide = use->n_stores && sched->lanes * use->elem_bytes >= ACCESS_BYTES;
    uint32_t few = !use->n_stores ? SCHED_ROW_LOADED_STEPS : is_wide ? 1 : SCHED_ROW_STORED_STEPS;
    int64_t words = steps * sched->lanes * (use->elem_bytes > WORD_BYTES ? 2 : 1);
    if (steps > use->most_steps || words > SCHED_FEW_RESIDENT_ELEMS) return true;
    if (threads_per_row >= WARP_THREADS) return false;
    if (is_wide &&
        (threads_per_row < SCHED_ROW_WIDE_THREADS ||
         block_bytes(use, SCHED_ROW_BLOCK_THREADS, 2 * threads_per_row) >= SCHED_ROW_WIDE_BYTES))
        return true;
    return steps > few && steps * use->n_loads > threads_per_row;
}

/* Whether machine and row have room for twice as many threads. */
static bool is_lone(const Sched *sched, const RowUse *use, uint32_t threads_per_row) {
    int64_t steps = row_steps(sched, threads_per_row, use->length);
    if (threads_per_row >= SCHED_ROW_LONE_THREADS ||
        use->rows > machine_threads(use) / (2 * threads_per_row))
        return false;
    if (sched->lanes > 1) return steps > 1 && threads_per_row != WARP_THREADS;
    return steps >
           (threads_per_row == WARP_THREADS ? SCHED_ROW_LONE_WARP_STEPS : SCHED_ROW_LONE_STEPS);
}

int64_t sched_row_few(Sched *sched, const RowUse *use) {
    sched_row_all(sched, use);
    uint32_t all = sched->row.threads_per_row, threads_per_row = 1;
    while (threads_per_row < all &&
           (has_many_steps(sched, use, threads_per_row) || is_lone(sched, use, threads_per_row)))
        threads_per_row *= 2;
    return set_threads_per_row(sched, use, threads_per_row, all / threads_per_row);
}

bool sched_row_widen(Sched *sched, uint32_t threads_per_row) {
    uint32_t by = threads_per_row / sched->row.threads_per_row;
    if (!sched->row.resident || threads_per_row % sched->row.threads_per_row ||
        sched->row.slots % by)
        return false;
    sched->row.threads_per_row = threads_per_row;
    sched->row.slots /= by;
    sched->row.resident = (sched->row.resident + by - 1) / by;
    if (threads_per_row > WARP_THREADS) sched->threads = threads_per_row;
    return true;
}
