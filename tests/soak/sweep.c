/* The sweep: every op with every dtype and class of shape, on every target. */
#include "sweep.h"

#include "soak.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SECONDS = 120 };

static void fill_domain(void *user, const Graph *graph, const GraphInput *input, Rng *rng,
                        Tensor *tensor) {
    const SweepCase *c = user;
    (void)graph, (void)input;
    if (dtype_kind(tensor->dtype) == KIND_BOOL) {
        random_fill(rng, FILL_UNIFORM, tensor);
        return;
    }
    int64_t n = tensor_n_elems(tensor);
    for (int64_t i = 0; i < n; i++) tensor_set_number(tensor, i, rng_uniform(rng, c->lo, c->hi));
}

static void add_context(const SweepCase *c, uint32_t extents, const char *contents, Text *report) {
    text_printf(report, "  with %s contents", contents);
    for (uint32_t k = 0; k < c->n_dims; k++)
        text_printf(report, ", %c = %" PRId64, "NMK"[k], c -> extents[extents][k]);
    text_puts(report, "\n");
}

/* One value for each dim; contents within the ops' domain and special ones. */
static bool run_extents(Soak *soak, Pair *pair, SweepCase *c, uint32_t i, Text *report) {
    PairData all[] = {{.fill = FILL_UNIFORM, .special = fill_domain, .user = c},
                      {.fill = FILL_INTEGERS},
                      {.fill = FILL_SPECIAL}};
    int64_t n_elems = 1;
    for (uint32_t k = 0; k < c->n_dims; k++) n_elems *= c->extents[i][k];
    if (!pair_place(pair, c->extents[i], report)) {
        add_context(c, i, "any", report);
        return false;
    }
    for (uint32_t f = 0; f < 3; f++) {
        if (n_elems > 8192 && f == 1) continue;
        all[f].seed = i * 3 + f;
        if (pair_run(pair, &all[f], &soak->counts, report)) continue;
        add_context(c, i, f ? random_fill_name(all[f].fill) : "ordinary", report);
        return false;
    }
    return true;
}

static void run_case(Soak *soak, SweepCase *c, const Target *target, uint32_t number) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Pair pair;
    RigOptions options = RIG_OPTIONS_INIT;
    options.is_unaligned = number % 3 == 0;
    options.program.no_weights = true;
    uint32_t n_failed = 0;
    soak_watch(str_format(arena, "the sweep, %s for %s", c->name, target->name), SECONDS);
    bool is_open =
        pair_compile(&pair, c->source, target, &report) && pair_open(&pair, 0, &options, &report);
    for (uint32_t i = 0; i < c->n_extents && is_open; i++)
        if (!run_extents(soak, &pair, c, i, &report)) n_failed++;
    soak_watch_off();
    soak->n_passed += is_open ? c->n_extents - n_failed : 0;
    soak->n_failed += is_open ? n_failed : c->n_extents;
    if (!is_open || n_failed)
        printf("%s, %s: %s%s", c->name, target->name, text_str(&report), c->source);
    pair_free(&pair);
    arena_free(arena);
}

void soak_sweep(Soak *soak) {
    SweepCases cases = {0};
    sweep_add_eltwise(soak->arena, &cases);
    sweep_add_casts(soak->arena, &cases);
    sweep_add_reductions(soak->arena, &cases);
    sweep_add_views(soak->arena, &cases);
    sweep_add_composites(soak->arena, &cases);
    sweep_add_contractions(soak->arena, &cases);
    for (uint32_t t = 0; t < soak->n_targets; t++) {
        uint32_t n_failed = soak->n_failed;
        uint32_t n_run = 0;
        for (uint32_t i = 0; i < cases.n; i++) {
            if (i % soak->n_parts != soak->part) continue;
            run_case(soak, &cases.data[i], soak->targets[t], i);
            n_run++;
        }
        printf("sweep: %u programs for %s, %u of their sizes failed\n", n_run,
               soak->targets[t]->name, soak->n_failed - n_failed);
    }
}
