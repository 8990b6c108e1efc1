/* The time of the ledger of long sources. Nothing runs beside this program. */
#include "cli/hostile.h"

#include <math.h>
#include <stdbool.h>

TestSuite(explain_times, .init = command_set_up, .fini = command_tear_down, .timeout = 300);

enum { N_TRIES = 10 };

/* Compiles the source, and returns the least seconds of this and earlier times. */
static double least_seconds(const char *line, double earlier) {
    cr_assert_eq(fusec(line, NULL), 0, "%s", run.err);
    return run.seconds < earlier ? run.seconds : earlier;
}

/* The ledger takes three times the compilation, and 0.2 seconds. What takes longer is measured
 * again, and the least times count. */
static bool is_little_longer(double explained, double seconds) {
    return explained <= 3 * seconds + 0.2;
}

Test(explain_times, explain_takes_little_longer_than_the_compilation) {
    static const char *const names[] = {"softmaxes",      "convolutions", "several kinds",
                                        "dynamic slices", "expansions",   "sums of asin",
                                        "sums of cbrt",   "inputs",       "positions"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double seconds = INFINITY, explained = INFINITY;
        write_kind(kind_of(names[i]), i < 5 ? 1000 : 0);
        write_file("hostile.g", source.text, source.n_bytes);
        for (int k = 0; k < N_TRIES && (!k || !is_little_longer(explained, seconds)); k++) {
            seconds = least_seconds("@hostile.g -o @a.ptx", seconds);
            explained = least_seconds("@hostile.g -o @a.ptx --explain", explained);
        }
        cr_expect(is_little_longer(explained, seconds), "%s: %.2f and %.2f seconds", names[i],
                  seconds, explained);
    }
}
