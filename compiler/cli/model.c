/* ONNX models as sources, and `fusec import`. */
#define _DEFAULT_SOURCE /* MAP_PRIVATE with mmap in all libraries */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool cli_is_onnx(const char *path) {
    size_t n = strlen(path), n_end = strlen(".onnx");
    return n > n_end && strcmp(path + n - n_end, ".onnx") == 0;
}

const char *cli_weights_name(Cli *cli, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t n = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    return str_format(cli->arena, "%.*s.safetensors", (int)n, name);
}

/* `name` in the folder of `path`. */
static const char *in_folder_of(Cli *cli, const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    return str_format(cli->arena, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, name);
}

static bool is_to_file(const Cli *cli) {
    return cli->output && strcmp(cli->output, "-") != 0;
}

/* The weights file beside an output. */
static const char *weights_place(Cli *cli, const char *path) {
    return in_folder_of(cli, path, cli_weights_name(cli, path));
}

/* The bytes of a file, which are not copied; they stay until the program ends. */
static fusec_status map_file(Cli *cli, const char *path, Bytes *bytes) {
    struct stat info;
    int file;
    *bytes = (Bytes){(const uint8_t *)"", 0};
    fusec_status status = cli_open(cli, path, &file);
    if (status) return status;
    bool is_regular = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
    void *at = MAP_FAILED;
    if (is_regular && info.st_size > 0)
        at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (is_regular && info.st_size == 0) return FUSEC_OK;
    if (at == MAP_FAILED)
        return cli_fail(cli, FUSEC_FILE, "cannot read %s: %s", path,
                        is_regular ? strerror(errno) : "it is no regular file");
    *bytes = (Bytes){at, (size_t)info.st_size};
    return FUSEC_OK;
}

/* A file of external data. The import asks for none outside of the model's folder. */
typedef struct ExternalFile {
    const char *location, *path;
    Bytes bytes;
} ExternalFile;

typedef struct External {
    Cli *cli;
    Vec(ExternalFile) files;
} External;

/* Whether a file is in a folder, or below, where links lead nowhere else. `beside`: a file of the
 * folder. */
static bool is_in_folder(const char *file, const char *beside) {
    const char *slash = strrchr(beside, '/');
    size_t n = slash ? (size_t)(slash - beside) : 0;
    return strncmp(file, beside, n + 1) == 0;
}

/* Whether the data lie in the model's folder: in that of its name, or of the file that a link of
 * this name leads to, as in caches of models. */
static bool is_beside_model(Cli *cli, const char *path) {
    char *folder = realpath(in_folder_of(cli, cli->path, "."), NULL);
    char *model = realpath(cli->path, NULL), *data = realpath(path, NULL);
    const char *named = str_format(cli->arena, "%s/", folder ? folder : "");
    bool is_inside =
        folder && model && data && (is_in_folder(data, named) || is_in_folder(data, model));
    bool is_missing = !data;
    free(folder);
    free(model);
    free(data);
    return is_inside || is_missing;
}

static bool map_external(void *user, const char *location, Bytes *bytes) {
    External *external = user;
    for (uint32_t i = 0; i < external->files.n; i++)
        if (strcmp(external->files.data[i].location, location) == 0) {
            *bytes = external->files.data[i].bytes;
            return true;
        }
    Cli *cli = external->cli;
    const char *path = in_folder_of(cli, cli->path, location);
    if (!is_beside_model(cli, path)) {
        cli_fail(cli, FUSEC_FILE, "%s leads out of the folder of %s", path, cli->path);
        return false;
    }
    if (map_file(cli, path, bytes)) return false;
    vec_push(cli->arena, &external->files, ((ExternalFile){location, path, *bytes}));
    return true;
}

/* No output may replace the model's data, nor be one file with the weights beside it. */
static fusec_status check_written(Cli *cli, const External *external) {
    if (!is_to_file(cli)) return FUSEC_OK;
    const char *weights = weights_place(cli, cli->output);
    if (cli_is_same_file(cli, cli->output, weights))
        return cli_fail(cli, FUSEC_USAGE, "%s is the name of the weights beside it", cli->output);
    for (uint32_t i = 0; i < external->files.n; i++) {
        const char *data = external->files.data[i].path;
        if (cli_is_same_file(cli, cli->output, data) || cli_is_same_file(cli, weights, data))
            return cli_fail(cli, FUSEC_USAGE, "an output would replace %s, the data of %s", data,
                            cli->path);
    }
    return FUSEC_OK;
}

/* The constants of the command line, with their files. */
static fusec_status read_constants(Cli *cli, OnnxSource *source) {
    OnnxConstant *constants = arena_array(cli->arena, OnnxConstant, cli->constants.n + 1);
    source->constants = constants;
    for (uint32_t i = 0; i < cli->constants.n; i++) {
        CliPair pair = cli->constants.data[i];
        constants[i] = (OnnxConstant){.name = pair.name, .text = pair.value};
        source->n_constants++;
        if (pair.value[0] != '@') continue;
        constants[i].text = NULL;
        fusec_status status = map_file(cli, pair.value + 1, &constants[i].file);
        if (status) return status;
    }
    return FUSEC_OK;
}

/* A number of at most 18 digits; NULL: the text does not begin with one. */
static const char *read_number(const char *text, int64_t *value) {
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 18) return NULL;
    *value = strtoll(text, NULL, 10);
    return text + n;
}

/* `224`, `64..1024`, or `64..1024:32`, the multiples of 32 in a range. */
static bool read_range(const char *text, OnnxRange *range) {
    const char *at = read_number(text, &range->least);
    range->most = range->least;
    range->multiple = 1;
    if (!at || !*at) return at != NULL;
    at = strncmp(at, "..", 2) == 0 ? read_number(at + 2, &range->most) : NULL;
    if (!at || !*at) return at && range->least <= range->most;
    at = *at == ':' ? read_number(at + 1, &range->multiple) : NULL;
    return at && !*at && range->multiple > 0 && range->least <= range->most;
}

/* The ranges of dims. A compilation that prices at --dim leaves the dims of the model as they are.
 */
static fusec_status read_ranges(Cli *cli, OnnxSource *source) {
    OnnxRange *ranges = arena_array(cli->arena, OnnxRange, cli->dims.n + 1);
    if (cli->command != CLI_IMPORT) return FUSEC_OK;
    source->ranges = ranges;
    for (uint32_t i = 0; i < cli->dims.n; i++) {
        CliPair pair = cli->dims.data[i];
        ranges[i].name = pair.name;
        source->n_ranges++;
        if (!read_range(pair.value, &ranges[i]))
            return cli_fail(cli, FUSEC_USAGE,
                            "--dim=%s wants a number, or a range as 64..1024 or "
                            "64..1024:32, not `%s`",
                            pair.name, pair.value);
    }
    return FUSEC_OK;
}

fusec_status cli_read_onnx(Cli *cli, const char *weights, char **text, size_t *n_bytes) {
    External external = {.cli = cli};
    OnnxSource source = {.name = cli->path, .external = map_external, .user = &external};
    Diags diags = {.arena = cli->arena};
    Text printed = {.arena = cli->arena}, messages = {.arena = cli->arena};
    fusec_status status = map_file(cli, cli->path, &source.file);
    if (!status) status = read_constants(cli, &source);
    if (!status) status = read_ranges(cli, &source);
    if (status) return status;
    cli->model = onnx_import(cli->arena, strtab_new(cli->arena), &diags, &source, weights);
    diag_print(&diags, &messages);
    fputs(text_str(&messages), stderr);
    if (!cli->model) return FUSEC_INPUT;
    status = check_written(cli, &external);
    if (status) return status;
    module_print(cli->model->module, &printed);
    text_puts(&printed, "");
    *text = printed.data;
    *n_bytes = printed.n_bytes;
    return FUSEC_OK;
}

fusec_status cli_write_weights(Cli *cli, const char *path) {
    const OnnxImport *model = cli->model;
    Text head = {.arena = cli->arena};
    if (!model->weights.n) return FUSEC_OK;
    CliBytes *parts = arena_array(cli->arena, CliBytes, model->weights.n + 1);
    onnx_weights_header(model, &head);
    parts[0] = (CliBytes){head.data, head.n_bytes};
    for (uint32_t i = 0; i < model->weights.n; i++)
        parts[i + 1] =
            (CliBytes){model->weights.data[i].bytes.data, model->weights.data[i].bytes.n};
    return cli_write_parts(cli, weights_place(cli, path), model->weights.n + 1, parts);
}

fusec_status cli_import(Cli *cli) {
    char *text;
    size_t n_bytes;
    bool is_file = is_to_file(cli);
    if (!cli_is_onnx(cli->path))
        return cli_fail(cli, FUSEC_USAGE, "import wants a model whose name ends with .onnx, not %s",
                        cli->path);
    if (is_file && cli_is_same_file(cli, cli->output, cli->path))
        return cli_fail(cli, FUSEC_USAGE, "the output would replace the source %s", cli->path);
    const char *named = is_file ? cli->output : cli->path;
    fusec_status status = cli_read_onnx(cli, cli_weights_name(cli, named), &text, &n_bytes);
    if (!status && is_file) status = cli_write_weights(cli, cli->output);
    if (status) return status;
    return cli_write(cli, is_file ? cli->output : "-", text, n_bytes, false);
}
