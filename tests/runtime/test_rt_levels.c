/* Levels of a CPU artifact: which of them runs, which the caller may ask for, and what is said of
 * levels that are not there. */
#include "../fake/rt_artifact.h"

#include <criterion/criterion.h>
#include <fusert.h>
#include <stdlib.h>
#include <string.h>

static const char kernel_source[] =
    "typedef long i64;\n"
    "static void put(void *const *a, int n) { *(int *)a[0] = n; }\n"
    "void k_far(void *const *a, const i64 *d, i64 begin, i64 end) { put(a, 9); }\n"
    "void k_near(void *const *a, const i64 *d, i64 begin, i64 end) { put(a, 2); }\n"
    "void k_base(void *const *a, const i64 *d, i64 begin, i64 end) { put(a, 1); }\n";

/* No machine has the first level. */
static const char manifest[] = "//@ fusec-artifact 1\n"
                               "//@ checksum 00000000\n"
                               "//@ compiler 0.1.0\n"
                               "//@ target cpu x86-64\n"
                               "//@ level far x86-64 warp9\n"
                               "//@ level near x86-64 popcnt\n"
                               "//@ level base x86-64\n"
                               "//@ numerics strict\n"
                               "//@ source level.g\n"
                               "//@ graph level\n"
                               "//@ output y 0 i32\n"
                               "//@ launch run 3 put y -\n"
                               "//@ variant k_far 1 1 0 c:far\n"
                               "//@ variant k_near 1 1 0 c:near\n"
                               "//@ variant k_base 1 1 0 -\n"
                               "//@ end\n";

static frt_module *load(const char *text) {
    Artifact artifact = artifact_object(text, kernel_source, 0);
    frt_module *module = NULL;
    frt_error err = FRT_ERROR_INIT;
    cr_assert_eq(frt_module_load_memory(artifact.bytes, artifact.n_bytes, &module, &err), FRT_OK,
                 "%s", err.message);
    artifact_free(&artifact);
    return module;
}

/* What the kernel of the level stores. */
static int32_t run_at(frt_module *module, const char *level, const char *taken) {
    frt_error err = FRT_ERROR_INIT;
    frt_program *program = NULL;
    frt_exec *exec = NULL;
    int32_t y = 0;
    frt_tensor tensor = {.data = &y, .dtype = FRT_I32};
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.cpu_level = level;
    cr_assert(!frt_program_create(module, NULL, &options, &program, &err) &&
                  !frt_exec_create(program, &exec, &err) && !frt_bind(exec, "y", &tensor, &err) &&
                  !frt_run(exec, NULL, &err),
              "%s", err.message);
    cr_expect_str_eq(frt_program_level(program), taken);
    frt_exec_free(exec);
    frt_program_free(program);
    return y;
}

Test(rt_levels, the_best_level_runs_that_the_machine_has_and_the_caller_allows) {
    frt_module *module = load(manifest);
    cr_expect_eq(run_at(module, NULL, "near"), 2);
    cr_expect_eq(run_at(module, "near", "near"), 2);
    cr_expect_eq(run_at(module, "base", "base"), 1);
    frt_module_free(module);
}

/* A kernel may have no code of the level. */
Test(rt_levels, lesser_levels_stand_in) {
    char *text = text_replace(manifest, "//@ variant k_near 1 1 0 c:near\n", "");
    frt_module *module = load(text);
    cr_expect_eq(run_at(module, "near", "near"), 1);
    frt_module_free(module);
    free(text);
}

static void expect_refusal(frt_module *module, const char *level, frt_status status,
                           const char *part) {
    frt_error err = FRT_ERROR_INIT;
    frt_program *program = NULL;
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.cpu_level = level;
    cr_expect_eq(frt_program_create(module, NULL, &options, &program, &err), status);
    cr_expect(strstr(err.message, part), "`%s` lacks `%s`", err.message, part);
}

Test(rt_levels, a_level_that_is_not_there_is_refused) {
    frt_module *module = load(manifest);
    expect_refusal(module, "far", FRT_E_HOST_CPU, "warp9");
    expect_refusal(module, "mars", FRT_E_UNKNOWN_NAME, "no level mars, its best is far");
    frt_module_free(module);
    char *text = text_replace(manifest, "cpu x86-64\n", "cpu x86-64 warp9\n");
    module = load(text);
    expect_refusal(module, NULL, FRT_E_HOST_CPU, "warp9");
    frt_module_free(module);
    free(text);
}

Test(rt_levels, levels_are_told) {
    frt_module *module = load(manifest);
    FRT_INFO(frt_level_info, level);
    FRT_INFO(frt_module_info, info);
    char text[100];
    frt_module_get_info(module, &info);
    cr_expect_eq(info.n_levels, 3);
    cr_expect_eq(frt_module_get_level(module, 0, &level), FRT_OK);
    cr_expect_str_eq(level.name, "far");
    cr_expect_str_eq(level.arch, "x86-64");
    cr_expect_str_eq(level.features, "warp9");
    cr_expect_eq(frt_module_get_level(module, 2, &level), FRT_OK);
    cr_expect_null(level.features);
    cr_expect_eq(frt_module_get_level(module, 3, &level), FRT_E_INVALID_ARGUMENT);
    frt_module_predicate_text(module, 0, 0, 1, text, sizeof text);
    cr_expect_str_eq(text, "level near");
    frt_module_free(module);
}

Test(rt_levels, an_artifact_for_one_cpu_has_no_levels) {
    static const char *const lines[] = {
        "//@ level far x86-64 warp9\n", "//@ level near x86-64 popcnt\n", "//@ level base x86-64\n",
        "//@ variant k_far 1 1 0 c:far\n", "//@ variant k_near 1 1 0 c:near\n"};
    char *text = text_replace(manifest, lines[0], "");
    for (int i = 1; i < 5; i++) {
        char *less = text_replace(text, lines[i], "");
        free(text);
        text = less;
    }
    frt_module *module = load(text);
    frt_error err = FRT_ERROR_INIT;
    frt_program *program = NULL;
    cr_assert_eq(frt_program_create(module, NULL, NULL, &program, &err), FRT_OK);
    cr_expect_null(frt_program_level(program));
    frt_program_free(program);
    expect_refusal(module, "near", FRT_E_UNKNOWN_NAME, "no level near: it has code for one CPU");
    frt_module_free(module);
    free(text);
}
