// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "launcher/diagnose/system_calls.h"
#include "support/descriptor.h"
#include "support/number.h"

namespace launcher {
namespace {

constexpr std::size_t kMaxThreadsLookedAt = 1024;

std::string ProcPath(pid_t pid, const std::string& file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// "" where it cannot be read.  Files of /proc have no size.
std::string ProcText(const std::string& path) {
  constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
  const support::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> part = {};
  while (file.is_open() && text.size() < kMaxBytes) {
    const ssize_t got = read(file.fd(), part.data(), part.size());
    if (got <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::string FirstLine(std::string text) {
  text.erase(std::min(text.find('\n'), text.size()));
  return text;
}

// Where a link of /proc leads, which is not followed; "" where that cannot be read.
std::string LinkText(const std::string& path) {
  std::array<char, 4096> text = {};
  const ssize_t size = readlink(path.c_str(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "";
}

// The value of a line "NAME:\tVALUE".
std::string FieldOf(const std::string& text, const std::string& name) {
  const std::size_t at = ("\n" + text).find("\n" + name + ":");
  if (at == std::string::npos) return "";
  std::string value = FirstLine(text.substr(at + name.size() + 1));
  value.erase(0, std::min(value.find_first_not_of(" \t"), value.size()));
  return value;
}

std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// "0x7f..." or "-1" of the file `syscall`.
std::optional<std::uint64_t> ArgumentOf(const std::vector<std::string>& words, std::size_t index) {
  if (index + 1 >= words.size() || !words[index + 1].starts_with("0x")) return std::nullopt;
  return support::WholeNumber<std::uint64_t>(std::string_view(words[index + 1]).substr(2), 16);
}

// What its memory has there, up to a zero.
std::string MemoryText(pid_t pid, std::uint64_t address) {
  constexpr std::size_t kPage = 4096;  // what is behind the text may not be there
  std::string text;
  while (text.size() < kPage) {
    std::array<char, kPage> part = {};
    const std::size_t size = kPage - (address + text.size()) % kPage;
    iovec local = {part.data(), size};
    iovec remote = {reinterpret_cast<void*>(address + text.size()), size};
    const ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got <= 0) return "";
    const std::string_view read(part.data(), static_cast<std::size_t>(got));
    const std::size_t end = read.find('\0');
    text += read.substr(0, end);
    if (end != std::string_view::npos) return text;
  }
  return text;
}

void SetDescriptor(pid_t pid, std::uint64_t number, ProcessFacts* facts) {
  std::string link = LinkText(ProcPath(pid, "fd/" + std::to_string(number)));
  if (link.starts_with("pipe:")) link = "a pipe";
  if (link.starts_with("socket:")) link = "a socket";
  if (link.starts_with("/dev/pts/") || link.starts_with("/dev/tty")) link = "a terminal";
  facts->object = link;
  if (!link.starts_with("/") || link.starts_with("/dev/")) return;
  const std::string id =
      FieldOf(ProcText(ProcPath(pid, "fdinfo/" + std::to_string(number))), "mnt_id");
  facts->file_system = FileSystemOf(ProcText(ProcPath(pid, "mountinfo")), link,
                                    support::WholeNumber<int>(id).value_or(-1));
}

void SetPath(pid_t pid, std::uint64_t address, std::uint64_t directory, ProcessFacts* facts) {
  std::string path = MemoryText(pid, address);
  if (path.empty()) return;
  if (path.front() != '/') {
    constexpr std::uint32_t kHere = static_cast<std::uint32_t>(AT_FDCWD);
    const bool is_here = static_cast<std::uint32_t>(directory) == kHere;
    path =
        LinkText(ProcPath(pid, is_here ? "cwd" : "fd/" + std::to_string(directory))) + "/" + path;
  }
  facts->object = path;
  facts->file_system = FileSystemOf(ProcText(ProcPath(pid, "mountinfo")), path);
}

void SetCall(pid_t pid, const std::string& line, ProcessFacts* facts) {
  const std::vector<std::string> words = WordsOf(line);
  // "running", or "-1 SP PC" of what waits outside of any call, as for a page of a file.
  const auto number = support::WholeNumber<std::int64_t>(words.empty() ? "" : words.front());
  if (!number || *number < 0) return;
  if (*number == SYS_restart_syscall) {
    // What was interrupted, by SIGSTOP or a debugger, goes on so: a futex, a poll, or a sleep, of
    // which the kernel's function may not tell.
    const auto has = [&](const char* name) { return facts->wait.find(name) != std::string::npos; };
    if (!facts->wait.empty())
      facts->call = has("futex") ? "futex" : has("poll") ? "poll" : "nanosleep";
    return;
  }
  const SystemCall* const call = FindSystemCall(*number);
  facts->call = call != nullptr ? call->name : "call " + words.front();
  if (call == nullptr) return;
  const std::optional<std::uint64_t> first = ArgumentOf(words, 0);
  const std::optional<std::uint64_t> second = ArgumentOf(words, 1);
  if (!first || !second) return;
  switch (call->argument) {
    case SystemCall::Argument::kDescriptor:
      return SetDescriptor(pid, *first, facts);
    case SystemCall::Argument::kPath:
      return SetPath(pid, *first, static_cast<std::uint32_t>(AT_FDCWD), facts);
    case SystemCall::Argument::kPathAt:
      return SetPath(pid, *second, *first, facts);
    case SystemCall::Argument::kCount:
      // Some programs sleep so, Python up to 3.10 among them.
      if (*first == 0) facts->call = "nanosleep";
      return;
    case SystemCall::Argument::kNone:
      return;
  }
}

// The first thread other than the first one of the process that cannot be interrupted.
int UninterruptibleThread(pid_t pid) {
  std::error_code error;
  std::size_t seen = 0;
  for (std::filesystem::directory_iterator entry(ProcPath(pid, "task"), error), end;
       !error && entry != end && ++seen <= kMaxThreadsLookedAt; entry.increment(error)) {
    const auto thread = support::WholeNumber<int>(entry->path().filename().string());
    if (!thread || *thread == pid) continue;
    const auto stat = ParseProcessStat(ProcText(entry->path().string() + "/stat"));
    if (stat && stat->state == 'D') return *thread;
  }
  return 0;
}

}  // namespace

std::optional<ProcessStat> ParseProcessStat(std::string_view text) {
  // The name may have blanks and parentheses in it.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return std::nullopt;
  const std::vector<std::string> words = WordsOf(std::string(text.substr(close + 1)));
  constexpr std::size_t kParent = 1, kUser = 11, kSystem = 12, kStart = 19, kStatus = 49;
  if (words.size() <= kStart || words[0].size() != 1) return std::nullopt;
  const auto number = [&words](std::size_t index) {
    return index < words.size() ? support::WholeNumber<std::int64_t>(words[index]).value_or(0) : 0;
  };
  ProcessStat stat;
  stat.name = text.substr(open + 1, close - open - 1);
  stat.state = words[0][0];
  stat.parent = static_cast<int>(number(kParent));
  stat.ticks = number(kUser) + number(kSystem);
  stat.start = number(kStart);
  stat.wait_status = static_cast<int>(number(kStatus));
  return stat;
}

std::optional<ProcessStat> ReadProcessStat(pid_t pid) {
  return ParseProcessStat(ProcText(ProcPath(pid, "stat")));
}

std::vector<pid_t> OwnProcesses() {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto pid = support::WholeNumber<pid_t>(entry->path().filename().string());
    struct stat info = {};
    if (pid && stat(entry->path().c_str(), &info) == 0 && info.st_uid == geteuid()) {
      found.push_back(*pid);
    }
  }
  return found;
}

Environment EnvironmentOf(pid_t pid) {
  Environment environment;
  std::istringstream stream(ProcText(ProcPath(pid, "environ")));
  for (std::string entry; std::getline(stream, entry, '\0');) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos)
      environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

bool IsPython(pid_t pid) {
  const std::string program = LinkText(ProcPath(pid, "exe"));
  return program.substr(program.rfind('/') + 1).starts_with("python");
}

std::string FileSystemOf(std::string_view mountinfo, std::string_view path, int id) {
  std::string found;
  std::size_t length = 0;
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = WordsOf(line);
    const auto dash = std::ranges::find(words, "-");
    constexpr std::size_t kPoint = 4;
    if (words.size() <= kPoint || words.end() - dash < 2) continue;
    const std::string& point = words[kPoint];
    const bool is_above = path.starts_with(point) && (point == "/" || path.size() == point.size() ||
                                                      path[point.size()] == '/');
    const bool is_meant = support::WholeNumber<int>(words[0]) == id;
    // Of mounts at one place the last one counts.
    if (!is_meant && (!is_above || point.size() < length)) continue;
    found = *(dash + 1) + " at " + point;
    length = point.size();
    if (is_meant) break;
  }
  return found;
}

std::optional<ProcessLook> LookAt(pid_t pid) {
  const auto stat = ReadProcessStat(pid);
  if (!stat) return std::nullopt;
  ProcessLook look;
  look.stat = *stat;
  if (stat->state == 'S' || stat->state == 'R') look.thread = UninterruptibleThread(pid);
  const std::string task =
      ProcPath(pid, "task/" + std::to_string(look.thread != 0 ? look.thread : pid) + "/");
  look.wait = FirstLine(ProcText(task + "wchan"));
  if (look.wait == "0") look.wait.clear();
  look.call = FirstLine(ProcText(task + "syscall"));
  const std::string status = ProcText(task + "status");
  look.switches = FieldOf(status, "voluntary_ctxt_switches") + " " +
                  FieldOf(status, "nonvoluntary_ctxt_switches");
  return look;
}

ProcessFacts FactsOf(pid_t pid, const ProcessLook& before, const ProcessLook& now, double seconds) {
  ProcessFacts facts;
  facts.pid = pid;
  facts.parent = now.stat.parent;
  facts.name = now.stat.name;
  facts.state = now.thread != 0 ? 'D' : now.stat.state;
  facts.thread = now.thread;
  facts.wait = now.wait;
  facts.is_still = now.stat.state == before.stat.state && now.thread == before.thread &&
                   now.switches == before.switches && now.call == before.call;
  const auto ticks =
      static_cast<double>(std::max<std::int64_t>(0, now.stat.ticks - before.stat.ticks));
  const auto per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (seconds > 0 && per_second > 0) facts.cpus = ticks / per_second / seconds;
  if (facts.state == 'Z') facts.wait_status = now.stat.wait_status;
  const std::string tracer = FieldOf(ProcText(ProcPath(pid, "status")), "TracerPid");
  facts.tracer = std::max(0, support::WholeNumber<int>(tracer).value_or(0));
  SetCall(pid, now.call, &facts);
  return facts;
}

}  // namespace launcher
