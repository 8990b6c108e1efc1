/* From source text to results on the CPU: the examples fused, unfused and interpreted, with params
 * from a weights file, over sizes, targets, numbers of threads and alignments. Run from the root of
 * the source tree. */
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ELEMS = 1 << 20 }; /* of a value; larger sizes of an example are left out */

static const int64_t sizes[] = {1, 3, 17, 100, 1000};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

/* NULL, and a word about it, where the machine cannot run the target. */
static const Target *find_target(TargetId id) {
    const Target *target = target_get(id);
    if (compile_target_runs(target)) return target;
    printf("SKIPPED this CPU cannot run %s\n", target->name);
    return NULL;
}

/* Contents by name alone, so that a weights file and a check of it can have the same. */
static void fill_by_name(void *user, const Graph *graph, const GraphInput *input, Rng *rng,
                         Tensor *tensor) {
    Rng own = rng_new(hash_bytes(STR_HASH_SEED, input->name, strlen(input->name)));
    (void)user, (void)graph, (void)rng;
    random_fill(&own, tensor->dtype == DT_I32 ? FILL_RAMP : FILL_UNIFORM, tensor);
    for (int64_t i = 0; i < tensor_n_elems(tensor) && tensor->dtype != DT_I32; i++)
        tensor->data[i] = dtype_round(tensor->dtype, fabs(tensor->data[i]) + 0.0625);
}

/* The nearest legal value to `wanted` for every symbol; false when it is none's or when a value of
 * the graph would be too large. */
static bool choose_symbols(const Graph *graph, int64_t wanted, int64_t *values, Arena *arena) {
    for (uint32_t s = 0; s < dim_n_symbols(graph->dims); s++) {
        const DimSymbol *symbol = dim_symbol_info(graph->dims, s);
        int64_t value = wanted < symbol->lo   ? symbol->lo
                        : wanted > symbol->hi ? symbol->hi
                                              : wanted;
        values[s] = value - value % symbol->multiple;
        if (values[s] < symbol->lo) values[s] += symbol->multiple;
    }
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        Tensor type;
        const char *error = NULL;
        if (!interp_shape(graph, id, values, &type, arena, &error)) return false;
        int64_t n = tensor_n_elems(&type);
        if (n < 0 || n > MAX_ELEMS) return false;
    }
    return true;
}

/* Weights. */

static const char *safetensors_dtype(Dtype dtype) {
    static const char *const names[DT_COUNT] = {
#define X(symbol, number, name, safetensors, bytes, map) [number] = safetensors,
#include <frt_dtype.def>
#undef X
    };
    return names[dtype];
}

/* A .safetensors file with the graph's params; its name is on the arena, to be unlinked. */
static const char *write_weights(const Graph *graph, const int64_t *symbol_values, Arena *arena) {
    char *path = str_format(arena, "/tmp/fusec_e2e_XXXXXX");
    Text header = {.arena = arena}, data = {.arena = arena};
    text_puts(&header, "{");
    for (uint32_t i = 0; i < graph->params.n; i++) {
        const GraphInput *param = &graph->params.data[i];
        const char *error = NULL;
        Tensor tensor;
        cr_assert(interp_shape(graph, param->node, symbol_values, &tensor, arena, &error));
        cr_assert(tensor_new(arena, tensor.dtype, tensor.rank, tensor.dims, &tensor));
        fill_by_name(NULL, graph, param, NULL, &tensor);
        size_t n_bytes = (size_t)tensor_n_elems(&tensor) * dtype_bytes(tensor.dtype);
        uint8_t *bytes = arena_alloc(arena, n_bytes + 1);
        tensor_store(&tensor, bytes);
        text_printf(&header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "", param->key,
                    safetensors_dtype(tensor.dtype));
        for (uint32_t k = 0; k < tensor.rank; k++)
            text_printf(&header, "%s%lld", k ? "," : "", (long long)tensor.dims[k]);
        text_printf(&header, "],\"data_offsets\":[%zu,%zu]}", data.n_bytes, data.n_bytes + n_bytes);
        text_add(&data, (const char *)bytes, n_bytes);
    }
    text_puts(&header, "}");
    while (header.n_bytes % 8) text_puts(&header, " ");
    uint8_t length[8] = {0};
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)((uint64_t)header.n_bytes >> 8 * i);
    int descriptor = mkstemp(path);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(length, 1, 8, file), 8u);
    cr_assert_eq(fwrite(header.data, 1, header.n_bytes, file), header.n_bytes);
    if (data.n_bytes) cr_assert_eq(fwrite(data.data, 1, data.n_bytes, file), data.n_bytes);
    cr_assert_eq(fclose(file), 0);
    return path;
}

/* Examples. */

static const char *start(const Graph *graph, const int64_t *values, RigOptions *options,
                         Arena *arena) {
    options->program.no_weights = graph->params.n == 0;
    if (!graph->params.n) return NULL;
    options->program.weights_path = write_weights(graph, values, arena);
    return options->program.weights_path;
}

static bool run_size(Pair *pair, uint32_t g, int64_t size, bool is_unaligned, const char *path) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    const Graph *graph = pair->exposed.module->graphs.data[g];
    int64_t values[DIM_MAX_SYMBOLS];
    bool is_run = choose_symbols(graph, size, values, arena);
    if (is_run) {
        RigOptions options = RIG_OPTIONS_INIT;
        options.is_unaligned = is_unaligned;
        const char *weights = start(graph, values, &options, arena);
        PairData data = {.special = fill_by_name, .seed = 1};
        PairCounts counts = {0};
        bool is_right = pair_open(pair, g, &options, &report) &&
                        pair_place(pair, values, &report) &&
                        pair_run(pair, &data, &counts, &report);
        cr_expect(is_right, "%s, graph %s, size %lld%s:\n%s", path, graph->name, (long long)size,
                  is_unaligned ? ", unaligned" : "", text_str(&report));
        cr_expect(is_right && counts.n_finite * 2 > counts.n_elems,
                  "%s, graph %s: mostly not finite", path, graph->name);
        if (weights) unlink(weights);
    }
    arena_free(arena);
    return is_run;
}

/* Examples that test_examples runs. */
static bool is_large(const char *path) {
    static const char *const paths[] = {
#define LARGE(name, ...) "dsl/examples/" #name ".g",
#include "large_examples.def"
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(paths[i], path) == 0) return true;
    return false;
}

/* Whether the params are small enough for the interpreter to see them many times. */
static bool has_small_params(const Graph *graph) {
    for (uint32_t i = 0; i < graph->params.n; i++) {
        const Shape *shape = &graph_node(graph, graph->params.data[i].node)->shape;
        if (dim_hi(graph->dims, shape_n_elems(graph->dims, shape)) > MAX_ELEMS / 16) return false;
    }
    return true;
}

static void run_example(const char *path, const Target *target) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Pair pair;
    cr_assert(pair_compile(&pair, text_file_read(arena, path, NULL), target, &report), "%s: %s",
              path, text_str(&report));
    for (uint32_t g = 0; g < pair.exposed.module->graphs.n; g++) {
        uint32_t n_run = 0;
        bool is_small = has_small_params(pair.exposed.module->graphs.data[g]);
        cr_expect(is_small, "%s: large_examples.def lacks it", path);
        for (uint32_t i = 0; i < N_SIZES; i++)
            n_run += run_size(&pair, g, sizes[i], i % 2 != 0, path);
        cr_expect_geq(n_run, 3u, "%s, graph %u: too few sizes", path, g);
    }
    pair_free(&pair);
    arena_free(arena);
}

static void run_examples(const Target *target) {
    glob_t found;
    if (!target) return;
    cr_assert_eq(glob("dsl/examples/*.g", 0, NULL, &found), 0, "no examples");
    cr_assert_geq(found.gl_pathc, 5u);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (!is_large(found.gl_pathv[i])) run_example(found.gl_pathv[i], target);
    globfree(&found);
}

Test(e2e, examples_agree_on_cpu, .timeout = 120) {
    run_examples(find_target(TARGET_CPU));
}

Test(e2e, examples_agree_on_cpu_v4, .timeout = 120) {
    run_examples(find_target(TARGET_CPU_V4));
}

/* Determinism. */

static const char reductions[] = "dim N in 1..100000\ndim M in 1..100000\n"
                                 "graph g(x: f32[N, M]) -> (a: f32, r: f32[N], c: f32[M], "
                                 "s: f32[N, M], v: f32[M]) {\n"
                                 "  a = sum(x)\n  r = mean(exp(x), axis=1)\n  c = sum(x, axis=0)\n"
                                 "  s = softmax(x, axis=1)\n  v = prod(x * 0.5, axis=0)\n}\n";
static const int64_t shapes[][2] = {{1, 100000}, {100000, 1}, {300, 301}, {7, 20000}, {20000, 7}};

/* All outputs of `n_runs` runs with `n_threads` are those of `*expected`, which the first call
 * sets.
 */
static void run_again(const Compiled *compiled, const int64_t *values, int32_t n_threads,
                      int n_runs, uint8_t **expected, Arena *arena) {
    static const char *const outputs[] = {"a", "r", "c", "s", "v"};
    const Graph *graph = compiled->module->graphs.data[0];
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.n_threads = n_threads;
    Rig rig;
    cr_assert(rig_open(&rig, compiled->bytes, compiled->n_bytes, "g", &options) &&
                  rig_place(&rig, graph->dims, values),
              "%s", rig.error);
    Tensor x;
    size_t n_bytes;
    const char *error = NULL;
    cr_assert(interp_shape(graph, graph->inputs.data[0].node, values, &x, arena, &error));
    cr_assert(tensor_new(arena, x.dtype, x.rank, x.dims, &x));
    fill_by_name(NULL, graph, &graph->inputs.data[0], NULL, &x);
    tensor_store(&x, rig_contents(&rig, "x", &n_bytes));
    for (int i = 0; i < n_runs; i++) {
        cr_assert(rig_run(&rig, (uint8_t)(0xF0 + i)), "%s", rig.error);
        for (int k = 0; k < 5; k++) {
            const uint8_t *result = rig_result(&rig, outputs[k], &n_bytes);
            if (!expected[k]) expected[k] = arena_copy(arena, result, n_bytes);
            cr_expect_eq(memcmp(expected[k], result, n_bytes), 0,
                         "output %s, %d threads, run %d, [%lld, %lld]", outputs[k], (int)n_threads,
                         i, (long long)values[0], (long long)values[1]);
        }
    }
    rig_close(&rig);
}

static void run_modes(const Target *target, const int64_t *values) {
    static const int32_t threads[] = {1, 2, 5};
    static const CompileMode modes[] = {COMPILE_FUSED, COMPILE_UNFUSED};
    Arena *arena = arena_new(NULL);
    uint8_t *expected[5] = {NULL};
    for (int m = 0; m < 2; m++) {
        Compiled compiled;
        cr_assert(compile_source(&compiled, reductions, target, modes[m]), "%s", compiled.messages);
        for (int t = 0; t < 3; t++)
            run_again(&compiled, values, threads[t], t ? 2 : 10, expected, arena);
        compile_free(&compiled);
    }
    arena_free(arena);
}

static void run_shapes(const Target *target) {
    for (size_t i = 0; target && i < sizeof shapes / sizeof *shapes; i++)
        run_modes(target, shapes[i]);
}

Test(e2e, successive_runs_on_one_workspace_keep_their_bits, .timeout = 60) {
    static const int64_t values[] = {30, 301};
    Arena *arena = arena_new(NULL);
    uint8_t *expected[5] = {NULL};
    Compiled compiled;
    cr_assert(compile_source(&compiled, reductions, find_target(TARGET_CPU), COMPILE_UNFUSED), "%s",
              compiled.messages);
    rig_repeat_runs(2);
    run_again(&compiled, values, 2, 2, expected, arena);
    compile_free(&compiled);
    arena_free(arena);
}

Test(e2e, same_bits_over_runs_threads_and_fusion, .timeout = 120) {
    run_shapes(find_target(TARGET_CPU));
}

Test(e2e, same_bits_over_runs_threads_and_fusion_on_cpu_v4, .timeout = 120) {
    run_shapes(find_target(TARGET_CPU_V4));
}

/* Artifacts. */

Test(e2e, several_graphs_share_an_artifact) {
    static const char source[] = "dim N in 1..64\n"
                                 "graph first(x: f32[N]) -> (y: f32[N]) {\n  y = x + 1.0\n}\n"
                                 "graph second(x: i32[N, 2]) -> (y: i32[N]) {\n"
                                 "  y = sum(x, axis=1)\n}\n"
                                 "graph third(x: f32[N]) -> (y: f32[N]) {\n  y = x + 1.0\n}\n";
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Pair pair;
    PairCounts counts = {0};
    RigOptions options = RIG_OPTIONS_INIT;
    int64_t n = 33;
    cr_assert(pair_compile(&pair, source, target_get(TARGET_CPU), &report), "%s",
              text_str(&report));
    for (uint32_t i = 0; i < 6; i++) {
        bool is_right = pair_open(&pair, i % 3, &options, &report) &&
                        pair_place(&pair, &n, &report) &&
                        pair_run(&pair, &(PairData){.seed = i}, &counts, &report);
        cr_expect(is_right, "%s", text_str(&report));
    }
    cr_expect_eq(counts.n_runs, 6u);
    cr_expect_eq(counts.n_elems, 6u * 33 + 4, "with the constant of each map");
    Rig rig;
    cr_expect_not(rig_open(&rig, pair.fused.bytes, pair.fused.n_bytes, "fourth", &options));
    rig_close(&rig);
    pair_free(&pair);
    arena_free(arena);
}

/* The judge sees a difference: the fused half is another program. */
Test(e2e, a_wrong_program_is_found) {
    static const char right[] = "graph g(x: f32[40]) -> (y: f32[40]) {\n  y = exp(x)\n}\n";
    static const char wrong[] =
        "graph g(x: f32[40]) -> (y: f32[40]) {\n"
        "  y = concat([exp(x[:39]), exp(x[39:]) * 1.0000001192], axis=0)\n}\n";
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    PairCounts counts = {0};
    RigOptions options = RIG_OPTIONS_INIT;
    Pair pair;
    int64_t none[1] = {0};
    cr_assert(pair_compile(&pair, right, target_get(TARGET_CPU), &report));
    compile_free(&pair.fused);
    cr_assert(compile_source(&pair.fused, wrong, pair.target, COMPILE_FUSED), "%s",
              pair.fused.messages);
    cr_assert(pair_open(&pair, 0, &options, &report) && pair_place(&pair, none, &report), "%s",
              text_str(&report));
    cr_expect_not(pair_run(&pair, &(PairData){.seed = 1}, &counts, &report));
    cr_expect_not_null(strstr(text_str(&report), "1 of 40 elements are wrong; first [39]"), "%s",
                       text_str(&report));
    pair_free(&pair);
    arena_free(arena);
}

/* Programs that once went wrong. */

static const char *const once_wrong[] = {
    /* A dim of one value is a number. */
    ("dim A in 1..1\ndim N in 0..0\n"
     "graph g(x: f32[7, A], z: f32[3, N]) -> (u: f32[7, A], v: f32, w: f32[3, N]) {\n"
     "  u = x + 1.0\n  v = u[0, 0]\n  w = flip(z, 1)\n}\n"),
    /* Rows of which all but the last count, as many as a product of dims says. */
    ("dim A in 2..1000\ndim B in 1..1000\n"
     "graph g(x: f32[A, B]) -> (y: f32[A - 1, B], i: i32[A - 1, B]) {\n"
     "  y, i = sort(x[1:], axis=1)\n}\n"),
    /* The offset -29 of an index, of which a reshape takes a quotient by 8. */
    ("dim T in 1..40\n"
     "graph g(x: i32[T, 7], w: f16[3, 8]) -> (y: f16[T + 4, 3, 29]) {\n"
     "  r = reshape(gather(w, x, axis=0), [T, 1, 56])\n"
     "  p = pad(pad(r, low=[0, 1, 0], high=[0, 1, 3]), low=[1, 0, 0], high=[3, 0, 0])\n"
     "  y = p[:, :, 27:-3]\n}\n"),
    /* The same with offsets known at run time only. */
    ("dim T in 1..40\ndim S in 1..40\n"
     "graph g(v: f32[S, 7, 8], w: f32[7, 1]) -> (y: f32[S, T + 1, 53]) {\n"
     "  y = pad(reshape(v * w, [S, 1, 56]), low=[0, T, 0], high=[0, 0, 0])[:, :, 3:]\n}\n"),
    ("dim T in 1..40\n"
     "graph g(a: f32[7, T + 1], w: f32[7, 1]) -> (y: f32[6, 7*T + 4]) {\n"
     "  y = pad(reshape(a * w, [1, 7*T + 7]), low=[2, 0], high=[3, 0])[:, 3:]\n}\n"),
    /* A quotient by an extent of 0. */
    ("dim T in 2..40\n"
     "graph g(x: f16[1, T, 0]) -> (y: f16[1, T, 0], z: f16[T, 0]) {\n"
     "  y = -x\n  z = reshape(x, [T, 0])\n}\n"),
    ("graph g(x: bf16[0, 0, 1]) -> (y: bf16[0, 1]) {\n  y = prod(x, axis=0)\n}\n"),
    /* Sums over nothing, which were -0: rows, columns, split, a matrix product, with an epilogue.
     */
    ("dim K in 0..70000\ndim B in 1..40\n"
     "graph g(x: f32[B, K], w: f32[K, 3], h: bf16[K]) -> (r: f32[B], c: f32[3], s: bf16[], "
     "m: f32[B, 3], e: f32[B, 3]) {\n"
     "  r = sum(x, axis=1)\n  c = sum(w, axis=0)\n  s = sum(h)\n  m = x @ w\n"
     "  e = -(x @ w) / exp(c)\n}\n"),
    ("graph g(x: f16[3, 0], w: f16[0, 4]) -> (r: f16[3], m: f16[3, 4]) {\n"
     "  r = sum(x, axis=1)\n  m = x @ w\n}\n"),
    /* A masked store of one known lane, of a truncated value. */
    ("graph g(x: i32[1, 17]) -> (m: i32[1, 1], y: bf16[1, 17]) {\n"
     "  m = min(x, axis=-1, keep=true)\n  y = cast(cast(x, f32), bf16)\n}\n"),
    ("graph g(x: bf16[33]) -> (y: bf16[33]) {\n  y = log_softmax(x, axis=0)\n}\n"),
    /* The sign of a double, rounded to half on its own, by a function that nothing defines. */
    ("graph g(x: f32[1], a: f64[1], b: f64[1]) -> (y: f16[1], z: f16[1]) {\n"
     "  y = cast(rem(x, 2.125), f16)\n  z = cast(cast(rem(a, b), f32), f16)\n}\n"),
    /* Loads whose guards are off, of what has no elements and is nowhere. */
    ("dim N in 0..5\n"
     "graph g(x: f32[3, 9], w: f16[1, 3], e: f16[1, 0], s: f64[N, 3]) -> (y: f32[9], z: f16[1, 4], "
     "p: f64[N + 3, 3], q: f64[3, N + 2]) {\n"
     "  y = sum(x, axis=0)\n  z = concat([w, w, e, w, w], axis=1)[:, 5:9]\n"
     "  p = pad(s, low=[1, 0], high=[2, 0])\n"
     "  q = pad(transpose(s, perm=[1, 0]), low=[0, 0], high=[0, 2])\n}\n"),
    /* A param that is an output as it is. */
    ("graph g(x: bf16[1]) -> (y: bf16[1], z: i32[1, 1, 1]) {\n"
     "  param w: i32[1, 1, 1] = \"w\"\n  y = exp(x)\n  z = w\n}\n"),
    /* Two kernels of a launch whose indices have different widths. */
    ("dim M in 1..4096\ndim N in 1..4096\n"
     "graph g(q: f32[2, M, 64], k: f32[2, N, 64], v: f32[2, N, 16]) -> (y: f32[2, M, 16]) {\n"
     "  y = attention(q, k, v)\n}\n"),
    /* The lowest number is not -infinity, nor is -infinity as an 8-bit float. */
    ("graph g(q: f64[40, 8], k: f64[40, 8], v: f64[40, 8]) -> (y: f64[40, 8]) {\n"
     "  seen = iota([40, 40], axis=1) < iota([40, 40], axis=0)\n"
     "  s = where(seen, q @ transpose(k, [1, 0]), -1.7976931348623157e308)\n"
     "  online { y = softmax(s) @ v }\n}\n"),
    ("graph g(q: f32[40, 8], k: f32[200, 8], v: f32[200, 8]) -> (y: f32[40, 8]) {\n"
     "  s = where(iota([40, 200], axis=1) < 100, q @ transpose(k, [1, 0]) - 1000, -inf)\n"
     "  online { y = softmax(cast(cast(s, f8e4m3), f32)) @ v }\n}\n"),
    /* One head of queries broadcasts to heads of keys that are repeated. */
    ("graph g(q: f32[1, 1, 4, 8], k: f32[1, 2, 9, 8], v: f32[1, 2, 9, 8]) -> (y: f32[1, 4, 4, 8]) "
     "{\n  y = attention(q, repeat_interleave(k, 2, axis=1), repeat_interleave(v, 2, "
     "axis=1))\n}\n"),
    /* No heads of few rows share the keys. */
    ("dim T in 1..30\n"
     "graph g(q: f32[5, 0, T, 8], k: f32[5, 1, T, 8], v: f32[1, 8]) -> (y: f32[5, 0, T, 8]) {\n"
     "  y = attention(q, k, k) + v\n}\n"),
    /* An update that another kernel stored lay where the updated value is copied to. */
    ("graph g(x: f32[6, 6], w: f32[6, 6], q: i32) -> (y: f32[6, 6]) {\n"
     "  y = exp(dynamic_update_slice(x, x @ w, [q, q]))\n}\n"),
    /* What two updates update was stored between them. */
    ("graph g(x: f32[8, 16], z: f32[8, 16], q: i32) -> (y: f32[8, 16]) {\n"
     "  a = x + z\n  b = dynamic_update_slice(a, z[0:1], [q, 0])\n"
     "  y = roll(b, 1, 0) + dynamic_update_slice(a, a, [q, 0])\n}\n"),
    ("graph g(z: f32[17], x: f32[17], at: i32) -> (y: f32[17], b: f32[17]) {\n"
     "  a = cummax(z, axis=0)\n  b = dynamic_update_slice(a, x, [at])\n"
     "  y = maximum(a, dynamic_update_slice(x, b[0:1], [at]))\n}\n"),
    /* What is updated in place was stored after its update. */
    ("graph g(x: f64[3], z: f64[3], q: i32) -> (y: f64[3]) {\n  a = x + z\n"
     "  b = dynamic_update_slice(a, x[0:1], [q])\n  t, i = topk(x, 1, axis=0)\n  c = b + t\n"
     "  d = scatter(b, 0, argsort(c, axis=0) / 2, c)\n  y = concat([d[1:], d[0:1]], axis=0)\n}\n"),
    /* Rows of images of two groups in one unit. */
    ("graph g(x: f32[3, 3, 7, 8], w: f32[4, 1, 2, 8]) -> (y: f32[3, 6, 7, 8]) {\n"
     "  y = conv2d_nhwc(x, w, padding=[3, 0], groups=4)\n}\n"),
    ("graph g(x: f32[3, 128, 23, 14], w: f32[8, 32, 1, 3]) -> (y: f32[3, 8, 27, 12]) {\n"
     "  y = conv2d(x, w, padding=[2, 0], groups=4)\n}\n"),
    /* Stores that weave m, where the vectors lie along n. */
    ("graph g(x: f32[1, 1, 5, 17], w: f32[1, 3, 3, 3]) -> (y: f32[1, 3, 11, 35]) {\n"
     "  y = conv_transpose2d(x, w, stride=2)\n}\n"),
    ("graph g(x: f32[2, 3, 18, 39], w: f32[3, 3, 5, 5]) -> (y: f32[2, 3, 39, 81]) {\n"
     "  y = conv_transpose2d(x, w, stride=2, padding=0)\n}\n"),
    /* The place of a value is what remains of its number divided by an extent that may be 0. */
    ("dim T in 0..40\n"
     "graph g(x: bf16[2, 0, 1], w: f32[2, 1, T, 3]) -> (y: f32[2, 1, T, 1]) {\n"
     "  v = windows(pad(x, low=[0, 2, 0], high=[0, 1, 0]), size=[3], axis=[1])\n"
     "  y = softmax2_matmul(w, v, out=f32)\n}\n"),
    /* Packed rows of a depth that is no multiple of the lanes. */
    ("graph g(x: f32[1, 3, 12], w: f32[3, 2, 3]) -> (y: f32[1, 2, 25]) {\n"
     "  y = conv_transpose1d(x, w, stride=2)\n}\n")};

static void run_once_wrong(const char *source, const Target *target) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Pair pair;
    PairCounts counts = {0};
    cr_assert(pair_compile(&pair, source, target, &report), "%s%s", source, text_str(&report));
    for (int i = 0; i <= N_SIZES; i++) {
        RigOptions options = RIG_OPTIONS_INIT;
        int64_t values[DIM_MAX_SYMBOLS], size = i < N_SIZES ? sizes[i] : 0;
        options.program.no_weights = true;
        if (!choose_symbols(pair.exposed.module->graphs.data[0], size, values, arena)) continue;
        bool is_right = pair_open(&pair, 0, &options, &report) &&
                        pair_place(&pair, values, &report) &&
                        pair_run(&pair, &(PairData){.seed = 1}, &counts, &report);
        cr_expect(is_right, "%s for %s:\n%s", source, target->name, text_str(&report));
    }
    cr_expect_gt(counts.n_runs, 0u);
    pair_free(&pair);
    arena_free(arena);
}

static void run_all_once_wrong(const Target *target) {
    for (size_t i = 0; target && i < sizeof once_wrong / sizeof *once_wrong; i++)
        run_once_wrong(once_wrong[i], target);
}

Test(e2e, what_once_went_wrong_on_cpu, .timeout = 60) {
    run_all_once_wrong(find_target(TARGET_CPU));
}

Test(e2e, what_once_went_wrong_on_cpu_v4, .timeout = 60) {
    run_all_once_wrong(find_target(TARGET_CPU_V4));
}
