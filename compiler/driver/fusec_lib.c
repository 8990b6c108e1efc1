/* The library: one driver per call, which lives on as the result. See fusec.h. */
#include "driver/driver.h"

#include <stdio.h>
#include <stdlib.h>

struct fusec_result {
    Driver driver;
    const char *messages;
    const char *usage; /* what is wrong with the options; NULL: nothing */
    char usage_text[160];
};

typedef struct Request {
    const char *text, *name;
    size_t n_bytes;
} Request;

const char *fusec_version(void) {
    return FUSEC_VERSION;
}

const char *fusec_llvm_version(void) {
    return codegen_llvm_version();
}

const char *fusec_target_name(size_t index) {
    return index < TARGET_COUNT ? target_get((TargetId)index)->name : NULL;
}

const char *fusec_target_doc(size_t index) {
    return index < TARGET_COUNT ? target_get((TargetId)index)->doc : NULL;
}

static fusec_status compile(Driver *driver, void *user) {
    const Request *request = user;
    fusec_status status = driver_parse(driver, request->name, request->text, request->n_bytes);
    return status ? status : driver_build(driver);
}

/* The caller's options, of any version, over the defaults. */
static fusec_options full_options(const fusec_options *given) {
    fusec_options options = FUSEC_OPTIONS_INIT;
    size_t n_bytes = options.struct_size;
    if (given && given->struct_size < n_bytes) n_bytes = given->struct_size;
    if (given) memcpy(&options, given, n_bytes);
    return options;
}

/* Sets result->usage when an option is wrong. */
static fusec_status read_options(fusec_result *result, const fusec_options *given,
                                 DriverOptions *options) {
    if ((unsigned)given->kind >= FUSEC_KIND_COUNT) {
        result->usage = "options.kind is no kind of output";
        return FUSEC_USAGE;
    }
    if ((unsigned)given->rewrites > FUSEC_REWRITES_OFF) {
        result->usage = "options.rewrites is neither on, off nor the default";
        return FUSEC_USAGE;
    }
    *options = (DriverOptions){.kind = given->kind,
                               .no_fuse = given->no_fuse,
                               .rewrites = given->rewrites,
                               .weights = given->weights,
                               .n_threads = given->n_threads,
                               .explain = given->explain};
    options->target =
        given->target ? target_by_name(given->target) : driver_default_target(given->kind);
    result->usage = result->usage_text;
    size_t n = sizeof result->usage_text;
    if (given->numerics && !driver_numerics_by_name(given->numerics, &options->is_fast)) {
        snprintf(result->usage_text, n, "numerics `%.40s` are neither `strict` nor `fast`",
                 given->numerics);
        return FUSEC_USAGE;
    }
    if (!options->target) {
        snprintf(result->usage_text, n, "there is no target `%.40s`", given->target);
        return FUSEC_TARGET;
    }
    if (!driver_kind_fits(given->kind, options->target)) {
        snprintf(result->usage_text, n, "%s cannot be made for target %s",
                 kind_info(given->kind)->name, options->target->name);
        return FUSEC_USAGE;
    }
    result->usage = NULL;
    return FUSEC_OK;
}

/* The message of a failure that is not in the source: wrong options, no memory or an internal
 * error; NULL: none. */
static const char *other_failure(const fusec_result *result) {
    return result->usage ? result->usage : result->driver.failure;
}

static fusec_status print_messages(Driver *driver, void *user) {
    fusec_result *result = user;
    Text text = {.arena = driver->arena};
    diag_print(&driver->diags, &text);
    if (other_failure(result)) text_printf(&text, "fusec: error: %s\n", other_failure(result));
    result->messages = text_str(&text);
    return FUSEC_OK;
}

fusec_status fusec_compile(const char *text, size_t n_bytes, const fusec_options *given,
                           fusec_result **out) {
    DriverOptions options = {.kind = FUSEC_PTX};
    fusec_options all = full_options(given);
    if (!out) return FUSEC_USAGE;
    *out = NULL;
    fusec_result *result = calloc(1, sizeof *result);
    if (!result) return FUSEC_MEMORY;
    fusec_status status = read_options(result, &all, &options);
    IncludeReader includes = {all.include, all.include_user};
    if (all.include) options.includes = &includes;
    if (!driver_init(&result->driver, &options)) {
        free(result);
        return FUSEC_MEMORY;
    }
    *out = result;
    Request request = {text ? text : "", all.source_name ? all.source_name : "input.g",
                       text ? n_bytes : 0};
    if (!status) status = driver_guard(&result->driver, compile, &request);
    if (driver_guard(&result->driver, print_messages, result))
        result->messages = "fusec: error: out of memory\n";
    if (status) result->driver.code = (CodeBytes){0};
    return status;
}

void fusec_result_free(fusec_result *result) {
    if (!result) return;
    driver_free(&result->driver);
    free(result);
}

const void *fusec_result_bytes(const fusec_result *result, size_t *n_bytes) {
    if (n_bytes) *n_bytes = result ? result->driver.code.n_bytes : 0;
    return result ? result->driver.code.data : NULL;
}

const char *fusec_result_messages(const fusec_result *result) {
    return result ? result->messages : "fusec: error: out of memory\n";
}

const char *fusec_result_explanation(const fusec_result *result) {
    return result && result->driver.ledger ? result->driver.ledger : "";
}

/* A failure that is not in the source counts as the last diagnostic. */
size_t fusec_result_n_diagnostics(const fusec_result *result) {
    if (!result) return 0;
    size_t n = other_failure(result) != NULL;
    for (const Diag *diag = result->driver.diags.first; diag; diag = diag->next) n++;
    return n;
}

static fusec_diagnostic describe(const Diag *diag) {
    static const fusec_severity severities[] = {[SEVERITY_ERROR] = FUSEC_ERROR,
                                                [SEVERITY_WARNING] = FUSEC_WARNING,
                                                [SEVERITY_NOTE] = FUSEC_NOTE,
                                                [SEVERITY_HELP] = FUSEC_HELP};
    fusec_diagnostic given = {.severity = severities[diag->severity], .message = diag->message};
    if (diag->id) given.id = diag_info(diag->id)->id;
    if (!diag->source) return given;
    given.file = diag->source->name;
    if (!diag->span.end && diag->severity == SEVERITY_NOTE) return given;
    Position at = source_position(diag->source, diag->span.begin);
    given.line = at.line;
    given.column = at.column;
    return given;
}

bool fusec_result_diagnostic(const fusec_result *result, size_t index,
                             fusec_diagnostic *diagnostic) {
    if (!result || !diagnostic) return false;
    const Diag *diag = result->driver.diags.first;
    for (; diag && index > 0; index--) diag = diag->next;
    if (!diag && (index > 0 || !other_failure(result))) return false;
    fusec_diagnostic given = {.severity = FUSEC_ERROR, .message = other_failure(result)};
    if (diag) given = describe(diag);
    given.struct_size = diagnostic->struct_size;
    size_t n_bytes = sizeof given < given.struct_size ? sizeof given : given.struct_size;
    memcpy(diagnostic, &given, n_bytes);
    return true;
}
