// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/master_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace launcher {
namespace {

constexpr int kFirstPort = 61000;
constexpr int kPorts = 65536 - kFirstPort;
// Tried before the first choice is taken anyway: the program then says that its port is in use.
constexpr int kTries = 64;

bool IsFree(int port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return true;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<in_port_t>(port));
  const bool is_free =
      bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(listener);
  return is_free;
}

}  // namespace

int ChooseMasterPort(unsigned long seed) {
  const int first = static_cast<int>(seed % kPorts);
  for (int i = 0; i < kTries; ++i) {
    const int port = kFirstPort + (first + i) % kPorts;
    if (IsFree(port)) return port;
  }
  return kFirstPort + first;
}

}  // namespace launcher
