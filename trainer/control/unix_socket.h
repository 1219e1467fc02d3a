// SPDX-License-Identifier: Apache-2.0
//
// What both ends of a Unix socket need.  Safe from any thread.

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "support/descriptor.h"

namespace trainer {

// The longest path that a socket can have.
std::size_t MaxBytesOfSocketPath();

// A socket that listens at `path`, which nobody finds before it listens; non-blocking.
// REQUIRES: the directory of `path` is private.  Throws Error(EX_OSERR) that names it.
support::Descriptor ListenAt(const std::string& path);

// A socket that is connected to the one at `path`, with 0 in `error`, or errno of why it is not.
// Whatever waits for the other end waits for kSocketTimeout at most, then fails with EAGAIN.
inline constexpr int kSocketTimeout = 10;  // seconds; a machine may be busy
support::Descriptor ConnectTo(const std::string& path, int& error);

// Whether the process at the other end of `fd` runs as `uid`, by what the kernel noted when it
// connected or began to listen.
bool IsPeerOf(int fd, uid_t uid);

}  // namespace trainer
