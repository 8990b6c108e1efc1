/* The program on sources of 64 KiB that are made to take long: each compiles, fused and unfused, or
 * is refused by a limit, within bounds of time and memory. Times are CPU seconds of the child, and
 * the test allows twice the documented time, because a loaded machine counts more of them. */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE /* ru_maxrss */
#include "lib/command.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>

TestSuite(hostile, .init = command_set_up, .fini = command_tear_down, .timeout = 300);

enum { SOURCE_BYTES = 1 << 16, MOST_SECONDS = 4, MOST_KIB = 512 << 10, LONG_BYTES = 1 << 20 };

typedef struct Source {
    char text[LONG_BYTES];
    size_t n_bytes;
} Source;
static Source source;

static void add(const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n =
        vsnprintf(source.text + source.n_bytes, sizeof source.text - source.n_bytes, format, args);
    va_end(args);
    cr_assert(n >= 0 && source.n_bytes + (size_t)n < sizeof source.text);
    source.n_bytes += (size_t)n;
}

static double cpu_seconds(const struct rusage *use) {
    return (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) +
           1e-6 * (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec);
}

/* CPU seconds of the last `compile`. */
static double last_seconds;

/* Compiles the source and checks the contract. Returns the exit code. */
static int compile(const char *name, const char *options) {
    char line[64];
    struct rusage before, after;
    write_file("hostile.g", source.text, source.n_bytes);
    snprintf(line, sizeof line, "@hostile.g -o @a.ptx%s", options);
    getrusage(RUSAGE_CHILDREN, &before);
    int status = fusec(line, NULL);
    getrusage(RUSAGE_CHILDREN, &after);
    double seconds = last_seconds = cpu_seconds(&after) - cpu_seconds(&before);
    cr_expect(status == 0 || (status == 1 && strstr(run.err, "[limit]")), "%s%s: %d, %.400s", name,
              options, status, run.err);
    cr_expect(seconds <= MOST_SECONDS, "%s%s: %.1f seconds", name, options, seconds);
    cr_expect(after.ru_maxrss <= MOST_KIB, "%s%s: %ld KiB", name, options, after.ru_maxrss);
    return status;
}

static void check(const char *name) {
    compile(name, "");
    compile(name, " --no-fuse");
}

/* Statements v0, v1, ... that each read the one before; `%d` of the format stands for the number of
 * the statement, of the one before, and of one half as far. */
typedef struct Chain {
    const char *name, *head, *statement, *end;
} Chain;

static const char plain[] = "graph g(x: f32[8]) -> (y: f32[8]) {\nv0=x\n";
static const char square[] = "graph g(x: f32[8,8]) -> (y: f32[8,8]) {\nv0=x\n";

static const Chain chains[] = {
    {"sums", plain, "v%1$d=v%2$d+%1$d\n", "y=v%d\n}\n"},
    {"quotients", plain, "v%1$d=v%2$d/x\n", "y=v%d\n}\n"},
    {"far reads", plain, "v%1$d=v%2$d*v%3$d\n", "y=v%d\n}\n"},
    {"gathers", "graph g(x: f32[8], k: i32[8]) -> (y: f32[8]) {\nv0=x\n", "v%1$d=gather(v%2$d,k)\n",
     "y=v%d\n}\n"},
    {"scans", "graph g(x: f32[64]) -> (y: f32[64]) {\nv0=x\n",
     "v%1$d=v%2$d+pad(v%2$d[:-1],low=[1],high=[0])\n", "y=v%d\n}\n"},
    {"kernel blocks", plain, "kernel k%1$d {\na%1$d=exp(v%2$d)\nv%1$d=a%1$d+a%1$d\n}\n",
     "y=v%d\n}\n"},
    {"layers", "weights \"w\"\ndim B in 1..1024\ngraph g(x: f32[B,64]) -> (y: f32[B,64]) {\nv0=x\n",
     "param w%1$d:f32[64,64]=\"%1$d\"\nv%1$d=relu(v%2$d@w%1$d)\n", "y=v%d\n}\n"},
    {"softmaxes", square, "v%1$d=softmax(v%2$d)\n", "y=v%d\n}\n"},
    {"layernorms", "graph g(x: f32[8,8], s: f32[8], b: f32[8]) -> (y: f32[8,8]) {\nv0=x\n",
     "v%1$d=layernorm(v%2$d,s,b)\n", "y=v%d\n}\n"},
    {"concats of slices", plain, "v%1$d=concat([v%2$d[1:],v%2$d[:1]],0)\n", "y=v%d\n}\n"},
    {"transposes", square, "v%1$d=transpose(v%2$d)+x\n", "y=v%d\n}\n"},
};

static void write_chain(const Chain *chain, int n_statements) {
    source.n_bytes = 0;
    add("%s", chain->head);
    int i = 1;
    for (; n_statements ? i <= n_statements : source.n_bytes < SOURCE_BYTES - 128; i++)
        add(chain->statement, i, i - 1, i / 2);
    add(chain->end, i - 1);
}

Test(hostile, chains_of_every_kind_keep_the_contract) {
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        write_chain(&chains[i], 0);
        check(chains[i].name);
    }
}

Test(hostile, twenty_thousand_statements_take_little_time_and_memory) {
    write_chain(&chains[0], 20000);
    cr_expect_eq(compile("20000 sums", ""), 0, "%s", run.err);
    write_chain(&chains[2], 5000);
    compile("5000 far reads", "");
}

/* The adds after a matmul might lead to a slice of it, so each matmul looks at all of them. */
Test(hostile, thousands_of_matmuls_in_one_sum_take_little_time_and_memory) {
    static const Chain sum = {"matmuls in a sum",
                              "graph g(x: f32[8,8], w: f32[8,8]) -> (y: f32[8,8]) {\nv0=x\n",
                              "v%1$d=v%2$d+(x+%1$d)@w\n", "y=v%d\n}\n"};
    write_chain(&sum, 2000);
    cr_expect_eq(compile(sum.name, ""), 0, "%s", run.err);
    write_chain(&sum, 3000);
    compile(sum.name, "");
}

/* Calls of defs that are many ops each. Without fusion they have too many tensors, which is found
 * before their kernels are made. */
Test(hostile, thousands_of_calls_take_little_time_and_memory) {
    static const Chain calls = {"calls of atan2",
                                "graph g(x: f32[8], z: f32[8]) -> (y: f32[8]) {\nv0=x\n",
                                "v%1$d=v%2$d+atan2(v%2$d,z)\n", "y=v%d\n}\n"};
    write_chain(&calls, 1900);
    cr_expect_eq(compile(calls.name, ""), 0, "%s", run.err);
    cr_expect_eq(compile(calls.name, " --no-fuse"), 1);
    cr_expect(last_seconds < 1, "%.1f seconds", last_seconds);
}

/* Trials of all graphs share memory. */
Test(hostile, many_graphs_of_one_module) {
    static const int numbers[] = {64, 1000};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        source.n_bytes = 0;
        for (int g = 0; g < numbers[i]; g++)
            add("graph g%d(x: f32[8,8]) -> (y: f32[8,8]) {\n"
                "y=softmax(x@(x+%d))@x+exp(x*x)*tanh(x)\n}\n",
                g, g);
        cr_expect_eq(compile("graphs", ""), numbers[i] > 64, "%s", run.err);
    }
}

/* Short sources of long loops. */
Test(hostile, five_hundred_steps_take_little_time_and_memory) {
    source.n_bytes = 0;
    add("graph g(x: f32[512,4,64], h0: f32[4,64]) -> (y: f32[512,4,64]) {\n"
        "  param w: f32[64,64] = \"w\"\n  param u: f32[64,64] = \"u\"\n"
        "  _, hs = loop t in 0:512 with h = h0 {\n    next = tanh(x[t] @ w + h @ u)\n"
        "    return next, reshape(next, [1,4,64])\n  }\n  y = concat(hs)\n}\n");
    cr_expect_eq(compile("512 steps", ""), 0, "%s", run.err);
}

Test(hostile, loops_without_an_end_are_refused) {
    static const char *const bodies[] = {
        "h = loop i in 0:1000000000000 with h = x { return h }",
        "h = loop i in 0:10000 with h = x { return loop k in 0:10000 with h = h { return h } }",
        "h, _k = loop i in 0:1000000 with h = x, k = [x] * 4096 { return h, k * 1 }"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        source.n_bytes = 0;
        add("%s  %s\n  y = h\n}\n", plain, bodies[i]);
        cr_expect_eq(compile(bodies[i], ""), 1, "%s", run.err);
    }
    source.n_bytes = 0;
    add("%s", plain);
    for (int i = 0; i < 100; i++) add("h%d = loop i in 0:1 with h = x {\n", i);
    add("return h\n");
    for (int i = 99; i > 0; i--) add("}\nreturn h%d\n", i);
    add("}\ny = h0\n}\n");
    cr_expect_eq(compile("loops in loops", ""), 1, "%s", run.err);
    cr_expect(strstr(run.err, "nested more than 64 deep"), "%s", run.err);
}

Test(hostile, wide_and_deep_sources_keep_the_contract) {
    source.n_bytes = 0;
    add("graph g(x: f32[8]) -> (y: f32[8]) {\ny=");
    for (int i = 0; i < 30000; i++) add("(");
    add("x");
    for (int i = 0; i < 30000; i++) add(")");
    add("\n}\n");
    cr_expect_eq(compile("parentheses", ""), 1);
    source.n_bytes = 0;
    add("graph g(x: f32[8]) -> (y: f32[8000]) {\ny=concat([x");
    for (int i = 1; i < 1000; i++) add(",relu(x+%d)", i);
    add("],axis=0)\n}\n");
    check("a concat of 1000 parts");
    source.n_bytes = 0;
    add("graph g(x: f32[8]) -> (y0: f32[8]");
    for (int i = 1; i < 2200; i++) add(", y%d: f32[8]", i);
    add(") {\n");
    for (int i = 0; i < 2200; i++) add("y%d=x+%d\n", i, i);
    add("}\n");
    check("2200 outputs");
    source.n_bytes = 0;
    add("def f0(x) = x+1\n");
    for (int i = 1; i < 40; i++) add("def f%d(x) = f%d(f%d(x))\n", i, i - 1, i - 1);
    add("graph g(x: f32[8]) -> (y: f32[8]) {\ny=f30(x)\n}\n");
    cr_expect_eq(compile("defs that double", ""), 1);
}

/* The whole output of the last run, of which run.out has the first part. */
static const char *whole_output(void) {
    static char text[LONG_BYTES];
    char path[96];
    snprintf(path, sizeof path, "%s.out", run.folder);
    FILE *file = fopen(path, "rb");
    cr_assert(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static int count(const char *text, const char *word) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) n++;
    return n;
}

/* Every edge has a verdict and a reason; only advice is left out, and the ledger says so. */
Test(hostile, explain_leaves_out_advice_only) {
    static const int lengths[] = {4, 80};
    for (size_t i = 0; i < 2; i++) {
        int n = lengths[i], n_fused = 0, n_stored = 0;
        source.n_bytes = 0;
        add("dim B in 1..65536\ngraph g(x: f32[B,64]) -> (y: f32[B,64]) {\nv0=x\n");
        for (int k = 1; k <= n; k++) add("v%d=softmax(v%d)\n", k, k - 1);
        add("y=v%d\n}\n", n);
        write_file("hostile.g", source.text, source.n_bytes);
        cr_assert_eq(fusec("@hostile.g --explain", NULL), 0, "%s", run.err);
        const char *text = whole_output(), *edges = strstr(text, "edges between ops");
        cr_assert(edges &&
                  sscanf(edges, "edges between ops %d fused, %d stored", &n_fused, &n_stored) == 2);
        cr_expect_eq(n_fused + n_stored, 7 * n - 2);
        cr_expect_eq(count(text, ": fused  [") + count(text, ": stored  ["), 7 * n + 1);
        cr_expect_eq(strstr(text, "advice not tried") != NULL, n == 80);
    }
}

/* The ledger takes three times the compilation, and the test allows five, because a loaded machine
 * counts more. */
Test(hostile, explain_takes_little_longer_than_the_compilation) {
    static const Chain kinds[] = {
        {"softmaxes", square, "v%1$d=softmax(v%2$d)\n", "y=v%d\n}\n"},
        {"convolutions", "graph g(x: f32[1,4,8,8], w: f32[4,4,3,3]) -> (y: f32[1,4,8,8]) {\nv0=x\n",
         "v%1$d=conv2d(v%2$d,w,padding=1)\n", "y=v%d\n}\n"},
        {"several kinds", square, "v%1$d=transpose(softmax(v%2$d@x))+v%3$d\n", "y=v%d\n}\n"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct rusage before, after;
        write_chain(&kinds[i], 1000);
        cr_assert_eq(compile(kinds[i].name, ""), 0, "%s", run.err);
        getrusage(RUSAGE_CHILDREN, &before);
        cr_assert_eq(fusec("@hostile.g -o @a.ptx --explain", NULL), 0, "%s", run.err);
        getrusage(RUSAGE_CHILDREN, &after);
        double seconds = cpu_seconds(&after) - cpu_seconds(&before);
        cr_expect(seconds <= 5 * last_seconds, "%s: %.2f and %.2f seconds", kinds[i].name,
                  last_seconds, seconds);
    }
}
