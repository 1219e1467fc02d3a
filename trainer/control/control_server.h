// SPDX-License-Identifier: Apache-2.0
//
// Answers those who ask a training, at a Unix socket: one request and its answer for each
// connection (control_message.h).  Connections of other users are closed without a word.
//
// One thread, which never waits for a client: a request that is not there within kTimeout, and an
// answer that does not go out at once, end the connection.

#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "trainer/control/control_socket.h"
#include "trainer/control/run_control.h"

namespace trainer {

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
