// SPDX-License-Identifier: Apache-2.0

#include "rankfile/options.h"

#include <algorithm>
#include <utility>

#include "support/build.h"

namespace rankfile {
namespace {

using support::MakeCommand;
using support::OneOf;
using support::Option;
using support::Required;

constexpr const char* kFooter =
    "Formats:\n"
    "  hostlist       gpu[025-027,030]               (Slurm)\n"
    "  cpu-list       0-3,8,10-14:2                  (Linux)\n"
    "  rankfile       rank 0=gpu025     slot=0:0-9   (Open MPI)\n"
    "  hostfile       gpu025 slots=4                 (mpirun, ddlrun)\n"
    "  ddl-host-list  gpu025:0,1;gpu026:2,3          (DDL_HOST_LIST)\n"
    "  ddl-options    -mode p:4x2x1x1                (DDL_OPTIONS)\n"
    "TEXT is the text itself; - is the standard input, --file FILE a file.\n"
    "Exit codes: 0 done; 64 wrong usage; 65 input that is bad or cannot be read, said as\n"
    "file:line:column: message; 71 output that cannot be written.";

constexpr char kText[] = "Read this; - is stdin";

Option TextOf(Options& options) {
  // Not a list, of which CLI11 would take a text in brackets for several.
  return {"TEXT", [&options](const std::string& text) { options.words = {text}; }, "", kText};
}

Option HostsOf(Options& options) {
  return {"--hosts", &options.hosts, "HOSTLIST",
          "Hosts of the allocation, a hostlist, for a rankfile that says +n0"};
}

Option FormatOf(const std::string& name, std::string& format, const std::string& help) {
  return Required(
      OneOf({name, &format, "", help}, {"rankfile", "hostfile", "ddl-host-list", "hostlist"}));
}

// `rows`, of which the last is the text, and the file that may be given in its place.
support::Command Reading(Options& options, Command command, const std::string& name,
                         const std::string& help, std::vector<Option> rows) {
  rows.push_back({"-f,--file", &options.file, "FILE", "Read this file; - is stdin"});
  rows.back().excludes = "TEXT";
  support::Command made = MakeCommand(options.command, command, name, help, std::move(rows));
  made.finish = [&options, name]() -> std::string {
    if (!options.words.empty() || !options.file.empty()) return "";
    return name + ": TEXT, - or --file FILE is required";
  };
  return made;
}

}  // namespace

support::Program DescribeOptions(Options& options) {
  support::Program program = {.version = DDLRUN_VERSION,
                              .footer = std::string(kFooter) + "\n" + support::HelpFooter()};
  program.needs_command = true;
  program.adds_hints = false;
  program.root.name = "ddl-rankfile";
  program.root.help =
      "Checks, converts, expands and compresses hostlists, rankfiles and their kin.";
  program.root.commands = {
      Reading(
          options, Command::kCheck, "check", "Say whether a text is well formed, and what is in it",
          {Required(OneOf(
               {"FORMAT", &options.format, "", "What it should be"},
               {"hostlist", "cpu-list", "rankfile", "hostfile", "ddl-host-list", "ddl-options"})),
           HostsOf(options), TextOf(options)}),
      Reading(options, Command::kConvert, "convert",
              "Write what one format says in another; what that cannot hold is dropped",
              {FormatOf("--from", options.from, "Format of the input"),
               FormatOf("--to", options.to, "Format of the output"), HostsOf(options),
               TextOf(options)}),
      Reading(options, Command::kExpand, "expand", "Print the hosts of a hostlist, one per line",
              {{"--cpus", &options.cpus, "", "Read a CPU list and print its numbers"},
               TextOf(options)}),
      Reading(options, Command::kCompress, "compress",
              "Print the hostlist of names, which blanks, commas or lines part",
              {{"--cpus", &options.cpus, "", "Read CPU numbers and print their CPU list"},
               {"TEXT", &options.words, "", kText}})};
  return program;
}

std::vector<std::string> MarkTexts(std::vector<std::string> arguments) {
  const auto is_text = [](const std::string& argument) {
    return argument.size() > 1 && argument[0] == '-' && argument[1] != '-' &&
           argument.find(' ') != std::string::npos;
  };
  const auto text = std::find_if(arguments.begin(), arguments.end(), is_text);
  if (text != arguments.end() && std::find(arguments.begin(), text, "--") == text) {
    arguments.insert(text, "--");
  }
  return arguments;
}

}  // namespace rankfile
