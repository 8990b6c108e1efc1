/* See compare.h. */
#include "cost/compare.h"
#include "machine/tuning.h"

#include <math.h>

Prices prices_of_plan(Arena *arena, const Plan *plan, const Target *target,
                      const CostPoints *points) {
    Prices prices = {{0}};
    for (uint32_t i = 0; i < points->n; i++) {
        ArenaMark mark = arena_mark(arena);
        prices.us[i] = cost_us(arena, plan, card_of_target(target), points->dims[i]);
        arena_rewind(arena, mark);
    }
    return prices;
}

/* The largest ratio a / b over all points. */
static double worst(const CostPoints *points, const Prices *a, const Prices *b) {
    double most = 0;
    for (uint32_t i = 0; i < points->n; i++) most = fmax(most, a->us[i] / b->us[i]);
    return most;
}

/* The mean is over the diagonal only; the corners serve to refuse plans that are slow somewhere. */
double prices_mean(const CostPoints *points, const Prices *a, const Prices *b) {
    double sum = 0;
    for (uint32_t i = 0; i < points->n_diagonal; i++) sum += log(a->us[i] / b->us[i]);
    return exp(sum / points->n_diagonal);
}

bool prices_are_better(const CostPoints *points, const Prices *now, const Prices *other,
                       const Prices *apart) {
    double loss_now = worst(points, now, apart), loss_other = worst(points, other, apart);
    if (loss_other > COST_LOSS) return loss_other < loss_now * COST_WORTH;
    return loss_now > COST_LOSS || prices_mean(points, other, now) < COST_WORTH;
}

bool prices_are_no_slower(const CostPoints *points, const Prices *plan, const Prices *other) {
    return worst(points, plan, other) <= COST_LOSS;
}

bool prices_favor_joining(const CostPoints *points, const Prices *together, const Prices *apart) {
    return !prices_are_better(points, together, apart, apart);
}

double prices_tie_us(double us, uint32_t n_launches) {
    return n_launches ? us * COST_LOSS + COST_TIE_US * n_launches : us;
}

bool prices_may_favor_joining(const CostPoints *points, const Prices *together,
                              const Prices *apart) {
    Prices as_good = *apart;
    double most = 0;
    for (uint32_t i = 0; i < points->n; i++) {
        as_good.us[i] += COST_TIE_US;
        most = fmax(most, together->us[i] - apart->us[i] * COST_LOSS);
    }
    return prices_favor_joining(points, together, &as_good) ||
           (most <= COST_HOST_US && prices_mean(points, together, apart) < 1);
}
