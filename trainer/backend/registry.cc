// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/registry.h"

#include "trainer/backend/reference/reference_backend.h"
#include "trainer/core/error.h"
#ifdef DDLRUN_HAS_CPU
#include "trainer/backend/cpu/cpu_backend.h"
#endif

namespace trainer {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Backend> (*make)(const BackendOptions&);
};

// Fastest first.
constexpr Entry kEntries[] = {
#ifdef DDLRUN_HAS_CPU
    {"cpu", MakeCpuBackend},
#endif
    {"reference", [](const BackendOptions&) { return MakeReferenceBackend(); }},
};

}  // namespace

std::vector<std::string> BackendNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<Backend> MakeBackend(const std::string& name, const BackendOptions& options) {
  if (name == "auto") return kEntries[0].make(options);
  std::string known = "auto";
  for (const Entry& entry : kEntries) {
    if (name == entry.name) return entry.make(options);
    known += std::string(", ") + entry.name;
  }
  throw Error(EX_USAGE, "no back end \"" + name + "\" in this build: use one of " + known);
}

}  // namespace trainer
