// SPDX-License-Identifier: Apache-2.0

#include "trainer/outputs/report_error.h"

#include <chrono>
#include <iostream>
#include <new>
#include <thread>

#include "trainer/core/error.h"

namespace trainer {
namespace {

// The end of rank 0 ends the other ranks within this time.
constexpr std::chrono::milliseconds kForRankZero{500};

}  // namespace

void PrintMessage(RedrawnLine& line, const launcher::RankInfo& rank, const std::string& what) {
  std::string who = "ddltraind";
  if (rank.world_size > 1)
    who += ": rank " + std::to_string(rank.rank) + (rank.host.empty() ? "" : " on " + rank.host);
  line.Write(who + ": " + what + "\n");
}

int ReportError(RedrawnLine& line, const std::exception& error, const launcher::RankInfo& rank) {
  if (const auto* reported = dynamic_cast<const Reported*>(&error)) return reported->exit_code;
  std::string what = error.what();
  if (what.starts_with("ddltraind: ")) what.erase(0, std::string("ddltraind: ").size());
  if (rank.rank > 0) std::this_thread::sleep_for(kForRankZero);
  PrintMessage(line, rank, what);
  if (const auto* known = dynamic_cast<const Error*>(&error)) return known->exit_code();
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? EX_OSERR : EX_SOFTWARE;
}

void RequirePrinted() {
  if (!std::cout.flush()) throw Error(EX_OSERR, kLostOutput);
}

}  // namespace trainer
