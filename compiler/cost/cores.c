/* See cores.h. */
#include "cost/cores.h"
#include "cost/kernel/template.h"

#include <math.h>

double cores_working_bytes(const Coster *c) {
    const Plan *plan = c->plan;
    bool *is_counted = arena_array(c->arena, bool, plan->buffers.n);
    double total = 0;
    for (uint32_t k = plan_n_init(plan); k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            const Buffer *buffer = &plan->buffers.data[kernel->args.data[i]];
            if (is_counted[kernel->args.data[i]] || buffer->space != BUFFER_GLOBAL) continue;
            is_counted[kernel->args.data[i]] = true;
            total += cost_number(c, shape_n_elems(plan->graph->dims, &buffer->shape)) *
                     dtype_bytes(buffer->dtype);
        }
    }
    return total;
}

/* All cores: what is larger than the last cache comes from memory, but for temps that stay in
 * it. */
static double memory_us(const Coster *c, const Pricing *p) {
    const Card *card = c->card;
    const KernelCost *cost = p->cost;
    double gbs = c->working_bytes <= card->near_bytes ? card->near_gbs : card->cache_gbs;
    double near = cost->cache_bytes / (gbs * 1e3);
    if (c->working_bytes <= card->cache_bytes) return near;
    double far = cost->read_bytes + cost->written_bytes - p->left_bytes;
    return fmax(near, far / (card->dram_gbs * 1e3));
}

/* Wakes the cores that the launch uses, a share of all, but where one core alone takes no longer.
 */
static void wake(const Card *card, const Pricing *p, double use) {
    KernelCost *cost = p->cost;
    double slower = use * card->n_processors;
    double busy = fmax(cost->memory_us, cost->arithmetic_us);
    if (busy * slower > busy + card->fill_us) {
        cost->launch_us += card->fill_us;
    } else {
        cost->memory_us *= slower;
        cost->arithmetic_us *= slower;
    }
}

void cores_time_kernel(const Coster *c, Pricing *p) {
    const Card *card = c->card;
    KernelCost *cost = p->cost;
    TemplateCost template = template_cost(p->variant->sched.template, p->kernel);
    double use = template.use(c, p, 1);
    if (use <= 0) use = 1;
    cost->memory_us = memory_us(c, p) / use;
    template.compute(c, p, card->n_processors * card->lanes * card->ghz * 1e3);
    cost->arithmetic_us /= use;
    if (p->begins) {
        cost->launch_us = c->has_begun ? card->next_us : card->launch_us;
        if (p->n_beside > 1) wake(card, p, use);
    }
    cost->us = cost->launch_us + fmax(cost->memory_us, cost->arithmetic_us);
}
