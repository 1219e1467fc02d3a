// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <concepts>
#include <utility>

#include "trainer/core/crc32c.h"
#include "trainer/core/file.h"
#include "trainer/options/option_access.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {
namespace {

template <std::unsigned_integral T>
void AppendNumber(T value, std::string& record) {
  for (std::size_t byte = 0; byte < sizeof(T); ++byte) {
    record += static_cast<char>(static_cast<std::uint8_t>(value >> (8 * byte)));
  }
}

std::uint32_t Checksum(std::string_view bytes) {
  return MaskedCrc32c(std::as_bytes(std::span(bytes)));
}

std::string Framed(const std::string& data) {
  std::string record;
  AppendNumber(std::uint64_t{data.size()}, record);
  AppendNumber(Checksum(record), record);
  record += data;
  AppendNumber(Checksum(data), record);
  return record;
}

// Fields of Protocol Buffers (https://protobuf.dev/programming-guides/encoding): the number of a
// field with the type of its value, then the value.  The numbers are those of TensorFlow's
// core/util/event.proto and core/framework/summary.proto.
enum class FieldType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void AppendVarint(std::uint64_t value, std::string& message) {
  for (; value >= 0x80; value >>= 7) message += static_cast<char>((value & 0x7f) | 0x80);
  message += static_cast<char>(value);
}

void AppendKey(std::uint64_t field, FieldType type, std::string& message) {
  AppendVarint(field << 3 | static_cast<std::uint64_t>(type), message);
}

void AppendVarintField(std::uint64_t field, std::uint64_t value, std::string& message) {
  AppendKey(field, FieldType::kVarint, message);
  AppendVarint(value, message);
}

void AppendBytes(std::uint64_t field, std::string_view bytes, std::string& message) {
  AppendKey(field, FieldType::kBytes, message);
  AppendVarint(bytes.size(), message);
  message += bytes;
}

// wall_time and step of an Event; what is not there is 0.
std::string EventAt(TimePoint now, std::int64_t step) {
  std::string event;
  AppendKey(1, FieldType::kFixed64, event);
  AppendNumber(std::bit_cast<std::uint64_t>(InSeconds(now.time_since_epoch())), event);
  if (step != 0) AppendVarintField(2, static_cast<std::uint64_t>(step), event);
  return event;
}

std::filesystem::path NewName(TimePoint now, const std::string& host) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
  return fmt::format("events.out.tfevents.{:010}.{}.{}", seconds, host, ::getpid());
}

support::Descriptor OpenNew(const std::filesystem::path& path, std::string_view instead) {
  support::Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) RejectFile(path, errno, instead);
  return file;
}

}  // namespace

std::string VersionRecord(TimePoint now) {
  std::string event = EventAt(now, 0);
  AppendBytes(3, "brain.Event:2", event);
  return Framed(event);
}

std::string SessionRecord(TimePoint now, std::int64_t first_step) {
  std::string session_log;
  AppendVarintField(1, 1, session_log);  // its status is START
  std::string event = EventAt(now, first_step);
  AppendBytes(7, session_log, event);
  return Framed(event);
}

std::string ScalarsRecord(TimePoint now, std::int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    AppendBytes(1, scalar.tag, value);
    AppendKey(2, FieldType::kFixed32, value);
    AppendNumber(std::bit_cast<std::uint32_t>(static_cast<float>(scalar.value)), value);
    AppendBytes(1, value, summary);
  }
  std::string event = EventAt(now, step);
  AppendBytes(5, summary, event);
  return Framed(event);
}

EventFile::EventFile(const std::filesystem::path& directory, const std::string& host,
                     std::string_view instead, Logger log, WallClock clock)
    : log_(std::move(log)),
      on_loss_(LogDroppedOutput(log_, directory.string(), "events")),
      clock_(std::move(clock)),
      path_(directory / NewName(clock_(), host)),
      file_(OpenNew(path_, instead)) {
  Append(VersionRecord(clock_()));
}

// Steps from there on are this launch's.
void EventFile::StartTraining(const TrainingSummary& summary) {
  Append(SessionRecord(clock_(), summary.first_step));
}

void EventFile::Step(const StepMetrics& metrics) {
  if (!metrics.is_displayed) return;
  const StepTimes& times = metrics.times;
  Scalars(metrics.step, std::array<Scalar, 14>{
                            {{"train/images_per_second", metrics.images_per_second},
                             {"train/cross_entropy", metrics.cross_entropy},
                             {"train/l2_loss", metrics.l2_loss},
                             {"train/total_loss", metrics.total_loss},
                             {"train/top1", metrics.top1},
                             {"train/learning_rate", metrics.learning_rate},
                             {"train/gradient_norm", metrics.gradient_norm},
                             {"train/loss_scale", metrics.loss_scale},
                             {"seconds/step", times.step},
                             {"seconds/input_wait", times[StepPhase::kInputWait]},
                             {"seconds/forward", times[StepPhase::kForward]},
                             {"seconds/backward", times[StepPhase::kBackward]},
                             {"seconds/exposed_all_reduce", times[StepPhase::kExposedAllReduce]},
                             {"seconds/update", times[StepPhase::kUpdate]}}});
}

void EventFile::RolledBack(const RollbackSummary& summary) {
  Append(SessionRecord(clock_(), summary.first_step));
  Scalars(summary.first_step,
          std::array<Scalar, 1>{
              {{"train/skipped_images", static_cast<double>(summary.skipped_images)}}});
}

// At the step of the update which made these weights.  TensorBoard drops what stands at the step
// from which a launch goes on, or behind it.
void EventFile::EndEvaluation(const EvaluationMetrics& metrics) {
  Scalars(std::max<std::int64_t>(metrics.step - 1, 0),
          std::array<Scalar, 4>{{{"evaluation/top1", metrics.top1},
                                 {"evaluation/top5", metrics.top5},
                                 {"evaluation/cross_entropy", metrics.cross_entropy},
                                 {"evaluation/images_per_second", metrics.images_per_second}}});
}

void EventFile::Scalars(std::int64_t step, std::span<const Scalar> scalars) {
  Append(ScalarsRecord(clock_(), step, scalars));
}

void EventFile::Append(const std::string& record) {
  if (is_torn_) {
    ++lost_events_;
    return;
  }
  const Appended appended = AppendWhole(file_.fd(), record, /*is_own=*/true);
  is_torn_ = !appended.is_whole;
  const bool was_losing = std::exchange(is_losing_, appended.error != 0);
  if (!is_losing_) return;
  ++lost_events_;
  if (!was_losing) on_loss_(appended.error);
}

namespace {

std::unique_ptr<TrainingLog> OpenEventFile(const LoggedLaunch& launch) {
  const std::string& directory = launch.options.tensorboard_dir;
  if (directory.empty()) return nullptr;
  MakeDirectory(directory, "--tensorboard_dir");
  return std::make_unique<EventFile>(directory, launch.host, "another --tensorboard_dir",
                                     launch.log);
}

}  // namespace

const LogFormat kEventFile = {
    .options =
        {{"tensorboard_dir",
          "directory of event files for TensorBoard, with numbers of every --display_every-th step",
          kOurs, kMustMatch, kText<&Options::tensorboard_dir>}},
    .open = OpenEventFile};

}  // namespace trainer
