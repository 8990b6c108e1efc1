/* The program on random sources of 64 KiB, each of which repeats one statement, graph or call: the
 * contract of docs/LANGUAGE.md, as test_hostile.c has it for stored kinds. `make hostile-random`
 * draws many: N=200 SEED=1. */
#include "lib/command.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(hostile_random, .init = command_set_up, .fini = command_tear_down, .timeout = 36000);

/* A loaded machine counts more than the documented 2 seconds. */
enum { SOURCE_BYTES = 1 << 16, MOST_SECONDS = 3, MOST_KIB = 512 << 10, N_TRIES = 3 };
enum { MOST_GRAPHS = 64, LONGEST = 1024 }; /* a statement and the frame of a graph, in bytes */
enum { N_SOURCES = 6, FIRST_SEED = 1 };    /* of `make test` */

typedef struct Head {
    const char *dims, *dtype, *shape, *columns;
} Head;

static const Head heads[] = {
#define HEAD(...) {__VA_ARGS__},
#include "cli/hostile_forms.def"
};
static const struct {
    const char *expression;
    bool may_be_one; /* one kernel can have it whole */
} forms[] = {
#define FORM(expression) {expression, true},
#define APART(expression) {expression, false},
#include "cli/hostile_forms.def"
};
enum { N_FORMS = sizeof forms / sizeof *forms };

/* The ways to repeat an expression. */
typedef enum Repeat { AS_STATEMENTS, AS_CALLS, AS_LOOPS, IN_MUST, IN_NEVER, IN_GRAPHS } Repeat;
enum { N_REPEATS = IN_GRAPHS + 1 };
static const struct {
    const char *name, *begin, *end;
} repeats[N_REPEATS] = {[AS_STATEMENTS] = {"statements", "", ""},
                        [AS_CALLS] = {"calls", "", ""},
                        [AS_LOOPS] = {"loops", "", ""},
                        [IN_MUST] = {"must blocks", "fuse must {\n", "}\n"},
                        [IN_NEVER] = {"never blocks", "fuse never {\n", "}\n"},
                        [IN_GRAPHS] = {"graphs", "", ""}};

/* What a source repeats. */
typedef struct Draw {
    const Head *head;
    Repeat repeat;
    char expression[512]; /* of `v` and, if it has numbers, `#` */
    bool has_numbers;     /* that differ between statements */
    bool is_far;          /* statements also read a value half as far from the beginning */
    int n_graphs;
} Draw;

static char text[SOURCE_BYTES + 1];
static size_t n_bytes;

/* Returns false, and adds nothing, if the source would be too long. */
static bool add(size_t room, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text + n_bytes, sizeof text - n_bytes, format, args);
    va_end(args);
    cr_assert(n >= 0);
    bool fits = n_bytes + (size_t)n + room <= SOURCE_BYTES;
    n_bytes += fits ? (size_t)n : 0;
    return fits;
}

/* Puts a form around the expression so far. `must`: one that a block can keep. */
static void wrap(Rng *rng, bool must, char *expression, size_t size) {
    char inner[512];
    uint32_t which = rng_below(rng, N_FORMS);
    while (must && !forms[which].may_be_one) which = (which + 1) % N_FORMS;
    const char *form = forms[which].expression;
    size_t n = 0;
    snprintf(inner, sizeof inner, "%s", expression);
    for (const char *at = form; *at && n + 1 < size; at++) {
        if (strncmp(at, "%s", 2) == 0) {
            n += (size_t)snprintf(expression + n, size - n, "%s", inner);
            at++;
        } else {
            expression[n++] = *at;
        }
        cr_assert_lt(n, size);
    }
    expression[n] = 0;
}

static Draw draw(Rng *rng) {
    Draw d = {.expression = "v", .n_graphs = 1};
    d.head = &heads[rng_below(rng, sizeof heads / sizeof *heads)];
    d.repeat = (Repeat)rng_below(rng, N_REPEATS);
    d.has_numbers = rng_chance(rng, 50);
    d.is_far = rng_chance(rng, 25);
    if (d.repeat == IN_GRAPHS) d.n_graphs = 2 + (int)rng_below(rng, MOST_GRAPHS - 1);
    uint32_t depth = d.repeat == IN_MUST || d.repeat == IN_NEVER ? 1 : 1 + rng_below(rng, 3);
    for (uint32_t i = 0; i < depth; i++)
        wrap(rng, d.repeat == IN_MUST, d.expression, sizeof d.expression);
    return d;
}

/* The expression of value `from` in statement `i`. */
static const char *expression_of(const Draw *d, const char *from, int i) {
    static char out[4096];
    size_t n = 0;
    for (const char *at = d->expression; *at; at++) {
        bool is_value = *at == 'v' &&
                        (at == d->expression || !strchr("abcdefghijklmnopqrstuvwxyz", at[-1])) &&
                        !strchr("abcdefghijklmnopqrstuvwxyz", at[1] ? at[1] : '0');
        if (is_value)
            n += (size_t)snprintf(out + n, sizeof out - n, "%s", from);
        else if (*at == '#')
            n += (size_t)snprintf(out + n, sizeof out - n, "%d", d->has_numbers ? i : 3);
        else
            out[n++] = *at;
        cr_assert_lt(n, sizeof out);
    }
    out[n] = 0;
    return out;
}

static bool add_statement(const Draw *d, int i, int number) {
    char from[16], far[24] = "", line[4096];
    snprintf(from, sizeof from, "v%d", i - 1);
    if (d->is_far) snprintf(far, sizeof far, "+v%d", i / 2);
    if (d->repeat == AS_CALLS)
        snprintf(line, sizeof line, "v%d=f(%s,x,s,w)%s\n", i, from, far);
    else if (d->repeat == AS_LOOPS)
        snprintf(line, sizeof line, "v%d=loop i in 0:%d with h=%s { return %s }%s\n", i,
                 1 + number % 8, from, expression_of(d, "h", number), "");
    else
        snprintf(line, sizeof line, "v%d=%s%s\n", i, expression_of(d, from, number), far);
    return add(64, "%s%s%s", repeats[d->repeat].begin, line, repeats[d->repeat].end);
}

/* A graph with as many statements as fit before byte `end`. */
static void add_graph(const Draw *d, int graph, size_t end) {
    const Head *head = d->head;
    int n = 0;
    add(0, "graph g%d(x: %s[%s], w: %s[%s,%s], s: %s[%s]) -> (y: %s[%s]) {\nv0=x\n", graph,
        head->dtype, head->shape, head->dtype, head->columns, head->columns, head->dtype,
        head->columns, head->dtype, head->shape);
    while (n_bytes < end && add_statement(d, n + 1, 100 * graph + n + 1)) n++;
    add(0, "y=v%d\n}\n", n);
}

static void write_source(const Draw *d) {
    n_bytes = 0;
    add(0, "%s", d->head->dims);
    if (d->repeat == AS_CALLS) add(0, "def f(v,x,s,w)=%s\n", expression_of(d, "v", 3));
    for (int graph = 0; graph < d->n_graphs; graph++)
        add_graph(d, graph,
                  (size_t)(SOURCE_BYTES - LONGEST) * ((size_t)graph + 1) / (size_t)d->n_graphs);
    write_file("hostile.g", text, n_bytes);
}

/* Compiles the source, again if it takes long: the least seconds count. */
static bool keeps_contract(const char *options, double *seconds) {
    char line[64];
    double least = INFINITY;
    bool keeps = true;
    snprintf(line, sizeof line, "@hostile.g -o @a.ptx%s", options);
    for (int i = 0; i < N_TRIES && least > MOST_SECONDS && keeps; i++) {
        int status = fusec(line, NULL);
        bool is_refused = strstr(run.err, "[limit]") != NULL;
        least = fmin(least, run.seconds);
        keeps = (status == 0 || (status == 1 && is_refused)) && run.memory_kib <= MOST_KIB;
    }
    *seconds = least;
    return keeps && least <= MOST_SECONDS;
}

Test(hostile_random, sources_keep_the_contract) {
    const char *given = getenv("HOSTILE_N"), *first = getenv("HOSTILE_SEED");
    int n = given ? atoi(given) : N_SOURCES;
    uint64_t seed = first ? strtoull(first, NULL, 10) : FIRST_SEED;
    double most = 0;
    int n_wrong = 0;
    for (int i = 0; i < n; i++, seed++) {
        Rng rng = rng_new(seed);
        Draw d = draw(&rng);
        double seconds[2];
        write_source(&d);
        for (int k = 0; k < 2; k++) {
            bool keeps = keeps_contract(k ? " --no-fuse" : "", &seconds[k]);
            n_wrong += !keeps;
            most = seconds[k] > most ? seconds[k] : most;
            cr_expect(keeps, "seed %llu, %s of %s%s: status %d, %.1f seconds, %ld KiB, %.300s",
                      (unsigned long long)seed, repeats[d.repeat].name, d.expression,
                      k ? ", unfused" : "", run.status, seconds[k], run.memory_kib, run.err);
        }
        if (!given) continue;
        printf("%6llu %5.2f s %5.2f s  %s[%s] %s: %s\n", (unsigned long long)seed, seconds[0],
               seconds[1], d.head->dtype, d.head->shape, repeats[d.repeat].name, d.expression);
        fflush(stdout); /* before a child has a copy */
    }
    if (given)
        printf("%d sources, %d compilations break the contract, at most %.2f seconds\n", n, n_wrong,
               most);
}
