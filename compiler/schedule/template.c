/* The table of templates' schedules. See scheduler.h. */
#include "schedule/scheduler.h"

static const TemplateSchedule *const schedules[N_TEMPLATES] = {
#define TEMPLATE(symbol, function, ...) [TEMPLATE_##symbol] = &schedule_##function,
#include "lowering/templates.def"
};

const TemplateSchedule *template_schedule(TemplateId id) {
    return schedules[id];
}
