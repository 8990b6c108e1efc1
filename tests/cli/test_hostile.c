/* The program on sources of 64 KiB that are made to take long: each compiles to PTX, fused and
 * unfused, and to an object, or is refused by a limit, within bounds of time and memory. Times are
 * CPU seconds of the child, the least of three where the first are too many. PTX may take one and a
 * half times the documented time, because a loaded machine counts more; objects take at most half
 * of theirs on a quiet one. */
#include "cli/hostile.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(hostile, .init = command_set_up, .fini = command_tear_down, .timeout = 300);

enum { MOST_SECONDS = 3, N_TRIES = 3, MOST_OBJECT_SECONDS = 20, MOST_KIB = 512 << 10 };
enum { MOST_FUNCTION_SECONDS = 6 }; /* of one large function of an object */

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

/* LLVM gives a function this large quick code. Its results are those of the kernels of one op each,
 * which get LLVM's best. */
Test(hostile, a_large_function_takes_linear_time_and_keeps_its_bits) {
    static const char *const words[] = {"@a.o", "@b.o --no-fuse"};
    char line[160], results[2][200];
    write_kind(kind_of("far f64 sines"), 0);
    check_kind(kind_of("far f64 sines"), words[0], "", MOST_FUNCTION_SECONDS, false);
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, "@hostile.g -o %s", words[i]);
        cr_assert_eq(fusec(line, NULL), 0, "%s", run.err);
        snprintf(line, sizeof line, "run @%c.o --seed=7", "ab"[i]);
        cr_assert_eq(fusec(line, NULL), 0, "%s", run.err);
        const char *values = strstr(run.out, "y: f64[8] =");
        cr_assert(values, "%s", run.out);
        snprintf(results[i], sizeof results[i], "%.160s", values);
    }
    cr_expect_str_eq(results[0], results[1]);
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
