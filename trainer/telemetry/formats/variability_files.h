// SPDX-License-Identifier: Apache-2.0
//
// The files of --variability_dir.

#pragma once

#include <cstdint>
#include <string>

#include "trainer/telemetry/meters/device_state.h"

namespace trainer {

// What ResNet-50 of the SC22 study "Not All GPUs Are Created Equal" prints (its sec5a_resnet/
// cnn_utils/engine.py and torch_imagenet_resnet.py), for that study's readers.  Pure.

// "rank = 1, world_size = 4, device_ids = 1".
std::string DurationsHead(int rank, int ranks, int device);

// An empty line, then "Iteration Duration 3 1 : 0.25" of iteration 3, counted from 0, on device 1.
std::string IterationDuration(std::int64_t iteration, int device, double seconds);

// An empty line, then "Training time: 0:01:02.500000".  Readers look at nothing behind it.
std::string TrainingTime(double seconds);

// What `nvprof --print-gpu-trace --system-profiling on --csv` prints, as readers of the SC22 study
// "Not All GPUs Are Created Equal" take it: lines with "==" in them, which are skipped, titles,
// units, then a row for each kernel and for each reading of clocks, temperature and power.  They
// split rows at every comma, so that names have none.  Pure.

// All up to the first row; `who` is a line for people.
std::string NvprofHead(std::int64_t process, const std::string& who);

// `device` as nvprof has it: "Tesla V100-SXM2-16GB (0)".  Commas and quotes in names become blanks.
std::string NvprofKernel(const std::string& device, double begin_seconds, double seconds,
                         const std::string& name, std::int64_t correlation);

// A row for each thing that `state` tells, "" if it tells nothing.  What it does not tell beside it
// (the memory's clock, the limit) is 0.
std::string NvprofState(const std::string& device, double seconds, const DeviceState& state);

}  // namespace trainer
