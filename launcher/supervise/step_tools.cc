// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/step_tools.h"

#include <thread>

namespace launcher {
namespace {

constexpr std::chrono::milliseconds kBetweenQuestions{300};

}  // namespace

bool StepSignals::Send(const std::string& step, int number) {
  const StepTools::Command command =
      tools_.signal ? tools_.signal(step, number) : StepTools::Command();
  if (command.empty()) return false;
  commands_.push_back(std::make_unique<CommandOutput>(command, tools_.environment));
  number_ = number;
  deadline_ = Clock::now() + kPatienceWithScancel;
  return true;
}

std::optional<int> StepSignals::TakeLost() {
  if (!deadline_ || (!HasArrived() && Clock::now() < *deadline_)) return std::nullopt;
  deadline_.reset();
  const bool is_lost = !HasArrived() || !commands_.back()->Wait(std::chrono::milliseconds(0));
  return is_lost ? std::optional(number_) : std::nullopt;
}

bool StepSignals::HasArrived() { return commands_.empty() || commands_.back()->HasEnded(); }

bool WaitUntilStepIsGone(const StepTools& tools, const std::string& step,
                         std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + limit;
  const StepTools::Command command = tools.list ? tools.list(step) : StepTools::Command();
  if (command.empty()) return true;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    CommandOutput question(command, tools.environment);
    if (question.Wait(left) && question.text().empty()) return true;
    std::this_thread::sleep_for(kBetweenQuestions);
  }
}

}  // namespace launcher
