/* The only place for things that C11 lacks: attributes, processor state and features. */
#ifndef FRT_PORT_H
#define FRT_PORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FRT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define FRT_PRINTF(text, first)
#endif

/* The SSE control word of kernels: round to nearest, no traps, no FTZ, no DAZ. */
#define PORT_FP_DEFAULT 0x1f80u

#if defined(__x86_64__)
#include <immintrin.h>
static inline uint32_t port_fp_get(void) {
    return _mm_getcsr();
}
static inline void port_fp_set(uint32_t word) {
    _mm_setcsr(word);
}
static inline void port_pause(void) {
    _mm_pause();
}
#else
static inline uint32_t port_fp_get(void) {
    return PORT_FP_DEFAULT;
}
static inline void port_fp_set(uint32_t word) {
    (void)word;
}
static inline void port_pause(void) {
}
#endif

/* 1 if this processor has the feature ("avx2"), 0 if not, -1 if the name is unknown. */
int port_cpu_has(const char *feature);

/* The name of the processor, "AMD EPYC 7B13", cut to `n_bytes`. */
void port_cpu_name(char *text, unsigned long n_bytes);

/* The number of CPUs that the calling thread may run on, at least 1. */
int port_cpu_count(void);

/* Bytes of stack that are left to the calling function; 0 where that is not known, as on the stack
 * of a coroutine. */
size_t port_stack_left(void);

/* Starts a thread with a stack of `n_bytes`, whatever the system's default, and all signals
 * blocked: the application does not know these threads. Returns 0 or an errno. */
int port_thread_start(pthread_t *thread, size_t n_bytes, void *(*body)(void *), void *arg);

int64_t port_clock_ns(void);

/* Sleeps while *word == expected (may return early); wakes up to n sleepers. */
void port_futex_wait(_Atomic uint32_t *word, uint32_t expected);
void port_futex_wake(_Atomic uint32_t *word, int n);

/* The build of the machine's NVIDIA driver, "580.95.05"; "" where it is unknown. */
void port_driver_build(char *text, unsigned long n_bytes);

/* An anonymous file for dlopen; -1 where the system has none. */
int port_memory_file(const char *name);

#endif
