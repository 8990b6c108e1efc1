/* Memory accesses, and synchronisation of the threads of a warp, a block and a cluster. See
 * emu.h. */
#include "emulator/emu.h"

#include <string.h>

/* Addresses. Those of shared memory have 32 bits, and wrap: a register may hold a negative number,
 * to which the instruction adds. */

static uint32_t rank_of(const EmuWarp *warp, uint64_t address) {
    uint32_t rank = (uint32_t)address >> EMU_RANK_SHIFT;
    return rank ? rank - 1 : warp->block->rank;
}

uint32_t emu_offset_of(uint64_t address) {
    return (uint32_t)address & ((1u << EMU_RANK_SHIFT) - 1);
}

EmuBlock *emu_block_of(const EmuWarp *warp, uint64_t address) {
    uint32_t rank = rank_of(warp, address);
    return rank < warp->machine->kernel->cluster ? &warp->machine->blocks[rank] : NULL;
}

uint8_t *emu_shared(const EmuWarp *warp, uint64_t address, uint32_t n_bytes) {
    const EmuBlock *block = emu_block_of(warp, address);
    uint64_t at = emu_offset_of(address);
    bool is_in = block && at % n_bytes == 0 && at + n_bytes <= warp->machine->shared_bytes;
    return is_in ? block->shared + at : NULL;
}

uint8_t *emu_global(const EmuWarp *warp, uint64_t address, uint32_t n_bytes) {
    const EmuMachine *machine = warp->machine;
    bool is_in = (n_bytes & (n_bytes - 1) || address % n_bytes == 0) &&
                 (!machine->may_access || machine->may_access(address, n_bytes));
    return is_in ? (uint8_t *)(uintptr_t)address : NULL; /* NOLINT: the host's memory */
}

static uint32_t bytes_of(EmuType type) {
    return emu_type_bits(type) / 8;
}

static uint8_t *place(const EmuWarp *warp, const EmuInst *inst, uint64_t address,
                      uint32_t n_bytes) {
    if (inst->space == EMU_PARAM)
        return address + n_bytes <= warp->machine->kernel->param_bytes
                   ? warp->machine->params + address
                   : NULL;
    return inst->space == EMU_SHARED ? emu_shared(warp, address, n_bytes)
                                     : emu_global(warp, address, n_bytes);
}

/* Copies of known sizes need no call. */
static uint64_t read_value(const uint8_t *from, uint32_t n_bytes) {
    uint64_t value = 0;
    if (n_bytes == 4)
        memcpy(&value, from, 4);
    else if (n_bytes == 2)
        memcpy(&value, from, 2);
    else if (n_bytes == 1)
        memcpy(&value, from, 1);
    else
        memcpy(&value, from, 8);
    return value;
}

static void write_value(uint8_t *to, uint32_t n_bytes, uint64_t value) {
    if (n_bytes == 4)
        memcpy(to, &value, 4);
    else if (n_bytes == 2)
        memcpy(to, &value, 2);
    else if (n_bytes == 1)
        memcpy(to, &value, 1);
    else
        memcpy(to, &value, 8);
}

/* Operands: registers, then the address. */
EmuOutcome emu_load(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    uint32_t n_bytes = bytes_of(inst->type), width = inst->width;
    EMU_EACH_LANE(lane, mask) {
        uint64_t address = emu_get(warp, &inst->x[width], lane);
        const uint8_t *from = place(warp, inst, address, width * n_bytes);
        if (!from) return emu_fail(warp, inst, "loads from where nothing is", address);
        for (uint32_t i = 0; i < width; i++)
            emu_set(warp, &inst->x[i], lane, read_value(from + (size_t)i * n_bytes, n_bytes));
    }
    return EMU_GO_ON;
}

/* Operands: the address, then registers. */
EmuOutcome emu_store(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    uint32_t n_bytes = bytes_of(inst->type), width = inst->width;
    EMU_EACH_LANE(lane, mask) {
        uint64_t address = emu_get(warp, &inst->x[0], lane);
        uint8_t *to = place(warp, inst, address, width * n_bytes);
        if (!to) return emu_fail(warp, inst, "stores to where nothing is", address);
        for (uint32_t i = 0; i < width; i++)
            write_value(to + (size_t)i * n_bytes, n_bytes, emu_get(warp, &inst->x[1 + i], lane));
    }
    warp->machine->n_idle = 0;
    return EMU_GO_ON;
}

/* Operands: the value before, the address, and the value behind which 0 follows. */
EmuOutcome emu_atom_inc(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t address = emu_get(warp, &inst->x[1], lane);
        uint8_t *at = place(warp, inst, address, sizeof(uint32_t));
        uint32_t before, most = (uint32_t)emu_get(warp, &inst->x[2], lane);
        if (!at) return emu_fail(warp, inst, "counts where nothing is", address);
        memcpy(&before, at, sizeof before);
        uint32_t after = before >= most ? 0 : before + 1;
        memcpy(at, &after, sizeof after);
        emu_set(warp, &inst->x[0], lane, before);
    }
    warp->machine->n_idle = 0;
    return EMU_GO_ON;
}

EmuOutcome emu_address_of_param(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint8_t *at = warp->machine->params + emu_get(warp, &inst->x[1], lane);
        emu_set(warp, &inst->x[0], lane, (uint64_t)(uintptr_t)at);
    }
    return EMU_GO_ON;
}

/* The warp. */

/* Operands: destination, value, lane, clamp, member mask. `test` b: butterfly (xor). */
EmuOutcome emu_shuffle(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    uint64_t values[EMU_LANES];
    EMU_EACH_LANE(lane, mask) {
        values[lane] = emu_get(warp, &inst->x[1], lane);
    }
    EMU_EACH_LANE(lane, mask) {
        uint32_t b = (uint32_t)emu_get(warp, &inst->x[2], lane) & 31;
        uint32_t c = (uint32_t)emu_get(warp, &inst->x[3], lane), segment = c >> 8 & 31;
        uint32_t most = (lane & segment) | (c & 31 & ~segment);
        uint32_t from = inst->test == 'b' ? lane ^ b : (lane & segment) | (b & ~segment);
        if (from > most) from = lane;
        if (!(mask >> from & 1))
            return emu_fail(warp, inst, "asks a thread that is not there", from);
        emu_set(warp, &inst->x[0], lane, values[from]);
    }
    return EMU_GO_ON;
}

/* Operands: the greatest (`test` g) or the least value of the lanes (s32), the value, member mask.
 */
EmuOutcome emu_redux(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    int32_t found = inst->test == 'g' ? INT32_MIN : INT32_MAX;
    EMU_EACH_LANE(lane, mask) {
        int32_t value = (int32_t)emu_get(warp, &inst->x[1], lane);
        uint32_t members = (uint32_t)emu_get(warp, &inst->x[2], lane);
        if (members != mask)
            return emu_fail(warp, inst, "joins threads that are not there", members);
        if (inst->test == 'g' ? value > found : value < found) found = value;
    }
    EMU_EACH_LANE(lane, mask) emu_set(warp, &inst->x[0], lane, (uint32_t)found);
    return EMU_GO_ON;
}

/* Operands: the elected lane, and whether it is this one. */
EmuOutcome emu_elect(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    uint32_t first = 0;
    while (!(mask >> first & 1)) first++;
    EMU_EACH_LANE(lane, mask) {
        emu_set(warp, &inst->x[0], lane, first);
        warp->regs[inst->extra][lane] = lane == first;
    }
    return EMU_GO_ON;
}

/* Operands: the lanes that have the predicate (`test` b: a bit for each; a: whether there are any),
 * the predicate, member mask. */
EmuOutcome emu_vote(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    uint32_t ballot = 0;
    EMU_EACH_LANE(lane, mask) {
        if (emu_get(warp, &inst->x[1], lane)) ballot |= 1u << lane;
    }
    EMU_EACH_LANE(lane, mask) {
        emu_set(warp, &inst->x[0], lane, inst->test == 'b' ? ballot : ballot != 0);
    }
    return EMU_GO_ON;
}

/* The block. */

/* The barrier of the instruction, whose round ends when the last warp has arrived: of as many
 * threads as it names, or of all. NULL: there is none of this number. */
static EmuBarrier *barrier_of(EmuWarp *warp, const EmuInst *inst, bool arrives) {
    uint64_t number = emu_get(warp, &inst->x[0], 0);
    uint32_t n_warps =
        inst->n > 1 ? (uint32_t)emu_get(warp, &inst->x[1], 0) / EMU_LANES : warp->block->n_live;
    if (number >= EMU_BARRIERS) return NULL;
    EmuBarrier *barrier = &warp->block->barriers[number];
    if (arrives) barrier->n_arrived++;
    if (barrier->n_arrived >= n_warps) {
        barrier->n_arrived = 0;
        barrier->round++;
        warp->machine->n_idle = 0;
    }
    return barrier;
}

EmuOutcome emu_bar(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    uint64_t number = emu_get(warp, &inst->x[0], 0);
    if (!warp->is_at_barrier && number < EMU_BARRIERS)
        warp->barrier_round = warp->block->barriers[number].round;
    const EmuBarrier *barrier = barrier_of(warp, inst, !warp->is_at_barrier);
    if (!barrier) return emu_fail(warp, inst, "has no barrier of this number", mask);
    warp->is_at_barrier = warp->barrier_round == barrier->round;
    return warp->is_at_barrier ? EMU_WAITS : EMU_GO_ON;
}

EmuOutcome emu_bar_arrive(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    if (!barrier_of(warp, inst, true))
        return emu_fail(warp, inst, "has no barrier of this number", mask);
    return EMU_GO_ON;
}

/* The cluster. */

EmuOutcome emu_cluster_arrive(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EmuMachine *machine = warp->machine;
    (void)inst;
    EMU_EACH_LANE(lane, mask) {
        warp->cluster_round[lane] = machine->cluster_round;
        machine->cluster_arrived++;
    }
    machine->n_idle = 0;
    return EMU_GO_ON;
}

EmuOutcome emu_cluster_wait(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EmuMachine *machine = warp->machine;
    (void)inst;
    if (machine->cluster_arrived >= machine->cluster_live && machine->cluster_arrived) {
        machine->cluster_arrived = 0;
        machine->cluster_round++;
    }
    EMU_EACH_LANE(lane, mask) {
        if (warp->cluster_round[lane] == machine->cluster_round) return EMU_WAITS;
    }
    return EMU_GO_ON;
}

/* The same offset in the shared memory of another block. */
EmuOutcome emu_mapa(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t offset = emu_offset_of(emu_get(warp, &inst->x[1], lane));
        uint64_t rank = emu_get(warp, &inst->x[2], lane);
        emu_set(warp, &inst->x[0], lane, (rank + 1) << EMU_RANK_SHIFT | offset);
    }
    return EMU_GO_ON;
}
