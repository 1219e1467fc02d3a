#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads safetensors files with nothing but Python.

safetensors.py names FILE: the name of each tensor, one in a line.
safetensors.py without NAME FROM TO: copies a file but for one tensor.
safetensors.py zeroed FROM TO NAME...: copies a file with zeros in these tensors.
safetensors.py filled FROM TO NAME VALUE: copies a file with this value all over a tensor of float32.
safetensors.py resnet50 FILE: loads it into torchvision's model, every name and shape as it wants them.
"""
import json
import struct
import sys


def read(path):
    """{name: (dtype, shape, bytes)}"""
    with open(path, "rb") as file:
        content = file.read()
    length, = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    data = content[8 + length:]
    return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}


def write(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def load_into_torchvision(path):
    import torch
    import torchvision
    types = {"F32": torch.float32, "I64": torch.int64}
    state = {name: torch.frombuffer(bytearray(values), dtype=types[dtype]).reshape(shape)
             for name, (dtype, shape, values) in read(path).items()}
    model = torchvision.models.resnet50()
    model.load_state_dict(state, strict=True)
    model.eval()
    print("finite" if torch.isfinite(model(torch.zeros(1, 3, 64, 64))).all() else "not finite")


def main(command, *arguments):
    if command == "names":
        print("\n".join(read(arguments[0])))
    elif command == "without":
        kept = read(arguments[1])
        del kept[arguments[0]]
        write(arguments[2], kept)
    elif command == "zeroed":
        tensors = read(arguments[0])
        for name in arguments[2:]:
            dtype, shape, values = tensors[name]
            tensors[name] = dtype, shape, bytes(len(values))
        write(arguments[1], tensors)
    elif command == "filled":
        tensors = read(arguments[0])
        dtype, shape, values = tensors[arguments[2]]
        value = struct.pack("<f", float(arguments[3]))
        tensors[arguments[2]] = dtype, shape, value * (len(values) // 4)
        write(arguments[1], tensors)
    elif command == "resnet50":
        load_into_torchvision(arguments[0])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
