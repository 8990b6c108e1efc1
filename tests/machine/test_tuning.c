/* The rows of machine/tuning.def: names, dates and files. Run from the repository's root. */
#include "machine/card.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Row {
    const char *symbol, *date, *machine, *file, *meaning;
} Row;

static const Row rows[] = {
#define TUNING_FAMILY(title, about)
#define TUNING_INT(sym, value, how, day, where, path, text) \
    {.symbol = #sym, .date = day, .machine = where, .file = path, .meaning = text},
#define TUNING_REAL TUNING_INT
#include "machine/tuning.def"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s", path);
    char *text = calloc(1, 1 << 20);
    cr_assert(text);
    cr_assert(fread(text, 1, (1 << 20) - 1, file) > 0, "%s", path);
    fclose(file);
    return text;
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static bool has_word(const char *text, const char *word) {
    size_t n = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !is_word(at[-1])) && !is_word(at[n])) return true;
    return false;
}

Test(tuning, names_are_unique) {
    for (size_t i = 0; i < N_ROWS; i++)
        for (size_t k = i + 1; k < N_ROWS; k++) cr_expect_str_neq(rows[i].symbol, rows[k].symbol);
}

Test(tuning, every_row_is_used_in_its_file) {
    for (size_t i = 0; i < N_ROWS; i++) {
        char path[256];
        snprintf(path, sizeof path, "compiler/%s", rows[i].file);
        char *text = read_text(path);
        cr_expect(has_word(text, rows[i].symbol), "%s does not use %s", path, rows[i].symbol);
        free(text);
    }
}

Test(tuning, dates_are_days) {
    for (size_t i = 0; i < N_ROWS; i++) {
        int year = 0, month = 0, day = 0, end = 0;
        int n = sscanf(rows[i].date, "%4d-%2d-%2d%n", &year, &month, &day, &end);
        cr_expect(n == 3 && end == 10 && rows[i].date[10] == '\0', "%s", rows[i].symbol);
        cr_expect(year >= 2026 && month >= 1 && month <= 12 && day >= 1 && day <= 31, "%s: %s",
                  rows[i].symbol, rows[i].date);
    }
}

/* One sentence or more, with a machine and without what would end a cell of the table. */
Test(tuning, meanings_are_sentences) {
    for (size_t i = 0; i < N_ROWS; i++) {
        const char *meaning = rows[i].meaning;
        size_t n = strlen(meaning);
        cr_expect(n > 10 && isupper((unsigned char)meaning[0]) && meaning[n - 1] == '.', "%s",
                  rows[i].symbol);
        cr_expect(!strchr(meaning, '|') && rows[i].machine[0], "%s", rows[i].symbol);
    }
}

/* A program of one thread has half of the rates of two cores, and wakes no other. */
Test(cards, cores_are_as_many_as_threads) {
    const Card *two = card_get(CARD_CPU);
    Card one = card_with_processors(two, 1), four = card_with_processors(two, 4);
    cr_expect_eq(one.dram_gbs, two->dram_gbs / 2);
    cr_expect_eq(one.cache_gbs, two->cache_gbs / 2);
    cr_expect(one.fill_us == 0 && one.launch_us < two->launch_us);
    cr_expect(four.n_processors == 4 && four.dram_gbs == two->dram_gbs * 2);
    cr_expect_eq(four.launch_us, two->launch_us);
}
