// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/name_lookup.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace launcher {

std::string LookUpHost(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error == EAI_SYSTEM) return std::strerror(errno);
  if (error != 0) return gai_strerror(error);
  freeaddrinfo(found);
  return "";
}

NameLookup::NameLookup(const std::string& host, const LookUp& look_up) {
  std::promise<std::string> promise;
  problem_ = promise.get_future();
  if (host.empty()) {
    promise.set_value("");
    return;
  }
  std::thread([host, look_up, answer = std::move(promise)]() mutable {
    answer.set_value(look_up(host));
  }).detach();
}

std::string NameLookup::Problem(std::chrono::steady_clock::time_point end) {
  if (problem_.wait_until(end) == std::future_status::ready) return problem_.get();
  return "the name servers do not answer";
}

}  // namespace launcher
