/* `fusec bench`: the time of a run and of its launches, the memory traffic per second, and warnings
 * about the measurement or the program. Runs are timed back to back on one set of data, so data
 * that fits in a cache is read from there. */
#include "cli/report.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    WARM_MS = 200,     /* least warm-up before timed runs */
    WANTED_MS = 3000,  /* time of all timed runs, unless --runs gives their number */
    MIN_RUNS = 10,     /* even if they take longer */
    MAX_RUNS = 20000,  /* even if they take less time */
    SAMPLE_RUNS = 50,  /* for the times of launches and of enqueuing */
    QUEUE_DEPTH = 512, /* launches that a driver queues before it blocks the caller */
    MAX_SPILLS = 3,    /* kernels named in a warning */
    DEFAULT_DIM = 1024
};
static const double ENQUEUE_BOUND = 0.8, UNSTABLE = 0.05;

/* Statistics in microseconds. */
typedef struct Spread {
    double min, mean, median, p90, p95, p99, max;
    double deviation; /* standard deviation over the mean */
} Spread;

/* One step of the graph's run phase. */
typedef struct StepReport {
    frt_step_info info;
    frt_variant_info variant; /* of an executed launch */
    frt_kernel_info made;
    double us, n_bytes;
    CliExpected expected; /* all 0: the artifact was not compiled here */
} StepReport;

typedef struct Report {
    int32_t n_runs;
    Spread run;
    double wall_s;                             /* of all timed runs */
    double enqueue_us;                         /* median of one run; CUDA only */
    double in_bytes, in_us, out_bytes, out_us; /* copies to the device and back, once; CUDA only */
    double n_bytes;                            /* read and written by all launches */
    double gb_per_s;
    CliExpected expected; /* of all launches together */
    StepReport *steps;
    uint32_t n_steps;
    const char *warnings[2 + MAX_SPILLS];
    uint32_t n_warnings;
    frt_init_info init; /* before the runs, and outside their times */
    frt_load_info load; /* before the runs, and outside their times */
} Report;

static bool is_cuda(const Exec *exec) {
    switch (exec->info.target) {
    case FRT_TARGET_KIND_CUDA:
        return true;
    case FRT_TARGET_KIND_CPU:
        return false;
    }
    return false;
}

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* Statistics. */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts `us`. */
static Spread spread_of(double *us, size_t n) {
    double sum = 0, squares = 0;
    qsort(us, n, sizeof *us, by_value);
    for (size_t i = 0; i < n; i++) sum += us[i];
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) squares += (us[i] - mean) * (us[i] - mean);
    return (Spread){.min = us[0],
                    .mean = mean,
                    .median = us[n / 2],
                    .p90 = us[n * 90 / 100],
                    .p95 = us[n * 95 / 100],
                    .p99 = us[n * 99 / 100],
                    .max = us[n - 1],
                    .deviation = mean > 0 ? sqrt(squares / (double)n) / mean : 0};
}

/* Measuring. */

static fusec_status time_runs(Exec *exec, int32_t n, double *us) {
    frt_error error = FRT_ERROR_INIT;
    float *ms = arena_array(exec->cli->arena, float, (size_t)n);
    if (frt_time_runs(exec->exec, NULL, n, ms, &error)) return cli_fail_frt(exec->cli, &error);
    for (int32_t i = 0; i < n; i++) us[i] = 1e3 * (double)ms[i];
    return FUSEC_OK;
}

/* Runs for at least WARM_MS, and computes the number of runs to time. */
static fusec_status warm_up(Exec *exec, int32_t *n_runs) {
    double us[SAMPLE_RUNS], median = 0, begin = now_us();
    int32_t n = 1;
    do {
        fusec_status status = time_runs(exec, n, us);
        if (status) return status;
        median = spread_of(us, (size_t)n).median;
        n = SAMPLE_RUNS;
        if (median * n > 1e3 * WARM_MS) n = 1 + (int32_t)(1e3 * WARM_MS / median);
    } while (now_us() - begin < 1e3 * WARM_MS);
    double wanted = 1e3 * WANTED_MS / (median + 1e-3);
    *n_runs = exec->cli->n_runs   ? exec->cli->n_runs
              : wanted < MIN_RUNS ? MIN_RUNS
              : wanted > MAX_RUNS ? MAX_RUNS
                                  : (int32_t)wanted;
    return FUSEC_OK;
}

/* Times the caller's part of a run. It empties the queue often enough that the driver never
 * blocks. */
static fusec_status time_enqueue(Exec *exec, Report *report) {
    double us[SAMPLE_RUNS];
    frt_error error = FRT_ERROR_INIT;
    int32_t per_wait = QUEUE_DEPTH / (exec->graph_info.n_steps + 1) + 1;
    for (int32_t i = 0; i < SAMPLE_RUNS; i++) {
        if (i % per_wait == 0 && frt_sync(exec->program, NULL, &error))
            return cli_fail_frt(exec->cli, &error);
        double begin = now_us();
        if (frt_run(exec->exec, NULL, &error)) return cli_fail_frt(exec->cli, &error);
        us[i] = now_us() - begin;
    }
    if (frt_sync(exec->program, NULL, &error)) return cli_fail_frt(exec->cli, &error);
    report->enqueue_us = spread_of(us, SAMPLE_RUNS).median;
    return FUSEC_OK;
}

/* Times copies of all inputs to the device and of all outputs back, from and to pageable memory. */
static fusec_status time_copies(Exec *exec, Report *report) {
    frt_error error = FRT_ERROR_INIT;
    for (uint32_t i = 0; i < exec->n_tensors; i++) {
        ExecTensor *tensor = &exec->tensors[i];
        if (tensor->info.role == FRT_PARAM) continue;
        bool is_in = tensor->info.role == FRT_INPUT;
        double begin = now_us();
        frt_status status = is_in ? frt_copy_to_device(exec->program, tensor->device, tensor->host,
                                                       tensor->n_bytes, &error)
                                  : frt_copy_from_device(exec->program, tensor->host,
                                                         tensor->device, tensor->n_bytes, &error);
        if (status) return cli_fail_frt(exec->cli, &error);
        *(is_in ? &report->in_us : &report->out_us) += now_us() - begin;
        *(is_in ? &report->in_bytes : &report->out_bytes) += (double)tensor->n_bytes;
    }
    return FUSEC_OK;
}

/* Bytes of a tensor. If it is a padded copy that was not made, bytes of the tensor used instead. */
static fusec_status tensor_bytes(Exec *exec, int32_t index, double *n_bytes) {
    int64_t dims[FRT_MAX_RANK];
    frt_error error = FRT_ERROR_INIT;
    FRT_INFO(frt_tensor_info, tensor);
    frt_module_get_tensor(exec->module, exec->graph, index, &tensor);
    if (frt_module_eval_shape(exec->module, exec->graph, index, exec->dim_values, dims, &error))
        return cli_fail_frt(exec->cli, &error);
    *n_bytes = (double)frt_dtype_bytes(tensor.dtype);
    for (int32_t k = 0; k < tensor.rank; k++) *n_bytes *= (double)dims[k];
    return tensor.stands_for >= 0 && *n_bytes <= 0 ? tensor_bytes(exec, tensor.stands_for, n_bytes)
                                                   : FUSEC_OK;
}

/* Counts each tensor once per launch that reads or writes it, as the ledger does. */
static fusec_status count_bytes(Exec *exec, int32_t step, StepReport *report) {
    for (int32_t i = 0; i < report->info.n_args; i++) {
        double n_bytes;
        int32_t index = frt_module_step_arg(exec->module, exec->graph, step, i);
        fusec_status status = tensor_bytes(exec, index, &n_bytes);
        if (status) return status;
        report->n_bytes += n_bytes;
    }
    return FUSEC_OK;
}

static fusec_status describe_step(Exec *exec, int32_t step, float ms, StepReport *report) {
    frt_error error = FRT_ERROR_INIT;
    report->us = 1e3 * (double)ms;
    /* A step with time 0 was a copy that was not needed. */
    fusec_status status = ms > 0 ? count_bytes(exec, step, report) : FUSEC_OK;
    int32_t variant = frt_exec_variant(exec->exec, step);
    if (status || variant < 0) return status;
    frt_module_get_variant(exec->module, exec->graph, step, variant, &report->variant);
    if (frt_program_get_kernel(exec->program, step, variant, &report->made, &error))
        return cli_fail_frt(exec->cli, &error);
    return FUSEC_OK;
}

static fusec_status time_steps(Exec *exec, Report *report) {
    frt_error error = FRT_ERROR_INIT;
    int32_t n_steps = exec->graph_info.n_steps;
    int32_t n = report->n_runs < SAMPLE_RUNS ? report->n_runs : SAMPLE_RUNS;
    float *ms = arena_array(exec->cli->arena, float, (size_t)n_steps);
    report->steps = arena_array(exec->cli->arena, StepReport, (size_t)n_steps);
    if (frt_time_launches(exec->exec, NULL, n, ms, &error)) return cli_fail_frt(exec->cli, &error);
    for (int32_t i = 0; i < n_steps; i++) {
        StepReport step = {.info = {.struct_size = sizeof step.info},
                           .variant = {.struct_size = sizeof step.variant},
                           .made = {.struct_size = sizeof step.made}};
        frt_module_get_step(exec->module, exec->graph, i, &step.info);
        if (step.info.phase != FRT_PHASE_RUN) continue;
        fusec_status status = describe_step(exec, i, ms[i], &step);
        if (status) return status;
        report->n_bytes += step.n_bytes;
        report->steps[report->n_steps++] = step;
    }
    return FUSEC_OK;
}

static fusec_status measure(Exec *exec, Report *report) {
    fusec_status status = warm_up(exec, &report->n_runs);
    if (status) return status;
    double *us = arena_array(exec->cli->arena, double, (size_t)report->n_runs);
    double begin = now_us();
    status = time_runs(exec, report->n_runs, us);
    report->wall_s = 1e-6 * (now_us() - begin);
    if (!status) status = time_steps(exec, report);
    if (!status && is_cuda(exec)) status = time_enqueue(exec, report);
    if (!status && is_cuda(exec)) status = time_copies(exec, report);
    if (status) return status;
    report->init.struct_size = sizeof report->init;
    frt_program_get_init(exec->program, &report->init);
    report->load.struct_size = sizeof report->load;
    frt_program_get_load(exec->program, &report->load);
    report->run = spread_of(us, (size_t)report->n_runs);
    double median = report->run.median;
    report->gb_per_s = median > 0 ? report->n_bytes / median / 1e3 : 0;
    return FUSEC_OK;
}

/* Warnings that follow from the numbers. */

static void warn(const Exec *exec, Report *report) {
    Arena *arena = exec->cli->arena;
    const Spread *run = &report->run;
    if (report->enqueue_us > ENQUEUE_BOUND * run->median)
        report->warnings[report->n_warnings++] = str_format(
            arena,
            "enqueuing a run takes %.3f us of the CPU's time, and a run %.3f us: the device may be "
            "waiting for launches; capture the run into a CUDA graph",
            report->enqueue_us, run->median);
    if (run->deviation > UNSTABLE)
        report->warnings[report->n_warnings++] = str_format(
            arena,
            "run time is unstable, coefficient of variance %.1f %%: take the median, on an "
            "idle machine",
            100 * run->deviation);
    int n_spills = 0;
    for (uint32_t i = 0; i < report->n_steps && n_spills < MAX_SPILLS; i++) {
        const StepReport *step = &report->steps[i];
        const char *complaint = registers_complaint(exec, step->variant.symbol, &step->made);
        if (!complaint) continue;
        n_spills++;
        report->warnings[report->n_warnings++] = complaint;
    }
}

/* Output. */

/* Prints `-` for an unknown number. */
static void print_known(int width, int n_digits, double value) {
    if (value > 0)
        printf(" %*.*f", width, n_digits, value);
    else
        printf(" %*s", width, "-");
}

static void print_steps(const Exec *exec, const Report *report) {
    double sum = 0;
    for (uint32_t i = 0; i < report->n_steps; i++) sum += report->steps[i].us;
    printf("\n%12s %6s %10s %10s %7s %10s%s  %s\n", "us", "%", "GB/s", "GFLOP/s", "limit %",
           "expected", is_cuda(exec) ? " registers  about local shared" : "", "launch");
    for (uint32_t i = 0; i < report->n_steps; i++) {
        const StepReport *step = &report->steps[i];
        const CliExpected *expected = &step->expected;
        printf("%12.3f %6.1f %10.2f", step->us, sum > 0 ? 100 * step->us / sum : 0,
               step->us > 0 ? step->n_bytes / step->us / 1e3 : 0);
        print_known(10, 1, step->us > 0 ? expected->n_flops / step->us / 1e3 : 0);
        print_known(7, 1, step->us > 0 ? 100 * expected->limit_us / step->us : 0);
        print_known(10, 3, expected->us);
        if (is_cuda(exec))
            printf(" %9d %6u %5d %6d", (int)step->made.n_registers,
                   registers_estimated(exec, step->variant.symbol), (int)step->made.local_bytes,
                   (int)step->made.shared_bytes);
        printf("  %s", step->variant.symbol ? step->variant.symbol : step->info.label);
        if (step->info.line) printf(" (line %d)", (int)step->info.line);
        putchar('\n');
    }
}

static void print_expected(const Report *report) {
    const CliExpected *expected = &report->expected;
    double median = report->run.median;
    if (expected->n_flops > 0)
        printf("matmuls  %.0f operations, %.1f GFLOP/s\n", expected->n_flops,
               median > 0 ? expected->n_flops / median / 1e3 : 0);
    if (expected->us > 0) printf("expected %.3f us", expected->us);
    if (expected->limit_us > 0 && median > 0)
        printf("; at the rates of memory and arithmetic %.3f us: %.1f %% of the limit",
               expected->limit_us, 100 * expected->limit_us / median);
    if (expected->us > 0) printf("\n");
}

static void print_device(const Exec *exec) {
    FRT_INFO(frt_device_info, device);
    frt_program_get_device(exec->program, &device);
    printf("graph    %s on %s", exec->graph_info.name, frt_device_name(exec->program));
    if (is_cuda(exec))
        printf(", %d multiprocessors at %d MHz at most, CUDA %d.%d", (int)device.n_processors,
               (int)device.clock_mhz, (int)(device.driver_version / 1000),
               (int)(device.driver_version % 1000 / 10));
    if (frt_program_n_threads(exec->program) > 1)
        printf(", %d threads", (int)frt_program_n_threads(exec->program));
}

static void print_text(const Exec *exec, const Report *report) {
    const Spread *run = &report->run;
    print_device(exec);
    const char *level = frt_program_level(exec->program);
    printf("\ntarget   %s", exec->info.arch);
    if (level) printf(", level %s", level);
    printf(", %s numerics, compiled by fusec %s", exec->info.numerics, exec->info.compiler);
    for (int32_t i = 0; i < exec->info.n_dims; i++)
        printf("%s%s = %lld", i ? ", " : "\ndims     ", exec->dims[i].name,
               (long long)exec->dim_values[i]);
    printf("\nlaunches %d\n", (int)exec->graph_info.n_launches);
    printf("runs     %d in %.3f s, %.1f a second\n", (int)report->n_runs, report->wall_s,
           report->wall_s > 0 ? report->n_runs / report->wall_s : 0);
    printf("time     median %.3f us, min %.3f, mean %.3f, max %.3f, p90 %.3f, p95 %.3f, p99 %.3f\n",
           run->median, run->min, run->mean, run->max, run->p90, run->p95, run->p99);
    printf("traffic  %.0f bytes, %.2f GB/s\n", report->n_bytes, report->gb_per_s);
    print_expected(report);
    if (is_cuda(exec)) {
        printf("enqueue  median %.3f us\n", report->enqueue_us);
        printf("copies   %.0f bytes in %.3f us to the device, %.0f bytes in %.3f us from it\n",
               report->in_bytes, report->in_us, report->out_bytes, report->out_us);
    }
    printf("load     %.3f ms, %d of %d kernels%s%s\n", report->load.ms, (int)report->load.n_loaded,
           (int)report->load.n_kernels, report->load.is_compiled ? ", compiled by the driver" : "",
           !report->load.is_cached    ? ""
           : report->load.is_compiled ? " and kept"
                                      : ", from the cache");
    if (report->init.n_steps)
        printf("init     %d steps, once: %.3f ms, %zu bytes kept\n", (int)report->init.n_steps,
               report->init.ms, report->init.kept_bytes);
    print_steps(exec, report);
}

static void put_expected(json_t *row, const CliExpected *expected) {
    if (expected->us <= 0) return;
    json_object_set_new(row, "flops", json_real(expected->n_flops));
    json_object_set_new(row, "expected_us", json_real(expected->us));
    if (expected->limit_us > 0) json_object_set_new(row, "limit_us", json_real(expected->limit_us));
}

static void put_device(json_t *root, const Exec *exec) {
    FRT_INFO(frt_device_info, device);
    frt_program_get_device(exec->program, &device);
    json_object_set_new(root, "device", json_string(frt_device_name(exec->program)));
    if (!is_cuda(exec)) return;
    json_object_set_new(root, "driver_version", json_integer(device.driver_version));
    json_object_set_new(root, "multiprocessors", json_integer(device.n_processors));
    json_object_set_new(root, "clock_mhz", json_integer(device.clock_mhz));
}

static json_t *steps_json(const Exec *exec, const Report *report) {
    json_t *steps = json_array();
    for (uint32_t i = 0; i < report->n_steps; i++) {
        const StepReport *step = &report->steps[i];
        json_t *row = json_object();
        json_object_set_new(row, "label", json_string(step->info.label));
        json_object_set_new(row, "line", json_integer(step->info.line));
        if (step->variant.symbol)
            json_object_set_new(row, "kernel", json_string(step->variant.symbol));
        json_object_set_new(row, "us", json_real(step->us));
        json_object_set_new(row, "bytes", json_real(step->n_bytes));
        put_expected(row, &step->expected);
        json_array_append_new(steps, row);
        if (!is_cuda(exec)) continue;
        json_object_set_new(row, "registers", json_integer(step->made.n_registers));
        uint32_t estimated = registers_estimated(exec, step->variant.symbol);
        if (estimated) json_object_set_new(row, "estimated_registers", json_integer(estimated));
        json_object_set_new(row, "local_bytes", json_integer(step->made.local_bytes));
        json_object_set_new(row, "shared_bytes", json_integer(step->made.shared_bytes));
    }
    return steps;
}

static void put_times(json_t *root, const Exec *exec, const Report *report) {
    const Spread *run = &report->run;
    const struct {
        const char *name;
        double value;
        bool is_cuda;
    } rows[] = {
        {"wall_s", report->wall_s, false},
        {"median_us", run->median, false},
        {"min_us", run->min, false},
        {"mean_us", run->mean, false},
        {"max_us", run->max, false},
        {"p90_us", run->p90, false},
        {"p95_us", run->p95, false},
        {"p99_us", run->p99, false},
        {"coefficient_of_variance", run->deviation, false},
        {"bytes", report->n_bytes, false},
        {"gb_per_s", report->gb_per_s, false},
        {"enqueue_us", report->enqueue_us, true},
        {"in_bytes", report->in_bytes, true},
        {"in_us", report->in_us, true},
        {"out_bytes", report->out_bytes, true},
        {"out_us", report->out_us, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!rows[i].is_cuda || is_cuda(exec))
            json_object_set_new(root, rows[i].name, json_real(rows[i].value));
}

static fusec_status print_json(const Exec *exec, const Report *report) {
    json_t *root = json_object(), *dims = json_object(), *warnings = json_array();
    for (int32_t i = 0; i < exec->info.n_dims; i++)
        json_object_set_new(dims, exec->dims[i].name, json_integer(exec->dim_values[i]));
    json_object_set_new(root, "graph", json_string(exec->graph_info.name));
    put_device(root, exec);
    json_object_set_new(root, "threads", json_integer(frt_program_n_threads(exec->program)));
    json_object_set_new(root, "target", json_string(exec->info.arch));
    const char *level = frt_program_level(exec->program);
    if (level) json_object_set_new(root, "level", json_string(level));
    json_object_set_new(root, "numerics", json_string(exec->info.numerics));
    json_object_set_new(root, "compiler", json_string(exec->info.compiler));
    json_object_set_new(root, "dims", dims);
    json_object_set_new(root, "launches", json_integer(exec->graph_info.n_launches));
    json_object_set_new(root, "runs", json_integer(report->n_runs));
    put_times(root, exec, report);
    put_expected(root, &report->expected);
    json_object_set_new(root, "steps", steps_json(exec, report));
    for (uint32_t i = 0; i < report->n_warnings; i++)
        json_array_append_new(warnings, json_string(report->warnings[i]));
    json_object_set_new(root, "warnings", warnings);
    json_object_set_new(root, "load_ms", json_real(report->load.ms));
    json_object_set_new(root, "kernels", json_integer(report->load.n_kernels));
    json_object_set_new(root, "kernels_loaded", json_integer(report->load.n_loaded));
    json_object_set_new(root, "load_compiled", json_boolean(report->load.is_compiled));
    json_object_set_new(root, "load_cached", json_boolean(report->load.is_cached));
    json_object_set_new(root, "init_steps", json_integer(report->init.n_steps));
    json_object_set_new(root, "init_ms", json_real(report->init.ms));
    json_object_set_new(root, "init_bytes", json_integer((json_int_t)report->init.kept_bytes));
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(root);
    if (!text) return cli_fail_memory(exec->cli);
    puts(text);
    free(text);
    return FUSEC_OK;
}

static fusec_status tell(const Exec *exec, const Report *report) {
    if (exec->cli->json) return print_json(exec, report);
    print_text(exec, report);
    fflush(stdout);
    for (uint32_t i = 0; i < report->n_warnings; i++)
        fprintf(stderr, "fusec: warning: %s\n", report->warnings[i]);
    return FUSEC_OK;
}

static fusec_status bench(Exec *exec, Report *report) {
    fusec_status status = exec_read_inputs(exec);
    if (!status) status = exec_start(exec, DEFAULT_DIM, false);
    if (!status) status = measure(exec, report);
    if (!status) warn(exec, report);
    return status;
}

/* The page of --report. */

/* The times of launches; steps that copy are left out. */
static CliSide launch_times(const Exec *exec, const Report *report) {
    CliSide side = {.us = arena_array(exec->cli->arena, double, report->n_steps)};
    for (uint32_t i = 0; i < report->n_steps; i++)
        if (report->steps[i].info.n_variants > 0) side.us[side.n_launches++] = report->steps[i].us;
    return side;
}

static fusec_status write_page(CliPage *page, const Exec *exec, const Report *report) {
    Exec plain;
    Report of_plain = {0};
    fusec_status status = cli_page_open_plain(page, &plain);
    if (!status) status = bench(&plain, &of_plain);
    if (!status) {
        page->times = (CliTimes){.device = frt_device_name(exec->program),
                                 .graph = (uint32_t)exec->graph,
                                 .before = launch_times(&plain, &of_plain),
                                 .after = launch_times(exec, report)};
        status = cli_page_write(page, exec);
    }
    exec_close(&plain);
    return status;
}

/* Copies between tensors are steps, but not launches of the plan. */
static fusec_status note_expected(CliPage *page, const Exec *exec, Report *report) {
    CliExpected *launches;
    uint32_t n, n_seen = 0;
    fusec_status status = cli_page_expect(page, exec, &launches, &n);
    for (uint32_t i = 0; i < report->n_steps && !status; i++) {
        StepReport *step = &report->steps[i];
        if (step->info.n_variants == 0 || n_seen == n) continue;
        step->expected = launches[n_seen++];
        report->expected.n_flops += step->expected.n_flops;
        report->expected.us += step->expected.us;
        report->expected.limit_us += step->expected.limit_us;
    }
    return status;
}

fusec_status cli_bench(Cli *cli) {
    Exec exec;
    Report report = {0};
    CliPage page = {.cli = cli};
    fusec_status status = cli_page_open(&page, &exec);
    if (!status) status = bench(&exec, &report);
    if (!status) status = note_expected(&page, &exec, &report);
    if (!status) status = tell(&exec, &report);
    if (!status && cli->report) status = write_page(&page, &exec, &report);
    exec_close(&exec);
    cli_page_close(&page);
    return status;
}
