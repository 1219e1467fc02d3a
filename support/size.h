// SPDX-License-Identifier: Apache-2.0
//
// The number of elements as int, which is what nodes, ranks, GPUs and cores are counted in.

#pragma once

#include <vector>

namespace support {

template <typename Element>
int Size(const std::vector<Element>& list) {
  return static_cast<int>(list.size());
}

}  // namespace support
