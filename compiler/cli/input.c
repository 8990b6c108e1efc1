/* Arrays of --input. A .npy file is read as far as its header says, so an endless or a huge file
 * costs no more than a good one. */
#include "cli/exec.h"
#include "interp/npy.h"

#include <errno.h>
#include <unistd.h>

/* The type as in the source: "f32[B, 64]". */
static const char *declared_type(const Exec *exec, const ExecTensor *tensor) {
    Text type = {.arena = exec->cli->arena};
    text_printf(&type, "%s[", frt_dtype_name(tensor->info.dtype));
    for (int32_t axis = 0; axis < tensor->info.rank; axis++) {
        char text[FRT_MAX_NAME_BYTES + 1];
        frt_module_extent_text(exec->module, exec->graph, tensor->index, axis, text, sizeof text);
        text_printf(&type, "%s%s", axis ? ", " : "", text);
    }
    text_puts(&type, "]");
    return text_str(&type);
}

static fusec_status fail_array(const Exec *exec, const ExecTensor *tensor, const char *path,
                               const NpyArray *array) {
    cli_fail(exec->cli, FUSEC_INPUT, "%s is %s of rank %d, but %s holds %s of rank %u",
             tensor->info.name, frt_dtype_name(tensor->info.dtype), (int)tensor->info.rank, path,
             dtype_name(array->dtype), array->rank);
    cli_help("Save an array of %s; NumPy's `astype` and `reshape` make one.",
             declared_type(exec, tensor));
    return FUSEC_INPUT;
}

static fusec_status fail_use(const Exec *exec, const char *path, const char *why) {
    return cli_fail(exec->cli, FUSEC_INPUT, "cannot use %s: %s", path, why);
}

/* Reads until `n_bytes` are there or the file ends. */
static fusec_status read_some(const Exec *exec, const char *path, int file, char *bytes,
                              size_t n_bytes, size_t *n_read) {
    *n_read = 0;
    while (*n_read < n_bytes) {
        ssize_t got = read(file, bytes + *n_read, n_bytes - *n_read);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return cli_fail(exec->cli, FUSEC_FILE, "cannot read %s: %s", path, strerror(errno));
        if (got == 0) break;
        *n_read += (size_t)got;
    }
    return FUSEC_OK;
}

/* Refuses an array that the tensor cannot hold, before its elements are read. */
static fusec_status check_header(const Exec *exec, const ExecTensor *tensor, const char *path,
                                 const NpyArray *array) {
    enum { MAX_MIB = 2048 };
    if (!dtype_in(exec_tensor_dtype(tensor), array->dtypes) ||
        (int32_t)array->rank != tensor->info.rank)
        return fail_array(exec, tensor, path, array);
    if (array->n_bytes >> 20 < MAX_MIB) return FUSEC_OK;
    return cli_fail(exec->cli, FUSEC_FILE,
                    "%s has %zu bytes of elements by its shape; an array may have less than %d MiB",
                    path, array->n_bytes, MAX_MIB);
}

/* Reads the elements, of which n_begun bytes lie at array->bytes, and sees the file end there. */
static fusec_status read_elements(Exec *exec, ExecTensor *tensor, const char *path, int file,
                                  const NpyArray *array, size_t n_begun) {
    Arena *arena = exec->cli->arena;
    size_t n = n_begun, n_rest, n_wanted = array->n_bytes + 1;
    char *bytes = arena_try_alloc(arena, n_wanted);
    if (!bytes) return exec_fail_too_large(exec, tensor->info.name, array->n_bytes);
    if (n > n_wanted) n = n_wanted;
    memcpy(bytes, array->bytes, n);
    fusec_status status = read_some(exec, path, file, bytes + n, n_wanted - n, &n_rest);
    if (status) return status;
    n += n_rest;
    if (n != array->n_bytes)
        return fail_use(exec, path,
                        str_format(arena, "its shape needs %zu bytes of elements, but it has %s%zu",
                                   array->n_bytes, n > array->n_bytes ? "at least " : "", n));
    memcpy(tensor->dims, array->dims, sizeof tensor->dims);
    tensor->n_bytes = n;
    tensor->host = (uint8_t *)bytes;
    tensor->is_given = true;
    return FUSEC_OK;
}

static fusec_status read_array(Exec *exec, ExecTensor *tensor, const char *path, int file) {
    char *head = arena_alloc(exec->cli->arena, NPY_HEAD_BYTES);
    size_t n_head;
    NpyArray array;
    const char *why;
    fusec_status status = read_some(exec, path, file, head, NPY_HEAD_BYTES, &n_head);
    if (!status) status = cli_check_pipe(exec->cli, path, file, n_head);
    if (status) return status;
    if (!npy_read_header(exec->cli->arena, head, n_head, &array, &why))
        return fail_use(exec, path, why);
    status = check_header(exec, tensor, path, &array);
    size_t n_begun = n_head - (size_t)((const char *)array.bytes - head);
    return status ? status : read_elements(exec, tensor, path, file, &array, n_begun);
}

fusec_status exec_read_inputs(Exec *exec) {
    Cli *cli = exec->cli;
    fusec_status status = FUSEC_OK;
    for (uint32_t i = 0; i < cli->inputs.n && !status; i++) {
        CliPair pair = cli->inputs.data[i];
        int file;
        ExecTensor *tensor = exec_find(exec, pair.name);
        if (!tensor || tensor->info.role == FRT_OUTPUT)
            return exec_fail_no_tensor(exec, "input or param", pair.name, false);
        status = cli_open(cli, pair.value, &file);
        if (status) return status;
        status = read_array(exec, tensor, pair.value, file);
        if (file != STDIN_FILENO) close(file);
    }
    return status;
}
