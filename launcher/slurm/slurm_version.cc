// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/slurm_version.h"

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

}  // namespace launcher
