// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/unix_socket.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr int kBacklog = 16;

support::Descriptor MakeSocket(int flags) {
  return support::Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

// Of `path`, which fits.
sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

}  // namespace

std::size_t MaxBytesOfSocketPath() { return sizeof(sockaddr_un::sun_path) - 1; }

// It is bound under another name and renamed once it listens: one that is found and refuses is of
// a process that has ended.
support::Descriptor ListenAt(const std::string& path) {
  const std::string early = path + ".new";
  if (early.size() > MaxBytesOfSocketPath()) {
    throw Error(EX_OSERR, "the path of a socket would be too long: " + path);
  }
  support::Descriptor socket = MakeSocket(SOCK_NONBLOCK);
  const sockaddr_un address = AddressOf(early);
  if (socket.fd() < 0 ||
      ::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(socket.fd(), kBacklog) != 0 || std::rename(early.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(early.c_str());
    throw OsError("cannot make the socket " + path, error);
  }
  return socket;
}

support::Descriptor ConnectTo(const std::string& path, int& error) {
  error = ENAMETOOLONG;
  if (path.size() > MaxBytesOfSocketPath()) return support::Descriptor();
  support::Descriptor socket = MakeSocket(0);
  constexpr timeval kLimit = {kSocketTimeout, 0};
  for (const int name : {SO_SNDTIMEO, SO_RCVTIMEO}) {
    ::setsockopt(socket.fd(), SOL_SOCKET, name, &kLimit, sizeof(kLimit));
  }
  const sockaddr_un address = AddressOf(path);
  error = 0;
  if (socket.fd() < 0 ||
      ::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    error = errno;
  }
  return socket;
}

bool IsPeerOf(int fd, uid_t uid) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof(peer) &&
         peer.uid == uid;
}

}  // namespace trainer
