// SPDX-License-Identifier: Apache-2.0
//
// The command line of ddlbench: one description that makes the parser, --help, the manual page and
// the completion.  Pure.

#pragma once

#include "bench/ddlbench/log_analysis/extract.h"
#include "bench/ddlbench/log_analysis/mila_report.h"
#include "bench/ddlbench/log_analysis/variability.h"
#include "bench/ddlbench/predict.h"
#include "bench/ddlbench/runs/repeat.h"
#include "bench/ddlbench/runs/startup.h"
#include "bench/ddlbench/runs/step.h"
#include "bench/ddlbench/runs/sweep.h"
#include "bench/microbenchmarks/options.h"
#include "bench/report/report.h"
#include "support/command_line.h"

namespace bench {

enum class BenchCommand {
  kNone,
  kSweep,
  kExtract,
  kRepeat,
  kCompare,
  kReport,
  kVariability,
  kLoader,
  kAllReduce,
  kCopies,
  kStep,
  kStartup,
  kPredict,
};

// What was asked for: that of `command` counts.
struct BenchOptions {
  BenchCommand command = BenchCommand::kNone;
  SweepOptions sweep;
  ExtractOptions extract;
  RepeatOptions repeat;
  CompareOptions compare;
  ReportOptions report;
  VariabilityOptions variability;
  LoaderOptions loader;
  AllReduceOptions all_reduce;
  MemcpyBenchOptions copies;
  StepOptions step;
  StartupOptions startup;
  PredictOptions predict;
};

// Its commands and options; parsing fills `options`, which must outlive it.
support::Program DescribeOptions(BenchOptions& options);

}  // namespace bench
