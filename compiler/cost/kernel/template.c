/* The table of the templates' costs. See template.h. */
#include "cost/kernel/template.h"

static const TemplateCost *const costs[N_TEMPLATES] = {
#define TEMPLATE(symbol, function, ...) [TEMPLATE_##symbol] = &cost_##function,
#include "lowering/templates.def"
};

static TemplateCost with_base(const TemplateCost *own) {
    TemplateCost cost = *own;
    if (!own->base) return cost;
    TemplateCost base = with_base(own->base);
    if (!cost.registers) cost.registers = base.registers;
    if (!cost.shared_bytes) cost.shared_bytes = base.shared_bytes;
    if (!cost.epilogue_bytes) cost.epilogue_bytes = base.epilogue_bytes;
    if (!cost.count) cost.count = base.count;
    if (!cost.load) cost.load = base.load;
    if (!cost.use) cost.use = base.use;
    if (!cost.compute) cost.compute = base.compute;
    if (!cost.exposed_us) cost.exposed_us = base.exposed_us;
    return cost;
}

TemplateCost template_cost(TemplateId id, const Kernel *kernel) {
    bool has_rows = costs[id]->rows && form_info(kernel->form)->reduces_rows;
    return with_base(has_rows ? costs[id]->rows : costs[id]);
}
