/* See compare.h. */
#include "cost/compare.h"
#include "machine/tuning.h"

#include <math.h>

Prices prices_of_plan(Arena *arena, const Plan *plan, const Target *target,
                      const CostPoints *points) {
    Prices prices = {.alone_us = 0};
    for (uint32_t i = 0; i < points->n; i++) {
        ArenaMark mark = arena_mark(arena);
        prices.us[i] = cost_us(arena, plan, card_of_target(target), points->dims[i]);
        arena_rewind(arena, mark);
    }
    const Card *card = card_of_target(target);
    if (!card->has->cores) return prices;
    Card core = card_with_processors(card, 1);
    ArenaMark mark = arena_mark(arena);
    prices.alone_us = cost_us(arena, plan, &core, points->dims[0]);
    arena_rewind(arena, mark);
    return prices;
}

/* The ratio a / b on one core of a CPU; of others 0. */
static double alone(const Prices *a, const Prices *b) {
    return b->alone_us > 0 ? a->alone_us / b->alone_us : 0;
}

/* The largest ratio a / b over all points. */
static double worst(const CostPoints *points, const Prices *a, const Prices *b) {
    double most = alone(a, b);
    for (uint32_t i = 0; i < points->n; i++) most = fmax(most, a->us[i] / b->us[i]);
    return most;
}

/* The mean is over the diagonal only; the corners serve to refuse plans that are slow somewhere. */
double prices_mean(const CostPoints *points, const Prices *a, const Prices *b) {
    double sum = 0;
    for (uint32_t i = 0; i < points->n_diagonal; i++) sum += log(a->us[i] / b->us[i]);
    return exp(sum / points->n_diagonal);
}

bool prices_are_within(const CostPoints *points, const Prices *plan, const Prices *other,
                       PriceTolerance tolerance) {
    static const struct {
        double share, us, gain;
    } tolerances[] = {
#define PRICES(name, share, us, gain) {share, us, gain},
        PRICE_TOLERANCES(PRICES)
#undef PRICES
    };
    Prices least = *other;
    for (uint32_t i = 0; i < points->n; i++) least.us[i] += tolerances[tolerance].us;
    least.alone_us += tolerances[tolerance].us;
    /* a launch may cost nothing beside its context: that mean is no number, and allows it */
    return worst(points, plan, &least) <= tolerances[tolerance].share &&
           !(prices_mean(points, &least, plan) < tolerances[tolerance].gain);
}

bool prices_are_better(const CostPoints *points, const Prices *now, const Prices *other,
                       const Prices *apart) {
    double loss_now = worst(points, now, apart), loss_other = worst(points, other, apart);
    if (!price_is_no_loss(loss_other, 1)) return price_is_worth(loss_other, loss_now);
    return !price_is_no_loss(loss_now, 1) || price_is_worth(prices_mean(points, other, now), 1);
}

bool prices_may_favor_joining(const CostPoints *points, const Prices *together,
                              const Prices *apart) {
    double most = 0;
    for (uint32_t i = 0; i < points->n; i++)
        most = fmax(most, together->us[i] - apart->us[i] * COST_LOSS);
    return prices_are_within(points, together, apart, PRICES_TIED) ||
           (most <= COST_HOST_US && prices_mean(points, together, apart) < 1);
}

double prices_excess(const CostPoints *points, const Prices *plan, const Prices *apart) {
    double sum = fmax(0, alone(plan, apart) - COST_HELD_LOSS);
    for (uint32_t i = 0; i < points->n; i++)
        sum += fmax(0, plan->us[i] / apart->us[i] - (i ? COST_HELD_LOSS : COST_LOSS));
    return sum;
}

bool price_is_worth(double us, double current_us) {
    return us < current_us * COST_WORTH;
}

bool price_is_no_loss(double us, double other_us) {
    return us <= other_us * COST_LOSS;
}

double price_tie_us(double us, uint32_t n_launches) {
    return n_launches ? us * COST_LOSS + COST_TIE_US * n_launches : us;
}
