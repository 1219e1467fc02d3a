// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/mpirun_version.h"

#include <sstream>
#include <string_view>

#include "support/number.h"

namespace launcher {
namespace {

constexpr std::size_t kLongestName = 80;
constexpr int kFirstMajorOfPrrte = 5;

// The word of `line` after `before`: "5.0.7" of "mpirun (Open MPI) 5.0.7"; "" where there is none.
std::string WordAfter(const std::string& line, std::string_view before) {
  const std::size_t found = line.find(before);
  if (found == std::string::npos) return "";
  std::string word;
  std::istringstream(line.substr(found + before.size())) >> word;
  return word.substr(0, kLongestName);
}

bool StartsWithDigit(const std::string& word) {
  return !word.empty() && word[0] >= '0' && word[0] <= '9';
}

// Reads a line such as "mpirun (Open MPI) 5.0.7", of an mpirun that is Open MPI's or made of it.
bool ReadOpenMpi(const std::string& line, MpirunVersion* result) {
  struct Maker {
    const char* in_line;
    const char* name;
    std::optional<MpiRuntime> runtime;  // nullopt: by the version
  };
  static constexpr Maker kMakers[] = {
      {" (Open MPI) ", "Open MPI ", std::nullopt},
      {" (OpenRTE) ", "Open MPI ", MpiRuntime::kOrte},
      {" (PRRTE) ", "PRRTE ", MpiRuntime::kPrrte},
      {" (IBM Spectrum MPI) ", "IBM Spectrum MPI ", MpiRuntime::kOrte},
  };
  for (const Maker& maker : kMakers) {
    std::string version = WordAfter(line, maker.in_line);
    if (version.starts_with('v')) version.erase(0, 1);
    if (!StartsWithDigit(version)) continue;
    const std::string major = version.substr(0, version.find_first_not_of("0123456789"));
    const bool is_prrte = support::WholeNumber<int>(major).value_or(0) >= kFirstMajorOfPrrte;
    result->runtime = maker.runtime.value_or(is_prrte ? MpiRuntime::kPrrte : MpiRuntime::kOrte);
    result->name = maker.name + version;
    return true;
  }
  return false;
}

std::string Trimmed(const std::string& line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
}

}  // namespace

MpirunVersion ParseMpirunVersion(const std::string& text) {
  MpirunVersion result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (result.first_line.empty()) result.first_line = Trimmed(line).substr(0, kLongestName);
    if (ReadOpenMpi(line, &result)) return result;
    // With "2021.10 Build 20230619 (id: c2e19c2f3e)" behind it.
    const std::string intel = WordAfter(line, "Intel(R) MPI Library for Linux* OS, Version ");
    if (!intel.empty()) {
      result.name = "Intel MPI " + intel;
      result.other_launcher = "hydra";
      return result;
    }
    // MPICH and those made of it, with "    Version:   4.0.2" next.
    if (line.starts_with("HYDRA build details")) {
      result.other_launcher = "hydra";
      result.name = "MPICH (Hydra)";
    }
    const std::string hydra = result.other_launcher.empty() ? "" : WordAfter(line, " Version:");
    if (!hydra.empty()) {
      result.name = "MPICH (Hydra " + hydra + ")";
      return result;
    }
  }
  return result;
}

std::string MpirunLacks(const std::string& path, const MpirunVersion& version) {
  if (version.runtime) return "";
  if (!version.name.empty()) {
    return path + " is of " + version.name + ", not of Open MPI" +
           (version.other_launcher.empty()
                ? ""
                : " (--launcher=" + version.other_launcher + " starts ranks by it)");
  }
  return path + " does not say that it is of Open MPI: 'mpirun --version' says " +
         (version.first_line.empty() ? "nothing" : "'" + version.first_line + "'");
}

std::string HostThatOrteRejects(const std::vector<std::string>& hosts) {
  constexpr std::size_t kLongestLabel = 63;  // of which 4.1.4 dies
  constexpr std::string_view kTaken =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
  for (const std::string& host : hosts) {
    const bool is_taken = host.find_first_not_of(kTaken) == std::string::npos &&
                          host.substr(0, host.find('.')).size() < kLongestLabel;
    if (!is_taken) return host;
  }
  return "";
}

namespace {

constexpr std::chrono::seconds kTimeoutWithMpirun{30};

}  // namespace

std::unique_ptr<CommandOutput> QueryMpirun(const std::string& mpirun,
                                           const Environment& environment) {
  if (mpirun.empty()) return nullptr;
  return std::make_unique<CommandOutput>(std::vector<std::string>{mpirun, "--version"},
                                         environment);
}

MpirunVersion AnswerOfMpirun(CommandOutput* requested) {
  // What it prints counts, whatever its exit code.
  requested->Wait(kTimeoutWithMpirun);
  return ParseMpirunVersion(requested->text());
}

}  // namespace launcher
