// SPDX-License-Identifier: Apache-2.0
//
// The stack traces of all threads of this process: where each is right now.  For a process that
// hangs, so nothing here waits for a thread for long.
//
// Each thread is sent a signal (SIGRTMAX - 3), whose handler writes down return addresses, and does
// nothing else that is not safe in any place of a program; names are looked up afterwards, by the
// thread that asks.  A thread that blocks the signal, or waits in the kernel where no signal
// reaches it, has what Linux says of it in the place of a stack.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

struct StackFrame {
  std::string function;  // demangled, or "" where it is not known
  std::string place;     // "/usr/bin/ddltraind(+0x4f1a0)", as addr2line takes it
};

struct ThreadStack {
  pid_t id = 0;
  std::string name = {};
  std::vector<StackFrame> frames = {};  // innermost first
  std::string state = {};               // where there are no frames: what can be said instead
};

// Before the first call of the others: makes ready what a handler may not do.  False if something
// else in this process has taken the signal; then no thread has frames.  From any thread, any
// number of times.
bool PrepareThreadStacks();

inline constexpr std::chrono::milliseconds kStackAnswerTime{200};

// Of all threads, the main thread first.  A thread that does not answer within that time has none.
// From any thread; one after the other.
std::vector<ThreadStack> CollectThreadStacks(
    std::chrono::milliseconds answer_time = kStackAnswerTime);

// Where a thread is, in a few words: the innermost function that has a name, then those of our own
// outside it, at most four: "read < ReadAhead::Read < ...".  Two threads that are in the same calls
// have the same.  "" without frames.
std::string InBrief(const ThreadStack& stack);

// As text: a paragraph for each thread, a line for each frame.
std::string StacksAsText(const std::vector<ThreadStack>& stacks);

// What Linux says of a thread or process, by its directory in /proc ("/proc/1234"): "stopped",
// "waits in the kernel for a disk, a file system or a driver, at nfs_wait_bit_killable", "runs",
// "sleeps", "ended"; "" if nothing.
std::string StateInKernel(const std::string& directory);

// The file that some thread of this process is reading from in the kernel at this moment, or "".
std::string FileBeingRead();

// Names of the functions in a program or library on this machine, from the tables of its ELF file:
// also of those that the dynamic linker does not know.

class ElfSymbols {
 public:
  // Of the file `path`; none where it cannot be read, is no 64-bit ELF file of this byte order, or
  // was stripped of them.
  explicit ElfSymbols(const std::string& path);

  // Whether addresses in it are absolute, and not from where it was loaded.
  bool is_absolute() const { return is_absolute_; }
  // The function that contains `address`, demangled; "" if it is not known.
  std::string NameOf(std::uint64_t address) const;

 private:
  struct Function {
    std::uint64_t address;
    std::uint64_t size;
    std::uint64_t name;  // place in names_
  };

  bool is_absolute_ = false;
  std::vector<Function> functions_;  // by address
  std::vector<char> names_;          // ends with a zero
};

}  // namespace trainer
