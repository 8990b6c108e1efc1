/* Values of dims to price at. See cost.h. */
#include "pass/cost.h"

#include <string.h>

/* Values of the dims, those that are not given as near to `aim` as their ranges allow. */
static int64_t *dims_near(Arena *arena, const DimTab *dims, int64_t aim, const int64_t *given) {
    int64_t *values = arena_array(arena, int64_t, DIM_MAX_SYMBOLS);
    for (uint32_t i = 0; i < dim_n_symbols(dims); i++) {
        const DimSymbol *symbol = dim_symbol_info(dims, i);
        int64_t value = aim, step = symbol->multiple;
        if (given && given[i] >= 0) {
            values[i] = given[i];
            continue;
        }
        if (value > symbol->hi) value = symbol->hi;
        value -= value % step;
        if (value < symbol->lo) value = symbol->lo + (step - symbol->lo % step) % step;
        values[i] = value;
    }
    dim_follow_rules(dims, values);
    return values;
}

int64_t *cost_dims(Arena *arena, const DimTab *dims, const int64_t *given) {
    return dims_near(arena, dims, COST_DEFAULT_DIM, given);
}

static bool is_new_point(const CostPoints *points, const int64_t *dims, uint32_t n_symbols) {
    for (uint32_t i = 0; i < points->n; i++)
        if (memcmp(points->dims[i], dims, n_symbols * sizeof *dims) == 0) return false;
    return true;
}

CostPoints cost_points(Arena *arena, const DimTab *dims, DeviceClass device) {
    static const int64_t aims[COST_MAX_POINTS] = {COST_DEFAULT_DIM, 1, 64, 256, COST_LARGE_DIM};
    CostPoints points = {0};
    for (uint32_t i = 0; i < COST_MAX_POINTS; i++) {
        bool is_short = device == DEVICE_CPU && aims[i] < COST_SHORT_DIM;
        const int64_t *at = dims_near(arena, dims, is_short ? COST_SHORT_DIM : aims[i], NULL);
        if (is_new_point(&points, at, dim_n_symbols(dims))) points.dims[points.n++] = at;
    }
    return points;
}
