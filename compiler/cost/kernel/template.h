/* The cost of each template: registers and shared memory of a block, work, and time. A template's
 * row is in the file of its name, and says only how the template differs from its base. The table
 * in template.c expands lowering/templates.def, so a template without a row does not link. */
#ifndef FUSEC_COST_KERNEL_TEMPLATE_H
#define FUSEC_COST_KERNEL_TEMPLATE_H

#include "cost/pricing.h"

/* The registers of a thread, for any template. */
typedef struct ThreadUse {
    Arena *arena;
    const Kernel *kernel;
    const Sched *sched;
    bool is_least; /* without registers that ptxas uses only if they are free */
    double own;    /* arguments, indices and fixed needs of every thread */
    double peak;   /* the most live values of a stage, with the needs of their computation */
} ThreadUse;

typedef struct TemplateCost TemplateCost;
/* `live`: the scalars that each stage needs, and those of the final stores. */
struct TemplateCost {
    /* A class of templates, or another template. A function that is NULL is the base's. */
    const TemplateCost *base;
    /* The row for kernels that reduce rows, if the template computes other kernels too; NULL: this
     * one. */
    const TemplateCost *rows;
    /* Asked of kernels that run in blocks. 32-bit registers of a thread, NULL: `own` and `peak`;
     * and shared memory that the function declares for a block, without the values passed between
     * kernels, NULL: none. */
    double (*registers)(const ThreadUse *use);
    uint32_t (*shared_bytes)(Arena *arena, const Kernel *kernel, const Variant *variant);
    /* Shared memory for results on their way to the epilogue, which reuses that of the operands;
     * NULL: none. */
    uint32_t (*epilogue_bytes)(const Kernel *kernel, const Sched *sched);
    /* Adds the instructions of all elements to n_prims, and sets n_flops. */
    void (*count)(const Coster *c, Pricing *p, bool *const *live);
    /* Sets bytes_in_flight, and multiplies wait_us, one latency, by the number of dependent
     * loads. */
    void (*load)(const Coster *c, Pricing *p, bool *const *live);
    /* The share of the machine's rate that arithmetic reaches if each processor could use `wanted`
     * warps. */
    double (*use)(const Coster *c, const Pricing *p, double wanted);
    /* Sets arithmetic_us and tensor_us from n_prims and n_flops. */
    void (*compute)(const Coster *c, Pricing *p, double prims_per_us);
    /* The exposed part of the shorter of memory and arithmetic time (`busy` us): the part that the
     * longer does not hide. */
    double (*exposed_us)(const Coster *c, const Pricing *p, double busy);
};

/* Classes of templates: threads loop over elements of their own (cost/kernel/loops.h), or compute
 * a GEMM (cost/kernel/gemm.h). */
extern const TemplateCost cost_loops, cost_gemms;

#define TEMPLATE(symbol, function, ...) extern const TemplateCost cost_##function;
#include "lowering/templates.def"

/* The loads that only the searches of a GPU for segments make: a flag per scalar; NULL: none. */
const bool *cost_searched_loads(const Coster *c, const Kernel *kernel);

/* The template's cost for the kernel, with all that it has from its bases. */
TemplateCost template_cost(TemplateId id, const Kernel *kernel);

#endif
