// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/step_tools.h"

#include <algorithm>
#include <thread>

#include "launcher/base/error.h"

namespace launcher {
namespace {

constexpr std::chrono::milliseconds kBetweenQuestions{300};

}  // namespace

bool StepSignals::Send(const std::string& step, int number) {
  const StepTools::Command command =
      tools_.signal ? tools_.signal(step, number) : StepTools::Command();
  if (command.empty()) return false;
  try {
    sent_.push_back({number, std::make_unique<CommandOutput>(command, tools_.environment),
                     Clock::now() + timeout_});
  } catch (const LaunchError&) {
    return false;  // the machine may have no process left, which must not end the job
  }
  return true;
}

bool StepSignals::HaveArrived() {
  return std::all_of(sent_.begin(), sent_.end(),
                     [](const Sent& sent) { return sent.command->HasEnded(); });
}

std::optional<int> StepSignals::TakeLost() {
  for (auto sent = sent_.begin(); sent != sent_.end();) {
    const int number = sent->number;
    const bool has_ended = sent->command->HasEnded();
    const bool is_late =
        !has_ended && Clock::now() >= sent->deadline.value_or(Clock::time_point::max());
    const bool has_failed = has_ended && !sent->command->Wait(std::chrono::milliseconds(0));
    const bool is_event = is_late || (has_failed && sent->deadline);
    if (is_late) sent->deadline.reset();
    sent = has_ended ? sent_.erase(sent) : sent + 1;
    if (is_event) return number;
  }
  return std::nullopt;
}

std::optional<StepSignals::Clock::time_point> StepSignals::deadline() const {
  std::optional<Clock::time_point> first;
  for (const Sent& sent : sent_) {
    if (sent.deadline && (!first || *sent.deadline < *first)) first = sent.deadline;
  }
  return first;
}

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
