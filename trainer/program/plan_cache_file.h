// SPDX-License-Identifier: Apache-2.0
//
// The file of --plan_cache: which algorithms are the fastest on the GPUs of a run, so that its next
// start times nothing and computes with the same ones (doc/decisions/0047).

#pragma once

#include <filesystem>
#include <memory>

#include "trainer/backend/plan_cache.h"
#include "trainer/options/options.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

// "": none.
std::filesystem::path PlanPath(const Options& options);

// For one thread.
class PlanCacheFile {
 public:
  // Reads the file, as every rank does.  One that is not there is empty, as is, with a warning, one
  // that cannot be read or is damaged: all that is lost is time.  One of a newer format is left as
  // it is.  `path` may be "".
  PlanCacheFile(std::filesystem::path path, Logger log);

  const std::shared_ptr<PlanCache>& plans() const { return plans_; }

  // Writes what was added since; for rank 0.  Next to nothing where that is nothing.  Where it
  // cannot be written, a warning says so, once.
  void Keep();

 private:
  const std::filesystem::path path_;
  const Logger log_;
  const std::shared_ptr<PlanCache> plans_;
  bool can_write_;
};

}  // namespace trainer
