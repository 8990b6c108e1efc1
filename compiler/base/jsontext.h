/* Writes JSON text: nested objects and lists, one member per line. Integers below 1e15 are exact,
 * other numbers have six digits. Names and strings are escaped; invalid UTF-8 becomes U+FFFD. */
#ifndef FUSEC_BASE_JSONTEXT_H
#define FUSEC_BASE_JSONTEXT_H

#include "base/str.h"

typedef struct JsonText {
    Text *out;
    uint32_t depth;
    bool has_items; /* the open object or list has a member */
} JsonText;

/* `name` is NULL in a list and at the top level. */
void jsontext_begin(JsonText *json, const char *name, char bracket);       /* '{' or '[' */
void jsontext_end(JsonText *json, char bracket);                           /* '}' or ']' */
void jsontext_string(JsonText *json, const char *name, const char *value); /* NULL is written as
                                                                            * null */
void jsontext_number(JsonText *json, const char *name, double value);      /* NaN and infinity are
                                                                            * written as null */
void jsontext_bool(JsonText *json, const char *name, bool value);

#endif
