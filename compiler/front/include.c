/* Parses a source and the files that it includes. See include.h. */
#include "front/include.h"

#include <string.h>

enum { INCLUDE_MAX_DEPTH = 64 };

typedef struct Loader {
    Arena *arena;
    StrTab *strings;
    Diags *diags;
    const IncludeReader *reader;
    Vec(Str) paths; /* of all files that have been read */
    AstFile *all;   /* the items of these */
} Loader;

/* A file whose items are being added, and the file that includes it. */
typedef struct Loading {
    const struct Loading *by; /* NULL: the main file */
    Str path;
    const Source *source;
    Span include; /* in the source of `by` */
    uint32_t depth;
} Loading;

/* Reports an error in a file, with the places that include it. */
static void fail(Loader *l, DiagId id, const Loading *in, Span span, const char *message) {
    diag_report(l->diags, id, in->source, span, "%s", message);
    for (const Loading *file = in; file->by; file = file->by)
        diag_note(l->diags, file->by->source, file->include, "included here");
}

static bool is_text(Diags *diags, const Source *source) {
    if (source->n_bytes > SOURCE_MAX_BYTES) {
        diag_report(diags, DIAG_LIMIT, source, (Span){0}, "source of more than %d bytes",
                    SOURCE_MAX_BYTES);
        return false;
    }
    const char *nul = memchr(source->text, '\0', source->n_bytes);
    if (!nul) return true;
    uint32_t at = (uint32_t)(nul - source->text); /* the scanner would start over at each NUL of a
                                                   * long token */
    diag_report(diags, DIAG_BAD_TOKEN, source, (Span){at, at + 1}, "the source has a NUL byte");
    return false;
}

/* Paths. */

/* Takes the last component off a path, unless it is `..` or there is none. */
static bool drop_last(Text *path) {
    size_t n = path->n_bytes;
    while (n > 0 && path->data[n - 1] != '/') n--;
    const char *last = path->data + n;
    if (n == path->n_bytes || (path->n_bytes - n == 2 && memcmp(last, "..", 2) == 0)) return false;
    path->n_bytes = n > 1 ? n - 1 : n;
    return true;
}

static void add_component(Text *path, const char *begin, size_t n) {
    bool is_up = n == 2 && memcmp(begin, "..", 2) == 0;
    if (n == 0 || (n == 1 && *begin == '.') || (is_up && drop_last(path))) return;
    if (path->n_bytes && path->data[path->n_bytes - 1] != '/') text_puts(path, "/");
    text_add(path, begin, n);
}

/* The path without `.`, without `..` behind a folder, and without doubled slashes. */
static Str plain_path(Loader *l, const char *given) {
    Text path = {.arena = l->arena};
    if (*given == '/') text_puts(&path, "/");
    for (const char *p = given; *p;) {
        size_t n = strcspn(p, "/");
        add_component(&path, p, n);
        p += n + (p[n] == '/');
    }
    return strtab_intern(l->strings, text_str(&path), path.n_bytes);
}

/* `path` as it stands in a file, from where the compiler runs. */
static Str path_from(Loader *l, Str file, Str path) {
    const char *slash = strrchr(file, '/');
    if (*path == '/' || !slash) return plain_path(l, path);
    return plain_path(l, str_format(l->arena, "%.*s/%s", (int)(slash - file), file, path));
}

/* Files. */

static bool is_cycle(Loader *l, const AstInclude *include, Str path, const Loading *by) {
    Text chain = {.arena = l->arena};
    text_printf(&chain, "%s includes itself: %s", path, path);
    for (const Loading *file = by; file; file = file->by) {
        text_printf(&chain, " <- %s", file->path);
        if (file->path != path) continue;
        fail(l, DIAG_BAD_INCLUDE, by, include->span, text_str(&chain));
        return true;
    }
    return false;
}

static bool is_read(const Loader *l, Str path) {
    for (uint32_t i = 0; i < l->paths.n; i++)
        if (l->paths.data[i] == path) return true;
    return false;
}

/* What belongs in the main file. */
static void check_items(Loader *l, const AstFile *file, const Loading *as) {
    if (file->weights)
        fail(l, DIAG_MISPLACED, as, file->weights_span,
             "`weights` belongs in the main file, not in one that is included");
    for (uint32_t i = 0; i < file->graphs.n; i++)
        fail(l, DIAG_MISPLACED, as, file->graphs.data[i]->span,
             "a graph belongs in the main file, not in one that is included");
}

static void add_items(Loader *l, const AstFile *file, const Loading *as);

static void read_file(Loader *l, const AstInclude *include, Str path, const Loading *by) {
    const char *text;
    size_t n_bytes;
    if (!l->reader || !l->reader->read(l->reader->user, path, &text, &n_bytes)) {
        fail(l, DIAG_BAD_INCLUDE, by, include->span, str_format(l->arena, "cannot read %s", path));
        return;
    }
    const Source *source = source_new(l->arena, path, text, n_bytes);
    if (!is_text(l->diags, source)) return;
    const Loading as = {by, path, source, include->span, by->depth + 1};
    const AstFile *file = ast_parse(l->arena, l->strings, l->diags, source);
    check_items(l, file, &as);
    add_items(l, file, &as);
}

static void add_include(Loader *l, const AstInclude *include, const Loading *by) {
    Str path = path_from(l, by->path, include->path);
    if (is_cycle(l, include, path, by) || is_read(l, path)) return;
    vec_push(l->arena, &l->paths, path);
    if (by->depth < INCLUDE_MAX_DEPTH)
        read_file(l, include, path, by);
    else
        fail(l, DIAG_LIMIT, by, include->span,
             str_format(l->arena, "includes nested more than %d deep", INCLUDE_MAX_DEPTH));
}

static void add_items(Loader *l, const AstFile *file, const Loading *as) {
    for (uint32_t i = 0, next = 0; i <= file->dims.n; i++) {
        for (; next < file->includes.n && file->includes.data[next].n_dims == i; next++)
            add_include(l, &file->includes.data[next], as);
        if (i < file->dims.n) vec_push(l->arena, &l->all->dims, file->dims.data[i]);
    }
    for (uint32_t i = 0; i < file->defs.n; i++)
        vec_push(l->arena, &l->all->defs, file->defs.data[i]);
    for (uint32_t i = 0; i < file->broken_names.n; i++)
        vec_push(l->arena, &l->all->broken_names, file->broken_names.data[i]);
}

AstFile *include_parse(Arena *arena, StrTab *strings, Diags *diags, const Source *source,
                       const IncludeReader *reader) {
    if (!is_text(diags, source)) return NULL;
    AstFile *file = ast_parse(arena, strings, diags, source);
    if (!file->includes.n) return file;
    AstFile *all = arena_copy(arena, file, sizeof *file);
    Loader loader = {arena, strings, diags, .reader = reader, .all = all};
    memset(&all->dims, 0, sizeof all->dims);
    memset(&all->defs, 0, sizeof all->defs);
    memset(&all->broken_names, 0, sizeof all->broken_names);
    const Loading as = {.path = plain_path(&loader, source->name), .source = source};
    add_items(&loader, file, &as);
    return all;
}
