// SPDX-License-Identifier: Apache-2.0
//
// Asks a training on this node (control_message.h).

#pragma once

#include <string>

#include "trainer/control/control_message.h"
#include "trainer/core/error.h"

namespace trainer {

// Nobody listens there any more: the training has ended.
class NobodyListens : public Error {
 public:
  using Error::Error;
};

// Somebody listens there, and says nothing: the process is stopped.
class NoAnswer : public Error {
 public:
  using Error::Error;
};

// Sends `request` to the socket at `path` and waits for the answer, some seconds at most.  Throws
// NobodyListens; Error(EX_NOPERM) where the socket is another user's; NoAnswer, or another
// Error(EX_UNAVAILABLE), where no answer comes; Error(EX_DATAERR) for one that is none.
ControlAnswer Ask(const std::string& path, const ControlRequest& request);

}  // namespace trainer
