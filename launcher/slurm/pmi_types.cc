// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/pmi_types.h"

#include <algorithm>
#include <sstream>

namespace launcher {

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
