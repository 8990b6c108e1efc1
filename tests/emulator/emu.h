/* A machine that runs PTX on the host, as far as the compiler writes it: what stands for a GPU in
 * tests where there is none. Threads of a warp go together while they are at one place; warps of a
 * cluster's blocks take turns at random; what is asynchronous (copies, tensor cores of a group)
 * happens at any moment that the instructions allow, so that what waits for too little is seen.
 * Blocks follow one another, and launches do.
 *
 * It is no model of time, of caches or of the memory's order between threads: a fence is nothing.
 * Arithmetic is IEEE's; approximations are the nearest number; tensor cores add up exactly in
 * double and round once. */
#ifndef FUSEC_TESTS_EMU_H
#define FUSEC_TESTS_EMU_H

#include "base/arena.h"
#include "base/vec.h"
#include "random/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EMU_LANES = 32,
    EMU_MAX_CLUSTER = 8,
    EMU_RANK_SHIFT =
        24, /* of an address in another block's shared memory: 1 + rank from there on */
    EMU_NO_SLOT = -1
};

typedef struct EmuWarp EmuWarp;
typedef struct EmuInst EmuInst;

/* A register plus a number; the number alone where `slot` is EMU_NO_SLOT. */
typedef struct EmuOperand {
    int32_t slot;
    uint64_t number;
} EmuOperand;

/* A type's suffix. */
typedef enum {
    EMU_NONE,
    EMU_PRED,
    EMU_U8,
    EMU_U16,
    EMU_U32,
    EMU_S32,
    EMU_U64,
    EMU_S64,
    EMU_F16,
    EMU_BF16,
    EMU_F16X2,
    EMU_BF16X2,
    EMU_F32,
    EMU_TF32,
    EMU_F64
} EmuType;

/* What the first registers hold. */
enum {
    EMU_TID_X,
    EMU_NTID_X,
    EMU_CTAID_X,
    EMU_NCTAID_X,
    EMU_NCTAID_Y,
    EMU_CTARANK,
    EMU_SPECIAL_COUNT
};

typedef enum { EMU_GLOBAL, EMU_SHARED, EMU_PARAM } EmuSpace;

/* How an instruction is carried out. */
typedef enum {
    EMU_EACH,    /* by each thread */
    EMU_JOINTLY, /* by all threads of the warp that are there, together */
    EMU_BRANCH,
    EMU_EXIT
} EmuKind;

/* What becomes of the warp. */
typedef enum {
    EMU_GO_ON,
    EMU_POLLS, /* what it asked for is not so yet: others shall go on */
    EMU_WAITS, /* at a barrier: others go on, and it is asked again */
    EMU_FAILED /* see EmuMachine.error */
} EmuOutcome;

/* Threads are bits of `mask`. */
typedef EmuOutcome EmuRun(EmuWarp *warp, const EmuInst *inst, uint32_t mask);

struct EmuInst {
    EmuRun *run;
    EmuKind kind;
    EmuType type, from;   /* the last suffix; of a conversion, the one before is `type` */
    uint8_t test;         /* of a comparison; rounding of a conversion: a character */
    uint8_t space, width; /* of an access: of how many registers */
    int32_t guard;        /* slot, or EMU_NO_SLOT */
    bool is_guard_turned;
    uint32_t target; /* of a branch */
    uint32_t n;      /* of the operands */
    EmuOperand *x;
    int32_t extra; /* a result beside the first: slot; see elect */
    uint32_t line; /* of the text */
    const char *text;
};

typedef struct EmuParam {
    const char *name;
    uint32_t offset, n_bytes;
} EmuParam;

typedef struct EmuKernel {
    const char *name;
    Vec(EmuInst) code;
    Vec(EmuParam) params;
    uint32_t param_bytes, n_slots, cluster;
    uint32_t n_threads;    /* of a block; 0: as many as a launch says */
    uint32_t shared_bytes; /* static; dynamic memory begins there */
} EmuKernel;

typedef struct EmuModule {
    Arena *arena;
    Vec(EmuKernel *) kernels;
    char error[256];
} EmuModule;

/* From the text of a module, which is copied. False: see `error`. To be freed in any case. */
bool emu_module_init(EmuModule *module, const char *text);
void emu_module_free(EmuModule *module);

/* Fills in what the instruction's name says. False: there is none such. */
bool emu_find_op(EmuInst *inst, const char *name);

/* Running. */

/* A copy under way. */
typedef struct EmuCopy {
    uint8_t *to;
    uint8_t *from;          /* or NULL: `value` */
    const void *map;        /* or NULL; of a tensor map's: */
    int32_t at[5];          /* where its box begins */
    uint32_t offsets[3];    /* of windows */
    uint32_t offset;        /* in shared memory */
    uint32_t blocks;        /* bits */
    uint32_t n_bytes, read; /* the rest is 0 */
    uint64_t value;
    int64_t barrier; /* in shared memory, of the block; -1: none */
    uint32_t block;  /* whose, by rank */
} EmuCopy;

/* One of a thread's or a warp's that belong to a group, to be waited for. */
typedef struct EmuPending {
    EmuCopy copy;
    const EmuInst *inst; /* of tensor cores, with what its descriptors were */
    uint64_t a, b;
    uint32_t lane, group;
} EmuPending;

typedef struct EmuBlock {
    uint8_t *shared;
    uint32_t number, rank;
    uint32_t n_live, n_at_barrier; /* warps */
    uint64_t barrier_round;
} EmuBlock;

typedef struct EmuMachine EmuMachine;

struct EmuWarp {
    EmuMachine *machine;
    EmuBlock *block;
    uint64_t (*regs)[EMU_LANES];
    uint32_t number; /* in the block */
    /* Those that go on together, and where they are; of others `pc` says it, and `bound` is the
     * least of those that do not wait. */
    uint32_t front, at, bound, pc[EMU_LANES];
    uint32_t live, waiting; /* threads; those that wait for others of the warp */
    bool is_at_barrier;
    uint64_t barrier_round;                /* that it waits for the end of */
    uint64_t cluster_round[EMU_LANES];     /* that the thread has arrived in */
    uint32_t copy_group[EMU_LANES], group; /* of copies; of tensor cores */
    Vec(EmuPending) pending;
};

struct EmuMachine {
    const EmuKernel *kernel;
    Arena *arena; /* of the launch */
    Rng rng;
    uint8_t *params;
    uint32_t n_blocks, n_threads, shared_bytes;
    EmuBlock blocks[EMU_MAX_CLUSTER]; /* those that run */
    EmuWarp *warps;                   /* of all of them */
    uint32_t n_warps;
    uint32_t cluster_arrived, cluster_live; /* threads */
    uint64_t cluster_round;
    Vec(EmuCopy) copies; /* under way, of nobody's group */
    uint64_t n_idle;     /* fruitless questions since something happened */
    /* Whether the host's memory at `at` may be accessed; NULL: all may. */
    bool (*may_access)(uint64_t at, uint32_t n_bytes);
    char error[400];
};

typedef struct EmuLaunch {
    uint32_t n_blocks, n_threads, dynamic_bytes;
    void **params;
    uint64_t seed;
    bool (*may_access)(uint64_t at, uint32_t n_bytes);
} EmuLaunch;

/* Runs all blocks. False: `error` says what went wrong, and where. */
bool emu_run(const EmuKernel *kernel, const EmuLaunch *launch, char *error, size_t n_bytes);

/* Says what went wrong, once. */
EmuOutcome emu_fail(EmuWarp *warp, const EmuInst *inst, const char *what, uint64_t value);
/* Shared memory at an address as instructions have it, of the own block or another; NULL: it is
 * outside. */
uint8_t *emu_shared(const EmuWarp *warp, uint64_t address, uint32_t n_bytes);
uint8_t *emu_global(const EmuWarp *warp, uint64_t address, uint32_t n_bytes);
/* The block whose shared memory the address is in. */
EmuBlock *emu_block_of(const EmuWarp *warp, uint64_t address);
/* What every address of shared memory is within its block. */
uint32_t emu_offset_of(uint64_t address);

extern const uint64_t emu_zeros[EMU_LANES];

/* An operand of all threads: their values before the number is added. */
static inline const uint64_t *emu_values(const EmuWarp *warp, const EmuOperand *x) {
    return x->slot == EMU_NO_SLOT ? emu_zeros : warp->regs[x->slot];
}

static inline uint64_t emu_get(const EmuWarp *warp, const EmuOperand *x, uint32_t lane) {
    return emu_values(warp, x)[lane] + x->number;
}

static inline void emu_set(EmuWarp *warp, const EmuOperand *x, uint32_t lane, uint64_t value) {
    if (x->slot != EMU_NO_SLOT) warp->regs[x->slot][lane] = value;
}

#define EMU_EACH_LANE(lane, mask)                     \
    for (uint32_t lane = 0; lane < EMU_LANES; lane++) \
        if ((mask) >> lane & 1)

/* The same, in two loops: one of them, without a question, for all threads. */
#define EMU_ALL_OR_EACH(lane, mask, ...)                        \
    do {                                                        \
        if ((mask) == UINT32_MAX)                               \
            for (uint32_t lane = 0; lane < EMU_LANES; lane++) { \
                __VA_ARGS__                                     \
            }                                                   \
        else                                                    \
            EMU_EACH_LANE(lane, mask) {                         \
                __VA_ARGS__                                     \
            }                                                   \
    } while (0)

/* emu_async.c: barriers in shared memory, which are 8 bytes, and copies. */
void emu_copy_now(EmuMachine *machine, const EmuCopy *copy);
/* One of those under way, if there are any. */
void emu_copy_any(EmuMachine *machine);

/* Instructions, by file: emu_alu.c, emu_float.c, emu_memory.c, emu_async.c, emu_tensor.c. */
EmuRun emu_move, emu_pack, emu_unpack, emu_add, emu_sub, emu_mul_lo, emu_mad_lo, emu_mul_hi,
    emu_mul_wide, emu_quotient, emu_rest, emu_shl, emu_shr, emu_and, emu_or, emu_xor, emu_not,
    emu_extreme, emu_bfe, emu_prmt, emu_lop3, emu_select, emu_compare_int, emu_nothing;
EmuRun emu_float_2, emu_fma, emu_float_1, emu_compare_float, emu_set_float, emu_convert,
    emu_convert_2;
EmuRun emu_load, emu_store, emu_address_of_param, emu_bar, emu_shuffle, emu_elect,
    emu_cluster_arrive, emu_cluster_wait, emu_mapa;
EmuRun emu_mbarrier_init, emu_mbarrier_arrive, emu_mbarrier_try, emu_tensor_copy, emu_store_async,
    emu_copy_async, emu_copy_commit, emu_copy_wait;
EmuRun emu_ldmatrix, emu_mma, emu_wgmma, emu_wgmma_commit, emu_wgmma_wait;

/* Conversions of 16-bit floats; to them from double, rounded once, NaN as the machine's. */
float emu_of_bf16(uint64_t bits);
float emu_of_f16(uint64_t bits);
uint64_t emu_to_bf16(double value);
uint64_t emu_to_f16(double value);
/* The bits of an f32, of NaN those that the machine makes. */
uint64_t emu_bits(float value);
float emu_float(uint64_t bits);
float emu_to_tf32(float value);
double emu_double(uint64_t bits);
uint64_t emu_double_bits(double value);
/* Of a register of the type; 1 for predicates. */
uint32_t emu_type_bits(EmuType type);

#endif
