/* Signals that end the program: no file is left that is not whole. */
#define _XOPEN_SOURCE 700
#include "lib/command.h"
#include "onnx/onnx_bytes.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

TestSuite(signals, .init = command_set_up, .fini = command_tear_down, .timeout = 120);

/* Starts fusec with these words (`@name` stands for a file of the folder) and nowhere to print. */
static pid_t start(const char *const *words) {
    const char *args[8] = {"build/fusec"};
    for (int n = 0; words[n]; n++)
        args[n + 1] = words[n][0] == '@' ? path_of(words[n] + 1) : words[n];
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "wb", stdout) || !freopen("/dev/null", "wb", stderr)) _exit(126);
        execv(args[0], (char *const *)(uintptr_t)args);
        _exit(127);
    }
    cr_assert(child > 0);
    return child;
}

static long size_of(const char *name) {
    struct stat about;
    return stat(path_of(name), &about) == 0 ? (long)about.st_size : -1;
}

/* Starts the command, and ends it by the signal after some time. What it writes is there as a whole
 * or not at all, and nothing else is there. */
static void signal_after(const char *const *words, int number, long ms, long whole_bytes) {
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    pid_t child = start(words);
    nanosleep(&pause, NULL);
    kill(child, number);
    waitpid(child, NULL, 0);
    long n_bytes = size_of("left");
    cr_expect(n_bytes < 0 || n_bytes == whole_bytes, "%s %s: %ld of %ld bytes after %ld ms",
              words[0], words[1], n_bytes, whole_bytes, ms);
    if (n_bytes >= 0) unlink(path_of("left"));
    cr_expect_eq(n_files(), 1, "%s %s: %d files after %ld ms", words[0], words[1], n_files(), ms);
}

Test(signals, a_signal_leaves_nothing_behind) {
    static const char *const commands[][7] = {
        {"@good.g", "--emit=ptx", "-o", "@left"}, {"@good.g", "--emit=obj", "-o", "@left"},
        {"@good.g", "--emit=so", "-o", "@left"},  {"run", "@good.g", "--device=cpu", "--seed=1"},
        {"verify", "@good.g", "--device=cpu"},    {"bench", "@good.g", "--device=cpu"}};
    static const int signals[] = {SIGINT, SIGTERM};
    static const char source[] =
        "graph g(x: f32[8, 64]) -> (y: f32[8, 64]) {\n"
        "  h = loop i in 1:60 with h = x { return softmax(h @ transpose(x)) @ x + i }\n"
        "  y = h\n}\n";
    write_file("good.g", source, sizeof source - 1); /* the only file of the folder */
    for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
        waitpid(start(commands[c]), NULL, 0);
        long whole_bytes = size_of("left");
        if (whole_bytes >= 0) unlink(path_of("left"));
        for (size_t s = 0; s < sizeof signals / sizeof *signals; s++)
            for (long ms = 0; ms <= 100; ms += 20)
                signal_after(commands[c], signals[s], ms, whole_bytes);
    }
}

/* A model of 32 MB: y = x + w, with an initializer w. */
static void write_large_model(void) {
    enum { N = 1 << 23, FLOAT = 1 };
    static const char *const dims[] = {"8388608"};
    Arena *arena = arena_new(NULL);
    float *values = calloc(N, sizeof *values);
    cr_assert(values);
    for (uint32_t i = 0; i < N; i++) values[i] = (float)i;
    OnnxWriter w = onnx_writer(arena);
    onnx_write_floats(&w, "w", N, values);
    onnx_write_input(&w, "x", FLOAT, 1, dims);
    onnx_write_node(&w, "Add", "x w", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    Text model = onnx_write_model(&w, 13);
    write_file("m.onnx", model.data, model.n_bytes);
    free(values);
    arena_free(arena);
}

/* An import writes the weights, then the source: each is there as a whole or not at all. */
Test(signals, a_signal_leaves_no_part_of_an_import) {
    static const char *const words[] = {"import", "@m.onnx", "-o", "@left.g", NULL};
    static const char *const names[] = {"left.g", "left.safetensors"};
    const int n_before = n_files();
    long whole[2];
    write_large_model();
    waitpid(start(words), NULL, 0);
    for (int i = 0; i < 2; i++) {
        whole[i] = size_of(names[i]);
        cr_assert(whole[i] > 0, "%s", names[i]);
        unlink(path_of(names[i]));
    }
    for (long ms = 0; ms <= 120; ms += 4) {
        const struct timespec pause = {.tv_nsec = ms * 1000000};
        pid_t child = start(words);
        int n_left = 0;
        nanosleep(&pause, NULL);
        kill(child, ms % 8 ? SIGTERM : SIGINT);
        waitpid(child, NULL, 0);
        for (int i = 0; i < 2; i++) {
            long n_bytes = size_of(names[i]);
            if (n_bytes < 0) continue;
            n_left++;
            cr_expect_eq(n_bytes, whole[i], "%s: %ld bytes after %ld ms", names[i], n_bytes, ms);
        }
        cr_expect_eq(n_files(), n_before + 1 + n_left, "after %ld ms", ms);
        cr_expect(size_of(names[0]) < 0 || n_left == 2, "a source without weights after %ld ms",
                  ms);
        for (int i = 0; i < 2; i++) unlink(path_of(names[i]));
    }
}
