// SPDX-License-Identifier: Apache-2.0

#include "launcher/allocation/visible_gpus.h"

#include <algorithm>
#include <optional>
#include <set>

#include "support/number.h"

namespace launcher {
namespace {

constexpr char kGpu[] = "GPU-";
constexpr char kSlice[] = "MIG-";

std::string Trim(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

std::vector<std::string> Entries(const std::string& list) {
  std::vector<std::string> entries;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    entries.push_back(Trim(list.substr(start, end - start)));
    start = end + 1;
  }
  return entries;
}

std::optional<int> FindByNumber(const std::string& entry, int count) {
  // As CUDA has it: "1gpu" is 1.
  const std::string digits = entry.substr(0, entry.find_first_not_of("0123456789"));
  const std::optional<int> number = support::WholeNumber<int>(digits);
  if (!number || *number < 0 || *number >= count) return std::nullopt;
  return number;
}

std::optional<int> FindByUuid(const std::string& entry, const std::vector<std::string>& uuids) {
  std::optional<int> found;
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    if (!uuids[i].starts_with(entry)) continue;
    if (found) return std::nullopt;
    found = static_cast<int>(i);
  }
  const bool none_known =
      std::all_of(uuids.begin(), uuids.end(), [](const std::string& uuid) { return uuid.empty(); });
  if (!found && none_known && !uuids.empty()) return -1;
  return found;
}

// The older form of a slice's name, "MIG-GPU-8932f937-.../1/0", tells its GPU; "MIG-1b4c..." does
// not.
std::optional<int> FindSlice(const std::string& entry, const std::vector<std::string>& uuids) {
  if (uuids.empty()) return std::nullopt;
  if (uuids.size() == 1) return 0;
  const std::string gpu = entry.substr(sizeof(kSlice) - 1);
  return gpu.starts_with(kGpu) ? FindByUuid(gpu.substr(0, gpu.find('/')), uuids) : -1;
}

}  // namespace

std::vector<int> VisibleGpus(const std::string& list, const std::vector<std::string>& uuids) {
  const std::vector<std::string> entries = Entries(list);
  const std::string kind = entries.front().substr(0, sizeof(kGpu) - 1);
  std::vector<int> gpus;
  std::set<std::string> seen;
  std::set<int> seen_gpus;
  for (const std::string& entry : entries) {
    if ((kind == kGpu || kind == kSlice) && !entry.starts_with(kind)) break;
    const std::optional<int> gpu = kind == kSlice ? FindSlice(entry, uuids)
                                   : kind == kGpu
                                       ? FindByUuid(entry, uuids)
                                       : FindByNumber(entry, static_cast<int>(uuids.size()));
    if (!gpu) break;
    const bool is_whole_gpu = kind != kSlice && *gpu >= 0;
    if (!seen.insert(entry).second || (is_whole_gpu && !seen_gpus.insert(*gpu).second)) return {};
    gpus.push_back(*gpu);
  }
  return gpus;
}

bool HasGpuSlices(const std::string& list) { return Trim(list).starts_with(kSlice); }

}  // namespace launcher
