// SPDX-License-Identifier: Apache-2.0
//
// Output that nobody can read any more.

#pragma once

#include "launcher/features/feature.h"

namespace launcher {

extern const Feature kClosedOutput;

// Like any program whose output goes to a closed pipe (to head), ddlrun ends the job.  After a
// request to stop it is ending anyway, and the reader may have got the same one: Ctrl-C reaches a
// tee as well.
class ClosedOutput : public JobWatcher {
 public:
  void Poll(WatchedJob& job) override;
};

}  // namespace launcher
