#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one training step of ResNet-50 in PyTorch on the CPU: forward, cross-entropy with label
smoothing, backward, SGD with momentum and weight decay.  Images stay in memory as fp32, so that no
input is timed.  Prints one line, as ddltraind --mode=training_benchmark does:

  median of 5 steps: 6.4 images/s, 2500.0 ms
"""

import argparse
import statistics
import time

import torch
import torchvision


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layout", choices=["channels_last", "default"], default="channels_last")
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--image_size", type=int, default=224)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup_steps", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5, help="steps that are measured")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    layout = torch.channels_last if arguments.layout == "channels_last" else torch.contiguous_format
    model = torchvision.models.resnet50(weights=None).to(memory_format=layout).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    size = arguments.image_size
    images = torch.randn(arguments.batch_size, 3, size, size).contiguous(memory_format=layout)
    labels = torch.randint(1000, (arguments.batch_size,))

    seconds = []
    for step in range(arguments.warmup_steps + arguments.steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(images), labels).backward()
        optimizer.step()
        if step >= arguments.warmup_steps:
            seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    print(f"median of {len(seconds)} steps: {arguments.batch_size / median:.1f} images/s, "
          f"{median * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
