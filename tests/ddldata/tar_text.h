// SPDX-License-Identifier: Apache-2.0
//
// Tar archives, and their headers one by one, as text: also such as no program would write.

#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace trainer {

// The checksum of a header's bytes in its field.
inline std::string WithTarChecksum(std::string header) {
  constexpr std::size_t kAt = 148;
  header.replace(kAt, 8, "        ");
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  return header.replace(kAt, 7, std::string(digits, 7));
}

// POSIX's, of 512 bytes.
inline std::string TarHeader(const std::string& name, std::size_t size, char type = '0',
                             const std::string& prefix = "") {
  std::string header(512, '\0');
  header.replace(0, std::min<std::size_t>(name.size(), 100), name.substr(0, 100));
  header.replace(100, 7, "0000644");
  char digits[12];
  std::snprintf(digits, sizeof digits, "%011zo", size);
  header.replace(124, 11, digits);
  header[156] = type;
  header.replace(257, 8, std::string("ustar\00000", 8));
  header.replace(345, prefix.size(), prefix);
  return WithTarChecksum(header);
}

inline std::string TarPadded(std::string data) {
  data.resize((data.size() + 511) / 512 * 512, '\0');
  return data;
}

inline std::string TarMemberText(const std::string& name, const std::string& data,
                                 char type = '0') {
  return TarHeader(name, data.size(), type) + TarPadded(data);
}

// "LENGTH KEY=VALUE\n".
inline std::string PaxRecord(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  std::size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

inline std::string TarEnd() { return std::string(1024, '\0'); }

// A whole archive of files.
inline std::string TarOf(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string text;
  for (const auto& [name, data] : files) text += TarMemberText(name, data);
  return text + TarEnd();
}

}  // namespace trainer
