// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/stacks/thread_stacks.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "support/number.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr int kMaxFrames = 64;
constexpr milliseconds kWriteTime{2000};  // of a handler that has begun

int StackSignal() { return SIGRTMAX - 3; }

// What the handler and the thread that asks share.  A thread is asked by its id; its handler takes
// that away, so that one that comes late writes nothing over the answer of another.
std::atomic<pid_t> requested_thread{0};
std::atomic<int> frames_taken{-1};  // of the answer; -1: not there yet
std::array<void*, kMaxFrames> taken_frames;
void* handler_return = nullptr;  // to where the handler returns: what the kernel has called it by

pid_t OwnId() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

void TakeStack(int) {
  const int error = errno;
  pid_t expected = OwnId();
  if (requested_thread.compare_exchange_strong(expected, 0)) {
    handler_return = __builtin_return_address(0);
    frames_taken.store(::backtrace(taken_frames.data(), kMaxFrames));
  }
  errno = error;
}

bool InstallHandler() {
  struct sigaction current = {};
  if (::sigaction(StackSignal(), nullptr, &current) != 0 || current.sa_handler != SIG_DFL) {
    return false;
  }
  // The first call loads a library, which a handler may not do.
  std::array<void*, 1> frame{};
  ::backtrace(frame.data(), 1);
  struct sigaction action = {};
  action.sa_handler = TakeStack;
  action.sa_flags = SA_RESTART;
  ::sigfillset(&action.sa_mask);
  return ::sigaction(StackSignal(), &action, nullptr) == 0;
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The rest of the line of /proc/.../status that begins so.
std::string StatusOf(const std::string& directory, const std::string& key) {
  std::ifstream file(directory + "/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key + ":")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", key.size() + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

bool BlocksSignal(const std::string& directory) {
  const auto mask = support::WholeNumber<std::uint64_t>(StatusOf(directory, "SigBlk"), 16);
  return mask && (*mask >> (StackSignal() - 1) & 1) != 0;
}

// Frames of the thread; none if it does not answer.  One call at a time.
std::vector<void*> Ask(pid_t thread, milliseconds answer_time) {
  // A handler that was given up in its midst still writes what is shared.  Nobody else is asked
  // until its answer is there, which nobody wants any more.
  static bool is_given_up = false;
  if (is_given_up && frames_taken < 0) return {};
  is_given_up = false;
  frames_taken = -1;
  requested_thread = thread;
  const auto answered = [](milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (frames_taken < 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return frames_taken >= 0;
  };
  const bool is_sent = ::syscall(SYS_tgkill, ::getpid(), thread, StackSignal()) == 0;
  if (!is_sent || !answered(answer_time)) {
    pid_t expected = thread;
    if (requested_thread.compare_exchange_strong(expected, 0)) return {};
    is_given_up = !answered(kWriteTime);
    if (is_given_up) return {};
  }
  // The handler, what it calls, and what the kernel has called it by are no part of the stack.
  const auto end = taken_frames.begin() + frames_taken;
  const auto caller = std::find(taken_frames.begin(), end, handler_return);
  // With braces it would be a vector of two pointers.
  return std::vector<void*>(caller == end ? taken_frames.begin() : caller + 1, end);
}

// Names of functions, with the tables of the files that they were found in.
class Names {
 public:
  // `address`: of the instruction after a call, or `is_innermost`.
  StackFrame Of(void* address, bool is_innermost) {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    Dl_info info = {};
    if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
      return {"", fmt::format("(0x{:x})", value)};
    }
    const std::string path = PathOf(info);
    const auto [table, is_new] = tables_.try_emplace(path, path);
    const ElfSymbols& symbols = table->second;
    const std::uint64_t offset =
        symbols.is_absolute() ? value : value - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    return {symbols.NameOf(is_innermost ? offset : offset - 1),
            fmt::format("{}(+0x{:x})", path, offset)};
  }

 private:
  // The linker has the name of the program as it was called.  Other names without a directory stay:
  // that of the kernel's linux-vdso.so.1 is no file.
  static std::string PathOf(const Dl_info& info) {
    std::error_code error;
    Dl_info own = {};
    const bool is_program =
        ::dladdr(reinterpret_cast<void*>(&TakeStack), &own) != 0 && info.dli_fbase == own.dli_fbase;
    if (!is_program || fs::path(info.dli_fname).is_absolute()) return info.dli_fname;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    return error ? info.dli_fname : program.string();
  }

  std::map<std::string, ElfSymbols> tables_;
};

std::vector<pid_t> Threads() {
  std::vector<pid_t> threads;
  std::error_code error;
  // Not a range: its increment throws.
  for (fs::directory_iterator at("/proc/self/task", error), end; !error && at != end;
       at.increment(error)) {
    const auto id = support::WholeNumber<pid_t>(at->path().filename().string());
    if (id) threads.push_back(*id);
  }
  std::ranges::sort(threads, {}, [](pid_t id) { return std::pair(id != ::getpid(), id); });
  return threads;
}

}  // namespace

bool PrepareThreadStacks() {
  static const bool is_ready = InstallHandler();
  return is_ready;
}

std::vector<ThreadStack> CollectThreadStacks(milliseconds answer_time) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const bool is_ready = PrepareThreadStacks();
  std::vector<ThreadStack> stacks;
  Names names;
  for (const pid_t thread : Threads()) {
    const std::string directory = "/proc/self/task/" + std::to_string(thread);
    ThreadStack stack = {.id = thread, .name = FirstLine(directory + "/comm")};
    const bool is_own = thread == OwnId();
    const bool can_answer = is_ready && (is_own || !BlocksSignal(directory));
    const std::vector<void*> frames = can_answer ? Ask(thread, answer_time) : std::vector<void*>();
    for (std::size_t i = 0; i < frames.size(); ++i) {
      stack.frames.push_back(names.Of(frames[i], i == 0));
    }
    if (stack.frames.empty()) {
      stack.state = (can_answer ? "does not answer" : "cannot be asked");
      if (const std::string state = StateInKernel(directory); !state.empty()) {
        stack.state += ": " + state;
      }
    }
    stacks.push_back(std::move(stack));
  }
  return stacks;
}

std::string InBrief(const ThreadStack& stack) {
  constexpr std::size_t kMaxNamed = 5;
  constexpr std::string_view kOurs = "trainer::";
  std::vector<std::string> names;
  for (const StackFrame& frame : stack.frames) {
    std::string name = frame.function;
    constexpr std::string_view kNameless = "(anonymous namespace)::";
    for (std::size_t at; (at = name.find(kNameless)) != std::string::npos;) {
      name.erase(at, kNameless.size());
    }
    name.erase(std::min(name.find('('), name.size()));
    const std::size_t ours = name.find(kOurs);
    if (name.empty() || (!names.empty() && ours == std::string::npos)) continue;
    if (ours != std::string::npos) name.erase(0, ours + kOurs.size());
    if (names.empty() || names.back() != name) names.push_back(name);
    if (names.size() == kMaxNamed) break;
  }
  return fmt::format("{}", fmt::join(names, " < "));
}

std::string StacksAsText(const std::vector<ThreadStack>& stacks) {
  std::string text;
  for (const ThreadStack& stack : stacks) {
    if (!text.empty()) text += '\n';
    text += fmt::format("thread {} ({})\n", stack.id, stack.name);
    if (!stack.state.empty()) text += "  " + stack.state + "\n";
    for (std::size_t i = 0; i < stack.frames.size(); ++i) {
      const StackFrame& frame = stack.frames[i];
      text += fmt::format("  #{} {} in {}\n", i,
                          frame.function.empty() ? "?" : frame.function.c_str(), frame.place);
    }
  }
  return text;
}

std::string StateInKernel(const std::string& directory) {
  const std::string letter = StatusOf(directory, "State").substr(0, 1);
  if (letter == "T" || letter == "t") return "stopped";
  if (letter == "R") return "runs";
  if (letter == "Z" || letter == "X") return "ended";
  const std::string channel = FirstLine(directory + "/wchan");
  const std::string at = channel.empty() || channel == "0" ? "" : ", at " + channel;
  if (letter == "D") return "waits in the kernel for a disk, a file system or a driver" + at;
  if (letter == "S") return "sleeps" + at;
  return "";
}

std::string FileBeingRead() {
  constexpr std::array<long, 4> kReads = {SYS_read, SYS_pread64, SYS_readv, SYS_preadv};
  for (const pid_t thread : Threads()) {
    // "17 0x3 0x7f... ...": the number of the call, and its arguments.
    std::istringstream call(FirstLine("/proc/self/task/" + std::to_string(thread) + "/syscall"));
    long number = -1;
    std::uint64_t descriptor = 0;
    if (!(call >> number >> std::hex >> descriptor)) continue;
    if (std::ranges::find(kReads, number) == kReads.end()) continue;
    std::error_code error;
    const std::string path =
        fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor), error).string();
    // Not pipes, sockets and devices, which threads wait at that have nothing to do.
    if (!error && path.starts_with('/') && !path.starts_with("/dev/")) return path;
  }
  return "";
}

namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;  // of a table; more is no real file
constexpr unsigned char kByteOrder =
    std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

// `count` elements at `offset` of the file; empty if they are not there.
template <typename T>
std::vector<T> ReadAt(std::ifstream& file, std::uint64_t offset, std::uint64_t count) {
  if (count > kMaxBytes / sizeof(T)) return {};
  std::vector<T> values(count);
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(count * sizeof(T)));
  if (!file) values.clear();
  return values;
}

// The one with all functions, else the one of the dynamic linker; null if there is none.
const Elf64_Shdr* FindTable(std::span<const Elf64_Shdr> sections) {
  for (const std::uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
    const auto found = std::ranges::find(sections, type, &Elf64_Shdr::sh_type);
    if (found != sections.end() && found->sh_link < sections.size()) return &*found;
  }
  return nullptr;
}

std::string Demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace

ElfSymbols::ElfSymbols(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto headers = ReadAt<Elf64_Ehdr>(file, 0, 1);
  if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0) return;
  const Elf64_Ehdr& header = headers[0];
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kByteOrder) return;
  is_absolute_ = header.e_type == ET_EXEC;
  const auto sections = ReadAt<Elf64_Shdr>(file, header.e_shoff, header.e_shnum);
  const Elf64_Shdr* const table = FindTable(sections);
  if (table == nullptr) return;
  const Elf64_Shdr& names = sections[table->sh_link];
  names_ = ReadAt<char>(file, names.sh_offset, names.sh_size);
  names_.push_back(0);
  for (const Elf64_Sym& symbol :
       ReadAt<Elf64_Sym>(file, table->sh_offset, table->sh_size / sizeof(Elf64_Sym))) {
    const bool is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
    if (!is_function || symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names_.size()) continue;
    functions_.push_back({symbol.st_value, symbol.st_size, symbol.st_name});
  }
  std::ranges::sort(functions_, {}, &Function::address);
}

std::string ElfSymbols::NameOf(std::uint64_t address) const {
  auto next = std::ranges::upper_bound(functions_, address, {}, &Function::address);
  if (next == functions_.begin()) return "";
  const Function& function = *--next;
  if (address - function.address >= std::max<std::uint64_t>(function.size, 1)) return "";
  return Demangled(names_.data() + function.name);
}

}  // namespace trainer
