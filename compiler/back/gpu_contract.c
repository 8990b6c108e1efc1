/* GPU contractions. See template.h. */
#include "back/template.h"

void template_gpu_contract(Lower *lower) {
    ice(lower->unit->arena, "no contraction template");
}
