// SPDX-License-Identifier: Apache-2.0
//
// What a training may be sent, and what ddlctl may be answered or may find in a file: read without
// a crash or refused, and what is no message changes nothing.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "trainer/control/control_address.h"
#include "trainer/control/control_message.h"
#include "trainer/control/run_control.h"
#include "trainer/core/error.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  trainer::RunControl control({}, 10);
  control.Happened(trainer::RunEvent::kStep);
  std::uint64_t asked_for_stacks = 0;
  control.OnStacks([&] { return ++asked_for_stacks; });
  const trainer::ParsedRequest parsed = trainer::ParseRequest(text);
  Require(parsed.request.has_value() == parsed.problem.empty());
  if (parsed.request) {
    const auto again = trainer::ParseRequest(trainer::FormatRequest(*parsed.request));
    Require(again.request && again.request->order == parsed.request->order &&
            again.request->display_every == parsed.request->display_every);
    control.Take(*parsed.request);
  }
  const trainer::ControlWishes wishes = control.Look();
  Require(parsed.request.has_value() || !(wishes.stop || wishes.save || wishes.pause));
  Require(control.display_every() >= 1);
  Require((asked_for_stacks == 1) ==
          (parsed.request && parsed.request->order == trainer::ControlOrder::kStacks));
  try {
    const std::string answer = trainer::FormatAnswer(trainer::ParseAnswer(text));
    Require(answer.find('\n') == std::string::npos);
    Require(trainer::FormatAnswer(trainer::ParseAnswer(answer)) == answer);
  } catch (const trainer::Error&) {
  }
  try {
    const std::string address = trainer::FormatAddress(trainer::ParseAddress(text));
    Require(trainer::FormatAddress(trainer::ParseAddress(address)) == address);
  } catch (const trainer::Error&) {
  }
  return 0;
}
