# SPDX-License-Identifier: Apache-2.0
# What is wrong with the ranks of one launch, a line for each fault; nothing where all is right.
#   jq -s -r -f configurations.jq --slurpfile plan FILE --arg nodes WANTED --arg launcher srun|mpirun, on what the ranks printed
# plan: what `ddlrun --dry-run=json` printed. nodes: the node of each rank ("0101" by its number, "n3 n1" by name), how many ranks
# ("4 ranks"), or "" for any plan.

def numbers: map(tonumber);
# The node that a host is: n3 of host3, of n3 and of 10.77.1.3.
def node_of: "n" + capture("(?<number>[0-9]+)$").number;
def unless_equal($what; $is; $wanted): if $is == $wanted then empty else "\($what) is \($is), not \($wanted)" end;
def unless_unset($what; $is; $wanted): if $is == null then empty else unless_equal($what; $is; $wanted | tostring) end;

. as $ranks
| $plan[0].ranks as $planned
| ($planned | map(.host) | unique | length) as $node_count
| ($ranks | map(select(.RANK == "0")) | first.host) as $host_of_rank_0
| ($ranks | group_by(.host) | map({key: .[0].host, value: map(.RANK | tonumber) | sort}) | from_entries) as $ranks_of
| ($ranks_of | map_values(length) | [.[]] | unique | length == 1) as $is_uniform
| ([$ranks_of | to_entries[] | {key: (.key | node_of), value}] | from_entries) as $ranks_of_node
| (if $nodes == "" then empty elif $nodes | endswith("ranks") then
    unless_equal("the number of planned ranks"; "\($planned | length) ranks"; $nodes)
  elif $nodes | startswith("n") then
    unless_equal("the plan"; [$planned[].host] | join(" "); $nodes)
  else
    unless_equal("the plan"; [$planned[].node | tostring] | join(""); $nodes)
  end),
  unless_equal("the ranks that ran"; $ranks | map(.RANK) | numbers | sort; [range($planned | length)]),
  ($ranks[]
   | . as $rank
   | $planned[.RANK | tonumber] as $wanted
   | $ranks_of[.host] as $beside
   | (unless_equal("its node"; .host | node_of; $wanted.host),
      unless_equal("DDLRUN_HOST"; .DDLRUN_HOST; $wanted.host),
      unless_equal("HOROVOD_HOSTNAME"; .HOROVOD_HOSTNAME; $wanted.host),
      unless_equal("WORLD_SIZE"; .WORLD_SIZE; $planned | length | tostring),
      unless_equal("LOCAL_RANK"; .LOCAL_RANK; $beside | index($rank.RANK | tonumber) | tostring),
      unless_equal("LOCAL_WORLD_SIZE"; .LOCAL_WORLD_SIZE; $beside | length | tostring),
      unless_equal("NODE_RANK"; .NODE_RANK; $wanted.node | tostring),
      unless_equal("DDLRUN_LAUNCHER"; .DDLRUN_LAUNCHER; $launcher),
      unless_equal("the number of GPUs in CUDA_VISIBLE_DEVICES"; .CUDA_VISIBLE_DEVICES // "" | split(",") | length | tostring;
                   .DDLRUN_GPUS),
      unless_equal("DDL_HOST_LIST";
                   .DDL_HOST_LIST | split(";") | map(split(":") | {key: .[0], value: .[1] | split(",") | numbers}) | from_entries;
                   $ranks_of_node),
      # A name that the nodes know, or the address.
      (if $node_count > 1 and ([$host_of_rank_0, "10.77.1." + ($host_of_rank_0 | node_of)[1:]] | index($rank.MASTER_ADDR)) == null then
         "MASTER_ADDR is \(.MASTER_ADDR), and rank 0 runs on \($host_of_rank_0)"
       else empty end),
      unless_unset("PMIX_RANK"; .PMIX_RANK; $rank.RANK),
      unless_unset("PMI_RANK"; .PMI_RANK; $rank.RANK),
      unless_unset("OMPI_COMM_WORLD_RANK"; .OMPI_COMM_WORLD_RANK; $rank.RANK),
      unless_unset("OMPI_COMM_WORLD_LOCAL_RANK"; .OMPI_COMM_WORLD_LOCAL_RANK; $rank.LOCAL_RANK),
      unless_unset("what MPI_Comm_rank and MPI_Comm_size say"; .mpi; "\($rank.RANK)/\($rank.WORLD_SIZE)"),
      # What frameworks read: always right, and all there in a step of srun.
      ([["SLURM_PROCID", $rank.RANK], ["SLURM_LOCALID", $rank.LOCAL_RANK], ["SLURM_NODEID", $rank.NODE_RANK],
        ["SLURM_NTASKS", $rank.WORLD_SIZE], ["SLURM_NNODES", $node_count],
        (if $is_uniform then ["SLURM_NTASKS_PER_NODE", $rank.LOCAL_WORLD_SIZE] else empty end)][]
       | if $rank[.[0]] == null and $launcher == "srun" then "\(.[0]) is not set, where \(.[1]) is right"
         else unless_unset(.[0]; $rank[.[0]]; .[1]) end))
   | "rank \($rank.RANK): \(.)")
