// SPDX-License-Identifier: Apache-2.0

#include "support/build.h"

namespace support {

std::string ProgramVersion() { return DDLRUN_VERSION; }

std::string BuildText() {
  const std::string with = DDLRUN_BUILT_WITH;
  const std::string without = DDLRUN_BUILT_WITHOUT;
  const std::string text = "built with: " + (with.empty() ? "no optional library" : with);
  return without.empty() ? text : text + "\nbuilt without: " + without;
}

std::string VersionText() { return ProgramVersion() + "\n" + BuildText(); }

}  // namespace support
