/* Collects and prints diagnostics. */
#include "base/diag.h"

#include <string.h>

static const DiagInfo infos[DIAG_COUNT] = {
    [DIAG_NONE] = {"none", SEVERITY_NOTE, NULL},
#define DIAG(sym, id, severity, hint) [DIAG_##sym] = {id, SEVERITY_##severity, hint},
#include "base/diag.def"
};

static const char *const severity_names[] = {[SEVERITY_ERROR] = "error",
                                             [SEVERITY_WARNING] = "warning",
                                             [SEVERITY_NOTE] = "note",
                                             [SEVERITY_HELP] = "help"};

const DiagInfo *diag_info(DiagId id) {
    return &infos[id];
}

static bool is_dropping(const Diags *diags) {
    return diags->n_errors > DIAG_MAX_ERRORS;
}

/* Bytes of the printable UTF-8 character at `text`; 0 where there is none. */
static uint32_t utf8_bytes(const char *text, uint32_t n_bytes) {
    static const uint32_t least[] = {0, 32, 0xA0, 0x800, 0x10000};
    unsigned char first = (unsigned char)text[0];
    uint32_t n = first < 0x80 ? 1 : first < 0xC0 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (n == 0 || n > n_bytes) return 0;
    uint32_t code = n == 1 ? first : first & (0x7Fu >> n);
    for (uint32_t i = 1; i < n; i++) {
        if (((unsigned char)text[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | ((unsigned char)text[i] & 0x3F);
    }
    bool is_surrogate = code >= 0xD800 && code < 0xE000;
    return code < least[n] || code > 0x10FFFF || code == 127 || is_surrogate ? 0 : n;
}

/* The text with a `?` for each byte that is no part of a printable character: names that files give
 * may have any bytes, also such as terminals obey. */
static const char *printable(Arena *arena, const char *text) {
    uint32_t n_bytes = (uint32_t)strlen(text);
    char *shown = arena_copy(arena, text, n_bytes + 1);
    for (uint32_t i = 0, n; i < n_bytes; i += n ? n : 1) {
        n = text[i] == '\n' ? 1 : utf8_bytes(text + i, n_bytes - i);
        if (!n) shown[i] = '?';
    }
    return shown;
}

static void append(Diags *diags, Diag diag) {
    Diag *kept = arena_array(diags->arena, Diag, 1);
    *kept = diag;
    kept->message = printable(diags->arena, diag.message);
    if (diags->last)
        diags->last->next = kept;
    else
        diags->first = kept;
    diags->last = kept;
}

bool diag_report(Diags *diags, DiagId id, const Source *source, Span span, const char *format,
                 ...) {
    const DiagInfo *info = &infos[id];
    if (info->severity == SEVERITY_ERROR) diags->n_errors++;
    if (info->severity == SEVERITY_WARNING) diags->n_warnings++;
    if (is_dropping(diags)) return false;
    va_list args;
    va_start(args, format);
    append(diags, (Diag){.id = id,
                         .severity = info->severity,
                         .source = source,
                         .span = span,
                         .message = str_vformat(diags->arena, format, args)});
    va_end(args);
    if (info->hint) diag_help(diags, "%s", info->hint);
    return false;
}

void diag_note(Diags *diags, const Source *source, Span span, const char *format, ...) {
    if (is_dropping(diags)) return;
    va_list args;
    va_start(args, format);
    append(diags, (Diag){.severity = SEVERITY_NOTE,
                         .source = source,
                         .span = span,
                         .message = str_vformat(diags->arena, format, args)});
    va_end(args);
}

void diag_help(Diags *diags, const char *format, ...) {
    if (is_dropping(diags)) return;
    va_list args;
    va_start(args, format);
    append(diags,
           (Diag){.severity = SEVERITY_HELP, .message = str_vformat(diags->arena, format, args)});
    va_end(args);
}

/* Prints a mark for each character of the line from byte `from` to `to`. */
static void print_columns(const char *line, uint32_t from, uint32_t to, char mark, Text *out) {
    for (uint32_t i = from, n; i < to; i += n ? n : 1) {
        n = utf8_bytes(line + i, to - i);
        text_add(out, &mark, 1);
    }
}

/* Prints the source line, and carets under the span's part of it. Blanks print as spaces,
 * unprintable bytes as `?`, and long lines are cut around the caret, so any input gives readable
 * output. */
static void print_excerpt(const Diag *diag, Position at, Text *out) {
    enum { MAX_SHOWN = 160, BEFORE_CARET = 60 };
    uint32_t n_bytes;
    const char *line = source_line(diag->source, at.line, &n_bytes);
    uint32_t column = at.column - 1 < n_bytes ? at.column - 1 : n_bytes;
    uint32_t from = column > MAX_SHOWN - BEFORE_CARET ? column - BEFORE_CARET : 0;
    while (from && from < column && ((unsigned char)line[from] & 0xC0) == 0x80) from++;
    uint32_t to = n_bytes - from > MAX_SHOWN ? from + MAX_SHOWN : n_bytes;
    text_puts(out, "    ");
    for (uint32_t i = from, n; i < to; i += n ? n : 1) {
        n = utf8_bytes(line + i, n_bytes - i);
        bool is_blank = line[i] == '\t' || line[i] == '\r';
        if (n)
            text_add(out, line + i, n);
        else
            text_puts(out, is_blank ? " " : "?");
    }
    text_puts(out, "\n    ");
    print_columns(line, from, column, ' ', out);
    text_puts(out, "^");
    uint32_t length = diag->span.end > diag->span.begin ? diag->span.end - diag->span.begin : 1;
    uint32_t first = column < n_bytes ? utf8_bytes(line + column, n_bytes - column) : 1;
    uint32_t end = column + length < to ? column + length : to;
    print_columns(line, column + (first ? first : 1), end, '~', out);
    text_puts(out, "\n");
}

static void print_one(const Diag *diag, Text *out) {
    Position at = {0};
    if (diag->severity == SEVERITY_HELP) {
        text_printf(out, "  help: %s\n", diag->message);
        return;
    }
    bool has_place = diag->source && (diag->span.end || diag->severity != SEVERITY_NOTE);
    if (has_place) {
        at = source_position(diag->source, diag->span.begin);
        text_printf(out, "%s:%u:%u: ", diag->source->name, at.line, at.column);
    } else if (diag->source) {
        text_printf(out, "%s: ", diag->source->name);
    }
    text_printf(out, "%s: %s", severity_names[diag->severity], diag->message);
    if (diag->id) text_printf(out, " [%s]", infos[diag->id].id);
    text_puts(out, "\n");
    if (has_place) print_excerpt(diag, at, out);
}

void diag_print(const Diags *diags, Text *out) {
    for (const Diag *diag = diags->first; diag; diag = diag->next) print_one(diag, out);
    if (is_dropping(diags))
        text_printf(out, "%u more errors not shown\n", diags->n_errors - DIAG_MAX_ERRORS);
}
