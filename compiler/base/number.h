/* Decimal numbers to and from text, always with a period, in any locale. */
#ifndef FUSEC_BASE_NUMBER_H
#define FUSEC_BASE_NUMBER_H

#include "base/str.h"

/* Parses the double nearest to `text` ("12", "1.5", "1e-5"; at most NUMBER_MAX_CHARS characters). A
 * number that is too large gives infinity. False when the text is not a number. */
enum { NUMBER_MAX_CHARS = 255 };
bool number_parse(const char *text, size_t n_bytes, double *value);

/* Prints `value` with `digits` significant digits, or fewer if these are exact to that precision. A
 * float always shows a period, an exponent, `inf` or `nan`, so that it reads back as a float. */
void number_print(double value, int digits, Text *out);

#endif
