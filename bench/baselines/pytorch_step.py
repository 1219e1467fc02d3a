#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one training step of ResNet-50 in PyTorch: forward, cross-entropy with label smoothing,
backward, SGD with momentum and weight decay.  Images stay in memory, so that no input is timed.
Prints one line, as ddltraind --mode=training_benchmark does:

  median of 5 steps: 6.4 images/s, 2500.0 ms

On a GPU the step may be 16-bit (autocast, with a gradient scaler in fp16), compiled, or one CUDA
graph.
"""

import argparse
import statistics
import time

import torch
import torchvision

TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=list(TYPES), default="fp32")
    parser.add_argument("--mode", choices=["eager", "compile", "autotune", "graph"], default="eager")
    parser.add_argument("--layout", choices=["channels_last", "default"], default="channels_last")
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--image_size", type=int, default=224)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup_steps", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5, help="steps that are measured")
    return parser.parse_args()


def make_step(arguments):
    """One step on the same images each time."""
    device = torch.device(arguments.device)
    layout = torch.channels_last if arguments.layout == "channels_last" else torch.contiguous_format
    model = torchvision.models.resnet50(weights=None).to(device, memory_format=layout).train()
    on_gpu = arguments.device == "cuda"
    try:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4,
                                    **({"fused": True} if on_gpu else {}))
    except TypeError:  # older than fused SGD
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    size = arguments.image_size
    images = torch.randn(arguments.batch_size, 3, size, size, device=device)
    images = images.contiguous(memory_format=layout)
    labels = torch.randint(1000, (arguments.batch_size,), device=device)
    compute = TYPES[arguments.precision]
    # A graph holds no decision of the host: its scale stays.
    scaler = torch.amp.GradScaler(enabled=compute == torch.float16 and arguments.mode != "graph") \
        if on_gpu else None
    if arguments.mode == "compile":
        model = torch.compile(model)
    elif arguments.mode == "autotune":
        model = torch.compile(model, mode="max-autotune")

    def step():
        optimizer.zero_grad(set_to_none=arguments.mode != "graph")
        if scaler is None:
            loss_of(model(images), labels).backward()
            optimizer.step()
            return
        with torch.autocast("cuda", dtype=compute, enabled=compute != torch.float32):
            loss = loss_of(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    if arguments.mode != "graph":
        return step
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    wait = torch.cuda.synchronize if arguments.device == "cuda" else lambda: None
    step = make_step(arguments)
    seconds = []
    for number in range(arguments.warmup_steps + arguments.steps):
        start = time.perf_counter()
        step()
        wait()
        if number >= arguments.warmup_steps:
            seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    print(f"median of {len(seconds)} steps: {arguments.batch_size / median:.1f} images/s, "
          f"{median * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
