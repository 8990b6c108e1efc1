/* Random programs of updates, each verified: fused, unfused, interpreted, and with outputs in place
 * of inputs. */
#include "soak.h"

#include "lib/prove.h"
#include "random/random_updates.h"

#include <inttypes.h>
#include <stdio.h>

static void check(Soak *soak, const Target *target, uint64_t seed) {
    static Proof proof;
    const char *source = random_updates_source(soak->arena, seed);
    const char *options[] = {str_format(soak->arena, "--target=%s", target->name),
                             "--data=random,special", soak->is_cuda ? "--device=cuda" : NULL, NULL};
    soak_watch(str_format(soak->arena, "updates %" PRIu64, seed), 300);
    prove_verify(&proof, source, (DriverHook){0}, options);
    soak_watch_off();
    bool is_right = proof.status == FUSEC_OK;
    soak->n_passed += is_right;
    soak->n_failed += !is_right;
    if (!is_right)
        printf("updates %" PRIu64 ": exit code %d\n%s%s", seed, (int)proof.status, source,
               proof.said);
}

void soak_updates(Soak *soak) {
    for (uint32_t t = 0; t < soak->n_targets; t++)
        for (uint64_t i = 0; i < soak->n && soak_has_time(soak); i++)
            check(soak, soak->targets[t], soak->seed + i);
}
