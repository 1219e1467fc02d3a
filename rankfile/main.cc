// SPDX-License-Identifier: Apache-2.0
//
// ddl-rankfile: checks, converts, expands and compresses the text formats of this directory.

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "rankfile/cpu_list.h"
#include "rankfile/ddl.h"
#include "rankfile/host_name.h"
#include "rankfile/hostfile.h"
#include "rankfile/hostlist.h"
#include "rankfile/openmpi_rankfile.h"
#include "rankfile/options.h"
#include "rankfile/scanner.h"

namespace {

using rankfile::Command;
using rankfile::Options;
using rankfile::Placement;

constexpr int kUsage = 64;  // sysexits.h
constexpr int kBadData = 65;
constexpr int kOperatingSystem = 71;

// What a text is, and what to call it in messages.
struct Input {
  std::string source;
  std::string text;
};

// Reads one byte more than parsers take, so that they see that there is too much.
std::string ReadAll(std::FILE* stream, const std::string& name) {
  std::string text;
  std::vector<char> chunk(1 << 16);
  while (text.size() <= rankfile::kMaxTextBytes) {
    const std::size_t count = std::fread(chunk.data(), 1, chunk.size(), stream);
    if (count == 0) break;
    text.append(chunk.data(), count);
  }
  if (std::ferror(stream) != 0) {
    throw std::runtime_error(name + ": cannot be read: " + std::strerror(errno));
  }
  return text;
}

Input ReadFile(const std::string& path) {
  if (path == "-") return {.source = "stdin", .text = ReadAll(stdin, "stdin")};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(path.c_str(), "rb"),
                                                               &std::fclose);
  if (stream == nullptr) {
    throw std::runtime_error(path + ": cannot be read: " + std::strerror(errno));
  }
  return {.source = path, .text = ReadAll(stream.get(), path)};
}

Input ReadInput(const Options& options) {
  if (options.words.empty()) return ReadFile(options.file);
  if (options.words == std::vector<std::string>{"-"}) return ReadFile("-");
  std::string text;
  for (const std::string& word : options.words) text += (text.empty() ? "" : " ") + word;
  return {.source = "TEXT", .text = text};
}

// For a text that is refused: whether it is the name of a file that was meant to be read.
std::string FileHint(const Options& options) {
  std::error_code ignored;
  if (options.words.size() != 1 || !std::filesystem::is_regular_file(options.words[0], ignored)) {
    return "";
  }
  return "; to read the file of this name: --file " + options.words[0];
}

std::string Count(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

Placement ReadRankfile(const Input& input, const Options& options) {
  return rankfile::ParseRankfile(input.text, input.source,
                                 rankfile::ExpandHostlist(options.hosts, "--hosts"));
}

// One rank for each name.
Placement ReadHostlist(const Input& input) {
  Placement placement;
  for (std::string& host : rankfile::ExpandHostlist(input.text, input.source)) {
    placement.ranks.push_back({.host = std::move(host), .cores = {}});
  }
  return placement;
}

// Each host once.
std::string WriteHostlist(const Placement& placement) {
  std::vector<std::string> hosts;
  for (const rankfile::HostRanks& host : rankfile::RanksByHost(placement)) {
    hosts.push_back(host.host);
  }
  return rankfile::CompressHostlist(hosts) + "\n";
}

std::string DescribePlacement(const Placement& placement) {
  return Count(placement.ranks.size(), "rank") + " on " +
         Count(rankfile::RanksByHost(placement).size(), "host");
}

std::string Check(const Options& options) {
  const Input input = ReadInput(options);
  const std::map<std::string, std::function<std::string()>> describe = {
      {"hostlist",
       [&] { return Count(rankfile::ExpandHostlist(input.text, input.source).size(), "host"); }},
      {"cpu-list",
       [&] { return Count(rankfile::ParseCpuList(input.text, input.source).size(), "CPU"); }},
      {"rankfile", [&] { return DescribePlacement(ReadRankfile(input, options)); }},
      {"hostfile",
       [&] { return Count(rankfile::ParseHostfile(input.text, input.source).size(), "host"); }},
      {"ddl-host-list",
       [&] { return DescribePlacement(rankfile::ParseDdlHostList(input.text, input.source)); }},
      {"ddl-options",
       [&] {
         const int ranks = rankfile::ParseDdlOptions(input.text, input.source).RankCount();
         return Count(static_cast<std::size_t>(ranks), "rank");
       }},
  };
  return input.source + ": " + options.format + " ok, " + describe.at(options.format)() + "\n";
}

std::string Convert(const Options& options) {
  const Input input = ReadInput(options);
  const std::map<std::string, std::function<Placement()>> read = {
      {"hostlist", [&] { return ReadHostlist(input); }},
      {"rankfile", [&] { return ReadRankfile(input, options); }},
      {"hostfile",
       [&] { return rankfile::PlaceOnHosts(rankfile::ParseHostfile(input.text, input.source)); }},
      {"ddl-host-list", [&] { return rankfile::ParseDdlHostList(input.text, input.source); }},
  };
  const std::map<std::string, std::function<std::string(const Placement&)>> write = {
      {"hostlist", WriteHostlist},
      {"rankfile", rankfile::FormatRankfile},
      {"hostfile",
       [](const Placement& placement) {
         return rankfile::FormatHostfile(rankfile::HostfileOf(placement));
       }},
      {"ddl-host-list",
       [](const Placement& placement) { return rankfile::FormatDdlHostList(placement) + "\n"; }},
  };
  try {
    const Placement placement = read.at(options.from)();
    rankfile::RequireValid(placement);
    return write.at(options.to)(placement);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(input.source + ": " + error.what());
  }
}

std::string Expand(const Options& options) {
  const Input input = ReadInput(options);
  std::string output;
  if (options.cpus) {
    for (const int cpu : rankfile::ParseCpuList(input.text, input.source)) {
      output += std::to_string(cpu) + "\n";
    }
  } else {
    for (const std::string& host : rankfile::ExpandHostlist(input.text, input.source)) {
      output += host + "\n";
    }
  }
  return output;
}

// Reads names or numbers with blanks, a comma or line ends between them.
std::string Compress(const Options& options) {
  const Input input = ReadInput(options);
  const std::string example = options.cpus ? "0 1 2" : "gpu025 gpu026";
  rankfile::Scanner scanner(input.text, input.source);
  std::vector<std::string> hosts;
  std::vector<int> cpus;
  for (scanner.SkipToEntry(); !scanner.AtEnd(); scanner.SkipToEntry()) {
    if (hosts.size() == rankfile::kMaxHosts) {
      scanner.Fail("a hostlist holds at most " + std::to_string(rankfile::kMaxHosts) + " hosts");
    }
    if (options.cpus) {
      cpus.push_back(scanner.ReadNumber("a CPU number", 0, rankfile::kMaxCpu));
    } else {
      hosts.push_back(rankfile::ReadHostName(scanner, example));
    }
    if (!rankfile::IsSpaceOrTab(scanner.Peek()) && !scanner.Eat(',') && !scanner.AtEntryEnd()) {
      scanner.FailExpected("a blank, a comma or the end of the line", example);
    }
  }
  return (options.cpus ? rankfile::FormatCpuList(cpus) : rankfile::CompressHostlist(hosts)) + "\n";
}

std::string Run(const Options& options) {
  switch (options.command) {
    case Command::kCheck:
      return Check(options);
    case Command::kConvert:
      return Convert(options);
    case Command::kExpand:
      return Expand(options);
    case Command::kCompress:
      break;
  }
  return Compress(options);
}

int Print(const std::string& output) {
  std::cout << output << std::flush;
  if (std::cout) return 0;
  std::cerr << "ddl-rankfile: cannot write the output: " << std::strerror(errno) << "\n";
  return kOperatingSystem;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  try {
    const support::Parsed parsed =
        support::Parse(rankfile::DescribeOptions(options),
                       rankfile::MarkTexts({argv + std::min(argc, 1), argv + argc}));
    if (!parsed.answer.empty()) return Print(parsed.answer);
  } catch (const support::UsageError& error) {
    std::cerr << error.what() << "\nRun with --help for more information.\n";
    return kUsage;
  }
  std::string output;
  try {
    output = Run(options);
  } catch (const std::exception& error) {
    std::cerr << error.what() << FileHint(options) << "\n";
    return kBadData;
  }
  return Print(output);
}
