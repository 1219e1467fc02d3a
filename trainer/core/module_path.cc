// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/module_path.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "support/number.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

fs::path Prefix() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
}

// 12 of "python3.12", and of "python3.12t", which is a free-threaded one.
std::optional<int> PythonVersion(std::string_view directory) {
  constexpr std::string_view kName = "python3.";
  if (!directory.starts_with(kName)) return std::nullopt;
  directory.remove_prefix(kName.size());
  if (directory.ends_with('t')) directory.remove_suffix(1);
  return support::WholeNumber<int>(directory);
}

}  // namespace

std::string ModulePath(const std::string& name) {
  return (Prefix() / "lib/ddlrun" / name).string();
}

std::string FindPackages(const fs::path& prefix, const std::string& name) {
  std::vector<std::pair<int, fs::path>> places;  // {12, ".../python3.12/site-packages"}
  std::error_code error;
  for (const char* lib : {"lib", "lib64"}) {
    for (fs::directory_iterator at(prefix / lib, error), end; !error && at != end;
         at.increment(error)) {
      const std::optional<int> version = PythonVersion(at->path().filename().string());
      if (!version) continue;
      places.emplace_back(*version, at->path() / "site-packages");
      places.emplace_back(*version, at->path() / "dist-packages");
    }
  }
  std::ranges::stable_sort(places, std::greater<>(), [](const auto& place) { return place.first; });
  places.emplace_back(0, prefix);
  const auto found = std::ranges::find_if(
      places, [&](const auto& place) { return fs::exists(place.second / name, error); });
  return found == places.end() ? "" : found->second.string();
}

std::string PackagesBeside(const std::string& name) { return FindPackages(Prefix(), name); }

}  // namespace trainer
