#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes directories of classes with gray JPEG images of 32 x 32 pixels, each of one brightness, with nothing but Python.

uniform_images.py DIR CLASSES IMAGES BRIGHT: CLASSES directories of IMAGES black images; BRIGHT of all images are white.
"""
import pathlib
import struct
import sys

SIZE = 32


def segment(marker, content):
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def jpeg(level):
    # Of a block there is its mean alone, as eight times its distance from gray; all blocks are alike.
    mean = 8 * (level - 128)
    bits = abs(mean).bit_length()
    value = mean if mean > 0 else mean + (1 << bits) - 1
    # Codes: 00 for no difference to the block before, 01 for one of so many bits; 0 ends a block.
    text = "01" + format(value, f"0{bits}b") + "0" + "000" * (SIZE * SIZE // 64 - 1)
    text += "1" * (-len(text) % 8)
    data = bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8)).replace(b"\xff", b"\xff\0")
    return (b"\xff\xd8" + segment(0xDB, bytes([0] + [1] * 64)) +
            segment(0xC0, struct.pack(">BHHBBBB", 8, SIZE, SIZE, 1, 1, 0x11, 0)) +
            segment(0xC4, bytes([0x00, 0, 2] + [0] * 14 + [0, bits])) +
            segment(0xC4, bytes([0x10, 1] + [0] * 15 + [0])) +
            segment(0xDA, bytes([1, 1, 0x00, 0, 63, 0])) + data + b"\xff\xd9")


def main(directory, classes, images, bright):
    for number in range(classes * images):
        of_class = pathlib.Path(directory) / f"class{number % classes:02}"
        of_class.mkdir(parents=True, exist_ok=True)
        (of_class / f"{number:04}.jpg").write_bytes(jpeg(255 if number < bright else 0))


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
