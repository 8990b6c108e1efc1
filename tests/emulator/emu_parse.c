/* From text to instructions. See emu.h. */
#include "emulator/emu.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SCOPES = 8, MAX_OPERANDS = 160, MAX_PREFIXES = 8 };

/* A name and its meaning. */
typedef enum { NAME_SLOT, NAME_SHARED, NAME_PARAM, NAME_LABEL } NameKind;
typedef struct Name {
    const char *text;
    NameKind kind;
    uint32_t scope; /* for a label its number, for a register its scope depth */
    int64_t value;
} Name;

typedef struct Jump {
    uint32_t inst;
    const char *label;
    uint32_t scopes[MAX_SCOPES], n_scopes;
} Jump;

typedef struct Parser {
    Arena *arena;
    EmuModule *module;
    EmuKernel *kernel;
    char *at;
    uint32_t line;
    Vec(Name) names;   /* of the kernel, outer scopes first */
    Vec(Name) statics; /* shared memory of the module: value is bytes, scope the alignment */
    Vec(Jump) jumps;
    const char *prefixes[MAX_PREFIXES]; /* register prefixes such as %r */
    uint32_t n_prefixes;
    int32_t *table; /* slot + 1 by number and prefix, for names like %r12 */
    uint32_t n_table;
    uint32_t scopes[MAX_SCOPES], n_scopes, n_opened;
    bool has_failed;
} Parser;

static bool fail(Parser *p, const char *what, const char *text) {
    if (!p->has_failed)
        snprintf(p->module->error, sizeof p->module->error, "line %u: %s: %.120s", p->line, what,
                 text);
    p->has_failed = true;
    return false;
}

/* Text. */

static void skip_space(Parser *p) {
    for (;; p->at++) {
        if (p->at[0] == '/' && p->at[1] == '/')
            while (*p->at && *p->at != '\n') p->at++;
        if (*p->at == '\n') p->line++;
        if (!*p->at || !strchr(" \t\r\n", *p->at)) return;
    }
}

static bool is_part_of_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_$%.:", c));
}

/* Cuts the next word off `*at`; "" if there is none. */
static char *word(char **at) {
    while (**at == ' ' || **at == '\t') ++*at;
    char *begin = *at;
    while (is_part_of_name(**at)) ++*at;
    return begin;
}

/* Names. */

static const Name *find_name(const Parser *p, const char *text, size_t n) {
    for (uint32_t i = p->names.n; i-- > 0;) {
        const Name *name = &p->names.data[i];
        if (name->kind != NAME_LABEL && strlen(name->text) == n && memcmp(name->text, text, n) == 0)
            return name;
    }
    return NULL;
}

static int32_t new_slot(Parser *p) {
    return (int32_t)p->kernel->n_slots++;
}

static uint32_t find_prefix(const Parser *p, const char *text, size_t n) {
    uint32_t i = 0;
    while (i < p->n_prefixes && (strlen(p->prefixes[i]) != n || memcmp(p->prefixes[i], text, n)))
        i++;
    return i;
}

/* A register such as %r12. */
static int32_t slot_of_register(Parser *p, const char *text, size_t n) {
    size_t digits = n;
    while (digits && text[digits - 1] >= '0' && text[digits - 1] <= '9') digits--;
    uint32_t prefix = find_prefix(p, text, digits);
    if (prefix == p->n_prefixes) return EMU_NO_SLOT;
    uint32_t key = (uint32_t)strtoul(text + digits, NULL, 10) * MAX_PREFIXES + prefix;
    if (key >= p->n_table) {
        uint32_t wanted = key * 2 + 1024;
        int32_t *table = arena_array(p->arena, int32_t, wanted);
        if (p->n_table) memcpy(table, p->table, p->n_table * sizeof *table);
        p->table = table, p->n_table = wanted;
    }
    if (!p->table[key]) p->table[key] = new_slot(p) + 1;
    return p->table[key] - 1;
}

/* Shared memory is assigned to names when they are first used; dynamic memory comes last. */
static bool use_static(Parser *p, const char *text, size_t n, EmuOperand *x) {
    for (uint32_t i = 0; i < p->statics.n; i++) {
        const Name *name = &p->statics.data[i];
        if (strlen(name->text) != n || memcmp(name->text, text, n) != 0) continue;
        uint32_t align = name->scope;
        uint32_t at = (p->kernel->shared_bytes + align - 1) / align * align;
        p->kernel->shared_bytes = at + (uint32_t)name->value;
        vec_push(p->arena, &p->names, (Name){name->text, NAME_SHARED, 0, at});
        x->number = at;
        return true;
    }
    return false;
}

static int32_t special(const char *text, size_t n) {
    static const char *const names[EMU_SPECIAL_COUNT] = {
        [EMU_TID_X] = "%tid.x",       [EMU_NTID_X] = "%ntid.x",
        [EMU_CTAID_X] = "%ctaid.x",   [EMU_NCTAID_X] = "%nctaid.x",
        [EMU_NCTAID_Y] = "%nctaid.y", [EMU_CTARANK] = "%cluster_ctarank"};
    for (int32_t i = 0; i < EMU_SPECIAL_COUNT; i++)
        if (strlen(names[i]) == n && memcmp(names[i], text, n) == 0) return i;
    return EMU_NO_SLOT;
}

static bool read_name(Parser *p, const char *text, size_t n, EmuOperand *x) {
    *x = (EmuOperand){.slot = EMU_NO_SLOT};
    if (*text == '%') {
        x->slot = special(text, n);
        if (x->slot == EMU_NO_SLOT) x->slot = slot_of_register(p, text, n);
        if (x->slot != EMU_NO_SLOT) return true;
    }
    if (n == 1 && *text == '_') return true;
    const Name *name = find_name(p, text, n);
    if (!name) return use_static(p, text, n, x);
    if (name->kind == NAME_SLOT)
        x->slot = (int32_t)name->value;
    else
        x->number = (uint64_t)name->value;
    return true;
}

/* Operands. */

static bool is_number(const char *text) {
    return (*text >= '0' && *text <= '9') || (*text == '-' && text[1] >= '0' && text[1] <= '9');
}

static uint64_t read_number(char **at) {
    if ((*at)[0] == '0' && ((*at)[1] == 'f' || (*at)[1] == 'd')) {
        *at += 2;
        return strtoull(*at, at, 16);
    }
    bool is_negative = **at == '-';
    *at += is_negative;
    uint64_t number = strtoull(*at, at, 0);
    return is_negative ? 0 - number : number;
}

/* A register, a name, a number, or a sum of one of them and a number. */
static bool read_operand(Parser *p, char **at, EmuOperand *x) {
    *x = (EmuOperand){.slot = EMU_NO_SLOT};
    if (is_number(*at)) {
        x->number = read_number(at);
        return true;
    }
    char *name = word(at);
    if (*at == name || !read_name(p, name, (size_t)(*at - name), x))
        return fail(p, "not known", name);
    if (**at != '+') return true;
    ++*at;
    x->number += read_number(at);
    return true;
}

/* Reads all operands in a row, ignoring groups. The operand after a `|` is stored apart. */
static bool read_operands(Parser *p, EmuInst *inst, char *at) {
    EmuOperand found[MAX_OPERANDS];
    while (*at) {
        if (strchr(" \t,{}[]", *at)) {
            at++;
        } else if (*at == '|') {
            EmuOperand x;
            at++;
            if (!read_operand(p, &at, &x)) return false;
            inst->extra = x.slot;
        } else {
            if (inst->n == MAX_OPERANDS) return fail(p, "too many operands", inst->text);
            if (!read_operand(p, &at, &found[inst->n++])) return false;
        }
    }
    inst->x = arena_copy(p->arena, found, inst->n * sizeof *found);
    return true;
}

/* Decides by the braces whether a mov packs or unpacks registers. */
static void read_braces(EmuInst *inst, const char *at) {
    if (inst->run != emu_move || inst->n < 3) return;
    while (*at == ' ') at++;
    inst->run = *at == '{' ? emu_unpack : emu_pack;
}

/* Statements. */

static void declare_registers(Parser *p, char *at) {
    at += strlen(".reg");
    word(&at); /* the type */
    while (*at) {
        while (*at == ' ' || *at == ',') at++;
        char *name = word(&at);
        size_t n = (size_t)(at - name);
        if (n == 0) return;
        char *copy = arena_alloc(p->arena, n + 1);
        memcpy(copy, name, n);
        if (*at == '<') { /* %r<12> */
            bool is_new = find_prefix(p, name, n) == p->n_prefixes;
            if (is_new && p->n_prefixes < MAX_PREFIXES) p->prefixes[p->n_prefixes++] = copy;
            return;
        }
        vec_push(p->arena, &p->names, (Name){copy, NAME_SLOT, p->n_scopes, new_slot(p)});
    }
}

static bool read_guard(Parser *p, EmuInst *inst, char **at) {
    inst->guard = inst->extra = EMU_NO_SLOT;
    if (**at != '@') return true;
    ++*at;
    inst->is_guard_turned = **at == '!';
    *at += inst->is_guard_turned;
    EmuOperand x;
    if (!read_operand(p, at, &x)) return false;
    inst->guard = x.slot;
    while (**at == ' ') ++*at;
    return true;
}

static void note_jump(Parser *p, const char *label) {
    Jump jump = {.inst = p->kernel->code.n, .label = label, .n_scopes = p->n_scopes};
    memcpy(jump.scopes, p->scopes, sizeof jump.scopes);
    vec_push(p->arena, &p->jumps, jump);
}

static bool read_instruction(Parser *p, char *text) {
    EmuInst inst = {.text = text, .line = p->line};
    char *at = arena_copy(p->arena, text, strlen(text) + 1), name[128];
    if (!read_guard(p, &inst, &at)) return false;
    char *begin = word(&at);
    size_t n = (size_t)(at - begin);
    if (n >= sizeof name) return fail(p, "not known", text);
    memcpy(name, begin, n);
    name[n] = 0;
    if (!emu_find_op(&inst, name)) return fail(p, "not known", text);
    if (inst.kind == EMU_BRANCH) {
        note_jump(p, word(&at));
    } else {
        char *operands = at;
        if (!read_operands(p, &inst, at)) return false;
        read_braces(&inst, operands);
    }
    vec_push(p->arena, &p->kernel->code, inst);
    return true;
}

/* The text up to the semicolon, which is removed. */
static char *statement(Parser *p) {
    char *begin = p->at;
    while (*p->at && *p->at != ';') p->line += *p->at++ == '\n';
    if (*p->at) *p->at++ = 0;
    return begin;
}

static void open_scope(Parser *p) {
    p->scopes[p->n_scopes++] = p->n_opened++;
}

static void close_scope(Parser *p) {
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < p->names.n; i++) {
        Name name = p->names.data[i];
        if (name.kind != NAME_SLOT || name.scope < p->n_scopes) p->names.data[n_kept++] = name;
    }
    p->names.n = n_kept;
    p->n_scopes--;
}

/* Reads a label before a colon that does not begin a `::`. */
static bool read_label(Parser *p) {
    char *end = p->at;
    while (is_part_of_name(*end) && *end != ':') end++;
    if (end == p->at || end[0] != ':' || end[1] == ':') return false;
    *end = 0;
    vec_push(p->arena, &p->names,
             (Name){p->at, NAME_LABEL, p->scopes[p->n_scopes - 1], p->kernel->code.n});
    p->at = end + 1;
    return true;
}

static uint32_t number_of(const char *text, const char *directive, uint32_t otherwise) {
    const char *at = strstr(text, directive);
    return at ? (uint32_t)strtoul(at + strlen(directive), NULL, 10) : otherwise;
}

static void add_static(Parser *p, char *text) {
    char *array = strchr(text, '['), *begin = array;
    uint32_t n_bytes = (uint32_t)strtoul(array + 1, NULL, 10);
    while (is_part_of_name(begin[-1])) begin--;
    *array = 0;
    Name name = {begin, NAME_SHARED, number_of(text, ".align", 16), n_bytes};
    vec_push(p->arena, &p->statics, name);
}

/* Dynamic memory follows the kernel's own declarations. */
static void add_own_static(Parser *p, char *text) {
    EmuOperand place;
    add_static(p, text);
    const char *name = p->statics.data[p->statics.n - 1].text;
    use_static(p, name, strlen(name), &place);
}

static bool read_body(Parser *p) {
    p->n_scopes = 0;
    open_scope(p);
    for (p->at++; p->n_scopes && !p->has_failed;) {
        skip_space(p);
        if (!*p->at) return fail(p, "no end of", p->kernel->name);
        if (*p->at == '{') {
            if (p->n_scopes == MAX_SCOPES) return fail(p, "too deep", p->kernel->name);
            open_scope(p), p->at++;
        } else if (*p->at == '}') {
            close_scope(p), p->at++;
        } else if (!read_label(p)) {
            char *text = statement(p);
            if (strncmp(text, ".reg", 4) == 0)
                declare_registers(p, text);
            else if (strncmp(text, ".shared", 7) == 0)
                add_own_static(p, text);
            else
                read_instruction(p, text);
        }
    }
    return !p->has_failed;
}

static const Name *find_label(const Parser *p, const Jump *jump) {
    size_t n = 0;
    while (is_part_of_name(jump->label[n])) n++;
    for (uint32_t depth = jump->n_scopes; depth-- > 0;)
        for (uint32_t i = 0; i < p->names.n; i++) {
            const Name *name = &p->names.data[i];
            if (name->kind == NAME_LABEL && name->scope == jump->scopes[depth] &&
                strlen(name->text) == n && memcmp(name->text, jump->label, n) == 0)
                return name;
        }
    return NULL;
}

static bool link_jumps(Parser *p) {
    for (uint32_t i = 0; i < p->jumps.n; i++) {
        const Name *label = find_label(p, &p->jumps.data[i]);
        if (!label) return fail(p, "no such label", p->jumps.data[i].label);
        p->kernel->code.data[p->jumps.data[i].inst].target = (uint32_t)label->value;
    }
    return true;
}

/* Directives between the entry's name and its body. */

static uint32_t bytes_of_param(const char *text) {
    const char *array = strchr(text, '[');
    if (array) return (uint32_t)strtoul(array + 1, NULL, 10);
    return strstr(text, ".u64") ? 8 : strstr(text, ".u32") ? 4 : strstr(text, ".u16") ? 2 : 1;
}

static void add_param(Parser *p, char *text) {
    EmuKernel *kernel = p->kernel;
    uint32_t n_bytes = bytes_of_param(text);
    char *end = strchr(text, '[');
    if (!end) end = text + strlen(text);
    char *begin = end;
    while (begin > text && is_part_of_name(begin[-1])) begin--;
    *end = 0;
    uint32_t align = n_bytes > 8 ? 64 : n_bytes;
    uint32_t offset = (kernel->param_bytes + align - 1) / align * align;
    vec_push(p->arena, &kernel->params, (EmuParam){begin, offset, n_bytes});
    vec_push(p->arena, &p->names, (Name){begin, NAME_PARAM, 0, offset});
    kernel->param_bytes = offset + n_bytes;
}

static void read_params(Parser *p, char *text) {
    for (char *next; text && *text; text = next) {
        next = strchr(text, ',');
        if (next) *next++ = 0;
        while (*text == ' ' || *text == '\t' || *text == '\n') text++;
        char *end = text + strlen(text);
        while (end > text && strchr(" \t\n", end[-1])) *--end = 0;
        if (*text) add_param(p, text);
    }
}

static void add_exit(Parser *p) {
    EmuInst inst = {.text = "the end", .line = p->line, .kind = EMU_EXIT, .guard = EMU_NO_SLOT};
    vec_push(p->arena, &p->kernel->code, inst);
}

/* Parses an entry from its name on. */
static bool read_entry(Parser *p) {
    EmuKernel *kernel = p->kernel = arena_array(p->arena, EmuKernel, 1);
    vec_push(p->arena, &p->module->kernels, kernel);
    p->names.n = p->jumps.n = 0;
    if (p->n_table) memset(p->table, 0, p->n_table * sizeof *p->table);
    kernel->n_slots = EMU_SPECIAL_COUNT;
    char *name = p->at, *open = strchr(name, '('), *close = strchr(name, ')');
    char *body = close ? strchr(close, '{') : NULL;
    if (!open || !body) return fail(p, "no body", name);
    for (const char *at = name; at < body; at++) p->line += *at == '\n';
    *open = *close = 0;
    kernel->name = name;
    read_params(p, open + 1);
    *body = 0;
    kernel->n_threads = number_of(close + 1, ".reqntid", 0);
    kernel->cluster = number_of(close + 1, ".reqnctapercluster", 1);
    if (kernel->cluster > EMU_MAX_CLUSTER) return fail(p, "too many blocks of a cluster", name);
    p->at = body;
    if (!read_body(p)) return false;
    if (kernel->shared_bytes > EMU_MAX_STATIC_BYTES)
        return fail(p, "ptxas lets no kernel declare so much shared memory", name);
    add_exit(p);
    return link_jumps(p);
}

static bool read_module(Parser *p) {
    for (skip_space(p); *p->at && !p->has_failed; skip_space(p)) {
        char *directive = word(&p->at);
        size_t n = (size_t)(p->at - directive);
        if (n == 6 && memcmp(directive, ".entry", n) == 0) {
            skip_space(p);
            read_entry(p);
        } else if (n == 7 && memcmp(directive, ".extern", n) == 0) {
            add_static(p, statement(p));
        } else if (n != 8 || memcmp(directive, ".visible", n) != 0) {
            while (*p->at && *p->at != '\n') p->at++;
        }
    }
    return !p->has_failed;
}

bool emu_module_init(EmuModule *module, const char *text) {
    *module = (EmuModule){.arena = arena_new(NULL)};
    Parser p = {.arena = module->arena, .module = module, .line = 1};
    p.at = arena_copy(p.arena, text, strlen(text) + 1);
    return read_module(&p);
}

void emu_module_free(EmuModule *module) {
    arena_free(module->arena);
}
