// SPDX-License-Identifier: Apache-2.0
//
// The training that --results_dir names, found and asked.

#pragma once

#include <filesystem>

#include "trainer/control/control_address.h"
#include "trainer/control/control_message.h"

namespace ddlctl {

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
