/* Planted mistakes, on any target: the unit test of the same lists runs them on the CPU alone. */
#include "soak.h"

#include "lib/prove.h"

#include <stdio.h>

static void count(Soak *soak, bool is_right, const char *report) {
    soak->n_passed += is_right;
    soak->n_failed += !is_right;
    if (!is_right) printf("%s", report);
}

static void prove_target(Soak *soak, const Target *target) {
    static Proof proof;
    for (int id = 0; id < FAULT_COUNT; id++) {
        Text report = {.arena = soak->arena};
        bool is_named = prove_fault(&proof, (FaultId)id, target->name, &report);
        count(soak, is_named, text_str(&report));
    }
    for (uint64_t i = 0; i < soak->n; i++) {
        Text report = {.arena = soak->arena};
        RandomProof is = prove_random(&proof, soak->seed + i, target->name, &report);
        soak->n_skipped += is == RANDOM_UNSEEN;
        if (is != RANDOM_UNSEEN) count(soak, is == RANDOM_NAMED, text_str(&report));
    }
}

void soak_faults(Soak *soak) {
    for (uint32_t t = 0; t < soak->n_targets; t++) prove_target(soak, soak->targets[t]);
}
