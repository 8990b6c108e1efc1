/* The table of the templates' emission functions. See template.h. */
#include "codegen/template.h"

static Emit *const emits[N_TEMPLATES] = {
#define TEMPLATE(symbol, function, ...) [TEMPLATE_##symbol] = emit_##function,
#include "lowering/templates.def"
};

void template_emit(Lower *lower) {
    emits[lower->variant->sched.template](lower);
}
