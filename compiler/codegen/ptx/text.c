/* The text of one instruction. See ptx.h. */
#include "codegen/ptx/ptx.h"

#include <inttypes.h>
#include <string.h>

enum {
    MAX_SMALL_OPERANDS = 24,
    MAX_PART_BYTES = 48 /* of a register or number; a symbol's name comes on top */
};

/* Parts as text. Each function writes at `to`, which has room, and returns the end. */

static char *put_bytes(char *to, const char *bytes, size_t n) {
    memcpy(to, bytes, n);
    return to + n;
}

static char *put_string(char *to, const char *text) {
    while (*text) *to++ = *text++;
    return to;
}

static char *put_decimal(char *to, uint64_t number) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    return put_bytes(to, digits + at, sizeof digits - at);
}

static char *put_signed(char *to, int64_t number) {
    if (number < 0) *to++ = '-';
    return put_decimal(to, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static char *put_hexadecimal(char *to, uint64_t number, uint32_t n_digits) {
    for (uint32_t i = n_digits; i-- > 0;) *to++ = "0123456789ABCDEF"[number >> (4 * i) & 15];
    return to;
}

static char *put_number(char *to, PtxPart part) {
    if (part.is_float && part.class == PTX_32)
        return put_hexadecimal(put_string(to, "0f"), (uint64_t)part.number, 8);
    if (part.is_float && part.class == PTX_64)
        return put_hexadecimal(put_string(to, "0d"), (uint64_t)part.number, 16);
    return put_signed(to, part.number);
}

static char *put_part(char *to, PtxPart part) {
    if (part.kind == PTX_NUMBER) return put_number(to, part);
    if (part.kind == PTX_SYMBOL)
        to = put_string(to, part.symbol);
    else
        to = put_decimal(put_string(to, ptx_class(part.class)->prefix), part.index);
    if (!part.number) return to;
    *to++ = '+'; /* PTX wants the plus before a sign too: [%rd1+-8] */
    return put_signed(to, part.number);
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

/* Ends the text at `end`. */
static void end_body(Ptx *ptx, char *end) {
    *end = '\0';
    ptx->body.n_bytes = (size_t)(end - ptx->body.data);
}

static PtxPart as_address(Ptx *ptx, PtxPart part) {
    PtxPart to = ptx_new(ptx, part.class);
    char *at = text_reserve(&ptx->body, strlen(part.symbol) + 3 * (size_t)MAX_PART_BYTES);
    at = put_part(put_string(at, "\tmov.b32 "), to);
    at = put_part(put_string(at, ", "), part);
    end_body(ptx, put_string(at, ";\n"));
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

/* Reads the placeholder at `at`. */
static AsmSpecifier request_at(const char *text, const char *at) {
    AsmSpecifier request = {.is_condition = *at == '?',
                            .is_register = at[1] == 'r',
                            .is_address = at > text && at[-1] == '['};
    at += request.is_register ? 2 : 1;
    while (*at >= '0' && *at <= '9')
        request.operand = request.operand * 10 + (uint32_t)(*at++ - '0');
    request.end = at;
    return request;
}

/* Finds the next placeholder from `at`; false: there is none. */
static bool next_request(const char *text, const char *at, AsmSpecifier *request) {
    at = strpbrk(at, "$?");
    if (at) *request = request_at(text, at);
    return at != NULL;
}

/* The end of a conditional text whose condition does not hold. */
static const char *skip(const char *at) {
    return at + strcspn(at, ">");
}

/* Whether the operand may be an address as it is. */
static bool is_address(const PtxPart *operand) {
    bool is_far = operand->number != (int32_t)operand->number;
    return !is_far && (operand->kind == PTX_REGISTER || operand->kind == PTX_SYMBOL);
}

/* Whether the operand has the form that its placeholder asks for. */
static bool is_ready(const AsmSpecifier *request, const PtxPart *operand) {
    if (operand->kind == PTX_REGISTER && !operand->number) return true;
    if (request->is_register) return false;
    return operand->kind == PTX_NUMBER || (request->is_address && is_address(operand));
}

/* Brings each operand into the form that its placeholders ask for. */
static void prepare(Ptx *ptx, const char *text, PtxPart *operands) {
    const char *at = text;
    for (AsmSpecifier request; next_request(text, at, &request);) {
        PtxPart *operand = &operands[request.operand];
        at = request.end;
        if (request.is_condition)
            at = operand->number ? at : skip(at);
        else if (request.is_register)
            *operand = ptx_register(ptx, *operand);
        else if (!request.is_address || !is_address(operand))
            *operand = ptx_plain(ptx, *operand);
    }
}

static char *put_type(char *to, const PtxType *type, char letter) {
    if (letter == 'f') {
        to = put_string(to, ptx_element(type->element)->suffix);
        return type->is_packed ? put_string(to, "x2") : to;
    }
    if (type->element == PTX_I1) return put_string(to, "pred");
    *to++ = letter;
    return put_decimal(to, ptx_class(ptx_part_class(*type))->bits);
}

/* Writes the instruction. Returns false, and writes nothing, if an operand does not have the form
 * that a placeholder asks for. */
static bool put_text(Ptx *ptx, const PtxType *type, const char *text, const PtxPart *operands) {
    size_t begin = ptx->body.n_bytes, most = (strlen(text) + 2) * MAX_PART_BYTES;
    char *to = text_reserve(&ptx->body, most);
    *to++ = '\t';
    for (const char *at = text; *at;) {
        if (*at == '#') {
            to = put_type(to, type, at[1]);
            at += 2;
        } else if (*at == '>') {
            at++;
        } else if (*at == '$' || *at == '?') {
            AsmSpecifier request = request_at(text, at);
            const PtxPart *operand = &operands[request.operand];
            at = request.end;
            if (request.is_condition) {
                at = operand->number ? at + 1 : skip(at);
                continue;
            }
            if (!is_ready(&request, operand)) {
                end_body(ptx, ptx->body.data + begin);
                return false;
            }
            if (operand->kind == PTX_SYMBOL) {
                end_body(ptx, to);
                to = text_reserve(&ptx->body, strlen(operand->symbol) + most);
            }
            to = put_part(to, *operand);
        } else {
            *to++ = *at++;
        }
    }
    *to++ = '\n';
    end_body(ptx, to);
    return true;
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
    if (put_text(ptx, type, text, operands)) return;
    uint32_t n = n_operands(text);
    if (n > MAX_SMALL_OPERANDS) own = arena_array(ptx->arena, PtxPart, n);
    memcpy(own, operands, n * sizeof *own);
    prepare(ptx, text, own);
    if (!put_text(ptx, type, text, own)) ice(ptx->arena, "%s: operands of %s", ptx->name, text);
}

PtxPart ptx_do(Ptx *ptx, const PtxType *type, const char *text, PtxClass class, const PtxPart *from,
               uint32_t n) {
    PtxPart operands[8] = {ptx_new(ptx, class)};
    if (n >= 8) ice(ptx->arena, "too many operands: %s", text);
    memcpy(operands + 1, from, n * sizeof *from);
    ptx_put(ptx, type, text, operands);
    return operands[0];
}
