// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/scontrol.h"

#include <chrono>

#include "launcher/system/command_output.h"
#include "launcher/system/programs.h"

namespace launcher {
namespace {

constexpr std::chrono::seconds kPatienceWithScontrol{30};

}  // namespace

ScontrolAnswer RunScontrol(const std::vector<std::string>& arguments,
                           const Environment& environment) {
  std::vector<std::string> words = {FindProgram("scontrol", environment)};
  if (words.front().empty()) return {false, false, "there is no scontrol in PATH"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  CommandOutput command(words, environment);
  if (command.Wait(kPatienceWithScontrol)) return {true, false, command.text()};
  const std::string said = command.text().substr(0, command.text().find('\n'));
  return {false, command.WasKilledByOthers(), said.empty() ? "scontrol did not answer" : said};
}

}  // namespace launcher
