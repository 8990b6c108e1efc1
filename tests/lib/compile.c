/* Compilation of test programs; see compile.h. */
#include "lib/compile.h"

#include "lib/check.h"

#include <string.h>

typedef struct Request {
    const char *source;
    CompileMode mode;
} Request;

static DriverHook compile_hook;
static bool compile_fast, compile_rewrites;

void compile_with(DriverHook hook) {
    compile_hook = hook;
}

void compile_with_fast_numerics(void) {
    compile_fast = true;
}

void compile_with_rewrites(bool rewrites) {
    compile_rewrites = rewrites;
}

static fusec_status compile(Driver *driver, void *user) {
    const Request *request = user;
    fusec_status status = driver_parse(driver, "input.g", request->source, strlen(request->source));
    if (status) return status;
    for (uint32_t i = 0; i < driver->module->graphs.n && request->mode == COMPILE_EXPOSED; i++)
        check_expose_nodes(driver->module->graphs.data[i], driver->strings);
    return driver_build(driver);
}

static fusec_status print_messages(Driver *driver, void *user) {
    Text text = {.arena = driver->arena};
    diag_print(&driver->diags, &text);
    if (driver->failure) text_printf(&text, "internal error: %s\n", driver->failure);
    *(const char **)user = text_str(&text);
    return FUSEC_OK;
}

bool compile_source(Compiled *compiled, const char *source, const Target *target,
                    CompileMode mode) {
    DriverOptions options = {.kind = driver_artifact_kind(target),
                             .target = target,
                             .is_fast = compile_fast,
                             .rewrites =
                                 compile_rewrites ? FUSEC_REWRITES_ON : FUSEC_REWRITES_DEFAULT,
                             .no_fuse = mode != COMPILE_FUSED,
                             .checks_llvm = true,
                             .hook = compile_hook};
    *compiled = (Compiled){.messages = "out of memory"};
    if (!driver_init(&compiled->driver, &options)) return false;
    Request request = {source, mode};
    fusec_status status = driver_guard(&compiled->driver, compile, &request);
    compiled->module = compiled->driver.module;
    compiled->plan = status ? NULL : compiled->driver.plans[0];
    compiled->bytes = compiled->driver.code.data;
    compiled->n_bytes = compiled->driver.code.n_bytes;
    if (status) driver_guard(&compiled->driver, print_messages, &compiled->messages);
    return status == FUSEC_OK;
}

void compile_free(Compiled *compiled) {
    driver_free(&compiled->driver);
    *compiled = (Compiled){0};
}

bool compile_target_runs(const Target *target) {
    return target->ptx_version || codegen_cpu_runs(target);
}
