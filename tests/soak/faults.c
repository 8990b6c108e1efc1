/* Planted mistakes, on any target: the unit test of the same lists runs them on the CPU alone. */
#include "soak.h"

#include "lib/prove.h"

#include <stdio.h>

static void count(Soak *soak, bool is_right, const char *report) {
    soak->n_passed += is_right;
    soak->n_failed += !is_right;
    if (!is_right) printf("%s", report);
}

static void print_head(const Target *target) {
    printf("%-18s %-10s %4s  %-7s  for %s\n", "fault", "op", "line", "", target->name);
}

/* A row: what verify named, or that it had nothing to name. */
static void print_row(const char *name, const Proof *proof, const char *verdict, const char *what) {
    char op[24] = "-", line[12] = "-";
    ProofName named = prove_named(proof);
    if (named.op) snprintf(op, sizeof op, "%.*s", named.n_bytes, named.op);
    if (named.line) snprintf(line, sizeof line, "%u", named.line);
    printf("%-18s %-10s %4s  %-7s  %s\n", name, op, line, verdict, what);
}

static void prove_target(Soak *soak, const Target *target) {
    static const char *const verdicts[] = {[RANDOM_NAMED] = "named",
                                           [RANDOM_UNSEEN] = "skipped",
                                           [RANDOM_ABSENT] = "skipped",
                                           [RANDOM_MISSED] = "missed"};
    static const char *const what[] = {[RANDOM_NAMED] = "one more than it should be",
                                       [RANDOM_UNSEEN] = "the mistake changes no output",
                                       [RANDOM_ABSENT] =
                                           "no kernel computes an op that it could be in",
                                       [RANDOM_MISSED] = "one more than it should be"};
    static Proof proof;
    print_head(target);
    for (int id = 0; id < FAULT_COUNT; id++) {
        Text report = {.arena = soak->arena};
        bool is_named = prove_fault(&proof, (FaultId)id, target->name, &report);
        const FaultInfo *info = fault_info((FaultId)id);
        print_row(info->name, &proof, is_named ? "named" : "missed", info->doc);
        count(soak, is_named, text_str(&report));
    }
    for (uint64_t i = 0; i < soak->n; i++) {
        Text report = {.arena = soak->arena};
        RandomProof is = prove_random(&proof, soak->seed + i, target->name, &report);
        const char *name =
            str_format(soak->arena, "random %llu", (unsigned long long)(soak->seed + i));
        print_row(name, &proof, verdicts[is], what[is]);
        bool is_skipped = is == RANDOM_UNSEEN || is == RANDOM_ABSENT;
        soak->n_skipped += is_skipped;
        if (!is_skipped) count(soak, is == RANDOM_NAMED, text_str(&report));
    }
}

void soak_faults(Soak *soak) {
    for (uint32_t t = 0; t < soak->n_targets; t++) prove_target(soak, soak->targets[t]);
}
