/* Times a command: time_runs N COMMAND [ARGUMENT...]
 *
 * Runs the command N times, one after the other, and discards its standard output. Prints medians
 * of the N runs: "WALL CPU SWITCHES".
 * - WALL: microseconds from start to exit;
 * - CPU: microseconds of processor time, of all threads together;
 * - SWITCHES: how often a thread had to wait for another program.
 * Fails when a run does. */
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median(int64_t *values, int n) {
    qsort(values, (size_t)n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int main(int argc, char **argv) {
    static int64_t wall[MAX_RUNS], cpu[MAX_RUNS], switches[MAX_RUNS];
    int n = argc > 2 ? atoi(argv[1]) : 0;
    if (n < 1 || n > MAX_RUNS) {
        fprintf(stderr, "usage: time_runs N COMMAND [ARGUMENT...], N from 1 to %d\n", MAX_RUNS);
        return 2;
    }
    for (int i = 0; i < n; i++) {
        int64_t begin = now_us();
        Use before = children_use();
        if (!run(argv + 2)) return 1;
        wall[i] = now_us() - begin;
        Use after = children_use();
        cpu[i] = after.cpu_us - before.cpu_us;
        switches[i] = after.n_switches - before.n_switches;
    }
    printf("%lld %lld %lld\n", (long long)median(wall, n), (long long)median(cpu, n),
           (long long)median(switches, n));
    return 0;
}
