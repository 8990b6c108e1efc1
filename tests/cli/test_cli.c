/* The program from outside: what it makes, and that nothing is left behind. */
#define _XOPEN_SOURCE 700
#include "lib/command.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(cli, .init = command_set_up, .fini = command_tear_down, .timeout = 60);

Test(cli, a_byte_order_mark_is_passed_over) {
    static const char marked[] = "\xEF\xBB\xBFgraph g(x: f32[8]) -> (y: f32[8]) { y = reluu(x) }\n";
    write_file("marked.g", marked, sizeof marked - 1);
    expect("@marked.g -o @a.ptx", 1, "marked.g:1:41: error:");
}

Test(cli, missing_weights_are_told_of_once) {
    static const char source[] = "weights \"none.safetensors\"\n"
                                 "graph g(x: f32[8]) -> (y: f32[8]) {\n"
                                 "  param w: f32[8] = \"w\"\n  y = x * w\n}\n";
    write_file("weights.g", source, sizeof source - 1);
    cr_expect_eq(fusec("verify @weights.g --device=cpu", NULL), 0, "%s", run.err);
    const char *first = strstr(run.err, "is not there");
    cr_expect(first && !strstr(first + 1, "is not there"), "%s", run.err);
}

Test(cli, a_failed_compilation_leaves_the_old_output) {
    char text[MAX_TEXT];
    write_file("bad.g", "graph", 5);
    write_file("a.ptx", "old", 3);
    expect("@bad.g -o @a.ptx", 1, "[syntax]");
    read_file(path_of("a.ptx"), text);
    cr_expect_str_eq(text, "old");
}

/* As `ulimit -f` sets it: no signal, nothing half written. */
Test(cli, a_limit_of_file_sizes_is_an_error) {
    char text[MAX_TEXT];
    write_file("a.ptx", "old", 3);
    struct rlimit before, limit;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 2048, .rlim_max = before.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    expect("@good.g -o @a.ptx", 3, "File too large");
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    read_file(path_of("a.ptx"), text);
    cr_expect_str_eq(text, "old");
}

/* A chain of kernels that all differ, whose object takes LLVM far longer than a second. */
static void write_long_source(void) {
    static char text[1 << 17];
    int n =
        snprintf(text, sizeof text, "graph g(x: f32[64, 64]) -> (y: f32[64, 64]) {\n  v0 = x\n");
    for (int i = 1; i <= 1500; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "  v%d = softmax(v%d @ x + sum(x[:%d, :%d]))\n", i, i - 1, i % 64 + 1,
                      i / 64 + 1);
    n += snprintf(text + n, sizeof text - (size_t)n, "  y = v1500\n}\n");
    write_file("long.g", text, (size_t)n);
}

Test(cli, a_time_limit_ends_long_work_and_writes_nothing) {
    write_long_source();
    int before = n_files();
    expect("@long.g -o @long.o --time-limit=1", 6,
           "fusec: error: the time limit of 1 second has passed");
    cr_expect_eq(n_files(), before, "nothing is left");
    expect("@good.g -o @a.o --time-limit=600", 0, "");
    static const char *const wrong[] = {"0", "0.0001", ".", "1.5.2", "inf", "1e3", "-1", "1s"};
    expect("@long.g -o @long.o --time-limit=0.25", 6,
           "fusec: error: the time limit of 0.25 seconds has passed");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[64];
        snprintf(line, sizeof line, "@good.g -o @a.o --time-limit=%s", wrong[i]);
        expect(line, 2, "--time-limit wants seconds from 0.001 to 1000000");
    }
}

Test(cli, verify_says_what_it_is_doing) {
    cr_assert_eq(fusec("verify @good.g --device=cpu --verbose", NULL), 0, "%s", run.err);
    cr_expect(strstr(run.err, "compiling: fused"), "%s", run.err);
    cr_expect(strstr(run.err, "with the reference"), "%s", run.err);
}

Test(cli, every_kind_of_output_is_made) {
    static const char *const kinds[] = {"ast", "graph", "fused", "sched", "llvm", "ptx", "asm"};
    char line[64];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        snprintf(line, sizeof line, "@good.g --emit=%s", kinds[i]);
        if (strcmp(kinds[i], "asm") == 0) strcat(line, " --target=cpu");
        expect(line, 0, "");
        cr_expect(run.out[0], "%s is empty", kinds[i]);
    }
    static const char *const files[] = {"a.ptx", "a.o", "a.s", "a.ll", "a.so"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(line, sizeof line, "@good.g -o @%s", files[i]);
        expect(line, 0, "");
    }
    cr_expect(n_files() == 6, "%d files", n_files());
}

Test(cli, standard_streams_are_files_too) {
    char first[MAX_TEXT], second[MAX_TEXT];
    cr_assert(fusec("- -o -", path_of("good.g")) == 0, "%s", run.err);
    cr_expect(strstr(run.out, ".version"), "%s", run.out);
    snprintf(first, sizeof first, "%s", strstr(run.out, "//@ dim"));
    expect("@good.g -o @a.ptx", 0, "");
    read_file(path_of("a.ptx"), second);
    char *rest = strstr(second, "//@ dim");
    cr_assert(rest);
    cr_expect_str_eq(first, rest, "only the name and the checksum may differ");
}

Test(cli, equal_input_gives_equal_bytes) {
    /* From any folder, to any: `@/good.g` is the file by another path. */
    static const char *const lines[][2] = {{"@good.g -o @a.o", "@/good.g -o @b.o"},
                                           {"@good.g -o @a.so", "@/good.g -o @b.so"},
                                           {"@good.g -o @a.ptx", "@/good.g -o @b.ptx"}};
    static const char *const names[][2] = {{"a.o", "b.o"}, {"a.so", "b.so"}, {"a.ptx", "b.ptx"}};
    static char bytes[2][MAX_TEXT];
    for (size_t k = 0; k < sizeof lines / sizeof lines[0]; k++) {
        size_t n[2];
        for (int i = 0; i < 2; i++) {
            expect(lines[k][i], 0, "");
            n[i] = read_file(path_of(names[k][i]), bytes[i]);
        }
        cr_expect(n[0] == n[1] && memcmp(bytes[0], bytes[1], n[0]) == 0, "%s", names[k][0]);
    }
    expect("inspect @a.ptx", 0, " from good.g, ");
}

Test(cli, a_special_file_is_written_in_place) {
    expect("@good.g --emit=obj -o /dev/null", 0, "");
    struct stat info;
    cr_expect(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode));
}

Test(cli, a_link_keeps_pointing_to_what_is_replaced) {
    write_file("real.ptx", "old", 3);
    cr_assert(symlink("real.ptx", path_of("link.ptx")) == 0);
    expect("@good.g -o @link.ptx", 0, "");
    char text[MAX_TEXT];
    struct stat info;
    cr_expect(lstat(path_of("link.ptx"), &info) == 0 && S_ISLNK(info.st_mode));
    read_file(path_of("real.ptx"), text);
    cr_expect(strncmp(text, "//@ ", 4) == 0);
}

Test(cli, what_is_replaced_keeps_its_mode) {
    struct stat info;
    write_file("real.ptx", "old", 3);
    cr_assert(chmod(path_of("real.ptx"), 0640) == 0);
    cr_assert(symlink("real.ptx", path_of("link.ptx")) == 0);
    expect("@good.g -o @link.ptx", 0, "");
    cr_expect(stat(path_of("real.ptx"), &info) == 0 && info.st_size > 3);
    cr_expect((info.st_mode & 07777) == 0640, "mode %o", (unsigned)info.st_mode);
}

Test(cli, a_link_to_nothing_is_followed) {
    struct stat info;
    cr_assert(mkdir(path_of("folder"), 0777) == 0);
    cr_assert(symlink("folder/new.ptx", path_of("one.ptx")) == 0);
    cr_assert(symlink("one.ptx", path_of("two.ptx")) == 0);
    expect("@good.g -o @two.ptx", 0, "");
    cr_expect(lstat(path_of("two.ptx"), &info) == 0 && S_ISLNK(info.st_mode));
    cr_expect(lstat(path_of("folder/new.ptx"), &info) == 0 && S_ISREG(info.st_mode));
    cr_assert(symlink("loop.ptx", path_of("loop.ptx")) == 0);
    expect("@good.g -o @loop.ptx", 0, ""); /* a link that names no file is replaced */
}

/* An assembler that makes an ELF file for EM_CUDA of whatever it is given. */
static const char assembler[] = "#!/bin/sh\necho noise\ntest -s \"$4\" && cp /bin/sh \"$3\" &&\n"
                                "printf '\\276\\0' | dd of=\"$3\" bs=1 seek=18 conv=notrunc "
                                "2>/dev/null\n";

Test(cli, a_cubin_is_made_where_there_is_an_assembler) {
    static const char wrong[] = "#!/bin/sh\necho wrong >&2\nexit 3\n";
    char first[MAX_TEXT];
    write_file("as", assembler, strlen(assembler));
    write_file("bad", wrong, sizeof wrong - 1);
    write_file("idle", "#!/bin/sh\n", 10);
    cr_assert(chmod(path_of("as"), 0700) == 0 && chmod(path_of("bad"), 0700) == 0 &&
              chmod(path_of("idle"), 0700) == 0);
    int n_before = n_files();
    expect("@good.g -o @a.cubin --target=sm_90a --ptxas=@as", 0, "");
    cr_expect(!run.out[0] && strstr(run.err, "noise"), "what it says goes to stderr");
    expect("inspect @a.cubin", 0, "cubin for sm_90a, ");
    cr_expect(strstr(run.out, "graph g: 1 launch,") && strstr(run.out, ", overlaps"), "%s",
              run.out);
    read_file(path_of("a.cubin"), first);
    cr_expect(strncmp(first, "//@ fusec-artifact 1\n", 21) == 0);
    cr_expect(strstr(first, "\n//@ end\n//@ payload "), "%s", first);
    expect("@good.g --emit=cubin --ptxas=@as", 0, "//@ target cuda sm_80\n");
    cr_assert(setenv("FUSEC_PTXAS", path_of("as"), 1) == 0);
    expect("@good.g -o @b.cubin", 0, "");
    expect("@good.g -o @c.cubin --ptxas=@bad", 4, "bad -arch=sm_80` failed\n");
    cr_expect(strstr(run.err, "wrong\n"), "its own words come first: %s", run.err);
    expect("@good.g -o @c.cubin --ptxas=@idle", 4, "idle -arch=sm_80` failed\n");
    expect("@good.g -o @c.cubin --ptxas=@none", 4, "there is no `");
    cr_assert(setenv("FUSEC_PTXAS", path_of("none"), 1) == 0);
    expect("@good.g -o @c.cubin", 4, "--ptxas=FILE or FUSEC_PTXAS says where it is");
    cr_assert(unsetenv("FUSEC_PTXAS") == 0);
    cr_expect(n_files() == n_before + 2, "%d files", n_files());
    expect("@good.g -o @c.cubin --target=cpu", 2, "cubin cannot be made for target cpu");
    expect("@good.g -o @c.ptx --ptxas=@as", 2, "--ptxas counts when a cubin is made");
    expect("@good.g --emit=cubn", 2, "did you mean `cubin`?");
    if (system("command -v ptxas >/dev/null 2>&1") != 0) {
        fprintf(stderr, "SKIPPED no ptxas here\n");
        return;
    }
    expect("@good.g -o @real.cubin --target=sm_90a", 0, "");
    expect("inspect @real.cubin", 0, "cubin for sm_90a, ");
}

Test(cli, lists_and_help_never_fail) {
    expect("--help", 0, "--list-targets");
    expect("--list-targets", 0, "sm_90a");
    expect("--list-emit", 0, "ptx");
    expect("--list-emit", 0, "cubin    .cubin the PTX assembled");
    expect("--version", 0, "fusec ");
    expect("--version --verbose", 0, "LLVM ");
    expect("run --help", 0, "--device");
}

Test(cli, passes_can_be_watched) {
    expect("@good.g -o @a.ptx --dump-to=@dump", 0, "");
    static const char *const dumps[] = {
#define PASS(sym, name, scope, run, extension, requires, leaves, modes, doc) name "." extension,
#include "pipeline/passes.def"
    };
    for (size_t i = 0; i < sizeof dumps / sizeof dumps[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "dump/%02zu-%s", i + 1, dumps[i]);
        cr_expect(access(path_of(name), R_OK) == 0, "no %s", name);
    }
    cr_assert(fusec("@good.g -o @a.ptx --print-after=fuse --time-passes", NULL) == 0);
    cr_expect(strstr(run.err, "kernel ") && strstr(run.err, " ms  emit"), "%s", run.err);
}

Test(cli, the_ledger_goes_where_the_output_does_not) {
    expect("@good.g --explain", 0, "totals:");
    cr_assert(fusec("@good.g --explain -o -", NULL) == 0);
    cr_expect(strstr(run.err, "totals:") && !strstr(run.out, "totals:"));
    cr_assert(fusec("@good.g --explain --emit=dot", NULL) == 0);
    cr_expect(strstr(run.err, "totals:") && strncmp(run.out, "digraph", 7) == 0, "%s", run.out);
}

Test(cli, the_ledger_is_priced_where_it_is_told_to) {
    expect("@good.g --explain --card=h200 --dim=B=48", 0, "priced for h200 at B = 48\n");
    expect("@good.g --explain", 0, "priced for a100 at B = ");
    expect("@good.g --explain --json --target=sm_90a", 0, "\"schema\": \"fusec-explain-2\"");
    expect("@good.g --explain --card=h100", 2, "there is no card `h100`; did you mean `h200`?");
    expect("@good.g --explain --dim=B=x", 1, "dim B cannot be x");
    expect("@good.g --json -o @a.ptx", 2, "--json counts with --explain when compiling");
}

/* Two products of which one launch is slower, in a block or not. */
static const char *pair_source(bool is_must) {
    static char source[400];
    snprintf(source, sizeof source,
             "dim B in 1..1024\ngraph g(x: f32[B, 2048], w: f32[2048, 2048], z: f32[B, 2048], v: "
             "f32[2048, 2048]) -> (p: f32[B, 2048], q: f32[B, 2048]) {\n"
             "  %s\n  p = sqrt(x @ w)\n  q = z @ v\n  %s\n}\n",
             is_must ? "fuse must {" : "", is_must ? "}" : "");
    return source;
}

/* The number after `before` in what was printed. */
static double number_after(const char *before) {
    const char *at = strstr(run.out, before);
    cr_assert(at, "no `%s` in\n%s", before, run.out);
    return strtod(at + strlen(before), NULL);
}

/* What is said of a change is what the changed source's ledger says of itself. */
Test(cli, the_ledger_prices_what_it_advises) {
    const char *source = pair_source(false);
    write_file("apart.g", source, strlen(source));
    source = pair_source(true);
    write_file("must.g", source, strlen(source));
    cr_assert_eq(fusec("@apart.g --explain --dim=B=1024", NULL), 0);
    double two = number_after("\n  time                               ");
    double then = number_after("all then takes "), slower = number_after("one launch takes ");
    cr_expect(strstr(run.out, " at B = 1024; slower at 1 of 4 sizes priced\n"), "%s", run.out);
    cr_expect(strstr(run.out, "to start them together, as tried: Put `p` (line 4:7) and `q` "
                              "(line 5:7) into one `fuse must` block"),
              "%s", run.out);
    cr_assert_eq(fusec("@must.g --explain --dim=B=1024", NULL), 0);
    double one = number_after("\n  time                               ");
    cr_expect(one == then && one == slower && one > two, "%g, %g, %g; %g", one, then, slower, two);
    cr_expect_eq(number_after("  `fuse must` (line 3:8): "), one);
    cr_expect_eq(number_after("in 1 launch with it, "), two);
    cr_expect(strstr(run.out, " in 2 without: it makes the graph slower here\n"), "%s", run.out);
    cr_assert_eq(fusec("@must.g --explain --dim=B=1", NULL), 0);
    cr_expect(strstr(run.out, " in 2 without\n"), "%s", run.out);
}

/* Of many rows a product may compute what the one before it makes last; of few it waits for that at
 * each step. */
Test(cli, the_ledger_says_where_a_change_loses) {
    static const char source[] =
        "dim M in 1..65536\ndim F in 64..4096 mult 64\ngraph g(x: bf16[M, 64], w: bf16[64, F], "
        "b: bf16[F], v: bf16[F, 64]) -> (y: bf16[M, 64]) {\n  h = gelu(x @ w + b)\n  y = h @ "
        "v\n}\n";
    write_file("loses.g", source, sizeof source - 1);
    cr_assert_eq(fusec("@loses.g --explain --target=sm_90a --dim=M=65536 --dim=F=256", NULL), 0);
    double then = number_after("all then takes "), now = number_after(" in 2 launches, not ");
    double loses = number_after(" in 2, but "), at = number_after(", not ");
    cr_expect(then < now && loses > at, "%s", run.out);
    cr_expect(strstr(run.out, " us, at M = 1, F = 4096: slower at "), "%s", run.out);
    cr_assert_eq(fusec("@loses.g --explain --json --target=sm_90a", NULL), 0);
    cr_expect(strstr(run.out, "\"us_now\": "), "%s", run.out);
}

Test(cli, run_reads_and_writes_arrays) {
    expect("run @good.g --device=cpu --dim=B=3 --output=y=@y.npy --seed=7", 0, "");
    expect("run @good.g --device=cpu --input=x=@y.npy", 0, "y: f32[3, 8] =");
    expect("run @good.g --device=cpu --input=x=@y.npy --no-fuse", 0, "y: f32[3, 8] =");
    expect("@good.g -o @a.o", 0, "");
    expect("run @a.o --input=x=@y.npy", 0, "y: f32[3, 8] =");
    expect("@good.g -o @a.so", 0, "");
    expect("run @a.so --input=x=@y.npy", 0, "y: f32[3, 8] =");
    expect("run @a.o --no-fuse", 2, "compiled already");
    expect("run @good.g --device=cpu --input=x=@y.npy --dim=B=4", 1, "[dim-conflict]");
}

Test(cli, two_outputs_do_not_share_a_file) {
    static const char two[] = "graph g(x: f32[8]) -> (y: f32[8], z: f32[8]) {\n"
                              "  y = relu(x)\n  z = -x\n}\n";
    write_file("two.g", two, strlen(two));
    expect("run @two.g --device=cpu --output=y=@a.npy --output=z=@a.npy", 2,
           "outputs y and z would both be ");
    expect("run @two.g --device=cpu --output=y=@a.npy --output=z=@/a.npy", 2, "would both be");
    cr_expect(n_files() == 2);
    expect("run @two.g --device=cpu --output=y=@a.npy --output=z=@b.npy", 0, "");
    expect("run @two.g --device=cpu --output=y=@b.npy --output=z=@/a.npy", 0, "");
    cr_assert(symlink("a.npy", path_of("c.npy")) == 0);
    expect("run @two.g --device=cpu --output=y=@a.npy --output=z=@c.npy", 2, "would both be");
}

/* Every command reads the files that a source includes, from the folder of the source. */
Test(cli, included_files_are_read) {
    static const char parts[] = "dim D = 8\ndef twice(x) = x + x\n";
    static const char whole[] = "include \"parts.g\"\ngraph g(x: f32[D]) -> (y: f32[D]) {\n"
                                "  y = twice(x)\n}\n";
    write_file("whole.g", whole, strlen(whole));
    expect("@whole.g --emit=graph -o -", 1, "parts.g [bad-include]");
    write_file("parts.g", parts, strlen(parts));
    expect("@whole.g -o @whole.ptx --report=@whole.html", 0, "");
    expect("run @whole.g --device=cpu", 0, "");
    expect("bench @whole.g --device=cpu --runs=1", 0, "");
    expect("verify @whole.g --device=cpu", 0, "comparisons agree");
}

Test(cli, warnings_are_told_once) {
    static const char idle[] = "graph g(x: f32[8]) -> (y: f32[8]) {\n  z = -x\n  y = x\n}\n";
    write_file("idle.g", idle, strlen(idle));
    expect("verify @idle.g --device=cpu", 0, ": 4 comparisons agree");
    const char *first = strstr(run.err, "[unused-value]");
    cr_expect(first && !strstr(first + 1, "[unused-value]"), "%s", run.err);
}

/* Params w: f32[rows, 4] and c: f32[4], all zero. */
static void write_weights(const char *name, int rows) {
    char file[4096] = {0};
    int n = rows * 16;
    int n_header = snprintf(file + 8, 512,
                            "{\"w\":{\"dtype\":\"F32\",\"shape\":[%d,4],\"data_offsets\":[0,%d]},"
                            "\"c\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[%d,%d]}}",
                            rows, n, n, n + 16);
    file[8 + n_header] = 0;
    file[0] = (char)n_header;
    cr_assert(n_header < 128 && 8 + n_header + n + 16 < 4096);
    write_file(name, file, (size_t)(8 + n_header + n + 16));
}

static const char symbolic[] =
    "weights \"w.safetensors\"\ndim B in 1..64\ndim N in 1..1000 mult 5\n"
    "graph g(x: f32[B, N]) -> (y: f32[B, 4]) {\n  param w: f32[N, 4] = \"w\"\n"
    "  param c: f32[4] = \"c\"\n  y = x @ w + c\n}\n";

Test(cli, weights_are_found_where_the_option_says) {
    write_file("s.g", symbolic, strlen(symbolic));
    expect("run @s.g --device=cpu", 3, "/w.safetensors: No such file");
    cr_expect(strstr(run.err, "s.g calls it `w.safetensors`, relative to its own folder; "
                              "--weights=FILE"),
              "%s", run.err);
    cr_assert(mkdir(path_of("other"), 0777) == 0);
    write_weights("other/w.safetensors", 10);
    static const char *const commands[] = {"run", "verify", "bench --runs=20"};
    static const char *const places[] = {"@other", "@other/", "@other/w.safetensors"};
    char line[160];
    for (int i = 0; i < 9; i++) {
        snprintf(line, sizeof line, "%s @s.g --device=cpu --dim=B=2 --weights=%s", commands[i / 3],
                 places[i % 3]);
        cr_expect_eq(fusec(line, NULL), 0, "%s: %s", line, run.err);
        cr_expect(!strstr(run.err, "random;") && !strstr(run.err, "params are random"), "%s",
                  run.err);
    }
    expect("verify @s.g --device=cpu --weights=@none", 3, "cannot read weights file");
    static const char unnamed[] =
        "graph g(x: f32[4]) -> (y: f32[4]) {\n  param w: f32[4] = \"w\"\n  y = x + w\n}\n";
    write_file("u.g", unnamed, strlen(unnamed));
    expect("run @u.g --device=cpu --weights=@none", 3, "cannot read weights file");
    cr_expect(strstr(run.err, "/u.g names no weights file; --weights=FILE says"), "%s", run.err);
    expect("run @good.g --device=cpu --weights=@other", 1, "good.g names no weights file");
    expect("run @s.g --device=cpu --weights=", 2, "--weights wants a file or a folder");
    expect("@s.g --weights=a/ -o @s.o", 2, "--weights wants a file's name");
}

Test(cli, an_artifact_has_the_name_that_the_option_gives) {
    write_file("s.g", symbolic, strlen(symbolic));
    expect("@s.g --weights=other/v.safetensors -o @s.o", 0, "");
    expect("inspect @s.o", 0, "weights other/v.safetensors\n");
    expect("run @s.o", 3, "/other/v.safetensors: No such file");
    cr_assert(mkdir(path_of("other"), 0777) == 0);
    write_weights("other/v.safetensors", 10);
    expect("run @s.o --dim=B=3", 0, "y: f32[3, 4] =");
}

Test(cli, params_fix_dims_from_their_files) {
    write_file("s.g", symbolic, strlen(symbolic));
    write_weights("w.safetensors", 10);
    expect("run @s.g --device=cpu", 0, "y: f32[32, 4] =");
    cr_expect(!strstr(run.err, "dim N"), "%s", run.err);
    expect("verify @s.g --device=cpu", 0, ": 12 comparisons agree");
    expect("verify @s.g --device=cpu --dim=B=2", 0, ": 4 comparisons agree");
    expect("bench @s.g --device=cpu --runs=20", 0, "N = 10\n");
    expect("run @s.g --device=cpu --dim=N=15", 1,
           "dim N is 10 by param w axis 0 but 15 by the caller [dim-conflict]");
    write_weights("w.safetensors", 12);
    expect("run @s.g --device=cpu", 1, "not a multiple of 5 [dim-multiple]");
    write_weights("w.safetensors", 0);
    expect("run @s.g --device=cpu", 1, "outside its range 5 to 1000 [dim-range]");
}

Test(cli, params_fix_dims_from_arrays) {
    static const char copy[] = "dim N in 1..64\ngraph h(x: f32[N, 4]) -> (y: f32[N, 4]) {\n"
                               "  y = x\n}\n";
    write_file("s.g", symbolic, strlen(symbolic));
    write_file("h.g", copy, strlen(copy));
    write_weights("w.safetensors", 10);
    expect("run @h.g --device=cpu --dim=N=15 --output=y=@w.npy", 0, "");
    expect("run @h.g --device=cpu --dim=N=12 --output=y=@bad.npy", 0, "");
    expect("bench @s.g --device=cpu --runs=20 --input=w=@w.npy", 0, "N = 15\n");
    expect("run @s.g --device=cpu --input=w=@bad.npy", 1,
           "param w axis 0, which is not a multiple");
    expect("run @s.g --device=cpu --input=w=@w.npy --dim=N=10", 1,
           "dim N is 15 by param w axis 0 but 10 by the caller [dim-conflict]");
    cr_assert(unlink(path_of("w.safetensors")) == 0);
    expect("verify @s.g --device=cpu", 0, "comparisons agree");
    expect("bench @s.g --device=cpu --runs=20 --input=w=@w.npy", 0, "N = 15\n");
}

Test(cli, inputs_solve_dims) {
    static const char wide[] = "dim T in 1..16\ngraph g(x: f32[4 * T + 1]) -> (y: f32[T]) {\n"
                               "  y = x[:T]\n}\n";
    static const char copy[] = "dim N in 1..64\ngraph h(x: f32[N]) -> (y: f32[N]) {\n  y = x\n}\n";
    write_file("s.g", wide, strlen(wide));
    write_file("h.g", copy, strlen(copy));
    expect("run @h.g --device=cpu --dim=N=13 --output=y=@x.npy", 0, "");
    expect("run @s.g --device=cpu --input=x=@x.npy", 0, "y: f32[3] =");
    cr_expect(!strstr(run.err, "dim T"), "%s", run.err);
    expect("run @h.g --device=cpu --dim=N=12 --output=y=@x.npy", 0, "");
    expect("run @s.g --device=cpu --input=x=@x.npy", 1, "input x axis 0 is 12");
}

static void expect_page(const char *name, const char *what) {
    static char page[MAX_TEXT];
    read_file(path_of(name), page);
    cr_expect(strstr(page, "<!DOCTYPE html>") && strstr(page, "</html>"), "%s is no page", name);
    cr_expect(strstr(page, what), "no `%s` in %s", what, name);
}

Test(cli, reports_are_written_beside_what_is_made) {
    expect("@good.g --report=@r.html", 0, "");
    expect_page("r.html", "Workspace over time");
    expect("@good.g --report=@r.html --dim=B=7 --card=h200 -o @a.ptx", 0, "");
    expect_page("r.html", "B = 7");
    cr_expect(access(path_of("a.ptx"), F_OK) == 0);
    expect("@good.g --report=@r.html --emit=graph", 0, "relu");
    expect("@good.g --report=-", 0, "</html>");
    expect("@good.g --report=- --emit=graph", 2, "cannot both go to stdout");
    expect("@good.g --report=- --explain", 2, "cannot both go to stdout");
    expect("@good.g --report=@good.g", 2, "the report would replace the source");
    expect("@good.g --report=@a.ptx -o @a.ptx", 2, "are one file");
    expect("@good.g --report=@none/r.html", 3, "cannot write");
    expect("@good.g --report=@r.html --report=@q.html", 2, "--report is given twice");
    expect("@good.g --report=@r.html --json", 2, "--json counts with --explain");
    write_file("bad.g", "graph", 5);
    expect("@bad.g --report=@never.html", 1, "error");
    cr_expect(access(path_of("never.html"), F_OK) != 0);
    expect("bench @good.g --device=cpu --runs=10 --dim=B=9 --report=@b.html", 0, "median");
    expect_page("b.html", "<h3>Roofline</h3>");
    expect_page("b.html", "B = 9");
    expect("bench @good.g --device=cpu --runs=10 --report=-", 2, "bench itself goes to stdout");
    expect("bench @a.ptx --report=@b.html", 1, "compiled already");
}

Test(cli, pictures_are_what_graphviz_reads) {
    expect("@good.g --emit=dot", 0, "digraph plan {");
    expect("@good.g -o @g.dot", 0, "");
    if (system("command -v dot >/dev/null") != 0) {
        puts("SKIPPED no Graphviz here");
        return;
    }
    char line[512];
    snprintf(line, sizeof line, "dot -Tsvg %s | grep -q g_0_y_l3", path_of("g.dot"));
    cr_expect(system(line) == 0, "dot does not take the picture");
}

Test(cli, verify_bench_and_inspect_work) {
    expect("verify @good.g --device=cpu", 0, ": 12 comparisons agree");
    expect("verify @good.g --device=cpu --data=ramps,special --dim=B=5", 0,
           ": 2 comparisons agree");
    static const char two[] = "graph g(c: f32[4], at: i32) -> (n: f32[4], m: f32[4]) {\n"
                              "  n = dynamic_update_slice(c, c[:1], [at])\n"
                              "  m = dynamic_update_slice(c, exp(c[:1]), [at])\n}\n";
    write_file("two.g", two, sizeof two - 1);
    expect("verify @two.g --device=cpu", 0, ": 4 comparisons agree");
    expect("bench @good.g --device=cpu --runs=20", 0, "median");
    expect("bench @good.g --device=cpu --runs=20", 0, "runs     20 in ");
    expect("bench @good.g --device=cpu --runs=20", 0, "g_0_y_l3 (line 3)");
    cr_expect(!strstr(run.out, "enqueue") && !strstr(run.out, "registers"), "no GPU here");
    expect("bench @good.g --device=cpu --runs=20 --json", 0, "\"median_us\"");
    static const char *const keys[] = {
        "min_us", "mean_us", "max_us", "p90_us", "p95_us", "p99_us", "coefficient_of_variance",
        "steps",  "warnings"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        cr_expect(strstr(run.out, keys[i]), "no %s in\n%s", keys[i], run.out);
    expect("@good.g -o @a.ptx", 0, "");
    /* What is expected is the source's to tell, and limits are those of cards that are known. */
    static const char products[] = "graph g(x: f32[64, 48], w: f32[48, 32]) -> (y: f32[64, 32]) {\n"
                                   "  y = relu(x @ w)\n}\n";
    write_file("products.g", products, sizeof products - 1);
    expect("bench @products.g --device=cpu --runs=20", 0, "matmuls  196608 operations, ");
    cr_expect(strstr(run.out, "\nexpected ") && !strstr(run.out, "of the limit"), "%s", run.out);
    expect("bench @products.g --device=cpu --runs=20 --card=cpu", 0, "% of the limit");
    expect("bench @products.g --device=cpu --runs=20 --card=cpu --json", 0, "\"limit_us\": ");
    cr_expect(strstr(run.out, "\"flops\": 196608.0"), "%s", run.out);
    expect("@products.g --target=cpu-native -o @products.o", 0, "");
    expect("bench @products.o --runs=20", 0, "median");
    cr_expect(!strstr(run.out, "\nproducts ") && !strstr(run.out, "\nexpected "), "%s", run.out);
    expect("bench @products.g --device=cpu --runs=20 --card=h200", 2, "runs nothing that is made");
    expect("inspect @a.ptx", 0, "input x: f32[B, 8]");
    cr_expect(strstr(run.out, "graph g: 1 launch, "), "%s", run.out);
    cr_expect(strstr(run.out, "dim B in 1..64"), "%s", run.out);
    expect("verify @a.ptx", 1, "a.ptx is compiled already; this wants the source");
    expect("@a.ptx -o @b.ptx", 1, "is compiled already");
}

/* What was printed and did not arrive is an error like a file that cannot be written. */
Test(cli, lost_output_exits_3) {
    static const char *const commands[] = {
        "build/fusec dsl/examples/pointwise.g --explain --emit=fused -o /dev/null",
        "build/fusec --help", "build/fusec run dsl/examples/pointwise.g --device=cpu"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char command[200];
        snprintf(command, sizeof command, "%s > /dev/full 2> /dev/null", commands[i]);
        int status = system(command);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 3, "%s: %d", commands[i], status);
    }
}

/* Arithmetic changes where that is asked for, the same with every option, and the ledger says of
 * each softmax whether it did. The result can be read back. */
Test(cli, rewrites_are_named_and_asked_for) {
    static const char source[] =
        "graph a(q: bf16[2, 64, 64], k: bf16[2, 64, 64], v: bf16[2, 64, 64], x: f32[64]) "
        "-> (o: bf16[2, 64, 64], p: bf16[2, 64, 64], y: f32[64]) {\n"
        "  o = softmax(q @ transpose(k, perm=[0, 2, 1])) @ v\n"
        "  p = (softmax(q @ k) + 1) @ v\n  y = softmax(x)\n}\n";
    static const char *const left[] = {"`matmul` that makes `p` (line 3:7): left, `add` stands "
                                       "between the softmax and its product",
                                       "`sum` (line 4:7): left, no product contracts its axis"};
    static const char *const plain[] = {"", "--no-rewrite", "--no-rewrite --no-fuse"};
    static const char *const asking[] = {"--rewrite", "--rewrite --no-fuse"};
    static char first[sizeof run.out];
    char command[120];
    write_file("a.g", source, sizeof source - 1);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        snprintf(command, sizeof command, "@a.g --emit=graph %s", plain[i]);
        cr_assert_eq(fusec(command, NULL), 0, "%s", run.err);
        cr_expect(!strstr(run.out, "softmax_matmul"), "%s: %s", plain[i], run.out);
    }
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++) {
        snprintf(command, sizeof command, "@a.g --emit=graph %s", asking[i]);
        cr_assert_eq(fusec(command, NULL), 0, "%s", run.err);
        cr_expect(strstr(run.out, "  o = softmax_matmul("), "%s: %s", asking[i], run.out);
        write_file("b.g", run.out, strlen(run.out));
    }
    strcpy(first, run.out);
    cr_assert_eq(fusec("@b.g --emit=graph", NULL), 0, "%s", run.err);
    cr_expect_str_eq(run.out, first);
    cr_assert_eq(fusec("@a.g --explain --target=cpu", NULL), 0, "%s", run.err);
    cr_expect(!strstr(run.out, "softmaxes"), "%s", run.out);
    cr_assert_eq(fusec("@a.g --rewrite --explain --target=cpu", NULL), 0, "%s", run.err);
    cr_expect(strstr(run.out, "`softmax_matmul` that makes `o` (line 2:7): rewritten, within 0.00"),
              "%s", run.out);
    for (size_t i = 0; i < 2; i++) cr_expect(strstr(run.out, left[i]), "%s", run.out);
    cr_assert_eq(fusec("@a.g --rewrite --explain --json --target=cpu", NULL), 0, "%s", run.err);
    json_t *ledger = json_loads(run.out, 0, NULL);
    json_t *softmaxes =
        json_object_get(json_array_get(json_object_get(ledger, "graphs"), 0), "softmaxes");
    cr_assert_eq(json_array_size(softmaxes), 3u);
    json_t *rewritten = json_array_get(softmaxes, 0);
    cr_expect(json_is_null(json_object_get(rewritten, "left")));
    double bound = json_number_value(json_object_get(rewritten, "bound"));
    cr_expect(bound > 0x1p-9 && bound < 0x1p-7, "%g", bound);
    json_decref(ledger);
}

/* The last of both spellings counts, and an artifact says what it was made with. */
Test(cli, rewrites_are_switched_and_recorded) {
    static const struct {
        const char *options;
        bool is_on;
    } cases[] = {{"", false},
                 {"--rewrite", true},
                 {"--no-rewrite", false},
                 {"--rewrite --no-rewrite", false},
                 {"--no-rewrite --rewrite", true}};
    static const char source[] =
        "graph a(q: bf16[2, 64, 64], k: bf16[2, 64, 64], v: bf16[2, 64, 64]) "
        "-> (o: bf16[2, 64, 64]) {\n  o = softmax(q @ transpose(k, perm=[0, 2, 1])) @ v\n}\n";
    write_file("a.g", source, sizeof source - 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[120];
        snprintf(command, sizeof command, "@a.g --target=sm_80 -o @a.ptx %s", cases[i].options);
        cr_assert_eq(fusec(command, NULL), 0, "%s", run.err);
        cr_assert_eq(fusec("inspect @a.ptx", NULL), 0, "%s", run.err);
        cr_expect(strstr(run.out, cases[i].is_on ? "rewrites of arithmetic on\n"
                                                 : "rewrites of arithmetic off\n"),
                  "%s: %s", cases[i].options, run.out);
    }
    cr_assert_eq(fusec("run @a.g --rewrite --device=cpu", NULL), 0, "%s", run.err);
    cr_assert_eq(fusec("bench @a.g --rewrite --device=cpu --runs=2", NULL), 0, "%s", run.err);
    cr_assert_eq(fusec("verify @a.g --rewrite --target=cpu --data=random", NULL), 0, "%s", run.err);
    cr_expect(strstr(run.out,
                     "  rewritten: 1 outputs, 8192 elements within what the bounds of both "
                     "forms add up to, of 0 any number would be\n"),
              "%s", run.out);
    cr_assert_eq(fusec("verify @a.g --target=cpu --data=random", NULL), 0, "%s", run.err);
    cr_expect(!strstr(run.out, "rewritten"), "%s", run.out);
    cr_expect_eq(fusec("run @a.ptx --rewrite", NULL), 2, "%s", run.out);
    cr_expect(strstr(run.err, "compiled already: --rewrite means nothing"), "%s", run.err);
}

/* Named in what is made, and rewrites are on unless they are switched off. */
Test(cli, fast_numerics_are_recorded) {
    static const struct {
        const char *options;
        bool is_fast, rewrites;
    } cases[] = {{"", false, false},
                 {"--numerics=strict", false, false},
                 {"--numerics=fast", true, true},
                 {"--numerics=fast --no-rewrite", true, false}};
    static const char source[] =
        "graph a(q: bf16[2, 64, 64], k: bf16[2, 64, 64], v: bf16[2, 64, 64]) "
        "-> (o: bf16[2, 64, 64]) {\n  o = softmax(q @ transpose(k, perm=[0, 2, 1])) @ v\n}\n";
    write_file("a.g", source, sizeof source - 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[120];
        snprintf(command, sizeof command, "@a.g --target=sm_80 -o @a.ptx %s", cases[i].options);
        cr_assert_eq(fusec(command, NULL), 0, "%s", run.err);
        cr_assert_eq(fusec("inspect @a.ptx", NULL), 0, "%s", run.err);
        cr_expect(strstr(run.out, cases[i].is_fast ? "numerics fast\n" : "numerics strict\n"),
                  "%s: %s", cases[i].options, run.out);
        cr_expect_eq(strstr(run.out, "rewrites of arithmetic on\n") != NULL, cases[i].rewrites,
                     "%s: %s", cases[i].options, run.out);
    }
    cr_assert_eq(fusec("bench @a.g --numerics=fast --device=cpu --runs=2", NULL), 0, "%s", run.err);
    cr_expect(strstr(run.out, "fast numerics"), "%s", run.out);
    cr_assert_eq(fusec("verify @a.g --numerics=fast --target=cpu --data=random", NULL), 0, "%s",
                 run.err);
    cr_expect(strstr(run.out, "  fast: 1 outputs of fused programs, 8192 elements within"), "%s",
              run.out);
    cr_expect_eq(fusec("run @a.ptx --numerics=fast", NULL), 2, "%s", run.out);
    cr_expect(strstr(run.err, "compiled already: --numerics means nothing"), "%s", run.err);
}

/* The ledger tries to make an input of what a kernel of the source prepares. */
Test(cli, what_fixed_kernels_prepare_is_explained) {
    static const char source[] = "weights \"w.safetensors\"\n"
                                 "graph g(x: f32[8]) -> (y: f32[8]) {\n  param p: f32[8] = \"p\"\n"
                                 "  kernel a { v = exp(p) }\n  kernel b { y = x * v }\n}\n";
    write_file("a.g", source, sizeof source - 1);
    cr_assert_eq(fusec("@a.g --explain --target=cpu", NULL), 0, "%s", run.err);
    cr_expect(strstr(run.out, "prepared"), "%s", run.out);
}
