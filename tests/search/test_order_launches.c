/* The launches of functions that scan, sort, or go by an order, at several extents. */
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { N_SIZES = 4 };
static const char *const sizes[N_SIZES] = {"100", "10000", "1000000", "N"};

typedef struct Order {
    const char *types, *body;
    uint32_t most[N_SIZES];
} Order;

static const Order orders[] = {
#define LAUNCHES(types, body, ...) {types, body, {__VA_ARGS__}},
#include "order_launches.def"
};

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Appends the text with the word N replaced. */
static void append(char *to, size_t room, const char *text, const char *size) {
    size_t at = strlen(to);
    for (const char *c = text; *c; c++) {
        bool is_word = *c == 'N' && !is_letter(c[1]) && (c == text || !is_letter(c[-1]));
        int n = is_word ? snprintf(to + at, room - at, "%s", size)
                        : snprintf(to + at, room - at, "%c", *c);
        at += (size_t)n;
        cr_assert(at < room);
    }
}

static uint32_t count(const Order *order, const char *size, TargetId target) {
    char source[2048] = "dim N in 16..1000000\ndef joined(a, b) = a + b - a * b\n"
                        "def pair(a, b) {\n  return [b[0] * a[0], b[0] * a[1] + b[1]]\n}\ngraph g";
    append(source, sizeof source, order->types, size);
    append(source, sizeof source, " {\n  ", size);
    append(source, sizeof source, order->body, size);
    append(source, sizeof source, "\n}\n", size);
    Arena *arena = arena_new(NULL);
    const Card *card = card_of_target(target_get(target));
    Module *module = plans_parse(arena, source);
    PricedPlan priced = plans_price(arena, module, 0, false, target, card, NULL);
    cr_assert(priced.plan, "%s", source);
    uint32_t n = priced.cost->n_launches;
    arena_free(arena);
    return n;
}

static void expect_launches(TargetId target) {
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        for (size_t s = 0; s < N_SIZES; s++) {
            uint32_t n = count(&orders[i], sizes[s], target);
            cr_expect(n <= orders[i].most[s], "%s: %s at N = %s: %u launches, not %u",
                      target_get(target)->name, orders[i].body, sizes[s], n, orders[i].most[s]);
        }
}

Test(order_launches, gpu, .timeout = 120) {
    expect_launches(TARGET_SM_90A);
}

Test(order_launches, cpu, .timeout = 120) {
    expect_launches(TARGET_CPU);
}
