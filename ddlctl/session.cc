// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/session.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "ddlctl/status_text.h"
#include "trainer/checkpoint/names.h"
#include "trainer/control/control_client.h"
#include "trainer/core/error.h"

namespace ddlctl {

using trainer::ControlAnswer;
using trainer::ControlRequest;
using trainer::Error;

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
  if (address_.last) return LastWords(request);
  try {
    return trainer::Ask(address_.socket, request);
  } catch (const trainer::NobodyListens&) {
    // It has ended since; its last words were written before its socket went away.
    const std::string socket = address_.socket;
    if (const auto now = trainer::ReadAddress(results_dir_)) address_ = *now;
    if (address_.last) return LastWords(request);
    // Or another launch has begun.
    if (address_.socket != socket && is_within_reach()) {
      return trainer::Ask(address_.socket, request);
    }
    throw Error(EX_UNAVAILABLE,
                fmt::format("the training in {} does not run any more: rank 0, process {} on {}, "
                            "was killed, or ended without last words; its output says more",
                            results_dir_.string(), address_.pid, address_.host));
  }
}

trainer::RunStatus Session::Status() { return Ask({}).status; }

ControlAnswer Session::LastWords(const ControlRequest& request) const {
  if (request.order) {
    throw Error(EX_UNAVAILABLE,
                fmt::format("the training in {} has ended: {}, {}", results_dir_.string(),
                            NameOf(address_.last->state), StepText(*address_.last)));
  }
  return {"", *address_.last};
}

}  // namespace ddlctl
