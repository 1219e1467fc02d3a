// SPDX-License-Identifier: Apache-2.0

#include "bench/microbenchmarks/ranks.h"

#include <unistd.h>

#include <exception>
#include <utility>

#include "trainer/core/error.h"

namespace bench {

Ranks::Ranks(trainer::EnvironmentLookup get)
    : get_(std::move(get)),
      self_(trainer::ReadRank(get_)),
      communicator_(
          trainer::MakeCommunicator(trainer::MakeCommOptions(self_, get_, /*spans=*/nullptr))) {}

std::string Ranks::host() const {
  if (!self_.host.empty()) return self_.host;
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

int Ranks::Run(const std::function<int()>& body, std::ostream& messages) {
  try {
    return body();
  } catch (const std::exception& error) {
    if (communicator_->size() == 1) throw;
    messages << "ddlbench: rank " + std::to_string(self_.rank) +
                    (self_.host.empty() ? "" : " on " + self_.host) + ": " + error.what() + "\n"
             << std::flush;
    const auto* known = dynamic_cast<const trainer::Error*>(&error);
    const int code = known != nullptr ? known->exit_code() : EX_SOFTWARE;
    communicator_->Abort(code);
    return code;
  }
}

}  // namespace bench
