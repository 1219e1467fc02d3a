// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/other_launchers.h"

#include <algorithm>
#include <array>
#include <string_view>

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

}  // namespace

std::string AnswerToOtherLauncher(const std::string& name) {
  const std::string word = " " + name + " ";
  const auto* answer = std::find_if(kAnswers.begin(), kAnswers.end(), [&](const Answer& candidate) {
    return candidate.names.find(word) != std::string_view::npos;
  });
  return answer == kAnswers.end() ? "" : std::string(answer->text);
}

}  // namespace launcher
