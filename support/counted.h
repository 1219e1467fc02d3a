// SPDX-License-Identifier: Apache-2.0
//
// Numbers of things in messages: "1 rank", "2 ranks".  Pure, safe from any thread.

#pragma once

#include <string>

namespace support {

// `noun` is one whose plural ends in s.
inline std::string Counted(long long count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace support
