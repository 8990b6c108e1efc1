/* The wire format of protocol buffers, read in place: a message is a run of bytes, and a field of
 * it a number, or a run of bytes inside. Every read is checked against the message's end. */
#ifndef FUSEC_ONNX_WIRE_H
#define FUSEC_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Bytes {
    const uint8_t *data;
    size_t n;
} Bytes;

typedef enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 } WireType;

typedef struct WireField {
    uint32_t number;
    WireType type;
    uint64_t value; /* of all types but WIRE_BYTES */
    Bytes bytes;    /* of WIRE_BYTES */
} WireField;

/* Takes the next field off `message`. False at its end, and when the bytes are no field: then
 * `message` is not empty. */
bool wire_next(Bytes *message, WireField *field);
/* Takes a number off the bytes of a packed field. False when they are no number. */
bool wire_varint(Bytes *bytes, uint64_t *value);
bool wire_fixed(Bytes *bytes, size_t n_bytes, uint64_t *value);

#endif
