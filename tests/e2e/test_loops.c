/* Loops whose number of steps is a dim, also inside each other. Repeated at run time, fused and
 * unfused, they give the bits that their steps give when they are written one after the other, and
 * that the interpreter gives both ways. */
#include "interp/interp.h"
#include "lib/compiled.h"
#include "lib/rig.h"
#include "random/random_data.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each has a dim T, which is declared ahead of it. */
static const struct {
    const char *name, *source;
    bool needs_steps; /* written step by step it has no meaning without any */
} programs[] = {
    {"recurrence",
     "graph g(x: f32[T, 5], h0: f32[5]) -> (y: f32[5], all: f32[T, 5]) {\n"
     "  param w: f32[5, 5]\n"
     "  y, each = loop t in 0:T with h = h0 {\n"
     "    next = tanh(x[t] + h @ w)\n"
     "    return next, next * 2.0\n  }\n"
     "  all = stack(each)\n}\n",
     true},
    {"swap",
     "graph g(x: f32[33]) -> (y: f32[33], z: f32[33]) {\n"
     "  y, z = loop t in 0:T with a = x, b = x * 0.5 { return b, a - b }\n}\n",
     false},
    {"backwards",
     "graph g(x: bf16[T, 7], h0: bf16[7]) -> (y: bf16[7], all: bf16[7, T]) {\n"
     "  y, each = loop t in T-1:-1:-1 with h = h0 {\n"
     "    n = sin(h + x[t] - x[T - 1 - t])\n    return n, n\n  }\n"
     "  all = stack(each, axis=1)\n}\n",
     true},
    {"by_twos",
     "graph g(x: i32[2*T + 1]) -> (y: i32) {\n"
     "  y = loop t in 1:2*T:2 with n = 0 { return n * 3 + x[t] }\n}\n",
     false},
    {"two_loops",
     "graph g(x: f32[8, 8], w: f32[T, 8, 8]) -> (y: f32[8, 8], mid: f32[8, 8]) {\n"
     "  scale = rsqrt(sum(x * x) + 1.0)\n"
     "  mid = loop t in 0:T with h = x * scale { return softmax(h @ w[t]) }\n"
     "  h = exp(mid) + scale\n"
     "  y = loop t in 0:T with g = h { return g * 0.5 + mid * scale }\n}\n",
     false},
    {"cache",
     "graph g(x: f32[T + 1, 4]) -> (y: f32[T + 1, 4], s: f32) {\n"
     "  c, s = loop t in 0:T with c = x * 0.0, s = 0.0 {\n"
     "    n = dynamic_update_slice(c, reshape(x[t] * 2.0, [1, 4]), [t, 0])\n"
     "    return n, s + sum(n)\n  }\n"
     "  y = c + 1.0\n}\n",
     false},
    {"nested",
     "graph g(x: f32[T, T + 1, 5], h0: f32[5]) -> (y: f32[5], all: f32[T, T + 1, 5], e: f32[T, 5]) "
     "{\n"
     "  param w: f32[5, 5]\n"
     "  y, rows, ends = loop t in 0:T with h = h0 {\n"
     "    bias = tanh(h @ w)\n"
     "    g, cells = loop s in 0:T+1 with g = h {\n"
     "      n = tanh(x[t, s] + g @ w + bias)\n      return n, n * 2.0\n    }\n"
     "    return g + bias, stack(cells), g\n  }\n"
     "  all = stack(rows)\n  e = stack(ends)\n}\n",
     true},
    {"two_inside_one",
     "graph g(x: f32[3]) -> (y: f32[3], z: f32[3], u: i32) {\n"
     "  y, z, u = loop t in 0:T with a = x, b = x * 0.5, k = argmax(x) {\n"
     "    c = loop s in 0:T/2 with c = b { return c * 0.75 + a }\n"
     "    d, m = loop s in T:0:-1 with d = c - b, m = k { return sin(d + c), m * 3 + s - t }\n"
     "    return b, d - c * 0.25, m\n  }\n}\n",
     false},
    {"four_deep",
     "graph g(x: f32[4]) -> (y: f32[4], n: i32) {\n"
     "  y, n = loop i in 0:T/4+1 with a = x, ni = argmax(x) {\n"
     "    b2, n2 = loop j in 0:T/3 with b = a * 0.5, nj = ni {\n"
     "      c2, n3 = loop k in 0:T/4+1 with c = b + a, nk = nj {\n"
     "        d2, n4 = loop l in 0:2*(T/5) with d = c - b, nl = nk {\n"
     "          return sin(d + a) - c * 0.125, nl * 5 + i + 2 * j - k * l\n        }\n"
     "        return d2, n4 + 1\n      }\n"
     "      return c2 - b, n3\n    }\n"
     "    return b2 * 0.5 + a, n2\n  }\n}\n",
     false},
    {"caches_inside",
     "graph g(x: f32[T + 1, 4]) -> (y: f32[T + 1, 4], s: f32) {\n"
     "  y, s = loop t in 0:T with c = x * 0.0, s = 0.0 {\n"
     "    n = dynamic_update_slice(c, reshape(x[t] * 2.0, [1, 4]), [t, 0])\n"
     "    m, r = loop u in 0:T with m = n, r = s {\n"
     "      row = reshape(c[u] + m[t] + x[u], [1, 4])\n"
     "      return dynamic_update_slice(m, row, [u, 0]), r + sum(m) - c[u, 1]\n    }\n"
     "    return m, r\n  }\n}\n",
     false},
    {"unrolled_between",
     "graph g(x: f32[T + 1, 2, 4]) -> (y: f32[4]) {\n"
     "  y = loop t in 0:T with h = x[0, 0] {\n"
     "    g = loop k in 0:2 with g = h {\n"
     "      p = loop s in 0:T with p = g { return tanh(p - x[s, k]) }\n"
     "      return p + h\n    }\n"
     "    fixed = loop s in 0:T with q = x[T, 1] { return q * 0.5 }\n"
     "    return g * 0.5 + fixed\n  }\n}\n",
     false},
    {"unused_index_and_output_of_an_input",
     "graph g(x: f16[3], z: f16[3]) -> (y: f16[3], w: f16[3]) {\n"
     "  w = z\n  y = loop t in 0:T with h = x { return h + z }\n}\n",
     false},
};
enum { N_PROGRAMS = sizeof programs / sizeof *programs };

static const int64_t steps[] = {0, 1, 2, 3, 8, 9};
enum { N_STEPS = sizeof steps / sizeof *steps, ROOM = 1 << 14 };

/* What a run gives: the bytes of all outputs, one behind the other. */
typedef struct Result {
    uint8_t bytes[ROOM];
    size_t n_bytes;
} Result;

static void add(Result *result, const uint8_t *bytes, size_t n_bytes) {
    cr_assert(bytes && result->n_bytes + n_bytes <= ROOM);
    memcpy(result->bytes + result->n_bytes, bytes, n_bytes);
    result->n_bytes += n_bytes;
}

/* The contents of an input or param, by its name alone. */
static Tensor contents(const Graph *graph, const GraphInput *input, const int64_t *dims,
                       Arena *arena) {
    Rng rng = rng_new(hash_bytes(STR_HASH_SEED, input->name, strlen(input->name)));
    const char *error = NULL;
    Tensor tensor;
    cr_assert(interp_shape(graph, input->node, dims, &tensor, arena, &error), "%s", error);
    cr_assert(tensor_new(arena, tensor.dtype, tensor.rank, tensor.dims, &tensor));
    random_fill(&rng, FILL_UNIFORM, &tensor);
    return tensor;
}

static void fill(Rig *rig, const Graph *graph, bool are_params, const int64_t *dims, Arena *arena) {
    uint32_t n = are_params ? graph->params.n : graph->inputs.n;
    for (uint32_t i = 0; i < n; i++) {
        const GraphInput *input = are_params ? &graph->params.data[i] : &graph->inputs.data[i];
        Tensor tensor = contents(graph, input, dims, arena);
        size_t n_bytes;
        tensor_store(&tensor, rig_contents(rig, input->name, &n_bytes));
    }
}

static Result run(const Compiled *p, const int64_t *dims) {
    RigOptions options = RIG_OPTIONS_INIT;
    Result result = {.n_bytes = 0};
    Arena *arena = arena_new(NULL);
    const Graph *graph = p->module->graphs.data[0];
    options.program.no_weights = true;
    Rig rig;
    cr_assert(rig_open(&rig, p->bytes, p->n_bytes, "g", &options), "%s", rig.error);
    cr_assert(rig_place(&rig, p->module->dims, dims), "%s", rig.error);
    fill(&rig, graph, false, dims, arena);
    fill(&rig, graph, true, dims, arena);
    for (int i = 0; i < 2; i++) { /* the second run begins where the first has left everything */
        result.n_bytes = 0;
        cr_assert(rig_run(&rig, 0xA5), "%s", rig.error);
        for (uint32_t k = 0; k < graph->outputs.n; k++) {
            size_t n_bytes;
            const uint8_t *bytes = rig_result(&rig, graph->outputs.data[k].name, &n_bytes);
            add(&result, bytes, n_bytes);
        }
    }
    rig_close(&rig);
    arena_free(arena);
    return result;
}

static Result interpret(const Compiled *p, const int64_t *dims) {
    Result result = {.n_bytes = 0};
    Arena *arena = arena_new(NULL);
    const Graph *graph = p->module->graphs.data[0];
    Tensor inputs[4], params[4], *values = arena_array(arena, Tensor, graph->nodes.n);
    const char *error = NULL;
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        inputs[i] = contents(graph, &graph->inputs.data[i], dims, arena);
    for (uint32_t i = 0; i < graph->params.n; i++)
        params[i] = contents(graph, &graph->params.data[i], dims, arena);
    cr_assert(interp_graph(graph, dims, inputs, params, values, arena, &error), "%s", error);
    for (uint32_t i = 0; i < graph->outputs.n; i++) {
        const Tensor *value = &values[graph->outputs.data[i].node];
        size_t n_bytes = (size_t)tensor_n_elems(value) * dtype_bytes(value->dtype);
        uint8_t *bytes = arena_alloc(arena, n_bytes + 1);
        tensor_store(value, bytes);
        add(&result, bytes, n_bytes);
    }
    arena_free(arena);
    return result;
}

static void expect_same(const Result *a, const Result *b, const char *name, int64_t n,
                        const char *how) {
    cr_expect_eq(a->n_bytes, b->n_bytes);
    cr_expect(memcmp(a->bytes, b->bytes, a->n_bytes) == 0, "%s, %lld steps: %s", name, (long long)n,
              how);
}

static Compiled compile(const char *dim, const char *source, TargetId target, CompileMode mode) {
    char text[2048];
    snprintf(text, sizeof text, "dim T %s\n%s", dim, source);
    Compiled p;
    cr_assert(compile_source(&p, text, target_get(target), mode), "%s", p.messages);
    return p;
}

/* Against the steps one after the other. */
static void check_written(const char *name, const char *source, int64_t n, TargetId target,
                          const Result *want, const Result *meant) {
    char dim[32];
    snprintf(dim, sizeof dim, "= %lld", (long long)n);
    Compiled p = compile(dim, source, target, COMPILE_FUSED);
    Result written = run(&p, NULL), interpreted = interpret(&p, NULL);
    expect_same(want, &written, name, n, "repeated and written step by step");
    expect_same(meant, &interpreted, name, n, "interpreted both ways");
    compile_free(&p);
}

static void check(size_t i, TargetId target) {
    const char *source = programs[i].source;
    Compiled fused = compile("in 0..9", source, target, COMPILE_FUSED);
    Compiled unfused = compile("in 0..9", source, target, COMPILE_UNFUSED);
    for (int k = 0; k < N_STEPS; k++) {
        if (programs[i].needs_steps && steps[k] == 0) continue;
        Result want = run(&fused, &steps[k]), other = run(&unfused, &steps[k]);
        Result meant = interpret(&fused, &steps[k]);
        expect_same(&want, &other, programs[i].name, steps[k], "fused and unfused");
        check_written(programs[i].name, source, steps[k], target, &want, &meant);
    }
    compile_free(&fused);
    compile_free(&unfused);
}

Test(loops, repeated_steps_are_those_written_one_after_the_other, .timeout = 120) {
    for (size_t i = 0; i < N_PROGRAMS; i++) {
        check(i, TARGET_CPU);
        if (compile_target_runs(target_get(TARGET_CPU_V4))) check(i, TARGET_CPU_V4);
    }
}

/* Every program compiles for GPUs, and its graph prints as a program with the same graph. */
Test(loops, are_for_every_target_and_stay_loops_in_print) {
    for (size_t i = 0; i < N_PROGRAMS; i++) {
        Compiled p = compile("in 0..9", programs[i].source, TARGET_SM_90A, COMPILE_FUSED);
        cr_expect_neq(strstr(p.bytes, "//@ repeat "), NULL, "%s", programs[i].name);
        Text once = {.arena = p.driver.arena}, twice = {.arena = p.driver.arena};
        module_print(p.module, &once);
        cr_expect_neq(strstr(text_str(&once), "loop_result("), NULL, "%s", programs[i].name);
        Compiled again;
        cr_assert(compile_source(&again, text_str(&once), target_get(TARGET_SM_80), COMPILE_FUSED),
                  "%s", again.messages);
        module_print(again.module, &twice);
        cr_expect_str_eq(text_str(&once), text_str(&twice));
        compile_free(&again);
        compile_free(&p);
    }
}
