// SPDX-License-Identifier: Apache-2.0

#include "rankfile/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "support/option_values.h"
#include "support/reference.h"

namespace rankfile {
namespace {

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

CLI::App* AddCommand(CLI::App& app, Options& options, Command command, const std::string& name,
                     const std::string& description) {
  CLI::App* subcommand = app.add_subcommand(name, description);
  subcommand->footer(kFooter);
  subcommand->parse_complete_callback([&options, command] { options.command = command; });
  return subcommand;
}

enum class Words { kOne, kSeveral };

// Behind a subcommand's other arguments.
void AddSource(CLI::App* subcommand, Options& options, Words words = Words::kOne) {
  CLI::Option* text = subcommand->add_option("TEXT", options.words, "Read this; - is stdin");
  // CLI11 would take a text in brackets for several.
  if (words == Words::kOne) text->expected(1)->allow_extra_args(false);
  CLI::Option* file =
      subcommand->add_option("-f,--file", options.file, "Read this file; - is stdin");
  file->type_name("FILE")->excludes(text);
  subcommand->callback([&options, subcommand] {
    if (options.words.empty() && options.file.empty()) {
      throw CLI::RequiredError(subcommand->get_name() + ": TEXT, - or --file FILE");
    }
  });
}

void AddHosts(CLI::App* subcommand, Options& options) {
  subcommand
      ->add_option("--hosts", options.hosts,
                   "Hosts of the allocation, a hostlist, for a rankfile that says +n0")
      ->type_name("HOSTLIST");
}

}  // namespace

void DescribeOptions(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  app.set_version_flag("--version", DDLRUN_VERSION);
  app.footer(std::string(kFooter) + "\n" + support::kReferenceLine);
  app.fallthrough(false);
  const std::vector<std::string> placements = {"rankfile", "hostfile", "ddl-host-list", "hostlist"};

  CLI::App* check = AddCommand(app, options, Command::kCheck, "check",
                               "Say whether a text is well formed, and what is in it");
  check->add_option("FORMAT", options.format, "What it should be")
      ->required()
      ->check(CLI::IsMember(
          {"hostlist", "cpu-list", "rankfile", "hostfile", "ddl-host-list", "ddl-options"}));
  AddHosts(check, options);
  AddSource(check, options);

  CLI::App* convert =
      AddCommand(app, options, Command::kConvert, "convert",
                 "Write what one format says in another; what that cannot hold is dropped");
  convert->add_option("--from", options.from, "Format of the input")
      ->required()
      ->check(CLI::IsMember(placements));
  convert->add_option("--to", options.to, "Format of the output")
      ->required()
      ->check(CLI::IsMember(placements));
  AddHosts(convert, options);
  AddSource(convert, options);

  CLI::App* expand = AddCommand(app, options, Command::kExpand, "expand",
                                "Print the hosts of a hostlist, one per line");
  expand->add_flag("--cpus", options.cpus, "Read a CPU list and print its numbers");
  AddSource(expand, options);

  CLI::App* compress =
      AddCommand(app, options, Command::kCompress, "compress",
                 "Print the hostlist of names, which blanks, commas or lines part");
  compress->add_flag("--cpus", options.cpus, "Read CPU numbers and print their CPU list");
  AddSource(compress, options, Words::kSeveral);
  support::RefuseSlips(app);
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
