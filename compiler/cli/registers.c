/* Estimated registers of kernels, compared with the driver's numbers. See exec.h. */
#include "cli/exec.h"
#include "cost/pressure.h"
#include "plan/launch.h"

#include <stdio.h>

void registers_note(Cli *cli, const Driver *driver) {
    for (uint32_t g = 0; g < driver->planned->graphs.n; g++) {
        const Plan *plan = driver->plans[g];
        for (uint32_t i = 0; i < plan->launches.n; i++) {
            const Launch *launch = &plan->launches.data[i];
            const Kernel *first = launch_kernel(plan, launch, 0);
            for (uint32_t v = 0; v < first->n_variants; v++) {
                CliRegisters own = {.graph = str_format(cli->arena, "%s", plan->graph->name)};
                own.symbol = str_format(cli->arena, "%s", first->variants[v].symbol);
                for (uint32_t k = 0; k < launch->n; k++) {
                    const Kernel *kernel = launch_kernel(plan, launch, k);
                    uint32_t n = v < kernel->n_variants
                                     ? pressure_registers(driver->scratch, kernel,
                                                          &kernel->variants[v].sched)
                                     : 0;
                    if (n > own.n) own.n = n;
                }
                vec_push(cli->arena, &cli->registers, own);
            }
        }
    }
}

static CliRegisters *find(const Cli *cli, const char *graph, const char *symbol) {
    for (uint32_t i = 0; symbol && i < cli->registers.n; i++)
        if (strcmp(cli->registers.data[i].graph, graph) == 0 &&
            strcmp(cli->registers.data[i].symbol, symbol) == 0)
            return &cli->registers.data[i];
    return NULL;
}

uint32_t registers_estimated(const Exec *exec, const char *symbol) {
    const CliRegisters *found = find(exec->cli, exec->graph_info.name, symbol);
    return found ? found->n : 0;
}

const char *registers_complaint(const Exec *exec, const char *symbol, const frt_kernel_info *made) {
    uint32_t estimated = registers_estimated(exec, symbol);
    if (made->local_bytes == 0) return NULL;
    const char *complaint =
        str_format(exec->cli->arena,
                   "kernel %s does not fit in %d registers: %d bytes of each thread lie in memory",
                   symbol, (int)made->n_registers, (int)made->local_bytes);
    return estimated
               ? str_format(exec->cli->arena, "%s; about %u were expected", complaint, estimated)
               : complaint;
}

fusec_status registers_warn(Exec *exec) {
    frt_error error = FRT_ERROR_INIT;
    for (int32_t i = 0; i < exec->graph_info.n_steps; i++) {
        FRT_INFO(frt_variant_info, variant);
        FRT_INFO(frt_kernel_info, made);
        int32_t chosen = frt_exec_variant(exec->exec, i);
        if (chosen < 0) continue;
        frt_module_get_variant(exec->module, exec->graph, i, chosen, &variant);
        if (frt_program_get_kernel(exec->program, i, chosen, &made, &error))
            return cli_fail_frt(exec->cli, &error);
        CliRegisters *found = find(exec->cli, exec->graph_info.name, variant.symbol);
        const char *complaint = registers_complaint(exec, variant.symbol, &made);
        if (!complaint || (found && found->is_told)) continue;
        fprintf(stderr, "fusec: warning: %s\n", complaint);
        if (found) found->is_told = true;
    }
    return FUSEC_OK;
}
