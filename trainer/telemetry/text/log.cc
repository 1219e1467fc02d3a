// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/text/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ostream_sink.h>

#include <mutex>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {
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
    line_.Write({text.data(), text.size()});
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

}  // namespace trainer
