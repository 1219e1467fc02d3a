// SPDX-License-Identifier: Apache-2.0
//
// A status as text for people.  Pure.

#pragma once

#include <string>

#include "trainer/control/control_message.h"
#include "trainer/control/run_status.h"

namespace ddlctl {

// Lines of a name and a value each.
std::string StatusText(const trainer::RunStatus& status);

// "training step 1200/25000 epoch 3/50 365.1 images/s loss 2.4141 eta 0:42:07 checkpoint 1000";
// then a rank that is slower than the others and what was asked for.
std::string StatusLine(const trainer::RunStatus& status);

// "step 1200/25000", and "epoch 3/50" or "" where the training is counted in steps.
std::string StepText(const trainer::RunStatus& status);
std::string EpochText(const trainer::RunStatus& status);

// What was asked for and is not done yet: "pause, checkpoint"; "" for nothing.
std::string RequestedText(const trainer::RunStatus& status);

// Why a training has refused what it was asked; where its version is not this one, which may be why
// it does not know an order, with both.
std::string RejectionText(const trainer::ControlAnswer& answer);

// With `digits` decimals; "?" for what is no number.
std::string NumberText(double value, int digits);

// `text` from another program, without anything that moves a cursor.
std::string Harmless(std::string text);

}  // namespace ddlctl
