/* Maps in tiles: which maps are, how tiles lie in shared memory, what they are priced at, and that
 * the code is what the assembler takes without spills. That results are right, random shapes show
 * (soak --shapes --only=map-tile). */
#include "template/map_tile.h"

#include "lib/compiled.h"
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

typedef struct Tiling {
    const char *source;
    uint32_t tile_m, tile_n, lanes_in, lanes; /* of the first variant; tile_m 0: it has no tile */
    uint32_t n_variants;
} Tiling;

static const Tiling choices[] = {
    {"graph g(x: bf16[16384, 4096]) -> (y: bf16[4096, 16384]) { y = transpose(x) }", 64, 64, 8, 8,
     2},
    {"graph g(x: f32[8192, 8191]) -> (y: f32[8191, 8192]) { y = transpose(x) }", 64, 64, 1, 4, 2},
    {"graph g(x: f32[8191, 8192]) -> (y: f32[8192, 8191]) { y = transpose(x) }", 64, 64, 4, 1, 2},
    {"graph g(x: f64[1001, 999]) -> (y: f64[999, 1001]) { y = transpose(x) }", 64, 64, 1, 1, 1},
    {"graph g(x: bf16[64, 56, 56, 256]) -> (y: bf16[64, 256, 56, 56]) {\n"
     "  y = relu(transpose(x, [0, 3, 1, 2])) }",
     64, 64, 8, 8, 2},
    {"graph g(x: f32[8192, 8192], y: f32[8192, 8192]) -> (z: f32[8192, 8192]) {\n"
     "  z = x + transpose(y) }",
     64, 64, 4, 4, 2},
    /* For extents that fill tiles, and are whole accesses or are not; then as ever. */
    {"dim M in 1..65536\ndim N in 1..65536\n"
     "graph g(x: bf16[M, N]) -> (y: bf16[N, M]) { y = transpose(x) }",
     64, 64, 8, 8, 4},
    /* Those that are short leave their part of the tile to the others. */
    {"graph g(x: f32[512, 1024, 16]) -> (y: f32[512, 16, 1024]) { y = transpose(x, [0, 2, 1]) }",
     16, 256, 4, 4, 2},
    /* Few tiles are small. */
    {"graph g(x: f32[128, 128]) -> (y: f32[128, 128]) { y = transpose(x) }", 32, 32, 4, 4, 2},
    /* Tiles of many tensors are small, so that several blocks have room. */
    {"graph g(x: f32[4096, 4096], y: f32[4096, 4096], z: f32[4096, 4096]) -> (w: f32[4096, 4096])"
     " { w = transpose(x * y - z) }",
     32, 32, 4, 4, 2},
    /* Every other element of an uncoalesced load. */
    {"graph g(x: f32[4096, 4096]) -> (y: f32[2048, 4096]) { y = transpose(x[:, ::2]) }", 64, 64, 4,
     4, 2},
    /* Axes that a reshape joins are taken apart, one or two of them. */
    {"graph g(x: bf16[64, 56, 56, 256]) -> (y: bf16[64, 802816]) {\n"
     "  y = reshape(transpose(x, [0, 3, 1, 2]), [64, 802816]) }",
     64, 64, 8, 8, 2},
    {"graph g(x: f32[64, 256, 56, 56]) -> (y: f32[51380224]) {\n"
     "  y = relu(reshape(transpose(x, [0, 2, 3, 1]), [51380224])) }",
     64, 64, 4, 4, 2},
    {"dim B in 1..64\ndim C in 1..512\ndim H in 1..64\n"
     "graph g(x: bf16[B, H, H, C]) -> (y: bf16[B, C * H * H]) {\n"
     "  y = reshape(transpose(x, [0, 3, 1, 2]), [B, C * H * H]) }",
     64, 64, 8, 8, 4},
    /* Every load is coalesced. */
    {"graph g(x: bf16[4096, 4096], b: bf16[4096]) -> (y: bf16[4096, 4096]) { y = relu(x + b) }", 0,
     0, 0, 8, 2},
    {"graph g(x: bf16[32, 512, 16, 64]) -> (y: bf16[32, 16, 512, 64]) {\n"
     "  y = transpose(x, [0, 2, 1, 3]) }",
     0, 0, 0, 8, 2},
    {"graph g(x: f32[4096, 4096], i: i32[4096]) -> (y: f32[4096, 4096]) {\n"
     "  y = gather(x, i, axis=0) }",
     0, 0, 0, 4, 2},
    {"graph g(b: f32[4096, 1]) -> (y: f32[4096, 64]) { y = expand(b, [4096, 64]) }", 0, 0, 0, 4, 2},
    /* Lines are shared as it is; what lies both ways; what may not be there. */
    {"graph g(x: f32[512, 512, 3]) -> (y: f32[3, 512, 512]) { y = transpose(x, [2, 0, 1]) }", 0, 0,
     0, 4, 2},
    {"graph g(x: f32[256, 512]) -> (y: f32[256, 512], z: f32[512, 256]) {\n"
     "  y = relu(x)\n  z = transpose(y) }",
     0, 0, 0, 4, 2},
    {"graph g(x: f32[256, 512]) -> (y: f32[513, 256]) {\n"
     "  y = transpose(pad(x, low=[0, 0], high=[0, 1])) }",
     0, 0, 0, 4, 2},
};

Test(map_tile, uncoalesced_loads_go_in_tiles) {
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const Tiling *wanted = &choices[i];
        Compiled c = compiled_new(wanted->source, TARGET_SM_90A);
        const Kernel *kernel = &c.driver.plans[0]->kernels.data[0];
        const Sched *s = &kernel->variants[0].sched;
        MapTileSched tile =
            s->template == TEMPLATE_GPU_MAP_TILE ? s->map_tile : (MapTileSched){.lanes_in = 0};
        cr_expect_eq(tile.lanes_in, wanted->lanes_in, "%s: lanes in %u", wanted->source,
                     tile.lanes_in);
        cr_expect_eq(s->lanes, wanted->lanes, "%s: lanes %u", wanted->source, s->lanes);
        cr_expect(tile.tile_m == wanted->tile_m && tile.tile_n == wanted->tile_n, "%s: %u x %u",
                  wanted->source, tile.tile_m, tile.tile_n);
        cr_expect_eq(kernel->n_variants, wanted->n_variants, "%s: %u variants", wanted->source,
                     kernel->n_variants);
        cr_expect_eq(strstr(c.bytes, "bar.sync") != NULL, wanted->tile_m > 0, "%s", wanted->source);
        cr_expect(compiled_is_in_registers(&c), "%s", wanted->source);
        compile_free(&c);
    }
}

/* Of a warp's access to `bytes` at each of these offsets: how many words of one bank. */
static uint32_t conflicts(const uint32_t offsets[32], uint32_t bytes) {
    uint32_t most = 0, n_at_once = bytes > 4 ? 16 : 32;
    for (uint32_t first = 0; first < 32; first += n_at_once)
        for (uint32_t bank = 0; bank < 32; bank++) {
            uint32_t words[64], n = 0;
            for (uint32_t i = first; i < first + n_at_once; i++)
                for (uint32_t at = offsets[i] / 4; at * 4 < offsets[i] + bytes; at++) {
                    bool is_new = at % 32 == bank;
                    for (uint32_t k = 0; k < n; k++) is_new = is_new && words[k] != at;
                    if (is_new) words[n++] = at;
                }
            if (n > most) most = n;
        }
    return most;
}

static void expect_few_conflicts(const Sched *s, uint32_t bytes) {
    MapTilePlace place = map_tile_place(s, bytes);
    uint32_t per_row = s->map_tile.tile_m / s->map_tile.lanes_in,
             per_column = s->map_tile.tile_n / s->lanes;
    for (uint32_t warp = 0; warp < MAP_TILE_THREADS / 32; warp++) {
        uint32_t in[32], out[32];
        for (uint32_t i = 0; i < 32; i++) {
            uint32_t thread = warp * 32 + i;
            in[i] =
                map_tile_offset(&place, thread / per_row, thread % per_row * s->map_tile.lanes_in);
            out[i] = map_tile_offset(&place, thread % per_column * s->lanes, thread / per_column);
        }
        cr_expect_leq(conflicts(in, bytes), 2, "in: %u x %u of %u", s->map_tile.tile_m,
                      s->map_tile.tile_n, bytes);
        cr_expect_leq(conflicts(out, bytes), 2, "out: %u x %u of %u", s->map_tile.tile_m,
                      s->map_tile.tile_n, bytes);
    }
}

Test(map_tile, a_warp_finds_its_words_in_different_banks) {
    static const struct {
        uint32_t edge, lanes_in, lanes, bytes;
    } tiles[] = {{64, 8, 8, 2}, {64, 1, 8, 2}, {64, 8, 1, 2}, {64, 1, 1, 2}, {64, 4, 4, 4},
                 {64, 1, 4, 4}, {64, 4, 1, 4}, {64, 1, 1, 4}, {32, 2, 2, 8}, {32, 1, 1, 8},
                 {64, 8, 8, 1}, {64, 1, 1, 1}, {32, 4, 4, 2}, {32, 4, 4, 4}, {64, 8, 4, 2}};
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        Sched s = {.lanes = tiles[i].lanes,
                   .map_tile = {.tile_m = tiles[i].edge,
                                .tile_n = tiles[i].edge,
                                .lanes_in = tiles[i].lanes_in}};
        expect_few_conflicts(&s, tiles[i].bytes);
    }
}

/* Each element has a place of its own, and coordinates without common bits add up. */
Test(map_tile, elements_of_a_tile_have_distinct_offsets) {
    for (uint32_t m = 8; m <= 256; m *= 2)
        for (uint32_t bytes = 1; bytes <= 8; bytes *= 2) {
            Sched s = {.lanes = 4, .map_tile = {.tile_m = m, .tile_n = 2048 / m, .lanes_in = 1}};
            MapTilePlace place = map_tile_place(&s, bytes);
            bool seen[2048] = {false};
            for (uint32_t i = 0; i < 2048; i++) {
                uint32_t row = i / m, column = i % m, at = map_tile_offset(&place, row, column);
                cr_assert(at % bytes == 0 && at / bytes < 2048 && !seen[at / bytes]);
                seen[at / bytes] = true;
                cr_assert_eq(at, map_tile_offset(&place, row & 12, column & 5) ^
                                     map_tile_offset(&place, row & ~12u, column & ~5u));
            }
        }
}

/* Microseconds on an H200 of the same maps without tiles, as they were measured, and with them, as
 * they should be at 75 to 90 % of memory's rate. */
static const struct {
    uint32_t choice;
    double plain_us, least_us, most_us;
} prices[] = {{0, 471, 67, 82}, {1, 498, 135, 164}, {4, 343, 51, 63}, {5, 519, 202, 245}};

Test(map_tile, prices_are_those_that_were_measured) {
    for (size_t i = 0; i < sizeof prices / sizeof *prices; i++) {
        Arena *arena = arena_new(NULL);
        const Card *card = card_get(CARD_H200);
        Module *module = plans_parse(arena, choices[prices[i].choice].source);
        PricedPlan priced = plans_price(arena, module, 0, false, TARGET_SM_90A, card, NULL);
        double us = priced.cost->us;
        cr_expect(us >= prices[i].least_us && us <= prices[i].most_us, "%zu: %.1f us", i, us);
        Kernel *kernel = &priced.plan->kernels.data[0];
        Sched *s = &kernel->variants[0].sched;
        DimTab *dims = module->dims;
        kernel->variants[0].grid =
            dim_ceil_div(dims, kernel_n_rows(kernel), (int64_t)s->lanes * s->threads);
        s->template = TEMPLATE_GPU_MAP; /* along the same axis, as far from the last */
        us = cost_us(arena, priced.plan, card, cost_dims(arena, dims, NULL));
        cr_expect_lt(fabs(us - prices[i].plain_us), 0.08 * prices[i].plain_us, "%zu: %.1f us", i,
                     us);
        arena_free(arena);
    }
}

/* Of the transpose between symbols: tiles where they are full, wide ones where both sides are. */
Test(map_tile, extents_choose_the_variant) {
    static const struct {
        int64_t dims[2];
        uint32_t variant;
    } runs[] = {{{4096, 4096}, 0}, {{4096, 4095}, 1}, {{4095, 4096}, 1}, {{1, 4096}, 3},
                {{65536, 1}, 2},   {{64, 64}, 0},     {{8, 64}, 2},      {{16, 64}, 0}};
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, choices[6].source);
    const Card *card = card_get(CARD_H200);
    const Plan *plan = plans_price(arena, module, 0, false, TARGET_SM_90A, card, NULL).plan;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const int64_t *dims = cost_dims(arena, module->dims, runs[i].dims);
        uint32_t variant = cost_plan(arena, plan, card, dims)->kernels[0].variant;
        cr_expect_eq(variant, runs[i].variant, "%lld x %lld: %u", (long long)runs[i].dims[0],
                     (long long)runs[i].dims[1], variant);
    }
    arena_free(arena);
}

/* Rows that a transpose reads are not stored across memory by their own kernel; what that would
 * take, in microseconds on an H200, was measured. */
Test(map_tile, rows_are_transposed_by_a_map_of_their_own) {
    static const struct {
        const char *head, *body;
        double together_us;
    } rows[] = {{"graph g(x: bf16[16384, 4096]) -> (t: bf16[4096, 16384])",
                 "t = transpose(softmax(x))", 969},
                {"graph g(x: f32[8192, 4096]) -> (t: f32[4096, 8192])",
                 "t = transpose(x - max(x, axis=1, keep=true))", 577}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int is_one = 0; is_one < 2; is_one++) {
            Arena *arena = arena_new(NULL);
            const char *source =
                str_format(arena, "%s {%s\n  %s%s }\n", rows[i].head, is_one ? " fuse must {" : "",
                           rows[i].body, is_one ? " }" : "");
            PricedPlan p = plans_price(arena, plans_parse(arena, source), 0, false, TARGET_SM_90A,
                                       card_get(CARD_H200), NULL);
            cr_expect_eq(p.cost->n_launches, is_one ? 1 : 2, "%s", source);
            double wanted = rows[i].together_us;
            cr_expect(is_one ? fabs(p.cost->us - wanted) < 0.15 * wanted : p.cost->us < wanted / 4,
                      "%s: %.1f us", source, p.cost->us);
            arena_free(arena);
        }
}
