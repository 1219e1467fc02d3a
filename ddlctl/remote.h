// SPDX-License-Identifier: Apache-2.0
//
// ddlctl for a training on another node: the command that runs it there.  Pure.

#pragma once

#include <string>
#include <vector>

#include "trainer/control/control_address.h"

namespace ddlctl {

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

}  // namespace ddlctl
