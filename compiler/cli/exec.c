/* Programs on devices. See exec.h. */
#include "cli/exec.h"

#include "interp/tensor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Compiling. */

typedef struct Request {
    const char *name, *text;
    size_t n_bytes;
} Request;

static fusec_status compile(Driver *driver, void *user) {
    const Request *request = user;
    fusec_status status = driver_parse(driver, request->name, request->text, request->n_bytes);
    return status ? status : driver_build(driver);
}

fusec_status exec_compile(Cli *cli, const char *text, size_t n_bytes, const Target *target,
                          bool no_fuse, const char **artifact, size_t *n_artifact) {
    DriverOptions options = cli_driver_options(cli, target);
    options.no_fuse = no_fuse;
    Driver driver;
    Request request = {strcmp(cli->path, "-") == 0 ? "<stdin>" : cli->path, text, n_bytes};
    if (!driver_init(&driver, &options)) return cli_fail_memory(cli);
    fusec_status status = cli_guard(cli, &driver, compile, &request);
    if (!status) {
        *artifact = arena_copy(cli->arena, driver.code.data, driver.code.n_bytes);
        *n_artifact = driver.code.n_bytes;
        if (target->has->blocks && !no_fuse) registers_note(cli, &driver);
    }
    driver_free(&driver);
    return status;
}

fusec_status exec_choose_target(const Cli *cli, const Target **target) {
    const char *why_not = NULL;
    *target = cli->target;
    if (*target && cli->device != DEVICE_AT_HAND &&
        ((*target)->ptx_version != NULL) != (cli->device == DEVICE_IS_CUDA))
        return cli_fail(cli, FUSEC_USAGE, "target %s does not run on the device asked for",
                        (*target)->name);
    if (*target) return FUSEC_OK;
    if (cli->device != DEVICE_IS_CPU) *target = cli_native_gpu(&why_not);
    if (!*target && cli->device == DEVICE_IS_CUDA)
        return cli_fail(cli, FUSEC_TARGET, "%s", why_not);
    if (!*target) *target = codegen_native_cpu();
    return *target ? FUSEC_OK
                   : cli_fail(cli, FUSEC_TARGET,
                              "this CPU is older than x86-64-v3, the least "
                              "that fusec compiles for");
}

fusec_status exec_open_artifact(Cli *cli, Exec *exec, const char *bytes, size_t n_bytes) {
    if (cli->no_fuse || cli->target || cli->is_fast || cli->rewrites)
        return cli_fail(cli, FUSEC_USAGE, "%s is compiled already: %s means nothing for it",
                        cli->path,
                        cli->no_fuse   ? "--no-fuse"
                        : cli->target  ? "--target"
                        : cli->is_fast ? "--numerics"
                                       : "--rewrite");
    return exec_open(cli, exec, bytes, n_bytes, cli->graph);
}

fusec_status exec_open_path(Cli *cli, Exec *exec) {
    char *bytes;
    size_t n_bytes;
    *exec = (Exec){.cli = cli};
    fusec_status status = cli_read_model(cli, &bytes, &n_bytes);
    if (status) return status;
    if (cli_is_artifact(bytes, n_bytes)) return exec_open_artifact(cli, exec, bytes, n_bytes);
    const Target *target;
    const char *artifact;
    status = cli_check_source(cli, bytes, n_bytes);
    if (!status) status = exec_choose_target(cli, &target);
    if (!status)
        status = exec_compile(cli, bytes, n_bytes, target, cli->no_fuse, &artifact, &n_bytes);
    return status ? status : exec_open(cli, exec, artifact, n_bytes, cli->graph);
}

/* Opening. */

static fusec_status find_graph(Exec *exec, const char *name) {
    Text names = {.arena = exec->cli->arena};
    for (exec->graph = 0; exec->graph < exec->info.n_graphs; exec->graph++) {
        exec->graph_info.struct_size = sizeof exec->graph_info;
        frt_module_get_graph(exec->module, exec->graph, &exec->graph_info);
        if (name ? strcmp(name, exec->graph_info.name) == 0 : exec->info.n_graphs == 1)
            return FUSEC_OK;
        text_printf(&names, "%s%s", exec->graph ? ", " : "", exec->graph_info.name);
    }
    if (name)
        return cli_fail(exec->cli, FUSEC_INPUT, "there is no graph `%s` but %s", name,
                        text_str(&names));
    return cli_fail(exec->cli, FUSEC_USAGE, "--graph must say which: %s", text_str(&names));
}

/* The params of an ONNX model have its weights, as if files gave them. */
static void take_model_weights(Exec *exec) {
    const OnnxImport *model = exec->cli->model;
    for (uint32_t i = 0; model && i < model->weights.n; i++) {
        const OnnxWeight *weight = &model->weights.data[i];
        ExecTensor *tensor = exec_find(exec, weight->name);
        if (!tensor || tensor->info.role != FRT_PARAM) continue;
        memcpy(tensor->dims, weight->dims, weight->rank * sizeof *weight->dims);
        tensor->n_bytes = weight->bytes.n;
        tensor->host = arena_copy(exec->cli->arena, weight->bytes.data, weight->bytes.n);
        tensor->is_given = true;
    }
}

fusec_status exec_open(Cli *cli, Exec *exec, const void *artifact, size_t n_bytes,
                       const char *name) {
    frt_error error = FRT_ERROR_INIT;
    *exec = (Exec){.cli = cli,
                   .info = {.struct_size = sizeof exec->info},
                   .poisons = cli->command == CLI_VERIFY};
    if (frt_module_load_memory(artifact, n_bytes, &exec->module, &error))
        return cli_fail_load(cli, &error);
    frt_module_get_info(exec->module, &exec->info);
    fusec_status status = find_graph(exec, name);
    if (status) return status;
    for (int32_t i = 0; i < exec->info.n_dims; i++) {
        exec->dims[i].struct_size = sizeof exec->dims[i];
        frt_module_get_dim(exec->module, i, &exec->dims[i]);
    }
    exec->tensors = arena_array(cli->arena, ExecTensor, (size_t)exec->graph_info.n_tensors);
    for (int32_t i = 0; i < exec->graph_info.n_tensors; i++) {
        ExecTensor tensor = {.info = {.struct_size = sizeof tensor.info}, .index = i};
        frt_module_get_tensor(exec->module, exec->graph, i, &tensor.info);
        if (tensor.info.role != FRT_TEMP) exec->tensors[exec->n_tensors++] = tensor;
    }
    if (!cli->weights) take_model_weights(exec);
    return FUSEC_OK;
}

void exec_close(Exec *exec) {
    for (uint32_t i = 0; i < exec->n_tensors; i++)
        if (exec->tensors[i].device)
            frt_device_free(exec->program, exec->tensors[i].device, exec->tensors[i].n_bytes);
    frt_exec_free(exec->exec);
    if (exec->workspace) frt_device_free(exec->program, exec->workspace, exec->n_workspace_bytes);
    frt_program_free(exec->program);
    frt_module_free(exec->module);
    *exec = (Exec){.cli = exec->cli};
}

Dtype exec_tensor_dtype(const ExecTensor *tensor) {
    return (Dtype)tensor->info.dtype; /* the same numbers */
}

ExecTensor *exec_find(Exec *exec, const char *name) {
    for (uint32_t i = 0; i < exec->n_tensors; i++)
        if (strcmp(exec->tensors[i].info.name, name) == 0) return &exec->tensors[i];
    return NULL;
}

/* Dims. */

static int32_t find_dim(const Exec *exec, const char *name) {
    for (int32_t i = 0; i < exec->info.n_dims; i++)
        if (strcmp(exec->dims[i].name, name) == 0) return i;
    return -1;
}

static fusec_status fail_no_dim(const Exec *exec, const char *name) {
    Text names = {.arena = exec->cli->arena};
    for (int32_t i = 0; i < exec->info.n_dims; i++)
        text_printf(&names, "%s%s", i ? ", " : " but ", exec->dims[i].name);
    return cli_fail(exec->cli, FUSEC_INPUT, "there is no dim `%s`%s", name, text_str(&names));
}

/* `value` is the user's text. */
static fusec_status fail_dim(const Exec *exec, const frt_dim_info *dim, const char *value) {
    const char *multiple =
        dim->multiple > 1
            ? str_format(exec->cli->arena, " and is a multiple of %" PRId64, dim->multiple)
            : "";
    return cli_fail(exec->cli, FUSEC_INPUT,
                    "dim %s cannot be %s: it lies in %" PRId64 "..%" PRId64 "%s", dim->name, value,
                    dim->lo, dim->hi, multiple);
}

static bool is_legal(const frt_dim_info *dim, int64_t value) {
    return value >= dim->lo && value <= dim->hi && value % dim->multiple == 0;
}

static fusec_status take_given_dims(Exec *exec) {
    const Cli *cli = exec->cli;
    for (uint32_t i = 0; i < cli->dims.n; i++) {
        CliPair pair = cli->dims.data[i];
        int32_t dim = find_dim(exec, pair.name);
        int64_t value;
        if (dim < 0) return fail_no_dim(exec, pair.name);
        if (!cli_parse_dim(pair.value, &value) || !is_legal(&exec->dims[dim], value))
            return fail_dim(exec, &exec->dims[dim], pair.value);
        exec->dim_values[dim] = value;
        exec->dim_known[dim] = exec->dim_is_set[dim] = true;
    }
    return FUSEC_OK;
}

/* Params fix dims first, as in the runtime. */
static void take_param_dims(Exec *exec) {
    for (int32_t i = 0; i < exec->info.n_dims; i++)
        if (!exec->dim_known[i])
            exec->dim_known[i] =
                frt_program_get_dim(exec->program, i, &exec->dim_values[i]) == FRT_OK;
}

/* A given input whose extent is a bare dim fixes that dim. */
static fusec_status take_input_dims(Exec *exec) {
    for (uint32_t i = 0; i < exec->n_tensors; i++) {
        const ExecTensor *tensor = &exec->tensors[i];
        for (int32_t axis = 0; tensor->is_given && axis < tensor->info.rank; axis++) {
            char text[FRT_MAX_NAME_BYTES + 1];
            int64_t value = tensor->dims[axis];
            frt_module_extent_text(exec->module, exec->graph, tensor->index, axis, text,
                                   sizeof text);
            int32_t dim = find_dim(exec, text);
            if (dim < 0 || exec->dim_known[dim]) continue;
            if (!is_legal(&exec->dims[dim], value))
                return fail_dim(exec, &exec->dims[dim],
                                str_format(exec->cli->arena, "%" PRId64 ", as axis %d of %s's file",
                                           value, (int)axis, tensor->info.name));
            exec->dim_values[dim] = value;
            exec->dim_known[dim] = true;
        }
    }
    return FUSEC_OK;
}

static int64_t legal_value(const frt_dim_info *dim, int64_t wanted) {
    int64_t value = wanted < dim->lo ? dim->lo : wanted > dim->hi ? dim->hi : wanted;
    int64_t down = value - value % dim->multiple;
    return down < dim->lo ? down + dim->multiple : down;
}

/* The extent of an axis with `dim` at `value`, and the other dims that are not known at their
 * least; -1: none. */
static int64_t extent_at(Exec *exec, const ExecTensor *tensor, int32_t axis, int32_t dim,
                         int64_t value) {
    frt_error error = FRT_ERROR_INIT;
    int64_t extents[FRT_MAX_RANK];
    for (int32_t i = 0; i < exec->info.n_dims; i++)
        if (!exec->dim_known[i])
            exec->dim_values[i] = i == dim ? value : legal_value(&exec->dims[i], exec->dims[i].lo);
    return frt_module_eval_shape(exec->module, exec->graph, tensor->index, exec->dim_values,
                                 extents, &error)
               ? -1
               : extents[axis];
}

/* The one dim that is not known and changes the extent of an axis, or -1. */
static int32_t only_dim(Exec *exec, const ExecTensor *tensor, int32_t axis, int64_t *first,
                        int64_t *step) {
    int32_t only = -1;
    for (int32_t i = 0; i < exec->info.n_dims; i++) {
        const frt_dim_info *dim = &exec->dims[i];
        int64_t least = legal_value(dim, dim->lo);
        if (exec->dim_known[i] || least + dim->multiple > dim->hi) continue;
        int64_t here = extent_at(exec, tensor, axis, i, least);
        int64_t next = extent_at(exec, tensor, axis, i, least + dim->multiple);
        if (here == next) continue;
        if (only >= 0 || here < 0 || next < 0) return -1;
        only = i;
        *first = here;
        *step = next - here;
    }
    return only;
}

/* A given input whose extent is an expression of one dim, such as 4*T, fixes that dim. */
static void solve_input_dims(Exec *exec) {
    for (uint32_t i = 0; i < exec->n_tensors; i++) {
        const ExecTensor *tensor = &exec->tensors[i];
        for (int32_t axis = 0; tensor->is_given && axis < tensor->info.rank; axis++) {
            int64_t first, step;
            int32_t only = only_dim(exec, tensor, axis, &first, &step);
            if (only < 0 || (tensor->dims[axis] - first) % step) continue;
            const frt_dim_info *dim = &exec->dims[only];
            int64_t value =
                legal_value(dim, dim->lo) + (tensor->dims[axis] - first) / step * dim->multiple;
            exec->dim_known[only] = is_legal(dim, value) && extent_at(exec, tensor, axis, only,
                                                                      value) == tensor->dims[axis];
        }
    }
}

_Static_assert((int)FRT_MAX_RANK == (int)MAX_GIVEN_RANK, "tensors of the caller are the runtime's");

static fusec_status settle_shapes(Exec *exec) {
    frt_error error = FRT_ERROR_INIT;
    for (uint32_t i = 0; i < exec->n_tensors; i++) {
        ExecTensor *tensor = &exec->tensors[i];
        int64_t dims[FRT_MAX_RANK];
        if (frt_module_eval_shape(exec->module, exec->graph, tensor->index, exec->dim_values, dims,
                                  &error))
            return cli_fail_frt(exec->cli, &error);
        if (tensor->is_given) continue; /* the runtime checks given tensors */
        memcpy(tensor->dims, dims, sizeof dims);
        tensor->n_bytes = frt_dtype_bytes(tensor->info.dtype);
        for (int32_t k = 0; k < tensor->info.rank; k++) {
            if (dims[k] && tensor->n_bytes > ((size_t)1 << 40) / (size_t)dims[k])
                return cli_fail(exec->cli, FUSEC_INPUT,
                                "%s would have more than 2^40 bytes; give smaller dims by --dim",
                                tensor->info.name);
            tensor->n_bytes *= (size_t)dims[k];
        }
    }
    return FUSEC_OK;
}

static fusec_status choose_dims(Exec *exec, int64_t wanted, bool tells) {
    fusec_status status = take_given_dims(exec);
    if (status) return status;
    take_param_dims(exec);
    status = take_input_dims(exec);
    if (status) return status;
    solve_input_dims(exec);
    for (int32_t i = 0; i < exec->info.n_dims; i++) {
        if (exec->dim_known[i]) continue;
        exec->dim_values[i] = legal_value(&exec->dims[i], wanted);
        exec->dim_is_set[i] = true;
        exec->n_chosen++;
        if (tells)
            fprintf(stderr, "fusec: dim %s = %" PRId64 " (--dim=%s=... sets it)\n",
                    exec->dims[i].name, exec->dim_values[i], exec->dims[i].name);
    }
    return settle_shapes(exec);
}

/* Data. */

fusec_status exec_fail_no_tensor(Exec *exec, const char *what, const char *name, bool is_output) {
    Text names = {.arena = exec->cli->arena};
    for (uint32_t i = 0; i < exec->n_tensors; i++)
        if ((exec->tensors[i].info.role == FRT_OUTPUT) == is_output)
            text_printf(&names, "%s%s", names.n_bytes ? ", " : " but ", exec->tensors[i].info.name);
    return cli_fail(exec->cli, FUSEC_INPUT, "there is no %s `%s`%s", what, name, text_str(&names));
}

static bool needs_filling(const Exec *exec, const ExecTensor *tensor) {
    if (tensor->is_given || tensor->info.role == FRT_OUTPUT) return false;
    return tensor->info.role == FRT_INPUT || !exec->has_weights;
}

static frt_tensor shaped(const ExecTensor *tensor, void *data) {
    frt_tensor shape = {.data = data, .dtype = tensor->info.dtype, .rank = tensor->info.rank};
    memcpy(shape.dims, tensor->dims, sizeof shape.dims);
    return shape;
}

static fusec_status give_param(Exec *exec, const ExecTensor *tensor) {
    frt_error error = FRT_ERROR_INIT;
    frt_tensor given = shaped(tensor, tensor->host);
    if (frt_program_set_param_tensor(exec->program, tensor->info.name, &given, &error))
        return cli_fail_frt(exec->cli, &error);
    return FUSEC_OK;
}

static fusec_status give_read_params(Exec *exec) {
    fusec_status status = FUSEC_OK;
    for (uint32_t i = 0; i < exec->n_tensors && !status; i++)
        if (exec->tensors[i].info.role == FRT_PARAM && exec->tensors[i].is_given)
            status = give_param(exec, &exec->tensors[i]);
    return status;
}

fusec_status exec_fail_too_large(const Exec *exec, const char *what, size_t n_bytes) {
    cli_fail(exec->cli, FUSEC_MEMORY, "there is no memory for %s of %zu bytes", what, n_bytes);
    cli_help_memory();
    return FUSEC_MEMORY;
}

static fusec_status alloc_device(Exec *exec, const char *what, size_t n_bytes, void **device) {
    frt_error error = FRT_ERROR_INIT;
    if (!frt_device_alloc(exec->program, n_bytes, device, &error)) return FUSEC_OK;
    return error.status == FRT_E_OUT_OF_MEMORY ? exec_fail_too_large(exec, what, n_bytes)
                                               : cli_fail_frt(exec->cli, &error);
}

static fusec_status place_tensor(Exec *exec, ExecTensor *tensor) {
    frt_error error = FRT_ERROR_INIT;
    if (!tensor->host) tensor->host = arena_try_alloc(exec->cli->arena, tensor->n_bytes + 1);
    if (!tensor->host) return exec_fail_too_large(exec, tensor->info.name, tensor->n_bytes);
    if (tensor->info.role == FRT_PARAM) return FUSEC_OK;
    fusec_status status = alloc_device(exec, tensor->info.name, tensor->n_bytes, &tensor->device);
    if (status) return status;
    frt_tensor bound = shaped(tensor, tensor->device);
    if (frt_bind(exec->exec, tensor->info.name, &bound, &error))
        return cli_fail_frt(exec->cli, &error);
    return FUSEC_OK;
}

/* A byte that makes every float NaN. */
enum { POISON = 0xFF };

/* Gives the exec a workspace filled with poison, so that a read before the first write shows. */
static fusec_status poison_workspace(Exec *exec) {
    frt_error error = FRT_ERROR_INIT;
    if (frt_exec_workspace_bytes(exec->exec, &exec->n_workspace_bytes, &error))
        return cli_fail_frt(exec->cli, &error);
    if (exec->n_workspace_bytes == 0) return FUSEC_OK;
    if (!exec->workspace) {
        fusec_status status =
            alloc_device(exec, "the workspace", exec->n_workspace_bytes, &exec->workspace);
        if (status) return status;
        if (frt_exec_set_workspace(exec->exec, exec->workspace, exec->n_workspace_bytes, &error))
            return cli_fail_frt(exec->cli, &error);
    }
    if (!exec->poison) {
        exec->poison = arena_try_alloc(exec->cli->arena, exec->n_workspace_bytes);
        if (!exec->poison)
            return exec_fail_too_large(exec, "the workspace", exec->n_workspace_bytes);
        memset(exec->poison, POISON, exec->n_workspace_bytes);
    }
    return frt_copy_to_device(exec->program, exec->workspace, exec->poison, exec->n_workspace_bytes,
                              &error)
               ? cli_fail_frt(exec->cli, &error)
               : FUSEC_OK;
}

static fusec_status fill_tensor(Exec *exec, ExecTensor *tensor, DataKind kind) {
    frt_error error = FRT_ERROR_INIT;
    Dtype dtype = exec_tensor_dtype(tensor);
    if (tensor->info.role == FRT_OUTPUT && !exec->poisons) return FUSEC_OK;
    if (tensor->info.role == FRT_OUTPUT) memset(tensor->host, POISON, tensor->n_bytes);
    if (needs_filling(exec, tensor))
        data_fill(kind, exec->cli->seed, tensor->info.name, dtype, tensor->host, tensor->n_bytes);
    if (tensor->info.role != FRT_PARAM)
        return frt_copy_to_device(exec->program, tensor->device, tensor->host, tensor->n_bytes,
                                  &error)
                   ? cli_fail_frt(exec->cli, &error)
                   : FUSEC_OK;
    return tensor->is_given || exec->has_weights ? FUSEC_OK : give_param(exec, tensor);
}

fusec_status exec_fill(Exec *exec, DataKind kind) {
    frt_error error = FRT_ERROR_INIT;
    for (uint32_t i = 0; i < exec->n_tensors; i++) {
        fusec_status status = fill_tensor(exec, &exec->tensors[i], kind);
        if (status) return status;
    }
    fusec_status status = exec->poisons ? poison_workspace(exec) : FUSEC_OK;
    if (!status && frt_prepare(exec->exec, &error)) return cli_fail_frt(exec->cli, &error);
    return status;
}

/* The first param that has no file of its own, so that a weights file is needed; or NULL. */
static const ExecTensor *param_not_given(const Exec *exec) {
    for (uint32_t i = 0; i < exec->n_tensors; i++)
        if (exec->tensors[i].info.role == FRT_PARAM && !exec->tensors[i].is_given)
            return &exec->tensors[i];
    return NULL;
}

static bool is_folder(const char *path) {
    struct stat info;
    return path[strlen(path) - 1] == '/' || (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

/* The path of the weights file: --weights, or the artifact's name for it, relative to the folder of
 * cli->path. NULL: neither names one. */
static const char *weights_path(const Exec *exec) {
    Cli *cli = exec->cli;
    const char *name = exec->info.weights, *given = cli->weights;
    if (given && !is_folder(given)) return given;
    const char *folder = given ? given : cli->path;
    if (!name || (!given && name[0] == '/')) return name;
    const char *last = given ? strrchr(name, '/') : NULL, *slash = strrchr(folder, '/');
    size_t n_folder = given ? strlen(folder) : slash ? (size_t)(slash - folder) + 1 : 0;
    return str_format(cli->arena, "%.*s%s%s", (int)n_folder, folder,
                      given && folder[n_folder - 1] != '/' ? "/" : "", last ? last + 1 : name);
}

static fusec_status fail_weights(const Exec *exec, const char *path) {
    cli_fail(exec->cli, FUSEC_FILE, "cannot read weights file %s: %s", path, strerror(errno));
    if (exec->info.weights)
        cli_help("%s calls it `%s`, relative to its own folder; --weights=FILE, or the folder of "
                 "the file, says where it is.",
                 exec->cli->path, exec->info.weights);
    else
        cli_help("%s names no weights file; --weights=FILE says where it is.", exec->cli->path);
    return FUSEC_FILE;
}

static fusec_status fail_no_values(const Exec *exec, const char *param) {
    cli_fail(exec->cli, FUSEC_INPUT, "param %s has no values, and %s names no weights file", param,
             exec->cli->path);
    cli_help("--input=%s=@FILE.npy gives the values of one param, --weights=FILE those of all; "
             "bench and verify draw random ones.",
             param);
    return FUSEC_INPUT;
}

/* Says once that the params are random, and why; `path` is the missing file, or NULL. */
static void tell_random_params(Cli *cli, const char *path) {
    if (!cli->told_of_weights && path)
        fprintf(stderr, "fusec: %s is not there (--weights says where); its params are random\n",
                path);
    if (!cli->told_of_weights && !path)
        fprintf(stderr,
                "fusec: params are random, from --seed=%" PRIu64
                " (--weights or --input gives values)\n",
                cli->seed);
    cli->told_of_weights = true;
}

/* Decides whether and which weights file is read. Commands that only measure or compare use random
 * params if there is no such file. */
static fusec_status choose_weights(Exec *exec, frt_program_options *options) {
    Cli *cli = exec->cli;
    const char *path = weights_path(exec);
    options->no_weights = true;
    if (!path && cli->weights)
        return cli_fail(cli, FUSEC_INPUT,
                        "%s names no weights file to be found in %s; --weights wants the file",
                        cli->path, cli->weights);
    const ExecTensor *param = param_not_given(exec);
    if (!param) return FUSEC_OK;
    if (!path && cli->command == CLI_RUN) return fail_no_values(exec, param->info.name);
    bool is_there = path && access(path, R_OK) == 0;
    if (path && !is_there && (cli->command == CLI_RUN || cli->weights))
        return fail_weights(exec, path);
    if (!is_there) tell_random_params(cli, path);
    exec->has_weights = is_there;
    options->no_weights = !is_there;
    options->weights_path = path;
    return FUSEC_OK;
}

/* Creates the program and sets the params that files give. */
static fusec_status make_program(Exec *exec) {
    Cli *cli = exec->cli;
    frt_error error = FRT_ERROR_INIT;
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.n_threads = cli->n_threads;
    options.cuda_lookup = cli->cuda_lookup;
    options.in_order = cli->in_order;
    options.cache = cli->cache;
    options.load_all = cli->load_all;
    options.cpu_level = cli->level;
    fusec_status status = choose_weights(exec, &options);
    if (status) return status;
    if (frt_program_create(exec->module, exec->graph_info.name, &options, &exec->program, &error))
        return cli_fail_frt(cli, &error);
    return give_read_params(exec);
}

fusec_status exec_start(Exec *exec, int64_t wanted_dim, bool tells) {
    frt_error error = FRT_ERROR_INIT;
    fusec_status status = make_program(exec);
    if (!status) status = choose_dims(exec, wanted_dim, tells);
    if (status) return status;
    if (frt_exec_create(exec->program, &exec->exec, &error)) return cli_fail_frt(exec->cli, &error);
    if (exec->cli->replay && frt_exec_keep_graph(exec->exec, true, &error))
        return cli_fail_frt(exec->cli, &error);
    for (int32_t i = 0; i < exec->info.n_dims; i++)
        if (exec->dim_is_set[i] &&
            frt_set_dim(exec->exec, exec->dims[i].name, exec->dim_values[i], &error))
            return cli_fail_frt(exec->cli, &error);
    for (uint32_t i = 0; i < exec->n_tensors && !status; i++)
        status = place_tensor(exec, &exec->tensors[i]);
    return status ? status : exec_fill(exec, DATA_RANDOM);
}

fusec_status exec_run(Exec *exec) {
    frt_error error = FRT_ERROR_INIT;
    if (frt_run(exec->exec, NULL, &error) || frt_sync(exec->program, NULL, &error))
        return cli_fail_frt(exec->cli, &error);
    for (uint32_t i = 0; i < exec->n_tensors; i++) {
        ExecTensor *tensor = &exec->tensors[i];
        if (tensor->info.role == FRT_OUTPUT &&
            frt_copy_from_device(exec->program, tensor->host, tensor->device, tensor->n_bytes,
                                 &error))
            return cli_fail_frt(exec->cli, &error);
    }
    return FUSEC_OK;
}
