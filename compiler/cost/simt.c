/* See simt.h. */
#include "cost/simt.h"

#include "template/simt.h"

#include <math.h>

enum {
    SCHEDULERS = 4, /* of a processor: each starts an instruction of its warps a clock */
    WARP_THREADS = 32,
    WORD_BYTES = 4,
    CHAIN_CLOCKS = 4,  /* from a multiplication to the next of the same sum */
    SHARED_CLOCKS = 28 /* from the load of a fragment to its use, beside what others read */
};
/* Of the barrier of a tile, judged; of a block until its first tile is there and from its last one
 * on, in times of memory's latency. Products of f32 with a w of 4096 x 4096 on an H200, fragments
 * being loaded one row ahead: 1 output a thread 70.7 us, 8 outputs 91 to 93, 32 outputs 95 to 98.
 */
static const double BARRIER_CLOCKS = 40, BLOCK_LATENCIES = 1;
/* Of a scheduler's clocks, those that start something: threads with many outputs wait less. f32
 * 1024^3 takes 64.9 us, 4096^3 2652. */
static const double STARTS = 0.85, MANY_STARTS = 1;
enum { MANY_OUTPUTS = 64 };
/* Stages of few rows, which stream the rhs: f32 by 4096 x 4096 on an H200, fragments being
 * loaded rows ahead: 2 to 16 rows take 31 to 33 us, 32 rows 48, 33 and 64 rows 69 and 84. */
static const double STREAMED = 1.3;

/* Of one step: instructions that a warp starts to read fragments of `n` elements, and what shared
 * memory takes for them. */
typedef struct Reads {
    double instructions, clocks;
} Reads;

/* Fragments of 16 bytes take two clocks. */
static Reads reads_of(double n, double bytes) {
    double in_fragment = fmin(n, SIMT_FRAGMENT_BYTES / bytes), fragments = n / in_fragment;
    return (Reads){fragments, fragments * fmax(1, in_fragment * bytes / 8)};
}

/* Of one step, with so many blocks on a processor. */
static double step_clocks(const Coster *c, const Pricing *p, double n_blocks) {
    const Sched *sched = &p->variant->sched;
    Dtype acc = p->kernel->reduces.data[0].acc;
    double bytes = dtype_bytes(acc), warps = (double)sched->warps_m * sched->warps_n;
    double lanes_m = simt_lanes_m(sched), m = sched->tile_m / (sched->warps_m * lanes_m);
    double n = sched->tile_n / (sched->warps_n * WARP_THREADS / lanes_m);
    Reads left = reads_of(m, bytes), right = reads_of(n, bytes);
    double rate = fmin(1, c->card->lanes / (SCHEDULERS * (double)WARP_THREADS));
    if (acc == DT_F64) rate *= c->card->f64_rate;
    double copied = (sched->tile_m + sched->tile_n) * bytes / WORD_BYTES / WARP_THREADS;
    double own = m * n / rate + left.instructions + right.instructions;
    double busiest = ceil(n_blocks * warps / SCHEDULERS); /* warps of a scheduler */
    double started = busiest * own / (m * n >= MANY_OUTPUTS ? MANY_STARTS : STARTS) +
                     n_blocks * copied / SCHEDULERS;
    double shared = n_blocks * (warps * (left.clocks + right.clocks) + copied);
    double waited = (SHARED_CLOCKS + shared / 2) / simt_rows_ahead(sched);
    double busy = fmax(fmax(started, shared), fmax(waited, CHAIN_CLOCKS));
    return busy * (sched->stages > 2 ? STREAMED : 1) + BARRIER_CLOCKS / sched->tile_k;
}

double cost_simt_us(const Coster *c, const Pricing *p) {
    const Sched *sched = &p->variant->sched;
    if (p->n_beside <= 0) return 0;
    double steps = ceil(p->reduced / sched->tile_k) * sched->tile_k;
    double all = ceil(p->n_beside / c->card->n_processors);
    double at_once = fmin(all, fmax(1, p->cost->pressure.n_blocks));
    double rounds = floor(all / at_once), rest = all - rounds * at_once;
    double clocks = rounds * step_clocks(c, p, at_once);
    if (rest > 0) clocks += step_clocks(c, p, rest);
    double begun = (rounds + (rest > 0)) * BLOCK_LATENCIES * c->card->latency_us;
    double share = cost_number(c, p->variant->grid) / p->n_beside;
    return share * (begun + steps * clocks / (c->card->ghz * 1e3));
}
