/* The manifest writer, judged by the runtime's reader. */
#include "artifact/manifest.h"

#include "lib/plans.h"
#include "memory/memplan.h"
#include "plan/launch.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <frt_manifest.h>
#include <fusert.h>

/* Plans of every graph of `source`, scheduled by hand: this test needs no scheduler. */
typedef struct Fixture {
    Arena *arena;
    Module *module;
    const Plan **plans;
    Diags diags;
} Fixture;

static void schedule(Arena *arena, Plan *plan) {
    for (uint32_t i = 0; i < plan->kernels.n; i++) {
        Kernel *kernel = &plan->kernels.data[i];
        DimTab *dims = plan->graph->dims;
        Variant variants[2];
        for (uint32_t v = 0; v < 2; v++)
            variants[v] = (Variant){.symbol = str_format(arena, "k%u_v%u", i, v),
                                    .sched = {.threads = 128},
                                    .grid = dim_ceil_div(dims, kernel_n_rows(kernel), 128)};
        predicate_align(&variants[0].predicate, 16, 1);
        predicate_require_multiple(&variants[0].predicate, kernel_n_rows(kernel), 4);
        kernel_set_variants(arena, kernel, variants, 2);
    }
    plan_launch_singly(arena, plan);
}

static Fixture fixture_new(const char *source) {
    Fixture f = {.arena = arena_new(NULL)};
    f.diags.arena = f.arena;
    f.module = plans_parse(f.arena, source);
    f.plans = arena_array(f.arena, const Plan *, f.module->graphs.n);
    for (uint32_t i = 0; i < f.module->graphs.n; i++) {
        Plan *plan = plans_fuse(f.arena, f.module, i, true);
        schedule(f.arena, plan);
        cr_assert(memplan_place(f.arena, plan));
        f.plans[i] = plan;
    }
    return f;
}

static const char *manifest_of(Fixture *f) {
    ManifestInput input = {.module = f->module,
                           .plans = f->plans,
                           .target = target_get(TARGET_SM_80),
                           .numerics = "strict",
                           .rewrites = true,
                           .compiler = "1.2.3"};
    return manifest_text(f->arena, &input, &f->diags);
}

/* A sealed artifact with a payload that only looks like PTX. */
static char *artifact_of(Fixture *f, size_t *n_bytes) {
    char *artifact = str_format(f->arena, "%s.version 7.0\n.target sm_80\n", manifest_of(f));
    *n_bytes = strlen(artifact);
    cr_assert(manifest_seal(artifact, *n_bytes));
    return artifact;
}

static frt_module *load(Fixture *f) {
    size_t n_bytes;
    char *artifact = artifact_of(f, &n_bytes);
    frt_error error = FRT_ERROR_INIT;
    frt_module *module = NULL;
    frt_module_load_memory(artifact, n_bytes, &module, &error);
    cr_assert(module, "%s\n%s", error.message, artifact);
    return module;
}

static const char source[] = "weights \"my weights.safetensors\"\n"
                             "dim B in 0..4096\ndim max in 8..512 mult 8\ndim L in 3..100\n"
                             "graph first(x: f32[B, max], k: i32[L]) -> (y: f32[B], z: i32[L]) {\n"
                             "  param w: f32[4, 2] = \"a.b/c d\"\n"
                             "  y = sum(exp(x), axis=1) + sum(w)\n  z = k * k + k\n}\n"
                             "graph second(t0: bool[2*B+1]) -> (n: bool[2*B+1]) {\n"
                             "  n = !(!t0)\n}\n";

Test(manifest, the_reader_gives_back_what_was_written) {
    Fixture f = fixture_new(source);
    frt_module *module = load(&f);
    FRT_INFO(frt_module_info, info);
    frt_module_get_info(module, &info);
    cr_expect_str_eq(info.arch, "sm_80");
    cr_expect_str_eq(info.compiler, "1.2.3");
    cr_expect_str_eq(info.numerics, "strict");
    cr_expect_str_eq(info.rewrites, "on");
    cr_expect_str_eq(info.weights, "my weights.safetensors");
    cr_assert(info.n_dims == 3 && info.n_graphs == 2);
    FRT_INFO(frt_dim_info, dim);
    frt_module_get_dim(module, 1, &dim);
    cr_expect_str_eq(dim.name, "max");
    cr_expect(dim.lo == 8 && dim.hi == 512 && dim.multiple == 8);
    for (uint32_t g = 0; g < f.module->graphs.n; g++) {
        FRT_INFO(frt_graph_info, graph);
        frt_module_get_graph(module, (int32_t)g, &graph);
        cr_expect_str_eq(graph.name, f.module->graphs.data[g]->name);
        cr_expect((uint32_t)graph.n_tensors == f.plans[g]->buffers.n);
        cr_expect((uint32_t)(graph.n_launches + graph.n_init) == f.plans[g]->kernels.n);
        cr_expect((uint32_t)graph.n_init == plan_n_init(f.plans[g]));
        cr_expect(graph.n_init == (g == 0), "the sum of the param");
    }
    frt_module_free(module);
    arena_free(f.arena);
}

Test(manifest, tensors_and_launches_are_the_plans) {
    Fixture f = fixture_new(source);
    frt_module *module = load(&f);
    const Plan *plan = f.plans[0];
    cr_expect(strstr(manifest_of(&f), "\n//@ temp .p0 0 f32 -\n//@ x-bytes .p0 4\n"), "%s",
              manifest_of(&f));
    static const frt_role roles[] = {FRT_INPUT, FRT_PARAM, FRT_OUTPUT, FRT_TEMP, FRT_TEMP};
    for (uint32_t i = 0; i < plan->buffers.n; i++) {
        const Buffer *buffer = &plan->buffers.data[i];
        FRT_INFO(frt_tensor_info, tensor);
        frt_module_get_tensor(module, 0, (int32_t)i, &tensor);
        cr_expect_str_eq(tensor.name + (tensor.role == FRT_TEMP), buffer->name);
        cr_expect(tensor.role == roles[buffer->kind]);
        cr_expect(tensor.is_persistent == (buffer->kind == BUFFER_PREPARED));
        cr_expect_str_eq(frt_dtype_name(tensor.dtype), dtype_name(buffer->dtype));
        cr_expect((uint32_t)tensor.rank == buffer->shape.rank);
        if (tensor.role == FRT_PARAM) cr_expect_str_eq(tensor.weights_key, "a.b/c d");
    }
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        FRT_INFO(frt_step_info, step);
        frt_module_get_step(module, 0, (int32_t)k, &step);
        cr_expect_str_eq(step.label, kernel->name);
        cr_expect(step.phase == (kernel->is_init ? FRT_PHASE_INIT : FRT_PHASE_RUN));
        cr_assert((uint32_t)step.n_args == kernel->args.n);
        for (int32_t i = 0; i < step.n_args; i++)
            cr_expect((uint32_t)frt_module_step_arg(module, 0, (int32_t)k, i) ==
                      kernel->args.data[i]);
        for (int32_t i = 0, last = -1; i < step.n_dims; i++) {
            int32_t dim = frt_module_step_dim(module, 0, (int32_t)k, i);
            cr_expect(dim > last && (kernel->symbols >> dim & 1));
            last = dim;
        }
        cr_expect(step.n_variants == 2);
    }
    frt_module_free(module);
    arena_free(f.arena);
}

/* Random expressions over three dims, evaluated by both sides. */
static DimId random_dim(DimTab *dims, Rng *rng, int depth) {
    if (depth == 0)
        return rng_chance(rng, 40) ? dim_const(dims, rng_between(rng, 0, 9))
                                   : dim_symbol(dims, rng_below(rng, 3));
    DimId a = random_dim(dims, rng, depth - 1), b = random_dim(dims, rng, depth - 1);
    switch (rng_below(rng, 5)) {
    case 0:
        return dim_sub(dims, a, b);
    case 1:
        return dim_mul(dims, a, b);
    case 2:
        return dim_div(dims, a, dim_const(dims, rng_between(rng, 1, 7)));
    default:
        return dim_add(dims, a, b);
    }
}

Test(manifest, expressions_evaluate_as_dims_do) {
    static const int64_t values[][3] = {{0, 8, 3}, {1, 16, 4}, {4096, 512, 100}, {77, 80, 33}};
    Rng rng = rng_new(11);
    uint32_t n_compared = 0;
    for (int round = 0; round < 300; round++) {
        Fixture f = fixture_new("dim B in 0..4096\ndim max in 8..512 mult 8\ndim L in 3..100\n"
                                "graph g(x: f32[B, max, L]) -> (y: f32[B, max, L]) {\n"
                                "  y = exp(x)\n}\n");
        DimTab *dims = f.module->dims;
        DimId dim = random_dim(dims, &rng, 4);
        if (dim == DIM_NONE || dim_lo(dims, dim) < 0 || dim_hi(dims, dim) > (int64_t)1 << 56) {
            arena_free(f.arena);
            continue;
        }
        f.plans[0]->buffers.data[0].shape = (Shape){.rank = 1, .dims = {dim}};
        frt_module *module = load(&f);
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            int64_t expected = 0, extents[FRT_MAX_RANK];
            frt_error error = FRT_ERROR_INIT;
            cr_assert(dim_eval(dims, dim, values[i], &expected));
            cr_assert(frt_module_eval_shape(module, 0, 0, values[i], extents, &error) == FRT_OK,
                      "%s", error.message);
            cr_assert(extents[0] == expected, "%s", dim_str(dims, f.arena, dim));
            n_compared++;
        }
        frt_module_free(module);
        arena_free(f.arena);
    }
    cr_expect(n_compared > 200);
}

Test(manifest, a_changed_byte_breaks_the_seal) {
    Fixture f = fixture_new(source);
    size_t n_bytes;
    char *artifact = artifact_of(&f, &n_bytes);
    artifact[n_bytes - 2] ^= 1;
    frt_error error = FRT_ERROR_INIT;
    frt_module *module = NULL;
    cr_expect(frt_module_load_memory(artifact, n_bytes, &module, &error) == FRT_E_CHECKSUM);
    cr_expect(manifest_seal(artifact, n_bytes), "sealing again mends it");
    cr_expect(frt_module_load_memory(artifact, n_bytes, &module, &error) == FRT_OK);
    frt_module_free(module);
    arena_free(f.arena);
}

Test(manifest, only_text_with_one_checksum_is_sealed) {
    Fixture f = fixture_new(source);
    size_t n_bytes;
    char *one = artifact_of(&f, &n_bytes);
    char *two = str_format(f.arena, "%s%s", one, one);
    cr_expect(!manifest_seal(two, strlen(two)));
    char nothing[] = "//@ fusec-artifact";
    cr_expect(!manifest_seal(nothing, strlen(nothing)));
    for (size_t n = 0; n < 64; n++) {
        char *cut = arena_copy(f.arena, one, n + 1);
        cr_expect(manifest_seal(cut, n) ==
                  (n >= strlen("//@ fusec-artifact 1\n//@ checksum ") + 8));
    }
    arena_free(f.arena);
}

Test(manifest, more_tensors_than_a_reader_takes_are_reported) {
    Fixture f = fixture_new("graph g(x: f32[8]) -> (y: f32[8]) { y = exp(x) }\n");
    Plan *plan = (Plan *)(uintptr_t)f.plans[0];
    while (plan->buffers.n <= FRT_MAX_TENSORS)
        vec_push(f.arena, &plan->buffers, plan->buffers.data[0]);
    cr_expect(manifest_of(&f) == NULL);
    cr_expect(f.diags.n_errors == 1 && f.diags.first->id == DIAG_LIMIT);
    arena_free(f.arena);
}

/* The iota of as many elements as a power of the sum of four dims. */
static Fixture with_power(uint32_t power) {
    Arena *arena = arena_new(NULL);
    Text text = {.arena = arena};
    text_puts(&text, "dim A in 1..3\ndim B in 1..3\ndim C in 1..3\ndim D in 1..3\n"
                     "graph g(x: f32[A, B, C, D]) -> (y: i32[N], z: f32[A, B, C, D]) {\n"
                     "  y = iota([1");
    for (uint32_t i = 0; i < power; i++) text_puts(&text, "*(A + B + C + D)");
    text_puts(&text, "])\n  z = relu(x)\n}\n");
    const char *all = text_str(&text), *extent = strstr(all, "[1*") + 1;
    const char *end = strchr(extent, ']'), *n = strstr(all, "i32[N]") + 4;
    Fixture f = fixture_new(
        str_format(arena, "%.*s%.*s%s", (int)(n - all), all, (int)(end - extent), extent, n + 1));
    arena_free(arena);
    return f;
}

Test(manifest, long_expressions_of_dims_are_written_and_longer_ones_tell_a_remedy) {
    enum { FITS = 7, TOO_LONG = 9 };
    Fixture f = with_power(FITS), g = with_power(TOO_LONG);
    frt_module *module = load(&f);
    int64_t dims[FRT_MAX_RANK];
    frt_error err = FRT_ERROR_INIT;
    const int64_t values[] = {1, 2, 3, 2};
    cr_expect_eq(frt_module_eval_shape(module, 0, 1, values, dims, &err), FRT_OK, "%s",
                 err.message);
    cr_expect_eq(dims[0], 2097152, "%lld", (long long)dims[0]);
    frt_module_free(module);
    manifest_of(&g);
    cr_assert_not_null(g.diags.first);
    Text text = {.arena = g.arena};
    diag_print(&g.diags, &text);
    const char *told = text_str(&text);
    cr_expect_not_null(strstr(told, "more than 4096 terms in an expression"), "%s", told);
    cr_expect_not_null(strstr(told, "as --dim=A=224"), "%s", told);
    arena_free(f.arena);
    arena_free(g.arena);
}
