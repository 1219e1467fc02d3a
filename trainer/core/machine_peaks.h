// SPDX-License-Identifier: Apache-2.0
//
// The two limits of a roofline.  Pure.

#pragma once

#include <optional>
#include <string_view>

namespace trainer {

// What a device can do at most, per second.
struct MachinePeaks {
  double flops = 0;
  double bytes_per_second = 0;  // read and written together
};

// "989000:4800" are 989,000 GFLOP/s and 4,800 GB/s, of 1e9 each.  Nothing for what is no such text
// and for numbers that are not above 0 or not finite.
std::optional<MachinePeaks> ParsePeaks(std::string_view text);

}  // namespace trainer
