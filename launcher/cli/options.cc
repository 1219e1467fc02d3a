// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/options.h"

#include <sysexits.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "launcher/base/error.h"
#include "support/build.h"
#include "support/quoting.h"
#include "support/spelling.h"

namespace launcher {
namespace {

struct Answer {
  std::string_view names;  // each between blanks
  std::string_view text;
};

// From the help of torchrun, accelerate launch, deepspeed, srun, mpirun of Open MPI 4 and 5, and
// mpiexec.hydra.
constexpr std::array<Answer, 20> kAnswers = {{
    {" N nnodes num-nodes num-machines ",
     "the nodes are those of the job (#SBATCH --nodes=2), or those of -H or --hostfile"},
    {" node-rank machine-rank rdzv-backend rdzv-endpoint rdzv-id rdzv-conf standalone master-addr "
     "master-port main-process-ip main-process-port local-addr same-network ",
     "leave it out: one ddlrun starts the ranks of all nodes, and sets RANK, WORLD_SIZE, "
     "MASTER_ADDR and MASTER_PORT for them"},
    {" monitor-interval start-method role use-env K kill-on-bad-exit ",
     "leave it out: the first rank that fails ends the job"},
    {" module no-python ", "write: ddlrun python3 -m MODULE, or ddlrun PROGRAM"},
    {" multi-gpu mixed-precision use-deepspeed use-fsdp config-file deepspeed-config "
     "dynamo-backend ",
     "ddlrun starts the program alone: set this in the program, or start 'accelerate launch' on "
     "each node with --ranks-per-node 1"},
    {" redirects tee output-filename output error o e ",
     "--log-dir DIR writes a file for each rank"},
    {" include exclude w nodelist ", "-H n1,n2 names the nodes to run on"},
    {" f ", "--hostfile FILE names the nodes to run on"},
    {" gpus gpus-per-task gres tres-per-task gpu-bind ntasks-per-gpu ",
     "the GPUs are those of the job (#SBATCH --gpus-per-node=4), or --accelerators N of each "
     "node; --gpu-visibility=rank gives each rank its own alone"},
    {" c ", "write: --cpus-per-rank N"},
    {" p partition A account time qos constraint mem mem-per-cpu reservation exclusive J job-name "
     "dependency ",
     "it belongs into the job script (#SBATCH), or to sbatch"},
    {" export export-file env genv envall genvall genvlist ",
     "the variables of the job script are exported; -x VAR=value adds one"},
    {" chdir D wdir wd ", "write: cd DIR, before ddlrun"},
    {" map-by rank-by ", "--rank-order and --ranks-per-node say which rank is on which node"},
    {" allow-run-as-root ", "leave it out: ddlrun gives it to mpirun where root starts it"},
    {" mca prtemca pmixmca prefix use-hwthread-cpus ",
     "--mpiarg passes it to mpirun: --mpiarg \"--mca btl tcp,self\""},
    {" display-map display-allocation report-bindings display ",
     "--dry-run prints which rank runs where, on which cores"},
    {" bootstrap launcher-exec iface ",
     "--launcher=hydra reads Hydra's variables, HYDRA_BOOTSTRAP and HYDRA_IFACE"},
    {" u unbuffered pty input multi-prog overlap exact jobid ",
     "--srunarg passes it to the srun of the ranks: --srunarg --overlap"},
    {" timeout ", "write: timeout -k 60 3600 ddlrun ..."},
}};

// `name` has no dashes in front, and '-' for '_'.  "" for a name that is of none of them.
std::string AnswerToOtherLauncher(const std::string& name) {
  const std::string word = " " + name + " ";
  const auto* answer = std::find_if(kAnswers.begin(), kAnswers.end(), [&](const Answer& candidate) {
    return candidate.names.find(word) != std::string_view::npos;
  });
  return answer == kAnswers.end() ? "" : std::string(answer->text);
}

// The column where the help text of an option starts, and where it ends at most.
constexpr std::size_t kHelpColumn = 30;
constexpr std::size_t kHelpWidth = 100;

// Of names in which some launchers write '_' and others '-': --nproc_per_node.
std::string WithDashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::vector<std::string> NamesOf(const OptionSpec& option) {
  std::vector<std::string> names = option.names;
  names.insert(names.end(), option.also.begin(), option.also.end());
  return names;
}

const OptionSpec* FindOption(const std::vector<OptionSpec>& table, const std::string& name) {
  for (const OptionSpec& option : table) {
    for (const std::string& known : NamesOf(option)) {
      if (WithDashes(name) == WithDashes(known)) return &option;
    }
  }
  return nullptr;
}

// What to use instead of an option that other launchers have and ddlrun has not; "" for any other
// name.
std::string OtherWay(const std::vector<OptionSpec>& table, const std::string& name) {
  if (WithDashes(name) == "log-level") return "-v says more, in ddlrun.log all is said";
  // As srun takes it: -n6.
  const bool is_letter_with_number =
      name.size() > 1 && name.find_first_not_of("0123456789", 1) == std::string::npos;
  for (const OptionSpec& option : table) {
    for (const std::string& letter : option.names) {
      if (!is_letter_with_number || letter != name.substr(0, 1) || option.argument[0] == '\0')
        continue;
      return "write: -" + letter + " " + name.substr(1);
    }
  }
  return AnswerToOtherLauncher(is_letter_with_number ? name.substr(0, 1) : WithDashes(name));
}

LaunchError UnknownOption(const std::vector<OptionSpec>& table, const std::string& dashes,
                          const std::string& name) {
  std::vector<std::string> candidates;
  for (const OptionSpec& option : table) {
    const std::vector<std::string> names = NamesOf(option);
    candidates.insert(candidates.end(), names.begin(), names.end());
  }
  const std::string nearest = support::NearestSpelling(name, candidates);
  std::string message = "unknown option ";
  message.append(dashes).append(name);
  const std::string other_way = OtherWay(table, name);
  if (!other_way.empty()) return LaunchError(EX_USAGE, message + "; " + other_way);
  if (nearest.empty()) return LaunchError(EX_USAGE, message + "; ddlrun --help lists all");
  message.append("; did you mean ").append(dashes).append(nearest).append("?");
  return LaunchError(EX_USAGE, message);
}

bool TakesArgument(const OptionSpec& option) { return option.argument[0] != '\0'; }
bool ArgumentIsOptional(const OptionSpec& option) { return option.argument[0] == '['; }

void AppendWrapped(std::string& text, const std::string& help) {
  std::size_t column = kHelpColumn;
  std::size_t position = 0;
  while (position < help.size()) {
    std::size_t end = help.find(' ', position);
    if (end == std::string::npos) end = help.size();
    if (column + end - position > kHelpWidth) {
      text += "\n" + std::string(kHelpColumn, ' ');
      column = kHelpColumn;
    }
    text += help.substr(position, end - position) + (end < help.size() ? " " : "");
    column += end - position + 1;
    position = end + 1;
  }
  text += "\n";
}

std::string Spellings(const OptionSpec& option) {
  std::string text;
  for (const std::string& name : option.names) {
    if (!text.empty()) text += ", ";
    text.append(name.size() == 1 ? "-" : "--").append(name);
  }
  if (!TakesArgument(option)) return text;
  const std::string argument = option.argument;
  return ArgumentIsOptional(option) ? text + "[=" + argument.substr(1) : text + " " + argument;
}

}  // namespace

Options ParseOptions(const std::vector<OptionSpec>& table,
                     const std::vector<std::string>& arguments) {
  Options options;
  std::size_t next = 0;
  while (next < arguments.size()) {
    const std::string& argument = arguments[next];
    if (argument == "--") {
      ++next;
      break;
    }
    if (const std::string wrong = support::DescribeDash(argument); !wrong.empty()) {
      throw LaunchError(EX_USAGE, "unknown option " + argument + wrong);
    }
    if (argument.size() < 2 || argument[0] != '-') break;
    ++next;
    const std::string dashes(argument[1] == '-' ? 2 : 1, '-');
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(dashes.size(), equals - dashes.size());
    const OptionSpec* option = FindOption(table, name);
    if (option == nullptr) throw UnknownOption(table, dashes, name);

    std::string value;
    if (equals != std::string::npos) {
      if (!TakesArgument(*option)) {
        throw LaunchError(EX_USAGE, "option " + dashes + name + " takes no value");
      }
      value = argument.substr(equals + 1);
    } else if (TakesArgument(*option) && !ArgumentIsOptional(*option)) {
      if (next == arguments.size()) {
        throw LaunchError(EX_USAGE, "option " + dashes + name + " needs a value: " + dashes + name +
                                        " " + option->argument);
      }
      value = arguments[next++];
    }
    if (const std::string wrong = support::DescribeSlip(value); !wrong.empty()) {
      throw LaunchError(EX_USAGE, "option " + dashes + name + " " + wrong);
    }
    const std::string expected = option->set(options, value);
    if (!expected.empty()) {
      throw LaunchError(EX_USAGE,
                        "option " + dashes + name + ": '" + value + "' is not " + expected);
    }
  }
  options.program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(next), arguments.end());
  return options;
}

std::string HelpOf(const OptionSpec& option) {
  std::string text = option.help;
  if (option.default_value[0] != '\0') text += " [" + std::string(option.default_value) + "]";
  if (std::string(option.source) == "IBM") text += " (IBM)";
  for (const std::string& name : option.also) {
    text += (name == option.also.front() ? "; also --" : ", --") + name;
  }
  return text;
}

std::string HelpText(const std::vector<OptionSpec>& table) {
  std::string text =
      "usage: ddlrun [options] program [arguments]\n\n"
      "Starts one rank of the program per GPU over all nodes of the Slurm job, or on the hosts\n"
      "given, or on this machine. Every option may be written with one dash or two; a value\n"
      "follows as the next argument or after '='. (IBM) marks the options of IBM's ddlrun.\n";
  const char* section = "";
  for (const OptionSpec& option : table) {
    if (std::string(section) != option.section) {
      section = option.section;
      text += "\n" + std::string(section) + ":\n";
    }
    std::string line = "  " + Spellings(option);
    line += line.size() + 1 < kHelpColumn ? std::string(kHelpColumn - line.size(), ' ')
                                          : "\n" + std::string(kHelpColumn, ' ');
    text += line;
    AppendWrapped(text, HelpOf(option));
  }
  text +=
      "\nExit code: that of the first rank that failed (128 + n for signal n); 64 usage, 65 wrong\n"
      "input file, 69 a rank could not be started, 70 internal, 71 operating system, 75 a rank\n"
      "stopped early with a checkpoint written, 78 configuration or allocation.\n";
  return text + support::HelpFooter() + "\n";
}

}  // namespace launcher
