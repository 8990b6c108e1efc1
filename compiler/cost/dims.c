/* The values of dims at which costs are predicted. See cost.h. */
#include "cost/cost.h"

#include <string.h>

/* The target of a point. */
typedef struct Aim {
    uint32_t odd; /* a symbol; UINT32_MAX: none */
    int64_t value, odd_value;
} Aim;

/* The values of the dims: given ones, and others as near to the aim as their ranges allow. */
static int64_t *dims_near(Arena *arena, const DimTab *dims, Aim aim, const int64_t *given) {
    int64_t *values = arena_array(arena, int64_t, DIM_MAX_SYMBOLS);
    for (uint32_t i = 0; i < dim_n_symbols(dims); i++) {
        const DimSymbol *symbol = dim_symbol_info(dims, i);
        int64_t value = i == aim.odd ? aim.odd_value : aim.value, step = symbol->multiple;
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
    return dims_near(arena, dims, (Aim){UINT32_MAX, COST_DEFAULT_DIM, 0}, given);
}

static void add_point(CostPoints *points, Arena *arena, const DimTab *dims, Aim aim) {
    const int64_t *at = dims_near(arena, dims, aim, NULL);
    for (uint32_t i = 0; i < points->n; i++)
        if (memcmp(points->dims[i], at, dim_n_symbols(dims) * sizeof *at) == 0) return;
    points->dims[points->n++] = at;
}

CostPoints cost_points(Arena *arena, const DimTab *dims, const DeviceTraits *device) {
    return cost_points_from(arena, dims, device->cores ? COST_SHORT_DIM : 1);
}

CostPoints cost_points_from(Arena *arena, const DimTab *dims, int64_t least) {
    static const int64_t aims[COST_DIAGONAL_POINTS] = {COST_DEFAULT_DIM, 1, 64, 256,
                                                       COST_LARGE_DIM};
    CostPoints points = {0};
    for (uint32_t i = 0; i < COST_DIAGONAL_POINTS; i++)
        add_point(&points, arena, dims, (Aim){UINT32_MAX, aims[i] < least ? least : aims[i], 0});
    points.n_diagonal = points.n;
    for (uint32_t i = 0, n = 0; i < dim_n_symbols(dims) && n < COST_CORNER_DIMS; i++) {
        const DimSymbol *symbol = dim_symbol_info(dims, i);
        if (symbol->rule || symbol->lo == symbol->hi) continue;
        add_point(&points, arena, dims, (Aim){i, COST_LARGE_DIM, least});
        add_point(&points, arena, dims, (Aim){i, least, COST_LARGE_DIM});
        n++;
    }
    return points;
}
