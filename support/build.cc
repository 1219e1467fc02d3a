// SPDX-License-Identifier: Apache-2.0

#include "support/build.h"

namespace support {

std::string ProgramVersion() { return DDLRUN_VERSION; }

std::string GpusOfBuild() { return DDLRUN_GPUS; }

std::string BuildText(Part part) {
  static constexpr const char* kWith[] = {DDLRUN_LAUNCHER_WITH, DDLRUN_TRAINER_WITH};
  static constexpr const char* kWithout[] = {DDLRUN_LAUNCHER_WITHOUT, DDLRUN_TRAINER_WITHOUT};
  const std::string with = kWith[static_cast<int>(part)];
  const std::string without = kWithout[static_cast<int>(part)];
  const std::string text = "built with: " + (with.empty() ? "no optional library" : with);
  return without.empty() ? text : text + "\nbuilt without: " + without;
}

std::string VersionText(Part part) { return ProgramVersion() + "\n" + BuildText(part); }

}  // namespace support
