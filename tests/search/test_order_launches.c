/* The launches of functions that scan, sort, or go by an order, at several extents. */
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
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

/* What the words N and R stand for. */
typedef struct Extents {
    const char *n, *r;
} Extents;

/* Appends the text with the words N and R replaced. */
static void append(char *to, size_t room, const char *text, Extents extents) {
    size_t at = strlen(to);
    for (const char *c = text; *c; c++) {
        bool is_word = !is_letter(c[1]) && (c == text || !is_letter(c[-1]));
        const char *extent = !is_word ? NULL : *c == 'N' ? extents.n : *c == 'R' ? extents.r : NULL;
        int n = extent ? snprintf(to + at, room - at, "%s", extent)
                       : snprintf(to + at, room - at, "%c", *c);
        at += (size_t)n;
        cr_assert(at < room);
    }
}

static uint32_t count(const char *types, const char *body, Extents extents, TargetId target) {
    char source[2048] = "dim N in 100..1000000\ndef joined(a, b) = a + b - a * b\n"
                        "def pair(a, b) {\n  return [b[0] * a[0], b[0] * a[1] + b[1]]\n}\ngraph g";
    append(source, sizeof source, types, extents);
    append(source, sizeof source, " {\n  ", extents);
    append(source, sizeof source, body, extents);
    append(source, sizeof source, "\n}\n", extents);
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
            Extents extents = {sizes[s], NULL};
            uint32_t n = count(orders[i].types, orders[i].body, extents, target);
            cr_expect(n <= orders[i].most[s], "%s: %s at N = %s: %u launches, not %u",
                      target_get(target)->name, orders[i].body, sizes[s], n, orders[i].most[s]);
        }
}

typedef struct Range {
    const char *types, *body;
    int64_t least;
    uint32_t most_gpu, most_cpu;
} Range;

static const Range ranges[] = {
#define RANGE(types, body, least, gpu, cpu) {types, body, least, gpu, cpu},
#include "order_launches.def"
};

static const char *const extents_of_n[] = {"1",    "7",     "64",     "65",      "4096",
                                           "4097", "70000", "300000", "1048576", "N"};
static const char *const extents_of_r[] = {"1", "3", "256", "5000"};

static void expect_range(const Range *range, TargetId target) {
    const Target *own = target_get(target);
    uint32_t most = own->has->cores ? range->most_cpu : range->most_gpu;
    for (size_t i = 0; i < sizeof extents_of_n / sizeof *extents_of_n; i++)
        for (size_t k = 0; k < sizeof extents_of_r / sizeof *extents_of_r; k++) {
            Extents extents = {extents_of_n[i], extents_of_r[k]};
            long least = strtol(extents.n, NULL, 10);
            if (least && least < range->least) continue;
            uint32_t n = count(range->types, range->body, extents, target);
            cr_expect(n <= most, "%s: %s, N = %s, R = %s: %u launches, not %u", own->name,
                      range->body, extents.n, extents.r, n, most);
        }
}

/* At all extents of the range, on each target. */
Test(order_launches, range, .timeout = 240) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4, TARGET_SM_80, TARGET_SM_90A};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
            expect_range(&ranges[i], targets[t]);
}

Test(order_launches, gpu, .timeout = 120) {
    expect_launches(TARGET_SM_90A);
}

Test(order_launches, cpu, .timeout = 120) {
    expect_launches(TARGET_CPU);
}
