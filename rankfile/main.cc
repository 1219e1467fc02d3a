// SPDX-License-Identifier: Apache-2.0
//
// ddl-rankfile: checks, converts, expands and compresses the text formats of this folder.

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
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
#include "rankfile/parse_error.h"
#include "rankfile/scanner.h"

namespace {

using rankfile::Placement;

constexpr int kUsage = 64;  // sysexits.h
constexpr int kBadData = 65;
constexpr int kOperatingSystem = 71;

constexpr const char* kFooter =
    "Formats:\n"
    "  hostlist       gpu[025-027,030]               (Slurm)\n"
    "  cpu-list       0-3,8,10-14:2                  (Linux)\n"
    "  rankfile       rank 0=gpu025     slot=0:0-9   (Open MPI)\n"
    "  hostfile       gpu025 slots=4                 (mpirun, ddlrun)\n"
    "  ddl-host-list  gpu025:0,1;gpu026:2,3          (DDL_HOST_LIST)\n"
    "  ddl-options    -mode p:4x2x1x1                (DDL_OPTIONS)\n"
    "FILE is a file, or - for the standard input.\n"
    "Exit codes: 0 done; 64 wrong usage; 65 input that is bad or cannot be read, said as\n"
    "file:line:column: message; 71 output that cannot be written.";

// What a text is, and what to call it in messages.
struct Input {
  std::string source;
  std::string text;
};

struct Arguments {
  std::string file;
  std::string text;  // given on the command line in place of a file
  std::string format;
  std::string from;
  std::string to;
  std::string hosts;
  bool cpus = false;
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

Input ReadInput(const Arguments& arguments) {
  if (arguments.file.empty()) return {.source = "--text", .text = arguments.text};
  if (arguments.file == "-") return {.source = "stdin", .text = ReadAll(stdin, "stdin")};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(
      std::fopen(arguments.file.c_str(), "rb"), &std::fclose);
  if (stream == nullptr) {
    throw std::runtime_error(arguments.file + ": cannot be read: " + std::strerror(errno));
  }
  return {.source = arguments.file, .text = ReadAll(stream.get(), arguments.file)};
}

std::string Count(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

Placement ReadRankfile(const Input& input, const Arguments& arguments) {
  return rankfile::ParseRankfile(input.text, input.source,
                                 rankfile::ExpandHostlist(arguments.hosts, "--hosts"));
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

std::string Check(const Arguments& arguments) {
  const Input input = ReadInput(arguments);
  const std::map<std::string, std::function<std::string()>> describe = {
      {"hostlist",
       [&] { return Count(rankfile::ExpandHostlist(input.text, input.source).size(), "host"); }},
      {"cpu-list",
       [&] { return Count(rankfile::ParseCpuList(input.text, input.source).size(), "CPU"); }},
      {"rankfile", [&] { return DescribePlacement(ReadRankfile(input, arguments)); }},
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
  return input.source + ": " + arguments.format + " ok, " + describe.at(arguments.format)() + "\n";
}

std::string Convert(const Arguments& arguments) {
  const Input input = ReadInput(arguments);
  const std::map<std::string, std::function<Placement()>> read = {
      {"hostlist", [&] { return ReadHostlist(input); }},
      {"rankfile", [&] { return ReadRankfile(input, arguments); }},
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
    const Placement placement = read.at(arguments.from)();
    rankfile::RequireValid(placement);
    return write.at(arguments.to)(placement);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(input.source + ": " + error.what());
  }
}

std::string Expand(const Arguments& arguments) {
  const Input input = ReadInput(arguments);
  std::string output;
  if (arguments.cpus) {
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

// Reads names or numbers with blanks or line ends between them.
std::string Compress(const Arguments& arguments) {
  const Input input = ReadInput(arguments);
  const std::string example = arguments.cpus ? "0 1 2" : "gpu025 gpu026";
  rankfile::Scanner scanner(input.text, input.source);
  std::vector<std::string> hosts;
  std::vector<int> cpus;
  for (scanner.SkipToEntry(); !scanner.AtEnd(); scanner.SkipToEntry()) {
    if (hosts.size() == rankfile::kMaxHosts) {
      scanner.Fail("a hostlist holds at most " + std::to_string(rankfile::kMaxHosts) + " hosts");
    }
    if (arguments.cpus) {
      cpus.push_back(scanner.ReadNumber("a CPU number", 0, rankfile::kMaxCpu));
    } else {
      hosts.push_back(rankfile::ReadHostName(scanner, example));
    }
    if (!rankfile::IsBlank(scanner.Peek()) && !scanner.AtEntryEnd()) {
      scanner.FailExpected("a blank or the end of the line", example);
    }
  }
  return (arguments.cpus ? rankfile::FormatCpuList(cpus) : rankfile::CompressHostlist(hosts)) +
         "\n";
}

// The command that was asked for; set by the subcommand's callback.
using Command = std::string (*)(const Arguments&);

void DescribeOptions(CLI::App& app, Arguments& arguments, Command& command) {
  app.require_subcommand(1);
  app.set_version_flag("--version", DDLRUN_VERSION);
  app.footer(kFooter);
  app.fallthrough(false);
  const std::vector<std::string> placements = {"rankfile", "hostfile", "ddl-host-list", "hostlist"};
  const std::string hosts_help =
      "Hosts of the allocation, a hostlist, for a rankfile that says +n0";
  const auto add_source = [&arguments](CLI::App* subcommand) {
    CLI::Option* file = subcommand->add_option("FILE", arguments.file, "Read this; - is stdin");
    CLI::Option* text = subcommand->add_option("-t,--text", arguments.text, "Read this argument");
    file->excludes(text);
    subcommand->footer(kFooter);
    subcommand->callback([&arguments, subcommand, text] {
      if (arguments.file.empty() && text->count() == 0) {
        throw CLI::RequiredError(subcommand->get_name() + ": FILE, - or --text TEXT");
      }
    });
  };

  CLI::App* check =
      app.add_subcommand("check", "Say whether a text is well formed, and what is in it");
  check->add_option("FORMAT", arguments.format, "What it should be")
      ->required()
      ->check(CLI::IsMember(
          {"hostlist", "cpu-list", "rankfile", "hostfile", "ddl-host-list", "ddl-options"}));
  check->add_option("--hosts", arguments.hosts, hosts_help);
  add_source(check);
  check->parse_complete_callback([&command] { command = Check; });

  CLI::App* convert = app.add_subcommand(
      "convert", "Write what one format says in another; what that cannot hold is dropped");
  convert->add_option("--from", arguments.from, "Format of the input")
      ->required()
      ->check(CLI::IsMember(placements));
  convert->add_option("--to", arguments.to, "Format of the output")
      ->required()
      ->check(CLI::IsMember(placements));
  convert->add_option("--hosts", arguments.hosts, hosts_help);
  add_source(convert);
  convert->parse_complete_callback([&command] { command = Convert; });

  CLI::App* expand = app.add_subcommand("expand", "Print the hosts of a hostlist, one per line");
  expand->add_flag("--cpus", arguments.cpus, "Read a CPU list and print its numbers");
  add_source(expand);
  expand->parse_complete_callback([&command] { command = Expand; });

  CLI::App* compress = app.add_subcommand("compress", "Print the hostlist of the names in a text");
  compress->add_flag("--cpus", arguments.cpus, "Read CPU numbers and print their CPU list");
  add_source(compress);
  compress->parse_complete_callback([&command] { command = Compress; });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Checks, converts, expands and compresses hostlists, rankfiles and their kin.",
               "ddl-rankfile");
  Arguments arguments;
  Command command = nullptr;
  DescribeOptions(app, arguments, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  std::string output;
  try {
    output = command(arguments);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return kBadData;
  }
  std::cout << output << std::flush;
  if (!std::cout) {
    std::cerr << "ddl-rankfile: cannot write the output: " << std::strerror(errno) << "\n";
    return kOperatingSystem;
  }
  return 0;
}
