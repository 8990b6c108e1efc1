/* The wire format of protocol buffers. See wire.h. */
#include "onnx/file/wire.h"

bool wire_varint(Bytes *bytes, uint64_t *value) {
    *value = 0;
    for (size_t i = 0; i < bytes->n && i < 10; i++) {
        *value |= (uint64_t)(bytes->data[i] & 0x7F) << (7 * i);
        if (bytes->data[i] & 0x80) continue;
        *bytes = (Bytes){bytes->data + i + 1, bytes->n - i - 1};
        return true;
    }
    return false;
}

bool wire_fixed(Bytes *bytes, size_t n_bytes, uint64_t *value) {
    if (bytes->n < n_bytes) return false;
    *value = 0;
    for (size_t i = 0; i < n_bytes; i++) *value |= (uint64_t)bytes->data[i] << (8 * i);
    *bytes = (Bytes){bytes->data + n_bytes, bytes->n - n_bytes};
    return true;
}

static bool take_bytes(Bytes *rest, Bytes *bytes) {
    uint64_t n;
    if (!wire_varint(rest, &n) || n > rest->n) return false;
    *bytes = (Bytes){rest->data, (size_t)n};
    *rest = (Bytes){rest->data + n, rest->n - (size_t)n};
    return true;
}

static bool take_value(Bytes *rest, WireField *field) {
    switch (field->type) {
    case WIRE_VARINT:
        return wire_varint(rest, &field->value);
    case WIRE_FIXED64:
        return wire_fixed(rest, 8, &field->value);
    case WIRE_FIXED32:
        return wire_fixed(rest, 4, &field->value);
    case WIRE_BYTES:
        return take_bytes(rest, &field->bytes);
    }
    return false;
}

bool wire_next(Bytes *message, WireField *field) {
    Bytes rest = *message;
    uint64_t tag;
    *field = (WireField){0};
    if (rest.n == 0 || !wire_varint(&rest, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3)
        return false;
    field->number = (uint32_t)(tag >> 3);
    field->type = (WireType)(tag & 7);
    if (!take_value(&rest, field)) return false;
    *message = rest;
    return true;
}
