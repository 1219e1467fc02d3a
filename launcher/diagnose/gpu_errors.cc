// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/gpu_errors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "support/descriptor.h"
#include "support/number.h"

namespace launcher {
namespace {

// Digits at the beginning of `text`, which are taken away.
std::optional<long long> TakeNumber(std::string_view* text) {
  const std::size_t end = std::min(text->find_first_not_of("0123456789"), text->size());
  const auto number = support::WholeNumber<long long>(text->substr(0, end));
  text->remove_prefix(end);
  return number;
}

// "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;MESSAGE" (Documentation/ABI/testing/dev-kmsg).
std::optional<GpuError> ParseRecord(std::string_view record) {
  constexpr std::string_view kMark = "NVRM: Xid (PCI:";
  const std::size_t semicolon = record.find(';');
  const std::size_t mark = record.find(kMark);
  if (semicolon == std::string_view::npos || mark == std::string_view::npos || mark < semicolon)
    return std::nullopt;
  std::string_view time = record;
  for (int i = 0; i < 2; ++i) time.remove_prefix(std::min(time.find(',') + 1, time.size()));
  const auto microseconds = TakeNumber(&time);
  std::string_view rest = record.substr(mark + kMark.size());
  const std::size_t close = rest.find("): ");
  if (!microseconds || close == std::string_view::npos) return std::nullopt;
  GpuError error;
  error.seconds = static_cast<double>(*microseconds) / 1e6;
  error.gpu = rest.substr(0, std::min<std::size_t>(close, 32));
  rest.remove_prefix(close + 3);
  const auto xid = TakeNumber(&rest);
  if (!xid || *xid > 10000) return std::nullopt;
  error.xid = static_cast<int>(*xid);
  constexpr std::string_view kPid = ", pid=";
  if (rest.starts_with(kPid)) {
    rest.remove_prefix(kPid.size());
    const auto pid = TakeNumber(&rest);
    if (pid && *pid <= 1 << 30) error.pid = static_cast<pid_t>(*pid);
  }
  return error;
}

}  // namespace

std::vector<GpuError> ParseGpuErrors(std::string_view text) {
  std::vector<GpuError> errors;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const auto error = ParseRecord(text.substr(0, end))) errors.push_back(*error);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return errors;
}

std::string ReadKernelLog(const std::string& path) {
  constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  std::string text;
  const support::Descriptor fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.is_open()) return text;
  std::array<char, 16384> record;  // longer than any
  while (text.size() < kMaxBytes) {
    const ssize_t size = read(fd.fd(), record.data(), record.size());
    if (size < 0 && (errno == EINTR || errno == EPIPE)) continue;  // EPIPE: older ones were dropped
    if (size <= 0) break;
    text.append(record.data(), static_cast<std::size_t>(size));
  }
  return text;
}

}  // namespace launcher
