// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/nccl_ras.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "support/descriptor.h"
#include "support/json.h"

namespace launcher {
namespace {

using RasClock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::size_t kMaxRasBytes = std::size_t{64} << 20;
constexpr support::JsonLimits kRasLimits = {
    .bytes = kMaxRasBytes, .depth = 16, .values = 4'000'000};

bool WaitFor(int fd, short events, RasClock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - RasClock::now());
  pollfd ready = {fd, events, 0};
  return left.count() > 0 && poll(&ready, 1, static_cast<int>(left.count())) > 0;
}

support::Descriptor Connect(const std::string& address, RasClock::time_point deadline) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) != 0) return {};
  support::Descriptor result;
  for (const addrinfo* one = found; one != nullptr && !result.is_open(); one = one->ai_next) {
    support::Descriptor fd(
        socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, one->ai_protocol));
    if (!fd.is_open()) continue;
    int error = connect(fd.fd(), one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS && WaitFor(fd.fd(), POLLOUT, deadline)) {
      socklen_t size = sizeof(error);
      getsockopt(fd.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) result = std::move(fd);
  }
  freeaddrinfo(found);
  return result;
}

std::string TextIn(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

template <typename Int>
std::optional<Int> NumberIn(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end()
             ? std::nullopt
             : support::IntegerOf<Int>(*found, 0, std::numeric_limits<Int>::max());
}

const json& ListIn(const json& object, const char* name) {
  static const json none = json::array();
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->is_array() ? *found : none;
}

// Those that were launched.
std::vector<CollectiveCount> CountsIn(const json& rank) {
  std::vector<CollectiveCount> counts;
  const auto found = rank.find("collective_counts");
  if (found == rank.end() || !found->is_object()) return counts;
  for (const auto& [name, value] : found->items()) {
    const auto count =
        support::IntegerOf<long long>(value, 0, std::numeric_limits<long long>::max());
    if (count && *count > 0 && counts.size() < kMaxCollectives) {
      counts.push_back({name.substr(0, 64), *count});
    }
  }
  return counts;
}

}  // namespace

std::string AskRas(const std::string& address, RasClock::time_point deadline) {
  const support::Descriptor fd = Connect(address, deadline);
  if (!fd.is_open()) return "";
  constexpr std::string_view kQuestion = "SET FORMAT json\nVERBOSE STATUS\n";
  // It fits into the buffer of the socket.
  if (send(fd.fd(), kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kQuestion.size()))
    return "";
  std::string answer;
  std::array<char, 65536> part;
  while (answer.size() < kMaxRasBytes && WaitFor(fd.fd(), POLLIN, deadline)) {
    const ssize_t size = read(fd.fd(), part.data(), part.size());
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size <= 0) break;
    answer.append(part.data(), static_cast<std::size_t>(size));
  }
  return answer;
}

std::map<pid_t, std::vector<CommunicatorFacts>> ParseRas(std::string_view answer,
                                                         const std::set<std::string>& hosts,
                                                         std::string* problem) {
  std::map<pid_t, std::vector<CommunicatorFacts>> result;
  // "OK" to the format comes first.
  const std::size_t begin = std::min(answer.find('{'), answer.size());
  const json status = support::ParseJson(answer.substr(begin), kRasLimits);
  if (!status.is_object()) {
    *problem = answer.starts_with("ERROR: Unknown command")
                   ? "this NCCL does not tell its state as JSON (2.28.7 and later do)"
                   : "NCCL's answer about its state is not whole";
    return result;
  }
  for (const json& communicator : ListIn(status, "communicators")) {
    for (const json& rank : ListIn(communicator, "ranks")) {
      if (!rank.is_object() || !hosts.contains(TextIn(rank, "host"))) continue;
      const auto pid = NumberIn<pid_t>(rank, "pid");
      const auto number = NumberIn<int>(rank, "rank");
      const auto size = NumberIn<int>(communicator, "size");
      if (!pid || !number || !size) continue;
      std::vector<CommunicatorFacts>& of_process = result[*pid];
      if (of_process.size() == kMaxCommunicators) continue;
      of_process.push_back(
          {(TextIn(communicator, "hash") + " " + TextIn(communicator, "secondary_hash"))
               .substr(0, 128),
           *number, *size, CountsIn(rank)});
    }
  }
  return result;
}

std::set<std::string> AddressesOfThisNode() {
  std::set<std::string> addresses;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return addresses;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    const int family = one->ifa_addr == nullptr ? AF_UNSPEC : one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::array<char, NI_MAXHOST> text = {};
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(one->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
      continue;
    const std::string address = text.data();
    addresses.insert(address.substr(0, address.find('%')));  // without the interface
  }
  freeifaddrs(first);
  return addresses;
}

}  // namespace launcher
