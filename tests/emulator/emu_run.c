/* The scheduler. See emu.h. */
#include "emulator/emu.h"

#include <stdio.h>
#include <string.h>

enum {
    MAX_TURN = 256,      /* most instructions of a warp at a time */
    MAX_IDLE = 1 << 18,  /* unsuccessful polls after which the launch is stuck */
    COPY_CHANCE = 30,    /* per cent, chance of a copy's arrival at each turn */
    SHARED_POISON = 0xFF /* NaN */
};

EmuOutcome emu_fail(EmuWarp *warp, const EmuInst *inst, const char *what, uint64_t value) {
    EmuMachine *machine = warp->machine;
    if (!*machine->error)
        snprintf(machine->error, sizeof machine->error,
                 "%s: block %u, warp %u, line %u: %s (0x%llx): %.120s", machine->kernel->name,
                 warp->block->number, warp->number, inst->line, what, (unsigned long long)value,
                 inst->text);
    return EMU_FAILED;
}

/* Chooses the threads that run: those at the least position among threads that do not wait. If all
 * wait, they run if they have met. False: they have not. */
static bool choose_front(EmuWarp *warp) {
    uint32_t ready = warp->live & ~warp->waiting, from = ready ? ready : warp->live;
    warp->front = 0;
    warp->at = warp->bound = UINT32_MAX;
    EMU_EACH_LANE(lane, from) {
        uint32_t pc = warp->pc[lane];
        if (pc < warp->at) {
            warp->bound = warp->at;
            warp->at = pc, warp->front = 0;
        }
        if (pc == warp->at)
            warp->front |= 1u << lane;
        else if (pc < warp->bound)
            warp->bound = pc;
    }
    return ready || warp->front == warp->live;
}

static void leave_front(EmuWarp *warp) {
    EMU_EACH_LANE(lane, warp->front) {
        warp->pc[lane] = warp->at;
    }
    warp->front = 0;
}

/* Moves the running threads to `at`, unless other threads must be awaited or run first. */
static void go_to(EmuWarp *warp, uint32_t at) {
    warp->at = at;
    if (at >= warp->bound) leave_front(warp);
}

static uint32_t passing(const EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    if (inst->guard == EMU_NO_SLOT) return mask;
    uint32_t passes = 0;
    EMU_EACH_LANE(lane, mask) {
        bool is_set = warp->regs[inst->guard][lane] & 1;
        if (is_set != inst->is_guard_turned) passes |= 1u << lane;
    }
    return passes;
}

static uint32_t count(uint32_t mask) {
    uint32_t n = 0;
    for (; mask; mask &= mask - 1) n++;
    return n;
}

/* Copies that nobody waits for still arrive. */
static void leave(EmuWarp *warp, uint32_t mask) {
    EmuMachine *machine = warp->machine;
    warp->live &= ~mask;
    machine->cluster_live -= count(mask);
    machine->n_idle = 0;
    if (warp->live) return;
    warp->block->n_live--;
    for (uint32_t i = 0; i < warp->pending.n; i++)
        if (!warp->pending.data[i].inst) emu_copy_now(machine, &warp->pending.data[i].copy);
    warp->pending.n = 0;
}

static void branch(EmuWarp *warp, const EmuInst *inst, uint32_t passes) {
    if (passes == warp->front || !passes) {
        go_to(warp, passes ? inst->target : warp->at + 1);
        return;
    }
    uint32_t next = warp->at + 1, front = warp->front;
    leave_front(warp);
    EMU_EACH_LANE(lane, front) {
        warp->pc[lane] = passes >> lane & 1 ? inst->target : next;
    }
}

static EmuOutcome carry_out(EmuWarp *warp, const EmuInst *inst) {
    uint32_t passes = passing(warp, inst, warp->front);
    if (inst->kind == EMU_BRANCH) {
        branch(warp, inst, passes);
        return EMU_GO_ON;
    }
    if (inst->kind == EMU_EXIT) {
        uint32_t next = warp->at + 1;
        leave_front(warp);
        EMU_EACH_LANE(lane, warp->live & ~passes) {
            if (warp->pc[lane] + 1 == next) warp->pc[lane] = next;
        }
        leave(warp, passes);
        return EMU_GO_ON;
    }
    EmuOutcome outcome = passes ? inst->run(warp, inst, passes) : EMU_GO_ON;
    if (outcome == EMU_WAITS || outcome == EMU_FAILED) return outcome;
    warp->waiting &= ~warp->front;
    go_to(warp, warp->at + 1);
    return outcome;
}

/* Runs one instruction of the front threads. */
static EmuOutcome step(EmuWarp *warp) {
    const EmuInst *code = warp->machine->kernel->code.data;
    if (!warp->front && !choose_front(warp))
        return emu_fail(warp, &code[warp->at], "waits for threads that are elsewhere", warp->live);
    const EmuInst *inst = &code[warp->at];
    if (inst->kind == EMU_JOINTLY && warp->front != warp->live) {
        warp->waiting |= warp->front;
        leave_front(warp);
        return EMU_GO_ON;
    }
    return carry_out(warp, inst);
}

/* Runs the warp until it waits, polls, or has had its share. */
static bool emit_blocks(EmuWarp *warp) {
    EmuMachine *machine = warp->machine;
    uint32_t n = 1 + rng_below(&machine->rng, MAX_TURN);
    for (uint32_t i = 0; i < n && warp->live; i++) {
        EmuOutcome outcome = step(warp);
        if (outcome == EMU_FAILED) return false;
        if (outcome == EMU_GO_ON) continue;
        machine->n_idle++;
        break;
    }
    return true;
}

/* Reports that the launch is stuck, with the line of every warp. */
static void tell_stop(EmuWarp *warp) {
    EmuMachine *machine = warp->machine;
    const EmuInst *code = machine->kernel->code.data;
    emu_fail(warp, &code[warp->at], "waits for what does not come", 0);
    for (uint32_t i = 0; i < machine->n_warps; i++) {
        size_t n = strlen(machine->error);
        const EmuWarp *other = &machine->warps[i];
        snprintf(machine->error + n, sizeof machine->error - n, "%s %u",
                 i ? "" : "; warps at lines", other->live ? code[other->at].line : 0);
    }
}

static bool run_cluster(EmuMachine *machine) {
    uint32_t n_live = machine->n_warps;
    while (n_live) {
        EmuWarp *warp = &machine->warps[rng_below(&machine->rng, machine->n_warps)];
        if (rng_chance(&machine->rng, COPY_CHANCE)) emu_copy_any(machine);
        if (!warp->live) continue;
        if (!emit_blocks(warp)) return false;
        n_live -= !warp->live;
        if (machine->n_idle > MAX_IDLE && machine->copies.n == 0) {
            tell_stop(warp);
            return false;
        }
    }
    while (machine->copies.n) emu_copy_any(machine);
    return true;
}

/* Sets up the blocks of a cluster. */
static void begin_cluster(EmuMachine *machine, uint32_t first) {
    const EmuKernel *kernel = machine->kernel;
    uint32_t warps = machine->n_warps / kernel->cluster;
    machine->cluster_arrived = 0;
    machine->cluster_live = machine->n_threads * kernel->cluster;
    for (uint32_t rank = 0; rank < kernel->cluster; rank++) {
        EmuBlock *block = &machine->blocks[rank];
        *block = (EmuBlock){
            .shared = block->shared, .number = first + rank, .rank = rank, .n_live = warps};
        memset(block->shared, SHARED_POISON, machine->shared_bytes);
    }
    for (uint32_t i = 0; i < machine->n_warps; i++) {
        EmuWarp *warp = &machine->warps[i];
        uint32_t n = machine->n_threads - i % warps * EMU_LANES;
        warp->block = &machine->blocks[i / warps];
        warp->number = i % warps;
        warp->live = n >= EMU_LANES ? UINT32_MAX : (1u << n) - 1;
        warp->waiting = warp->front = 0;
        warp->is_at_barrier = false;
        warp->pending.n = 0;
        warp->group = 0;
        memset(warp->pc, 0, sizeof warp->pc);
        memset(warp->copy_group, 0, sizeof warp->copy_group);
        EMU_EACH_LANE(lane, UINT32_MAX) {
            warp->cluster_round[lane] = machine->cluster_round - 1;
            warp->regs[EMU_TID_X][lane] = warp->number * EMU_LANES + lane;
            warp->regs[EMU_NTID_X][lane] = machine->n_threads;
            warp->regs[EMU_CTAID_X][lane] = warp->block->number;
            warp->regs[EMU_NCTAID_X][lane] = machine->n_blocks;
            warp->regs[EMU_NCTAID_Y][lane] = 1;
            warp->regs[EMU_CTARANK][lane] = warp->block->rank;
        }
    }
}

static void make_machine(EmuMachine *machine, const EmuKernel *kernel, const EmuLaunch *launch) {
    machine->kernel = kernel;
    machine->arena = arena_new(NULL);
    machine->rng = rng_new(launch->seed);
    machine->n_blocks = launch->n_blocks;
    machine->n_threads = launch->n_threads;
    machine->shared_bytes = kernel->shared_bytes + launch->dynamic_bytes;
    machine->may_access = launch->may_access;
    machine->params = arena_alloc(machine->arena, kernel->param_bytes + 1);
    for (uint32_t i = 0; i < kernel->params.n; i++)
        memcpy(machine->params + kernel->params.data[i].offset, launch->params[i],
               kernel->params.data[i].n_bytes);
    for (uint32_t rank = 0; rank < kernel->cluster; rank++)
        machine->blocks[rank].shared = arena_alloc(machine->arena, machine->shared_bytes + 16);
    uint32_t per_block = (launch->n_threads + EMU_LANES - 1) / EMU_LANES;
    machine->n_warps = per_block * kernel->cluster;
    machine->warps = arena_array(machine->arena, EmuWarp, machine->n_warps);
    for (uint32_t i = 0; i < machine->n_warps; i++) {
        size_t bytes = sizeof(uint64_t) * EMU_LANES;
        machine->warps[i].machine = machine;
        machine->warps[i].regs = arena_alloc_array(machine->arena, kernel->n_slots + 1, bytes);
    }
}

bool emu_run(const EmuKernel *kernel, const EmuLaunch *launch, char *error, size_t n_bytes) {
    static const EmuMachine none;
    EmuMachine machine = none;
    bool is_good = launch->n_blocks % kernel->cluster == 0;
    make_machine(&machine, kernel, launch);
    if (!is_good) snprintf(machine.error, sizeof machine.error, "blocks that make up no clusters");
    for (uint32_t first = 0; is_good && first < launch->n_blocks; first += kernel->cluster) {
        begin_cluster(&machine, first);
        is_good = run_cluster(&machine);
    }
    snprintf(error, n_bytes, "%s", machine.error);
    arena_free(machine.arena);
    return is_good;
}
