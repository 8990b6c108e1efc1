/* See ptx_section.h. */
#include "code/ptx_section.h"

#include "host/error.h"
#include "host/mem.h"
#include "code/module.h"

#include <string.h>

static const char mark[] = "\n" FRT_MANIFEST_PREFIX FRT_D_FUNCTION " ";

static const char *next_mark(const char *from) {
    return strstr(from, mark);
}

/* Reads the function whose mark is at `at`. It ends at the next mark or at the end of the code. */
static frt_status read_piece(const frt_module *module, const char *at, const char *next,
                             Piece *piece, frt_error *err) {
    const char *end = next ? next + 1 : module->code + module->n_code;
    piece->symbol = at + sizeof mark - 1;
    while (FRT_NAME_BYTE_IS_PLAIN(piece->symbol[piece->n_symbol])) {
        piece->n_symbol++;
    }
    const char *text = piece->symbol + piece->n_symbol;
    if (piece->n_symbol == 0 || piece->n_symbol > FRT_MAX_NAME_BYTES || *text != '\n') {
        return frt_fail(err, FRT_E_ARTIFACT,
                        "a `" FRT_D_FUNCTION "` line of the PTX has no plain name");
    }
    piece->text = text + 1;
    piece->n_bytes = (size_t)(end - piece->text);
    return FRT_OK;
}

frt_status pieces_find(frt_module *module, frt_error *err) {
    const char *first = module->code_kind == FRT_CODE_PTX ? next_mark(module->code) : NULL;
    uint32_t n = 0;
    for (const char *at = first; at; at = next_mark(at + 1)) {
        if (n++ == FRT_MAX_FUNCTIONS) {
            return frt_fail(err, FRT_E_ARTIFACT, "the PTX has more than %d functions",
                            FRT_MAX_FUNCTIONS);
        }
    }
    module->n_pieces = n ? n : 1;
    module->pieces = mem_alloc(module->n_pieces, sizeof *module->pieces);
    if (!module->pieces) {
        return frt_fail_memory(err, module->n_pieces * sizeof *module->pieces);
    }
    module->n_head = first ? (size_t)(first + 1 - module->code) : 0;
    frt_status status = FRT_OK;
    const char *at = first;
    for (uint32_t i = 0; !status && i < n; i++) {
        const char *next = next_mark(at + 1);
        status = read_piece(module, at, next, &module->pieces[i], err);
        at = next;
    }
    return status;
}

bool pieces_are_one(const frt_module *module) {
    return !module->pieces[0].symbol;
}

bool pieces_have(const frt_module *module, const char *symbol, uint32_t *piece) {
    size_t n_symbol = strlen(symbol);
    uint32_t from = *piece;
    for (uint32_t i = 0; i < module->n_pieces; i++) {
        *piece = (from + i) % module->n_pieces;
        const Piece *at = &module->pieces[*piece];
        if (!at->symbol ||
            (at->n_symbol == n_symbol && memcmp(at->symbol, symbol, n_symbol) == 0)) {
            return true;
        }
    }
    return false;
}

char *pieces_join(const frt_module *module, const uint32_t *pieces, uint32_t n, size_t *n_bytes) {
    *n_bytes = module->n_head;
    for (uint32_t i = 0; i < n; i++) {
        *n_bytes += module->pieces[pieces[i]].n_bytes;
    }
    char *ptx = mem_alloc(*n_bytes + 1, 1);
    if (!ptx) {
        return NULL;
    }
    memcpy(ptx, module->code, module->n_head);
    char *end = ptx + module->n_head;
    for (uint32_t i = 0; i < n; i++) {
        const Piece *piece = &module->pieces[pieces[i]];
        memcpy(end, piece->text, piece->n_bytes);
        end += piece->n_bytes;
    }
    return ptx;
}
