#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often each image was seen, one number in a line, in a run with a zero head and a learning rate of 0.

seen_images.py SAFETENSORS_PY CHECKPOINT...: the checkpoints of all launches, in order.

Each class has one image.  With all logits 0 the gradient of the bias of class c in a step is 1 / classes, less 1 /
(images in the step) where its image is among them.  With a momentum of 1 momentum is the sum of these.
"""
import json
import runpy
import struct
import sys

read = runpy.run_path(sys.argv[1])["read"]
seen, momentum, step = None, None, 0
for checkpoint in sys.argv[2:]:
    with open(checkpoint + "/manifest.json") as file:
        manifest = json.load(file)["manifest"]
    values = read(checkpoint + "/optimizer.safetensors")["fc.bias"][2]
    after = struct.unpack(f"<{len(values) // 4}f", values)
    momentum = momentum or [0] * len(after)
    seen = seen or [0] * len(after)
    steps, images = manifest["step"] - step, manifest["global_batch"]
    seen = [n + images * (steps / len(after) - (b - a)) for n, a, b in zip(seen, momentum, after)]
    momentum, step = after, manifest["step"]
for n in seen:
    assert abs(n - round(n)) < 0.01, n
    print(round(n))
