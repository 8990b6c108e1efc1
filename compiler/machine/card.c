/* Expands cards.def. */
#include "machine/card.h"

#include <string.h>

static const Card cards[CARD_COUNT] = {
#define CARD(sym, nm, dev, dram, bytes, cache, near, near_rate, n, clock, per_clock, f64, mma16, \
             mma32, mma64, wgmma, launch, next, fill, latency, per_sm, kib, d)                   \
    [CARD_##sym] = {.name = nm,                                                                  \
                    .device = DEVICE_##dev,                                                      \
                    .has = &device_traits[DEVICE_##dev],                                         \
                    .dram_gbs = dram,                                                            \
                    .cache_bytes = bytes,                                                        \
                    .cache_gbs = cache,                                                          \
                    .near_bytes = (near) << 10,                                                  \
                    .near_gbs = near_rate,                                                       \
                    .n_processors = n,                                                           \
                    .ghz = clock,                                                                \
                    .lanes = per_clock,                                                          \
                    .f64_rate = f64,                                                             \
                    .mma_tflops = {mma16, mma32, mma64},                                         \
                    .wgmma_tflops = wgmma,                                                       \
                    .launch_us = launch,                                                         \
                    .next_us = next,                                                             \
                    .fill_us = fill,                                                             \
                    .latency_us = latency,                                                       \
                    .threads = per_sm,                                                           \
                    .shared_bytes = (kib) << 10,                                                 \
                    .doc = d},
#include "machine/cards.def"
};

const Card *card_get(CardId id) {
    return &cards[id];
}

const Card *card_by_name(const char *name) {
    for (int id = 0; id < CARD_COUNT; id++)
        if (strcmp(cards[id].name, name) == 0) return &cards[id];
    return NULL;
}

const Card *card_by_device(const char *name) {
    for (int id = 0; id < CARD_COUNT && *name; id++)
        if (strncmp(cards[id].doc, name, strlen(name)) == 0) return &cards[id];
    return NULL;
}

Card card_with_processors(const Card *card, double n) {
    Card of = *card;
    double share = n / card->n_processors;
    of.n_processors = n;
    of.dram_gbs *= share;
    of.cache_gbs *= share;
    of.near_gbs *= share;
    if (n > 1) return of;
    of.launch_us = of.next_us;
    of.fill_us = 0;
    return of;
}

const Card *card_of_target(const Target *target) {
    static const CardId priced[TARGET_COUNT] = {
#define TARGET(sym, name, device, own, card, ...) [TARGET_##sym] = CARD_##card,
#include "machine/targets.def"
    };
    return &cards[priced[target - target_get(0)]];
}
