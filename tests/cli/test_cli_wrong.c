/* The program from outside: what it says of wrong use, wrong input and too little memory. */
#define _XOPEN_SOURCE 700
#include "lib/command.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(cli_wrong, .init = command_set_up, .fini = command_tear_down, .timeout = 60);

Test(cli_wrong, wrong_use_is_told_and_exits_2) {
    expect("", 2, "no input file");
    expect("@good.g", 2, "nothing to make");
    expect("@good.g @good.g -o @a.ptx", 2, "more than one input file");
    expect("@good.g -o @a.ptx -o @b.ptx", 2, "--out is given twice");
    expect("@good.g -o @a.xyz", 2, "tells no kind of output");
    expect("@good.g -o @a", 2, "tells no kind of output");
    expect("@good.g -o", 2, "lacks its argument");
    expect("@good.g --emit=shced", 2, "did you mean `sched`?");
    expect("@good.g --emit=ptx --target=cpu", 2, "ptx cannot be made for target cpu");
    expect("@good.g -o @a.o --target=sm_80", 2, "obj cannot be made for target sm_80");
    expect("@good.g --explane", 2, "did you mean `--explain`?");
    expect("@good.g --explain=yes", 2, "--explain takes no argument");
    expect("@good.g -x", 2, "there is no option `-x`");
    expect("@good.g -o @a.ptx -O3", 2, "there is no option `-O`");
    expect("-O3 @good.g -o @a.ptx", 2, "there is no option `-O`");
    expect("@good.g -vO3 -o @a.ptx", 2, "there is no option `-O`");
    expect("@good.g -vo", 2, "`-o` lacks its argument");
    expect("@good.g --emit=o", 2, "did you mean `obj`?");
    expect("@good.g --emit=ll", 2, "did you mean `llvm`?");
    expect("@good.g --print-after=fusee", 2, "did you mean `fuse`?");
    expect("verify @good.g --data=ramp", 2, "did you mean `ramps`?");
    expect("verify @good.g --data=ramps,qqqqqq", 2, "there is no kind of data `qqqqqq`");
    expect("verify @good.g --data=", 2, "--data wants names");
    expect("run @good.g --data=ramps", 2, "--data");
    expect("@good.g --numerics=quick --emit=ptx", 2, "wants strict or fast, not `quick`");
    expect("@good.g --color=red --emit=ptx", 2, "auto, always or never");
    expect("run @good.g --emit=ptx", 2, "no option of fusec run");
    expect("run @good.g --dim=B", 2, "wants B=32");
    expect("run @good.g --input=x=good.npy", 2, "wants x=@FILE");
    expect("run @good.g --seed=-1", 2, "--seed wants a number");
    expect("bench @good.g --runs=0", 2, "--runs wants a number from 1 to 1000000, not `0`");
    cr_expect(n_files() == 1, "something is left behind");
}

Test(cli_wrong, unknown_targets_exit_4_with_the_nearest_name) {
    expect("@good.g -o @a.ptx --target=sm80", 4, "did you mean `sm_80`?");
    expect("@good.g -o @a.ptx --target=quantum", 4, "--list-targets lists them");
    cr_expect(n_files() == 1, "something is left behind");
}

Test(cli_wrong, files_that_cannot_be_read_or_written_exit_3) {
    expect("@missing.g -o @a.ptx", 3, "No such file or directory");
    expect("@good.g -o @none/a.ptx", 3, "cannot write");
    expect("/ -o @a.ptx", 3, "cannot read /");
    cr_assert(mkdir(path_of("folder.ptx"), 0700) == 0);
    expect("@good.g -o @folder.ptx", 3, "cannot write");
    cr_expect(rmdir(path_of("folder.ptx")) == 0, "something is left in the folder");
    expect("run @good.g --device=cpu --input=x=@missing.npy", 3, "No such file");
    cr_expect(n_files() == 1, "something is left behind");
}

Test(cli_wrong, wrong_input_exits_1_and_writes_nothing) {
    write_file("empty.g", "", 0);
    write_file("junk.g", "\0\xff\x80\x01graph\0", 10);
    write_file("bad.g", "graph g(x: f32[8]) -> (y: f32[9]) {\n  y = reluu(x)\n}\n", 53);
    expect("@empty.g -o @a.ptx", 1, "[no-graph]");
    expect("@junk.g -o @a.ptx", 1, "junk.g is no text: byte 0 is 0");
    expect("verify @junk.g", 1, "is no text");
    expect("@bad.g -o @a.ptx", 1, "[unknown-op]");
    cr_expect(strstr(run.err, "bad.g:2:7: error:"), "%s", run.err);
    cr_expect(strstr(run.err, "relu"), "%s", run.err);
    expect("run @bad.g --device=cpu", 1, "[unknown-op]");
    expect("verify @bad.g --device=cpu", 1, "[unknown-op]");
    expect("inspect @bad.g", 1, "neither an ELF file nor text");
    expect("run @good.g --device=cpu --dim=B=65", 1, "dim B cannot be 65: it lies in 1..64\n");
    expect("run @good.g --device=cpu --graph=h", 1, "there is no graph `h`");
    expect("run @good.g --device=cpu --input=x=@bad.g", 1, "it is no .npy file");
    cr_expect(n_files() == 4, "something is left behind");
}

/* What the user's dims ask for is no mistake of ours. */
Test(cli_wrong, tensors_without_memory_are_named) {
    static const char large[] = "dim N in 1..2000000000\n"
                                "graph g(x: f32[N, 64]) -> (y: f32[N, 64]) {\n  y = x + x\n}\n";
    write_file("large.g", large, sizeof large - 1);
    const char *message = "there is no memory for x of 256000000000 bytes\n  help: `ulimit -v`";
    expect("verify @large.g --device=cpu --dim=N=1000000000", 6, message);
    expect("bench @large.g --device=cpu --dim=N=1000000000", 6, message);
}

/* Whether so much memory has room for the program itself. */
static bool has_room_for_program(int kib) {
    char command[128];
    snprintf(command, sizeof command, "ulimit -v %d; build/fusec --version >/dev/null 2>&1", kib);
    return system(command) == 0;
}

/* In the compiler's own passes, which are at the end of their arenas, and in LLVM, which aborts. */
Test(cli_wrong, no_memory_is_told_and_exits_6) {
    char command[512], text[MAX_TEXT];
    int n_told = 0, n_in_llvm = 0;
    for (int kib = 31000; kib < 60000; kib += 1000) {
        if (!has_room_for_program(kib)) continue;
        snprintf(command, sizeof command,
                 "ulimit -v %d; build/fusec dsl/examples/transformer.g -o %s 2>%s", kib,
                 path_of("a.o"), path_of("err"));
        int status = WEXITSTATUS(system(command));
        if (status == 0) { /* also below limits that fail: threads without room leave it to one */
            unlink(path_of("a.o"));
            unlink(path_of("err"));
            continue;
        }
        read_file(path_of("err"), text);
        cr_expect_eq(status, 6, "%d KiB: exit code %d\n%s", kib, status, text);
        cr_expect(strstr(text, "fusec: error: out of memory") && strstr(text, "help: `ulimit -v`"),
                  "%s", text);
        n_told++;
        n_in_llvm += strstr(text, "out of memory in LLVM") != NULL;
        unlink(path_of("err"));
        cr_expect_eq(n_files(), 1, "something is left behind");
    }
    cr_expect(n_told > n_in_llvm && n_in_llvm > 0, "%d and %d", n_told, n_in_llvm);
}

/* As `ulimit -s` sets it. */
Test(cli_wrong, a_limit_of_the_stack_is_no_matter) {
    char command[256];
    for (int kib = 64; kib <= 1024; kib *= 4) {
        snprintf(command, sizeof command,
                 "ulimit -S -s %d && build/fusec run %s --device=cpu >%s/out 2>&1", kib,
                 path_of("good.g"), run.folder);
        cr_expect_eq(system(command), 0, "with %d KiB", kib);
    }
}

/* The allocation that fails is number FAILING of the process, before main or after. */
static const char failing_malloc[] =
    "#include <stdlib.h>\n"
    "void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, "
    "size_t);\n"
    "static long n, failing;\n"
    "static int fails(void) {\n"
    "    const char *number = failing ? 0 : getenv(\"FAILING\");\n"
    "    failing = number ? atol(number) : failing ? failing : -1;\n"
    "    return ++n == failing;\n"
    "}\n"
    "void *malloc(size_t size) { return fails() ? 0 : __libc_malloc(size); }\n"
    "void *calloc(size_t m, size_t size) { return fails() ? 0 : __libc_calloc(m, size); }\n"
    "void *realloc(void *p, size_t size) { return fails() ? 0 : __libc_realloc(p, size); }\n";

Test(cli_wrong, memory_may_be_out_before_main, .timeout = 120) {
    enum { N_ALLOCATIONS = 100, STEP = 3 };
    char command[256], number[16];
    int n_failed = 0;
    write_file("f.c", failing_malloc, sizeof failing_malloc - 1);
    snprintf(command, sizeof command, "cc -O1 -shared -fPIC -o %s/f.so %s/f.c", run.folder,
             run.folder);
    cr_assert_eq(system(command), 0);
    setenv("LD_PRELOAD", path_of("f.so"), 1);
    for (int i = 1; i <= N_ALLOCATIONS; i += STEP) {
        snprintf(number, sizeof number, "%d", i);
        setenv("FAILING", number, 1);
        int status = fusec("--version", NULL);
        cr_expect(status == 0 || status == 6, "allocation %d: exit code %d: %s", i, status,
                  run.err);
        cr_expect(status == 0 || strstr(run.err, "error: out of memory"), "%s", run.err);
        n_failed += status == 6;
    }
    unsetenv("LD_PRELOAD");
    cr_expect_gt(n_failed, 10, "%d allocations failed", n_failed);
}

Test(cli_wrong, words_and_names_that_are_not_there_are_told_with_those_that_are) {
    expect("frob", 2, "there is no command or file `frob`; fusec --help lists them");
    expect("verifi @good.g", 2, "did you mean `verify`?");
    expect("@goood.g -o @a.o", 3, "/good.g?\n");
    expect("run @good.g --device=cpu --dim=C=6", 1, "there is no dim `C` but B\n");
    expect("run @good.g --device=cpu --input=q=@q.npy", 1, "there is no input or param `q` but x");
    expect("run @good.g --device=cpu --output=q=@q.npy", 1, "there is no output `q` but y\n");
    write_file("cut.o", "\177ELF and no more", 16);
    expect("run @cut.o", 1, "/cut.o: ");
    expect("inspect @cut.o", 1, "/cut.o: ");
}

/* As NumPy writes it, `n_bytes` zeros long. */
static void write_npy(const char *name, const char *descr, const char *shape, size_t n_bytes) {
    char file[1024] = "\x93NUMPY\x01\0\x76";
    int n = snprintf(file + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                     descr, shape);
    memset(file + 10 + n, ' ', (size_t)(117 - n));
    file[9] = 0;
    file[127] = '\n';
    write_file(name, file, 128 + n_bytes);
}

Test(cli_wrong, arrays_that_do_not_fit_are_told_with_what_would) {
    static const struct {
        const char *descr, *shape;
        size_t n_bytes;
        const char *message;
    } cases[] = {
        {"<f8", "(1, 8)", 64, "a.npy holds f64 of rank 2\n  help: Save an array of f32[B, 8];"},
        {"<f4", "(8,)", 32, "a.npy holds f32 of rank 1\n  help: Save an array of f32[B, 8];"},
        {"<f4", "(1, 7)", 28, "input x axis 1 is 7, but the graph has 8 [shape]"},
        {"<f4", "(0, 8)", 0, "dim B cannot be 0, as axis 0 of x's file: it lies in 1..64\n"},
        {"<f4", "(2, 8)", 32, "a.npy: its shape needs 64 bytes of elements, but it has 32"},
        {"<f4", "(9999999999999, 9999999999999)", 32, "a.npy: its shape is too large"},
        {"<i8", "(1, 8)", 64, "a.npy holds i64 of rank 2\n  help: Save an array of f32[B, 8];"},
        {"<u8", "(1, 8)", 64, "a.npy: dtype `<u8` is none of"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_npy("a.npy", cases[i].descr, cases[i].shape, cases[i].n_bytes);
        expect("run @good.g --device=cpu --input=x=@a.npy", 1, cases[i].message);
    }
    write_file("a.npy", "", 0);
    expect("run @good.g --device=cpu --input=x=@a.npy", 1, "a.npy: it is no .npy file");
}

/* What is never at its end is given up, and what nobody writes to is not waited for. */
Test(cli_wrong, endless_and_silent_inputs_are_refused) {
    cr_assert(mkfifo(path_of("pipe"), 0600) == 0);
    static const char *const commands[] = {"inspect @pipe", "@pipe --emit=graph", "run @pipe",
                                           "verify @pipe", "run @good.g --input=x=@pipe"};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        expect(commands[i], 3, "is a pipe that nothing is written to");
    expect("/dev/zero --emit=graph", 1, "/dev/zero has more than 64 MiB, the most that a source");
    expect("run /dev/zero", 1, "the most that a source may have");
    int ends[2];
    cr_assert(pipe(ends) == 0 && write(ends[1], good, strlen(good)) > 0 && close(ends[1]) == 0);
    char line[64];
    snprintf(line, sizeof line, "/dev/fd/%d --emit=graph", ends[0]);
    expect(line, 0, "relu");
}

/* An array's file is read as far as its header says: neither its size nor the size that it claims
 * costs memory. */
Test(cli_wrong, endless_and_huge_arrays_are_refused) {
    static const char source[] = "graph g(x: f32[8]) -> (y: f32[8]) { y = -x }\n";
    static const char *const lines[] = {"run @g.g --device=cpu --input=x=@../../dev/zero",
                                        "run @g.g --device=cpu --input=x=@long.npy",
                                        "run @g.g --device=cpu --input=x=@claims.npy"};
    static const char *const words[] = {
        "/dev/zero: it is no .npy file",
        "long.npy: its shape needs 32 bytes of elements, but it has at least 33",
        "claims.npy has 17179869184 bytes of elements by its shape; an array may have less than "
        "2048 MiB"};
    struct rlimit before, limit;
    write_file("g.g", source, strlen(source));
    write_npy("long.npy", "<f4", "(8,)", 32);
    cr_assert_eq(truncate(path_of("long.npy"), (off_t)3 << 30), 0); /* a hole */
    write_npy("claims.npy", "<f4", "(4294967296,)", 32);
    cr_assert_eq(getrlimit(RLIMIT_AS, &before), 0);
    limit = (struct rlimit){.rlim_cur = 1 << 30, .rlim_max = before.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    for (int i = 0; i < 3; i++) expect(lines[i], i < 2 ? 1 : 3, words[i]);
    cr_assert_eq(setrlimit(RLIMIT_AS, &before), 0);
}

/* A run of made-up params says nothing about a model. To time or to compare, they will do. */
Test(cli_wrong, run_wants_the_values_of_params) {
    static const char source[] = "graph g(x: f32[8]) -> (y: f32[8]) {\n"
                                 "  param w: f32[8] = \"w\"\n  y = x * w\n}\n";
    write_file("p.g", source, strlen(source));
    write_npy("w.npy", "<f4", "(8,)", 32);
    expect("run @p.g --device=cpu", 1, "p.g names no weights file");
    cr_expect(strstr(run.err, "param w has no values") &&
                  strstr(run.err, "--input=w=@FILE.npy gives the values"),
              "%s", run.err);
    expect("@p.g -o @p.o --target=cpu", 0, "");
    expect("run @p.o", 1, "param w has no values, and");
    expect("run @p.g --device=cpu --input=w=@w.npy", 0, "y: f32[8] =");
    static const char *const others[] = {"verify @p.g --device=cpu --seed=7",
                                         "bench @p.g --device=cpu --runs=20 --seed=7"};
    for (int i = 0; i < 2; i++) {
        expect(others[i], 0, "");
        const char *told = strstr(run.err, "fusec: params are random, from --seed=7 (--weights");
        cr_expect(told && !strstr(told + 10, "params are random"), "%s", run.err);
    }
}

Test(cli_wrong, a_card_is_of_the_targets_kind) {
    expect("@good.g --explain --card=h200 --target=cpu", 2,
           "--card=h200 runs nothing that is made for target cpu\n");
    expect("@good.g --explain --card=cpu --target=sm_90a", 2, "made for target sm_90a\n");
    expect("@good.g --explain --card=gpu --target=sm_90a", 0, "priced for gpu");
    expect("@good.g --explain --dim=B=65", 1, "dim B cannot be 65: it lies in 1..64\n");
    expect("bench @good.g --device=cpu --card=h200 --report=@r.html", 2, "made for target cpu");
}

/* Before anything runs: a benchmark takes seconds. */
Test(cli_wrong, a_report_that_cannot_be_written_is_refused_at_once) {
    expect("bench @good.g --device=cpu --report=/nonexistent/x.html", 3,
           "cannot write /nonexistent/x.html: ");
    cr_expect(!*run.out, "%s", run.out);
    expect("bench @good.g --device=cpu --report=/tmp", 3, "cannot write /tmp: ");
    cr_expect_eq(n_files(), 1, "something is left behind");
}

Test(cli_wrong, a_dim_has_one_value_and_that_is_a_number) {
    expect("run @good.g --device=cpu --dim=B=3 --dim=B=4", 2, "--dim gives B twice");
    expect("@good.g --explain --dim=B=3 --dim=B=3", 2, "--dim gives B twice");
    expect("run @good.g --device=cpu --input=x=@a.npy --input=x=@b.npy", 2,
           "--input gives x twice");
    static const char *const values[] = {"\t3", "+3", "-3", "3x", "0x3", "99999999999999999999"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char line[80];
        snprintf(line, sizeof line, "run @good.g --device=cpu --dim=B=%s", values[i]);
        expect(line, 1, "dim B cannot be ");
        snprintf(line, sizeof line, "@good.g --explain --dim=B=%s", values[i]);
        expect(line, 1, "dim B cannot be ");
    }
    expect("run @good.g --device=cpu --dim=B=3", 0, "y: f32[3, 8]");
}
