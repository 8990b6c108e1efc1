/* Lowering plans to one LLVM module: function interfaces and the choice of template. */
#ifndef FUSEC_LOWER_H
#define FUSEC_LOWER_H

#include "back/unit.h"

/* Adds a function per kernel variant of the plan that does not share another kernel's. */
void lower_plan(Unit *unit, const Plan *plan);

#endif
