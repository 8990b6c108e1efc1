/* `fusec bench`: how long a run takes, and how much memory traffic that is per second. */
#include "cli_exec.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_RUNS = 5, MAX_RUNS = 10000, DEFAULT_DIM = 1024 };

typedef struct Report {
    int32_t n_runs;
    double median_us, min_us, p99_us; /* of one run */
    double n_bytes;                   /* read and written by all launches */
    double gb_per_s;
    frt_init_info init; /* before any run, and in none of the times */
} Report;

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static fusec_status time_runs(Exec *exec, int32_t n, float *ms) {
    frt_error error = FRT_ERROR_INIT;
    if (frt_time_runs(exec->exec, NULL, n, ms, &error)) return cli_fail_frt(exec->cli, &error);
    return FUSEC_OK;
}

/* Enough runs for half a second, between 20 and MAX_RUNS. */
static fusec_status choose_n_runs(Exec *exec, int32_t *n_runs) {
    float ms[WARM_RUNS];
    *n_runs = exec->cli->n_runs;
    fusec_status status = time_runs(exec, WARM_RUNS, ms);
    if (status || *n_runs) return status;
    qsort(ms, WARM_RUNS, sizeof *ms, by_value);
    double wanted = 500.0 / ((double)ms[WARM_RUNS / 2] + 1e-4);
    *n_runs = wanted < 20 ? 20 : wanted > MAX_RUNS ? MAX_RUNS : (int32_t)wanted;
    return FUSEC_OK;
}

/* Every tensor counted once per launch that touches it, as in the ledger. */
static fusec_status count_bytes(Exec *exec, double *total) {
    frt_error error = FRT_ERROR_INIT;
    *total = 0;
    for (int32_t s = 0; s < exec->graph_info.n_steps; s++) {
        FRT_INFO(frt_step_info, step);
        frt_module_get_step(exec->module, exec->graph, s, &step);
        for (int32_t i = 0; i < step.n_args && step.phase == FRT_PHASE_RUN; i++) {
            int64_t dims[FRT_MAX_RANK];
            FRT_INFO(frt_tensor_info, tensor);
            int32_t index = frt_module_step_arg(exec->module, exec->graph, s, i);
            frt_module_get_tensor(exec->module, exec->graph, index, &tensor);
            if (frt_module_eval_shape(exec->module, exec->graph, index, exec->dim_values, dims,
                                      &error))
                return cli_fail_frt(exec->cli, &error);
            double n_bytes = (double)frt_dtype_bytes(tensor.dtype);
            for (int32_t k = 0; k < tensor.rank; k++) n_bytes *= (double)dims[k];
            *total += n_bytes;
        }
    }
    return FUSEC_OK;
}

static fusec_status measure(Exec *exec, Report *report) {
    fusec_status status = choose_n_runs(exec, &report->n_runs);
    if (status) return status;
    size_t n = (size_t)report->n_runs;
    float *ms = arena_array(exec->cli->arena, float, n);
    status = time_runs(exec, report->n_runs, ms);
    if (!status) status = count_bytes(exec, &report->n_bytes);
    if (status) return status;
    report->init.struct_size = sizeof report->init;
    frt_program_get_init(exec->program, &report->init);
    qsort(ms, n, sizeof *ms, by_value);
    report->min_us = 1e3 * (double)ms[0];
    report->median_us = 1e3 * (double)ms[n / 2];
    report->p99_us = 1e3 * (double)ms[n * 99 / 100];
    report->gb_per_s = report->median_us > 0 ? report->n_bytes / report->median_us / 1e3 : 0;
    return FUSEC_OK;
}

static void print_text(const Exec *exec, const Report *report) {
    printf("graph    %s on %s", exec->graph_info.name, frt_device_name(exec->program));
    if (frt_program_n_threads(exec->program) > 1)
        printf(", %d threads", (int)frt_program_n_threads(exec->program));
    for (int32_t i = 0; i < exec->info.n_dims; i++)
        printf("%s%s = %lld", i ? ", " : "\ndims     ", exec->dims[i].name,
               (long long)exec->dim_values[i]);
    printf("\nlaunches %d\n", (int)exec->graph_info.n_launches);
    printf("time     median %.3f us, min %.3f us, p99 %.3f us, of %d runs\n", report->median_us,
           report->min_us, report->p99_us, (int)report->n_runs);
    printf("traffic  %.0f bytes, %.2f GB/s\n", report->n_bytes, report->gb_per_s);
    if (report->init.n_steps)
        printf("init     %d steps, once: %.3f ms, %zu bytes kept\n", (int)report->init.n_steps,
               report->init.ms, report->init.kept_bytes);
}

static fusec_status print_json(const Exec *exec, const Report *report) {
    json_t *root = json_object(), *dims = json_object();
    for (int32_t i = 0; i < exec->info.n_dims; i++)
        json_object_set_new(dims, exec->dims[i].name, json_integer(exec->dim_values[i]));
    json_object_set_new(root, "graph", json_string(exec->graph_info.name));
    json_object_set_new(root, "device", json_string(frt_device_name(exec->program)));
    json_object_set_new(root, "threads", json_integer(frt_program_n_threads(exec->program)));
    json_object_set_new(root, "target", json_string(exec->info.arch));
    json_object_set_new(root, "dims", dims);
    json_object_set_new(root, "launches", json_integer(exec->graph_info.n_launches));
    json_object_set_new(root, "runs", json_integer(report->n_runs));
    json_object_set_new(root, "median_us", json_real(report->median_us));
    json_object_set_new(root, "min_us", json_real(report->min_us));
    json_object_set_new(root, "p99_us", json_real(report->p99_us));
    json_object_set_new(root, "bytes", json_real(report->n_bytes));
    json_object_set_new(root, "gb_per_s", json_real(report->gb_per_s));
    json_object_set_new(root, "init_steps", json_integer(report->init.n_steps));
    json_object_set_new(root, "init_ms", json_real(report->init.ms));
    json_object_set_new(root, "init_bytes", json_integer((json_int_t)report->init.kept_bytes));
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(root);
    if (!text) return cli_fail(exec->cli, FUSEC_INTERNAL, "out of memory");
    puts(text);
    free(text);
    return FUSEC_OK;
}

fusec_status cli_bench(Cli *cli) {
    Exec exec;
    Report report = {0};
    fusec_status status = exec_open_path(cli, &exec);
    if (!status) status = exec_read_inputs(&exec);
    if (!status) status = exec_choose_dims(&exec, DEFAULT_DIM, false);
    if (!status) status = exec_start(&exec);
    if (!status) status = measure(&exec, &report);
    if (!status && cli->json)
        status = print_json(&exec, &report);
    else if (!status)
        print_text(&exec, &report);
    exec_close(&exec);
    return status;
}
