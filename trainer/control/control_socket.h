// SPDX-License-Identifier: Apache-2.0
//
// The Unix socket of a training and the private directory that it is in.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "support/descriptor.h"
#include "trainer/control/control_message.h"
#include "trainer/control/run_control.h"
#include "trainer/core/error.h"

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

// A directory on this node that only this user can look into, for the socket of a training.
struct SocketDirectoryOptions {
  // ddlrun's, on its own node alone; "" where there is none.
  std::filesystem::path run_directory;
  // Where to make one instead; the first that can be written, and that leaves room for the path of
  // a socket, counts.
  std::vector<std::filesystem::path> bases;
};

class SocketDirectory {
 public:
  // Takes the run directory if it is a directory of this user's with mode 0700 here; else makes
  // BASE/ddltraind.XXXXXX, and removes what killed trainings of this user have left there: such
  // directories with a socket that nobody listens at.  Throws Error(EX_OSERR).
  explicit SocketDirectory(const SocketDirectoryOptions& options);
  // Removes it if it was made here; what is in it must be gone.
  ~SocketDirectory();
  SocketDirectory(const SocketDirectory&) = delete;
  SocketDirectory& operator=(const SocketDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // In it, of this process.
  std::filesystem::path socket() const;

 private:
  std::filesystem::path path_;
  bool is_own_ = false;
};

// Asks a training on this node (control_message.h).

// Nobody listens there any more: the training has ended.
class NobodyListens : public Error {
 public:
  using Error::Error;
};

// Somebody listens there, and says nothing: the process is stopped.
class NoAnswer : public Error {
 public:
  using Error::Error;
};

// Sends `request` to the socket at `path` and waits for the answer, some seconds at most.  Throws
// NobodyListens; Error(EX_NOPERM) where the socket is another user's; NoAnswer, or another
// Error(EX_UNAVAILABLE), where no answer comes; Error(EX_DATAERR) for one that is none.
ControlAnswer Ask(const std::string& path, const ControlRequest& request);

// Answers those who ask a training, at a Unix socket: one request and its answer for each
// connection (control_message.h).  Connections of other users are closed without a word.
//
// One thread, which never waits for a client: a request that is not there within kTimeout, and an
// answer that does not go out at once, end the connection.

class ControlServer {
 public:
  static constexpr std::chrono::seconds kTimeout{2};
  static constexpr std::size_t kMaxClients = 16;  // at once; more have to wait

  // Listens at `path`, in a private directory, for processes that run as `uid`.  `control` outlives
  // it and is asked from a thread of this object.  Throws Error(EX_OSERR).
  ControlServer(const std::string& path, RunControl& control, uid_t uid);
  // Removes the socket.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

 private:
  struct Client {
    support::Descriptor socket;
    std::chrono::steady_clock::time_point until;
    std::string line;
  };

  void Run();
  void Accept();
  // Whether the client has more to say.
  bool Read(Client& client);
  std::string Answer(const std::string& line);

  const std::string path_;
  RunControl& control_;
  const uid_t uid_;
  support::Descriptor listener_;
  support::Descriptor wake_;  // readable once it is to end
  std::vector<Client> clients_;
  std::jthread thread_;  // last: starts when all the rest is there
};

}  // namespace trainer
