// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/control_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "support/file.h"
#include "support/format_version.h"
#include "support/json.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kStatusWord[] = "status";

// Bytes that are no UTF-8 are replaced.
std::string TextOf(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

// "" for the one that is spoken here, else what is wrong with it.
std::string ProblemOfProtocol(const Json& message) {
  const auto protocol = message.find("protocol");
  if (protocol == message.end() || !protocol->is_number_integer()) {
    return "no message with the number of its protocol";
  }
  if (*protocol == kControlProtocol) return "";
  return fmt::format("protocol {} where {} is spoken: use the ddlctl that came with this ddltraind",
                     protocol->dump(), kControlProtocol);
}

}  // namespace

std::string FormatRequest(const ControlRequest& request) {
  Json json = {{"protocol", kControlProtocol},
               {"do", std::string(request.command ? NameOf(*request.command) : kStatusWord)}};
  if (request.command == ControlCommand::kSet) json["display_every"] = request.display_every;
  return json.dump();
}

ParsedRequest ParseRequest(std::string_view line) {
  const auto reject = [](std::string problem) {
    return ParsedRequest{std::nullopt, std::move(problem)};
  };
  if (line.size() > kMaxRequestBytes) {
    return reject(fmt::format("a message of more than {} bytes", kMaxRequestBytes));
  }
  const auto message = support::ParseJson<Json>(line, kMessageLimits);
  if (!message.is_object()) return reject("no JSON object");
  if (std::string problem = ProblemOfProtocol(message); !problem.empty()) {
    return reject(std::move(problem));
  }
  const auto what = message.find("do");
  if (what == message.end() || !what->is_string()) return reject("nothing to do in it");
  ControlRequest request;
  const auto& word = what->get_ref<const std::string&>();
  std::size_t members = 2;
  if (word != kStatusWord) {
    request.command = ParseControlCommand(word);
    if (!request.command) {
      return reject(what->dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) +
                    ", which is not known here");
    }
  }
  if (request.command == ControlCommand::kSet) {
    const auto value = message.find("display_every");
    const auto number = value == message.end() ? std::nullopt
                                               : support::IntegerOf<std::int64_t>(
                                                     *value, 1, std::int64_t{kMaxDisplayEvery});
    if (!number)
      return reject(fmt::format("set needs display_every, from 1 to {}", kMaxDisplayEvery));
    request.display_every = *number;
    ++members;
  }
  if (message.size() != members) return reject("members that are not known here");
  return {request, ""};
}

std::string FormatAnswer(const ControlAnswer& answer) {
  Json json = {{"protocol", kControlProtocol}};
  if (!answer.rejection.empty()) json["refused"] = answer.rejection;
  if (answer.stack_dump_command > 0) json["stacks_order"] = answer.stack_dump_command;
  std::string text = TextOf(json);
  text.pop_back();
  return text + ",\"status\":" + FormatStatus(answer.status) + "}";
}

ControlAnswer ParseAnswer(std::string_view line) {
  const auto message = support::ParseJson<Json>(line, kMessageLimits);
  if (!message.is_object()) throw Error(EX_DATAERR, "the answer is no JSON object");
  if (const std::string problem = ProblemOfProtocol(message); !problem.empty()) {
    throw Error(EX_DATAERR, "the answer is " + problem);
  }
  ControlAnswer answer;
  if (const auto rejected = message.find("refused"); rejected != message.end()) {
    if (!rejected->is_string()) throw Error(EX_DATAERR, "the answer refuses without a reason");
    answer.rejection = rejected->get<std::string>();
  }
  if (const auto command = message.find("stacks_order"); command != message.end()) {
    const auto number =
        support::IntegerOf<std::uint64_t>(*command, 0, std::numeric_limits<std::uint64_t>::max());
    if (!number) throw Error(EX_DATAERR, "the answer has an order that is not numeric");
    answer.stack_dump_command = *number;
  }
  const auto status = message.find("status");
  if (status == message.end()) throw Error(EX_DATAERR, "the answer has no status");
  answer.status = ParseStatus(TextOf(*status));
  return answer;
}

namespace {

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
  return TextOf(json) + "\n";
}

ControlAddress ParseAddress(std::string_view text) {
  const auto json = support::ParseJson<Json>(text, kMessageLimits);
  ControlAddress address;
  try {
    const int protocol =
        support::IntegerOf<int>(json.at("protocol"), 0, std::numeric_limits<int>::max())
            .value_or(0);
    if (protocol > kControlProtocol) {
      throw Error(EX_DATAERR, support::DescribeNewerFormat("the address of a training", protocol,
                                                           kControlProtocol));
    }
    if (protocol < kControlProtocol) throw Error(EX_DATAERR, kNotOurs);
    address.host = json.at("host").get<std::string>();
    address.node = json.at("node").get<std::string>();
    address.job = json.at("job").get<std::string>();
    const auto pid = support::IntegerOf<std::int64_t>(json.at("pid"), 0,
                                                      std::numeric_limits<std::int32_t>::max());
    if (!pid) throw Error(EX_DATAERR, "a pid that cannot be one");
    address.pid = *pid;
    address.socket = json.at("socket").get<std::string>();
    const Json& last = json.at("last");
    if (!last.is_null()) address.last = ParseStatus(TextOf(last));
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
