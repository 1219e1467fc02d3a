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

namespace {

// "gpu" of gpu01.example:4 and of gpu[01-03].
std::string_view StemOfHost(std::string_view host) {
  const std::string_view label = host.substr(0, host.find_first_of(".:["));
  return label.substr(0, label.find_last_not_of("0123456789") + 1);
}

}  // namespace

std::string DescribeHostAsProgram(const std::string& hosts,
                                  const std::vector<std::string>& program) {
  if (program.empty() || program.front().find('/') != std::string::npos) return "";
  const std::string& word = program.front();
  const std::string_view host = std::string_view(hosts).substr(hosts.rfind(',') + 1);
  const std::string_view stem = StemOfHost(host);
  const bool is_alike = !stem.empty() && stem == StemOfHost(word);
  if (!is_alike || (word == stem && word != host)) return "";
  return "'" + word + "' behind -H " + hosts +
         " would be the program: write hosts with commas, -H " + hosts + "," + word;
}

}  // namespace launcher
