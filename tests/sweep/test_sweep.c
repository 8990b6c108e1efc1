/* Five random cases of every op, built-in function and function of the prelude, on the CPU, beside
 * the numbers of NumPy and PyTorch. `make sweep` runs 500 of each, and writes
 * tests/sweep/stored.bin: see sweep/stored.h and sweep.py. */
#include "sweep/stored.h"
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <stdio.h>

enum { N_EACH = 5, N_NAMES = 268 };

Test(sweep, stored_cases_pass, .timeout = 120) {
    uint32_t n = 0, n_failed = 0;
    Arena *arena = arena_new(NULL);
    size_t n_bytes;
    const char *file = text_file_read(arena, "tests/sweep/stored.bin", &n_bytes);
    Bytes records = {(const uint8_t *)file, n_bytes};
    StoredCase it;
    for (; stored_next(arena, &records, &it); n++) {
        const char *source =
            str_format(arena, "%.*s", (int)it.program.n, (const char *)it.program.data);
        const char *wrong = stored_try(arena, &it, source);
        if (wrong) fprintf(stderr, "%s: %s\n%s", it.name, wrong, source);
        n_failed += wrong != NULL;
    }
    fprintf(stderr, "cases of the sweep: %u passed, %u failed\n", n - n_failed, n_failed);
    cr_expect_eq(n_failed, 0);
    cr_expect(n >= N_EACH * N_NAMES);
    arena_free(arena);
}
