// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/session.h"

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <utility>

#include "ddlctl/status_text.h"
#include "support/quoting.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/run_lock.h"
#include "trainer/control/control_socket.h"
#include "trainer/core/error.h"

namespace ddlctl {

std::vector<std::string> SrunCommand(const trainer::ControlAddress& address,
                                     const RemoteCall& call) {
  if (call.job.empty()) return {};
  const std::string& node = address.node.empty() ? address.host : address.node;
  std::vector<std::string> command = {
      "srun",       "--overlap", "--jobid=" + call.job, "--nodelist=" + node, "--nodes=1",
      "--ntasks=1", "--mem=0",   "--gres=none",         "--mpi=none",         "--quiet"};
  command.emplace_back(call.on_terminal ? "--pty" : "--input=none");
  command.push_back(call.program);
  command.insert(command.end(), call.arguments.begin(), call.arguments.end());
  command.emplace_back("--srun=never");
  return command;
}

std::string WhatToType(const trainer::ControlAddress& address, const RemoteCall& call) {
  std::vector<std::string> words = {"ddlctl"};
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  return "log in to " + address.host + " and type: " + support::QuoteCommand(words);
}

using trainer::ControlAnswer;
using trainer::ControlRequest;
using trainer::Error;

namespace {

// Whether the process of that number on this machine is a ddltraind.  It may be that of a run with
// another --model_dir, whose lock is not where ddlctl looks.
bool IsTrainer(std::int64_t pid) {
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", pid)), name);
  return name == "ddltraind";
}

}  // namespace

Session::Session(std::filesystem::path results_dir) : results_dir_(std::move(results_dir)) {
  const std::optional<trainer::ControlAddress> address = trainer::ReadAddress(results_dir_);
  if (!address) {
    throw Error(EX_UNAVAILABLE,
                fmt::format("there is no training in {} that can be asked (no {} in it): give the "
                            "--results_dir of one with --mode=train or train_and_evaluate",
                            results_dir_.string(), trainer::kControlAddressName));
  }
  address_ = *address;
}

bool Session::is_within_reach() const {
  return address_.last.has_value() || address_.host == trainer::HostName();
}

ControlAnswer Session::Ask(const ControlRequest& request) {
  if (address_.last) return FinalStatus(request);
  try {
    return trainer::Ask(address_.socket, request);
  } catch (const trainer::NobodyListens&) {
    // It has ended since; its last words were written before its socket went away.
    const std::string socket = address_.socket;
    if (const auto now = trainer::ReadAddress(results_dir_)) address_ = *now;
    if (address_.last) return FinalStatus(request);
    // Or another launch has begun.
    if (address_.socket != socket && is_within_reach()) {
      return trainer::Ask(address_.socket, request);
    }
    if (trainer::IsRunIn(results_dir_) || IsTrainer(address_.pid)) {
      throw Error(EX_UNAVAILABLE,
                  fmt::format("the training in {0} runs (process {1} on {2}), but its socket {3} "
                              "cannot be reached from here: was that directory cleaned, or is it "
                              "another one in this container? touch {0}/stop ends it with a "
                              "checkpoint, touch {0}/checkpoint writes one",
                              results_dir_.string(), address_.pid, address_.host, address_.socket));
    }
    throw Error(EX_UNAVAILABLE,
                fmt::format("the training in {} does not run any more: rank 0, process {} on {}, "
                            "was killed, or ended without last words; its output says more",
                            results_dir_.string(), address_.pid, address_.host));
  }
}

trainer::RunStatus Session::Status() { return Ask({}).status; }

ControlAnswer Session::FinalStatus(const ControlRequest& request) const {
  if (request.command) {
    throw Error(EX_UNAVAILABLE,
                fmt::format("the training in {} has ended: {}, {}", results_dir_.string(),
                            NameOf(address_.last->state), StepText(*address_.last)));
  }
  return {"", *address_.last};
}

}  // namespace ddlctl
