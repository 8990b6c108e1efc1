/* Random attention: two matmuls with a softmax between them, in many spellings and under many
 * masks. Half of them are in an online block, and --rewrite makes the same of the others. */
#include "soak.h"

#include "lib/prove.h"
#include "random/rng.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct Draw {
    Rng rng;
    Arena *arena;
    int64_t m, n, depth, columns, heads; /* [heads, m, depth] times [heads, n, depth], [heads, n,
                                          * columns] */
} Draw;

/* What a mask shows: `i` and `j` are the row and the column, `a` a number, `len` an input for each
 * head, `id` and `own` inputs for each column and row, `far` and `near` of each head, in i64; `doc`
 * and `mine` count the documents that begin before a column and a row; `kept` is a bool for each
 * column. */
typedef struct MaskClass {
    const char *name, *shows;
} MaskClass;

static const MaskClass masks[] = {
    {"none", NULL},
    {"causal", "j <= i"},
    {"shifted", "j <= i + a"},
    {"window", "(j <= i) && (j + a > i)"},
    {"prefix", "(j < a) || (j <= i)"},
    {"chunks", "floor(cast(i, f32) / 32) == floor(cast(j, f32) / 32)"},
    {"lengths", "j < len"},
    {"documents", "id == own"},
    {"packed", "doc == mine"},
    {"packed causal", "(doc == mine) && (j <= i)"},
    {"documents before", "doc <= mine"},
    {"documents of heads", "far == near"},
    {"order of ids", "(id < own) || (j == 0)"},
    {"all but a document", "(doc != mine) && (j <= i + a)"},
    {"padding", "kept && (j <= i + a)"},
    {"ends", "!(j > a)"},
    {"scores", "s > 0.1"},
    {"scores before", "(s < 0.3) && (j <= i + a)"},
};
enum { N_MASKS = sizeof masks / sizeof *masks };

static const char *pick(Draw *d, const char *a, const char *b) {
    return rng_chance(&d->rng, 50) ? a : b;
}

static Draw draw_of(uint64_t seed, bool is_small, Arena *arena) {
    Draw d = {.rng = rng_new(seed), .arena = arena};
    int64_t most = is_small ? 200 : 2000;
    d.m = rng_between(&d.rng, 1, rng_chance(&d.rng, 30) ? 40 : most);
    d.n = rng_between(&d.rng, 1, rng_chance(&d.rng, 20) ? 64 : most);
    if (is_small && rng_chance(&d.rng, 30)) d.n += 512; /* more keys than LAUNCH_BOUNDS_KEYS */
    d.depth = 8 * rng_between(&d.rng, 1, rng_chance(&d.rng, 20) ? 32 : 16);
    d.columns = 8 * rng_between(&d.rng, 1, rng_chance(&d.rng, 20) ? 32 : 16);
    d.heads = rng_between(&d.rng, 1, is_small ? 2 : 6);
    return d;
}

/* The scale stands on the scores, on the queries or on the keys. */
static const char *score_text(Draw *d) {
    const char *keys = rng_chance(&d->rng, 30) ? "t" : "transpose(kg, [0, 2, 1])";
    const char *scale = pick(d, "* 0.125", "/ 8"), *product;
    switch (rng_below(&d->rng, 5)) {
    case 0:
        product = str_format(d->arena, "matmul(q %s, %s, out=f32)", scale, keys);
        break;
    case 1:
        product = str_format(d->arena, "matmul(q, %s %s, out=f32)", keys, scale);
        break;
    default:
        product = str_format(d->arena, "matmul(q, %s, out=f32) %s", keys, scale);
    }
    if (rng_chance(&d->rng, 15)) return str_format(d->arena, "4 * tanh(%s)", product);
    return str_format(d->arena, "%s%s", product, pick(d, "", " + bias"));
}

/* The scores `s` under the mask. */
static const char *masked_text(Draw *d, const MaskClass *mask) {
    if (!mask->shows) return "s";
    if (rng_chance(&d->rng, 25)) return str_format(d->arena, "where(!(%s), -inf, s)", mask->shows);
    if (rng_chance(&d->rng, 20))
        return str_format(d->arena, "s + where(%s, %s, -inf)", mask->shows, pick(d, "0.0", "bias"));
    return str_format(d->arena, "where(%s, s, -inf)", mask->shows);
}

/* The weights of the scores `x`: a softmax, times factors of rows and keys, or of powers that a
 * factor hides. */
static const char *weights_text(Draw *d) {
    switch (rng_below(&d->rng, 10)) {
    case 0:
        return "softmax(x, axis=2) * 0.75";
    case 1:
        return "softmax(x, axis=2) * bias[:, :1] / 3";
    case 2:
        return "bias * softmax(x, axis=2)";
    case 3:
        return "where(bias < 0.5, softmax(x, axis=2) / 0.9, 0.0)";
    case 4:
        return "dropout(softmax(x, axis=2), 0.2, seeds)";
    case 5:
        return "powers / sum(powers, axis=2, keep=true)";
    default:
        return "softmax(x, axis=2)";
    }
}

/* Half as many heads of keys and values, of which queries share each. */
static const char *grouped_text(Draw *d) {
    long long half = d->heads / 2, n = d->n;
    if (d->heads % 2 || rng_chance(&d->rng, 50)) return "  kg = kk\n  vg = vv\n";
    if (rng_chance(&d->rng, 50))
        return str_format(d->arena,
                          "  kg = repeat_interleave(kk[:%lld], 2, axis=0)\n"
                          "  vg = repeat_interleave(vv[:%lld], 2, axis=0)\n",
                          half, half);
    return str_format(d->arena,
                      "  kg = reshape(expand(unsqueeze(kk[:%lld], 1), [%lld, 2, %lld, %lld]), "
                      "[%lld, %lld, %lld])\n"
                      "  vg = reshape(expand(unsqueeze(vv[:%lld], 1), [%lld, 2, %lld, %lld]), "
                      "[%lld, %lld, %lld])\n",
                      half, half, n, (long long)d->depth, 2 * half, n, (long long)d->depth, half,
                      half, n, (long long)d->columns, 2 * half, n, (long long)d->columns);
}

/* Keys and values, of which the last are infinities or NaNs in half of the programs. */
static const char *spoilt_text(Draw *d) {
    long long n = d->n, first = rng_between(&d->rng, 0, n);
    if (rng_chance(&d->rng, 50)) return "  kk = k\n  vv = v\n";
    return str_format(d->arena,
                      "  fuse never {\n"
                      "  last = reshape(iota([%lld], axis=0) >= %lld, [1, %lld, 1])\n"
                      "  kk = where(last, %s, k)\n  vv = where(last, %s, v)\n  }\n",
                      n, first, n, pick(d, "nan", "inf"), pick(d, "nan", "-inf"));
}

static const char *source_of(Draw *d, const MaskClass *mask, bool is_online) {
    const char *dtype = pick(d, "bf16", "f16");
    long long h = d->heads, m = d->m, n = d->n, k = d->depth, c = d->columns;
    long long a = rng_between(&d->rng, 0, n);
    const char *begin = is_online ? "online {\n" : "", *operands = spoilt_text(d);
    operands = str_format(d->arena, "%s%s", operands, grouped_text(d));
    const char *scores = score_text(d), *masked = masked_text(d, mask), *weights = weights_text(d);
    bool has_scores = rng_chance(&d->rng, 70); /* in the block */
    bool has_log = is_online && rng_chance(&d->rng, 40);
    const char *type = str_format(d->arena, ", l: f32[%lld, %lld]", h, m);
    const char *log = "  l = cast(logsumexp(x, axis=2), f32)\n";
    return str_format(
        d->arena,
        "graph attention(q: %s[%lld, %lld, %lld], k: %s[%lld, %lld, %lld], t: %s[%lld, %lld, "
        "%lld], v: %s[%lld, %lld, %lld], bias: f32[%lld, %lld], lens: i32[%lld], ids: i32[%lld], "
        "wide: i64[%lld, %lld], flags: bool[%lld], seeds: u32[2]) "
        "-> (o: %s[%lld, %lld, %lld]%s) {\n"
        "  i = iota([%lld, %lld], axis=0)\n  j = iota([%lld, %lld], axis=1)\n"
        "  len = reshape(lens, [%lld, 1, 1])\n  id = reshape(ids[0:%lld], [1, %lld])\n"
        "  own = reshape(ids[0:%lld], [%lld, 1])\n  a = %lld\n"
        "  far = reshape(wide[:, 0:%lld] %% 5, [%lld, 1, %lld])\n"
        "  near = reshape(wide[:, 0:%lld] %% 5, [%lld, %lld, 1])\n"
        "  kept = reshape(flags, [1, %lld])\n"
        "  docs = cumsum(where(ids %% 64 == 0, 1, 0), axis=0)\n"
        "  doc = reshape(docs[0:%lld], [1, %lld])\n  mine = reshape(docs[0:%lld], [%lld, 1])\n"
        "%s%s  s = %s\n%s  x = %s\n"
        "  powers = exp(x - max(x, axis=2, keep=true)) * cast(bias < 0.5, f32)\n"
        "%s  o = cast(%s, %s) @ vg\n%s}\n",
        dtype, h, m, k, dtype, h, n, k, dtype, h, k, n, dtype, h, n, c, m, n, h, m > n ? m : n, h,
        m > n ? m : n, n, dtype, h, m, c, has_log ? type : "", m, n, m, n, h, n, n, m, m, a, n, h,
        n, m, h, m, n, n, n, m, m, operands, has_scores ? begin : "", scores,
        has_scores ? "" : begin, masked, has_log ? log : "", weights, dtype,
        is_online ? "}\n" : "");
}

typedef struct MaskCount {
    uint32_t n, n_rewritten, n_online;
} MaskCount;

static void check(Soak *soak, const Target *target, uint64_t seed, MaskCount *counts) {
    static Proof proof;
    Draw d = draw_of(seed, soak->is_small, soak->arena);
    const MaskClass *mask = &masks[seed % N_MASKS];
    bool is_online = seed / N_MASKS % 2;
    const char *source = source_of(&d, mask, is_online);
    const char *options[] = {str_format(soak->arena, "--target=%s", target->name),
                             is_online ? "--seed=2" : "--rewrite", "--data=random,special",
                             soak->is_cuda ? "--device=cuda" : NULL, NULL};
    soak_watch(str_format(soak->arena, "attention %" PRIu64, seed), 300);
    prove_verify(&proof, source, (DriverHook){0}, options);
    soak_watch_off();
    bool is_right = proof.status == FUSEC_OK;
    counts[seed % N_MASKS].n++;
    counts[seed % N_MASKS].n_rewritten += strstr(proof.said, "  rewritten: ") != NULL;
    counts[seed % N_MASKS].n_online += is_online;
    soak->n_passed += is_right;
    soak->n_failed += !is_right;
    if (!is_right)
        printf("attention %" PRIu64 " (%s): exit code %d\n%s%s", seed, mask->name,
               (int)proof.status, source, proof.said);
}

void soak_attention(Soak *soak) {
    for (uint32_t t = 0; t < soak->n_targets; t++) {
        MaskCount counts[N_MASKS] = {{0, 0, 0}};
        for (uint64_t i = 0; i < soak->n && soak_has_time(soak); i++)
            check(soak, soak->targets[t], soak->seed + i, counts);
        printf("%-18s %8s %8s %9s  on %s\n", "mask", "programs", "online", "rewritten",
               soak->targets[t]->name);
        for (uint32_t i = 0; i < N_MASKS; i++)
            printf("%-18s %8u %8u %9u\n", masks[i].name, counts[i].n, counts[i].n_online,
                   counts[i].n_rewritten);
    }
}
