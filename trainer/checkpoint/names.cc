// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/names.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>

namespace trainer {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kTemporaryPrefix = ".tmp-step-";
constexpr std::string_view kUnusable = ".unusable";
constexpr std::size_t kDigits = 10;

std::optional<std::int64_t> ParseNumber(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::filesystem::path CheckpointsDirectory(const std::filesystem::path& model_dir) {
  return model_dir / "checkpoints";
}

std::string CheckpointName(std::int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%010lld", static_cast<long long>(step));
  return text;
}

std::optional<std::int64_t> ParseCheckpointName(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  if (digits.size() < kDigits) return std::nullopt;
  return ParseNumber(digits);
}

std::string UnusableName(std::int64_t step, int count) {
  std::string name = CheckpointName(step).append(kUnusable);
  if (count > 1) name.append("-").append(std::to_string(count));
  return name;
}

std::optional<std::int64_t> ParseUnusableName(std::string_view name) {
  const std::size_t end = name.find(kUnusable);
  return end == std::string_view::npos ? std::nullopt : ParseCheckpointName(name.substr(0, end));
}

std::string HostName() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "localhost";
}

std::string TemporaryName(std::int64_t step) {
  std::string name(".tmp-");
  name.append(CheckpointName(step)).append("-").append(HostName()).append("-");
  return name.append(std::to_string(::getpid()));
}

std::optional<TemporaryOwner> ParseTemporaryName(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix)) return std::nullopt;
  const std::string_view rest = name.substr(kTemporaryPrefix.size());
  const std::size_t first = rest.find('-');
  return first == std::string_view::npos ? std::nullopt : ParseOwner(rest.substr(first + 1));
}

std::optional<TemporaryOwner> ParseOwner(std::string_view text) {
  const std::size_t last = text.rfind('-');
  if (last == std::string_view::npos) return std::nullopt;
  const auto pid = ParseNumber(text.substr(last + 1));
  if (!pid) return std::nullopt;
  return TemporaryOwner{std::string(text.substr(0, last)), *pid};
}

}  // namespace trainer
