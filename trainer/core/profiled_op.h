// SPDX-License-Identifier: Apache-2.0
//
// What an op of a back end was asked for and how long it took.  Plain values, which the back end
// fills (backend/op_recorder.h) and telemetry shows (telemetry/meters/op_profile.h).

#pragma once

#include <cstdint>
#include <string>

namespace trainer {

// What one call has to do, whoever does it (backend/op_work.h).
struct OpWork {
  double flop = 0;
  double bytes = 0;  // to and from memory

  bool operator==(const OpWork&) const = default;
};

struct ProfiledOp {
  std::string layer;  // torchvision's name, "layer1.0.conv1", or what the op is for, "input"
  std::string op;     // "convolution forward"
  std::string shape;  // of what goes in and comes out
  OpWork work;        // of one call
  std::int64_t calls = 0;
  double seconds = 0;  // of all calls
};

}  // namespace trainer
