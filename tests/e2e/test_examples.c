/* The examples that multiply matrices, and the programs that embed the compiler and the runtime, as
 * a reader would build and run them. Run from the root of the tree after `make`. */
#include "interp/npy.h"
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define DIGITS "dsl/examples/digits/"

/* digits.g: held-out images. */

static NpyArray read_npy(Arena *arena, const char *path) {
    NpyArray array;
    size_t n_bytes;
    const char *error = NULL, *file = text_file_read(arena, path, &n_bytes);
    cr_assert(npy_read(arena, file, n_bytes, &array, &error), "%s: %s", path, error);
    return array;
}

/* The probabilities of all held-out images by one way of compiling. */
static const uint8_t *classify(Arena *arena, CompileMode mode, const NpyArray *images,
                               size_t *n_bytes) {
    Compiled compiled;
    Rig rig;
    size_t x_bytes = 0;
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.weights_path = DIGITS "weights.safetensors";
    cr_assert(compile_source(&compiled, text_file_read(arena, "dsl/examples/digits.g", NULL),
                             target_get(TARGET_CPU), mode),
              "%s", compiled.messages);
    cr_assert(rig_open(&rig, compiled.bytes, compiled.n_bytes, "digits", &options) &&
                  rig_place(&rig, compiled.module->graphs.data[0]->dims, images->dims),
              "%s", rig.error);
    uint8_t *x = rig_contents(&rig, "x", &x_bytes);
    cr_assert_eq(x_bytes, images->n_bytes);
    memcpy(x, images->bytes, x_bytes);
    cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
    const uint8_t *p = rig_result(&rig, "p", n_bytes);
    p = arena_copy(arena, p, *n_bytes);
    rig_close(&rig);
    compile_free(&compiled);
    return p;
}

Test(examples, digits_are_read, .timeout = 60) {
    enum { N_DIGITS = 10 };
    Arena *arena = arena_new(NULL);
    size_t n_bytes, n_unfused_bytes;
    NpyArray images = read_npy(arena, DIGITS "images.npy");
    NpyArray labels = read_npy(arena, DIGITS "labels.npy");
    const uint8_t *p = classify(arena, COMPILE_FUSED, &images, &n_bytes);
    const uint8_t *unfused = classify(arena, COMPILE_UNFUSED, &images, &n_unfused_bytes);
    int64_t n = labels.dims[0], n_right = 0;
    cr_assert(labels.rank == 1 && images.dims[0] == n && n > 300);
    cr_assert(n_bytes == n_unfused_bytes && n_bytes == (size_t)n * N_DIGITS * sizeof(float));
    cr_expect_eq(memcmp(p, unfused, n_bytes), 0, "fused and unfused differ");
    for (int64_t i = 0; i < n; i++) {
        double row[N_DIGITS], sum = 0;
        int best = 0;
        for (int k = 0; k < N_DIGITS; k++) {
            row[k] = dtype_load(DT_F32, p + (size_t)(i * N_DIGITS + k) * sizeof(float));
            sum += row[k];
            if (row[k] > row[best]) best = k;
        }
        cr_expect(sum > 0.9999 && sum < 1.0001, "image %lld: the sum is %g", (long long)i, sum);
        n_right += best == (int)dtype_load(DT_I32, labels.bytes + (size_t)i * sizeof(int32_t));
    }
    cr_expect_geq(n_right * 100, n * 97, "%lld of %lld right", (long long)n_right, (long long)n);
    arena_free(arena);
}

/* mlp.g and transformer.g. */

static int32_t count_launches(const char *path, TargetId target, CompileMode mode) {
    Arena *arena = arena_new(NULL);
    Compiled compiled;
    frt_module *module = NULL;
    frt_error error = FRT_ERROR_INIT;
    FRT_INFO(frt_graph_info, graph);
    cr_assert(
        compile_source(&compiled, text_file_read(arena, path, NULL), target_get(target), mode),
        "%s", compiled.messages);
    cr_assert(!frt_module_load_memory(compiled.bytes, compiled.n_bytes, &module, &error), "%s",
              error.message);
    cr_assert(!frt_module_get_graph(module, 0, &graph));
    frt_module_free(module);
    compile_free(&compiled);
    arena_free(arena);
    return graph.n_launches;
}

/* Without the launches that prepare weights, which are no ops of the graph. */
Test(examples, mlp_is_two_kernels) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_SM_80};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const char *name = target_get(targets[i])->name;
        int32_t n_fused = count_launches("dsl/examples/mlp.g", targets[i], COMPILE_FUSED);
        int32_t n_unfused = count_launches("dsl/examples/mlp.g", targets[i], COMPILE_UNFUSED);
        cr_expect_eq(n_fused, 2, "%s: %d fused", name, (int)n_fused);
        cr_expect_eq(n_unfused, 6, "%s: %d unfused", name, (int)n_unfused);
    }
}

/* Weights small enough that what flows through a layer stays about as large as it was. */
static void fill_scaled(void *user, const Graph *graph, const GraphInput *input, Rng *rng,
                        Tensor *tensor) {
    double scale = tensor->rank == 2 ? 1.0 / 32 : 1.0 / 4;
    (void)user, (void)graph, (void)input;
    random_fill(rng, FILL_UNIFORM, tensor);
    for (int64_t i = 0; i < tensor_n_elems(tensor); i++)
        tensor->data[i] = dtype_round(tensor->dtype, tensor->data[i] * scale);
}

static void verify(const char *path, const int64_t (*sizes)[2], size_t n_sizes) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Pair pair;
    PairCounts counts = {0};
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.no_weights = true;
    cr_assert(
        pair_compile(&pair, text_file_read(arena, path, NULL), target_get(TARGET_CPU), &report),
        "%s", text_str(&report));
    for (size_t i = 0; i < n_sizes; i++) {
        options.is_unaligned = i % 2 != 0;
        bool is_right =
            pair_open(&pair, 0, &options, &report) && pair_place(&pair, sizes[i], &report) &&
            pair_run(&pair, &(PairData){.special = fill_scaled, .seed = i + 1}, &counts, &report);
        cr_expect(is_right, "%s at %lld, %lld:\n%s", path, (long long)sizes[i][0],
                  (long long)sizes[i][1], text_str(&report));
    }
    cr_expect_eq(counts.n_runs, n_sizes);
    cr_expect_gt(counts.n_finite, 0u);
    pair_free(&pair);
    arena_free(arena);
}

#define LARGE(name, ...)                                                         \
    Test(examples, name##_agrees, .timeout = 120) {                              \
        static const int64_t sizes[][2] = {__VA_ARGS__};                         \
        verify("dsl/examples/" #name ".g", sizes, sizeof sizes / sizeof *sizes); \
    }
#include "large_examples.def"

/* Programs, each built and run in a folder of its own. */

enum { MAX_COMMAND = 4096, MAX_OUTPUT = 1 << 14 };

static char folder[] = "/tmp/test_examples.XXXXXX";

static void make_folder(void) {
    cr_assert_not_null(mkdtemp(folder));
}

/* Runs a shell command with $OUT as the folder; gives its exit status and what it said. */
static int shell(const char *command, char *output) {
    char line[MAX_COMMAND];
    int length = snprintf(line, sizeof line, "OUT=%s; { %s; } 2>&1", folder, command);
    cr_assert(length > 0 && length < MAX_COMMAND);
    FILE *pipe = popen(line, "r");
    cr_assert_not_null(pipe);
    size_t n = fread(output, 1, MAX_OUTPUT - 1, pipe);
    output[n] = '\0';
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void remove_folder(void) {
    char output[MAX_OUTPUT];
    cr_expect_eq(shell("rm -r $OUT", output), 0, "%s", output);
}

#define EMBED "dsl/examples/embed/"
#define STRICT "${CC:-cc} -std=c11 -O1 -Wall -Wextra -Wpedantic -Wconversion -Werror "
#define RUNTIME " -Iruntime/include build/libfusert.a -lpthread -ldl"
#define HELD_OUT EMBED "held_out.c " EMBED "npy.c"
#define SOME_WEIGHTS                                                          \
    "mkdir $OUT/build $OUT/build/digits && cp " DIGITS "weights.safetensors " \
    "$OUT/build/digits && build/fusec dsl/examples/digits.g -o $OUT/build/digits.o"

static void expect(const char *command, int status, const char *said) {
    char output[MAX_OUTPUT];
    int got = shell(command, output);
    cr_expect_eq(got, status, "exit status %d of: %s\n%s", got, command, output);
    cr_expect_not_null(strstr(output, said), "no `%s` from: %s\n%s", said, command, output);
}

/* The first C program of the page, as printed. */
static void extract_program(void) {
    Arena *arena = arena_new(NULL);
    char path[sizeof folder + 16];
    const char *begin = strstr(text_file_read(arena, "README.md", NULL), "```c\n");
    cr_assert_not_null(begin, "README.md has no C program");
    begin += strlen("```c\n");
    const char *end = strstr(begin, "```");
    cr_assert_not_null(end);
    int n_lines = 0;
    for (const char *at = begin; at < end; at++) n_lines += *at == '\n';
    cr_expect_leq(n_lines, 20);
    snprintf(path, sizeof path, "%s/readme.c", folder);
    FILE *file = fopen(path, "wb");
    cr_assert(file && fwrite(begin, 1, (size_t)(end - begin), file) == (size_t)(end - begin));
    cr_assert_eq(fclose(file), 0);
    arena_free(arena);
}

TestSuite(embed, .init = make_folder, .fini = remove_folder, .timeout = 120);

Test(embed, readme_as_printed) {
    extract_program();
    expect("cmp $OUT/readme.c " EMBED "readme.c && echo the same", 0, "the same");
    expect(STRICT "$OUT/readme.c -o $OUT/readme" RUNTIME " && " SOME_WEIGHTS
                  " && cd $OUT && ./readme",
           0, "7: 100.0 %");
    expect("rm $OUT/build/digits.o && cd $OUT && ./readme", 1, "build/digits.o");
}

Test(embed, readme_shows_the_picture) {
    char picture[MAX_OUTPUT];
    Arena *arena = arena_new(NULL);
    cr_expect_eq(shell("sh tools/demo.sh picture", picture), 0, "%s", picture);
    cr_expect(picture[0] && strstr(text_file_read(arena, "README.md", NULL), picture),
              "README.md has another picture than:\n%s", picture);
    arena_free(arena);
}

Test(embed, the_picture_is_of_the_target) {
    static const char *const targets[] = {"cpu", "sm_80", "sm_90a"};
    char command[512];
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command,
                 "n=$(build/fusec dsl/examples/digits.g --target=%s --explain |"
                 " sed -n 's/^  launches  *\\([0-9]*\\) .*/\\1/p');"
                 " sh tools/demo.sh picture %s | grep \"^  10 launches  *$n launches\"",
                 targets[i], targets[i]);
        expect(command, 0, "launches");
    }
}

Test(embed, cpu_only) {
    expect(STRICT EMBED "cpu_only.c " HELD_OUT " -o $OUT/cpu_only" RUNTIME " && " SOME_WEIGHTS
                        " && $OUT/cpu_only $OUT/build/digits.o dsl/examples/digits",
           0, "360 of 364 right: 98.90 %");
    expect("$OUT/cpu_only $OUT/build/digits.o $OUT", 1, "images.npy cannot be read");
    expect("$OUT/cpu_only", 2, "usage");
}

/* With the runtime of the sanitizers' build, where there is one. */
#define SANITIZED                                                                  \
    " -g -fsanitize=address,undefined -fno-sanitize-recover=all -Iruntime/include" \
    " $(ls build/asan/libfusert.a 2>/dev/null || echo build/libfusert.a) -lpthread -ldl -lm"

Test(embed, decode) {
    expect("for i in llama_decode llama; do"
           " build/fusec dsl/examples/$i.g --target=cpu -o $OUT/$i.o || exit 1; done; echo made",
           0, "made");
    expect(STRICT EMBED "decode.c -o $OUT/decode" RUNTIME " -lm"
                        " && $OUT/decode $OUT/llama_decode.o $OUT/llama.o",
           0, "24 tokens; step by step and at once the logits are 0.0 % apart");
    expect(STRICT EMBED "decode.c -o $OUT/decode_asan" SANITIZED
                        " && $OUT/decode_asan $OUT/llama_decode.o $OUT/llama.o",
           0, "0.0 % apart");
    expect("$OUT/decode $OUT/llama.o $OUT/llama.o", 1, "the graph has rank 2");
    expect("build/fusec inspect $OUT/llama_decode.o | grep in-place", 0, "in-place of values");
}

Test(embed, count_right) {
    expect(STRICT EMBED "count_right.c " HELD_OUT " -o $OUT/count_right && "
                        "build/fusec run dsl/examples/digits.g --device=cpu --output p=@$OUT/p.npy "
                        "--input x=@" DIGITS "images.npy && $OUT/count_right $OUT/p.npy " DIGITS
                        "labels.npy",
           0, "360 of 364 right: 98.90 %");
    expect("$OUT/count_right $OUT/p.npy " DIGITS "images.npy", 1, "another dtype");
    expect("head -c 1000 $OUT/p.npy > $OUT/q.npy; $OUT/count_right $OUT/q.npy " DIGITS "labels.npy",
           1, "of another length");
}

Test(embed, a_program_runs_in_a_context_of_the_caller) {
    char output[MAX_OUTPUT];
    expect(STRICT EMBED "own_context.c " HELD_OUT " -o $OUT/own_context" RUNTIME
                        " && build/fusec dsl/examples/digits.g -o $OUT/digits.ptx && echo built",
           0, "built");
    int status = shell("$OUT/own_context $OUT/digits.ptx dsl/examples/digits", output);
    cr_expect_eq(status, 0, "%s", output);
    if (strncmp(output, "SKIPPED ", 8) == 0) {
        printf("%s", output);
        return;
    }
    const char *right = strstr(output, " right: ");
    cr_assert_not_null(right, "%s", output);
    cr_expect_geq(strtod(right + strlen(" right: "), NULL), 97.0, "%s", output);
}

Test(embed, workloads_of_the_benchmark_beside_the_peers) {
    char output[MAX_OUTPUT];
    if (shell("command -v python3", output)) {
        printf("SKIPPED there is no python3\n");
        return;
    }
    const char *peers = "python3 bench/peers/peers.py --lib build ";
    char command[256];
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "%s --compile-only --target %s", peers,
                 i ? "sm_80" : "sm_90a");
        expect(command, 0, "attention-causal");
    }
    snprintf(command, sizeof command, "%s --compile-only --filter nothing", peers);
    expect(command, 2, "no workload's name matches `nothing`");
}

Test(embed, compile_in_memory) {
    expect(STRICT EMBED "compile_in_memory.c -Icompiler/include -Lbuild -lfusec "
                        "-Wl,-rpath,$PWD/build -o $OUT/program" RUNTIME " && $OUT/program",
           0, "a = 0.5  b = 7  y = 4\n");
    expect("$OUT/program 'a - b / 4.0'", 0, "a = -1  b = 1  y = -1.25\n");
    expect("$OUT/program 'a + c'", 1, "expression.g:3:11: error: ");
}
