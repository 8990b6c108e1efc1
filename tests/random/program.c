/* Programs as lists of items, and their reduction by trial. */
#include "random/program.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INTEGER = 1 << 20 }; /* larger integers are not made smaller */

static void print_list(const ProgramItems *items, Text *out) {
    for (uint32_t i = 0; i < items->n; i++)
        text_printf(out, "%s%s: %s", i ? ", " : "", items->data[i].name, items->data[i].type);
}

char *program_print(const Program *program) {
    Text out = {.arena = program->arena};
    for (uint32_t i = 0; i < program->dims.n; i++)
        text_printf(&out, "dim %s in %s\n", program->dims.data[i].name, program->dims.data[i].type);
    text_puts(&out, "graph g(");
    print_list(&program->inputs, &out);
    text_puts(&out, ") -> (");
    print_list(&program->outputs, &out);
    text_puts(&out, ") {\n");
    for (uint32_t i = 0; i < program->params.n; i++) {
        const ProgramItem *param = &program->params.data[i];
        text_printf(&out, "  param %s: %s = \"%s\"\n", param->name, param->type, param->expr);
    }
    for (uint32_t i = 0; i < program->statements.n; i++) {
        const ProgramItem *s = &program->statements.data[i];
        text_printf(&out, s->is_online ? "  online { %s = %s }  # %s\n" : "  %s = %s  # %s\n",
                    s->name, s->expr, s->type);
    }
    for (uint32_t i = 0; i < program->outputs.n; i++)
        text_printf(&out, "  %s = %s\n", program->outputs.data[i].name,
                    program->outputs.data[i].expr);
    text_puts(&out, "}\n");
    return out.data;
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* The next occurrence of `word` in `text` as a whole word, or NULL. */
static const char *find_word(const char *text, const char *word) {
    size_t n = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !is_word(at[-1])) && !is_word(at[n])) return at;
    return NULL;
}

bool program_mentions(const char *text, const char *name) {
    return find_word(text, name) != NULL;
}

static const char *replace_word(Arena *arena, const char *text, const char *word,
                                const char *with) {
    Text out = {.arena = arena};
    for (const char *at; (at = find_word(text, word)) != NULL; text = at + strlen(word)) {
        text_add(&out, text, (size_t)(at - text));
        text_puts(&out, with);
    }
    text_puts(&out, text);
    return text_str(&out);
}

/* Copies share texts but no arrays. */
static ProgramItems items_copy(Arena *arena, const ProgramItems *items) {
    ProgramItems copy = {0};
    for (uint32_t i = 0; i < items->n; i++) vec_push(arena, &copy, items->data[i]);
    return copy;
}

static Program program_copy(const Program *p) {
    return (Program){.arena = p->arena,
                     .dims = items_copy(p->arena, &p->dims),
                     .inputs = items_copy(p->arena, &p->inputs),
                     .params = items_copy(p->arena, &p->params),
                     .statements = items_copy(p->arena, &p->statements),
                     .outputs = items_copy(p->arena, &p->outputs)};
}

static ProgramItems items_clone(Arena *arena, const ProgramItems *items) {
    ProgramItems clone = items_copy(arena, items);
    for (uint32_t i = 0; i < clone.n; i++) {
        ProgramItem *item = &clone.data[i];
        item->name = str_format(arena, "%s", item->name);
        item->type = str_format(arena, "%s", item->type);
        if (item->expr) item->expr = str_format(arena, "%s", item->expr);
    }
    return clone;
}

Program program_clone(Arena *arena, const Program *p) {
    return (Program){.arena = arena,
                     .dims = items_clone(arena, &p->dims),
                     .inputs = items_clone(arena, &p->inputs),
                     .params = items_clone(arena, &p->params),
                     .statements = items_clone(arena, &p->statements),
                     .outputs = items_clone(arena, &p->outputs)};
}

static void items_remove(ProgramItems *items, uint32_t i) {
    memmove(items->data + i, items->data + i + 1, (items->n - i - 1) * sizeof *items->data);
    items->n--;
}

static bool items_mention(const ProgramItems *items, const char *name, bool in_expr) {
    for (uint32_t i = 0; i < items->n; i++) {
        if (in_expr && program_mentions(items->data[i].expr, name)) return true;
        if (program_mentions(items->data[i].type, name)) return true;
    }
    return false;
}

static bool is_used(const Program *p, const char *name) {
    return items_mention(&p->statements, name, true) || items_mention(&p->outputs, name, true) ||
           items_mention(&p->inputs, name, false) || items_mention(&p->params, name, false);
}

static void remove_unused(Program *p, ProgramItems *items) {
    for (uint32_t i = items->n; i-- > 0;)
        if (!is_used(p, items->data[i].name)) items_remove(items, i);
}

/* Removes unused items backwards, so that the operands of dead statements go too. */
static void sweep(Program *p) {
    remove_unused(p, &p->statements);
    remove_unused(p, &p->inputs);
    remove_unused(p, &p->params);
    remove_unused(p, &p->dims);
}

static void rename_everywhere(Program *p, const char *name, const char *with) {
    ProgramItems *lists[] = {&p->statements, &p->outputs};
    for (int l = 0; l < 2; l++)
        for (uint32_t i = 0; i < lists[l]->n; i++)
            lists[l]->data[i].expr = replace_word(p->arena, lists[l]->data[i].expr, name, with);
}

/* One trial: keeps the candidate if it is smaller and still fails. */
typedef struct Reduction {
    Program best;
    ProgramFails fails;
    void *user;
} Reduction;

static bool try(Reduction *r, Program *candidate) {
    sweep(candidate);
    if (!candidate->outputs.n) return false;
    if (!r->fails(r->user, program_print(candidate))) return false;
    r->best = *candidate;
    return true;
}

static bool drop_outputs(Reduction *r) {
    bool any = false;
    for (uint32_t i = r->best.outputs.n; i-- > 0;) {
        Program candidate = program_copy(&r->best);
        items_remove(&candidate.outputs, i);
        any = try(r, &candidate) || any;
        if (i > r->best.outputs.n) i = r->best.outputs.n;
    }
    return any;
}

/* An output becomes an operand of its value, and its last statement is dead. */
static bool retreat_output(Reduction *r, uint32_t i) {
    const ProgramItems *statements = &r->best.statements;
    const char *value = r->best.outputs.data[i].expr, *expr = NULL;
    for (uint32_t k = 0; k < statements->n; k++)
        if (strcmp(statements->data[k].name, value) == 0) expr = statements->data[k].expr;
    for (uint32_t k = 0; expr && k < statements->n; k++) {
        ProgramItem item = statements->data[k];
        if (!program_mentions(expr, item.name)) continue;
        Program candidate = program_copy(&r->best);
        candidate.outputs.data[i].expr = item.name;
        candidate.outputs.data[i].type = item.type;
        if (try(r, &candidate)) return true;
    }
    return false;
}

static bool retreat_outputs(Reduction *r) {
    bool any = false;
    for (uint32_t i = 0; i < r->best.outputs.n; i++)
        while (retreat_output(r, i)) any = true;
    return any;
}

/* A statement's value becomes an input, and its operands are dead. */
static bool cut_statement(Reduction *r, uint32_t i) {
    Program candidate = program_copy(&r->best);
    ProgramItem item = candidate.statements.data[i];
    items_remove(&candidate.statements, i);
    vec_push(candidate.arena, &candidate.inputs,
             (ProgramItem){.name = item.name, .type = item.type});
    return try(r, &candidate);
}

/* A statement's value is replaced by an earlier one of the same type. */
static bool bypass_statement(Reduction *r, uint32_t i) {
    ProgramItem item = r->best.statements.data[i];
    ProgramItems *lists[] = {&r->best.inputs, &r->best.params, &r->best.statements};
    for (int l = 0; l < 3; l++)
        for (uint32_t k = 0; k < (l == 2 ? i : lists[l]->n); k++) {
            if (strcmp(lists[l]->data[k].type, item.type) != 0) continue;
            Program candidate = program_copy(&r->best);
            items_remove(&candidate.statements, i);
            rename_everywhere(&candidate, item.name, lists[l]->data[k].name);
            if (try(r, &candidate)) return true;
        }
    return false;
}

static bool shorten(Reduction *r) {
    bool any = false;
    for (uint32_t i = r->best.statements.n; i-- > 0;) {
        if (i >= r->best.statements.n) continue;
        any = cut_statement(r, i) || any;
        if (i < r->best.statements.n && bypass_statement(r, i)) any = true;
    }
    return any;
}

/* Replaces an integer by a smaller one everywhere: extents occur in types, shapes and slices. */
static bool replace_integer(Reduction *r, long from, long to) {
    Program candidate = program_copy(&r->best);
    const char *word = str_format(candidate.arena, "%ld", from);
    const char *with = str_format(candidate.arena, "%ld", to);
    ProgramItems *lists[] = {&candidate.dims, &candidate.inputs, &candidate.params,
                             &candidate.statements, &candidate.outputs};
    for (int l = 0; l < 5; l++)
        for (uint32_t i = 0; i < lists[l]->n; i++) {
            ProgramItem *item = &lists[l]->data[i];
            item->type = replace_word(candidate.arena, item->type, word, with);
            if (l == 3) item->expr = replace_word(candidate.arena, item->expr, word, with);
        }
    if (strcmp(program_print(&candidate), program_print(&r->best)) == 0) return false;
    return try(r, &candidate);
}

static bool shrink_integers(Reduction *r) {
    bool any = false;
    const char *source = program_print(&r->best);
    for (const char *at = source; *at; at++) {
        if (!isdigit((unsigned char)*at) || (at > source && (is_word(at[-1]) || at[-1] == '.')))
            continue;
        char *end;
        long value = strtol(at, &end, 10);
        if (value < 2 || value > MAX_INTEGER || is_word(*end)) continue;
        const long smaller[] = {1, 2, 3, value / 2};
        for (int k = 0; k < 4; k++) {
            if (smaller[k] < 1 || smaller[k] >= value) continue;
            if (!replace_integer(r, value, smaller[k])) continue;
            any = true;
            break;
        }
    }
    return any;
}

Program program_reduce(const Program *program, ProgramFails fails, void *user) {
    Reduction r = {.best = program_copy(program), .fails = fails, .user = user};
    for (bool any = true; any;) {
        any = drop_outputs(&r);
        any = retreat_outputs(&r) || any;
        any = shorten(&r) || any;
        any = shrink_integers(&r) || any;
    }
    return r.best;
}
