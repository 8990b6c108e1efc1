/* mbarriers, and copies that complete at some later time. See emu.h. */
#include "emulator/emu.h"

#include "fake/fake_map.h"

#include <string.h>

/* An mbarrier's bit fields: the phase, arrivals per phase, arrivals still to come, and bytes. */
typedef struct Barrier {
    uint64_t phase, expected, pending;
    int64_t bytes;
} Barrier;

enum { COUNT_BITS = 12, BYTES_BITS = 38, BARRIER_BYTES = 8 };
enum { COUNT_MASK = (1 << COUNT_BITS) - 1 };
static const int64_t bytes_bias = INT64_C(1) << (BYTES_BITS - 1);

static Barrier read_barrier(const uint8_t *at) {
    uint64_t bits;
    memcpy(&bits, at, sizeof bits);
    Barrier b = {.phase = bits & 1, .expected = bits >> 1 & COUNT_MASK};
    b.pending = bits >> (1 + COUNT_BITS) & COUNT_MASK;
    b.bytes = (int64_t)(bits >> (1 + 2 * COUNT_BITS)) - bytes_bias;
    return b;
}

/* Ends the phase if no arrival and no byte is missing. */
static void write_barrier(EmuMachine *machine, uint8_t *at, Barrier b) {
    if (b.pending == 0 && b.bytes == 0) {
        b.phase ^= 1;
        b.pending = b.expected;
    }
    uint64_t bits = b.phase | b.expected << 1 | b.pending << (1 + COUNT_BITS) |
                    (uint64_t)(b.bytes + bytes_bias) << (1 + 2 * COUNT_BITS);
    memcpy(at, &bits, sizeof bits);
    machine->n_idle = 0;
}

EmuOutcome emu_mbarrier_init(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t address = emu_get(warp, &inst->x[0], lane);
        uint64_t n = emu_get(warp, &inst->x[1], lane);
        uint8_t *at = emu_shared(warp, address, BARRIER_BYTES);
        if (!at) return emu_fail(warp, inst, "no place for a barrier", address);
        write_barrier(warp->machine, at, (Barrier){.expected = n, .pending = n});
    }
    return EMU_GO_ON;
}

/* Operands: state (or nothing), the barrier, and a number. `test` e: one arrival and this number of
 * bytes. */
EmuOutcome emu_mbarrier_arrive(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t address = emu_get(warp, &inst->x[1], lane);
        uint64_t n = emu_get(warp, &inst->x[2], lane);
        uint8_t *at = emu_shared(warp, address, BARRIER_BYTES);
        if (!at) return emu_fail(warp, inst, "no barrier", address);
        Barrier b = read_barrier(at);
        bool expects = inst->test == 'e';
        if (expects) b.bytes += (int64_t)n;
        uint64_t arrivals = expects ? 1 : n;
        if (arrivals > b.pending) return emu_fail(warp, inst, "more arrivals than wanted", address);
        b.pending -= arrivals;
        write_barrier(warp->machine, at, b);
    }
    return EMU_GO_ON;
}

/* Whether the phase of this parity has completed. */
EmuOutcome emu_mbarrier_try(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    bool is_over_for_all = true;
    EMU_EACH_LANE(lane, mask) {
        uint64_t address = emu_get(warp, &inst->x[1], lane);
        const uint8_t *at = emu_shared(warp, address, BARRIER_BYTES);
        if (!at) return emu_fail(warp, inst, "no barrier", address);
        bool is_over = read_barrier(at).phase != (emu_get(warp, &inst->x[2], lane) & 1);
        emu_set(warp, &inst->x[0], lane, is_over);
        is_over_for_all = is_over_for_all && is_over;
    }
    return is_over_for_all ? EMU_GO_ON : EMU_POLLS;
}

static void note_bytes(EmuMachine *machine, uint8_t *shared, int64_t barrier, uint32_t n_bytes) {
    if (barrier < 0) return;
    uint8_t *at = shared + barrier;
    Barrier b = read_barrier(at);
    b.bytes -= n_bytes;
    write_barrier(machine, at, b);
}

/* Boxes of tensor maps. */

enum { TYPE_U8 = 0, TYPE_F16 = 6, TYPE_BF16 = 9, TYPE_TF32 = 11, SWIZZLE_128 = 3, ROW_BITS = 7 };

static uint32_t elem_bytes_of(const FakeMap *map) {
    if (map->dtype == TYPE_U8) return 1;
    return map->dtype == TYPE_F16 || map->dtype == TYPE_BF16 ? 2 : 4;
}

static uint32_t box_bytes(const FakeMap *map) {
    uint32_t n = elem_bytes_of(map);
    for (uint32_t i = 0; i < map->rank; i++) n *= map->box[i] ? map->box[i] : 1;
    return n;
}

/* Swizzles: 16-byte chunks are permuted by their 128-byte row. */
static uint32_t swizzled(const FakeMap *map, uint32_t offset) {
    return map->swizzle == SWIZZLE_128 ? offset ^ ((offset >> ROW_BITS & 7) << 4) : offset;
}

/* The element at `place`; 0 outside the tensor. */
static uint32_t element(const FakeMap *map, const int64_t *place) {
    uint32_t bytes = elem_bytes_of(map), bits = 0;
    const uint8_t *from = map->data;
    for (uint32_t i = 0; i < map->rank; i++) {
        int64_t at = place[i];
        if (at < 0 || (uint64_t)at >= map->sizes[i]) return 0;
        from += (i ? map->stride_bytes[i] : bytes) * (uint64_t)at;
    }
    memcpy(&bits, from, bytes);
    if (map->dtype == TYPE_TF32) bits = (uint32_t)emu_bits(emu_to_tf32(emu_float(bits)));
    return bits;
}

static void put_element(const EmuCopy *copy, uint8_t *shared, uint32_t done, const int64_t *place) {
    uint32_t bits = element(copy->map, place);
    memcpy(shared + swizzled(copy->map, copy->offset + done), &bits, elem_bytes_of(copy->map));
}

static void copy_box(const EmuCopy *copy, uint8_t *shared) {
    const FakeMap *map = copy->map;
    uint32_t in_box[5] = {0}, bytes = elem_bytes_of(map), n = box_bytes(map);
    for (uint32_t done = 0; done < n; done += bytes) {
        int64_t place[5];
        for (uint32_t i = 0; i < map->rank; i++) place[i] = (int64_t)copy->at[i] + in_box[i];
        put_element(copy, shared, done, place);
        for (uint32_t i = 0; i < map->rank && ++in_box[i] == map->box[i]; i++) in_box[i] = 0;
    }
}

/* Copies the channels of one pixel after the other, each at the offsets from its pixel. Pixels
 * advance along the innermost spatial axis up to its upper corner, then continue at the lower
 * corner along the next axis. */
static void copy_windows(const EmuCopy *copy, uint8_t *shared) {
    const FakeMap *map = copy->map;
    uint32_t bytes = elem_bytes_of(map), last = map->rank - 1u, done = 0;
    int64_t at[5], place[5];
    for (uint32_t i = 0; i <= last; i++) at[i] = copy->at[i];
    for (uint32_t pixel = 0; pixel < map->box[last]; pixel++) {
        for (uint32_t i = 1; i < last; i++) place[i] = at[i] + copy->offsets[i - 1];
        place[last] = at[last];
        for (uint32_t c = 0; c < map->box[0]; c++, done += bytes) {
            place[0] = at[0] + c;
            put_element(copy, shared, done, place);
        }
        uint32_t axis = 1;
        for (; axis < last; axis++) {
            at[axis] += map->steps[axis];
            if (at[axis] < (int64_t)map->sizes[axis] + map->upper[axis - 1]) break;
            at[axis] = map->lower[axis - 1];
        }
        if (axis == last) at[last]++;
    }
}

void emu_copy_now(EmuMachine *machine, const EmuCopy *copy) {
    if (!copy->map) {
        memset(copy->to, 0, copy->n_bytes);
        if (copy->read)
            memcpy(copy->to, copy->from ? copy->from : (const uint8_t *)&copy->value, copy->read);
        note_bytes(machine, machine->blocks[copy->block].shared, copy->barrier, copy->n_bytes);
        return;
    }
    const FakeMap *map = copy->map;
    for (uint32_t rank = 0; rank < machine->kernel->cluster; rank++) {
        uint8_t *shared = machine->blocks[rank].shared;
        if (!(copy->blocks >> rank & 1)) continue;
        if (map->is_im2col)
            copy_windows(copy, shared);
        else
            copy_box(copy, shared);
        note_bytes(machine, shared, copy->barrier, box_bytes(map));
    }
}

void emu_copy_any(EmuMachine *machine) {
    if (machine->copies.n == 0) return;
    uint32_t i = rng_below(&machine->rng, machine->copies.n);
    EmuCopy copy = machine->copies.data[i];
    machine->copies.data[i] = machine->copies.data[--machine->copies.n];
    emu_copy_now(machine, &copy);
}

/* Operands: destination, map, coordinates, barrier; then im2col offsets, block mask and cache hint,
 * if present. `width`: number of coordinates; `test`: m for multicast, w for im2col. */
EmuOutcome emu_tensor_copy(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EmuMachine *machine = warp->machine;
    EMU_EACH_LANE(lane, mask) {
        uint64_t to = emu_get(warp, &inst->x[0], lane);
        uint64_t barrier = emu_get(warp, &inst->x[2 + inst->width], lane);
        EmuCopy copy = {.map = (const void *)(uintptr_t)emu_get(warp, &inst->x[1], lane),
                        .offset = emu_offset_of(to),
                        .barrier = emu_offset_of(barrier)};
        const FakeMap *map = copy.map;
        copy.blocks = inst->test == 'm'
                          ? (uint32_t)emu_get(warp, &inst->x[3 + inst->width], lane) & 0xFFFF
                          : 1u << emu_block_of(warp, to)->rank;
        for (uint32_t i = 0; i < inst->width; i++)
            copy.at[i] = (int32_t)emu_get(warp, &inst->x[2 + i], lane);
        for (uint32_t i = 0; i + 2 < inst->width && inst->test == 'w'; i++)
            copy.offsets[i] = (uint32_t)emu_get(warp, &inst->x[3 + inst->width + i], lane) & 0xFFFF;
        bool is_good = map->rank == inst->width && map->is_im2col == (inst->test == 'w') &&
                       copy.offset % 128 == 0 &&
                       copy.offset + box_bytes(map) <= machine->shared_bytes &&
                       copy.blocks < 1u << machine->kernel->cluster &&
                       copy.barrier + BARRIER_BYTES <= machine->shared_bytes;
        if (!is_good) return emu_fail(warp, inst, "copies a box to where nothing is", to);
        vec_push(machine->arena, &machine->copies, copy);
    }
    return EMU_GO_ON;
}

/* A store to another block's memory with an mbarrier there: address, value, barrier. */
EmuOutcome emu_store_async(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EmuMachine *machine = warp->machine;
    uint32_t n_bytes = emu_type_bits(inst->type) / 8;
    EMU_EACH_LANE(lane, mask) {
        uint64_t to = emu_get(warp, &inst->x[0], lane), told = emu_get(warp, &inst->x[2], lane);
        EmuCopy copy = {.to = emu_shared(warp, to, n_bytes),
                        .value = emu_get(warp, &inst->x[1], lane),
                        .n_bytes = n_bytes,
                        .read = n_bytes,
                        .barrier = emu_offset_of(told)};
        if (!copy.to || !emu_shared(warp, told, BARRIER_BYTES))
            return emu_fail(warp, inst, "stores to where nothing is", to);
        copy.block = emu_block_of(warp, told)->rank;
        vec_push(machine->arena, &machine->copies, copy);
    }
    return EMU_GO_ON;
}

/* cp.async: destination, source, bytes, and bytes that are read. */
EmuOutcome emu_copy_async(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t to = emu_get(warp, &inst->x[0], lane), from = emu_get(warp, &inst->x[1], lane);
        EmuPending p = {.lane = lane, .group = warp->copy_group[lane]};
        p.copy.n_bytes = (uint32_t)inst->x[2].number;
        p.copy.read = inst->n > 3 ? (uint32_t)emu_get(warp, &inst->x[3], lane) : p.copy.n_bytes;
        p.copy.to = emu_shared(warp, to, p.copy.n_bytes);
        p.copy.from = p.copy.read ? emu_global(warp, from, p.copy.read) : p.copy.to;
        p.copy.barrier = -1;
        if (!p.copy.to || !p.copy.from || from % p.copy.n_bytes != 0)
            return emu_fail(warp, inst, "copies from or to where nothing is", from);
        vec_push(warp->machine->arena, &warp->pending, p);
    }
    return EMU_GO_ON;
}

EmuOutcome emu_copy_commit(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    (void)inst;
    EMU_EACH_LANE(lane, mask) {
        warp->copy_group[lane]++;
    }
    return EMU_GO_ON;
}

/* Completes all groups except the last `n`. */
EmuOutcome emu_copy_wait(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    uint32_t n_kept = 0, n_left = (uint32_t)inst->x[0].number;
    for (uint32_t i = 0; i < warp->pending.n; i++) {
        EmuPending p = warp->pending.data[i];
        bool is_due = !p.inst && mask >> p.lane & 1 && p.group + n_left < warp->copy_group[p.lane];
        if (is_due)
            emu_copy_now(warp->machine, &p.copy);
        else
            warp->pending.data[n_kept++] = p;
    }
    warp->pending.n = n_kept;
    return EMU_GO_ON;
}
