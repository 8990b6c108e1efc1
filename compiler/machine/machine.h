/* Facts of the machines that fusec generates code for. Facts that differ from card to card are
 * columns of cards.def; those that differ from target to target are columns of targets.def. A
 * chosen number is a row of tuning.def. */
#ifndef FUSEC_MACHINE_MACHINE_H
#define FUSEC_MACHINE_MACHINE_H

/* NVIDIA's GPUs of compute capability 8.0 and later. */
enum {
    WARP_THREADS = 32,
    WORD_BYTES = 4,    /* of a register, and of a bank of shared memory */
    ACCESS_BYTES = 16, /* widest access of a thread; hardware copies move whole units of this */
    SECTOR_BYTES = 32, /* unit of transfers between memory and caches */
    LINE_BYTES = 128,  /* of a cache line, and of all banks of shared memory together */
    MAX_THREAD_REGISTERS = 255,
    REGISTER_STEP = 8, /* registers per thread are a multiple of this */
    PROCESSOR_REGISTERS = 65536,
    PROCESSOR_SCHEDULERS = 4,     /* each issues one instruction of one of its warps per clock */
    RESERVED_SHARED_BYTES = 1024, /* of a block, by the driver */
    MAX_PROCESSOR_BLOCKS = 32,
    STATIC_SHARED_BYTES = 48 * 1024 /* shared memory that a kernel may declare; dynamic: more */
};

/* CPUs of x86-64. */
enum { CPU_LINE_BYTES = 64, CPU_PAGE_BYTES = 4096 };

#endif
