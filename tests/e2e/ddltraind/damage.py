#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damages the first record of TFRecord files: damage.py text|checksum|cut FILE...

text: the JPEG becomes text, with right checksums; checksum: one bit is turned; cut: the file loses its end.
"""
import struct
import sys


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def damage(how, content):
    if how == "cut":
        return content[:-7]
    content = bytearray(content)
    if how == "checksum":
        content[100] ^= 1
        return content
    length, = struct.unpack_from("<Q", content)
    begin = content.index(b"\xff\xd8\xff")
    end = content.rindex(b"\xff\xd9", 0, 12 + length) + 2
    content[begin:end] = (b"this is text " * (end - begin))[:end - begin]
    struct.pack_into("<I", content, 12 + length, masked_crc32c(content[12:12 + length]))
    return content


for name in sys.argv[2:]:
    with open(name, "rb") as file:
        damaged = damage(sys.argv[1], file.read())
    with open(name, "wb") as file:
        file.write(damaged)
