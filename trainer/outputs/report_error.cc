// SPDX-License-Identifier: Apache-2.0

#include "trainer/outputs/report_error.h"

#include <chrono>
#include <iostream>
#include <new>
#include <thread>

#include "support/quoting.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// The end of the rank that reports ends the other ranks within this time: mpirun of Open MPI 4.1
// takes a second, and on a busy node two.  Less than hang detection takes, which is to find nothing
// here.
constexpr std::chrono::seconds kForAnotherRank{3};

int CodeOf(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return known->exit_code();
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? EX_OSERR : EX_SOFTWARE;
}

// A GPU or a system that fails, or a peer that is gone, is a matter of this rank, and a restart
// waits for its end.
bool IsOfAllRanks(int code) { return code != EX_OSERR && code != EX_UNAVAILABLE; }

}  // namespace

void PrintMessage(RedrawnLine& line, const launcher::RankInfo& rank, const std::string& what) {
  std::string who = "ddltraind";
  if (rank.world_size > 1)
    who += ": rank " + std::to_string(rank.rank) + (rank.host.empty() ? "" : " on " + rank.host);
  line.Write(support::WithoutControls(who + ": " + what, /*keeps_lines=*/false) + "\n");
}

int ReportError(RedrawnLine& line, const std::exception& error, const launcher::RankInfo& rank) {
  if (const auto* reported = dynamic_cast<const Reported*>(&error)) return reported->exit_code;
  std::string what = error.what();
  if (what.starts_with("ddltraind: ")) what.erase(0, std::string("ddltraind: ").size());
  const int code = CodeOf(error);
  const auto* fault = dynamic_cast<const RankFault*>(&error);
  const bool is_of_peer = fault != nullptr && fault->whose() == RankFault::Whose::kOfPeer;
  const bool another_reports = fault != nullptr ? is_of_peer : rank.rank > 0 && IsOfAllRanks(code);
  if (another_reports) std::this_thread::sleep_for(kForAnotherRank);
  PrintMessage(line, rank, what);
  return code;
}

void RequirePrinted() {
  if (!std::cout.flush()) throw Error(EX_OSERR, kLostOutput);
}

}  // namespace trainer
