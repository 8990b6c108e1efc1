/* The table of templates' schedules. See scheduler.h. */
#include "schedule/scheduler.h"

static void propose_nothing(Scheduler *s, Access access) {
    (void)s;
    (void)access;
}

/* The row of all templates of launches (lowering/templates.def): they propose nothing, because
 * sched_<mode> gives all kernels of a launch their variants. */
static const TemplateSchedule of_launch = {.propose = propose_nothing};

static const TemplateSchedule *const schedules[N_TEMPLATES] = {
#define TEMPLATE(symbol, function, ...) [TEMPLATE_##symbol] = &schedule_##function,
#define LAUNCH_TEMPLATE(symbol, ...) [TEMPLATE_##symbol] = &of_launch,
#include "lowering/templates.def"
};

const TemplateSchedule *template_schedule(TemplateId id) {
    return schedules[id];
}
