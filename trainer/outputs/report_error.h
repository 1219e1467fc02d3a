// SPDX-License-Identifier: Apache-2.0
//
// What ddltraind says to people beside its log, on standard error: one line, with who says it.

#pragma once

#include <exception>
#include <string>

#include "launcher/protocol/rank_environment.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

// "ddltraind: rank 3 on gpu025: what", behind `line`.
void PrintMessage(RedrawnLine& line, const launcher::RankInfo& rank, const std::string& what);

// Thrown in the place of an error that was reported already.
struct Reported : std::exception {
  explicit Reported(int code) : exit_code(code) {}
  const int exit_code;
};

// One line that says who failed and why, and the code to leave with; of Reported the code alone.
// Most errors are found by all ranks (an option, a missing file, a NaN loss): rank 0 reports first,
// and the others three seconds later, unless its end has ended them.  What a GPU or the system
// does, EX_OSERR and EX_UNAVAILABLE, each reports at once.  Of a RankFault the rank whose own it is
// reports at once, and the others wait.
int ReportError(RedrawnLine& line, const std::exception& error, const launcher::RankInfo& rank);

// What was printed on standard output has arrived.  Throws Error(EX_OSERR) where it has not.
void RequirePrinted();

// The words of RequirePrinted, for who has lost lines otherwise.
inline constexpr char kLostOutput[] =
    "standard output could not be written: lines that were asked for are missing there; make room, "
    "or direct it elsewhere";

}  // namespace trainer
