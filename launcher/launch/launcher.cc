// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "launcher/base/error.h"
#include "launcher/slurm/slurm_version.h"

namespace launcher {
namespace {

// Why srun cannot give `pmi` to the ranks; "" when it can.
std::string LackOf(const std::string& pmi, const LauncherTools& means) {
  if (!means.srun_lacks.empty()) return means.srun_lacks;
  if (!FindMpiType(pmi, means.mpi_types).empty()) return "";
  std::string known;
  for (const std::string& type : means.mpi_types) known += " " + type;
  return "'srun --mpi=list' knows no " + pmi + ":" + known.substr(0, 200);
}

}  // namespace

const Launcher& FindLauncher(const std::string& name) {
  static const std::array<Launcher, 4> launchers = {{
      {"srun", MakeSrunCommands},
      {"mpirun", MakeMpirunCommands},
      {"local", MakeLocalCommands},
      {"hydra", MakeHydraCommands, FindHydra},
  }};
  for (const Launcher& launcher : launchers) {
    if (launcher.name == name) return launcher;
  }
  throw LaunchError(EX_SOFTWARE, "no launcher is called '" + name + "'");
}

LauncherChoice ChooseSrun(const std::string& pmi, const LauncherTools& means) {
  const bool is_requested = pmi != "auto";
  const std::string wanted = is_requested ? pmi : "pmix";
  const std::string type = FindMpiType(wanted, means.mpi_types);
  if (means.srun_lacks.empty() && !type.empty()) {
    return {"srun",
            is_requested ? "inside Slurm, by --pmi=" + pmi : "inside Slurm, and it knows PMIx",
            type};
  }
  const std::string others =
      is_requested ? "choose another --pmi"
                   : "--pmi=none starts programs that need no MPI, such as PyTorch; for others use "
                     "--launcher=mpirun, or ask your admin for Slurm's PMIx plug-in";
  throw LaunchError(EX_UNAVAILABLE, "srun cannot start ranks" +
                                        (is_requested ? " by --pmi=" + pmi : std::string()) + ": " +
                                        LackOf(wanted, means) + "; " + others);
}

LauncherChoice ChooseLauncher(const LaunchPlan& plan, bool has_remote_ranks, const std::string& pmi,
                              const LauncherTools& means) {
  if (means.in_slurm && pmi != "auto") return ChooseSrun(pmi, means);
  const std::string lack = means.in_slurm ? LackOf("pmix", means) : "";
  if (means.in_slurm && lack.empty()) return ChooseSrun(pmi, means);
  const std::string no_srun = lack.empty() ? "" : "srun cannot (" + lack + "), ";
  const bool has_bare_srun =
      means.in_slurm && means.srun_lacks.empty() && !FindMpiType("none", means.mpi_types).empty();
  const std::string hint =
      has_bare_srun ? "; --pmi=none starts programs that need no MPI by srun" : "";
  const bool has_mpirun = means.mpirun_lacks.empty();
  if (has_remote_ranks && has_mpirun)
    return {means.mpirun_launcher, no_srun + "it reaches other machines" + hint, ""};
  if (has_remote_ranks && has_bare_srun) {
    return {"srun",
            "without PMI (" + lack + ") as " + means.mpirun_lacks +
                ": MPI programs do not find each other, those that meet "
                "at MASTER_ADDR (PyTorch, NCCL) do; --pmi=none says so yourself",
            "none"};
  }
  if (has_remote_ranks) {
    throw LaunchError(EX_UNAVAILABLE, no_srun +
                                          "ranks on other machines need Open MPI's mpirun, but " +
                                          means.mpirun_lacks + ": " + kHowToHaveOpenMpi);
  }
  if (plan.ranks.size() == 1) return {"local", no_srun + "one rank needs no mpirun", ""};
  if (has_mpirun) return {means.mpirun_launcher, no_srun + "it is installed" + hint, ""};
  return {
      "local",
      no_srun + means.mpirun_lacks + ": in each rank an MPI program would be a world of its own",
      ""};
}

std::vector<ChildCommand> MakeLocalCommands(const LaunchRequest& job) {
  if (job.has_remote_ranks || job.plan.nodes.size() != 1) {
    std::string hosts;
    for (const NodePlacement& node : job.plan.nodes) hosts += " " + node.host;
    throw LaunchError(EX_CONFIG,
                      "--launcher=local starts ranks on this machine only, the plan is "
                      "for:" +
                          hosts + "; use --launcher=mpirun");
  }
  Environment environment = job.environment;
  for (const auto& [name, value] : job.rank_settings) environment[name] = value;
  const std::vector<std::string> strings = ToStrings(environment);

  std::vector<ChildCommand> commands;
  for (const RankPlacement& rank : job.plan.ranks) {
    ChildCommand command;
    command.rank = rank.rank;
    command.argv = {job.shim, "--rank", std::to_string(rank.rank), "--"};
    command.argv.insert(command.argv.end(), job.program.begin(), job.program.end());
    command.environment = strings;
    commands.push_back(std::move(command));
  }
  return commands;
}

std::vector<std::string> WithMoreColons(std::vector<std::string> program) {
  for (std::string& word : program) {
    if (IsOfColons(word.c_str())) word += ':';
  }
  return program;
}

PlainPath::PlainPath(const std::string& path) : path_(path) {
  if (path.find_first_of(":-") == std::string::npos) return;
  file_ = support::Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_.is_open()) return;
  path_ = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_.fd());
}

}  // namespace launcher
