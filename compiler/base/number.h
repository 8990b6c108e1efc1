/* Decimal numbers to and from text, always with a point, whatever the host's locale says. */
#ifndef FUSEC_BASE_NUMBER_H
#define FUSEC_BASE_NUMBER_H

#include "base/str.h"

/* The double nearest to `text` ("12", "1.5", "1e-5"; at most NUMBER_MAX_CHARS characters), infinity
 * when it is too large; false when it is not a number. */
enum { NUMBER_MAX_CHARS = 255 };
bool number_parse(const char *text, size_t n_bytes, double *value);

/* `value` with `digits` significant digits or as few as keep it exact to them; a float always shows
 * a point, an exponent, `inf` or `nan`, so that it reads back as one. */
void number_print(double value, int digits, Text *out);

#endif
