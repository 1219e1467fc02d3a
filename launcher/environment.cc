// SPDX-License-Identifier: Apache-2.0

#include "launcher/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string_view>

#include "launcher/rank_variables.h"

namespace launcher {
namespace {

template <typename Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

template <std::size_t size>
bool HasPrefix(const std::array<std::string_view, size>& prefixes, std::string_view name) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

bool IsIdentifier(std::string_view name) {
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), is_part);
}

// PMIX_MCA_* and OMPI_MCA_* are settings of the user, not identities.
constexpr std::array<std::string_view, 5> kIdentityPrefixes = {
    "OMPI_COMM_WORLD_", "PMI_", "DDLRUN_RANK_", "OMPI_UNIVERSE_", "OMPI_APP_CTX"};

constexpr std::array<std::string_view, 17> kLocalNames = {"_",
                                                          "OLDPWD",
                                                          "PWD",
                                                          "SHLVL",
                                                          "HOSTNAME",
                                                          "HOST",
                                                          "LOGNAME",
                                                          "USER",
                                                          "HOME",
                                                          "SHELL",
                                                          "TERM",
                                                          "DISPLAY",
                                                          "XAUTHORITY",
                                                          "CUDA_VISIBLE_DEVICES",
                                                          "ROCR_VISIBLE_DEVICES",
                                                          "GPU_DEVICE_ORDINAL",
                                                          "DDLRUN_SITE"};
constexpr std::array<std::string_view, 9> kLocalPrefixes = {
    "SSH_", "XDG_", "DBUS_", "OMPI_", "PRTE_", "ORTE_", "SLURMD_", "SLURM_", "PMIX_"};
// What names the job is the same on all its nodes.
constexpr std::array<std::string_view, 5> kJobPrefixes = {
    "SLURM_JOB_ID", "SLURM_JOB_NAME", "SLURM_ARRAY_", "SLURM_RESTART_COUNT", "SLURM_SUBMIT_"};

}  // namespace

Environment SnapshotEnvironment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

std::vector<std::string> ToStrings(const Environment& environment) {
  std::vector<std::string> strings;
  strings.reserve(environment.size());
  for (const auto& [name, value] : environment) strings.push_back(name + "=" + value);
  return strings;
}

bool IsRankIdentity(const std::string& name) {
  if (name.starts_with("PMIX_")) return !name.starts_with("PMIX_MCA_");
  return Contains(kIdentityNames, name) || HasPrefix(kIdentityPrefixes, name);
}

bool IsForwarded(const std::string& name) {
  if (HasPrefix(kJobPrefixes, name)) return true;
  return IsIdentifier(name) && !IsRankIdentity(name) && !Contains(kLocalNames, name) &&
         !HasPrefix(kLocalPrefixes, name);
}

}  // namespace launcher
