/* The table of the templates' costs. See template.h. */
#include "cost/kernel/template.h"

static const TemplateCost *const costs[N_TEMPLATES] = {
#define TEMPLATE(symbol, function, ...) [TEMPLATE_##symbol] = &cost_##function,
#include "lowering/templates.def"
};

const TemplateCost *template_cost(TemplateId id) {
    return costs[id];
}
