// SPDX-License-Identifier: Apache-2.0
//
// The training that --results_dir names, found and asked.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/control/control_message.h"

namespace ddlctl {

// ddlctl for a training on another node: the command that runs it there.  Pure.
struct RemoteCall {
  std::string program;                 // absolute, on all nodes
  std::vector<std::string> arguments;  // that it was given here
  std::string job;                     // "": not known
  bool on_terminal = false;            // it draws
};

// srun and its arguments, which end with those of ddlctl; none where the job is not known.  It asks
// for nothing that the training might hold.
std::vector<std::string> SrunCommand(const trainer::ControlAddress& address,
                                     const RemoteCall& call);

// What to type, for people: on the node itself.
std::string WhatToType(const trainer::ControlAddress& address, const RemoteCall& call);

class Session {
 public:
  // Throws Error(EX_UNAVAILABLE) if no training has ever been there that could be asked, else as
  // ReadAddress does.
  explicit Session(std::filesystem::path results_dir);

  const trainer::ControlAddress& address() const { return address_; }
  // Whether it is over, or runs on this machine.
  bool is_within_reach() const;

  // What it answers; of one that has ended its last status, if nothing but that is asked for.
  // Throws as trainer::Ask; Error(EX_UNAVAILABLE) also where it is over and cannot take an order,
  // or has ended without last words, or runs while its socket is gone.  REQUIRES:
  // is_within_reach().
  trainer::ControlAnswer Ask(const trainer::ControlRequest& request);
  trainer::RunStatus Status();

 private:
  trainer::ControlAnswer FinalStatus(const trainer::ControlRequest& request) const;

  const std::filesystem::path results_dir_;
  trainer::ControlAddress address_;
};

}  // namespace ddlctl
