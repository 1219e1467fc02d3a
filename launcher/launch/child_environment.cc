// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/child_environment.h"

#include <iterator>

#include "launcher/protocol/rank_variables.h"

namespace launcher {
namespace {

// The variables of Slurm's tasks, of torch and of Horovod, which the shim takes away too, and those
// of MPI.
std::vector<std::string_view> IdentityNames() {
  std::vector<std::string_view> names(std::begin(kIdentityNames), std::end(kIdentityNames));
  for (const char* name :
       {"OMPI_COMM_WORLD_*", "OMPI_UNIVERSE_*", "OMPI_APP_CTX*", "HYDI_CONTROL_FD",
        "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "PMI_*", "PMIX_*",
        "DDLRUN_RANK_*", kGpuVisibilityVariable}) {
    names.emplace_back(name);
  }
  return names;
}

}  // namespace

// The variables of srun are those of its manual page for 20.11, 22.05 and 24.11 (INPUT ENVIRONMENT
// VARIABLES), and of the names in these programs.  One that a version does not know does no harm.
// Three kinds are not here: wishes of the user that change neither placement nor output
// (SLURM_CPU_FREQ_REQ, SLURM_TASK_PROLOG), variables of Slurm itself (SLURM_STEPMGR, SLURM_CONF),
// and those that ddlrun overrules on srun's command line (SLURM_MPI_TYPE, SLURM_STDINMODE,
// SLURM_KILL_BAD_EXIT).
const std::vector<VariableGroup>& VariableTable() {
  static const std::vector<VariableGroup> table = {
      {ExportPolicy::kOfAnotherRank, IdentityNames(),
       "they say who an enclosing rank is, or the batch script as Slurm's task 0: a rank would "
       "take "
       "them for its own"},
      {ExportPolicy::kOfAnotherRank,
       {"OMPI_ARGV", "OMPI_COMMAND", "OMPI_FILE_LOCATION", "OMPI_FIRST_RANKS",
        "OMPI_MCA_ess_base_jobid", "OMPI_MCA_ess_base_vpid", "OMPI_MCA_initial_wdir",
        "OMPI_MCA_orte_app_num", "OMPI_MCA_orte_bound_at_launch", "OMPI_MCA_orte_ess_*",
        "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_orte_jobfam_session_dir", "OMPI_MCA_orte_launch",
        "OMPI_MCA_orte_local_daemon_uri", "OMPI_MCA_orte_num_nodes",
        "OMPI_MCA_orte_precondition_transports", "OMPI_MCA_orte_top_session_dir",
        "OMPI_NUM_APP_CTX", "PRTE_LAUNCHED"},
       "they say which daemon of `mpirun` an enclosing rank belongs to: an `mpirun` that is "
       "started "
       "there would take itself for a part of that one"},
      {ExportPolicy::kOfAnotherRank,
       {"GROUP_WORLD_SIZE", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE", "TORCHELASTIC_*"},
       "they say who a worker of an enclosing `torchrun` is: rank 0 would wait for the store of "
       "`torchrun` instead of being it"},
      {ExportPolicy::kOptionOfSrun,
       {"SLURM_ARBITRARY_NODELIST", "SLURM_DISTRIBUTION", "SLURM_DIST_PLANESIZE", "SLURM_HOSTFILE",
        "SLURM_NCORES_PER_SOCKET", "SLURM_NNODES", "SLURM_NPROCS", "SLURM_NSOCKETS_PER_NODE",
        "SLURM_NTASKS", "SLURM_NTASKS_PER_CORE", "SLURM_NTASKS_PER_GPU", "SLURM_NTASKS_PER_NODE",
        "SLURM_NTASKS_PER_SOCKET", "SLURM_NTASKS_PER_TRES", "SLURM_SPREAD_JOB",
        "SLURM_USE_MIN_NODES"},
       "where tasks go is the plan's; srun sets most of them anew for the ranks"},
      {ExportPolicy::kOptionOfSrun,
       {"SLURM_CPUS_PER_GPU", "SLURM_CPUS_PER_TASK", "SLURM_CPU_BIND", "SLURM_HINT",
        "SLURM_MEM_BIND", "SLURM_THREADS_PER_CORE", "SRUN_CPUS_PER_TASK"},
       "the shim binds, to what the node has; `mpirun` multiplies its slots by the CPUs of a task. "
       "Ranks are given `SLURM_CPUS_PER_TASK` again"},
      {ExportPolicy::kOptionOfSrun,
       {"SLURM_EXACT", "SLURM_EXCLUSIVE", "SLURM_EXTERNAL_LAUNCHER", "SLURM_OVERLAP",
        "SLURM_WHOLE"},
       "how the step shares with others is decided by `ddlrun`"},
      {ExportPolicy::kOptionOfSrun,
       {"SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU", "SLURM_MEM_PER_NODE"},
       "the ranks have all memory of the job; that of a job from within which this one was "
       "submitted is another, and srun refuses two of these"},
      {ExportPolicy::kOptionOfSrun,
       {"SLURM_LABELIO", "SLURM_SRUN_MULTI", "SLURM_STDERRMODE", "SLURM_STDOUTMODE", "SRUN_ERROR",
        "SRUN_OUTPUT"},
       "`ddlrun` reads what the tasks print, and the program is one, no list of programs"},
      {ExportPolicy::kOptionOfSrun,
       {"SLURM_NO_KILL", "SLURM_WAIT"},
       "a rank or a node that is lost ends the ranks, and `ddlrun` decides whether they restart; "
       "with "
       "any "
       "value but `set`, `yes` or `no` in the first one srun does nothing at all"},
      {ExportPolicy::kOptionOfSrun,
       {"SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV"},
       "ranks and the daemons of `mpirun` get the environment of the script, whatever `sbatch "
       "--export` has put into it"},
      {ExportPolicy::kOptionOfSrun,
       {"SLURM_BCAST", "SLURM_BCAST_EXCLUDE", "SLURM_COMPRESS", "SLURM_SEND_LIBS"},
       "what srun would copy to the nodes is the shim, away from the program it needs beside it"},
      {ExportPolicy::kGpusOfSrun,
       {"SLURM_GPUS", "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_SOCKET", "SLURM_GPUS_PER_TASK",
        "SLURM_GPU_BIND", "SLURM_GRES", "SLURM_STEP_GRES", "SLURM_TRES_BIND",
        "SLURM_TRES_PER_TASK"},
       "every rank sees all GPUs of its node; GPUs per task would hide the others"},
      {ExportPolicy::kOfThisNode,
       {"_", "OLDPWD", "PWD", "SHLVL", "HOSTNAME", "HOST", "LOGNAME", "USER", "HOME", "SHELL",
        "TERM", "DISPLAY", "XAUTHORITY", "DDLRUN_SITE", "SSH_*", "XDG_*", "DBUS_*"},
       "they describe this shell and login"},
      {ExportPolicy::kOfThisNode,
       {"OMPI_*", "ORTE_*", "PMIX_MCA_*", "PRTE_*", "SLURMD_*", "SLURM_*", "SRUN_*"},
       "`mpirun` and Slurm set them on each node, or carry them themselves"},
      {ExportPolicy::kOfThisNode,
       {"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES"},
       "the GPUs that this node was given"},
      {ExportPolicy::kKept,
       {"SLURM_ARRAY_*", "SLURM_JOB_END_TIME", "SLURM_JOB_ID*", "SLURM_JOB_NAME*",
        "SLURM_RESTART_COUNT*", "SLURM_SUBMIT_*"},
       "they are of the job, which is the same on all its nodes"},
  };
  return table;
}

ExportPolicy ExportPolicyOf(std::string_view name) {
  ExportPolicy policy = ExportPolicy::kKept;
  std::size_t longest = 0;
  for (const VariableGroup& group : VariableTable()) {
    for (const std::string_view known : group.names) {
      const bool is_prefix = known.ends_with('*');
      const std::string_view text = known.substr(0, known.size() - (is_prefix ? 1 : 0));
      const bool fits = is_prefix ? name.starts_with(text) : name == text;
      if (!fits || text.size() < longest) continue;
      longest = text.size();
      policy = group.policy;
    }
  }
  return policy;
}

const char* ExportPolicyText(ExportPolicy policy) {
  switch (policy) {
    case ExportPolicy::kKept:
      return "kept";
    case ExportPolicy::kOfAnotherRank:
      return "taken away";
    case ExportPolicy::kOptionOfSrun:
      return "taken away from `srun`, also from that of `mpirun`";
    case ExportPolicy::kGpusOfSrun:
      return "taken away from `srun`, also from that of `mpirun` where it asks for GPUs";
    case ExportPolicy::kOfThisNode:
      return "not carried to other nodes by `mpirun`";
  }
  return "";
}

bool IsRankIdentity(const std::string& name) {
  return ExportPolicyOf(name) == ExportPolicy::kOfAnotherRank;
}

bool IsForwarded(const std::string& name) {
  return !name.empty() && ExportPolicyOf(name) == ExportPolicy::kKept;
}

Environment EnvironmentForSrun(Environment environment) {
  std::erase_if(environment, [](const auto& variable) {
    const ExportPolicy policy = ExportPolicyOf(variable.first);
    return policy == ExportPolicy::kOptionOfSrun || policy == ExportPolicy::kGpusOfSrun;
  });
  return environment;
}

Environment EnvironmentForMpirun(Environment environment) {
  std::erase_if(environment, [](const auto& variable) {
    return ExportPolicyOf(variable.first) == ExportPolicy::kOptionOfSrun;
  });
  return environment;
}

}  // namespace launcher
