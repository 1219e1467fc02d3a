// SPDX-License-Identifier: Apache-2.0
//
// For tests of what QEMU does not do, under which tools/ppc64le runs the programs of POWER9.

#pragma once

#include <cstdlib>

namespace tests {

inline bool IsEmulated() { return std::getenv("QEMU_CPU") != nullptr; }

}  // namespace tests
