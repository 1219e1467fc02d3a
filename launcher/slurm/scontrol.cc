// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/scontrol.h"

#include "launcher/system/files.h"

namespace launcher {

ScontrolAnswer RunScontrol(const std::vector<std::string>& arguments,
                           const Environment& environment) {
  std::vector<std::string> words = {FindProgram("scontrol", environment)};
  if (words.front().empty()) return AnswerOfScontrol(nullptr);
  words.insert(words.end(), arguments.begin(), arguments.end());
  CommandOutput command(words, environment);
  return AnswerOfScontrol(&command);
}

ScontrolAnswer AnswerOfScontrol(CommandOutput* command) {
  if (command == nullptr) return {false, false, "there is no scontrol in PATH"};
  if (command->Wait(kTimeoutWithScontrol)) return {true, false, command->text()};
  const std::string said = command->text().substr(0, command->text().find('\n'));
  return {false, command->WasKilledByOthers(), said.empty() ? "scontrol did not answer" : said};
}

}  // namespace launcher
