// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/this_machine.h"

#include <unistd.h>

#include <array>

#include "rankfile/host_name.h"

namespace launcher {

std::string HostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

bool IsThisMachine(const std::string& host, const Environment& environment) {
  return host == "localhost" || host == "127.0.0.1" ||
         host == ValueOr(environment, "SLURMD_NODENAME", "") ||
         rankfile::SameHost(host, HostName());
}

}  // namespace launcher
