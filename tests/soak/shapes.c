/* Random shapes: each template's programs, compiled once and run at many shapes, every one of them
 * several times under other conditions. See shapes.h. */
#include "shapes.h"

#include "lib/noise.h"
#include "soak.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECONDS = 120, PART_STRIDE = 1009, MAX_FAILED = 40, MAX_ROUNDS = 6, MAX_TOO_LARGE = 100 };

/* How much is done for one shape: elements of all values together, multiplications of products, and
 * how many of both the interpreter judges too. */
typedef struct Limits {
    uint32_t n_shapes; /* of a program */
    int64_t elems, work, judged_elems, judged_work;
} Limits;
static const Limits core_limits = {8, 1 << 16, 1 << 21, 1 << 14, 1 << 18};
static const Limits wide_limits = {20, 1 << 21, 1 << 29, 1 << 16, 1 << 20};
static const Limits small_limits = {2, 1 << 19, 1 << 25, 1 << 14, 1 << 18}; /* of an emulator */

typedef struct Shapes {
    Soak *soak;
    const Target *target, *against;
    const Limits *limits;
    Noise *noise;
    ShapeCount count;
    uint32_t n_planted, n_caught; /* programs with a wrong op */
    uint32_t n_too_large;         /* shapes of the program that an emulator cannot run */
} Shapes;

typedef struct Case {
    Shapes *shapes;
    LoweringId id;
    uint64_t number; /* of the program */
    uint32_t shape;
    Pair *pair;
    Rng rng;
    Arena *arena;
    Text report;
    int64_t elems, work;
    uint32_t n_rounds; /* of noise */
    LoweringUse use;
    bool is_too_large;
} Case;

/* Drawing. */

static int64_t draw_extent(Rng *rng, const DimSymbol *symbol) {
    double lo = (double)symbol->lo, hi = (double)symbol->hi;
    int64_t any = (int64_t)exp(rng_uniform(rng, log(lo), log(hi + 1)));
    int64_t near = (int64_t)1 << (uint32_t)log2((double)any + 1);
    uint32_t kind = rng_below(rng, 10);
    if (kind == 0) any = symbol->lo + rng_below(rng, 5);
    if (kind == 1 || kind == 2) any = near + rng_between(rng, -1, 1);
    if (kind >= 3 && kind <= 5) any = (any + 7) / 8 * 8;
    if (any > symbol->hi) any = symbol->hi;
    if (any < symbol->lo) any = symbol->lo;
    any -= any % symbol->multiple;
    return any < symbol->lo ? any + symbol->multiple : any;
}

/* Of known extents so many times more is taken. */
enum { KNOWN_SLACK = 16, MOST_HALVED = 200 };

/* What the shape takes; false where that cannot be said. */
static bool measure(Case *c, const Graph *graph, const int64_t *values) {
    const char *error = NULL;
    c->elems = c->work = 0;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        Tensor type, left;
        if (!interp_shape(graph, id, values, &type, c->arena, &error)) return false;
        int64_t n = tensor_n_elems(&type);
        if (n < 0) return false;
        c->elems += n;
        if (op_info(node->op)->cls != CLASS_MATMUL) continue;
        if (!interp_shape(graph, node->args[0], values, &left, c->arena, &error)) return false;
        c->work += n * left.dims[left.rank - 1];
    }
    return true;
}

static bool fits(const Case *c, int64_t slack) {
    const Limits *limits = c->shapes->limits;
    return c->elems <= slack * limits->elems && c->work <= slack * limits->work;
}

/* Draws all extents, and halves some until the shape is small enough. Known ones are as their
 * family made them, and too large for an emulator or not. So is what known ones leave of a shape
 * whose other extents are as small as they may be. */
static bool draw_shape(Case *c, int64_t *values) {
    const DimTab *dims = c->pair->exposed.module->dims;
    uint32_t n = dim_n_symbols(dims);
    for (uint32_t s = 0; s < n; s++) values[s] = draw_extent(&c->rng, dim_symbol_info(dims, s));
    for (int tries = 0;; tries++) {
        bool is_measured = measure(c, pair_graph(c->pair), values);
        if (is_measured && fits(c, 1)) return true;
        if (n == 0) return !c->shapes->soak->is_small || fits(c, KNOWN_SLACK);
        if (tries == MOST_HALVED) return is_measured && fits(c, KNOWN_SLACK);
        uint32_t s = rng_below(&c->rng, n);
        const DimSymbol *symbol = dim_symbol_info(dims, s);
        int64_t half = values[s] / 2 - values[s] / 2 % symbol->multiple;
        if (half >= symbol->lo)
            values[s] = half + (rng_chance(&c->rng, 30) && half % 2 == 0 && symbol->multiple == 1);
    }
}

/* Running. */

static void make_noise(void *user) {
    Case *c = user;
    if (c->shapes->noise) noise_start(c->shapes->noise, c->n_rounds);
}

static void scatter(Case *c, Rig *rig) {
    rig->options.is_unaligned = rng_chance(&c->rng, 50);
    rig->options.aligned = rng_chance(&c->rng, 50) ? rng_bits(&c->rng) : 0;
}

static void note_use(Case *c) {
    Pair *pair = c->pair;
    lowering_note_use(pair->fused.driver.plans[0], c->shapes->target, &pair->fused_rig,
                      pair->symbol_values, &c->use);
}

static bool complain(Case *c, const char *what) {
    text_printf(&c->report, "%s: %s\n", what, c->pair->fused_rig.error);
    return false;
}

/* Of every output as the last run of the fused program left it, in one block. */
static uint8_t *copy_results(Case *c, size_t *n_bytes) {
    const Rig *rig = &c->pair->fused_rig;
    Text all = {.arena = c->arena};
    for (uint32_t i = 0; i < rig->n_tensors; i++)
        if (rig->tensors[i].info.role == FRT_OUTPUT)
            text_add(&all, (const char *)rig->after + rig->tensors[i].offset,
                     rig->tensors[i].n_bytes);
    *n_bytes = all.n_bytes;
    return (uint8_t *)all.data;
}

/* Whether the last run's outputs are those bytes; `exactly`: payloads of NaN too. */
static bool same_results(Case *c, const uint8_t *wanted, bool exactly, const char *what) {
    const Rig *rig = &c->pair->fused_rig;
    for (uint32_t i = 0; i < rig->n_tensors; i++) {
        const RigTensor *t = &rig->tensors[i];
        if (t->info.role != FRT_OUTPUT) continue;
        const uint8_t *got = rig->after + t->offset, *want = wanted;
        wanted += t->n_bytes;
        if (memcmp(got, want, t->n_bytes) == 0) continue;
        Tensor a, b;
        Comparison comparison;
        tensor_new(c->arena, (Dtype)t->info.dtype, (uint32_t)t->info.rank, t->dims, &a);
        tensor_new(c->arena, (Dtype)t->info.dtype, (uint32_t)t->info.rank, t->dims, &b);
        tensor_load(&a, want), tensor_load(&b, got);
        if (compare_within(&a, &b, NULL, &comparison) && !exactly) continue;
        if (exactly) compare_bits(&a, want, got, &comparison);
        text_printf(&c->report, "%s: output `%s` differs: ", what, t->info.name);
        compare_print(&comparison, &a, &c->report);
        text_puts(&c->report, "\n");
        return false;
    }
    return true;
}

/* The same contents at other addresses, beside other work, over another poison. */
static bool move_contents(Case *c) {
    Pair *pair = c->pair;
    Rig *rig = &pair->fused_rig;
    scatter(c, rig);
    if (!rig_place(rig, pair->exposed.module->dims, pair->symbol_values))
        return complain(c, "placed again");
    for (uint32_t i = 0; i < rig->n_tensors; i++) {
        size_t n_bytes, n_there;
        const char *name = rig->tensors[i].info.name;
        uint8_t *bytes = rig_contents(rig, name, &n_bytes);
        const uint8_t *from = bytes ? rig_contents(&pair->exposed_rig, name, &n_there) : NULL;
        if (from && n_there == n_bytes) memcpy(bytes, from, n_bytes);
    }
    return true;
}

static bool run_again(Case *c) {
    Rig *rig = &c->pair->fused_rig;
    size_t n_bytes;
    const uint8_t *first = copy_results(c, &n_bytes);
    if (!move_contents(c)) return false;
    rig->options.before_run = make_noise;
    rig->options.user = c;
    c->n_rounds = 1 + rng_below(&c->rng, MAX_ROUNDS);
    bool is_right = rig_run(rig, 0x5A) || complain(c, "run again");
    if (is_right) note_use(c);
    is_right = is_right && same_results(c, first, false, "run again");
    const uint8_t *second = copy_results(c, &n_bytes);
    if (shapes_are_unsteady()) rig->before[rig->tensors[0].offset] ^= 1;
    c->n_rounds = rng_below(&c->rng, MAX_ROUNDS);
    is_right = is_right && (rig_run(rig, 0x00) || complain(c, "run once more"));
    is_right = is_right && same_results(c, second, true, "run once more, at the same place");
    rig->options.before_run = NULL;
    return is_right;
}

static uint64_t hash_shape(const Rig *rig) {
    uint64_t hash = STR_HASH_SEED;
    for (uint32_t i = 0; i < rig->n_tensors; i++)
        hash = hash_bytes(hash, rig->tensors[i].dims,
                          (size_t)rig->tensors[i].info.rank * sizeof *rig->tensors[i].dims);
    return hash;
}

/* Whether the interpreter judges the values of that shape too. */
static bool is_judged(const Case *c) {
    const Limits *limits = c->shapes->limits;
    return c->elems <= limits->judged_elems && c->work <= limits->judged_work;
}

static bool run_shape(Case *c) {
    Pair *pair = c->pair;
    int64_t values[DIM_MAX_SYMBOLS] = {0};
    if (!draw_shape(c, values)) {
        text_printf(&c->report,
                    "no shape is small enough: %" PRId64 " elements, %" PRId64 " multiplications\n",
                    c->elems, c->work);
        return c->is_too_large = c->shapes->soak->is_small;
    }
    static const RandomFill fills[] = {FILL_UNIFORM, FILL_UNIFORM, FILL_INTEGERS, FILL_SPECIAL};
    PairData data = {.fill = fills[rng_below(&c->rng, 4)]};
    data.seed = rng_bits(&c->rng);
    data.without_reference = !is_judged(c);
    scatter(c, &pair->fused_rig);
    scatter(c, &pair->exposed_rig);
    if (!pair_place(pair, values, &c->report) ||
        !pair_run(pair, &data, &c->shapes->soak->counts, &c->report))
        return false;
    note_use(c);
    return run_again(c);
}

/* Cases. */

static const char *name_case(const Case *c) {
    return str_format(c->arena, "soak --shapes --target=%s --one=%s:%" PRIu64 ":%u",
                      c->shapes->target->name, lowering_info(c->id)->name, c->number, c->shape);
}

static void print_failure(Case *c) {
    const DimTab *dims = c->pair->exposed.module ? c->pair->exposed.module->dims : NULL;
    printf("FAILED %s, %s", lowering_info(c->id)->name, c->shapes->target->name);
    for (uint32_t s = 0; dims && s < dim_n_symbols(dims); s++)
        if (!dim_symbol_info(dims, s)->rule)
            printf(", %s = %" PRId64, dim_symbol_info(dims, s)->name, c->pair->symbol_values[s]);
    printf(": %s  again: %s\n", text_str(&c->report), name_case(c));
}

/* One shape of an open pair, with a stream of random numbers of its own. */
static bool try_shape(Shapes *shapes, Pair *pair, LoweringId id, uint64_t number, uint32_t shape) {
    Arena *arena = arena_new(NULL);
    uint64_t key[] = {id, number, shape};
    Case c = {.shapes = shapes, .id = id, .number = number, .shape = shape, .pair = pair};
    c.rng = rng_new(hash_bytes(STR_HASH_SEED, key, sizeof key));
    c.arena = c.report.arena = arena;
    soak_watch(name_case(&c), SECONDS);
    bool is_right = run_shape(&c);
    soak_watch_off();
    if (is_right && !c.is_too_large)
        shape_count_add(&shapes->count, &c.use, hash_shape(&pair->fused_rig));
    if (!is_right) print_failure(&c);
    shapes->soak->n_passed += is_right && !c.is_too_large;
    shapes->n_too_large += c.is_too_large;
    shapes->soak->n_failed += !is_right;
    arena_free(arena);
    return is_right;
}

/* Whether all extents are known, and values so large that nobody judges them. Then they need not be
 * outputs of the unfused program. */
static bool is_known_and_large(Shapes *shapes, Pair *pair, Arena *arena) {
    int64_t none[DIM_MAX_SYMBOLS] = {0};
    Case c = {.shapes = shapes, .pair = pair, .arena = arena};
    return dim_n_symbols(pair->exposed.module->dims) == 0 && measure(&c, pair_graph(pair), none) &&
           !is_judged(&c);
}

static bool compile_program(Shapes *shapes, const char *source, Pair *pair, Arena *arena,
                            Text *report) {
    if (!pair_compile_against(pair, source, shapes->target, shapes->against, report)) return false;
    if (!is_known_and_large(shapes, pair, arena)) return true;
    pair_free(pair);
    return pair_compile_plain(pair, source, shapes->target, shapes->against, report);
}

/* Shapes [first, end) of a program; false when one failed. */
static bool run_program(Shapes *shapes, LoweringId id, uint64_t number, uint32_t first,
                        uint32_t end) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    const char *source = lowering_source(arena, id, number);
    Pair pair;
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.no_weights = true;
    options.program.n_threads = 1 + (int32_t)(number % 3);
    const char *what = str_format(arena, "a program of %s, number %" PRIu64 ", for %s",
                                  lowering_info(id)->name, number, shapes->target->name);
    soak_watch(what, SECONDS);
    shapes_plant_program(number);
    bool is_right = compile_program(shapes, source, &pair, arena, &report) &&
                    pair_open(&pair, 0, &options, &report);
    soak_watch_off();
    if (!is_right) {
        printf("FAILED %s: %s%s", what, text_str(&report), source);
        shapes->soak->n_failed++;
    } else if (shapes->soak->is_one)
        printf("%s", source);
    bool is_known = is_right && dim_n_symbols(pair.exposed.module->dims) == 0;
    for (uint32_t i = first; i < (is_known && first == 0 ? 1 : end) && is_right; i++)
        is_right = try_shape(shapes, &pair, id, number, i);
    shapes->n_planted += shapes_is_planted();
    shapes->n_caught += shapes_is_planted() && !is_right;
    pair_free(&pair);
    arena_free(arena);
    return is_right;
}

/* A program for every template that lacks shapes, over and over: where the time is short, the slow
 * ones take it from nobody. */
static void run_templates(Shapes *shapes, uint32_t wanted) {
    Soak *soak = shapes->soak;
    uint64_t number = soak->seed + soak->part * PART_STRIDE;
    uint32_t most = 2 * wanted + 8; /* programs, besides those that an emulator cannot run */
    uint32_t n_too_large[LOWERING_COUNT] = {0};
    for (uint32_t i = 0, n_open = 1; n_open > 0; i++) {
        n_open = 0;
        for (LoweringId id = 0; id < LOWERING_COUNT; id++) {
            if (!lowering_is_on(id, shapes->target) || !soak_has_time(soak) ||
                soak->n_failed >= MAX_FAILED || shapes->count.n[id] >= wanted ||
                (soak->only && strcmp(soak->only, lowering_info(id)->name) != 0) ||
                i >= most + n_too_large[id] || n_too_large[id] >= MAX_TOO_LARGE)
                continue;
            shapes->n_too_large = 0;
            run_program(shapes, id, number + i, 0, shapes->limits->n_shapes);
            n_too_large[id] += shapes->n_too_large;
            n_open++;
        }
    }
    for (LoweringId id = 0; id < LOWERING_COUNT; id++)
        shapes->count.is_too_large[id] = !shapes->count.n[id] && n_too_large[id] >= MAX_TOO_LARGE;
}

/* `mma:17:3`: template, program, shape. */
static bool run_one(Shapes *shapes, const char *text) {
    LoweringId id = lowering_by_name(text, strcspn(text, ":"));
    uint64_t number;
    uint32_t shape;
    if (id == LOWERING_COUNT ||
        sscanf(text + strcspn(text, ":"), ":%" SCNu64 ":%u", &number, &shape) != 2)
        return false;
    run_program(shapes, id, number, shape, shape + 1);
    return true;
}

static bool keep_count(const Shapes *shapes) {
    const char *path = shapes->soak->coverage_path;
    Text lines = {.arena = shapes->soak->arena};
    shape_count_write(&shapes->count, &lines);
    FILE *file = path ? fopen(path, "w") : NULL;
    bool is_kept = file && fputs(text_str(&lines), file) >= 0;
    if (file && fclose(file)) is_kept = false;
    if (path && !is_kept) fprintf(stderr, "soak: cannot write %s\n", path);
    return !path || is_kept;
}

static bool run_target(Soak *soak, const Target *target) {
    const char *why = NULL;
    uint32_t wanted = ((uint32_t)soak->n + (uint32_t)soak->n_parts - 1) / (uint32_t)soak->n_parts;
    if (soak->n_parts > 1) wanted += wanted / 8 + 1; /* for shapes that other parts have too */
    Shapes shapes = {.soak = soak,
                     .target = target,
                     .against = soak->against ? soak->against : target,
                     .limits = soak->is_small       ? &small_limits
                               : target->has->cores ? &core_limits
                                                    : &wide_limits,
                     .count = {.arena = soak->arena}};
    if (target->ptx_version && !(shapes.noise = noise_new(soak->arena, target, &why)))
        printf("soak: nothing runs beside the kernels: %s\n", why);
    bool is_good = true;
    if (soak->one_shape)
        is_good = run_one(&shapes, soak->one_shape);
    else
        run_templates(&shapes, wanted);
    noise_free(shapes.noise);
    if (shapes.n_planted)
        printf("%u of %u programs with a planted mistake fail\n", shapes.n_caught,
               shapes.n_planted);
    Text table = {.arena = soak->arena};
    uint32_t n_short = shape_count_print(&shapes.count, target, wanted, &table);
    if (!soak->one_shape && !soak->coverage_path) printf("%s", text_str(&table));
    return is_good && keep_count(&shapes) &&
           (n_short == 0 || soak->one_shape || soak->only || soak->coverage_path);
}

bool soak_shapes(Soak *soak) {
    bool is_good = true;
    for (uint32_t t = 0; t < soak->n_targets; t++)
        if (!run_target(soak, soak->targets[t])) is_good = false;
    return is_good;
}

int soak_merge_shapes(Soak *soak, const Target *target, char **paths, int n) {
    static char line[256];
    ShapeCount count = {.arena = soak->arena};
    bool is_read = n > 0;
    for (int i = 0; i < n; i++) {
        FILE *file = fopen(paths[i], "r");
        is_read = is_read && file;
        while (file && is_read && fgets(line, sizeof line, file))
            is_read = shape_count_read(&count, line);
        if (file) fclose(file);
    }
    if (!is_read) {
        fprintf(stderr, "soak: shapes cannot be read\n");
        return 2;
    }
    Text table = {.arena = soak->arena};
    uint32_t n_short = shape_count_print(&count, target, (uint32_t)soak->n, &table);
    printf("%s", text_str(&table));
    return n_short > 0;
}
