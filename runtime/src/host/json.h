/* Reading JSON (RFC 8259) value by value, in place. It allocates nothing and does not recurse, so
 * no text can exhaust memory or the stack. The text must be UTF-8. */
#ifndef FRT_JSON_H
#define FRT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_MAX_DEPTH = 64 };

typedef struct Json {
    char *begin, *at, *end; /* strings are decoded in the text itself */
    const char *wrong;      /* the first error of syntax, at `at`; NULL: none */
} Json;

typedef enum JsonKind {
    JSON_WRONG, /* no value begins here: json->wrong says why */
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_WORD /* true, false, null */
} JsonKind;

/* The text has `n_bytes` bytes and is overwritten. */
Json json_new(char *text, size_t n_bytes);

/* The kind of the next value, which stays unread. */
JsonKind json_kind(Json *json);

/* Reads the opening of the object or array that comes next, then whether another member follows,
 * which `*is_first` guides: set it to true before the first call. Each call after which a member
 * follows must be followed by reading it. False at the end and on an error. */
bool json_more(Json *json, JsonKind kind, bool *is_first);

/* Reads a member's name and the colon after it; NULL on an error. The string lives in the text. */
const char *json_name(Json *json);

/* Reads the string that comes next; NULL on an error. It has no zero byte but the one at its end.
 */
const char *json_string(Json *json);

/* Reads the number that comes next. False on an error, and for a number with a fraction or an
 * exponent, or outside of int64_t: json->wrong is NULL then. */
bool json_integer(Json *json, int64_t *value);

/* Reads any value, at most JSON_MAX_DEPTH deep. */
bool json_skip(Json *json);

/* Whether only blanks follow. */
bool json_is_at_end(Json *json);

#endif
