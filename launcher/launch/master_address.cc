// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/master_address.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "rankfile/host_name.h"

namespace launcher {
namespace {

bool IsLoopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost" ||
         address.starts_with("localhost.");
}

bool IsInNumbers(std::string_view address) {
  return address.find(':') != std::string_view::npos ||
         address.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

std::string MasterAddressProblem(const std::string& address,
                                 const std::vector<std::string>& hosts) {
  const std::string without = "; without it ddlrun tells them " + hosts.front();
  if (IsLoopback(address)) {
    if (hosts.size() == 1) return "";
    return "MASTER_ADDR=" + address +
           " is another machine on each node: ranks that meet there wait for each other for ever" +
           without;
  }
  if (IsInNumbers(address)) return "";
  const bool is_known = std::any_of(hosts.begin(), hosts.end(), [&](const std::string& host) {
    return rankfile::SameHost(host, address);
  });
  if (is_known) return "";
  return "MASTER_ADDR=" + address +
         " is no host of this job: where it is left of another one, ranks wait there for ever" +
         without;
}

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
