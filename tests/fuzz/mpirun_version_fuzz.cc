// SPDX-License-Identifier: Apache-2.0
//
// What `mpirun --version` prints: any text is read; what is Open MPI's has a name and lacks
// nothing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "launcher/launch/mpirun_version.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const launcher::MpirunVersion version =
      launcher::ParseMpirunVersion(std::string(reinterpret_cast<const char*>(data), size));
  if (version.runtime && version.name.empty()) std::abort();
  if (version.runtime.has_value() != launcher::MpirunLacks("mpirun", version).empty()) std::abort();
  if (version.first_line.size() > 80 || version.name.size() > 120) std::abort();
  return 0;
}
