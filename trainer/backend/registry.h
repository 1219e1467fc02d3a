// SPDX-License-Identifier: Apache-2.0
//
// Which back ends this build has: the one place that knows.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/backend/backend.h"

namespace trainer {

struct BackendOptions {
  int threads = 0;     // 0: one for each core this process may run on
  int local_rank = 0;  // picks the GPU
};

// Fastest first: {"cpu", "reference"}.
std::vector<std::string> BackendNames();

// `name` is one of BackendNames(), or "auto" for the first that works here.  Throws Error(EX_USAGE)
// that lists the names.
std::unique_ptr<Backend> MakeBackend(const std::string& name, const BackendOptions& options);

}  // namespace trainer
