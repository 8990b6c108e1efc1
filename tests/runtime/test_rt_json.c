/* The JSON reader: values of every kind, and every text that is none. */
#include "../../runtime/src/host/json.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* On the heap, so that a sanitizer sees any byte read past the end. */
static Json json_of(const char *text, char **memory) {
    size_t n = strlen(text);
    *memory = memcpy(malloc(n + 1), text, n);
    return json_new(*memory, n);
}

Test(rt_json, any_value_is_skipped_as_a_whole) {
    static const char *const good[] = {"0",
                                       "-0",
                                       "1.5e+300",
                                       "12E-2",
                                       "true",
                                       " false ",
                                       "null",
                                       "\"\"",
                                       "\"a\\u00e9\\n\"",
                                       "[]",
                                       "{}",
                                       "[1, [2, {}], \"x\"]",
                                       "{\"a\": {\"b\": [null]}, \"c\": 1}\r\n\t ",
                                       "[[[[]], []]]",
                                       "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        char *memory;
        Json json = json_of(good[i], &memory);
        cr_expect(json_skip(&json) && json_is_at_end(&json) && !json.wrong, "%s: %s", good[i],
                  json.wrong);
        free(memory);
    }
}

Test(rt_json, no_other_text_is_a_value) {
    static const char *const bad[] = {"",
                                      " ",
                                      "-",
                                      "01",
                                      "1.",
                                      ".5",
                                      "1e",
                                      "+1",
                                      "tru",
                                      "nul",
                                      "True",
                                      "[",
                                      "[1",
                                      "[1,",
                                      "[1,]",
                                      "[,]",
                                      "[1 2]",
                                      "]",
                                      "{",
                                      "{\"a\"",
                                      "{\"a\":",
                                      "{\"a\":1",
                                      "{\"a\":1,",
                                      "{\"a\":1,}",
                                      "{\"a\" 1}",
                                      "{a:1}",
                                      "{1:1}",
                                      "[}",
                                      "{]",
                                      "\"",
                                      "\"a",
                                      "\"\\\"",
                                      "\"\\x\"",
                                      "\"\\u12g4\"",
                                      "\"\\u0000\"",
                                      "\"\\ud800\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\\udc00\"",
                                      "\"\n\"",
                                      "\"\xff\"",
                                      "\"\xc0\xaf\"",
                                      "\"\xe0\x80\x80\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xf4\x90\x80\x80\"",
                                      "\"\xc3\"",
                                      "\"\xe2\x82\"",
                                      "'a'",
                                      "1 2",
                                      "{} x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char *memory;
        Json json = json_of(bad[i], &memory);
        bool is_whole = json_skip(&json) && json_is_at_end(&json);
        cr_expect(!is_whole, "`%s` is taken", bad[i]);
        free(memory);
    }
}

Test(rt_json, strings_are_decoded_in_place) {
    static const char text[] = "\"\\\"\\\\\\/\\b\\f\\n\\r\\t \\u0041\\u00e9\\u20AC\\ud83d\\ude00\"";
    char *memory;
    Json json = json_of(text, &memory);
    const char *string = json_string(&json);
    cr_assert(string, "%s", json.wrong);
    cr_expect_str_eq(string, "\"\\/\b\f\n\r\t A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    free(memory);
}

Test(rt_json, integers_are_exact_or_refused) {
    static const struct {
        const char *text;
        bool is_good;
        int64_t value;
    } cases[] = {{"0", true, 0},
                 {"-7", true, -7},
                 {"9223372036854775807", true, INT64_MAX},
                 {"-9223372036854775808", true, INT64_MIN},
                 {"9223372036854775808", false, 0},
                 {"-9223372036854775809", false, 0},
                 {"99999999999999999999999", false, 0},
                 {"1.0", false, 0},
                 {"1e2", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *memory;
        int64_t value;
        Json json = json_of(cases[i].text, &memory);
        cr_expect_eq(json_integer(&json, &value), cases[i].is_good, "%s", cases[i].text);
        cr_expect(!cases[i].is_good || value == cases[i].value, "%s", cases[i].text);
        cr_expect_null(json.wrong, "%s is a number", cases[i].text);
        free(memory);
    }
}

Test(rt_json, depth_is_bounded) {
    for (int depth = JSON_MAX_DEPTH; depth <= JSON_MAX_DEPTH + 1; depth++) {
        char text[2 * JSON_MAX_DEPTH + 3] = "", *memory;
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        Json json = json_of(text, &memory);
        cr_expect_eq(json_skip(&json), depth == JSON_MAX_DEPTH, "%d deep", depth);
        free(memory);
    }
}
