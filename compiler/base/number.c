/* The C library reads and writes numbers in the host's locale. This file replaces the locale's
 * decimal point by a period. */
#include "base/number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = NUMBER_MAX_CHARS + 32 };

bool number_parse(const char *text, size_t n_bytes, double *value) {
    char buffer[BUFFER_BYTES];
    const char *point = localeconv()->decimal_point;
    size_t n_point = strlen(point), n = 0;
    if (n_bytes == 0 || n_bytes > NUMBER_MAX_CHARS || n_point > 16) return false;
    for (size_t i = 0; i < n_bytes; i++) {
        if (text[i] != '.') {
            buffer[n++] = text[i];
            continue;
        }
        if (n + n_point + n_bytes - i >= sizeof buffer) return false;
        memcpy(buffer + n, point, n_point);
        n += n_point;
    }
    buffer[n] = '\0';
    char *end;
    *value = strtod(buffer, &end);
    return end == buffer + n;
}

void number_print(double value, int digits, Text *out) {
    if (isnan(value) || isinf(value)) {
        text_puts(out, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    char buffer[BUFFER_BYTES];
    const char *point = localeconv()->decimal_point;
    for (int n = 1; n <= digits; n++) { /* the shortest text that reads back as the value */
        snprintf(buffer, sizeof buffer, "%.*g", n, value);
        if (strtod(buffer, NULL) == value) break;
    }
    char *found = strstr(buffer, point);
    if (found) {
        text_add(out, buffer, (size_t)(found - buffer));
        text_puts(out, ".");
        text_puts(out, found + strlen(point));
        return;
    }
    text_puts(out, buffer);
    if (!strpbrk(buffer, "eE")) text_puts(out, ".0");
}
