/* What each template takes: registers and shared memory of a block, work, and the time of it. A
 * template's row stands in the file of its name. The table in template.c is made from
 * lowering/templates.def, so that a template without a row does not link. */
#ifndef FUSEC_COST_KERNEL_TEMPLATE_H
#define FUSEC_COST_KERNEL_TEMPLATE_H

#include "cost/kernel/pricing.h"

/* What a thread of any template has registers for. */
typedef struct ThreadUse {
    Arena *arena;
    const Kernel *kernel;
    const Sched *sched;
    bool is_least; /* without what the assembler takes as it pleases */
    double own;    /* arguments, indices and what every thread needs */
    double peak;   /* the most values that a stage has alive, and what computes them */
} ThreadUse;

/* `live`: the scalars that each stage needs, and the stores after the last one. */
typedef struct TemplateCost {
    /* Of templates whose kernels run in blocks; a CPU's have NULL. Registers of a thread, of 32
     * bits; shared memory of a block that is declared by the function, beside what passes from
     * kernel to kernel in it. */
    double (*registers)(const ThreadUse *use);
    uint32_t (*shared_bytes)(Arena *arena, const Kernel *kernel, const Variant *variant);
    /* Shared memory through which results pass to the epilogue, in the place of operands; NULL:
     * none. */
    uint32_t (*epilogue_bytes)(const Kernel *kernel, const Sched *sched);
    /* Adds the instructions of all elements to n_prims, and sets n_flops. */
    void (*count)(const Coster *c, Pricing *p, bool *const *live);
    /* Sets bytes_in_flight, and multiplies wait_us, a single latency, by what loads wait for. */
    void (*load)(const Coster *c, Pricing *p, bool *const *live);
    /* The share of the machine's rate that arithmetic reaches, were each processor busy with
     * `wanted` warps. */
    double (*use)(const Coster *c, const Pricing *p, double wanted);
    /* Sets arithmetic_us and tensor_us from n_prims and n_flops. */
    void (*compute)(const Coster *c, Pricing *p, double prims_per_us);
    /* What of the shorter of memory and arithmetic, which takes `busy` us, the longer does not
     * hide. */
    double (*bared_us)(const Coster *c, const Pricing *p, double busy);
} TemplateCost;

#define TEMPLATE(symbol, function, ...) extern const TemplateCost cost_##function;
#include "lowering/templates.def"

const TemplateCost *template_cost(TemplateId id);

#endif
