// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/control_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "trainer/core/error.h"
#include "trainer/core/thread.h"

namespace trainer {
namespace {

using ControlClock = std::chrono::steady_clock;

constexpr int kMillisecondsBetweenTries = 100;

// Until `until`, rounded up; -1 for ever.
int Milliseconds(ControlClock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - ControlClock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

}  // namespace

ControlServer::ControlServer(const std::string& path, RunControl& control, uid_t uid)
    : path_(path),
      control_(control),
      uid_(uid),
      listener_(ListenAt(path)),
      wake_(::eventfd(0, EFD_CLOEXEC)) {
  try {
    if (wake_.fd() < 0) throw OsError("cannot make an eventfd", errno);
    thread_ = StartThread("the thread that answers ddlctl", [this] { Run(); });
  } catch (...) {
    ::unlink(path_.c_str());
    throw;
  }
}

ControlServer::~ControlServer() {
  ::unlink(path_.c_str());
  ::eventfd_write(wake_.fd(), 1);  // its counter always has room for one
}

void ControlServer::Run() {
  for (;;) {
    const bool is_full = clients_.size() >= kMaxClients;
    std::vector<pollfd> waiting = {{wake_.fd(), POLLIN, 0},
                                   {is_full ? -1 : listener_.fd(), POLLIN, 0}};
    int timeout = -1;
    for (const Client& client : clients_) {
      waiting.push_back({client.socket.fd(), POLLIN, 0});
      const int left = Milliseconds(client.until);
      timeout = timeout < 0 ? left : std::min(timeout, left);
    }
    if (::poll(waiting.data(), waiting.size(), timeout) < 0 && errno != EINTR) return;
    if (waiting[0].revents != 0) return;
    const auto now = ControlClock::now();
    std::size_t at = 2;
    std::erase_if(clients_, [&](Client& client) {
      const bool has_reported = waiting[at++].revents != 0;
      return (has_reported && !Read(client)) || client.until <= now;
    });
    if (waiting[1].revents != 0) Accept();
  }
}

void ControlServer::Accept() {
  support::Descriptor socket(
      ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.fd() < 0) {
    // No descriptor is left for it: it stays in the queue, which must not keep a core busy.
    pollfd wake = {wake_.fd(), POLLIN, 0};
    if (errno == EMFILE || errno == ENFILE) ::poll(&wake, 1, kMillisecondsBetweenTries);
    return;
  }
  if (!IsPeerOf(socket.fd(), uid_)) return;
  clients_.push_back({std::move(socket), ControlClock::now() + kTimeout, {}});
}

bool ControlServer::Read(Client& client) {
  std::array<char, kMaxRequestBytes> part{};
  const ssize_t count = ::recv(client.socket.fd(), part.data(), part.size(), 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  client.line.append(part.data(), static_cast<std::size_t>(count));
  const std::size_t end = client.line.find('\n');
  if (end == std::string::npos && client.line.size() <= kMaxRequestBytes) return true;
  const std::string answer = Answer(client.line.substr(0, end)) + "\n";
  // Whoever does not take it at once gets none: a new socket has room for it.
  static_cast<void>(::send(client.socket.fd(), answer.data(), answer.size(), MSG_NOSIGNAL));
  return false;
}

std::string ControlServer::Answer(const std::string& line) {
  const ParsedRequest parsed = ParseRequest(line);
  if (parsed.request) return FormatAnswer(control_.Take(*parsed.request));
  return FormatAnswer({"the message is not understood: " + parsed.problem, control_.status()});
}

}  // namespace trainer
