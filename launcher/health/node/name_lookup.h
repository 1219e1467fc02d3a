// SPDX-License-Identifier: Apache-2.0
//
// Looks up the name of a host without waiting for name servers that do not answer.

#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>

namespace launcher {

// Why this machine finds no address of `host`, which is a name or an address: "Name or service not
// known".  "" when it finds one.  Blocks as long as name servers take.
std::string LookUpHost(const std::string& host);

// A search that goes on in a thread of its own, which nobody ends: it may live until the process
// ends, as the signal mask of the thread that made this has it.
class NameLookup {
 public:
  using LookUp = std::function<std::string(const std::string& host)>;

  // Begins to look for `host`; for "" it does nothing.
  explicit NameLookup(const std::string& host, const LookUp& look_up = LookUpHost);

  // As LookUpHost; "the name servers do not answer" where that is not known at `end`.  May be
  // called once.
  std::string Problem(std::chrono::steady_clock::time_point end);

 private:
  std::future<std::string> problem_;
};

}  // namespace launcher
