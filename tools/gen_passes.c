/* Prints docs/PASSES.md from the tables of compiler/pipeline. */
#include "pipeline/pipeline.h"

#include <stdio.h>

static const char *const functions[PASS_COUNT] = {
#define PASS(sym, name, scope, run, extension, requires, leaves, modes, doc) [PASS_##sym] = #run,
#include "pipeline/passes.def"
};

static const char *const launches[] = {
#define LAUNCH_MODE(sym, name, ...) [LAUNCH_##sym] = #name,
#include "plan/launch_modes.def"
};

static void print_facts(uint32_t facts) {
    const char *separator = "";
    for (int fact = 0; fact < FACT_COUNT; fact++) {
        if (!(facts >> fact & 1)) continue;
        printf("%s%s", separator, fact_info((Fact)fact)->name);
        separator = ", ";
    }
}

static void print_passes(void) {
    puts("\n## Passes\n\n"
         "| pass | function | does | requires | leaves true | dump |\n|---|---|---|---|---|---|");
    for (int pass = 0; pass < PASS_COUNT; pass++) {
        const PassInfo *info = pass_info((PassId)pass);
        printf("| %s | `%s` | %s | ", info->name, functions[pass], info->doc);
        print_facts(info->requires);
        printf(" | ");
        print_facts(info->leaves);
        printf(" | `%02d-%s.%s` |\n", pass + 1, info->name, info->extension);
    }
}

static void print_modes(void) {
    puts("\n## Modes\n\nWhat the pipeline is run for.\n\n"
         "| mode | plans | fuses | tries launches |\n|---|---|---|---|");
    for (int mode = 0; mode < MODE_COUNT; mode++) {
        const ModeInfo *info = mode_info((PlanMode)mode);
        const char *separator = "";
        printf("| %s | %s | %s | ", info->name, info->doc, info->fuses ? "yes" : "no");
        for (int launch = 0; launch < (int)(sizeof launches / sizeof *launches); launch++) {
            if (!(mode_launches((PlanMode)mode) >> launch & 1)) continue;
            printf("%s%s", separator, launches[launch]);
            separator = ", ";
        }
        puts(" |");
    }
}

static void print_matrix(void) {
    printf("\n## Which passes run in which mode\n\n| pass |");
    for (int mode = 0; mode < MODE_COUNT; mode++) printf(" %s |", mode_info((PlanMode)mode)->name);
    printf("\n|---|");
    for (int mode = 0; mode < MODE_COUNT; mode++) printf("---|");
    puts("");
    for (int pass = 0; pass < PASS_COUNT; pass++) {
        const PassInfo *info = pass_info((PassId)pass);
        printf("| %s |", info->name);
        for (int mode = 0; mode < MODE_COUNT; mode++)
            printf(" %s |", info->modes >> mode & 1       ? "yes"
                            : info->gpu_modes >> mode & 1 ? "GPU"
                                                          : "");
        puts("");
    }
}

static void print_names(void) {
    puts("\n## Facts\n\nWhat passes leave true. A pass makes untrue what later passes left.\n\n"
         "| fact | holds when |\n|---|---|");
    for (int fact = 0; fact < FACT_COUNT; fact++)
        printf("| %s | %s |\n", fact_info((Fact)fact)->name, fact_info((Fact)fact)->doc);
    puts("\n## Directives\n\nWhat `decide` asks of `fuse`, for each node.\n\n"
         "| directive | asks that |\n|---|---|");
    for (int directive = 0; directive < DIRECTIVE_COUNT; directive++)
        printf("| %s | %s |\n", directive_name((Directive)directive),
               directive_doc((Directive)directive));
}

int main(void) {
    puts("# Passes\n\n"
         "Generated from [passes.def](../compiler/pipeline/passes.def), "
         "[modes.def](../compiler/pipeline/modes.def), "
         "[facts.def](../compiler/pipeline/facts.def) and "
         "[directives.def](../compiler/pipeline/directives.def) by `make docs`; do not edit.\n\n"
         "`pipeline_run` ([pipeline.c](../compiler/pipeline/pipeline.c)) runs the passes in this "
         "order. Compilation, search, advice and the trials inside passes call it alike, each in "
         "its mode. A pass whose requirements do not hold is an internal error.");
    print_passes();
    print_modes();
    print_matrix();
    print_names();
    return 0;
}
