/* See template.h. */
#include "lowering/template.h"

static const TemplateInfo templates[N_TEMPLATES] = {
#define TEMPLATE(symbol, function, name, form, device, engine, params, ...) \
    [TEMPLATE_##symbol] = {name,          FORM_##form,    DEVICE_##device,  \
                           GEMM_##engine, SCHED_##params, __VA_ARGS__},
#include "lowering/templates.def"
};

const TemplateInfo *template_info(TemplateId id) {
    return &templates[id];
}
