/* See step_text.h. An integer that depends on indices is written \1 constant \2 terms \3 until it
 * is printed, so that a loop around may still find that the constant depends on its index too.
 * Terms are `+2*i-1*j`. */
#include "ir/print/step_text.h"

#include "base/number.h"

#include <stdlib.h>

enum { BEGIN = '\1', TERMS = '\2', END = '\3' };
/* Of numbers that take part in expressions of an index. */
#define MAX_NUMBER (INT64_C(1) << 40)

typedef enum { PIECE_TEXT, PIECE_INT, PIECE_FLOAT } PieceKind;
typedef struct Piece {
    PieceKind kind;
    const char *text, *terms; /* terms: of PIECE_INT */
    uint32_t n_bytes, n_terms;
    int64_t number;
} Piece;

/* A text that is read piece by piece. */
typedef struct Reader {
    const char *text, *at;
    bool in_quotes;
} Reader;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word(char c) {
    return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool begins_number(const Reader *r) {
    char before = r->at > r->text ? r->at[-1] : ' ';
    if (*r->at == BEGIN) return true;
    if (r->in_quotes) return is_digit(*r->at) && !is_digit(before);
    if (*r->at == '-' && is_digit(r->at[1])) return true;
    return is_digit(*r->at) && !is_word(before) && before != '.';
}

static Piece read_mark(Reader *r) {
    const char *terms = strchr(r->at, TERMS) + 1, *end = strchr(terms, END);
    Piece piece = {.kind = PIECE_INT,
                   .text = r->at,
                   .n_bytes = (uint32_t)(end + 1 - r->at),
                   .terms = terms,
                   .n_terms = (uint32_t)(end - terms),
                   .number = strtoll(r->at + 1, NULL, 10)};
    r->at = end + 1;
    return piece;
}

/* The number of bytes of a number without sign. */
static uint32_t number_bytes(const Reader *r, const char *at) {
    uint32_t n = 0;
    while (is_digit(at[n])) n++;
    if (r->in_quotes) return n;
    while (is_digit(at[n]) || at[n] == '.' || at[n] == 'e' || (at[n - 1] == 'e' && at[n] == '-') ||
           (at[n - 1] == 'e' && at[n] == '+'))
        n++;
    return n;
}

static Piece read_number(Reader *r) {
    uint32_t sign = *r->at == '-', n = sign + number_bytes(r, r->at + sign);
    Piece piece = {.kind = PIECE_INT, .text = r->at, .terms = r->at, .n_bytes = n};
    for (uint32_t i = sign; i < n; i++)
        if (!is_digit(r->at[i])) piece.kind = PIECE_FLOAT;
    if (n - sign > 12 || (r->in_quotes && n > 1 && *r->at == '0')) piece.kind = PIECE_FLOAT;
    if (piece.kind == PIECE_INT) piece.number = strtoll(r->at, NULL, 10);
    r->at += n;
    return piece;
}

static bool read_piece(Reader *r, Piece *piece) {
    if (!*r->at) return false;
    if (begins_number(r)) {
        *piece = *r->at == BEGIN ? read_mark(r) : read_number(r);
        return true;
    }
    *piece = (Piece){.kind = PIECE_TEXT, .text = r->at};
    do {
        if (*r->at == '"') r->in_quotes = !r->in_quotes;
        r->at++;
    } while (*r->at && !begins_number(r));
    piece->n_bytes = (uint32_t)(r->at - piece->text);
    return true;
}

static bool is_same(const Piece *a, const Piece *b) {
    return a->n_bytes == b->n_bytes && memcmp(a->text, b->text, a->n_bytes) == 0;
}

/* The texts of all steps, read together. */
typedef struct Steps {
    Arena *arena;
    const LoopSteps *loop;
    const char *index;
    uint32_t n;
    const uint32_t *steps;
    Reader *readers;
    Piece *pieces; /* the current one of each */
    Text out;
} Steps;

static int64_t index_of(const Steps *s, uint32_t i) {
    return s->loop->begin + (s->steps ? s->steps[i] : i) * s->loop->by;
}

/* Whether the integers are slope * index + constant. */
static bool is_linear(const Steps *s, int64_t *slope, int64_t *constant) {
    int64_t apart = index_of(s, 1) - index_of(s, 0);
    int64_t grows = s->pieces[1].number - s->pieces[0].number;
    if (grows % apart) return false;
    *slope = grows / apart;
    if (s->n == 2 && llabs(*slope) > 1) return false; /* any two numbers lie on a line */
    *constant = s->pieces[0].number - *slope * index_of(s, 0);
    for (uint32_t i = 0; i < s->n; i++) {
        const Piece *piece = &s->pieces[i];
        bool is_near = llabs(index_of(s, i)) < MAX_NUMBER && llabs(*slope) < MAX_NUMBER >> 20;
        if (!is_near || piece->number != *slope * index_of(s, i) + *constant) return false;
    }
    return true;
}

const char *step_number(Arena *arena, const LoopSteps *loop, const char *index) {
    long long begin = loop->begin, by = loop->by;
    if (by == 1) return begin ? str_format(arena, "%s - %lld", index, begin) : index;
    if (by > 0) return str_format(arena, "(%s - %lld) / %lld", index, begin, by);
    return str_format(arena, "(%lld - %s) / %lld", begin, index, -by);
}

/* Numbers that are no expression of the index: `[0.5, 1.5][i]`. Each step evaluates the whole list,
 * so it is short. */
static bool join_as_list(Steps *s) {
    enum { MOST = 64 };
    const char **items = arena_array(s->arena, const char *, s->loop->n_steps);
    if (s->loop->n_steps > MOST || (s->n == 2 && s->pieces[0].kind == PIECE_INT)) return false;
    for (uint32_t i = 0; i < s->n; i++) {
        const Piece *piece = &s->pieces[i];
        if (piece->kind == PIECE_TEXT || piece->n_terms || s->readers[i].in_quotes) return false;
        items[s->steps ? s->steps[i] : i] =
            str_format(s->arena, "%.*s", (int)piece->n_bytes, piece->text);
    }
    for (uint32_t k = 0; k < s->loop->n_steps; k++)
        text_printf(&s->out, "%s%s", k ? ", " : "[", items[k] ? items[k] : "0");
    text_printf(&s->out, "][%s]", step_number(s->arena, s->loop, s->index));
    return true;
}

static bool join_integers(Steps *s) {
    const Piece *first = &s->pieces[0];
    int64_t slope, constant;
    for (uint32_t i = 1; i < s->n; i++) {
        const Piece *piece = &s->pieces[i];
        if (piece->kind != PIECE_INT || piece->n_terms != first->n_terms ||
            memcmp(piece->terms, first->terms, first->n_terms) != 0)
            return false;
    }
    if (!is_linear(s, &slope, &constant)) return join_as_list(s);
    if (s->readers[0].in_quotes) {
        text_printf(&s->out, "{%s}", s->index);
        return slope == 1 && constant == 0;
    }
    text_printf(&s->out, "%c%lld%c%.*s%+lld*%s%c", BEGIN, (long long)constant, TERMS,
                (int)first->n_terms, first->terms, (long long)slope, s->index, END);
    return true;
}

static bool join_pieces(Steps *s) {
    const Piece *first = &s->pieces[0];
    bool all_same = true;
    for (uint32_t i = 1; i < s->n; i++) all_same = all_same && is_same(&s->pieces[i], first);
    if (all_same) text_add(&s->out, first->text, first->n_bytes);
    if (all_same) return true;
    return first->kind == PIECE_INT && s->pieces[1].kind == PIECE_INT ? join_integers(s)
                                                                      : join_as_list(s);
}

const char *step_text(Arena *arena, const LoopSteps *loop, const char *index, uint32_t n,
                      const uint32_t *steps, const char *const *texts) {
    bool are_same = true;
    for (uint32_t i = 1; i < n; i++) are_same = are_same && strcmp(texts[i], texts[0]) == 0;
    if (are_same) return texts[0];
    Steps s = {.arena = arena,
               .loop = loop,
               .index = index,
               .n = n,
               .steps = steps,
               .readers = arena_array(arena, Reader, n),
               .pieces = arena_array(arena, Piece, n),
               .out = {.arena = arena}};
    for (uint32_t i = 0; i < n; i++) s.readers[i] = (Reader){texts[i], texts[i], false};
    for (;;) {
        uint32_t n_read = 0;
        for (uint32_t i = 0; i < n; i++) n_read += read_piece(&s.readers[i], &s.pieces[i]);
        if (!n_read) return text_str(&s.out);
        if (n_read != n || !join_pieces(&s)) return NULL;
    }
}

/* Printing. */

static bool is_between(const char *c) {
    return *c && strchr("([,=)]", *c);
}

/* The term after `at`, `+2*i` or `-1*j`, which is the first that is printed where is_first is set.
 * Returns its end. */
static const char *print_term(const char *at, const char *end, bool is_first, Text *out) {
    char *name;
    long long slope = strtoll(at, &name, 10);
    uint32_t n = 1;
    while (name + n < end && is_word(name[n])) n++;
    text_puts(out, !is_first ? slope < 0 ? " - " : " + " : slope < 0 ? "-" : "");
    if (llabs(slope) != 1) text_printf(out, "%lld*", llabs(slope));
    text_printf(out, "%.*s", (int)n - 1, name + 1);
    return name + n;
}

/* `2*i - j + 3` and `3 - i` */
static void print_sum(const Piece *piece, Text *out) {
    const char *at = piece->terms, *end = piece->terms + piece->n_terms;
    bool leads = *at == '-' && piece->number > 0, is_first = !leads;
    if (leads) text_printf(out, "%lld", (long long)piece->number);
    for (; at < end; is_first = false) at = print_term(at, end, is_first, out);
    if (piece->number && !leads)
        text_printf(out, " %c %lld", piece->number < 0 ? '-' : '+', llabs(piece->number));
}

static void print_integer(const Piece *piece, const char *after, Text *out) {
    Text sum = {.arena = out->arena};
    print_sum(piece, &sum);
    const char *before = text_str(out) + out->n_bytes;
    while (before > out->data && before[-1] == ' ') before--;
    bool is_name = !strpbrk(text_str(&sum), " *-");
    bool is_alone = is_between(after) && before > out->data && is_between(before - 1);
    text_printf(out, is_alone || is_name ? "%s" : "(%s)", text_str(&sum));
}

void step_text_print(const char *text, Text *out) {
    Reader r = {text, text, false};
    Piece piece;
    while (read_piece(&r, &piece)) {
        if (piece.kind == PIECE_INT && piece.n_terms)
            print_integer(&piece, r.at, out);
        else
            text_add(out, piece.text, piece.n_bytes);
    }
}
