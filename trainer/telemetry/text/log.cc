// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/text/log.h"

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "support/append_file.h"
#include "support/file.h"
#include "support/number.h"
#include "support/quoting.h"
#include "trainer/core/error.h"

namespace trainer {

void RedrawnLine::Draw(std::string_view text) {
  const std::lock_guard lock(mutex_);
  // In one piece: other ranks may have the same terminal.
  Put("\r" + std::string(text) + "\x1b[K");
  is_open_ = true;
}

void RedrawnLine::Write(std::string_view lines) {
  const std::lock_guard lock(mutex_);
  EndLocked();
  Put(lines);
}

void RedrawnLine::End() {
  const std::lock_guard lock(mutex_);
  EndLocked();
}

void RedrawnLine::EndLocked() {
  if (is_open_) Put("\n");
  is_open_ = false;
}

void RedrawnLine::Put(std::string_view text) {
  out_.clear();  // what was lost before is no reason to lose this
  out_ << text << std::flush;
}

namespace {

spdlog::level::level_enum LevelOf(std::string_view level) {
  static constexpr std::pair<std::string_view, spdlog::level::level_enum> kLevels[] = {
      {"debug", spdlog::level::debug},
      {"info", spdlog::level::info},
      {"warning", spdlog::level::warn},
      {"error", spdlog::level::err},
      {"off", spdlog::level::off}};
  for (const auto& [name, value] : kLevels) {
    if (name == level) return value;
  }
  throw Error(EX_USAGE, "'" + std::string(level) +
                            "' is not a log level: give debug, info, warning, error or off");
}

class AfterLine final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit AfterLine(RedrawnLine& line) : line_(line) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    line_.Write(support::WithoutControls({text.data(), text.size()}));
  }
  void flush_() override {}  // each line is

 private:
  RedrawnLine& line_;
};

Logger MakeLoggerOf(std::shared_ptr<spdlog::sinks::sink> sink, int rank, std::string_view level) {
  auto logger = std::make_shared<spdlog::logger>("ddltraind", std::move(sink));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z [rank " + std::to_string(rank) + "] %l: %v");
  logger->set_level(LevelOf(level));
  return logger;
}

}  // namespace

Logger MakeLogger(std::ostream& out, int rank, std::string_view level) {
  return MakeLoggerOf(std::make_shared<spdlog::sinks::ostream_sink_mt>(out, /*force_flush=*/true),
                      rank, level);
}

Logger MakeLogger(RedrawnLine& line, int rank, std::string_view level) {
  return MakeLoggerOf(std::make_shared<AfterLine>(line), rank, level);
}

Appended AppendWhole(int fd, std::string_view text, bool is_own) {
  struct stat before {};
  const bool is_file = is_own && ::fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
  const support::Transfer written = support::WriteAll(fd, text);
  if (written.error == 0) return {};
  return {written.error, written.bytes == 0 || (is_file && ::ftruncate(fd, before.st_size) == 0)};
}

LineOutput::LineOutput(int fd, bool is_own, std::function<void(int error)> on_loss,
                       std::function<void()> before_lines)
    : fd_(fd),
      is_own_(is_own),
      on_loss_(std::move(on_loss)),
      before_lines_(std::move(before_lines)) {}

LineOutput::int_type LineOutput::overflow(int_type character) {
  if (character != traits_type::eof()) pending_ += traits_type::to_char_type(character);
  return traits_type::not_eof(character);
}

std::streamsize LineOutput::xsputn(const char* text, std::streamsize count) {
  pending_.append(text, static_cast<std::size_t>(count));
  return count;
}

// 0, or errno; then the file is as it was before, or torn.
int LineOutput::Write(std::string_view text) {
  const Appended appended = AppendWhole(fd_, text, is_own_);
  is_torn_ = is_torn_ || !appended.is_whole;
  return appended.error;
}

void LineOutput::Lose(int error) {
  lost_lines_ += std::ranges::count(pending_, '\n');
  if (!std::exchange(is_losing_, true)) on_loss_(error);
}

int LineOutput::sync() {
  if (pending_.empty()) return 0;
  if (before_lines_) before_lines_();
  if (is_torn_) pending_.insert(pending_.begin(), '\n');
  const bool was_torn = std::exchange(is_torn_, false);
  if (const int error = Write(pending_); error != 0) {
    if (was_torn) {
      is_torn_ = true;
      pending_.erase(pending_.begin());
    }
    Lose(error);
  } else {
    is_losing_ = false;
  }
  pending_.clear();
  return 0;
}

ReplacedFile::ReplacedFile(std::filesystem::path path, std::function<void(int error)> on_loss)
    : path_(std::move(path)), on_loss_(std::move(on_loss)) {}

void ReplacedFile::Write(std::string_view text) {
  const int error = support::ReplaceFile(path_, text);
  const bool was_losing = std::exchange(is_losing_, error != 0);
  if (is_losing_ && !was_losing) on_loss_(error);
}

namespace {

support::Descriptor OpenForAppending(const std::filesystem::path& path, std::string_view instead) {
  support::Descriptor file(support::OpenToAppend(path.c_str(), 0666, support::OwnLinks::kFollow));
  if (!file.is_open()) RejectFile(path, errno, instead);
  return file;
}

// Whether a killed launch has left half a line.
bool EndsWithinLine(const std::filesystem::path& path) {
  const support::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return false;
  struct stat status {};
  char last = '\n';
  if (::fstat(file.fd(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
      ::pread(file.fd(), &last, 1, status.st_size - 1) != 1) {
    last = '\n';
  }
  return last != '\n';
}

}  // namespace

std::function<void(int)> LogDroppedOutput(const Logger& log, const std::string& where,
                                          const std::string& what) {
  return [log, where, what](int error) {
    log->warn("{}: {} are lost: {}; the run continues without them", where, what,
              std::generic_category().message(error));
  };
}

std::function<void(int error)> LogOldText(const Logger& log, const std::string& where) {
  return [log, where](int error) {
    log->warn("{}: cannot be written anew: {}; the run continues, with the old text there", where,
              std::generic_category().message(error));
  };
}

void LogDroppedOutputs(const Logger& log, const std::string& where, std::int64_t count,
                       const std::string& what) {
  if (count > 0) log->warn("{}: {} lost", where, support::Counted(count, what));
}

void RejectFile(const std::filesystem::path& path, int error, std::string_view instead) {
  const char* const reason = support::ReasonNotToAppend(error);
  const std::string why =
      reason != nullptr ? reason : std::generic_category().message(error) + "; check it";
  throw Error(EX_OSERR,
              "cannot write '" + path.string() + "': " + why + ", or give " + std::string(instead));
}

LogFile::LogFile(const std::filesystem::path& path, std::string_view instead, const Logger& log)
    : log_(log),
      path_(path.string()),
      file_(OpenForAppending(path, instead)),
      buffer_(file_.fd(), /*is_own=*/true, LogDroppedOutput(log, path_)) {
  // To be written with the first line.
  if (EndsWithinLine(path)) stream_ << '\n';
}

void LogFile::LogDroppedOutputs() const {
  trainer::LogDroppedOutputs(log_, path_, buffer_.lost_lines());
}

}  // namespace trainer
