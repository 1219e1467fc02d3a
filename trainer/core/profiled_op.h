// SPDX-License-Identifier: Apache-2.0
//
// What an op of a back end was asked for and how long it took.  Plain values, which the back end
// fills (backend/op_recorder.h) and telemetry shows (telemetry/meters/op_profile.h).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trainer {

// The two limits of a roofline: what a device can do at most, per second.
struct MachinePeaks {
  double flops = 0;
  double bytes_per_second = 0;  // read and written together
};

// "989000:4800" are 989,000 GFLOP/s and 4,800 GB/s, of 1e9 each.  Nothing for what is no such text
// and for numbers that are not above 0 or not finite.
std::optional<MachinePeaks> ParsePeaks(std::string_view text);

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
