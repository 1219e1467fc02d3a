// SPDX-License-Identifier: Apache-2.0
//
// What ResNet-50 of the SC22 study "Not All GPUs Are Created Equal" prints (its sec5a_resnet/
// cnn_utils/engine.py and torch_imagenet_resnet.py), for that study's readers.  Pure.

#pragma once

#include <cstdint>
#include <string>

namespace trainer {

// "rank = 1, world_size = 4, device_ids = 1".
std::string DurationsHead(int rank, int ranks, int device);

// An empty line, then "Iteration Duration 3 1 : 0.25" of iteration 3, counted from 0, on device 1.
std::string IterationDuration(std::int64_t iteration, int device, double seconds);

// An empty line, then "Training time: 0:01:02.500000".  Readers look at nothing behind it.
std::string TrainingTime(double seconds);

}  // namespace trainer
