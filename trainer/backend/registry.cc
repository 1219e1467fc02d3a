// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/registry.h"

#include <string_view>

#include "trainer/backend/reference/reference_ops.h"
#include "trainer/core/error.h"
#ifdef DDLRUN_HAS_CPU
#include "trainer/backend/cpu/cpu_backend.h"
#endif
#ifdef DDLRUN_HAS_CUDA
#include "trainer/backend/cuda/cuda_backend.h"
#endif

namespace trainer {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Backend> (*make)(const BackendOptions&);
  std::string (*problem)();
  std::string (*file)();
};

std::string NoText() { return ""; }

constexpr std::string_view kGpuBackend = "cuda";

// Fastest first.
constexpr Entry kEntries[] = {
#ifdef DDLRUN_HAS_CUDA
    {"cuda", MakeCudaBackend, CudaProblem, CudaModuleFile},
#endif
#ifdef DDLRUN_HAS_CPU
    {"cpu", MakeCpuBackend, NoText, NoText},
#endif
    {"reference", [](const BackendOptions&) { return MakeReferenceBackend(); }, NoText, NoText},
};

const Entry* Find(const std::string& name) {
  for (const Entry& entry : kEntries) {
    if (name == entry.name || (name == "auto" && entry.problem().empty())) return &entry;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> BackendNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

std::string BackendProblem(const std::string& name) {
  const Entry* entry = Find(name);
  DDL_CHECK(entry != nullptr);
  return entry->problem();
}

std::string BackendFile(const std::string& name) {
  const Entry* entry = Find(name);
  DDL_CHECK(entry != nullptr);
  return entry->file();
}

BackendChoice ChooseBackend() {
  const Entry* chosen = Find("auto");
  if (chosen->name == kGpuBackend) return {chosen->name, ""};
  const Entry* gpu = Find(std::string(kGpuBackend));
  return {chosen->name,
          gpu != nullptr ? gpu->problem() : "this program was built without the back end cuda"};
}

std::unique_ptr<Backend> MakeBackend(const std::string& name, const BackendOptions& options) {
  if (const Entry* entry = Find(name)) return entry->make(options);
  std::string known = "auto";
  for (const Entry& entry : kEntries) known += std::string(", ") + entry.name;
  throw Error(EX_USAGE, "no back end \"" + name + "\" in this build: use one of " + known);
}

}  // namespace trainer
