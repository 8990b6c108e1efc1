/* The machine's memory rates, to judge CPU kernels by: triad and memcpy on all cores.
 *
 *   stream [THREADS]     prints `triad N GB/s` and `memcpy N GB/s`, bytes read plus bytes written,
 *                        the median of 15 runs over arrays far beyond the caches. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N_ELEMS = 1 << 26, N_RUNS = 15, MAX_THREADS = 256 };

static float *a, *b, *c;

typedef struct Part {
    size_t begin, end;
    int is_copy;
} Part;

static void *run_part(void *argument) {
    const Part *part = argument;
    if (part->is_copy) {
        memcpy(a + part->begin, b + part->begin, (part->end - part->begin) * sizeof *a);
        return NULL;
    }
    for (size_t i = part->begin; i < part->end; i++) a[i] = b[i] + 3.0f * c[i];
    return NULL;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double time_run(long n_threads, int is_copy) {
    pthread_t threads[MAX_THREADS];
    Part parts[MAX_THREADS];
    double begin = seconds_now();
    for (long t = 0; t < n_threads; t++) {
        size_t step = (size_t)N_ELEMS / (size_t)n_threads;
        parts[t] = (Part){.begin = (size_t)t * step, .is_copy = is_copy};
        parts[t].end = t + 1 < n_threads ? parts[t].begin + step : (size_t)N_ELEMS;
        if (pthread_create(&threads[t], NULL, run_part, &parts[t])) exit(1);
    }
    for (long t = 0; t < n_threads; t++) pthread_join(threads[t], NULL);
    return seconds_now() - begin;
}

static int by_value(const void *x, const void *y) {
    double d = *(const double *)x - *(const double *)y;
    return (d > 0) - (d < 0);
}

static void report(const char *name, long n_threads, int is_copy) {
    double times[N_RUNS], bytes = (is_copy ? 2.0 : 3.0) * sizeof(float) * N_ELEMS;
    time_run(n_threads, is_copy);
    for (int i = 0; i < N_RUNS; i++) times[i] = time_run(n_threads, is_copy);
    qsort(times, N_RUNS, sizeof *times, by_value);
    printf("%s %.1f GB/s\n", name, bytes / times[N_RUNS / 2] / 1e9);
}

int main(int argc, char **argv) {
    long n_threads = argc > 1 ? strtol(argv[1], NULL, 10) : sysconf(_SC_NPROCESSORS_ONLN);
    if (n_threads < 1 || n_threads > MAX_THREADS) {
        fprintf(stderr, "stream: threads from 1 to %d\n", MAX_THREADS);
        return 2;
    }
    a = malloc(sizeof *a * N_ELEMS);
    b = malloc(sizeof *b * N_ELEMS);
    c = malloc(sizeof *c * N_ELEMS);
    if (!a || !b || !c) return 1;
    for (size_t i = 0; i < N_ELEMS; i++) a[i] = 0, b[i] = (float)(i & 7), c[i] = 1;
    report("triad", n_threads, 0);
    report("memcpy", n_threads, 1);
    free(a);
    free(b);
    free(c);
    return 0;
}
