/* Symbols with rules. See dim.h and predicate.h. */
#include "ir/predicate.h"

DimId dim_at_least(DimTab *tab, DimId value, int64_t bound) {
    if (value == DIM_NONE) return DIM_NONE;
    int64_t below = bound - dim_lo(tab, value), above = dim_hi(tab, value) - bound + 1;
    int64_t span = below > above ? below : above;
    if (span < 1 || span >= DIM_LIMIT / 2) return DIM_NONE;
    DimId moved = dim_add(tab, value, dim_const(tab, span - bound));
    return moved == DIM_NONE ? DIM_NONE : dim_div(tab, moved, dim_const(tab, span));
}

DimId dim_name_value(Arena *arena, DimTab *tab, const char *name, DimId value) {
    uint32_t n = 1;
    for (uint32_t i = 0; i < dim_n_symbols(tab); i++) {
        const DimRule *rule = dim_symbol_info(tab, i)->rule;
        if (rule && rule->value == value) return dim_symbol(tab, i);
        n += rule && rule->value != DIM_NONE;
    }
    if (dim_n_symbols(tab) == DIM_MAX_SYMBOLS) return DIM_NONE;
    DimRule rule = {.value = value};
    DimSymbol symbol = {.name = n > 1 ? str_format(arena, "%s%u", name, n) : name,
                        .lo = 0,
                        .hi = 1,
                        .multiple = 1,
                        .rule = &rule};
    return dim_symbol(tab, dim_declare(tab, symbol));
}

bool dim_rule_copies(const DimTab *tab, const DimRule *rule, const int64_t *symbol_values,
                     int64_t *extent) {
    const PredicateAt at = {.dims = tab, .values = symbol_values};
    return dim_eval(tab, rule->extent, symbol_values, extent) &&
           condition_holds_at(&rule->copied, &at);
}

void dim_follow_rules(const DimTab *tab, int64_t *symbol_values) {
    for (uint32_t i = 0; i < dim_n_symbols(tab); i++) {
        const DimRule *rule = dim_symbol_info(tab, i)->rule;
        int64_t extent = 0;
        if (!rule) continue;
        if (rule->value != DIM_NONE)
            symbol_values[i] = dim_eval(tab, rule->value, symbol_values, &extent) ? extent : 0;
        else if (dim_rule_copies(tab, rule, symbol_values, &extent))
            symbol_values[i] = (extent + rule->padded - 1) / rule->padded * rule->padded;
        else
            symbol_values[i] = rule->is_width ? 0 : extent;
    }
}
