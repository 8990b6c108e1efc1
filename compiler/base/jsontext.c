/* See jsontext.h. */
#include "base/jsontext.h"

#include "base/number.h"

#include <math.h>

enum { JSON_DIGITS = 6 };

/* The length of the UTF-8 sequence at `s`; 0 when it is invalid. */
static size_t sequence_length(const unsigned char *s) {
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xC2 && s[0] < 0xE0 ? 2 : (s[0] & 0xF0) == 0xE0 ? 3 : 0;
    if (s[0] >= 0xF0 && s[0] < 0xF5) n = 4;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    return n;
}

static void put_string(Text *out, const char *value) {
    text_puts(out, "\"");
    for (const unsigned char *s = (const unsigned char *)value; *s;) {
        size_t n = sequence_length(s);
        if (*s == '"' || *s == '\\')
            text_printf(out, "\\%c", *s);
        else if (*s < 0x20)
            text_printf(out, "\\u%04x", *s);
        else if (n)
            text_add(out, (const char *)s, n);
        else
            text_puts(out, "\xEF\xBF\xBD");
        s += n ? n : 1;
    }
    text_puts(out, "\"");
}

static void begin_item(JsonText *json, const char *name) {
    if (json->depth) text_puts(json->out, json->has_items ? ",\n" : "\n");
    for (uint32_t i = 0; i < json->depth; i++) text_puts(json->out, "  ");
    if (name) {
        put_string(json->out, name);
        text_puts(json->out, ": ");
    }
    json->has_items = true;
}

void jsontext_begin(JsonText *json, const char *name, char bracket) {
    begin_item(json, name);
    text_printf(json->out, "%c", bracket);
    json->depth++;
    json->has_items = false;
}

void jsontext_end(JsonText *json, char bracket) {
    json->depth--;
    if (json->has_items) {
        text_puts(json->out, "\n");
        for (uint32_t i = 0; i < json->depth; i++) text_puts(json->out, "  ");
    }
    text_printf(json->out, json->depth ? "%c" : "%c\n", bracket);
    json->has_items = true;
}

void jsontext_string(JsonText *json, const char *name, const char *value) {
    begin_item(json, name);
    if (value)
        put_string(json->out, value);
    else
        text_puts(json->out, "null");
}

void jsontext_number(JsonText *json, const char *name, double value) {
    begin_item(json, name);
    if (!isfinite(value))
        text_puts(json->out, "null");
    else if (value == floor(value) && fabs(value) < 1e15)
        text_printf(json->out, "%.0f", value);
    else
        number_print(value, JSON_DIGITS, json->out);
}

void jsontext_bool(JsonText *json, const char *name, bool value) {
    begin_item(json, name);
    text_puts(json->out, value ? "true" : "false");
}
