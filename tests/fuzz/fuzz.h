// SPDX-License-Identifier: Apache-2.0
//
// What fuzzers share.  FUZZ(name) { ... } is what the program NAME_fuzz does with one input,
// `text`; a property that does not hold ends it.  CMake compiles the file once for each name in it,
// and says by DDL_FUZZER which one the program runs.

#pragma once

#include <sys/mman.h>
#include <sysexits.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#define FUZZ(name) [[maybe_unused]] static void name(std::string_view text)

static void DDL_FUZZER(std::string_view text);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  DDL_FUZZER({reinterpret_cast<const char*>(data), size});
  return 0;
}

namespace fuzz {

inline void Require(bool condition) {
  if (!condition) std::abort();
}

// What `read` returns; nullopt when it refuses by a Refusal.  Any other exception ends the run.
template <class Rejection, class Read>
auto IfTaken(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Rejection&) {
    return std::nullopt;
  }
}

// Calls `read`, which may refuse by a Refusal.
template <class Rejection, class Read>
void MayReject(Read read) {
  try {
    read();
  } catch (const Rejection&) {
  }
}

// The same, where the refusal says that the data is damaged, in one line that begins with `where`.
template <class Rejection, class Read>
void MayBeDamaged(std::string_view where, Read read) {
  try {
    read();
  } catch (const Rejection& error) {
    const std::string_view what = error.what();
    Require(error.exit_code() == EX_DATAERR && what.starts_with(where) &&
            what.find('\n') == std::string_view::npos);
  }
}

inline std::span<const std::uint8_t> Bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// The name of the one file in memory of this process, which has `bytes` from now on.
inline std::string MemoryFile(std::span<const std::uint8_t> bytes) {
  static const int fd = ::memfd_create("fuzz", 0);
  const auto size = static_cast<ssize_t>(bytes.size());
  Require(::ftruncate(fd, 0) == 0 && ::pwrite(fd, bytes.data(), bytes.size(), 0) == size);
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace fuzz
