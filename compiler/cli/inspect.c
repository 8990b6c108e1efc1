/* `fusec inspect`: the contents of an artifact, through the runtime's own reader. */
#include "cli/cli.h"

#include <frt_manifest.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_EXPR_CHARS = 8192 };

static const char *const codes[] = {[FRT_CODE_PTX] = "PTX",
                                    [FRT_CODE_CUBIN] = "cubin",
                                    [FRT_CODE_OBJECT] = "object",
                                    [FRT_CODE_SHARED_OBJECT] = "shared object"};
static const char *const roles[] = {
    [FRT_INPUT] = "input", [FRT_PARAM] = "param", [FRT_OUTPUT] = "output", [FRT_TEMP] = "temp"};

static void show_head(const frt_module *module, const frt_module_info *info) {
    printf("%s for %s, %zu bytes of code, checksum %08x\n", codes[info->code], info->arch,
           info->code_bytes, (unsigned)info->checksum);
    printf("compiled by fusec %s from %s, numerics %s\n", info->compiler, info->source,
           info->numerics);
    for (int32_t i = 0; i < info->n_levels; i++) {
        FRT_INFO(frt_level_info, level);
        frt_module_get_level(module, i, &level);
        printf("level %s: %s%s%s\n", level.name, level.arch, level.features ? " with " : "",
               level.features ? level.features : "");
    }
    if (info->rewrites) printf("rewrites of arithmetic %s\n", info->rewrites);
    if (info->weights) printf("weights %s\n", info->weights);
    for (int32_t i = 0; i < info->n_dims; i++) {
        FRT_INFO(frt_dim_info, dim);
        frt_module_get_dim(module, i, &dim);
        printf("dim %s in %" PRId64 "..%" PRId64, dim.name, dim.lo, dim.hi);
        if (dim.multiple > 1) printf(" mult %" PRId64, dim.multiple);
        printf("\n");
    }
}

/* The size of a prepared tensor: a number, or a product if dims are open. */
static void show_kept_bytes(const frt_module *module, int32_t graph, const frt_tensor_info *tensor,
                            int32_t index) {
    char text[MAX_EXPR_CHARS];
    uint64_t n_bytes = frt_dtype_bytes(tensor->dtype);
    printf(" prepared, ");
    for (int32_t axis = 0; axis < tensor->rank; axis++) {
        char *end;
        frt_module_extent_text(module, graph, index, axis, text, sizeof text);
        uint64_t extent = strtoull(text, &end, 10);
        if (*end)
            printf("(%s)*", text);
        else
            n_bytes *= extent;
    }
    printf("%" PRIu64 " bytes", n_bytes);
}

static void show_tensor(const frt_module *module, int32_t graph, int32_t index) {
    char text[MAX_EXPR_CHARS];
    FRT_INFO(frt_tensor_info, tensor);
    frt_module_get_tensor(module, graph, index, &tensor);
    printf("  %s %s: %s[", roles[tensor.role], tensor.name, frt_dtype_name(tensor.dtype));
    for (int32_t axis = 0; axis < tensor.rank; axis++) {
        frt_module_extent_text(module, graph, index, axis, text, sizeof text);
        printf("%s%s", axis ? ", " : "", text);
    }
    printf("]");
    if (tensor.weights_key) printf(" = \"%s\"", tensor.weights_key);
    if (tensor.role == FRT_TEMP) {
        frt_module_offset_text(module, graph, index, text, sizeof text);
        if (!tensor.is_persistent) printf(" at %s", text);
    }
    if (tensor.stands_for >= 0) {
        FRT_INFO(frt_tensor_info, source);
        frt_module_get_tensor(module, graph, tensor.stands_for, &source);
        printf(tensor.role == FRT_OUTPUT ? ", in-place of %s" : ", or where that is empty %s",
               source.name);
    }
    if (tensor.is_persistent) show_kept_bytes(module, graph, &tensor, index);
    printf("\n");
}

static void show_variant(const frt_module *module, int32_t graph, int32_t step, int32_t index) {
    char text[MAX_EXPR_CHARS];
    FRT_INFO(frt_variant_info, variant);
    frt_module_get_variant(module, graph, step, index, &variant);
    frt_module_grid_text(module, graph, step, index, text, sizeof text);
    printf("    %s<<<%s, %d>>>", variant.symbol, text, (int)variant.block);
    if (frt_module_predicate_text(module, graph, step, index, text, sizeof text))
        printf(" if %s", text);
    printf("%s%s%s\n", variant.has_price ? ", by price" : "", variant.waits ? ", overlaps" : "",
           variant.cluster ? ", persistent" : "");
}

static void show_step(const frt_module *module, int32_t graph, int32_t index) {
    char n[MAX_EXPR_CHARS];
    FRT_INFO(frt_step_info, step);
    frt_module_get_step(module, graph, index, &step);
    printf("  %s%s", step.phase == FRT_PHASE_INIT ? "init " : "", step.label);
    if (frt_module_iterations_text(module, graph, index, n, sizeof n))
        printf(" in the %s of %s iterations", step.iterations == 1 ? "even" : "odd", n);
    if (step.line) printf(" (line %d)", (int)step.line);
    printf(":");
    for (int32_t i = 0; i < step.n_args; i++) {
        FRT_INFO(frt_tensor_info, tensor);
        frt_module_get_tensor(module, graph, frt_module_step_arg(module, graph, index, i), &tensor);
        printf(" %s", tensor.name);
    }
    for (int32_t i = 0; i < step.n_dims; i++) {
        FRT_INFO(frt_dim_info, dim);
        frt_module_get_dim(module, frt_module_step_dim(module, graph, index, i), &dim);
        printf(" %s", dim.name);
    }
    for (int32_t i = 0; i < step.n_numbers; i++) {
        uint64_t bits = 0;
        frt_module_step_number(module, graph, index, i, &bits);
        printf(" 0x%" PRIx64, bits);
    }
    printf("\n");
    for (int32_t i = 0; i < step.n_variants; i++) show_variant(module, graph, index, i);
}

static void show_graph(const frt_module *module, int32_t index) {
    char text[MAX_EXPR_CHARS];
    FRT_INFO(frt_graph_info, graph);
    frt_module_get_graph(module, index, &graph);
    frt_module_workspace_text(module, index, text, sizeof text);
    printf("\ngraph %s: %d launch%s, workspace %s bytes", graph.name, (int)graph.n_launches,
           graph.n_launches == 1 ? "" : "es", text[0] ? text : "0");
    if (graph.n_init) printf(", %d init step%s", (int)graph.n_init, graph.n_init == 1 ? "" : "s");
    printf("\n");
    for (int32_t i = 0; i < graph.n_pitches; i++) {
        frt_module_pitch_text(module, index, i, text, sizeof text);
        printf("  pitch %s\n", text);
    }
    for (int32_t i = 0; i < graph.n_tensors; i++) show_tensor(module, index, i);
    for (int32_t i = 0; i < graph.n_steps; i++) show_step(module, index, i);
}

fusec_status cli_inspect(Cli *cli) {
    char *bytes;
    size_t n_bytes;
    frt_error error = FRT_ERROR_INIT;
    frt_module *module = NULL;
    FRT_INFO(frt_module_info, info);
    fusec_status status = cli_read(cli, cli->path, READ_ARTIFACT, &bytes, &n_bytes);
    if (status) return status;
    if (frt_module_load_memory(bytes, n_bytes, &module, &error)) return cli_fail_load(cli, &error);
    frt_module_get_info(module, &info);
    show_head(module, &info);
    for (int32_t i = 0; i < info.n_graphs; i++) show_graph(module, i);
    frt_module_free(module);
    return FUSEC_OK;
}
