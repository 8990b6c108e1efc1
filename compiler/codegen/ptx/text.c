/* The text of one instruction. See ptx.h. */
#include "codegen/ptx/ptx.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_SMALL_OPERANDS = 24 };

static void put_decimal(Text *text, uint64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    text_add(text, digits + at, sizeof digits - at);
}

static void put_signed(Text *text, int64_t number) {
    if (number < 0) text_puts(text, "-");
    put_decimal(text, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static void put_number(Text *text, PtxPart part) {
    if (part.is_float && part.class == PTX_32)
        text_printf(text, "0f%08" PRIX32, (uint32_t)part.number);
    else if (part.is_float && part.class == PTX_64)
        text_printf(text, "0d%016" PRIX64, (uint64_t)part.number);
    else
        put_signed(text, part.number);
}

static void put_part(Text *text, PtxPart part) {
    if (part.kind == PTX_NUMBER) {
        put_number(text, part);
        return;
    }
    if (part.kind == PTX_SYMBOL) {
        text_puts(text, part.symbol);
    } else {
        text_puts(text, ptx_class(part.class)->prefix);
        put_decimal(text, part.index);
    }
    if (part.number) text_puts(text, "+"); /* PTX wants the plus before a sign too: [%rd1+-8] */
    if (part.number) put_signed(text, part.number);
}

/* Operands. */

static PtxPart as_sum(Ptx *ptx, PtxPart part) {
    PtxPart base = part;
    base.number = 0;
    const char *text = part.class == PTX_64 ? "add.s64 $0, $1, $2;" : "add.s32 $0, $1, $2;";
    return ptx_do(ptx, NULL, text, part.class,
                  (PtxPart[]){base, ptx_number(part.class, part.number)}, 2);
}

static PtxPart as_pair(Ptx *ptx, PtxPart half) {
    PtxPart lane = {.kind = PTX_REGISTER, .class = PTX_16, .index = half.index};
    return ptx_do(ptx, NULL, "mov.b32 $0, {$1, $1};", PTX_32, &lane, 1);
}

static PtxPart as_address(Ptx *ptx, PtxPart part) {
    PtxPart to = ptx_new(ptx, part.class);
    text_puts(&ptx->body, "\tmov.b32 ");
    put_part(&ptx->body, to);
    text_puts(&ptx->body, ", ");
    put_part(&ptx->body, part);
    text_puts(&ptx->body, ";\n");
    return to;
}

PtxPart ptx_plain(Ptx *ptx, PtxPart part) {
    switch (part.kind) {
    case PTX_NOTHING:
        return ptx_number(part.class, 0);
    case PTX_NUMBER:
        return part;
    case PTX_REGISTER:
        return part.number ? as_sum(ptx, part) : part;
    case PTX_SYMBOL:
        return as_address(ptx, part);
    case PTX_HALF:
        return as_pair(ptx, part);
    case PTX_VARIABLE:
        break;
    }
    ice(ptx->arena, "%s: a register has no address", ptx->name);
}

void ptx_move(Ptx *ptx, PtxPart to, PtxPart from) {
    static const char *const texts[] = {[PTX_PRED] = "mov.pred $0, $1;",
                                        [PTX_16] = "mov.b16 $0, $1;",
                                        [PTX_32] = "mov.b32 $0, $1;",
                                        [PTX_64] = "mov.b64 $0, $1;"};
    ptx_put(ptx, NULL, texts[to.class], (PtxPart[]){to, from});
}

PtxPart ptx_register(Ptx *ptx, PtxPart part) {
    part = ptx_plain(ptx, part);
    if (part.kind == PTX_REGISTER) return part;
    PtxPart to = ptx_new(ptx, part.class);
    ptx_move(ptx, to, part);
    return to;
}

/* Text. */

/* One placeholder of an instruction text. */
typedef struct AsmSpecifier {
    const char *end;
    uint32_t operand;
    bool is_condition, is_register, is_address;
} AsmSpecifier;

/* Finds the next placeholder from `at`; false: there is none. */
static bool next_request(const char *text, const char *at, AsmSpecifier *request) {
    at = strpbrk(at, "$?");
    if (!at) return false;
    *request = (AsmSpecifier){.is_condition = *at == '?',
                              .is_register = at[1] == 'r',
                              .is_address = at > text && at[-1] == '['};
    at += request->is_register ? 2 : 1;
    while (*at >= '0' && *at <= '9')
        request->operand = request->operand * 10 + (uint32_t)(*at++ - '0');
    request->end = at;
    return true;
}

/* The end of a conditional text whose condition does not hold. */
static const char *skip(const char *at) {
    return at + strcspn(at, ">");
}

/* Brings each operand into the form that its placeholders ask for. */
static void prepare(Ptx *ptx, const char *text, PtxPart *operands) {
    const char *at = text;
    for (AsmSpecifier request; next_request(text, at, &request);) {
        PtxPart *operand = &operands[request.operand];
        at = request.end;
        bool is_far = operand->number != (int32_t)operand->number;
        bool has_place = operand->kind == PTX_REGISTER || operand->kind == PTX_SYMBOL;
        if (request.is_condition)
            at = operand->number ? at : skip(at);
        else if (request.is_register)
            *operand = ptx_register(ptx, *operand);
        else if (!request.is_address || !has_place || is_far)
            *operand = ptx_plain(ptx, *operand);
    }
}

static void put_type(Text *text, const PtxType *type, char letter) {
    if (letter == 'f') {
        text_puts(text, ptx_element(type->element)->suffix);
        if (type->is_packed) text_puts(text, "x2");
    } else if (type->element == PTX_I1) {
        text_puts(text, "pred");
    } else {
        text_add(text, &letter, 1);
        put_decimal(text, ptx_class(ptx_part_class(*type))->bits);
    }
}

static void put_text(Text *to, const PtxType *type, const char *text, const PtxPart *operands) {
    AsmSpecifier request;
    text_puts(to, "\t");
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, "$#?>");
        text_add(to, at, n);
        at += n;
        if (*at == '#') {
            put_type(to, type, at[1]);
            at += 2;
        } else if (*at == '>') {
            at++;
        } else if (*at && next_request(text, at, &request)) {
            const PtxPart *operand = &operands[request.operand];
            at = request.end;
            if (request.is_condition)
                at = operand->number ? at + 1 : skip(at);
            else
                put_part(to, *operand);
        }
    }
    text_puts(to, "\n");
}

static uint32_t n_operands(const char *text) {
    const char *at = text;
    uint32_t most = 0;
    for (AsmSpecifier request; next_request(text, at, &request); at = request.end)
        if (request.operand >= most) most = request.operand + 1;
    return most;
}

void ptx_put(Ptx *ptx, const PtxType *type, const char *text, const PtxPart *operands) {
    PtxPart small[MAX_SMALL_OPERANDS], *own = small;
    uint32_t n = n_operands(text);
    if (n > MAX_SMALL_OPERANDS) own = arena_array(ptx->arena, PtxPart, n);
    if (n) memcpy(own, operands, n * sizeof *own);
    prepare(ptx, text, own);
    put_text(&ptx->body, type, text, own);
}

PtxPart ptx_do(Ptx *ptx, const PtxType *type, const char *text, PtxClass class, const PtxPart *from,
               uint32_t n) {
    PtxPart operands[8] = {ptx_new(ptx, class)};
    if (n >= 8) ice(ptx->arena, "too many operands: %s", text);
    memcpy(operands + 1, from, n * sizeof *from);
    ptx_put(ptx, type, text, operands);
    return operands[0];
}
