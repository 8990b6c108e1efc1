/* Translations of PyTorch models, as `make torch-tests` stores them: the source and weights that
 * the translator wrote, and two sets of inputs with PyTorch's outputs. One artifact of each runs
 * with both sets, fused and unfused. Run from the root of the source tree. */
#include "interp/npy.h"
#include "lib/compile.h"
#include "lib/rig.h"
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <math.h>
#include <string.h>

enum { N_SETS = 2, N_LEAST = 8 };
static const double bound = 1e-4; /* of the largest element, of floats; the rest must be equal */

static Arena *arena;

static NpyArray load(const char *folder, uint32_t set, const char *name) {
    const char *path = str_format(arena, "%s/set%u_%s.npy", folder, set, name), *why = "";
    NpyArray array;
    size_t n;
    const char *file = text_file_read(arena, path, &n);
    cr_assert(npy_read(arena, file, n, &array, &why), "%s: %s", path, why);
    return array;
}

/* The values of dims that are extents of inputs. */
static void find_symbols(const Graph *graph, const char *folder, uint32_t set, int64_t *values) {
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        const Shape *shape = &graph_node(graph, graph->inputs.data[i].node)->shape;
        NpyArray array = load(folder, set, graph->inputs.data[i].name);
        cr_assert_eq(array.rank, shape->rank);
        for (uint32_t k = 0, symbol; k < shape->rank; k++)
            if (dim_is_symbol(graph->dims, shape->dims[k], &symbol)) values[symbol] = array.dims[k];
    }
}

static void fill_inputs(const Graph *graph, const char *folder, uint32_t set, Rig *rig) {
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        const char *name = graph->inputs.data[i].name;
        NpyArray array = load(folder, set, name);
        size_t n;
        uint8_t *to = rig_contents(rig, name, &n);
        cr_assert(to && n == array.n_bytes, "%s, set %u: %s has another size", folder, set, name);
        memcpy(to, array.bytes, n);
    }
}

static double largest_of(Dtype dtype, const NpyArray *array) {
    double largest = 0;
    for (size_t at = 0; at < array->n_bytes; at += dtype_bytes(dtype))
        largest = fmax(largest, fabs(dtype_load(dtype, array->bytes + at)));
    return largest;
}

static void compare_output(const Graph *graph, const GraphOutput *output, const char *folder,
                           uint32_t set, const Rig *rig) {
    Dtype dtype = graph_node(graph, output->node)->dtype;
    NpyArray wanted = load(folder, set, output->name);
    size_t n;
    const uint8_t *bytes = rig_result(rig, output->name, &n);
    cr_assert(bytes && n == wanted.n_bytes && dtype_in(dtype, wanted.dtypes),
              "%s, set %u: %s has another dtype or shape", folder, set, output->name);
    double largest = largest_of(dtype, &wanted);
    cr_assert_gt(largest, 0, "%s, set %u: zeros compare nothing", folder, set);
    for (size_t at = 0; at < n; at += dtype_bytes(dtype)) {
        double got = dtype_load(dtype, bytes + at), want = dtype_load(dtype, wanted.bytes + at);
        cr_assert(fabs(got - want) <= (dtype_is_float(dtype) ? bound * largest : 0),
                  "%s, set %u: %s is %g, not %g, at byte %zu", folder, set, output->name, got, want,
                  at);
    }
}

static void run_sets(const Compiled *compiled, const char *folder) {
    const Graph *graph = compiled->module->graphs.data[0];
    Rig rig;
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.base_dir = folder;
    cr_assert(rig_open(&rig, compiled->bytes, compiled->n_bytes, NULL, &options), "%s: %s", folder,
              rig.error);
    for (uint32_t set = 0; set < N_SETS; set++) {
        int64_t symbols[DIM_MAX_SYMBOLS] = {0};
        find_symbols(graph, folder, set, symbols);
        cr_assert(rig_place(&rig, graph->dims, symbols), "%s: %s", folder, rig.error);
        fill_inputs(graph, folder, set, &rig);
        cr_assert(rig_run(&rig, 0xF5), "%s: %s", folder, rig.error);
        for (uint32_t i = 0; i < graph->outputs.n; i++)
            compare_output(graph, &graph->outputs.data[i], folder, set, &rig);
    }
    rig_close(&rig);
}

static void try_target(const char *path, TargetId target, CompileMode mode) {
    const char *folder = str_format(arena, "%.*s", (int)(strrchr(path, '/') - path), path);
    Compiled compiled;
    cr_assert(
        compile_source(&compiled, text_file_read(arena, path, NULL), target_get(target), mode),
        "%s: %s", path, compiled.messages);
    if (target == TARGET_CPU) run_sets(&compiled, folder);
    compile_free(&compiled);
}

Test(stored, translations_compute_what_pytorch_did, .timeout = 120) {
    glob_t found;
    cr_assert_eq(glob("tests/torch/stored/*/model.g", 0, NULL, &found), 0, "no translations");
    cr_assert_geq(found.gl_pathc, N_LEAST);
    arena = arena_new(NULL);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        try_target(found.gl_pathv[i], TARGET_CPU, COMPILE_FUSED);
        try_target(found.gl_pathv[i], TARGET_CPU, COMPILE_UNFUSED);
        try_target(found.gl_pathv[i], TARGET_SM_90, COMPILE_FUSED);
    }
    arena_free(arena);
    globfree(&found);
}
