// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/launch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/launch/child_environment.h"
#include "launcher/launch/mpirun_version.h"
#include "launcher/pipeline/read_allocation.h"
#include "launcher/slurm/slurm_version.h"
#include "launcher/system/files.h"

namespace launcher {
namespace {

constexpr std::chrono::seconds kSrunTimeout{30};

// Reads which types of --mpi srun knows, or why it cannot be used.
void ReadMpiList(CommandOutput* list, LauncherTools* means) {
  if (list == nullptr) {
    means->srun_lacks = "it is not in PATH";
  } else if (!list->Wait(kSrunTimeout)) {
    means->srun_lacks = "'srun --mpi=list' failed";
    const std::string reason = LastLineOf(list->text());
    if (!reason.empty()) means->srun_lacks += ": " + reason;
  } else {
    means->mpi_types = ParseMpiList(list->text());
  }
}

SlurmVersion ReadVersion(CommandOutput* version) {
  const bool is_known = version != nullptr && version->Wait(kSrunTimeout);
  return is_known ? ParseSlurmVersion(version->text()) : kNewestSlurm;
}

bool HasOneNode(const Environment& environment) {
  return ValueOr(environment, "SLURM_JOB_NUM_NODES", "") == "1" &&
         !environment.contains("SLURM_HET_SIZE");
}

// Why mpirun cannot start the ranks; "" when it can.  Sets launch->mpi_runtime and the launcher of
// mpirun, which may be another than "mpirun" where `may_be_another`.  `requested` is the answer of
// mpirun, or null where it was not asked yet.
std::string LookAtMpirun(const std::string& name, const LaunchPlan& plan,
                         const Environment& environment, bool may_be_another,
                         std::unique_ptr<CommandOutput> requested, Launch* launch,
                         std::string* launcher) {
  if (requested == nullptr) requested = QueryMpirun(launch->mpirun, environment);
  if (requested == nullptr) return name + " is not in PATH";
  const MpirunVersion version = AnswerOfMpirun(requested.get());
  if (!version.other_launcher.empty() && may_be_another) {
    *launcher = version.other_launcher;
    launch->mpirun =
        FindLauncher(*launcher).find_program(launch->mpirun, /*is_known=*/true, environment);
    return "";
  }
  launch->mpi_runtime = version.runtime.value_or(launch->mpi_runtime);
  if (version.runtime == MpiRuntime::kOrte) {
    std::vector<std::string> hosts = {NameOfKernel()};
    for (const NodePlacement& node : plan.nodes) hosts.push_back(node.host);
    const std::string host = HostThatOrteRejects(hosts);
    if (!host.empty())
      return launch->mpirun + " of " + version.name + " takes no host named " + host;
  }
  return MpirunLacks(launch->mpirun, version);
}

// Whether the user or the site says by what mpirun starts its daemons.
bool KnowsAnotherWay(const Settings& settings, const Environment& environment) {
  const std::vector<std::string>& words = settings.mpi_arguments;
  return std::find(words.begin(), words.end(), "plm") != words.end() ||
         environment.contains("OMPI_MCA_plm") || environment.contains("PRTE_MCA_plm");
}

}  // namespace

SrunQuestions QuerySrun(const Options& options, const Settings& settings,
                        const Environment& environment) {
  SrunQuestions questions;
  const bool may_be_srun =
      settings.launcher == "auto" || TraitsOf(settings.launcher.c_str()).makes_step;
  const std::string srun = FindProgram("srun", environment);
  if (!may_be_srun || !options.rankfile.empty() || srun.empty() ||
      ValueOr(environment, "SLURM_JOB_ID", "").empty()) {
    return questions;
  }
  // srun would answer with a complaint about any of its variables that has a wrong value.
  const Environment clean = EnvironmentForSrun(environment);
  const auto ask = [&](const char* question) {
    return std::make_unique<CommandOutput>(std::vector<std::string>{srun, question}, clean);
  };
  questions.mpi_list = ask("--mpi=list");
  const bool may_be_pmix = settings.pmi == "auto" || settings.pmi == "pmix";
  const bool is_checked = settings.check == "full" || options.check_only;
  if (may_be_pmix && (!HasOneNode(environment) || is_checked)) questions.version = ask("--version");
  return questions;
}

std::unique_ptr<CommandOutput> QueryMpirunEarly(const Options& options, const Settings& settings,
                                                const Environment& environment) {
  // Inside Slurm `auto` needs mpirun only where srun has no PMIx, which is not known yet.
  const bool may_be_auto = settings.launcher == "auto" && options.ranks.value_or(0) != 1 &&
                           ValueOr(environment, "SLURM_JOB_ID", "").empty();
  const bool is_requested = TraitsOf(settings.launcher.c_str()).is_open_mpi;
  if (!is_requested && options.rankfile.empty() && !may_be_auto) return nullptr;
  return QueryMpirun(FindProgramOrNeighbor(settings.mpirun, environment), environment);
}

Launch ChooseLaunch(const Options& options, const Settings& settings, const PlannedJob& planned,
                    const Environment& environment, const SrunQuestions& questions,
                    std::unique_ptr<CommandOutput> mpirun_version) {
  Launch launch;
  launch.mpirun = FindProgramOrNeighbor(settings.mpirun, environment);
  const bool is_auto = settings.launcher == "auto";
  const LauncherTraits& requested = TraitsOf(settings.launcher.c_str());
  if (!options.rankfile.empty() && !is_auto && !requested.is_open_mpi) {
    throw LaunchError(
        EX_USAGE, "--rankfile is mpirun's; --launcher=" + settings.launcher + " does not read it");
  }
  if (requested.makes_step && planned.job_id.empty()) {
    throw LaunchError(EX_CONFIG,
                      "--launcher=srun needs a Slurm job: submit a batch script, or start a shell "
                      "with salloc -N2 --gres=gpu:4");
  }
  LauncherTools means;
  means.in_slurm = !planned.job_id.empty();
  if (means.in_slurm && options.rankfile.empty() && (is_auto || requested.makes_step)) {
    launch.srun = FindProgram("srun", environment);
    ReadMpiList(questions.mpi_list.get(), &means);
    launch.slurm = ReadVersion(questions.version.get());
  }
  const bool has_srun = means.in_slurm && means.srun_lacks.empty() &&
                        (settings.pmi != "auto" || !FindMpiType("pmix", means.mpi_types).empty());
  const bool needs_none = planned.plan.ranks.size() == 1 && !planned.has_remote_ranks;
  if (!options.rankfile.empty() || requested.is_open_mpi || (is_auto && !has_srun && !needs_none)) {
    means.mpirun_lacks = LookAtMpirun(settings.mpirun, planned.plan, environment,
                                      is_auto && options.rankfile.empty(),
                                      std::move(mpirun_version), &launch, &means.mpirun_launcher);
  }
  if (!options.rankfile.empty()) {
    launch.choice = {"mpirun", "it reads the rankfile", ""};
  } else if (is_auto) {
    launch.choice = ChooseLauncher(planned.plan, planned.has_remote_ranks, settings.pmi, means);
  } else if (requested.makes_step) {
    launch.choice = ChooseSrun(settings.pmi, means);
    launch.choice.reason = "";
  } else {
    launch.choice = {requested.name, "", ""};
    if (const auto find = FindLauncher(requested.name).find_program) {
      launch.mpirun = find(settings.mpirun, /*is_known=*/false, environment);
    }
  }
  const bool may_have_fewer = options.min_nodes && planned.dispensable_nodes > 0;
  const char* const option = options.spare_nodes > 0 ? "--spare-nodes"
                             : may_have_fewer        ? "--min-nodes"
                                                     : nullptr;
  const LauncherTraits& chosen = launch.choice.traits();
  if (option != nullptr && !chosen.makes_step) {
    throw LaunchError(EX_USAGE, std::string(option) + " needs srun to start the ranks, not " +
                                    launch.choice.name + ": only srun can do without a lost node");
  }
  if (chosen.is_open_mpi && !means.mpirun_lacks.empty()) {
    throw LaunchError(EX_UNAVAILABLE,
                      means.mpirun_lacks + ": " + kHowToHaveOpenMpi +
                          "; --launcher=srun inside Slurm and --launcher=local on one machine do "
                          "without");
  }
  launch.mpirun_lacks_srun =
      chosen.is_open_mpi && means.in_slurm && FindProgram("srun", environment).empty();
  if (launch.mpirun_lacks_srun && planned.has_remote_ranks &&
      !KnowsAnotherWay(settings, environment)) {
    throw LaunchError(
        EX_UNAVAILABLE,
        "mpirun starts ranks on other nodes of a Slurm job by srun, which is not in PATH: in a "
        "container start ddlrun outside, and the container for each rank (ddlrun apptainer exec "
        "IMAGE PROGRAM); where ssh reaches the nodes, add --mpiarg '--mca plm rsh'");
  }
  return launch;
}

}  // namespace launcher
