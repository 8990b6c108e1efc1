/* The program on sources of 64 KiB that are made to take long: each compiles to PTX, fused and
 * unfused, and to an object, or is refused by a limit, within bounds of time and memory. Times are
 * CPU seconds of the child, the least of three where the first are too many. PTX may take one and a
 * half times the documented time, because a loaded machine counts more; objects take at most half
 * of theirs on a quiet one. */
#include "lib/command.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(hostile, .init = command_set_up, .fini = command_tear_down, .timeout = 300);

enum {
    SOURCE_BYTES = 1 << 16,
    MOST_SECONDS = 3,
    N_TRIES = 3,
    N_RATIO_TRIES = 10,
    MOST_OBJECT_SECONDS = 20,
    MOST_KIB = 512 << 10,
    LONG_BYTES = 1 << 20
};

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

/* Runs the program, again if it takes more than `most` seconds: the least count. Returns the exit
 * code. */
static int compile_soon(const char *line, double most) {
    double least = INFINITY;
    int status = 0;
    for (int i = 0; i < N_TRIES && least > most; i++) {
        status = fusec(line, NULL);
        if (run.seconds < least) least = run.seconds;
    }
    run.seconds = least;
    return status;
}

/* Compiles the source and checks the contract. Returns the exit code. */
static int compile(const char *name, const char *options) {
    char line[64];
    write_file("hostile.g", source.text, source.n_bytes);
    snprintf(line, sizeof line, "@hostile.g -o @a.ptx%s", options);
    int status = compile_soon(line, MOST_SECONDS);
    cr_expect(status == 0 || (status == 1 && strstr(run.err, "[limit]")), "%s%s: %d, %.400s", name,
              options, status, run.err);
    cr_expect(run.seconds <= MOST_SECONDS, "%s%s: %.1f seconds", name, options, run.seconds);
    cr_expect(run.memory_kib <= MOST_KIB, "%s%s: %ld KiB", name, options, run.memory_kib);
    return status;
}

/* A kind of source: see hostile.def. */
typedef struct Kind {
    const char *name, *fused, *unfused;
    int n_statements;
    const char *head, *item, *middle, *statement, *end;
} Kind;

static const Kind kinds[] = {
#define KIND(...) {__VA_ARGS__},
#include "cli/hostile.def"
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static const Kind *kind_of(const char *name) {
    const Kind *kind = kinds;
    while (kind < kinds + N_KINDS && strcmp(kind->name, name) != 0) kind++;
    cr_assert(kind < kinds + N_KINDS, "%s", name);
    return kind;
}

static size_t n_bytes_of(const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    return (size_t)n;
}

/* As many statements as fit. */
static int count_statements(const Kind *kind) {
    size_t n_bytes = strlen(kind->head) + strlen(kind->middle) + strlen(kind->end) + 8;
    for (int n = 0;; n++) {
        n_bytes += n_bytes_of(kind->item, n + 1, n, (n + 1) / 2);
        n_bytes += n_bytes_of(kind->statement, n + 1, n, (n + 1) / 2);
        if (n_bytes > SOURCE_BYTES) return n;
    }
}

static void write_kind(const Kind *kind, int n) {
    source.n_bytes = 0;
    if (!n) n = kind->n_statements;
    if (!n) n = count_statements(kind);
    add("%s", kind->head);
    for (int i = 1; i <= n; i++) add(kind->item, i, i - 1, i / 2);
    add("%s", kind->middle);
    for (int i = 1; i <= n; i++) add(kind->statement, i, i - 1, i / 2);
    add(kind->end, n);
}

/* Prints the entry of the table, if there is one. */
static void check_kind(const Kind *kind, const char *words, const char *refused, double most,
                       bool is_whole) {
    char line[64], id[32];
    write_file("hostile.g", source.text, source.n_bytes);
    snprintf(line, sizeof line, "@hostile.g -o %s", words);
    snprintf(id, sizeof id, "[%s]", refused);
    int status = compile_soon(line, most);
    cr_expect(*refused ? status == 1 && strstr(run.err, id) : status == 0, "%s, %s: %d, %.400s",
              kind->name, words, status, run.err);
    cr_expect(run.seconds <= most, "%s, %s: %.1f seconds", kind->name, words, run.seconds);
    cr_expect(run.memory_kib <= MOST_KIB, "%s, %s: %ld KiB", kind->name, words, run.memory_kib);
    if (!is_whole) return;
    printf(" %6.2f s %4ld MiB %s", run.seconds, run.memory_kib >> 10, *refused ? "*" : " ");
    fflush(stdout); /* before a child has a copy */
}

/* Every third kind, or all of them and a table, if HOSTILE is set: `make hostile`. A star stands
 * for what is refused. */
Test(hostile, every_kind_of_source_keeps_the_contract, .timeout = 1800) {
    bool is_whole = getenv("HOSTILE") != NULL;
    if (is_whole) printf("%-25s %-20s %-20s %s", "", "PTX", "PTX, unfused", "object\n");
    for (size_t i = 0; i < N_KINDS; i += is_whole ? 1 : 3) {
        const Kind *kind = &kinds[i];
        if (is_whole) printf("%-24s", kind->name);
        fflush(stdout); /* before a child has a copy */
        write_kind(kind, 0);
        check_kind(kind, "@a.ptx", kind->fused, MOST_SECONDS, is_whole);
        check_kind(kind, "@a.ptx --no-fuse", kind->unfused, MOST_SECONDS, is_whole);
        check_kind(kind, "@a.o", kind->fused, MOST_OBJECT_SECONDS, is_whole);
        if (is_whole) printf("\n");
    }
}

Test(hostile, twenty_thousand_statements_take_little_time_and_memory) {
    write_kind(kind_of("sums"), 20000);
    cr_expect_eq(compile("20000 sums", ""), 0, "%s", run.err);
    write_kind(kind_of("far reads"), 5000);
    compile("5000 far reads", "");
}

/* No kernel ends within a block. */
Test(hostile, a_chain_of_must_blocks_is_kept) {
    write_kind(kind_of("must blocks"), 1300);
    cr_expect_eq(compile("1300 must blocks", ""), 0, "%s", run.err);
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
    static const char head[] = "graph g(x: f32[8]) -> (y: f32[8]) {\nv0=x\n";
    static const char *const bodies[] = {
        "h = loop i in 0:1000000000000 with h = x { return h }",
        "h = loop i in 0:10000 with h = x { return loop k in 0:10000 with h = h { return h } }",
        "h, _k = loop i in 0:1000000 with h = x, k = [x] * 4096 { return h, k * 1 }"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        source.n_bytes = 0;
        add("%s  %s\n  y = h\n}\n", head, bodies[i]);
        cr_expect_eq(compile(bodies[i], ""), 1, "%s", run.err);
    }
    source.n_bytes = 0;
    add("%s", head);
    for (int i = 0; i < 100; i++) add("h%d = loop i in 0:1 with h = x {\n", i);
    add("return h\n");
    for (int i = 99; i > 0; i--) add("}\nreturn h%d\n", i);
    add("}\ny = h0\n}\n");
    cr_expect_eq(compile("loops in loops", ""), 1, "%s", run.err);
    cr_expect(strstr(run.err, "nested more than 64 deep"), "%s", run.err);
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

/* Compiles the source, and returns the least seconds of this and earlier times. */
static double least_seconds(const char *line, double earlier) {
    cr_assert_eq(fusec(line, NULL), 0, "%s", run.err);
    return run.seconds < earlier ? run.seconds : earlier;
}

/* The ledger takes three times the compilation, or a few tenths of a second. What takes longer is
 * measured again, because a loaded machine counts more, and the least times count. */
static bool is_little_longer(double explained, double seconds) {
    return explained <= 3 * seconds || explained <= 0.2;
}

Test(hostile, explain_takes_little_longer_than_the_compilation) {
    static const char *const names[] = {"softmaxes",      "convolutions", "several kinds",
                                        "dynamic slices", "expansions",   "sums of asin",
                                        "sums of cbrt",   "inputs",       "positions"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_kind(kind_of(names[i]), i < 5 ? 1000 : 0);
        cr_assert_eq(compile(names[i], ""), 0, "%s", run.err);
        double seconds = run.seconds, explained = INFINITY;
        for (int k = 0; k < N_RATIO_TRIES && !is_little_longer(explained, seconds); k++) {
            if (k) seconds = least_seconds("@hostile.g -o @a.ptx", seconds);
            explained = least_seconds("@hostile.g -o @a.ptx --explain", explained);
        }
        cr_expect(is_little_longer(explained, seconds), "%s: %.2f and %.2f seconds", names[i],
                  seconds, explained);
    }
}
