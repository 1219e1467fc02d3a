// SPDX-License-Identifier: Apache-2.0
//
// Why a job of ddlrun hangs, whatever its program: what its ranks do is looked at on all of its
// nodes, and judged (launcher/diagnose).

#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/diagnose/diagnosis.h"
#include "launcher/protocol/job_status.h"

namespace ddlctl {

// How long all nodes may take, srun's start included.
inline constexpr std::chrono::seconds kWhySeconds{30};

struct WhyOptions {
  std::string name;               // a job of Slurm, or a run directory
  std::filesystem::path program;  // this one, absolute, on all nodes
  std::string host;               // this one
  launcher::Environment environment;
  bool may_use_srun = true;
  bool is_verbose = false;
  bool as_json = false;
  bool facts_only = false;  // of this node alone, for another ddlctl
  bool with_stacks = true;  // as CollectOptions has it
  std::function<void(const std::string&)> print;
};

// Prints the line; returns EX_OK.  Throws Error(EX_UNAVAILABLE) where no rank of the job was found,
// and as ReadJobStatus and FindRunningJob do.
int ShowWhy(const WhyOptions& options);

// What was found of a job.
struct FoundJob {
  std::vector<launcher::NodeFacts> nodes;
  std::size_t expected = 1;  // nodes were asked
  std::string job;           // in Slurm; "" where that has none
  std::string name;          // what ddlctl on another node finds the same by
};
// Throws as ShowWhy does.
FoundJob FindJob(const WhyOptions& options);
// This node, as NodeFacts has it.
std::string NameOfThisNode(const WhyOptions& options);
// For an srun that is to see all nodes of the job, also from within a step on some of them, whose
// variables name these alone.
launcher::Environment EnvironmentOutsideOfSteps(const launcher::Environment& environment);

// srun and its arguments, with which it runs `ddlctl why --facts NAME` on all `nodes` of the job;
// NAME is that of the job, and where that may have several runs "JOB@RUN".
// It asks for nothing that the ranks hold.  Pure.
std::vector<std::string> FactsCommand(const std::string& srun, const std::string& job, int nodes,
                                      const std::string& program, const std::string& name);

// What the nodes have said, and what the status of the job adds to it: which rank is where, and
// which have ended.  `expected` nodes were asked.  Pure.
launcher::HangingJob HangingJobOf(std::vector<launcher::NodeFacts> nodes, std::size_t expected);

// One line, without its end.  Pure.
std::string WhyJson(const launcher::HangingJob& job, const launcher::Diagnosis& diagnosis);

}  // namespace ddlctl
