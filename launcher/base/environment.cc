// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

namespace launcher {

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

std::string ValueOr(const Environment& environment, const std::string& name,
                    const std::string& fallback) {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? fallback : found->second;
}

std::string GrantedBySlurm(const Environment& environment) {
  return ValueOr(environment, "SLURM_STEP_GPUS", ValueOr(environment, "SLURM_JOB_GPUS", ""));
}

namespace {

std::string InCapitals(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return text;
}

bool HasOneOf(const std::string& text, std::initializer_list<const char*> parts) {
  return std::ranges::any_of(
      parts, [&](const char* part) { return text.find(part) != std::string::npos; });
}

// AWS_ACCESS_KEY_ID has it, KEYBOARD and the shell's own PWD have not.
bool IsNameOfSecret(const std::string& name) {
  return HasOneOf(name, {"TOKEN", "SECRET", "PASS", "CREDENTIAL", "APIKEY"}) ||
         name.ends_with("_PWD") || HasOneOf("_" + name + "_", {"_KEY_", "_PW_", "_DSN_", "_AUTH_"});
}

// "http://user:password@proxy:3128", "https://key@host/1" (not the user of ssh), and
// "Server=x;Password=y" of a database.
bool HoldsSecret(const std::string& value) {
  const std::size_t scheme = value.find("://");
  const std::size_t at = scheme == std::string::npos ? scheme : value.find('@', scheme);
  if (at != std::string::npos) {
    const bool has_password = value.find(':', scheme + 3) < at;
    const bool has_user = value.find('/', scheme + 3) > at && !value.starts_with("ssh://");
    if (has_password || has_user) return true;
  }
  return HasOneOf(InCapitals(value), {"PASSWORD=", "PASSWD=", "PWD=", "TOKEN=", "SECRET=", "KEY="});
}

}  // namespace

std::string WithoutSecret(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return word;
  const std::string name = InCapitals(word.substr(0, equals));
  const bool is_variable = std::ranges::all_of(name, [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
  });
  if (!is_variable) return word;
  return IsNameOfSecret(name) || HoldsSecret(word.substr(equals + 1))
             ? word.substr(0, equals) + "=..."
             : word;
}

Environment WithoutDefaultsOfSlurmTools(Environment environment) {
  std::erase_if(environment, [](const auto& variable) {
    return variable.first.starts_with("SCANCEL_") || variable.first.starts_with("SQUEUE_");
  });
  return environment;
}

namespace {

// What ranks are given, and the copy by which ddlrun knows that it is its own.
constexpr std::array<std::pair<const char*, const char*>, 3> kCopies = {
    {{"MASTER_ADDR", "DDLRUN_MASTER_ADDR"},
     {"MASTER_PORT", "DDLRUN_MASTER_PORT"},
     {"OMP_NUM_THREADS", "DDLRUN_OMP_NUM_THREADS"}}};
// In every rank of ddlrun; in every worker of torchrun.
constexpr char kRankOfDdlrun[] = "DDLRUN_LAUNCHER";
constexpr char kWorkerOfTorchrun[] = "TORCHELASTIC_RUN_ID";

}  // namespace

Environment WithoutInheritedComponents(Environment environment) {
  const std::string job = ValueOr(environment, "SLURM_JOB_ID", "");
  const bool is_own =
      std::any_of(environment.begin(), environment.end(), [&](const auto& variable) {
        return variable.first.starts_with("SLURM_JOB_ID_HET_GROUP_") && variable.second == job;
      });
  if (is_own) return environment;
  std::erase_if(environment, [](const auto& variable) {
    return variable.first == "SLURM_HET_SIZE" ||
           (variable.first.starts_with("SLURM_") &&
            variable.first.find("_HET_GROUP_") != std::string::npos);
  });
  return environment;
}

namespace {

// Where torchrun and JAX are to meet, if an enclosing ddlrun has set it
// (protocol/rank_variables.h).
void EraseMeetingPoint(Environment* environment) {
  const std::string address = ValueOr(*environment, "DDLRUN_MASTER_ADDR", "");
  const std::string port = ValueOr(*environment, "DDLRUN_MASTER_PORT", "");
  if (address.empty()) return;
  if (ValueOr(*environment, "JAX_COORDINATOR_ADDRESS", "") == address + ":" + port) {
    environment->erase("JAX_COORDINATOR_ADDRESS");
  }
  if (ValueOr(*environment, "PET_MASTER_ADDR", "") != address ||
      ValueOr(*environment, "PET_MASTER_PORT", "") != port) {
    return;
  }
  for (const char* name : {"PET_NNODES", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"}) {
    environment->erase(name);
  }
}

}  // namespace

Environment WithoutEnclosingLaunch(Environment environment) {
  EraseMeetingPoint(&environment);
  for (const auto& [name, copy] : kCopies) {
    const auto kept = environment.find(copy);
    if (kept == environment.end()) continue;
    if (ValueOr(environment, name, "") == kept->second) environment.erase(name);
    environment.erase(copy);
  }
  if (environment.contains(kRankOfDdlrun)) {
    for (const char* name :
         {"DDL_HOST_PORT", "DDL_HOST_LIST", "DDL_OPTIONS", "DDLRUN_HEARTBEAT", "NCCL_RAS_ADDR"}) {
      environment.erase(name);
    }
    // Its own have this in them (protocol/rank_variables.h).
    for (const char* name : {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DUMP_TEMP_FILE"}) {
      if (HasOneOf(ValueOr(environment, name, ""), {"/ddlrun-recorder."})) environment.erase(name);
    }
  }
  if (environment.contains(kWorkerOfTorchrun)) {
    for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) environment.erase(name);
  }
  return environment;
}

}  // namespace launcher
