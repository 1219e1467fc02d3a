// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/this_machine.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "rankfile/host_name.h"

namespace launcher {
namespace {

bool IsOwnAddress(const in_addr& address) {
  constexpr unsigned kLoopbackNetwork = 127;
  if (ntohl(address.s_addr) >> 24 == kLoopbackNetwork) return true;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> interfaces(first, freeifaddrs);
  for (const ifaddrs* interface = first; interface != nullptr; interface = interface->ifa_next) {
    if (interface->ifa_addr == nullptr || interface->ifa_addr->sa_family != AF_INET) continue;
    const auto* own = reinterpret_cast<const sockaddr_in*>(interface->ifa_addr);
    if (own->sin_addr.s_addr == address.s_addr) return true;
  }
  return false;
}

}  // namespace

std::string HostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

bool IsThisMachine(const std::string& host, const Environment& environment) {
  in_addr address = {};
  if (inet_pton(AF_INET, host.c_str(), &address) == 1) return IsOwnAddress(address);
  return rankfile::KeyOfHost(host).label == "localhost" ||
         host == ValueOr(environment, "SLURMD_NODENAME", "") ||
         rankfile::SameHost(host, HostName());
}

}  // namespace launcher
