/* See choice.h. */
#include "plan/choice.h"

const Choice *choice_new(Arena *arena, DimTab *dims, const char *name, const Condition *condition) {
    int64_t value;
    DimId holds = condition_dim(dims, condition);
    if (holds == DIM_NONE || dim_is_const(dims, holds, &value)) return NULL;
    DimId factor = dim_name_value(arena, dims, name, holds);
    if (factor == DIM_NONE) return NULL;
    Choice *choice = arena_array(arena, Choice, 1);
    choice->condition = *condition;
    choice->factors[VERSION_ALTERNATIVE] = factor;
    choice->factors[VERSION_DEFAULT] = dim_sub(dims, dim_const(dims, 1), factor);
    return choice;
}

Version choice_taken(const Choice *choice, const PredicateAt *at) {
    return condition_holds_at(&choice->condition, at) ? VERSION_ALTERNATIVE : VERSION_DEFAULT;
}

DimId choice_scale(DimTab *dims, const Choice *choice, Version version, DimId size) {
    return choice ? dim_mul(dims, size, choice->factors[version]) : size;
}
