// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/control_address.h"

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "support/file.h"
#include "support/format_version.h"
#include "trainer/control/control_message.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxAddressBytes = 16384;
constexpr char kNotOurs[] = "not written by a ddltraind of this version";

bool IsLetterOrDigit(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9');
}

bool IsName(const std::string& text) {
  return !text.starts_with('-') && std::all_of(text.begin(), text.end(), [](char letter) {
    return IsLetterOrDigit(letter) || letter == '.' || letter == '-' || letter == '_';
  });
}

}  // namespace

std::string FormatAddress(const ControlAddress& address) {
  Json json = {{"protocol", kControlProtocol},
               {"host", address.host},
               {"node", address.node},
               {"job", address.job},
               {"pid", address.pid},
               {"socket", address.socket},
               {"last", nullptr}};
  if (address.last) json["last"] = Json::parse(FormatStatus(*address.last));
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

ControlAddress ParseAddress(std::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  ControlAddress address;
  try {
    const int protocol = json.at("protocol").get<int>();
    if (protocol > kControlProtocol) {
      throw Error(EX_DATAERR, support::DescribeNewerFormat("the address of a training", protocol,
                                                           kControlProtocol));
    }
    if (protocol < kControlProtocol) throw Error(EX_DATAERR, kNotOurs);
    address.host = json.at("host").get<std::string>();
    address.node = json.at("node").get<std::string>();
    address.job = json.at("job").get<std::string>();
    if (!json.at("pid").is_number_unsigned()) throw Error(EX_DATAERR, "a pid that cannot be one");
    address.pid = json.at("pid").get<std::int64_t>();
    address.socket = json.at("socket").get<std::string>();
    const Json& last = json.at("last");
    if (!last.is_null()) {
      address.last =
          ParseStatus(last.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace));
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(EX_DATAERR, kNotOurs);
  }
  const bool has_names = !address.host.empty() && IsName(address.host) && IsName(address.node) &&
                         IsName(address.job) && address.socket.starts_with('/') &&
                         address.socket.find('\0') == std::string::npos;
  if (!has_names) throw Error(EX_DATAERR, "a host, a job or a socket in it cannot be one");
  return address;
}

std::optional<ControlAddress> ReadAddress(const std::filesystem::path& results_dir) {
  const std::filesystem::path file = results_dir / kControlAddressName;
  const support::WholeFile text = support::ReadWholeFile(file, kMaxAddressBytes);
  if (text.error == ENOENT || text.error == ENOTDIR) return std::nullopt;
  if (text.error != 0) throw OsError("cannot read " + file.string(), text.error);
  try {
    return ParseAddress(text.content);  // "" where the file is none of ours
  } catch (const Error& error) {
    throw Error(error.exit_code(), file.string() + ": " + error.what());
  }
}

}  // namespace trainer
