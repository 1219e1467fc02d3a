// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/stack_dump_request.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <iterator>

#include "support/descriptor.h"
#include "support/file.h"
#include "support/number.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kOrderDigits = 20;
constexpr std::uint64_t kMaxRequestFileBytes = std::uint64_t{1} << 24;  // of 65,536 ranks
constexpr double kLooksEachSecond = 64;
constexpr std::string_view kOrderLine = "asked for by ddlctl, order ";

std::string OrderText(std::uint64_t command) {
  return fmt::format("{:0{}}", command, kOrderDigits);
}

// Takes the first line of `text` away, without its end; nullopt where no line ends.
std::optional<std::string_view> TakeLine(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::optional<std::uint64_t> OrderIn(std::string_view line) {
  return line.size() == kOrderDigits ? support::WholeNumber<std::uint64_t>(line) : std::nullopt;
}

std::optional<StackDumpRequest::Rank> RankIn(std::string_view line) {
  const std::size_t blank = line.find(' ');
  if (blank == 0 || blank == std::string_view::npos) return std::nullopt;
  const auto pid = support::WholeNumber<std::int64_t>(line.substr(blank + 1));
  if (!pid || *pid < 1) return std::nullopt;
  return StackDumpRequest::Rank{std::string(line.substr(0, blank)), *pid};
}

// A regular file of this user's, through no link; O_NONBLOCK: a pipe in its place must not hang us.
// Otherwise not open, with errno.
support::Descriptor OpenOwnFile(const fs::path& file, int access) {
  support::Descriptor opened(::open(file.c_str(), access | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!opened.is_open() || ::fstat(opened.fd(), &status) != 0) return {};
  if (S_ISREG(status.st_mode) && status.st_uid == ::geteuid()) return opened;
  errno = EPERM;
  return {};
}

}  // namespace

void MakeStackDumpRequest(const fs::path& file, const StackDumpRequest& request) {
  std::string text = OrderText(request.command) + "\n" + request.directory.string() + "\n";
  for (const StackDumpRequest::Rank& rank : request.ranks) {
    text += fmt::format("{} {}\n", rank.host, rank.pid);
  }
  const int error = support::ReplaceFile(file, text, {.mode = 0600});
  if (error != 0) throw OsError("cannot write " + file.string(), error);
}

std::optional<StackDumpRequest> ReadStackDumpRequest(const fs::path& file) {
  const support::Descriptor opened = OpenOwnFile(file, O_RDONLY);
  if (!opened.is_open()) return std::nullopt;
  const support::WholeFile read = support::ReadWholeFile(opened.fd(), kMaxRequestFileBytes);
  std::string_view text = read.content;
  const auto first = TakeLine(text);
  const auto directory = first ? TakeLine(text) : std::nullopt;
  if (!directory || !directory->starts_with('/')) return std::nullopt;
  const auto command = OrderIn(*first);
  if (!command) return std::nullopt;
  StackDumpRequest request = {.command = *command, .directory = fs::path(*directory), .ranks = {}};
  while (!text.empty()) {
    const auto line = TakeLine(text);
    const auto rank = line ? RankIn(*line) : std::nullopt;
    if (!rank) return std::nullopt;
    request.ranks.push_back(*rank);
  }
  if (request.ranks.empty()) return std::nullopt;
  return request;
}

std::uint64_t ReadStackDumpCommand(const fs::path& file) {
  const support::Descriptor opened = OpenOwnFile(file, O_RDONLY);
  if (!opened.is_open()) return 0;
  std::array<char, kOrderDigits> digits{};
  // What a signal cuts short is read at the next look.
  if (::read(opened.fd(), digits.data(), digits.size()) != std::ssize(digits)) return 0;
  return OrderIn({digits.data(), digits.size()}).value_or(0);
}

int WriteStackDumpCommand(const fs::path& file, std::uint64_t command) {
  const support::Descriptor opened = OpenOwnFile(file, O_WRONLY);
  if (!opened.is_open()) return errno;
  return support::WriteAll(opened.fd(), OrderText(command)).error;
}

std::uint64_t NextStackDumpCommand(std::uint64_t before) {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return std::max(before + 1, static_cast<std::uint64_t>(now.count()));
}

double StackDumpPollSeconds(std::size_t ranks) {
  return std::max(1.0, static_cast<double>(ranks) / kLooksEachSecond);
}

std::string FormatRankStackTraces(const RankStackTraces& stacks) {
  const std::string command =
      stacks.command > 0 ? fmt::format("{}{}\n", kOrderLine, stacks.command) : std::string();
  return stacks.headline + "\n" + command + "\n" + stacks.stacks;
}

std::optional<RankStackTraces> ParseRankStackTraces(std::string_view text) {
  RankStackTraces stacks;
  const auto headline = TakeLine(text);
  if (!headline || !headline->starts_with("rank ")) return std::nullopt;
  stacks.headline = *headline;
  auto line = TakeLine(text);
  if (line && line->starts_with(kOrderLine)) {
    const auto command = support::WholeNumber<std::uint64_t>(line->substr(kOrderLine.size()));
    if (!command || *command == 0) return std::nullopt;
    stacks.command = *command;
    line = TakeLine(text);
  }
  if (!line || !line->empty()) return std::nullopt;
  stacks.stacks = text;
  return stacks;
}

std::string StackDumpFileName(int rank) { return fmt::format("rank-{}.txt", rank); }

}  // namespace trainer
