/* `fusec run`: one run, with inputs from files or random ones. */
#include "cli/exec.h"
#include "interp/npy.h"
#include "interp/tensor.h"

#include <stdio.h>

static fusec_status write_outputs(Exec *exec) {
    Cli *cli = exec->cli;
    for (uint32_t i = 0; i < cli->outputs.n; i++) {
        CliPair pair = cli->outputs.data[i];
        const ExecTensor *tensor = exec_find(exec, pair.name);
        NpyArray array = {.dtype = exec_tensor_dtype(tensor),
                          .rank = (uint32_t)tensor->info.rank,
                          .bytes = tensor->host,
                          .n_bytes = tensor->n_bytes};
        memcpy(array.dims, tensor->dims, sizeof array.dims);
        Text file = {.arena = cli->arena};
        npy_write(&array, &file);
        fusec_status status = cli_write(cli, pair.value, file.data, file.n_bytes, true);
        if (status) return status;
    }
    return FUSEC_OK;
}

/* `y: f32[2, 3] = 0.5, 1, ...` */
static void show_output(const ExecTensor *tensor) {
    enum { MAX_SHOWN = 8 };
    Dtype dtype = exec_tensor_dtype(tensor);
    size_t n = tensor->n_bytes / dtype_bytes(dtype);
    printf("%s: %s[", tensor->info.name, dtype_name(dtype));
    for (int32_t k = 0; k < tensor->info.rank; k++)
        printf("%s%lld", k ? ", " : "", (long long)tensor->dims[k]);
    printf("] =");
    for (size_t i = 0; i < n && i < MAX_SHOWN; i++) {
        const uint8_t *bytes = tensor->host + i * dtype_bytes(dtype);
        printf("%s ", i ? "," : "");
        if (dtype_is_float(dtype))
            printf("%.9g", dtype_load(dtype, bytes));
        else
            printf("%lld", (long long)dtype_load_int(dtype, bytes));
    }
    printf("%s\n", n > MAX_SHOWN ? ", ..." : "");
}

static fusec_status check_outputs(Exec *exec) {
    Cli *cli = exec->cli;
    for (uint32_t i = 0; i < cli->outputs.n; i++) {
        const ExecTensor *tensor = exec_find(exec, cli->outputs.data[i].name);
        if (!tensor || tensor->info.role != FRT_OUTPUT)
            return exec_fail_no_tensor(exec, "output", cli->outputs.data[i].name, true);
        for (uint32_t k = 0; k < i; k++)
            if (cli_is_same_file(cli, cli->outputs.data[k].value, cli->outputs.data[i].value))
                return cli_fail(cli, FUSEC_USAGE, "outputs %s and %s would both be %s",
                                cli->outputs.data[k].name, tensor->info.name,
                                cli->outputs.data[i].value);
    }
    return FUSEC_OK;
}

static void tell_random(const Exec *exec) {
    for (uint32_t i = 0; i < exec->n_tensors; i++) {
        const ExecTensor *tensor = &exec->tensors[i];
        if (tensor->info.role != FRT_INPUT || tensor->is_given) continue;
        fprintf(stderr, "fusec: random inputs from --seed=%llu\n",
                (unsigned long long)exec->cli->seed);
        return;
    }
}

/* Says which code ran, where that was to be chosen, or where --verbose asks. */
static void tell_level(const Exec *exec) {
    const char *level = frt_program_level(exec->program);
    if (level || exec->cli->verbose)
        fprintf(stderr, "fusec: ran code for %s\n", level ? level : exec->info.arch);
}

static fusec_status run(Exec *exec) {
    fusec_status status = exec_read_inputs(exec);
    if (!status) status = check_outputs(exec);
    if (!status) status = exec_start(exec, 32, true);
    if (status) return status;
    tell_random(exec);
    status = exec_run(exec);
    if (status) return status;
    tell_level(exec);
    for (uint32_t i = 0; i < exec->n_tensors && !exec->cli->outputs.n; i++)
        if (exec->tensors[i].info.role == FRT_OUTPUT) show_output(&exec->tensors[i]);
    return write_outputs(exec);
}

fusec_status cli_run(Cli *cli) {
    Exec exec;
    fusec_status status = exec_open_path(cli, &exec);
    if (!status) status = run(&exec);
    exec_close(&exec);
    return status;
}
