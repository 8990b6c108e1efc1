/* Times a pair's two runs in turn; see pair.h. */
#include "lib/pair.h"

#include <math.h>
#include <time.h>

enum { ROUND_US = 300 }; /* that a round of a short run takes at least, in several runs */

static double now_us(bool is_alone) {
    struct timespec now;
    clock_gettime(is_alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* Microseconds of each of `n_runs` runs; negative after a failure. */
static double time_runs(const Rig *rig, uint32_t n_runs, frt_error *error) {
    bool is_alone = frt_program_n_threads(rig->program) == 1;
    double begin = now_us(is_alone);
    for (uint32_t i = 0; i < n_runs; i++)
        if (frt_run(rig->exec, NULL, error) || frt_sync(rig->program, NULL, error)) return -1;
    return (now_us(is_alone) - begin) / n_runs;
}

bool pair_time(Pair *pair, uint32_t n_rounds, PairTimes *times, Text *report) {
    const Rig *rigs[] = {&pair->fused_rig, &pair->exposed_rig};
    double *least[] = {&times->fused_us, &times->unfused_us};
    uint32_t n_runs[2];
    frt_error error = FRT_ERROR_INIT;
    for (uint32_t i = 0; i < 2; i++) {
        double us = time_runs(rigs[i], 1, &error);
        *least[i] = INFINITY;
        n_runs[i] = us < ROUND_US ? (uint32_t)(ROUND_US / fmax(us, 0.1)) + 1 : 1;
    }
    for (uint32_t round = 0; round < n_rounds; round++)
        for (uint32_t turn = 0; turn < 2; turn++) {
            uint32_t i = (round + turn) % 2;
            double us = time_runs(rigs[i], n_runs[i], &error);
            if (us < 0) {
                text_printf(report, "timed run: %s\n", error.message);
                return false;
            }
            *least[i] = fmin(*least[i], us);
        }
    return true;
}
