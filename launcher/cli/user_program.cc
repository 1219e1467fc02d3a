// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/user_program.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace launcher {

std::optional<std::vector<std::string>> TrainerArguments(const std::vector<std::string>& program) {
  const auto trainer = std::find_if(program.begin(), program.end(), [](const std::string& word) {
    return std::filesystem::path(word).filename() == "ddltraind";
  });
  if (trainer == program.end()) return std::nullopt;
  return std::vector<std::string>(trainer + 1, program.end());
}

namespace {

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// python, python3, python3.11.
bool IsPython(std::string_view name) {
  return name.starts_with("python") &&
         name.substr(6).find_first_not_of("0123456789.") == std::string_view::npos;
}

bool IsShell(std::string_view name) {
  constexpr std::array<std::string_view, 5> kShells = {"bash", "dash", "ksh", "sh", "zsh"};
  return std::find(kShells.begin(), kShells.end(), name) != kShells.end();
}

}  // namespace

bool ReadsProgramFromStdin(const std::vector<std::string>& program) {
  if (program.empty()) return false;
  const std::string_view name = FileName(program.front());
  if (!IsPython(name) && !IsShell(name)) return false;
  // Flags that neither give a program nor take the next word.
  const std::string_view harmless = IsPython(name) ? "bBdEiIOPqsSuvx" : "eiluvx";
  for (std::size_t i = 1; i < program.size(); ++i) {
    const std::string_view word = program[i];
    if (word == "-") return true;
    if (!word.starts_with('-') || word.starts_with("--")) return false;
    const std::string_view flags = word.substr(1);
    if (IsShell(name) && flags.find('s') != std::string_view::npos) return true;
    if (flags.find_first_not_of(harmless) != std::string_view::npos) return false;
  }
  return true;
}

}  // namespace launcher
