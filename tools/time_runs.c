/* Times a command: time_runs N COMMAND [ARGUMENT...]
 *
 * Runs the command N times, one after the other, and discards its standard output. Prints medians
 * of the N runs: "WALL CPU SWITCHES YARDSTICK".
 * - WALL: microseconds from start to exit;
 * - CPU: microseconds of processor time, of all threads together;
 * - SWITCHES: how often a thread had to wait for another program;
 * - YARDSTICK: microseconds of a fixed piece of work ahead of each run, which tells how fast the
 *   machine is at that moment.
 * Fails when a run does. */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

enum { MAX_RUNS = 1000 };

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

typedef struct Use {
    int64_t cpu_us, n_switches;
} Use;

static Use children_use(void) {
    struct rusage use;
    if (getrusage(RUSAGE_CHILDREN, &use)) return (Use){0, 0};
    return (Use){((int64_t)use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
                     use.ru_utime.tv_usec + use.ru_stime.tv_usec,
                 use.ru_nivcsw};
}

static bool run(char **command) {
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    if (posix_spawn_file_actions_init(&actions)) return false;
    bool ok = !posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) &&
              !posix_spawnp(&child, command[0], &actions, NULL, command, environ);
    posix_spawn_file_actions_destroy(&actions);
    return ok && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/* The work of a compiler in small: fresh memory, a hash table that no cache near the core holds,
 * and branches that nothing predicts. */
enum { N_SLOTS = 1 << 18, N_KEYS = 1 << 16 };

static uint32_t next_key(uint32_t key) {
    return key * 1664525 + 1013904223;
}

static int64_t yardstick_us(void) {
    int64_t begin = now_us();
    uint32_t *slots = mmap(NULL, N_SLOTS * sizeof *slots, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED) return 0;
    uint32_t key = 1, n_found = 0;
    for (int i = 0; i < 2 * N_KEYS; i++) {
        if (i == N_KEYS) key = 1; /* the same keys again: all are found */
        key = next_key(key);
        uint32_t slot = key >> 14;
        while (slots[slot] && slots[slot] != key) slot = (slot + 1) & (N_SLOTS - 1);
        n_found += slots[slot] == key;
        slots[slot] = key;
    }
    munmap(slots, N_SLOTS * sizeof *slots);
    return n_found >= N_KEYS ? now_us() - begin : 0;
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median(int64_t *values, int n) {
    qsort(values, (size_t)n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int main(int argc, char **argv) {
    static int64_t wall[MAX_RUNS], cpu[MAX_RUNS], switches[MAX_RUNS], yardstick[MAX_RUNS];
    int n = argc > 2 ? atoi(argv[1]) : 0;
    if (n < 1 || n > MAX_RUNS) {
        fprintf(stderr, "usage: time_runs N COMMAND [ARGUMENT...], N from 1 to %d\n", MAX_RUNS);
        return 2;
    }
    for (int i = 0; i < n; i++) {
        yardstick[i] = yardstick_us();
        int64_t begin = now_us();
        Use before = children_use();
        if (!run(argv + 2)) return 1;
        wall[i] = now_us() - begin;
        Use after = children_use();
        cpu[i] = after.cpu_us - before.cpu_us;
        switches[i] = after.n_switches - before.n_switches;
    }
    printf("%lld %lld %lld %lld\n", (long long)median(wall, n), (long long)median(cpu, n),
           (long long)median(switches, n), (long long)median(yardstick, n));
    return 0;
}
