/* Machines as the cost model sees them, expanded from cards.def. */
#ifndef FUSEC_MACHINE_CARD_H
#define FUSEC_MACHINE_CARD_H

#include "machine/target.h"

typedef enum {
#define CARD(sym, ...) CARD_##sym,
#include "machine/cards.def"
    CARD_COUNT
} CardId;

/* Their processors, as constants. */
enum {
#define CARD(sym, name, device, dram, cache, cache_gbs, n, ...) CARD_PROCESSORS_##sym = n,
#include "machine/cards.def"
};

/* Rates are what generated code reaches on long runs. */
typedef struct Card {
    const char *name;
    DeviceClass device;
    const DeviceTraits *has;
    double dram_gbs, cache_bytes, cache_gbs;
    double n_processors, ghz, lanes, f64_rate; /* lanes: f32 operations per clock and processor */
    double mma_tflops[3];                      /* of 16-bit operands, tf32, f64 */
    double wgmma_tflops;                       /* of 16-bit operands, in full steps; 0: none */
    double launch_us, next_us, fill_us, latency_us;
    uint32_t threads, shared_bytes; /* of a processor's blocks together; CPU: 1 and 0 */
    const char *doc;
} Card;

const Card *card_get(CardId id);
/* NULL when there is none of this name. */
const Card *card_by_name(const char *name);
/* That of a device of this name, as the driver has it; NULL: none is known. */
const Card *card_by_device(const char *name);
/* What is priced for when no card is named. */
const Card *card_of_target(const Target *target);

#endif
