/* Prints docs/TUNING.md from compiler/machine/tuning.def and tiles.def. */
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

static const char *tiles_file; /* the first user of a family's tiles */

static void begin_tiles(const char *title, const char *about, const char *file) {
    begin_family(title, about);
    tiles_file = file;
}

static void print_tile(const char *symbol, const char *value, const char *how, const char *date,
                       const char *machine, const char *meaning) {
    print_row(symbol, value, how, date, machine, tiles_file, meaning);
}

int main(void) {
    puts("# Tuning constants\n\n"
         "Generated from [tuning.def](../compiler/machine/tuning.def) and "
         "[tiles.def](../compiler/machine/tiles.def) by `make docs`; do not edit.\n\n"
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
#define TILE_FAMILY(title, about, file) begin_tiles(title, about, file);
#define SIMT_TILE(symbol, m, n, k, warps_m, warps_n, threads, stages, halves, ...)   \
    print_tile("SIMT_TILE_" #symbol,                                                 \
               #m " x " #n " x " #k ", warps " #warps_m " x " #warps_n ", " #threads \
                  " threads, " #stages " stages, halves " #halves,                   \
               __VA_ARGS__);
#define MMA_TILE(symbol, m, n, depth, warps_m, warps_n, stages, ...)                         \
    print_tile("MMA_TILE_" #symbol,                                                          \
               #m " x " #n ", depth " #depth ", warps " #warps_m " x " #warps_n ", " #stages \
                  " stages",                                                                 \
               __VA_ARGS__);
#define WGMMA_TILE(symbol, m, n, cluster, one, several, share, step, left, right, rest, ...) \
    print_tile("WGMMA_TILE_" #symbol,                                                        \
               #m " x " #n ", cluster " #cluster ", for one " #one ", for several " #several \
                  ", share " #share ", step " #step ", left " #left ", right " #right        \
                  ", rest " #rest,                                                           \
               __VA_ARGS__);
#define WGMMA_WIDTHS(columns, ...) print_tile("wgmma_widths", #columns, __VA_ARGS__);
#include "machine/tiles.def"
    return 0;
}
