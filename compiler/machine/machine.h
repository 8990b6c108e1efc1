/* Facts of the machines that fusec makes code for. What differs from card to card is a column of
 * cards.def, what differs from target to target a column of targets.def; a number that was chosen
 * is a row of tuning.def. */
#ifndef FUSEC_MACHINE_MACHINE_H
#define FUSEC_MACHINE_MACHINE_H

/* NVIDIA's GPUs of compute capability 8.0 and later. */
enum {
    WARP_THREADS = 32,
    WORD_BYTES = 4,    /* of a register, and of a bank of shared memory */
    ACCESS_BYTES = 16, /* a thread's widest access; copies by the hardware have whole ones */
    SECTOR_BYTES = 32, /* what moves between memory and caches is a multiple of this */
    LINE_BYTES = 128,  /* of a cache; all banks of shared memory side by side are as wide */
    MAX_THREAD_REGISTERS = 255,
    REGISTER_STEP = 8, /* a thread gets a multiple of so many */
    PROCESSOR_REGISTERS = 65536,
    PROCESSOR_SCHEDULERS = 4, /* each starts an instruction of one of its warps in a clock */
    MAX_PROCESSOR_BLOCKS = 32
};

/* CPUs of x86-64. */
enum { CPU_LINE_BYTES = 64, CPU_PAGE_BYTES = 4096 };

#endif
