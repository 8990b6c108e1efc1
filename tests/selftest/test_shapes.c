/* Random shapes for every template (soak --shapes): that programs are drawn which have each, and
 * that what goes wrong is seen, and is seen again by the command that the report names. */
#include "soak/shapes.h"

#include "lib/compile.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { MOST_PROGRAMS = 16, SAID_BYTES = 1 << 18 };

/* A thousand of everything, as far as it goes. */
static void choose_values(const DimTab *dims, int64_t *values) {
    for (uint32_t s = 0; s < dim_n_symbols(dims); s++) {
        const DimSymbol *symbol = dim_symbol_info(dims, s);
        int64_t value = symbol->hi < 1001 ? symbol->hi : symbol->lo > 1001 ? symbol->lo : 1001;
        values[s] = value - value % symbol->multiple;
    }
}

static bool has_template(LoweringId id, uint64_t number, const Target *target) {
    Arena *arena = arena_new(NULL);
    const char *source = lowering_source(arena, id, number);
    int64_t values[DIM_MAX_SYMBOLS] = {0};
    LoweringUse use = {0};
    Compiled compiled;
    bool ok = compile_source(&compiled, source, target, COMPILE_FUSED), is_met = false;
    cr_expect(ok, "%s for %s: %s%s", lowering_info(id)->name, target->name, compiled.messages,
              source);
    if (ok) {
        choose_values(compiled.module->dims, values);
        lowering_note_plan(compiled.driver.plans[0], target, values, &use);
    }
    for (Dtype d = 0; d < DT_COUNT; d++) is_met = is_met || use.variants[id][d];
    compile_free(&compiled);
    arena_free(arena);
    return is_met;
}

Test(shapes, every_template_has_programs, .timeout = 240) {
    static const TargetId targets[] = {TARGET_SM_90A, TARGET_SM_80, TARGET_CPU};
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
        for (LoweringId id = 0; id < LOWERING_COUNT; id++) {
            const Target *target = target_get(targets[t]);
            uint64_t number = 1;
            if (!lowering_is_on(id, target)) continue;
            while (number < MOST_PROGRAMS && !has_template(id, number, target)) number++;
            cr_expect(number < MOST_PROGRAMS, "%s for %s", lowering_info(id)->name, target->name);
        }
}

Test(shapes, a_program_is_the_same_for_the_same_number) {
    Arena *arena = arena_new(NULL);
    for (LoweringId id = 0; id < LOWERING_COUNT; id++) {
        const char *one = lowering_source(arena, id, 7), *other = lowering_source(arena, id, 7);
        cr_expect_str_eq(one, other);
        cr_expect_str_neq(one, lowering_source(arena, id, 8));
    }
    arena_free(arena);
}

Test(shapes, equal_shapes_count_once) {
    Arena *arena = arena_new(NULL);
    ShapeCount count = {.arena = arena}, copy = {.arena = arena};
    LoweringUse use = {0};
    use.variants[LOWERING_map][DT_F32] = 3;
    use.variants[LOWERING_simt][DT_I32] = 4;
    for (uint64_t shape = 0; shape < 3000; shape++) shape_count_add(&count, &use, shape / 3);
    cr_expect_eq(count.n[LOWERING_map], 1000);
    cr_expect_eq(count.by[LOWERING_map][DT_F32][1], 1000);
    cr_expect_eq(count.by[LOWERING_simt][DT_I32][2], 1000);
    Text lines = {.arena = arena};
    shape_count_write(&count, &lines);
    for (const char *line = lines.data; *line; line = strchr(line, '\n') + 1)
        cr_assert(shape_count_read(&copy, line) && shape_count_read(&copy, line));
    cr_expect_arr_eq(copy.n, count.n, sizeof count.n);
    cr_expect_not(shape_count_read(&copy, "mma 1"));
    cr_expect_not(shape_count_read(&copy, "nothing 1 1 1"));
    Text table = {.arena = arena};
    const Target *target = target_get(TARGET_SM_90A);
    uint32_t n_all = 0;
    for (LoweringId id = 0; id < LOWERING_COUNT; id++) n_all += lowering_is_on(id, target);
    cr_expect_eq(shape_count_print(&copy, target, 1000, &table), n_all - 2);
    cr_expect_eq(shape_count_print(&copy, target, 1001, &table), n_all);
    arena_free(arena);
}

/* The exit status of soak, and what it said. */
static int soak(const char *arguments, char *said) {
    char command[512];
    snprintf(command, sizeof command, "build/tests/soak/soak --shapes --target=cpu %s 2>&1",
             arguments);
    FILE *pipe = popen(command, "r");
    cr_assert(pipe != NULL);
    size_t n = fread(said, 1, SAID_BYTES - 1, pipe);
    said[n] = 0;
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Mistakes, templates that have them, and how they show. */
static const struct {
    const char *plant, *only, *shows;
} mistakes[] = {
    {"stored_beyond", "map", "written outside outputs and workspace"},
    {"stored_beyond", "row", "written outside outputs and workspace"},
    {"stored_beyond", "tiled", "written outside outputs and workspace"},
    {"left_unwritten", "map", "got nan"},
    {"left_unwritten", "column", "fused differs from unfused"},
    {"unsteady", "concat-in-place", "run once more, at the same place: output"},
    {"wrong_layout", "panels", "fused differs from unfused"},
    {"shifted_in_concat", "concat-in-place", "fused differs from unfused"},
    {"wrong_accumulate", "column-segments", "fused differs from unfused"},
    {"swapped_operands", "row", "fused differs from unfused"},
};

Test(shapes, what_goes_wrong_is_seen, .timeout = 240) {
    static char said[SAID_BYTES];
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments, "24 1 --only=%s --plant=%s", mistakes[i].only,
                 mistakes[i].plant);
        cr_expect_eq(soak(arguments, said), 1, "%s", arguments);
        cr_expect(strstr(said, mistakes[i].shows), "%s: %.2000s", arguments, said);
    }
}

/* A wrong op may not show: what it changes saturates, or is not taken. */
Test(shapes, most_wrong_ops_are_seen, .timeout = 240) {
    static char said[SAID_BYTES];
    uint32_t n_caught = 0, n_planted = 0;
    soak("48 1 --only=row --plant=wrong_op_anywhere", said);
    const char *line = strstr(said, " programs with a planted mistake fail");
    cr_assert(line != NULL, "%.2000s", said);
    while (line > said && line[-1] != '\n') line--;
    cr_assert_eq(sscanf(line, "%u of %u", &n_caught, &n_planted), 2);
    cr_expect(n_planted >= 10 && n_caught * 10 >= n_planted * 9, "%u of %u", n_caught, n_planted);
}

Test(shapes, the_command_of_a_failure_repeats_it, .timeout = 120) {
    static char said[SAID_BYTES];
    char one[128];
    cr_assert_eq(soak("8 1 --only=map --plant=stored_beyond", said), 1);
    const char *again = strstr(said, "--one=");
    cr_assert(again && sscanf(again, "%99s", one) == 1);
    strcat(one, " --plant=stored_beyond");
    cr_expect_eq(soak(one, said), 1);
    cr_expect(strstr(said, "0 passed, 1 failed"), "%.2000s", said);
    cr_expect(strstr(said, "graph g("), "the program is not shown: %.2000s", said);
}
