/* Lines, fields, numbers, names and expressions of the manifest. */
#include "manifest/manifest_text.h"

#include "host/error.h"
#include "host/hex.h"
#include "host/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

frt_status text_fail(TextReader *r, const char *format, ...) {
    char message[400];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return frt_fail(r->err, FRT_E_ARTIFACT, "manifest line %u: %s", r->line, message);
}

bool slice_is(Slice s, const char *word) {
    return s.n == strlen(word) && memcmp(s.bytes, word, s.n) == 0;
}

bool slice_cut(Slice *rest, char separator, Slice *piece) {
    if (!rest->bytes) {
        return false;
    }
    const char *end = memchr(rest->bytes, separator, rest->n);
    if (!end) {
        *piece = *rest;
        *rest = (Slice){NULL, 0};
        return true;
    }
    *piece = (Slice){rest->bytes, (size_t)(end - rest->bytes)};
    *rest = (Slice){end + 1, rest->n - piece->n - 1};
    return true;
}

static frt_status split_fields(TextReader *r, Slice rest) {
    Slice field;
    r->n_fields = 0;
    while (slice_cut(&rest, ' ', &field)) {
        if (field.n == 0) {
            return text_fail(r, "empty field: fields are separated by one space");
        }
        if (r->n_fields == MAX_FIELDS) {
            return text_fail(r, "more than %d fields", MAX_FIELDS);
        }
        r->fields[r->n_fields++] = field;
    }
    return FRT_OK;
}

frt_status text_next_line(TextReader *r) {
    static const char prefix[] = FRT_MANIFEST_PREFIX;
    const size_t n_prefix = sizeof prefix - 1;
    const char *start = r->text + r->at;
    size_t n_left = r->n_bytes - r->at;
    size_t n_max = n_left < FRT_MAX_LINE_BYTES + 1 ? n_left : FRT_MAX_LINE_BYTES + 1;
    r->line++;
    r->line_at = r->at;
    const char *end = n_max ? memchr(start, '\n', n_max) : NULL;
    if (!end) {
        return text_fail(r, n_left > FRT_MAX_LINE_BYTES ? "line is too long"
                                                        : "cut short: there is no `end` line");
    }
    size_t n = (size_t)(end - start);
    if (n < n_prefix || memcmp(start, prefix, n_prefix) != 0) {
        return text_fail(r, "does not begin with `%s`; there is no `end` line", prefix);
    }
    for (size_t i = 0; i < n; i++) {
        if (start[i] < 0x20 || start[i] > 0x7e) {
            return text_fail(r, "byte 0x%02x is not printable ASCII", (unsigned char)start[i]);
        }
    }
    if (r->line > FRT_MAX_LINES || r->at > FRT_MAX_TEXT_BYTES) {
        return text_fail(r, "the manifest is too long");
    }
    r->at += n + 1;
    return split_fields(r, (Slice){start + n_prefix, n - n_prefix});
}

frt_status text_int(TextReader *r, Slice s, int64_t max, const char *what, int64_t *value) {
    int64_t v = 0;
    bool is_good = s.n > 0 && s.n < 20 && !(s.n > 1 && s.bytes[0] == '0');
    for (size_t i = 0; is_good && i < s.n; i++) {
        int64_t digit = s.bytes[i] - '0';
        is_good = digit >= 0 && digit <= 9 && v <= (INT64_MAX - digit) / 10;
        v = is_good ? v * 10 + digit : 0;
    }
    if (!is_good || v > max) {
        return text_fail(r, "%s `%.*s` is not a number from 0 to %lld", what,
                         (int)(s.n < 40 ? s.n : 40), s.bytes, (long long)max);
    }
    *value = v;
    return FRT_OK;
}

frt_status text_bits(TextReader *r, Slice s, const char *what, uint64_t *bits) {
    bool is_good = s.n > 2 && s.n <= 18 && s.bytes[0] == '0' && s.bytes[1] == 'x' &&
                   (s.n == 3 || s.bytes[2] != '0');
    *bits = 0;
    for (size_t i = 2; is_good && i < s.n; i++) {
        int digit = hex_digit(s.bytes[i]);
        is_good = digit >= 0 && (s.bytes[i] < 'A' || s.bytes[i] > 'F');
        *bits = *bits << 4 | (uint64_t)(is_good ? digit : 0);
    }
    return is_good ? FRT_OK
                   : text_fail(r, "%s `%.*s` is not `0x` and up to 16 hex digits", what,
                               (int)(s.n < 40 ? s.n : 40), s.bytes);
}

/* Decodes into `out`, which has room for s.n + 1 bytes. A name holds no NUL. */
static bool decode_name(Slice s, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        int c = (unsigned char)s.bytes[i];
        if (c == '%') {
            int high = i + 2 < s.n ? hex_digit(s.bytes[i + 1]) : -1;
            int low = i + 2 < s.n ? hex_digit(s.bytes[i + 2]) : -1;
            if (high < 0 || low < 0 || high + low == 0) {
                return false;
            }
            c = high * 16 + low;
            i += 2;
        } else if (!FRT_NAME_BYTE_IS_PLAIN(c)) {
            return false;
        }
        out[n++] = (char)c;
    }
    out[n] = '\0';
    return true;
}

frt_status text_name(TextReader *r, Slice s, const char *what, const char **name) {
    if (s.n == 0 || s.n > FRT_MAX_NAME_BYTES || !decode_name(s, r->strings_end)) {
        return text_fail(r, "%s `%.*s` is not an escaped name", what, (int)(s.n < 40 ? s.n : 40),
                         s.bytes);
    }
    *name = r->strings_end;
    r->strings_end += strlen(*name) + 1;
    return FRT_OK;
}

const char *text_word(TextReader *r, Slice s) {
    char *word = r->strings_end;
    memcpy(word, s.bytes, s.n);
    word[s.n] = '\0';
    r->strings_end += s.n + 1;
    return word;
}

uint32_t name_hash(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++) {
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    }
    return hash;
}

int32_t text_find_dim(const TextReader *r, const char *name) {
    uint32_t hash = name_hash(name);
    for (uint32_t i = 0; i < r->m->n_dims; i++) {
        if (r->m->dims[i].hash == hash && strcmp(r->m->dims[i].name, name) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

frt_status text_dim(TextReader *r, Slice s, const char *what, int32_t *dim) {
    char *mark = r->strings_end;
    const char *name = NULL;
    frt_status status = text_name(r, s, what, &name);
    if (status) {
        return status;
    }
    *dim = text_find_dim(r, name);
    if (*dim < 0) {
        return text_fail(r, "%s refers to dim `%s`, which is not declared", what, name);
    }
    r->strings_end = mark; /* the dim keeps its own copy */
    return FRT_OK;
}

void *text_grow(TextReader *r, void *list, uint32_t *capacity, uint32_t n, size_t item) {
    if (n < *capacity) {
        return list;
    }
    uint32_t wanted = *capacity ? *capacity * 2 : 16;
    void *grown = mem_resize(list, wanted, item);
    if (!grown) {
        r->out_of_memory = frt_fail_memory(r->err, wanted * item);
        return list;
    }
    *capacity = wanted;
    return grown;
}

static frt_status parse_token(TextReader *r, Slice s, const char *what, ExprToken *token) {
    static const struct {
        const char *word;
        ExprOp op;
    } words[] = {{"+", EXPR_ADD}, {"-", EXPR_SUB},   {"*", EXPR_MUL},
                 {"/", EXPR_DIV}, {"max", EXPR_MAX}, {"min", EXPR_MIN}};
    *token = (ExprToken){EXPR_CONST, 0};
    if (s.n > 0 && s.bytes[0] >= '0' && s.bytes[0] <= '9') {
        return text_int(r, s, INT64_MAX, what, &token->value);
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (slice_is(s, words[i].word)) {
            token->op = words[i].op;
            return FRT_OK;
        }
    }
    int32_t dim = -1;
    frt_status status = text_dim(r, s, what, &dim);
    token->op = EXPR_DIM;
    token->value = dim;
    return status;
}

frt_status text_expr(TextReader *r, Slice s, const char *what, Expr *expr) {
    Manifest *m = r->m;
    Slice rest = s;
    Slice piece;
    uint32_t depth = 0;
    *expr = (Expr){m->n_tokens, 0};
    while (slice_cut(&rest, ',', &piece)) {
        ExprToken token;
        frt_status status = parse_token(r, piece, what, &token);
        if (!status) {
            status = GROW(r, m->tokens, r->tokens_capacity, m->n_tokens);
        }
        if (status) {
            return status;
        }
        if (token.op <= EXPR_DIM) {
            depth++;
        } else if (depth-- < 2) {
            return text_fail(r, "%s: an operator lacks an operand", what);
        }
        if (depth > FRT_MAX_EXPR_DEPTH || expr->n == FRT_MAX_EXPR_TOKENS) {
            return text_fail(r, "%s is too long an expression", what);
        }
        m->tokens[m->n_tokens++] = token;
        expr->n++;
    }
    if (depth != 1) {
        return text_fail(r, "%s is not one expression", what);
    }
    return FRT_OK;
}
