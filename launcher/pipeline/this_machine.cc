// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/this_machine.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <map>
#include <memory>

#include "rankfile/host_name.h"

namespace launcher {
namespace {

// Whether it is of the loopback, or of an interface of this machine.
bool IsOwnAddress(const sockaddr& address) {
  constexpr unsigned kLoopbackNetwork = 127;
  const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&address);
  const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&address);
  const bool is_v4 = address.sa_family == AF_INET;
  if (is_v4 && ntohl(v4->sin_addr.s_addr) >> 24 == kLoopbackNetwork) return true;
  if (!is_v4 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)) return true;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> interfaces(first, freeifaddrs);
  for (const ifaddrs* interface = first; interface != nullptr; interface = interface->ifa_next) {
    const sockaddr* const own = interface->ifa_addr;
    if (own == nullptr || own->sa_family != address.sa_family) continue;
    const bool is_same =
        is_v4 ? reinterpret_cast<const sockaddr_in*>(own)->sin_addr.s_addr == v4->sin_addr.s_addr
              : IN6_ARE_ADDR_EQUAL(&reinterpret_cast<const sockaddr_in6*>(own)->sin6_addr,
                                   &v6->sin6_addr) != 0;
    if (is_same) return true;
  }
  return false;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses LookUp(const std::string& name, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) found = nullptr;
  return {found, freeaddrinfo};
}

// Whether `host`, whose first label is all that this machine calls itself, is this machine: by its
// addresses, else by the domain that files or a name server give this machine.
bool IsOwnNameWithDomain(const std::string& host) {
  const Addresses addresses = LookUp(host, 0);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    if (IsOwnAddress(*address->ai_addr)) return true;
  }
  if (addresses != nullptr) return false;
  const Addresses own = LookUp(HostName(), AI_CANONNAME);
  return own != nullptr && own->ai_canonname != nullptr &&
         rankfile::KeyOfHost(own->ai_canonname).name == rankfile::KeyOfHost(host).name;
}

}  // namespace

std::string NameOfKernel() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

std::string HostName() {
  const std::string name = NameOfKernel();
  return rankfile::IsHostName(name) ? name : "localhost";
}

bool IsKnownName(const std::string& host) { return LookUp(host, 0) != nullptr; }

bool IsThisMachine(const std::string& host, const Environment& environment) {
  if (host == HostName()) return true;  // though it may look like an address
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1) {
    return IsOwnAddress(reinterpret_cast<const sockaddr&>(address));
  }
  const rankfile::HostKey key = rankfile::KeyOfHost(host);
  if (key.label == "localhost" || host == ValueOr(environment, "SLURMD_NODENAME", "")) return true;
  const rankfile::HostKey own = rankfile::KeyOfHost(HostName());
  if (!rankfile::SameHost(key.name, own.name)) return false;
  if (key.name == own.name || own.name != own.label) return true;
  static std::map<std::string, bool> known;
  const auto [found, is_new] = known.try_emplace(key.name, false);
  if (is_new) found->second = IsOwnNameWithDomain(host);
  return found->second;
}

}  // namespace launcher
