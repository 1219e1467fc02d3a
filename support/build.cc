// SPDX-License-Identifier: Apache-2.0

#include "support/build.h"

#include "support/reference.h"

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

std::string BugAddress() { return DDLRUN_BUGS; }

std::string SecurityAddress() { return DDLRUN_SECURITY; }

std::string HelpFooter() {
  return std::string(kReferenceLine) + "\nReport bugs at " + BugAddress();
}

}  // namespace support
