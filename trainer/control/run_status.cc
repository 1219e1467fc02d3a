// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/run_status.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {

void RankLoads::Add(std::span<const double> busy_seconds, std::span<const RankMetrics> said) {
  ranks_.resize(busy_seconds.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (i < said.size() && said[i].is_known) rank.said = said[i];
    if (!std::isfinite(busy_seconds[i]) || busy_seconds[i] <= 0) continue;
    rank.steps = std::min(rank.steps + 1, kSteps);
    rank.seconds += (busy_seconds[i] - rank.seconds) / rank.steps;
  }
}

std::vector<RankLoad> RankLoads::Slowest() const {
  std::vector<RankLoad> loads;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    if (rank.steps == 0) continue;
    RankLoad load = {.rank = static_cast<int>(i), .busy_seconds = rank.seconds};
    if (i < hosts_.size()) load.host = hosts_[i].substr(0, kLetters);
    if (rank.said.is_known) {
      load.input_wait_seconds = rank.said.input_wait_seconds;
      load.gpu_percent = rank.said.device.busy_percent;
      load.compute_mhz = rank.said.device.compute_mhz;
      load.celsius = rank.said.device.celsius;
    }
    loads.push_back(std::move(load));
  }
  if (loads.size() > kMax) {
    std::ranges::stable_sort(loads, std::greater(), &RankLoad::busy_seconds);
    loads.resize(kMax);
    std::ranges::sort(loads, {}, &RankLoad::rank);
  }
  return loads;
}

double RankLoads::Median() const {
  std::vector<double> seconds;
  for (const Rank& rank : ranks_) {
    if (rank.steps > 0) seconds.push_back(rank.seconds);
  }
  if (seconds.empty()) return RankLoad::kUnknown;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>((seconds.size() - 1) / 2);
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

namespace {

using enum RunState;
using Next = std::optional<RunState>;

constexpr Next kNever;  // the event cannot happen

constexpr std::array<std::string_view, kRunStates> kStateNames = {
    "starting", "training", "evaluating", "checkpointing", "paused", "stopping", "done", "failed"};

// clang-format off

// By state and event.  The last checkpoint of a training that stops is part of its stopping; after
// any other one it says itself what it does next.
constexpr Next kAfter[kRunStates][kRunEvents] = {
  //                   step       checkpoint      evaluation   pause    stop       end     failure
  /* starting      */ {kTraining, kCheckpointing, kEvaluating, kNever,  kStopping, kDone,  kFailed},
  /* training      */ {kTraining, kCheckpointing, kEvaluating, kPaused, kStopping, kDone,  kFailed},
  /* evaluating    */ {kTraining, kCheckpointing, kEvaluating, kNever,  kStopping, kDone,  kFailed},
  /* checkpointing */ {kTraining, kCheckpointing, kEvaluating, kPaused, kStopping, kDone,  kFailed},
  /* paused        */ {kTraining, kCheckpointing, kNever,      kPaused, kStopping, kNever, kFailed},
  /* stopping      */ {kNever,    kStopping,      kNever,      kNever,  kStopping, kDone,  kFailed},
  /* done          */ {kNever,    kNever,         kNever,      kNever,  kNever,    kNever, kNever},
  /* failed        */ {kNever,    kNever,         kNever,      kNever,  kNever,    kNever, kNever}};

// By state and order.
constexpr bool kTakes[kRunStates][kControlCommands] = {
  //                   pause  resume checkpoint evaluate stop   set    stacks
  /* starting      */ {true,  true,  true,      false,   true,  true,  true},
  /* training      */ {true,  true,  true,      true,    true,  true,  true},
  /* evaluating    */ {false, true,  false,     false,   true,  true,  true},
  /* checkpointing */ {true,  true,  true,      true,    true,  true,  true},
  /* paused        */ {true,  true,  true,      false,   true,  true,  true},
  /* stopping      */ {false, false, false,     false,   true,  false, true},
  /* done          */ {false, false, false,     false,   false, false, false},
  /* failed        */ {false, false, false,     false,   false, false, false}};

// clang-format on

constexpr std::array<std::string_view, kControlCommands> kCommandNames = {
    "pause", "resume", "checkpoint", "evaluate", "stop", "set", "stacks"};

template <std::size_t kCount>
std::optional<std::size_t> IndexOf(const std::array<std::string_view, kCount>& names,
                                   std::string_view name) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) return i;
  }
  return std::nullopt;
}

template <typename Enum>
std::size_t Index(Enum value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

std::string_view NameOf(RunState state) { return kStateNames[Index(state)]; }

std::optional<RunState> ParseRunState(std::string_view name) {
  const auto i = IndexOf(kStateNames, name);
  return i ? std::optional(static_cast<RunState>(*i)) : std::nullopt;
}

std::string_view NameOf(ControlCommand command) { return kCommandNames[Index(command)]; }

std::optional<ControlCommand> ParseControlCommand(std::string_view name) {
  const auto i = IndexOf(kCommandNames, name);
  return i ? std::optional(static_cast<ControlCommand>(*i)) : std::nullopt;
}

std::optional<RunState> StateAfter(RunState state, RunEvent event) {
  return kAfter[Index(state)][Index(event)];
}

bool Takes(RunState state, ControlCommand command) { return kTakes[Index(state)][Index(command)]; }

bool IsEnd(RunState state) { return state == kDone || state == kFailed; }

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMaxCounted = std::numeric_limits<std::int64_t>::max();

Json NumberOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

double NumberOf(const Json& value) {
  return value.is_null() ? RunStatus::kUnknown : value.get<double>();
}

// To the microsecond: shorter, and no less is known.
Json SecondsOrNull(double seconds) {
  constexpr double kMaxRounded = 1e6;
  return NumberOrNull(std::abs(seconds) < kMaxRounded ? std::round(seconds * 1e6) / 1e6 : seconds);
}

Json WholeOrNull(const std::optional<int>& value) { return value ? Json(*value) : Json(nullptr); }

Json JsonOf(const std::vector<RankLoad>& loads) {
  Json json = Json::array();
  for (const RankLoad& load : loads) {
    json.push_back({{"rank", load.rank},
                    {"host", load.host},
                    {"own_seconds", SecondsOrNull(load.busy_seconds)},
                    {"input_wait_seconds", SecondsOrNull(load.input_wait_seconds)},
                    {"gpu_busy_percent", WholeOrNull(load.gpu_percent)},
                    {"clock_mhz", WholeOrNull(load.compute_mhz)},
                    {"celsius", WholeOrNull(load.celsius)}});
  }
  return json;
}

// Whole, and within the limits.  Throws Error(EX_DATAERR).
std::int64_t WholeOf(const Json& value, std::int64_t min, std::int64_t max) {
  const auto number = support::IntegerOf<std::int64_t>(value, min, max);
  if (!number) throw Error(EX_DATAERR, "a status with a number that cannot be");
  return *number;
}

std::int64_t CountOf(const Json& value) { return WholeOf(value, 0, kMaxCounted); }

int IntOf(const Json& value, int min) {
  return static_cast<int>(WholeOf(value, min, std::numeric_limits<int>::max()));
}

std::optional<int> OptionalOf(const Json& value) {
  return value.is_null() ? std::nullopt
                         : std::optional(IntOf(value, std::numeric_limits<int>::min()));
}

// Of a ddltraind that does not tell them there are none.
std::vector<RankLoad> LoadsIn(const Json& json) {
  std::vector<RankLoad> loads;
  const auto all = json.find("rank_loads");
  if (all == json.end()) return loads;
  for (const Json& load : *all) {
    loads.push_back({.rank = IntOf(load.at("rank"), 0),
                     .host = load.at("host").get<std::string>(),
                     .busy_seconds = NumberOf(load.at("own_seconds")),
                     .input_wait_seconds = NumberOf(load.at("input_wait_seconds")),
                     .gpu_percent = OptionalOf(load.at("gpu_busy_percent")),
                     .compute_mhz = OptionalOf(load.at("clock_mhz")),
                     .celsius = OptionalOf(load.at("celsius"))});
  }
  return loads;
}

}  // namespace

std::string FormatStatus(const RunStatus& status) {
  Json phases = Json::object();
  for (std::size_t i = 0; i < kStepPhases; ++i) {
    phases[std::string(NameOf(static_cast<StepPhase>(i)))] = NumberOrNull(status.times.phases[i]);
  }
  Json requested = Json::array();
  for (const ControlCommand command : status.requested)
    requested.push_back(std::string(NameOf(command)));
  const Json json = {{"state", std::string(NameOf(status.state))},
                     {"step", status.step},
                     {"steps", status.steps},
                     {"epoch", status.epoch},
                     {"epochs", status.epochs},
                     {"loss", NumberOrNull(status.loss)},
                     {"images_per_second", NumberOrNull(status.images_per_second)},
                     {"eta_seconds", NumberOrNull(status.eta_seconds)},
                     {"checkpoint_step",
                      status.checkpoint_step < 0 ? Json(nullptr) : Json(status.checkpoint_step)},
                     {"step_seconds", NumberOrNull(status.times.step)},
                     {"phase_seconds", phases},
                     {"median_own_seconds", SecondsOrNull(status.median_busy_seconds)},
                     {"rank_loads", JsonOf(status.loads)},
                     {"display_every", status.display_every},
                     {"asked", requested},
                     {"ranks", status.identity.ranks},
                     {"host", status.identity.host},
                     {"pid", status.identity.pid},
                     {"version", status.identity.version},
                     {"job", status.identity.job}};
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

RunStatus ParseStatus(std::string_view text) {
  const Json json = support::ParseJson<Json>(text, kMessageLimits);
  try {
    RunStatus status;
    const auto state = ParseRunState(json.at("state").get<std::string>());
    if (!state) throw Error(EX_DATAERR, "a status of a state that is not known here");
    status.state = *state;
    status.step = CountOf(json.at("step"));
    status.steps = CountOf(json.at("steps"));
    status.epoch = CountOf(json.at("epoch"));
    status.epochs = CountOf(json.at("epochs"));
    status.loss = NumberOf(json.at("loss"));
    status.images_per_second = NumberOf(json.at("images_per_second"));
    status.eta_seconds = NumberOf(json.at("eta_seconds"));
    const Json& checkpoint = json.at("checkpoint_step");
    status.checkpoint_step = checkpoint.is_null() ? -1 : CountOf(checkpoint);
    status.times.step = NumberOf(json.at("step_seconds"));
    for (std::size_t i = 0; i < kStepPhases; ++i) {
      const std::string phase(NameOf(static_cast<StepPhase>(i)));
      status.times.phases[i] = NumberOf(json.at("phase_seconds").at(phase));
    }
    if (const auto median = json.find("median_own_seconds"); median != json.end()) {
      status.median_busy_seconds = NumberOf(*median);
    }
    status.loads = LoadsIn(json);
    status.display_every = CountOf(json.at("display_every"));
    for (const Json& name : json.at("asked")) {
      if (const auto command = ParseControlCommand(name.get<std::string>())) {
        status.requested.push_back(*command);
      }
    }
    status.identity.ranks = IntOf(json.at("ranks"), 1);
    status.identity.host = json.at("host").get<std::string>();
    status.identity.pid = CountOf(json.at("pid"));
    status.identity.version = json.at("version").get<std::string>();
    status.identity.job = json.at("job").get<std::string>();
    return status;
  } catch (const nlohmann::json::exception&) {
    throw Error(EX_DATAERR, "not a status of ddltraind");
  }
}

}  // namespace trainer
