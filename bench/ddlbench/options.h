// SPDX-License-Identifier: Apache-2.0
//
// The command line of ddlbench: one description that makes the parser, --help, the manual page and
// the completion.  Pure.

#pragma once

#include "bench/ddlbench/compare.h"
#include "bench/ddlbench/extract.h"
#include "bench/ddlbench/repeat.h"
#include "bench/ddlbench/sweep.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 chose it
class App;
}  // namespace CLI

namespace bench {

enum class BenchCommand { kNone, kSweep, kExtract, kRepeat, kCompare };

// What was asked for: that of `command` counts.
struct BenchOptions {
  BenchCommand command = BenchCommand::kNone;
  SweepOptions sweep;
  ExtractOptions extract;
  RepeatOptions repeat;
  CompareOptions compare;
};

// Describes commands and options to `app`; parsing then fills `options`, which must outlive it.
void DescribeOptions(CLI::App& app, BenchOptions& options);

}  // namespace bench
