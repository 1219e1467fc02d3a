// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/master_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace launcher {
namespace {

constexpr int kFirstPort = 65536 - kMasterPorts;
// How many ports are tried.  Then the first one is taken all the same, and the program will say
// that it is in use.
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
  const int first = static_cast<int>(seed % kMasterPorts);
  for (int i = 0; i < kTries; ++i) {
    const int port = kFirstPort + (first + i) % kMasterPorts;
    if (IsFree(port)) return port;
  }
  return kFirstPort + first;
}

}  // namespace launcher
