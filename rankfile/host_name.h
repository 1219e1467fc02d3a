// SPDX-License-Identifier: Apache-2.0
//
// Host names: which are taken, and when two of them mean one host.  Pure functions, safe from any
// thread.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "rankfile/scanner.h"

namespace rankfile {

inline constexpr std::size_t kMaxHostNameLength = 253;  // RFC 1035, in text form

// Letters, digits, '-', '_' and '.': what is safe in a file name and on a command line.
bool IsHostNameChar(char c);

// A letter or a digit, so that no host is taken for an option or for "..".
bool CanStartHostName(char c);

// Not empty, at most kMaxHostNameLength of these characters, the first as above.
bool IsHostName(std::string_view text);

// Whether the text begins like an address of IPv6, with or without a zone, brackets or slots:
// "fe80::1%eth0", "[::1]:2".  No other host has two colons, or one in brackets.
bool LooksLikeIpv6(std::string_view text);
inline constexpr char kNoIpv6[] =
    "addresses of IPv6 cannot be written here: give a name, which may stand for one";

// Reads one name or refuses; `example` shows the right form.
std::string ReadHostName(Scanner& scanner, std::string_view example);

// What two names are compared by: the name in lower case, and its first label, which is the whole
// name where it is unqualified or an IPv4 address.
struct HostKey {
  std::string name, label;
};
HostKey KeyOfHost(std::string_view name);

// True when the names are equal but for case, or one is the first label of the other: gpu025 and
// gpu025.bede.dur.ac.uk.  Two fully qualified names, or an IPv4 address and anything, are the same
// only when equal.
bool SameHost(std::string_view left, std::string_view right);

// Finds a host that a text spells in two ways (gpu025 here, gpu025.bede.dur.ac.uk there), which
// Open MPI takes for two hosts.  For one thread.
class HostSpellings {
 public:
  // The earlier, different spelling of the same host; nullptr when there is none.  The result lives
  // until the next call.
  const std::string* Add(const std::string& host);

 private:
  std::unordered_map<std::string, std::string> by_name_;         // lower case -> as first written
  std::unordered_map<std::string, std::string> by_first_label_;  // of fully qualified names
};

}  // namespace rankfile
