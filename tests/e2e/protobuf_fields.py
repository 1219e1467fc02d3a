# SPDX-License-Identifier: Apache-2.0
"""Messages of Protocol Buffers, read without a schema (https://protobuf.dev/programming-guides/encoding)."""

import struct


def fields(message):
    """(number, value) of each field; a value is an integer, a float, or the bytes of all else."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        size = {1: 8, 5: 4, 2: None}[kind]
        size = varint() if size is None else size
        value = message[at:at + size]
        at += size
        yield number, struct.unpack({1: "<d", 5: "<f"}[kind], value)[0] if kind != 2 else value
