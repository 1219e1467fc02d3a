// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/slurm_version.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <sstream>

#include "support/number.h"

namespace launcher {
namespace {

// The first version in which the servers were not seen to refuse each other.
constexpr SlurmVersion kPmixServersMended = {24, 11};

// By Slurm's CHANGELOG of 25.11 and 26.05 and openpmix issue 3645.  It does not say how many tasks
// are "a large number", nor whether versions before 25.11 fail with them.
struct PmixFault {
  SlurmVersion first;
  SlurmVersion mended;
  std::vector<std::string> pmix;  // versions of the library; empty: any
  int ranks;                      // or more
  const char* text;
};
const PmixFault kPmixFaults[] = {
    {{}, {25, 11, 2}, {"5.0.8", "5.0.9"}, 1, "MPI programs with it may hang in MPI_Init"},
    {{25, 11}, {25, 11, 7}, {}, 1024, "MPI programs of very many ranks may fail to start"},
    {{26, 5}, {26, 5, 2}, {}, 1024, "MPI programs of very many ranks may fail to start"}};

std::string Text(SlurmVersion version) {
  char text[48];
  std::snprintf(text, sizeof(text), "Slurm %d.%02d.%d", version.year, version.month, version.patch);
  return text;
}

// "22.05.8" -> 22, 5, 8; false for anything else.
bool ParseNumbers(const std::string& word, SlurmVersion* version) {
  const char* end = word.data() + word.size();
  const auto [dot, error] = std::from_chars(word.data(), end, version->year);
  if (error != std::errc() || dot == end || *dot != '.' || version->year < 0) return false;
  const auto [rest, second_error] = std::from_chars(dot + 1, end, version->month);
  if (second_error != std::errc() || version->month < 0) return false;
  version->patch = kNewestSlurm.patch;
  if (rest == end) return true;
  if (*rest != '.') return false;
  const std::string third(rest + 1, std::find_if_not(rest + 1, end, [](char letter) {
                            return letter >= '0' && letter <= '9';
                          }));
  version->patch = support::WholeNumber<int>(third).value_or(version->patch);
  return true;
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

bool PmixServersNeedPause(SlurmVersion version) { return version < kPmixServersMended; }

std::string KnownPmixFault(SlurmVersion version, const std::string& pmix, int ranks) {
  for (const PmixFault& fault : kPmixFaults) {
    const bool is_of_library =
        fault.pmix.empty() || std::ranges::find(fault.pmix, pmix) != fault.pmix.end();
    if (version < fault.first || !(version < fault.mended) || !is_of_library ||
        ranks < fault.ranks) {
      continue;
    }
    return Text(version) + ", PMIx " + pmix + ": " + fault.text + ", mended in " +
           Text(fault.mended);
  }
  return "";
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
