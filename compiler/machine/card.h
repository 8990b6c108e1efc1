/* The machines of the cost model, expanded from cards.def. */
#ifndef FUSEC_MACHINE_CARD_H
#define FUSEC_MACHINE_CARD_H

#include "machine/target.h"

typedef enum {
#define CARD(sym, ...) CARD_##sym,
#include "machine/cards.def"
    CARD_COUNT
} CardId;

/* Columns of the cards as constants: CARD_PROCESSORS_<symbol>, and in bytes CARD_SHARED_<symbol>,
 * which one block may have. */
enum {
#define CARD(sym, name, device, dram, cache, cache_gbs, near, near_gbs, n, ghz, lanes, f64, mma16, \
             mma32, mma64, wgmma, launch, next, fill, latency, threads, shared, doc)               \
    CARD_PROCESSORS_##sym = n, CARD_SHARED_##sym = (shared) << 10,
#include "machine/cards.def"
};

/* The properties of a card. Rates are those that generated code reaches on long runs. */
typedef struct Card {
    const char *name;
    DeviceClass device;
    const DeviceTraits *has;
    double dram_gbs, cache_bytes, cache_gbs;
    double near_bytes, near_gbs; /* of a core's own cache, and the rate of all cores */
    double n_processors, ghz, lanes, f64_rate; /* lanes: f32 operations per clock and processor;
                                                * f64_rate: of f64 over f32 */
    double mma_tflops[3];                      /* of 16-bit operands, tf32, f64 */
    double wgmma_tflops;                       /* of 16-bit operands, in full steps; 0: no wgmma */
    double launch_us, next_us, fill_us, latency_us;
    uint32_t threads, shared_bytes; /* limits of all blocks of a processor together; CPU: 1 and 0 */
    const char *doc;
} Card;

const Card *card_get(CardId id);
/* NULL when no card has this name. */
const Card *card_by_name(const char *name);
/* A CPU's card with as many cores as a program has threads. Rates are in proportion; one core alone
 * wakes no other for a launch. */
Card card_with_processors(const Card *card, double n);
/* The card whose device has this name in the driver; NULL: unknown. */
const Card *card_by_device(const char *name);
/* The card of the cost model when the options name none. */
const Card *card_of_target(const Target *target);

#endif
