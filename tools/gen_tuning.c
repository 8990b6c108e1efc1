/* Prints docs/TUNING.md from compiler/machine/tuning.def. */
#include <stdio.h>

static const char how_measured[] = "measured", how_judged[] = "judged";
#define MEASURED how_measured
#define JUDGED how_judged

static void begin_family(const char *title, const char *about) {
    printf("\n## %s\n\n%s\n\n| constant | value | meaning | | since | machine | file |\n"
           "|---|---|---|---|---|---|---|\n",
           title, about);
}

static void print_row(const char *symbol, const char *value, const char *how, const char *date,
                      const char *machine, const char *file, const char *meaning) {
    printf("| `%s` | %s | %s | %s | %s | %s | [%s](../compiler/%s) |\n", symbol, value, meaning,
           how, date, machine, file, file);
}

int main(void) {
    puts("# Tuning constants\n\n"
         "Generated from [tuning.def](../compiler/machine/tuning.def) by `make docs`; do not "
         "edit.\n\n"
         "Numbers that were chosen, not given. What a machine has is a column of "
         "[cards.def](../compiler/machine/cards.def) or "
         "[targets.def](../compiler/machine/targets.def); "
         "what all machines of a kind have stands in [machine.h](../compiler/machine/machine.h); "
         "bounds "
         "of data structures stand beside these.\n\n"
         "To add one, write a row into its family, with a symbol that begins as the others there "
         "do, "
         "and `#include \"machine/tuning.h\"` where it is used. \"Measured\" is a value that runs "
         "or "
         "fits gave, and the meaning says which; \"judged\" is one that was chosen without. "
         "\"Since\" is "
         "the day since which it has its value. To change one, measure anew, and change value and "
         "date "
         "together. Many values say which of two programs is made: `make same-as` shows what "
         "changes.");
#define TUNING_FAMILY(title, about) begin_family(title, about);
#define TUNING_INT(sym, value, how, date, machine, file, meaning) \
    print_row(#sym, #value, how, date, machine, file, meaning);
#define TUNING_REAL TUNING_INT
#include "machine/tuning.def"
    return 0;
}
