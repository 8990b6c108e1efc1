/* The resources of a scheduled kernel. See pressure.h. */
#include "cost/pressure.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "cost/count/registers.h"
#include "cost/kernel/template.h"

uint32_t pressure_live(Arena *arena, const Kernel *kernel) {
    return (uint32_t)registers_of_stages(arena, kernel, &(Sched){.lanes = 1}, false, true);
}

static double thread_registers(Arena *arena, const Kernel *kernel, const Sched *sched,
                               bool is_least) {
    uint32_t n_arguments =
        kernel->args.n < REGS_MOST_ARGUMENTS ? kernel->args.n : REGS_MOST_ARGUMENTS;
    ThreadUse use = {.arena = arena, .kernel = kernel, .sched = sched, .is_least = is_least};
    use.own = REGS_OWN + n_arguments + (sched->is_wide ? REGS_WIDE_SHARE : 0);
    use.peak = registers_of_stages(arena, kernel, sched, true, is_least);
    TemplateCost cost = template_cost(sched->template, kernel);
    return cost.registers ? cost.registers(&use) : use.own + use.peak;
}

static uint32_t registers(Arena *arena, const Kernel *kernel, const Sched *sched, bool is_least) {
    ArenaMark mark = arena_mark(arena);
    uint32_t n = (uint32_t)(thread_registers(arena, kernel, sched, is_least) + 0.5);
    arena_rewind(arena, mark);
    return n < REGS_LEAST ? REGS_LEAST : n;
}

uint32_t pressure_registers(Arena *arena, const Kernel *kernel, const Sched *sched) {
    return registers(arena, kernel, sched, false);
}

uint32_t pressure_least(Arena *arena, const Kernel *kernel, const Sched *sched) {
    return registers(arena, kernel, sched, true);
}

uint32_t pressure_lanes(Arena *arena, const Kernel *kernel, Sched sched) {
    for (; sched.lanes > 1; sched.lanes /= 2)
        if (pressure_least(arena, kernel, &sched) <= MAX_THREAD_REGISTERS &&
            !registers_are_spread(arena, kernel, &sched))
            break;
    return sched.lanes;
}

/* A thread of a map processes all its steps at once. */
static uint32_t registers_of_thread(Arena *arena, const Kernel *kernel, Sched sched) {
    if (!form_info(kernel->form)->reduces && sched.unroll > 1) sched.lanes *= sched.unroll;
    return pressure_registers(arena, kernel, &sched);
}

uint32_t pressure_shared_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    if (variant->shared_bytes) return variant->kept_shared_bytes + variant->shared_bytes;
    TemplateCost cost = template_cost(variant->sched.template, kernel);
    uint32_t own = cost.shared_bytes ? cost.shared_bytes(arena, kernel, variant) : 0;
    return variant->kept_shared_bytes + own;
}

Pressure pressure_of(Arena *arena, const Kernel *kernel, const Variant *variant, const Card *card) {
    const Sched *sched = &variant->sched;
    if (!card->has->blocks) return (Pressure){.n_blocks = 1, .occupancy = 1};
    Pressure p = {.registers = registers_of_thread(arena, kernel, *sched)};
    p.shared_bytes = pressure_shared_bytes(arena, kernel, variant);
    p.spills = p.registers > MAX_THREAD_REGISTERS;
    p.spilled = p.spills ? p.registers - MAX_THREAD_REGISTERS : 0;
    uint32_t held = p.spills ? MAX_THREAD_REGISTERS : p.registers;
    held = (held + REGISTER_STEP - 1) / REGISTER_STEP * REGISTER_STEP;
    p.n_blocks = card->threads / sched->threads;
    uint32_t by_registers = PROCESSOR_REGISTERS / (held * sched->threads);
    if (by_registers < sched->min_blocks) by_registers = sched->min_blocks;
    uint32_t by_shared =
        p.shared_bytes ? card->shared_bytes / p.shared_bytes : MAX_PROCESSOR_BLOCKS;
    if (p.n_blocks > MAX_PROCESSOR_BLOCKS) p.n_blocks = MAX_PROCESSOR_BLOCKS;
    if (by_registers < p.n_blocks) p.n_blocks = by_registers;
    if (by_shared < p.n_blocks) p.n_blocks = by_shared;
    if (p.n_blocks < 1) p.n_blocks = 1;
    p.occupancy = (double)p.n_blocks * sched->threads / card->threads;
    if (p.occupancy > 1) p.occupancy = 1;
    return p;
}
