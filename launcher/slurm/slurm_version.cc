// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/slurm_version.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <tuple>

namespace launcher {
namespace {

// The first version in which the servers were not seen to refuse each other.
constexpr SlurmVersion kPmixServersMended = {24, 11};

// "22.05.8" -> 22, 5; false for anything else.
bool ParseNumbers(const std::string& word, SlurmVersion* version) {
  const char* end = word.data() + word.size();
  const auto [dot, error] = std::from_chars(word.data(), end, version->year);
  if (error != std::errc() || dot == end || *dot != '.' || version->year < 0) return false;
  const auto [rest, second_error] = std::from_chars(dot + 1, end, version->month);
  return second_error == std::errc() && version->month >= 0 && (rest == end || *rest == '.');
}

}  // namespace

SlurmVersion ParseSlurmVersion(const std::string& text) {
  std::istringstream words(text);
  bool is_after_name = false;
  for (std::string word; words >> word;) {
    SlurmVersion version;
    if (is_after_name && ParseNumbers(word, &version)) return version;
    is_after_name = word == "slurm" || word.starts_with("slurm-");
  }
  return kNewestSlurm;
}

bool PmixServersNeedPause(SlurmVersion version) {
  return std::tie(version.year, version.month) <
         std::tie(kPmixServersMended.year, kPmixServersMended.month);
}

std::vector<std::string> ParseMpiList(const std::string& text) {
  constexpr char kOfSrun[] = "srun: ";
  std::vector<std::string> types;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kOfSrun)) line.erase(0, sizeof(kOfSrun) - 1);
    // "MPI plugin types are...", "specific pmix plugin versions available: pmix_v4,pmix_v5".
    if (line.ends_with("...")) continue;
    if (const std::size_t colon = line.find(':'); colon != std::string::npos) {
      if (line.find("pmix plugin versions") == std::string::npos) continue;
      line.erase(0, colon + 1);
    }
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    for (std::string word; words >> word;) types.push_back(word);
  }
  return types;
}

std::string FindMpiType(const std::string& pmi, const std::vector<std::string>& types) {
  std::string newest;
  for (const std::string& type : types) {
    if (type == pmi) return type;
    const bool is_newer =
        type.size() > newest.size() || (type.size() == newest.size() && type > newest);
    if (pmi == "pmix" && type.starts_with("pmix_v") && is_newer) newest = type;
  }
  return newest;
}

}  // namespace launcher
