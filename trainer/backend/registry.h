// SPDX-License-Identifier: Apache-2.0
//
// Which back ends this build has: the one place that knows.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/backend/plan_cache.h"

namespace trainer {

struct BackendOptions {
  int threads = 0;     // 0: one for each core this process may run on
  int local_rank = 0;  // picks the GPU
  // Of the cuda back end; the others compute in fp32.
  DType compute_type = DType::kFloat32;
  bool tf32 = false;           // tensor cores for kFloat32
  bool deterministic = false;  // the same bits each time, where that costs speed
  // Of the cuda back end: kernels start while those in front of them end.
  bool programmatic_launch = false;
  // What timing has shown, and will show; null: it is forgotten with the process.
  std::shared_ptr<PlanCache> plans = nullptr;
};

// Of this build, fastest first: {"cuda", "cpu", "reference"}.
std::vector<std::string> BackendNames();

// Why the back end cannot run on this machine ("no GPU: ..."), "" if it can.  REQUIRES: one of
// BackendNames().
std::string BackendProblem(const std::string& name);

// The file that it is loaded from, "not installed: ..." where there is none; "" if it is a part of
// the program.  REQUIRES: as above.
std::string BackendFile(const std::string& name);

// What "auto" is on this machine.
struct BackendChoice {
  std::string name;        // one of BackendNames()
  std::string why_no_gpu;  // "no GPU: ..."; "" if it computes on one
};
BackendChoice ChooseBackend();

// `name` is one of BackendNames(), or "auto" for the first that works here.  Throws Error(EX_USAGE)
// that lists the names, Error(EX_UNAVAILABLE) with its problem.
std::unique_ptr<Backend> MakeBackend(const std::string& name, const BackendOptions& options);

}  // namespace trainer
