/* The documentation against the tree: what it says a command prints is what the command prints,
 * its links lead somewhere, and the files it names exist. Run from the repository's root with
 * build/fusec built.
 *
 * A block fenced ```console begins with a line `$ build/fusec ...` or `$ cat FILE`; the rest is its
 * output, where a line `...` stands for any number of lines and `...` in a line for any text. In
 * other blocks a line `$ build/fusec ...` is a command that succeeds; after it, two blanks and a
 * remark. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 4096 };

typedef struct Lines {
    char *text;  /* cut into lines */
    char **line; /* into it */
    size_t n;
} Lines;

static Lines read_lines(FILE *file) {
    size_t n = 0, capacity = 1 << 16, got;
    char *text = malloc(capacity);
    while ((got = fread(text + n, 1, capacity - n - 1, file)) > 0) {
        n += got;
        if (capacity - n < 2) text = realloc(text, capacity *= 2);
        cr_assert(text);
    }
    text[n] = '\0';
    Lines lines = {.text = text, .line = malloc((n + 2) * sizeof *lines.line)};
    cr_assert(lines.line);
    for (char *at = text; *at;) {
        lines.line[lines.n++] = at;
        char *end = strchr(at, '\n');
        if (!end) break;
        *end = '\0';
        at = end + 1;
    }
    return lines;
}

static void free_lines(Lines *lines) {
    free(lines->text);
    free(lines->line);
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* Every page, one after the other. */

typedef void Visit(const char *path, const Lines *page);

static size_t each_page(Visit *visit) {
    glob_t pages;
    cr_assert(glob("docs/*.md", 0, NULL, &pages) == 0, "there are no docs; run from the root");
    cr_assert(glob("docs/*/*.md", GLOB_APPEND, NULL, &pages) == 0);
    cr_assert(glob("*.md", GLOB_APPEND, NULL, &pages) == 0);
    size_t n = pages.gl_pathc;
    for (size_t i = 0; i < n; i++) {
        FILE *file = fopen(pages.gl_pathv[i], "rb");
        cr_assert(file, "cannot open %s", pages.gl_pathv[i]);
        Lines page = read_lines(file);
        fclose(file);
        visit(pages.gl_pathv[i], &page);
        free_lines(&page);
    }
    globfree(&pages);
    return n;
}

/* Matching, of anything against a pattern with places for any number of things. */

static bool is_any(const char *line) {
    return strcmp(line, "...") == 0;
}

static bool line_matches(const char *pattern, const char *line) {
    const char *again = NULL, *from = NULL;
    while (*line || *pattern) {
        if (begins(pattern, "...")) {
            again = pattern += 3;
            from = line;
        } else if (*line && *pattern == *line) {
            pattern++, line++;
        } else if (again && *from) {
            pattern = again;
            line = ++from;
        } else {
            return false;
        }
    }
    return true;
}

/* `*reached` is the first line of the pattern that nothing was found for. */
static bool lines_match(char *const *pattern, size_t n_pattern, const Lines *lines,
                        size_t *reached) {
    size_t p = 0, i = 0, again = 0, from = 0;
    bool has_any = false;
    *reached = 0;
    while (i < lines->n || p < n_pattern) {
        if (p > *reached) *reached = p;
        if (p < n_pattern && is_any(pattern[p])) {
            has_any = true;
            again = ++p;
            from = i;
        } else if (i < lines->n && p < n_pattern && line_matches(pattern[p], lines->line[i])) {
            p++, i++;
        } else if (has_any && from < lines->n) {
            p = again;
            i = ++from;
        } else {
            return false;
        }
    }
    return true;
}

/* Blocks of output. */

static size_t n_blocks, n_blocks_of_tour, n_commands;

/* Only what is meant: the compiler, or a file shown. No shell. */
static bool is_plain_command(const char *command) {
    if (!begins(command, "build/fusec ") && !begins(command, "cat ")) return false;
    for (const char *c = command; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(" ._-/=", *c)) return false;
    return true;
}

static void check_block(const char *path, size_t at, char *const *block, size_t n) {
    char command[MAX_LINE];
    n_blocks++;
    n_blocks_of_tour += strcmp(path, "docs/ARCHITECTURE.md") == 0;
    bool is_command = n > 0 && begins(block[0], "$ ") && is_plain_command(block[0] + 2);
    cr_expect(is_command, "%s:%zu: a console block begins with `$ build/fusec ...`", path, at);
    if (!is_command) return;
    snprintf(command, sizeof command, "%s 2>&1", block[0] + 2);
    FILE *output = popen(command, "r");
    cr_assert(output);
    Lines printed = read_lines(output);
    int status = pclose(output);
    size_t reached;
    bool same = lines_match(block + 1, n - 1, &printed, &reached);
    cr_expect(same, "%s:%zu: `%s` (status %d, %zu lines) does not go on with\n%s", path,
              at + 2 + reached, block[0] + 2, status, printed.n,
              reached < n - 1 ? block[1 + reached] : "the end");
    free_lines(&printed);
}

static void check_commands(const char *path, size_t at, char *const *block, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char command[MAX_LINE + 32];
        if (!begins(block[i], "$ build/")) continue;
        const char *remark = strstr(block[i], "  ");
        int n_command = remark ? (int)(remark - block[i]) : (int)strlen(block[i]);
        snprintf(command, sizeof command, "%.*s", n_command - 2, block[i] + 2);
        n_commands++;
        cr_expect(is_plain_command(command), "%s:%zu: not a plain command", path, at + i + 1);
        if (!is_plain_command(command)) continue;
        strcat(command, " >/dev/null 2>&1");
        cr_expect(system(command) == 0, "%s:%zu: `%s` fails", path, at + i + 1, command);
    }
}

static void check_blocks(const char *path, const Lines *page) {
    for (size_t i = 0; i < page->n; i++) {
        if (!begins(page->line[i], "```")) continue;
        bool is_output = strcmp(page->line[i], "```console") == 0;
        size_t begin = ++i;
        while (i < page->n && !begins(page->line[i], "```")) i++;
        cr_expect(i < page->n, "%s:%zu: the block has no end", path, begin);
        (is_output ? check_block : check_commands)(path, begin, page->line + begin, i - begin);
    }
}

Test(docs, commands_print_what_the_pages_say, .timeout = 60) {
    cr_expect(each_page(check_blocks) >= 6);
    cr_expect(n_commands >= 4, "README.md shows %zu commands", n_commands);
    cr_expect(n_blocks_of_tour >= 7, "ARCHITECTURE.md shows %zu commands", n_blocks_of_tour);
}

Test(docs, a_wrong_block_is_noticed) {
    static char a[] = "one", b[] = "two = 2", c[] = "three", any[] = "...", some[] = "two = ...";
    static char wrong[] = "two = 3";
    char *printed[] = {a, b, c};
    Lines lines = {.line = printed, .n = 3};
    size_t reached;
    cr_expect(lines_match((char *[]){a, b, c}, 3, &lines, &reached));
    cr_expect(lines_match((char *[]){any, some, any}, 3, &lines, &reached));
    cr_expect(lines_match((char *[]){any, c}, 2, &lines, &reached));
    cr_expect(lines_match((char *[]){a, any, b, c}, 4, &lines, &reached));
    cr_expect(!lines_match((char *[]){a, b}, 2, &lines, &reached));
    cr_expect(!lines_match((char *[]){any, c, b}, 3, &lines, &reached));
    cr_expect(!lines_match((char *[]){any, c, any, c}, 4, &lines, &reached));
    cr_expect(!lines_match((char *[]){a, wrong, c}, 3, &lines, &reached) && reached == 1);
    cr_expect(line_matches("a...c", "abcbc") && !line_matches("a...c", "abcb"));
    cr_expect(line_matches("...b...", "abc") && !line_matches("...d...", "abc"));
    cr_expect(is_plain_command("build/fusec a.g --emit=graph"));
    cr_expect(!is_plain_command("build/fusec a.g; rm b") && !is_plain_command("rm b"));
}

/* Links. */

static size_t n_links, n_paths;

static bool exists(const char *pattern) {
    glob_t found;
    int status = glob(pattern, 0, NULL, &found);
    if (status == 0) globfree(&found);
    return status == 0;
}

/* A heading as the anchor that it becomes: lower case, blanks as dashes, no punctuation. */
static void write_anchor(const char *heading, char *root, size_t size) {
    size_t n = 0;
    while (*heading == '#') heading++;
    while (*heading == ' ') heading++;
    for (; *heading && n + 1 < size; heading++) {
        unsigned char c = (unsigned char)*heading;
        if (c == ' ') root[n++] = '-';
        if (isalnum(c) || c == '-' || c == '_') root[n++] = (char)tolower(c);
    }
    root[n] = '\0';
}

static bool has_heading(const char *path, const char *root) {
    char own[MAX_LINE];
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    Lines page = read_lines(file);
    fclose(file);
    bool found = false;
    for (size_t i = 0; i < page.n && !found; i++) {
        if (page.line[i][0] != '#') continue;
        write_anchor(page.line[i], own, sizeof own);
        found = strcmp(own, root) == 0;
    }
    free_lines(&page);
    return found;
}

static void check_link(const char *path, size_t line, const char *link, size_t n) {
    char target[MAX_LINE], whole[2 * MAX_LINE];
    snprintf(target, sizeof target, "%.*s", (int)n, link);
    if (strstr(target, "://") || begins(target, "mailto:")) return;
    n_links++;
    char *root = strchr(target, '#');
    if (root) *root++ = '\0';
    const char *slash = strrchr(path, '/');
    int n_folder = slash ? (int)(slash - path) + 1 : 0;
    snprintf(whole, sizeof whole, "%.*s%s", n_folder, path, target);
    if (!*target) snprintf(whole, sizeof whole, "%s", path);
    cr_expect(exists(whole), "%s:%zu: the link to %s leads nowhere", path, line, target);
    if (root)
        cr_expect(has_heading(whole, root), "%s:%zu: %s has no heading #%s", path, line, whole,
                  root);
}

/* Names of files in code spans. */

static bool is_folder_of_ours(const char *name, size_t n) {
    static const char *const folders[] = {"compiler", "runtime", "dsl",   "tests",
                                          "tools",    "docs",    "bench", "packaging"};
    char folder[MAX_LINE + 16];
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strlen(folders[i]) == n && strncmp(folders[i], name, n) == 0) return true;
    snprintf(folder, sizeof folder, "compiler/%.*s/.", (int)n, name);
    return exists(folder);
}

/* `ir/graph.h` may leave out `compiler/`. */
static bool path_exists(const char *name) {
    static const char *const above[] = {"", "compiler/"};
    char whole[MAX_LINE + 16];
    bool found = false;
    for (size_t i = 0; i < sizeof above / sizeof *above && !found; i++) {
        snprintf(whole, sizeof whole, "%s%s", above[i], name);
        found = exists(whole);
    }
    return found;
}

static void check_span(const char *path, size_t line, const char *span, size_t n) {
    char name[MAX_LINE];
    snprintf(name, sizeof name, "%.*s", (int)n, span);
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_./*-", *c)) return;
    const char *slash = strchr(name, '/');
    if (!slash || !is_folder_of_ours(name, (size_t)(slash - name))) return;
    n_paths++;
    cr_expect(path_exists(name), "%s:%zu: there is no `%s`", path, line, name);
}

static void check_line(const char *path, size_t line, const char *text) {
    for (const char *at = text; *at; at++) {
        const char *end = NULL;
        if (*at == '`') {
            end = strchr(at + 1, '`');
            if (end) check_span(path, line, at + 1, (size_t)(end - at - 1));
        } else if (begins(at, "](")) {
            end = strchr(at, ')');
            cr_expect(end, "%s:%zu: a link without an end", path, line);
            if (end) check_link(path, line, at + 2, (size_t)(end - at - 2));
        }
        if (end) at = end;
    }
}

static void check_prose(const char *path, const Lines *page) {
    bool is_block = false;
    for (size_t i = 0; i < page->n; i++) {
        if (begins(page->line[i], "```"))
            is_block = !is_block;
        else if (!is_block)
            check_line(path, i + 1, page->line[i]);
    }
}

Test(docs, links_lead_somewhere_and_named_files_exist) {
    each_page(check_prose);
    cr_expect(n_links >= 20 && n_paths >= 20, "only %zu links and %zu paths", n_links, n_paths);
}

Test(docs, a_missing_file_or_heading_is_noticed) {
    char root[64];
    write_anchor("## To add: an `op`", root, sizeof root);
    cr_expect_str_eq(root, "to-add-an-op");
    cr_expect(has_heading("docs/ARCHITECTURE.md", "the-layers"));
    cr_expect(!has_heading("docs/ARCHITECTURE.md", "the-cellars"));
    cr_expect(path_exists("ir/graph.h") && path_exists("compiler/ir/graph.h"));
    cr_expect(path_exists("tests/ir/*.c") && !path_exists("ir/graph.hh"));
}
