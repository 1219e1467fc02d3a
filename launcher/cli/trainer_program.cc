// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/trainer_program.h"

#include <algorithm>
#include <filesystem>

namespace launcher {

std::optional<std::vector<std::string>> TrainerArguments(const std::vector<std::string>& program) {
  const auto trainer = std::find_if(program.begin(), program.end(), [](const std::string& word) {
    return std::filesystem::path(word).filename() == "ddltraind";
  });
  if (trainer == program.end()) return std::nullopt;
  return std::vector<std::string>(trainer + 1, program.end());
}

}  // namespace launcher
