/* Linux and x86-64 specifics behind port.h. */
#define _GNU_SOURCE /* sched_getaffinity, pthread_getattr_np, syscall */
#include "host/port.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>

enum { REG_A, REG_B, REG_C, REG_D };

/* The cpuid bit of a feature; `os` names registers that the operating system must save. */
typedef struct Feature {
    const char *name;
    uint32_t leaf;
    int reg;
    int bit;
    enum { OS_NONE, OS_AVX, OS_AVX512, OS_TILES } os;
} Feature;

static const Feature features[] = {
    {"sse3", 1, REG_C, 0, OS_NONE},          {"ssse3", 1, REG_C, 9, OS_NONE},
    {"sse4.1", 1, REG_C, 19, OS_NONE},       {"sse4.2", 1, REG_C, 20, OS_NONE},
    {"popcnt", 1, REG_C, 23, OS_NONE},       {"movbe", 1, REG_C, 22, OS_NONE},
    {"fma", 1, REG_C, 12, OS_AVX},           {"f16c", 1, REG_C, 29, OS_AVX},
    {"avx", 1, REG_C, 28, OS_AVX},           {"avx2", 7, REG_B, 5, OS_AVX},
    {"bmi", 7, REG_B, 3, OS_NONE},           {"bmi2", 7, REG_B, 8, OS_NONE},
    {"avx512f", 7, REG_B, 16, OS_AVX512},    {"avx512dq", 7, REG_B, 17, OS_AVX512},
    {"avx512cd", 7, REG_B, 28, OS_AVX512},   {"avx512bw", 7, REG_B, 30, OS_AVX512},
    {"avx512vl", 7, REG_B, 31, OS_AVX512},   {"lzcnt", 0x80000001u, REG_C, 5, OS_NONE},
    {"avx512vnni", 7, REG_C, 11, OS_AVX512}, {"amx-bf16", 7, REG_D, 22, OS_TILES},
    {"amx-tile", 7, REG_D, 24, OS_TILES},    {"amx-int8", 7, REG_D, 25, OS_TILES},
};

/* Tile registers take 8 KiB of each thread's saved state, so Linux gives them to a process that
 * asks. The permission is for all its threads and for good. */
static int may_use_tiles(void) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* asm/prctl.h: ARCH_REQ_XCOMP_PERM */
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

int port_cpu_has(const char *feature) {
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        const Feature *f = &features[i];
        if (strcmp(f->name, feature) != 0) {
            continue;
        }
        uint32_t regs[4] = {0};
        if (!__get_cpuid_count(f->leaf, 0, &regs[0], &regs[1], &regs[2], &regs[3])) {
            return 0;
        }
        if (!(regs[f->reg] >> f->bit & 1)) {
            return 0;
        }
        if (f->os == OS_AVX) {
            return __builtin_cpu_supports("avx") != 0;
        }
        if (f->os == OS_TILES) {
            return may_use_tiles();
        }
        return f->os == OS_NONE || __builtin_cpu_supports("avx512f") != 0;
    }
    return -1;
}

void port_cpu_name(char *text, unsigned long n_bytes) {
    uint32_t words[12] = {0};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t *w = words + 4 * i;
        if (!__get_cpuid(0x80000002u + i, &w[0], &w[1], &w[2], &w[3])) {
            snprintf(text, n_bytes, "x86-64 CPU");
            return;
        }
    }
    char name[sizeof words + 1] = {0};
    memcpy(name, words, sizeof words);
    const char *start = name + strspn(name, " ");
    snprintf(text, n_bytes, "%s", *start ? start : "x86-64 CPU");
}

#else

int port_cpu_has(const char *feature) {
    (void)feature;
    return -1;
}

void port_cpu_name(char *text, unsigned long n_bytes) {
    snprintf(text, n_bytes, "CPU");
}

#endif

int port_cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 1;
    }
    int n = CPU_COUNT(&set);
    return n > 0 ? n : 1;
}

/* A thread's stack. Finding it out takes microseconds, so each thread does that once. */
typedef struct Stack {
    const char *lowest, *highest;
    bool is_known;
} Stack;

static Stack find_stack(void) {
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t n_bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &lowest, &n_bytes);
        pthread_attr_destroy(&attributes);
    }
    return (Stack){lowest, (char *)lowest + n_bytes, true};
}

size_t port_stack_left(void) {
    static _Thread_local Stack stack;
    const char *here = __builtin_frame_address(0);
    if (!stack.is_known) {
        stack = find_stack();
    }
    bool is_inside = here > stack.lowest && here <= stack.highest;
    return is_inside ? (size_t)(here - stack.lowest) : 0;
}

int port_thread_start(pthread_t *thread, size_t n_bytes, void *(*body)(void *), void *arg) {
    pthread_attr_t attributes;
    sigset_t all, before;
    int code = pthread_attr_init(&attributes);
    if (code != 0) {
        return code;
    }
    code = pthread_attr_setstacksize(&attributes, n_bytes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (code == 0) {
        code = pthread_create(thread, &attributes, body, arg);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return code;
}

int64_t port_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void port_futex_wait(_Atomic uint32_t *word, uint32_t expected) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

void port_futex_wake(_Atomic uint32_t *word, int n) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

void port_driver_build(char *text, unsigned long n_bytes) {
    FILE *file = fopen("/sys/module/nvidia/version", "r");
    text[0] = '\0';
    if (file) {
        if (!fgets(text, (int)n_bytes, file)) {
            text[0] = '\0';
        }
        fclose(file);
    }
    text[strcspn(text, "\n")] = '\0';
}

int port_memory_file(const char *name) {
    return (int)syscall(SYS_memfd_create, name, 1u /* close on exec */);
}
