/* The front end on whole files: every wrong program of tests/negative gives exactly the diagnostics
 * that its comments announce, and every right one prints as text that means the same.
 *
 * In tests/negative a comment `# error@+1 id: text` announces a diagnostic one line below (`@0`: on
 * its own line) whose message holds the text; `(note: ...` or `(help: ...` at its end announces
 * what must be said along. A diagnostic inside the prelude is where the call is. In
 * tests/golden the lines from `#| ` on are the graph that the file is to give. */
#include "explain/must_check.h"
#include "front/ast.h"
#include "front/sema.h"
#include "lib/plans.h"
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef Vec(const char *) Paths;

typedef struct Parsed {
    Arena *arena;
    const Source *source;
    Diags diags;
    Module *module; /* or NULL */
} Parsed;

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The .g files of a folder, sorted; at least one. */
static Paths list_files(Arena *arena, const char *folder) {
    Paths paths = {0};
    DIR *dir = opendir(folder);
    cr_assert(dir, "cannot open %s", folder);
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name);
        if (n > 2 && strcmp(entry->d_name + n - 2, ".g") == 0)
            vec_push(arena, &paths, str_format(arena, "%s/%s", folder, entry->d_name));
    }
    closedir(dir);
    cr_assert_gt(paths.n, 0, "no files in %s", folder);
    qsort(paths.data, paths.n, sizeof *paths.data, by_name);
    return paths;
}

static bool read_include(void *user, const char *path, const char **text, size_t *n_bytes) {
    if (access(path, R_OK) != 0) return false;
    *text = text_file_read(user, path, n_bytes);
    return true;
}

static Parsed parse_bytes(Arena *arena, const char *name, const char *text, size_t n_bytes) {
    Parsed parsed = {.arena = arena, .source = source_new(arena, name, text, n_bytes)};
    parsed.diags = (Diags){.arena = arena};
    IncludeReader reader = {read_include, arena};
    Sema *sema = front_read(arena, strtab_new(arena), &parsed.diags, parsed.source, &reader);
    parsed.module = sema ? front_check(sema, NULL, false) : NULL;
    return parsed;
}

static Parsed parse(Arena *arena, const char *text) {
    return parse_bytes(arena, "test.g", text, strlen(text));
}

static const char *messages(const Parsed *parsed) {
    Text text = {.arena = parsed->arena};
    diag_print(&parsed->diags, &text);
    return text_str(&text);
}

static const char *printed(const Parsed *parsed) {
    Text text = {.arena = parsed->arena};
    module_print(parsed->module, &text);
    return text_str(&text);
}

/* Announced and actual diagnostics. */

typedef struct Expected {
    uint32_t line;
    DiagId id;
    const char *message, *along; /* along: in a note or help, or NULL */
    bool is_met;
} Expected;

typedef Vec(Expected) Expectations;

static DiagId id_by_name(const char *name, size_t n) {
    for (int id = 1; id < DIAG_COUNT; id++) {
        const char *other = diag_info((DiagId)id)->id;
        if (strlen(other) == n && strncmp(other, name, n) == 0) return (DiagId)id;
    }
    return DIAG_NONE;
}

/* `error@+1 id: text (note: more` as an expectation; false when the comment is something else. */
static bool read_expectation(Arena *arena, const char *comment, uint32_t line, Expected *out) {
    bool is_error = strncmp(comment, "error@", 6) == 0;
    if (!is_error && strncmp(comment, "warning@", 8) != 0) return false;
    const char *at = strchr(comment, '@') + 1, *id = strchr(at, ' ');
    cr_assert(id, "line %u: malformed expectation", line);
    const char *colon = strchr(++id, ':');
    cr_assert(colon, "line %u: malformed expectation", line);
    *out = (Expected){.line = (uint32_t)((long)line + strtol(at, NULL, 10)),
                      .id = id_by_name(id, (size_t)(colon - id)),
                      .message = colon + 2};
    cr_assert(out->id, "line %u: no diagnostic `%.*s`", line, (int)(colon - id), id);
    cr_assert_eq(diag_info(out->id)->severity == SEVERITY_ERROR, is_error,
                 "line %u: wrong severity", line);
    const char *note = strstr(out->message, " (note: "), *help = strstr(out->message, " (help: ");
    const char *along = note ? note : help;
    if (along) {
        out->message = str_format(arena, "%.*s", (int)(along - out->message), out->message);
        out->along = along + strlen(" (note: ");
    }
    return true;
}

static Expectations read_expectations(Arena *arena, const Source *source) {
    Expectations all = {0};
    for (uint32_t line = 1; line <= source->n_lines; line++) {
        uint32_t n;
        const char *text = source_line(source, line, &n);
        const char *copy = str_format(arena, "%.*s", (int)n, text), *hash = strchr(copy, '#');
        Expected expected;
        if (hash && hash[1] == ' ' && read_expectation(arena, hash + 2, line, &expected))
            vec_push(arena, &all, expected);
    }
    return all;
}

static bool is_main(const Diag *diag) {
    return diag->severity == SEVERITY_ERROR || diag->severity == SEVERITY_WARNING;
}

/* Where a diagnostic is: itself, or the first note after it, in the file at hand. */
static uint32_t line_of(const Source *source, const Diag *diag) {
    for (const Diag *d = diag; d && (d == diag || !is_main(d)); d = d->next)
        if (d->source == source) return source_position(source, d->span.begin).line;
    return 0;
}

static bool says_along(const Diag *diag, const char *text) {
    for (const Diag *d = diag->next; d && !is_main(d); d = d->next)
        if (strstr(d->message, text)) return true;
    return false;
}

static bool meets(const Source *source, const Diag *diag, const Expected *expected) {
    return expected->id == diag->id && line_of(source, diag) == expected->line &&
           strstr(diag->message, expected->message) &&
           (!expected->along || says_along(diag, expected->along));
}

static void check_diagnostics(const char *path, const Parsed *parsed) {
    Expectations all = read_expectations(parsed->arena, parsed->source);
    for (const Diag *diag = parsed->diags.first; diag; diag = diag->next) {
        bool is_met = !is_main(diag);
        for (uint32_t i = 0; i < all.n && !is_met; i++) {
            if (all.data[i].is_met || !meets(parsed->source, diag, &all.data[i])) continue;
            is_met = all.data[i].is_met = true;
        }
        cr_expect(is_met, "%s:%u: not announced: %s [%s]", path, line_of(parsed->source, diag),
                  diag->message, diag_info(diag->id)->id);
    }
    for (uint32_t i = 0; i < all.n; i++)
        cr_expect(all.data[i].is_met, "%s:%u: announced but not given: %s [%s]", path,
                  all.data[i].line, all.data[i].message, diag_info(all.data[i].id)->id);
}

/* Fusion finds what is wrong with `kernel` and `fuse` blocks. */
static void fuse_graphs(Parsed *parsed) {
    for (uint32_t i = 0; parsed->module && i < parsed->module->graphs.n; i++) {
        const Plan *plan = plans_fuse_with(parsed->arena, parsed->module->graphs.data[i],
                                           (FuseOptions){.off = false}, &parsed->diags);
        if (plan) must_check(plan, NULL, NULL, &parsed->diags);
    }
}

Test(front, wrong_programs_give_the_announced_diagnostics) {
    Arena *arena = arena_new(NULL);
    Paths paths = list_files(arena, "tests/negative");
    for (uint32_t i = 0; i < paths.n; i++) {
        size_t n_bytes;
        const char *text = text_file_read(arena, paths.data[i], &n_bytes);
        Parsed parsed = parse_bytes(arena, paths.data[i], text, n_bytes);
        cr_expect_eq(parsed.module == NULL, parsed.diags.n_errors > 0);
        fuse_graphs(&parsed);
        check_diagnostics(paths.data[i], &parsed);
        cr_expect_leq(parsed.diags.n_errors, DIAG_MAX_ERRORS,
                      "%s has more errors than are kept: split it", paths.data[i]);
    }
    arena_free(arena);
}

/* Diagnostics that no source text alone can bring about, and where they are tested. */
static const struct {
    const char *id, *reason;
} tested_elsewhere[] = {
    {"internal", "a fault of the compiler itself: no input is known to cause one"},
    {"no-lowering", "what no kernel can be is taken apart: no program is known to cause one"},
};

Test(front, every_diagnostic_has_a_wrong_program) {
    bool seen[DIAG_COUNT] = {true};
    Arena *arena = arena_new(NULL);
    Paths paths = list_files(arena, "tests/negative");
    for (uint32_t i = 0; i < paths.n; i++) {
        size_t n_bytes;
        const char *text = text_file_read(arena, paths.data[i], &n_bytes);
        Expectations all =
            read_expectations(arena, source_new(arena, paths.data[i], text, n_bytes));
        for (uint32_t k = 0; k < all.n; k++) seen[all.data[k].id] = true;
    }
    for (int id = 1; id < DIAG_COUNT; id++) {
        const char *name = diag_info((DiagId)id)->id;
        for (size_t k = 0; k < sizeof tested_elsewhere / sizeof tested_elsewhere[0]; k++)
            if (strcmp(tested_elsewhere[k].id, name) == 0) seen[id] = true;
        cr_expect(seen[id], "no file of tests/negative announces [%s]", name);
    }
    arena_free(arena);
}

/* Right programs. */

static void expect_same_graph(const char *path, const Graph *a, const Graph *b) {
    cr_assert_eq(a->nodes.n, b->nodes.n, "%s: graph `%s` changes size", path, a->name);
    for (NodeId id = 0; id < a->nodes.n; id++) {
        const Node *x = graph_node(a, id), *y = graph_node(b, id);
        cr_expect(x->op == y->op && x->dtype == y->dtype && x->n_args == y->n_args &&
                      memcmp(x->args, y->args, x->n_args * sizeof *x->args) == 0 &&
                      x->shape.rank == y->shape.rank,
                  "%s: node %u of `%s` changes", path, id, a->name);
        cr_expect(memcmp(&x->attrs.number, &y->attrs.number, sizeof(double)) == 0 ||
                      x->attrs.number != x->attrs.number,
                  "%s: the number of node %u of `%s` changes", path, id, a->name);
    }
    cr_assert_eq(a->params.n, b->params.n, "%s: params change", path);
    for (uint32_t i = 0; i < a->params.n; i++)
        cr_expect(strcmp(a->params.data[i].name, b->params.data[i].name) == 0 &&
                      strcmp(a->params.data[i].key, b->params.data[i].key) == 0,
                  "%s: param `%s` changes", path, a->params.data[i].name);
    cr_expect_eq(a->kernel_of.n, b->kernel_of.n, "%s: kernels change", path);
    for (uint32_t i = 0; i < a->kernel_of.n; i++)
        cr_expect_eq(a->kernel_of.data[i], b->kernel_of.data[i], "%s: kernels change", path);
}

static void check_fixpoint(const char *path, const Parsed *parsed) {
    const char *once = printed(parsed);
    for (uint32_t i = 0; i < parsed->module->graphs.n; i++) {
        const char *problem = graph_verify(parsed->module->graphs.data[i], parsed->arena);
        cr_expect_null(problem, "%s: %s", path, problem);
    }
    Parsed again = parse(parsed->arena, once);
    cr_assert(again.module, "%s: its printed form does not parse:\n%s", path, messages(&again));
    cr_expect_str_eq(printed(&again), once, "%s: printing is no fixpoint", path);
    for (uint32_t i = 0; i < parsed->module->graphs.n; i++)
        expect_same_graph(path, parsed->module->graphs.data[i], again.module->graphs.data[i]);
}

static void check_right_file(Arena *arena, const char *path) {
    size_t n_bytes;
    const char *text = text_file_read(arena, path, &n_bytes);
    Parsed parsed = parse_bytes(arena, path, text, n_bytes);
    cr_assert(parsed.module, "%s is wrong:\n%s", path, messages(&parsed));
    cr_expect_eq(parsed.diags.n_warnings, 0, "%s", messages(&parsed));
    check_fixpoint(path, &parsed);
}

Test(front, examples_and_goldens_print_as_text_that_means_the_same) {
    Arena *arena = arena_new(NULL);
    Paths examples = list_files(arena, "dsl/examples"), goldens = list_files(arena, "tests/golden");
    for (uint32_t i = 0; i < examples.n; i++) check_right_file(arena, examples.data[i]);
    for (uint32_t i = 0; i < goldens.n; i++) check_right_file(arena, goldens.data[i]);
    arena_free(arena);
}

/* What the file says its graph is: the lines after `#| `, without that. */
static const char *golden_block(Arena *arena, const Source *source) {
    Text block = {.arena = arena};
    for (uint32_t line = 1; line <= source->n_lines; line++) {
        uint32_t n;
        const char *text = source_line(source, line, &n);
        if (n < 2 || strncmp(text, "#|", 2) != 0) continue;
        if (n > 3) text_add(&block, text + 3, n - 3);
        text_puts(&block, "\n");
    }
    return text_str(&block);
}

/* The file up to its block, and the block anew, where FUSEC_UPDATE_GOLDEN is set. */
static void update_golden(const char *path, const Parsed *parsed, const char *actual) {
    const char *block = strstr(parsed->source->text, "#|");
    int n_kept = block ? (int)(block - parsed->source->text) : (int)parsed->source->n_bytes;
    FILE *file = fopen(path, "wb");
    cr_assert(file, "cannot write %s", path);
    fprintf(file, "%.*s", n_kept, parsed->source->text);
    for (const char *line = actual; *line;) {
        int n = (int)strcspn(line, "\n");
        fprintf(file, n ? "#| %.*s\n" : "#|%.*s\n", n, line);
        line += n + (line[n] == '\n');
    }
    cr_expect_eq(fclose(file), 0);
}

Test(front, golden_files_give_the_graph_written_in_them) {
    Arena *arena = arena_new(NULL);
    Paths paths = list_files(arena, "tests/golden");
    for (uint32_t i = 0; i < paths.n; i++) {
        size_t n_bytes;
        const char *text = text_file_read(arena, paths.data[i], &n_bytes);
        Parsed parsed = parse_bytes(arena, paths.data[i], text, n_bytes);
        cr_assert(parsed.module, "%s", messages(&parsed));
        const char *actual = printed(&parsed);
        if (getenv("FUSEC_UPDATE_GOLDEN"))
            update_golden(paths.data[i], &parsed, actual);
        else
            cr_expect_str_eq(actual, golden_block(arena, parsed.source), "%s gives\n%s",
                             paths.data[i], actual);
    }
    arena_free(arena);
}

/* Everything a file can be cut to gives errors or a program. */
Test(front, every_prefix_of_every_example_is_survived) {
    Arena *names = arena_new(NULL);
    Paths paths = list_files(names, "dsl/examples");
    for (uint32_t i = 0; i < paths.n; i++) {
        size_t n_bytes;
        const char *text = text_file_read(names, paths.data[i], &n_bytes);
        for (size_t n = 0; n < n_bytes; n += 3) {
            Escape escape;
            Arena *arena = arena_new(&escape);
            if (setjmp(escape.jump) == 0) {
                Parsed parsed = parse_bytes(arena, paths.data[i], text, n);
                cr_expect_eq(parsed.module == NULL, parsed.diags.n_errors > 0);
                cr_expect(parsed.module || messages(&parsed)[0], "no message");
            } else {
                cr_expect(false, "%s cut to %zu bytes escapes", paths.data[i], n);
            }
            arena_free(arena);
        }
    }
    arena_free(names);
}

Test(front, a_diagnostic_shows_place_shapes_and_declarations) {
    Arena *arena = arena_new(NULL);
    Parsed parsed = parse(arena, "dim B in 1..64\n"
                                 "graph g(x: f32[B, 128], b: f32[100]) -> (y: f32[B, 128]) {\n"
                                 "  y = relu(x + b)\n"
                                 "}\n");
    cr_expect_null(parsed.module);
    cr_expect_str_eq(messages(&parsed),
                     "test.g:3:12: error: shapes of `add` do not broadcast: (B, 128) and (100,) "
                     "[shape-mismatch]\n"
                     "      y = relu(x + b)\n"
                     "               ^~~~~\n"
                     "test.g:2:9: note: `x` is f32[B, 128]\n"
                     "    graph g(x: f32[B, 128], b: f32[100]) -> (y: f32[B, 128]) {\n"
                     "            ^\n"
                     "test.g:2:25: note: `b` is f32[100]\n"
                     "    graph g(x: f32[B, 128], b: f32[100]) -> (y: f32[B, 128]) {\n"
                     "                            ^\n");
    arena_free(arena);
}

/* Lists come from one file and are read in another. */
Test(front, an_item_of_a_list_has_its_place_in_the_file_of_the_error) {
    static const struct {
        const char *expression, *place;
    } cases[] = {
        {"conv1d(x, x, padding=[[0, 1], [0, 1]])", "conv1d(x, x, padding=[[0, 1], [0, 1]])"},
        {"transpose(x, perm=[0, 1, [2]])", "[2]"},
        {"sum(x, axis=max_pool1d(x, 3, return_indices=true))",
         "max_pool1d(x, 3, return_indices=true)"},
    };
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Parsed parsed = parse(
            arena, str_format(arena, "graph g(x: f32[4, 4, 4]) -> (y: f32[4, 4, 4]) {\n  y = %s\n}",
                              cases[i].expression));
        cr_assert_null(parsed.module);
        const Diag *diag = parsed.diags.first;
        const char *place = str_format(arena, "%.*s", (int)(diag->span.end - diag->span.begin),
                                       diag->source->text + diag->span.begin);
        cr_expect_str_eq(place, cases[i].place, "%s", messages(&parsed));
    }
    arena_free(arena);
}

Test(front, carets_stand_under_characters_and_not_bytes) {
    Arena *arena = arena_new(NULL);
    Parsed parsed = parse(
        arena, "graph g(x: f32[4]) -> (y: f32[4]) {\n"
               "  y = concat([\"gr\xC3\xB6\xC3\x9F\xE2\x82\xAC\", x + \"\xC3\xBC\"], axis=0)\n"
               "}\n");
    cr_expect_null(parsed.module);
    cr_expect_str_eq(
        messages(&parsed),
        "test.g:2:32: error: operand 2 of `add` must be a tensor or a number, not a "
        "string [bad-argument]\n"
        "      y = concat([\"gr\xC3\xB6\xC3\x9F\xE2\x82\xAC\", x + \"\xC3\xBC\"], axis=0)\n"
        "                               ^~~\n");
    arena_free(arena);
}

Test(front, what_is_no_text_prints_as_text) {
    Arena *arena = arena_new(NULL);
    Parsed parsed = parse(arena, "$ # gr\xC3\xBC\xC3\x9F\xE2\x82\xAC\xF0\x9F\x8D\x8B "
                                 "\x01\x1B[2J\x7F\xC2\x9B\xFF\xC0\x80\xED\xA0\x80\t. \xE2\x82");
    cr_expect_str_eq(messages(&parsed),
                     "test.g:1:1: error: character that no token begins with [bad-token]\n"
                     "    $ # gr\xC3\xBC\xC3\x9F\xE2\x82\xAC\xF0\x9F\x8D\x8B "
                     "??[2J???????\?? . ??\n"
                     "    ^\n",
                     "%s", messages(&parsed));
    arena_free(arena);
}

Test(front, integers_go_up_to_2_to_the_62) {
    static const struct {
        const char *text;
        bool is_good;
    } cases[] = {{"4611686018427387899", true},
                 {"4611686018427387903", true},
                 {"4611686018427387904", true},
                 {"4611686018427387905", false},
                 {"46116860184273879040", false}};
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Parsed dim = parse(arena, str_format(arena,
                                             "dim B in 0..%s\n"
                                             "graph g(x: f64[4]) -> (y: f64[4]) {\n"
                                             "  y = x + %s\n}\n",
                                             cases[i].text, cases[i].text));
        cr_expect_eq(dim.module != NULL, cases[i].is_good, "%s: %s", cases[i].text, messages(&dim));
    }
    arena_free(arena);
}

Test(front, a_note_is_given_once) {
    Arena *arena = arena_new(NULL);
    Parsed parsed = parse(arena, "dim B in 1..8\ngraph g(x: f32[B, 4]) -> (y: f32[4]) {\n"
                                 "  y = x[B + 1]\n}\n");
    const char *first = strstr(messages(&parsed), "`B` ranges over 1..8");
    cr_assert(first, "%s", messages(&parsed));
    cr_expect_null(strstr(first + 1, "`B` ranges over"), "%s", messages(&parsed));
    arena_free(arena);
}

/* `graph g(x: f32[4]) -> (y: f32[4]) { y = <begin><middle, n times><end> }` */
static Parsed parse_repeated(Arena *arena, const char *begin, const char *middle, int n,
                             const char *end) {
    Text text = {.arena = arena};
    text_printf(&text, "graph g(x: f32[4]) -> (y: f32[4]) { y = %s", begin);
    for (int i = 0; i < n; i++) text_puts(&text, middle);
    text_printf(&text, "%s }\n", end);
    return parse(arena, text_str(&text));
}

Test(front, long_sums_are_fine_and_deep_nesting_is_refused) {
    Arena *arena = arena_new(NULL);
    Parsed chain = parse_repeated(arena, "x", " + x", 20000, "");
    cr_assert(chain.module, "%s", messages(&chain));
    cr_expect_eq(chain.module->graphs.data[0]->nodes.n, 20001);
    const char *const openings[] = {"(", "[", "-", "!", "relu(", "x[", "x * (", "[[x, "};
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++) {
        Parsed deep = parse_repeated(arena, "", openings[i], 100000, "x");
        cr_expect_null(deep.module, "%s", openings[i]);
        cr_expect(strstr(messages(&deep), "nested"), "%s: %s", openings[i], messages(&deep));
    }
    Parsed right = parse_repeated(arena, "x", " * (x", 100000, "");
    cr_expect_null(right.module);
    Parsed postfix = parse_repeated(arena, "x", "[:]", 100000, "");
    cr_expect_null(postfix.module);
    arena_free(arena);
}

/* Each is looked at once, before an arrow as elsewhere: were a line to look over all that follow
 * it, these would take minutes. */
Test(front, blank_lines_take_time_by_their_number, .timeout = 60) {
    Arena *arena = arena_new(NULL);
    for (int crlf = 0; crlf < 2; crlf++) {
        Text text = {.arena = arena};
        const char *blank = crlf ? " \t\r\n" : "\n";
        const char *const parts[] = {"", "graph g(x: f32[8])", "-> (y: f32[8]) {", "  y = x + 1.0",
                                     "}"};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            text_puts(&text, parts[i]);
            for (int k = 0; k < 200000; k++) text_puts(&text, blank);
        }
        Parsed parsed = parse(arena, text_str(&text));
        cr_assert(parsed.module, "%s", messages(&parsed));
        cr_expect_eq(parsed.module->graphs.data[0]->nodes.n, 3);
    }
    arena_free(arena);
}

/* A loop means its steps, written one after the other. */
Test(front, a_loop_gives_the_graph_of_its_steps) {
    static const char head[] = "dim B in 1..8\n"
                               "def step(h, x, i) {\n  param w: f32[4, 4] = \"w\"\n"
                               "  n = tanh(h @ w + x * (i + 0.5))\n  return n, exp(n)\n}\n"
                               "graph g(x: f32[9, B, 4]) -> (y: f32[B, 4], z: f32[5 * B, 4]) {\n";
    Arena *arena = arena_new(NULL);
    const char *loop =
        str_format(arena,
                   "%s  y, zs = loop i in 8:-1:-2 with h = x[1] {\n"
                   "    return step(h, x[i], i) as \"s.{i}\"\n  }\n  z = concat(zs)\n}\n",
                   head);
    Text steps = {.arena = arena};
    text_printf(&steps, "%s  h10 = x[1]\n", head);
    for (int i = 8; i >= 0; i -= 2)
        text_printf(&steps, "  h%d, z%d = step(h%d, x[%d], %d) as \"s.%d\"\n", i, i, i + 2, i, i,
                    i);
    text_puts(&steps, "  y = h0\n  z = concat([z8, z6, z4, z2, z0])\n}\n");
    Parsed rolled = parse(arena, loop), written = parse(arena, text_str(&steps));
    cr_assert(rolled.module, "%s", messages(&rolled));
    cr_assert(written.module, "%s", messages(&written));
    expect_same_graph("steps", rolled.module->graphs.data[0], written.module->graphs.data[0]);
    cr_expect_eq(rolled.module->graphs.data[0]->params.n, 5);
    arena_free(arena);
}

/* The programs between ``` lines in the manual; those that only define functions get a graph. */
Test(front, the_manuals_programs_are_right) {
    Arena *arena = arena_new(NULL);
    size_t n_bytes;
    uint32_t n_programs = 0;
    const char *end, *text = text_file_read(arena, "docs/LANGUAGE.md", &n_bytes);
    for (const char *fence; (fence = strstr(text, "```\n")); text = end + 3) {
        const char *begin = fence + 4;
        cr_assert(end = strstr(begin, "```"), "a block is not closed");
        const char *first_graph = strstr(begin, "\ngraph ");
        bool is_file = first_graph && first_graph < end, is_defs = strncmp(begin, "def", 3) == 0;
        if (!is_file && !is_defs) continue;
        const char *graph =
            "graph g(x: f32[4]) -> (y: f32[2]) { a, y = halves(scaled(x)); _b = a }";
        const char *program =
            str_format(arena, "%.*s%s", (int)(end - begin), begin, is_file ? "" : graph);
        Parsed parsed = parse(arena, program);
        cr_expect(parsed.module, "%s", messages(&parsed));
        n_programs++;
    }
    cr_expect_eq(n_programs, 4);
    arena_free(arena);
}

Test(front, the_tree_prints_node_by_node) {
    Arena *arena = arena_new(NULL);
    Diags diags = {.arena = arena};
    const char *text = "dim B in 1..8\ngraph g(x: f32[B]) -> (y: f32[B]) {\n"
                       "  y = sum(x[1:], axis=-1) + 2.5 * x - x\n}\n";
    const Source *source = source_new(arena, "tree.g", text, strlen(text));
    Text out = {.arena = arena};
    ast_print(ast_parse(arena, strtab_new(arena), &diags, source), &out);
    cr_expect_eq(diags.n_errors, 0);
    cr_expect_str_eq(text_str(&out), "dim `B`\n"
                                     "  int 1  9..10\n"
                                     "  int 8  12..13\n"
                                     "graph `g`\n"
                                     "  input `x`: f32\n"
                                     "    name `B`  29..30\n"
                                     "  output `y`: f32\n"
                                     "    name `B`  44..45\n"
                                     "  bind `y`\n"
                                     "    chain\n"
                                     "      call `sum`  56..75\n"
                                     "        subscript  60..65\n"
                                     "          name `x`  60..61\n"
                                     "          range  62..64\n"
                                     "            int 1  62..63\n"
                                     "            absent\n"
                                     "            absent\n"
                                     "        keyword `axis`  67..74\n"
                                     "          unary -  72..74\n"
                                     "            int 1  73..74\n"
                                     "      binary +  56..85\n"
                                     "        binary *  78..85\n"
                                     "          float 2.5  78..81\n"
                                     "          name `x`  84..85\n"
                                     "      binary -  56..89\n"
                                     "        name `x`  88..89\n");
    arena_free(arena);
}

Test(front, numbers_do_not_depend_on_the_locale) {
    const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C"};
    for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
        if (!setlocale(LC_ALL, locales[i])) continue;
        Arena *arena = arena_new(NULL);
        Parsed parsed = parse(arena, "graph g(x: f64[]) -> (y: f64[]) { y = x * 0.25e1 + 1.5 }");
        cr_assert(parsed.module);
        cr_expect(strstr(printed(&parsed), "const(2.5, f64)"), "%s", printed(&parsed));
        cr_expect(strstr(printed(&parsed), "const(1.5, f64)"), "%s", printed(&parsed));
        arena_free(arena);
    }
}

Test(front, errors_of_a_shared_diags_from_before_do_not_fail_a_parse) {
    Arena *arena = arena_new(NULL);
    Parsed wrong = parse(arena, "graph");
    Diags diags = wrong.diags;
    const char *text = "graph g(x: f32[4]) -> (y: f32[4]) { y = exp(x) }";
    cr_assert_null(wrong.module);
    cr_expect(front_parse(arena, strtab_new(arena), &diags,
                          source_new(arena, "right.g", text, strlen(text))));
    arena_free(arena);
}
