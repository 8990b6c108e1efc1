/* The ULP sweep: the largest error of every unary op and float dtype. The rows of the tracked file
 * count the arguments of all runs: a run goes on where the last one ended, and begins a row anew
 * where the code computes other bits. */
#include "soak.h"

#include "tools/ulp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ROWS = 1024, WATCH_SECONDS = 120, WRITE_SECONDS = 20 };

typedef struct Rows {
    Text head; /* the lines above the first row */
    UlpRow rows[MAX_ROWS];
    uint32_t n;
} Rows;

static void read_rows(Rows *found, const char *path) {
    char line[512];
    FILE *file = fopen(path, "r");
    if (!file) return;
    while (found->n < MAX_ROWS && fgets(line, sizeof line, file)) {
        UlpRow *row = &found->rows[found->n];
        if (ulp_read_row(line, row))
            found->n++;
        else if (found->n == 0)
            text_puts(&found->head, line);
    }
    fclose(file);
}

/* In place of the file, which is whole at any time. */
static bool write_rows(const Soak *soak, const Rows *found) {
    const char *path = soak->found_path;
    char *fresh = str_format(soak->arena, "%s.new", path);
    Text text = {.arena = soak->arena};
    text_puts(&text, text_str(&found->head));
    for (uint32_t i = 0; i < found->n; i++) ulp_print_row(&found->rows[i], &text);
    text_puts(&text, "#undef ULP\n");
    FILE *file = fopen(fresh, "w");
    bool is_written = file && fputs(text_str(&text), file) >= 0;
    if (file && fclose(file)) is_written = false;
    is_written = is_written && rename(fresh, path) == 0;
    if (!is_written) fprintf(stderr, "soak: cannot write %s\n", path);
    return is_written;
}

/* Rows are in the order of targets, ops and dtypes. */
static int compare_rows(const UlpRow *a, const UlpRow *b) {
    if (a->target != b->target) return a->target < b->target ? 1 : -1;
    if (a->op != b->op) return a->op < b->op ? -1 : 1;
    return (a->dtype > b->dtype) - (a->dtype < b->dtype);
}

/* The row of this key, which is made where there is none; NULL: the table is full. */
static UlpRow *row_of(Rows *found, const UlpRow *key) {
    uint32_t i = 0;
    while (i < found->n && compare_rows(&found->rows[i], key) < 0) i++;
    if (i < found->n && compare_rows(&found->rows[i], key) == 0) return &found->rows[i];
    if (found->n == MAX_ROWS) return NULL;
    memmove(&found->rows[i + 1], &found->rows[i], (found->n - i) * sizeof *found->rows);
    found->n++;
    found->rows[i] = *key;
    return &found->rows[i];
}

static void set_date(UlpRow *row) {
    time_t now = time(NULL);
    struct tm day;
    if (gmtime_r(&now, &day)) strftime(row->date, sizeof row->date, "%Y-%m-%d", &day);
}

/* Goes on with one row. False: it cannot be run. */
static bool sweep_row(Soak *soak, Rows *found, UlpRow *row) {
    UlpSweep sweep;
    time_t written = time(NULL);
    bool is_good = ulp_open(&sweep, row, (uint32_t)soak->n_threads);
    while (is_good && sweep.row.n_values < ulp_n_values(row->dtype) && soak_has_time(soak)) {
        soak_watch(ulp_info(row->op)->name, WATCH_SECONDS);
        is_good = ulp_step(&sweep);
        soak_watch_off();
        set_date(&sweep.row);
        *row = sweep.row;
        if (time(NULL) - written < WRITE_SECONDS) continue;
        is_good = is_good && write_rows(soak, found);
        written = time(NULL);
    }
    if (!is_good)
        printf("%s of %s: %s\n", ulp_info(row->op)->name, dtype_name(row->dtype), sweep.error);
    ulp_close(&sweep);
    return is_good;
}

static void sweep_dtype(Soak *soak, Rows *found, const Target *target, Dtype dtype) {
    for (int op = 1; op < ULP_N_SUBJECTS; op++) {
        if (!soak_has_time(soak)) return;
        if (!ulp_takes((OpId)op, dtype) || (soak->ulp_op && soak->ulp_op != (OpId)op)) continue;
        UlpRow *row = row_of(found, &(UlpRow){.op = (OpId)op, .dtype = dtype, .target = target});
        bool is_right = row && sweep_row(soak, found, row) && ulp_is_within(row);
        soak->n_passed += is_right;
        soak->n_failed += !is_right;
        if (!row) continue;
        printf("%-10s %-4s %s: %.3f ULP at %a", ulp_info(row->op)->name, dtype_name(dtype),
               target->name, row->ulp, row->at);
        if (row->absolute > 0) printf(", or %.3g", row->absolute);
        printf(", of %" PRIu64 " values, %.1f %%%s\n", row->n_values,
               100 * (double)row->n_values / (double)ulp_n_values(dtype),
               is_right ? "" : ": OUT OF THE BOUND");
    }
}

bool soak_ulp(Soak *soak) {
    static Rows found;
    static const Dtype dtypes[] = {DT_F16, DT_BF16, DT_F64, DT_F32};
    found.head.arena = soak->arena;
    if (!soak->found_path) soak->found_path = "tests/ulp/found.def";
    if (!soak->n_threads) soak->n_threads = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    read_rows(&found, soak->found_path);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        if (dtype_in(dtypes[d], soak->ulp_dtypes))
            sweep_dtype(soak, &found, soak->targets[0], dtypes[d]);
    return write_rows(soak, &found);
}
