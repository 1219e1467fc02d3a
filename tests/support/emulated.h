// SPDX-License-Identifier: Apache-2.0
//
// For tests of what QEMU does not do, under which tools/cross runs the programs of other
// processors.

#pragma once

#include <cstdlib>

namespace tests {

inline bool IsEmulated() { return std::getenv("QEMU_CPU") != nullptr; }

}  // namespace tests
