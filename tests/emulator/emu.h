/* An emulator that runs the PTX of this compiler on the host, for tests without a GPU. Threads of a
 * warp run together while they are at one instruction. Warps of a cluster's blocks interleave at
 * random. Asynchronous work (copies, wgmma) happens at any moment that the instructions allow, so
 * that a missing wait shows. Blocks run one after the other, and so do launches.
 *
 * It does not model time, caches or the memory order between threads: a fence does nothing.
 * Arithmetic is IEEE's; approximations are the nearest number; tensor cores add exactly in double
 * and round once. */
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
    EMU_MAX_STATIC_BYTES = 48 * 1024, /* shared memory that a kernel may declare */
    EMU_RANK_SHIFT = 24, /* shift of 1 + rank in an address of another block's shared memory */
    EMU_NO_SLOT = -1
};

typedef struct EmuWarp EmuWarp;
typedef struct EmuInst EmuInst;

/* A register plus a number; the number alone if `slot` is EMU_NO_SLOT. */
typedef struct EmuOperand {
    int32_t slot;
    uint64_t number;
} EmuOperand;

/* A type's suffix. */
typedef enum {
    EMU_NONE,
    EMU_PRED,
    EMU_U8,
    EMU_S8,
    EMU_E4M3,
    EMU_E5M2,
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

/* Special values in the first registers. */
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

/* How an instruction runs. */
typedef enum {
    EMU_EACH,    /* for each thread */
    EMU_JOINTLY, /* once for all active threads of the warp */
    EMU_BRANCH,
    EMU_EXIT
} EmuKind;

/* The state of the warp after an instruction. */
typedef enum {
    EMU_GO_ON,
    EMU_POLLS, /* its condition does not hold yet: other warps run first */
    EMU_WAITS, /* at a barrier: other warps run, then it is asked again */
    EMU_FAILED /* see EmuMachine.error */
} EmuOutcome;

/* `mask` is the bit set of active threads. */
typedef EmuOutcome EmuRun(EmuWarp *warp, const EmuInst *inst, uint32_t mask);

struct EmuInst {
    EmuRun *run;
    EmuKind kind;
    EmuType type, from;   /* `from` is the last suffix; for a conversion, `type` is the one
                           * before */
    uint8_t test;         /* for a comparison its kind, for a conversion its rounding: a
                           * character */
    uint8_t space, width; /* width: registers of an access */
    int32_t guard;        /* slot, or EMU_NO_SLOT */
    bool is_guard_turned;
    uint32_t target; /* for a branch */
    uint32_t n;      /* number of operands */
    EmuOperand *x;
    int32_t extra; /* slot of a second result; see elect */
    uint32_t line; /* line in the text */
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
    uint32_t n_threads;    /* of a block; 0: the launch's */
    uint32_t shared_bytes; /* static bytes; dynamic memory follows */
} EmuKernel;

typedef struct EmuModule {
    Arena *arena;
    Vec(EmuKernel *) kernels;
    char error[256];
} EmuModule;

/* Parses a module's text, which is copied. False: see `error`. Free it in any case. */
bool emu_module_init(EmuModule *module, const char *text);
void emu_module_free(EmuModule *module);

/* Sets the fields that the instruction's name determines. False: the name is unknown. */
bool emu_find_op(EmuInst *inst, const char *name);

/* Running. */

/* A copy in flight. */
typedef struct EmuCopy {
    uint8_t *to;
    uint8_t *from;          /* NULL: the copy writes `value` */
    const void *map;        /* NULL, or the tensor map, with: */
    int32_t at[5];          /* the first element of its box */
    uint32_t offsets[3];    /* im2col offsets */
    uint32_t offset;        /* destination in shared memory */
    uint32_t blocks;        /* bit set */
    uint32_t n_bytes, read; /* n_bytes - read bytes are zero */
    uint64_t value;
    int64_t barrier; /* offset in the block's shared memory; -1: none */
    uint32_t block;  /* rank of that block */
} EmuCopy;

/* An asynchronous operation that belongs to a group, which can be waited for. */
typedef struct EmuPending {
    EmuCopy copy;
    const EmuInst *inst; /* for wgmma, with its descriptors in a and b */
    uint64_t a, b;
    uint32_t lane, group;
} EmuPending;

/* A barrier of a block: the warps that have arrived in this round. */
typedef struct EmuBarrier {
    uint32_t n_arrived;
    uint64_t round;
} EmuBarrier;

enum { EMU_BARRIERS = 16 };
typedef struct EmuBlock {
    uint8_t *shared;
    uint32_t number, rank;
    uint32_t n_live; /* warps */
    EmuBarrier barriers[EMU_BARRIERS];
} EmuBlock;

typedef struct EmuMachine EmuMachine;

struct EmuWarp {
    EmuMachine *machine;
    EmuBlock *block;
    uint64_t (*regs)[EMU_LANES];
    uint32_t number; /* in the block */
    /* The threads that run together and their position. For other threads `pc` has it, and `bound`
     * is the least position of those that do not wait. */
    uint32_t front, at, bound, pc[EMU_LANES];
    uint32_t live, waiting; /* threads; those that wait for others of the warp */
    bool is_at_barrier;
    uint64_t barrier_round;                /* the round that it waits for */
    uint64_t cluster_round[EMU_LANES];     /* the round in which the thread arrived */
    uint32_t copy_group[EMU_LANES], group; /* group numbers of copies; of wgmma */
    Vec(EmuPending) pending;
};

struct EmuMachine {
    const EmuKernel *kernel;
    Arena *arena; /* of the launch */
    Rng rng;
    uint8_t *params;
    uint32_t n_blocks, n_threads, shared_bytes;
    EmuBlock blocks[EMU_MAX_CLUSTER]; /* blocks of the running cluster */
    EmuWarp *warps;                   /* of all blocks */
    uint32_t n_warps;
    uint32_t cluster_arrived, cluster_live; /* numbers of threads */
    uint64_t cluster_round;
    Vec(EmuCopy) copies; /* copies in flight that belong to no group */
    uint64_t n_idle;     /* unsuccessful polls since the last progress */
    /* Whether host memory at `at` may be accessed; NULL: all of it. */
    bool (*may_access)(uint64_t at, uint32_t n_bytes);
    char error[400];
};

typedef struct EmuLaunch {
    uint32_t n_blocks, n_threads, dynamic_bytes;
    void **params;
    uint64_t seed;
    bool (*may_access)(uint64_t at, uint32_t n_bytes);
} EmuLaunch;

/* Runs all blocks. False: `error` says what failed and where. */
bool emu_run(const EmuKernel *kernel, const EmuLaunch *launch, char *error, size_t n_bytes);

/* Records an error, once. */
EmuOutcome emu_fail(EmuWarp *warp, const EmuInst *inst, const char *what, uint64_t value);
/* The shared memory at an address of an instruction, in this or another block; NULL: outside. */
uint8_t *emu_shared(const EmuWarp *warp, uint64_t address, uint32_t n_bytes);
uint8_t *emu_global(const EmuWarp *warp, uint64_t address, uint32_t n_bytes);
/* The block whose shared memory contains the address. */
EmuBlock *emu_block_of(const EmuWarp *warp, uint64_t address);
/* The offset of a shared address within its block. */
uint32_t emu_offset_of(uint64_t address);

extern const uint64_t emu_zeros[EMU_LANES];

/* The values of an operand for all threads, before its number is added. */
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

/* A loop over the active threads, as two loops: the one for all threads has no test. */
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

/* emu_async.c: mbarriers, which are 8 bytes, and copies. */
void emu_copy_now(EmuMachine *machine, const EmuCopy *copy);
/* Performs one of the copies in flight, if there are any. */
void emu_copy_any(EmuMachine *machine);

/* Instructions, by file: emu_alu.c, emu_float.c, emu_memory.c, emu_async.c, emu_tensor.c. */
EmuRun emu_move, emu_pack, emu_unpack, emu_add, emu_sub, emu_mul_lo, emu_mad_lo, emu_mul_hi,
    emu_mul_wide, emu_quotient, emu_rest, emu_shl, emu_shr, emu_and, emu_or, emu_xor, emu_not,
    emu_popc, emu_extreme, emu_bfe, emu_prmt, emu_lop3, emu_select, emu_compare_int, emu_nothing;
EmuRun emu_float_2, emu_fma, emu_float_1, emu_compare_float, emu_set_float, emu_convert,
    emu_convert_2;
EmuRun emu_load, emu_store, emu_atom_inc, emu_address_of_param, emu_bar, emu_bar_arrive,
    emu_shuffle, emu_redux, emu_elect, emu_vote, emu_cluster_arrive, emu_cluster_wait, emu_mapa;
EmuRun emu_mbarrier_init, emu_mbarrier_arrive, emu_mbarrier_try, emu_tensor_copy, emu_store_async,
    emu_copy_async, emu_copy_commit, emu_copy_wait;
EmuRun emu_ldmatrix, emu_mma, emu_wgmma, emu_wgmma_commit, emu_wgmma_wait;

/* Conversions of 16-bit floats. Those from double round once; NaN becomes the machine's. */
float emu_of_bf16(uint64_t bits);
float emu_of_f16(uint64_t bits);
uint64_t emu_to_bf16(double value);
uint64_t emu_to_f16(double value);
/* The bits of an f32; of a NaN, those that the machine makes. */
uint64_t emu_bits(float value);
float emu_float(uint64_t bits);
float emu_to_tf32(float value);
double emu_double(uint64_t bits);
uint64_t emu_double_bits(double value);
/* Bits of a register of the type; 1 for predicates. */
uint32_t emu_type_bits(EmuType type);

#endif
