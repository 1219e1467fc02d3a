// SPDX-License-Identifier: Apache-2.0
//
// The value of -H: read or refused; hosts are named once, slots are at least 1.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "launcher/allocation/host_allocation.h"
#include "launcher/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  try {
    const auto allocation =
        launcher::AllocationFromHostList(std::string(reinterpret_cast<const char*>(data), size));
    std::set<std::string> hosts;
    for (const launcher::AllocatedNode& node : allocation.nodes) {
      if (!hosts.insert(node.host).second || node.slots.value_or(1) < 1) std::abort();
    }
    if (hosts.empty()) std::abort();
  } catch (const launcher::LaunchError&) {
    return 0;
  }
  return 0;
}
