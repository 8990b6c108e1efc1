/* Sources that are made to take long, as text in memory: see hostile.def. */
#ifndef FUSEC_TESTS_HOSTILE_H
#define FUSEC_TESTS_HOSTILE_H

#include "lib/command.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SOURCE_BYTES = 1 << 16, LONG_BYTES = 1 << 20 };

typedef struct Source {
    char text[LONG_BYTES];
    size_t n_bytes;
} Source;
static Source source;

static void add(const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n =
        vsnprintf(source.text + source.n_bytes, sizeof source.text - source.n_bytes, format, args);
    va_end(args);
    cr_assert(n >= 0 && source.n_bytes + (size_t)n < sizeof source.text);
    source.n_bytes += (size_t)n;
}

/* A kind of source. */
typedef struct Kind {
    const char *name, *fused, *unfused;
    int n_statements;
    const char *head, *item, *middle, *statement, *end;
} Kind;

static const Kind kinds[] = {
#define KIND(...) {__VA_ARGS__},
#include "cli/hostile.def"
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static const Kind *kind_of(const char *name) {
    const Kind *kind = kinds;
    while (kind < kinds + N_KINDS && strcmp(kind->name, name) != 0) kind++;
    cr_assert(kind < kinds + N_KINDS, "%s", name);
    return kind;
}

static size_t n_bytes_of(const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    return (size_t)n;
}

/* As many statements as fit. */
static int count_statements(const Kind *kind) {
    size_t n_bytes = strlen(kind->head) + strlen(kind->middle) + strlen(kind->end) + 8;
    for (int n = 0;; n++) {
        n_bytes += n_bytes_of(kind->item, n + 1, n, (n + 1) / 2);
        n_bytes += n_bytes_of(kind->statement, n + 1, n, (n + 1) / 2);
        if (n_bytes > SOURCE_BYTES) return n;
    }
}

/* Sets the source to `n` statements of the kind; 0: as many as it has. */
static void write_kind(const Kind *kind, int n) {
    source.n_bytes = 0;
    if (!n) n = kind->n_statements;
    if (!n) n = count_statements(kind);
    add("%s", kind->head);
    for (int i = 1; i <= n; i++) add(kind->item, i, i - 1, i / 2);
    add("%s", kind->middle);
    for (int i = 1; i <= n; i++) add(kind->statement, i, i - 1, i / 2);
    add(kind->end, n);
}

#endif
