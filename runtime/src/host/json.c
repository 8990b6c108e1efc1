/* See json.h. A decoded string is never longer than its text, and its final zero takes the place of
 * the closing quote. */
#include "host/json.h"

#include "host/hex.h"

#include <string.h>

Json json_new(char *text, size_t n_bytes) {
    return (Json){.begin = text, .at = text, .end = text + n_bytes};
}

static bool fail(Json *json, const char *why) {
    json->wrong = json->wrong ? json->wrong : why;
    return false;
}

static void skip_blanks(Json *json) {
    while (json->at < json->end && *json->at && strchr(" \t\r\n", *json->at)) {
        json->at++;
    }
}

/* The next character after blanks; 0 at the end. */
static char peek(Json *json) {
    skip_blanks(json);
    return json->at < json->end ? *json->at : '\0';
}

static bool take(Json *json, char c) {
    if (peek(json) != c) {
        return false;
    }
    json->at++;
    return true;
}

JsonKind json_kind(Json *json) {
    char c = peek(json);
    if (json->wrong) {
        return JSON_WRONG;
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        return JSON_NUMBER;
    }
    switch (c) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
    case 'f':
    case 'n':
        return JSON_WORD;
    }
    fail(json, json->at < json->end ? "a value is missing" : "the text ends too early");
    return JSON_WRONG;
}

bool json_more(Json *json, JsonKind kind, bool *is_first) {
    bool opens = *is_first;
    *is_first = false;
    if (opens && !take(json, kind == JSON_OBJECT ? '{' : '[')) {
        return fail(json, "an object or an array does not begin");
    }
    if (take(json, kind == JSON_OBJECT ? '}' : ']')) {
        return false;
    }
    return opens || take(json, ',') || fail(json, "a comma or the end is missing");
}

/* Strings. */

/* The four digits of an escape \u; -1 if they are none. */
static int32_t take_hex(Json *json) {
    int32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = json->at < json->end ? hex_digit(*json->at) : -1;
        if (digit < 0) {
            return -1;
        }
        json->at++;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* The code point of an escape \u whose `u` has been read, of one or two halves; -1 if it has
 * none. */
static int32_t take_code_point(Json *json) {
    int32_t first = take_hex(json);
    if (first < 0xd800 || first > 0xdfff) {
        return first;
    }
    bool has_second = json->end - json->at > 2 && json->at[0] == '\\' && json->at[1] == 'u';
    json->at += has_second ? 2 : 0;
    int32_t second = has_second ? take_hex(json) : -1;
    if (first > 0xdbff || second < 0xdc00 || second > 0xdfff) {
        return -1;
    }
    return 0x10000 + (first - 0xd800) * 0x400 + (second - 0xdc00);
}

static char *put_code_point(char *to, int32_t code) {
    static const int32_t limits[] = {0x80, 0x800, 0x10000};
    static const uint8_t leads[] = {0, 0xc0, 0xe0, 0xf0};
    int n = 0; /* bytes after the first */
    while (n < 3 && code >= limits[n]) {
        n++;
    }
    *to++ = (char)(leads[n] | code >> 6 * n);
    while (n-- > 0) {
        *to++ = (char)(0x80 | (code >> 6 * n & 0x3f));
    }
    return to;
}

/* Bytes of the UTF-8 sequence at `p`, of which `n` bytes exist; 0: it is none. */
static size_t utf8_bytes(const unsigned char *p, size_t n) {
    size_t n_seq = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (n_seq == 0 || p[0] > 0xf4 || n_seq > n) {
        return 0;
    }
    for (size_t i = 1; i < n_seq; i++) {
        if (p[i] >> 6 != 2) {
            return 0;
        }
    }
    bool is_overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool is_outside = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    return is_overlong || is_outside ? 0 : n_seq;
}

/* Decodes the escape whose backslash has been read; NULL if it is none. */
static char *take_escape(Json *json, char *to) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = json->at < json->end ? *json->at++ : '\0';
    const char *name = c ? strchr(names, c) : NULL;
    if (name) {
        *to = values[name - names];
        return to + 1;
    }
    int32_t code = c == 'u' ? take_code_point(json) : -1;
    return code > 0 ? put_code_point(to, code) : NULL;
}

const char *json_string(Json *json) {
    if (!take(json, '"')) {
        fail(json, "a string does not begin");
        return NULL;
    }
    char *string = json->at, *to = json->at;
    while (json->at < json->end && *json->at != '"') {
        unsigned char c = (unsigned char)*json->at;
        size_t n = utf8_bytes((unsigned char *)json->at, (size_t)(json->end - json->at));
        if (c < 0x20 || n == 0) {
            fail(json, c < 0x20 ? "a control character in a string" : "a string is not UTF-8");
            return NULL;
        }
        if (c != '\\') {
            memmove(to, json->at, n);
            to += n;
            json->at += n;
            continue;
        }
        json->at++;
        to = take_escape(json, to);
        if (!to) {
            fail(json, "a string has a wrong escape");
            return NULL;
        }
    }
    if (json->at == json->end) {
        fail(json, "a string does not end");
        return NULL;
    }
    *to = '\0';
    json->at++;
    return string;
}

const char *json_name(Json *json) {
    const char *name = json_string(json);
    if (name && !take(json, ':')) {
        fail(json, "a colon is missing");
        return NULL;
    }
    return name;
}

/* Numbers and words. */

static bool take_digits(Json *json) {
    char *begin = json->at;
    while (json->at < json->end && *json->at >= '0' && *json->at <= '9') {
        json->at++;
    }
    return json->at > begin || fail(json, "a number lacks a digit");
}

static bool take_one_of(Json *json, const char *chars) {
    bool is_there = json->at < json->end && *json->at && strchr(chars, *json->at);
    json->at += is_there;
    return is_there;
}

/* The digits of its whole part lie in [*digits, *digits_end). */
static bool take_number(Json *json, bool *is_negative, bool *is_whole, char **digits,
                        char **digits_end) {
    skip_blanks(json);
    *is_negative = take_one_of(json, "-");
    *is_whole = true;
    *digits = json->at;
    if (!take_digits(json)) {
        return false;
    }
    *digits_end = json->at;
    if (**digits == '0' && *digits_end - *digits > 1) {
        return fail(json, "a number begins with 0");
    }
    if (take_one_of(json, ".")) {
        *is_whole = false;
        if (!take_digits(json)) {
            return false;
        }
    }
    if (take_one_of(json, "eE")) {
        *is_whole = false;
        take_one_of(json, "+-");
        return take_digits(json);
    }
    return true;
}

bool json_integer(Json *json, int64_t *value) {
    bool is_negative, is_whole;
    char *digit, *end;
    *value = 0;
    if (!take_number(json, &is_negative, &is_whole, &digit, &end)) {
        return false;
    }
    for (; is_whole && digit < end; digit++) {
        if (*value < (INT64_MIN + (*digit - '0')) / 10) {
            return false;
        }
        *value = *value * 10 - (*digit - '0');
    }
    if (!is_negative && *value == INT64_MIN) {
        return false;
    }
    *value = is_negative ? *value : -*value;
    return is_whole;
}

static bool skip_word(Json *json) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(json->end - json->at) >= n && memcmp(json->at, words[i], n) == 0) {
            json->at += n;
            return true;
        }
    }
    return fail(json, "a word is none of true, false and null");
}

static bool skip_scalar(Json *json, JsonKind kind) {
    bool is_negative, is_whole;
    char *digits, *end;
    if (kind == JSON_STRING) {
        return json_string(json) != NULL;
    }
    return kind == JSON_NUMBER ? take_number(json, &is_negative, &is_whole, &digits, &end)
           : kind == JSON_WORD ? skip_word(json)
                               : false;
}

bool json_skip(Json *json) {
    JsonKind open[JSON_MAX_DEPTH]; /* the objects and arrays around the next value */
    int depth = 0;
    do {
        JsonKind kind = json_kind(json);
        bool is_first = kind == JSON_OBJECT || kind == JSON_ARRAY;
        if (is_first && depth == JSON_MAX_DEPTH) {
            return fail(json, "it nests too deep");
        }
        if (is_first) {
            open[depth++] = kind;
        } else if (!skip_scalar(json, kind)) {
            return false;
        }
        while (depth > 0 && !json_more(json, open[depth - 1], &is_first)) {
            if (json->wrong) {
                return false;
            }
            depth--;
        }
        if (depth > 0 && open[depth - 1] == JSON_OBJECT && !json_name(json)) {
            return false;
        }
    } while (depth > 0);
    return true;
}

bool json_is_at_end(Json *json) {
    skip_blanks(json);
    return json->at == json->end;
}
