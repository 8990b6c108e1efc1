"""Protobuf's wire format, in which tests are stored."""
import struct


def field(number, data):
    """A field of protobuf's wire format: bytes, or a double."""
    if isinstance(data, float):
        return bytes([number << 3 | 1]) + struct.pack("<d", data)
    length, n = b"", len(data)
    while n > 127:
        length, n = length + bytes([n & 127 | 128]), n >> 7
    return bytes([number << 3 | 2]) + length + bytes([n]) + data
