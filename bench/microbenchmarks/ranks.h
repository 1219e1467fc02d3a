// SPDX-License-Identifier: Apache-2.0
//
// The ranks of a benchmark that ddlrun starts several of, or of one that is started by hand.

#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "launcher/protocol/rank_environment.h"
#include "trainer/comm/communicator.h"
#include "trainer/program/launch_environment.h"

namespace bench {

class Ranks {
 public:
  // Reads the environment by `get`, which it keeps, and waits until all ranks have met.  Throws
  // trainer::Error as trainer::MakeCommunicator does.
  explicit Ranks(trainer::EnvironmentLookup get);

  const launcher::RankInfo& self() const { return self_; }
  trainer::Communicator& communicator() const { return *communicator_; }
  bool is_root() const { return self_.rank == 0; }
  // As the plan names it; of a rank that was started by hand what the machine calls itself.
  std::string host() const;
  const trainer::EnvironmentLookup& environment() const { return get_; }

  // Calls `body`.  What one of several ranks throws is told to `messages`, and ends all of them.
  int Run(const std::function<int()>& body, std::ostream& messages);

 private:
  const trainer::EnvironmentLookup get_;
  launcher::RankInfo self_;
  std::unique_ptr<trainer::Communicator> communicator_;
};

}  // namespace bench
