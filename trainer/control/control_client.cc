// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/control_client.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "trainer/control/control_socket.h"

namespace trainer {
namespace {

[[noreturn]] void ThrowNoAnswer(const std::string& path) {
  throw NoAnswer(EX_UNAVAILABLE, path + ": ddltraind does not answer; is its process stopped?");
}

support::Descriptor Connect(const std::string& path) {
  int error = 0;
  support::Descriptor socket = ConnectTo(path, error);
  if (error == ENOENT || error == ECONNREFUSED) {
    throw NobodyListens(EX_UNAVAILABLE, "nobody listens at " + path);
  }
  if (error == EAGAIN) ThrowNoAnswer(path);
  const std::string why = path + ": " + std::generic_category().message(error);
  if (error == EACCES || error == EPERM) throw Error(EX_NOPERM, why);
  if (error != 0) throw Error(EX_UNAVAILABLE, why);
  // Whoever could write the file that names the socket might have named one of their own.
  if (!IsPeerOf(socket.fd(), ::geteuid())) {
    throw Error(EX_NOPERM, path + " is the socket of another user: be that user");
  }
  return socket;
}

}  // namespace

ControlAnswer Ask(const std::string& path, const ControlRequest& request) {
  const support::Descriptor socket = Connect(path);
  const std::string line = FormatRequest(request) + "\n";
  std::string text;
  if (::send(socket.fd(), line.data(), line.size(), MSG_NOSIGNAL) ==
      static_cast<ssize_t>(line.size())) {
    std::array<char, 4096> part{};
    ssize_t count = 0;
    do {
      count = ::recv(socket.fd(), part.data(), part.size(), 0);
      if (count > 0) text.append(part.data(), static_cast<std::size_t>(count));
    } while ((count > 0 && text.back() != '\n' && text.size() <= kMaxAnswerBytes) ||
             (count < 0 && errno == EINTR));
    if (count < 0 && errno == EAGAIN) ThrowNoAnswer(path);
  }
  // It has ended while it was asked.
  if (text.empty()) throw NobodyListens(EX_UNAVAILABLE, "nobody answers at " + path);
  if (text.back() != '\n') throw Error(EX_DATAERR, path + ": the answer is cut off");
  text.pop_back();
  return ParseAnswer(text);
}

}  // namespace trainer
