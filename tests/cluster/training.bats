#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Training on a real Slurm, on 4, 8 and 16 ranks by one script, and programs that are not ours.

# shellcheck disable=SC2016 # the ranks' shells expand, not ours
# shellcheck disable=SC2030,SC2031,SC2154 # run and common.bash set them

load common

setup_file() {
  start_cluster 4 4 8
  has_cluster || return 0
  "$DDLRUN_BUILD/bin/ddldata" synth --classes 10 --images 64 --validation_images 16 --size 40 "$cluster_dir/data" > /dev/null
  export options="--arch=resnet_tiny --data_dir=$cluster_dir/data --classes=10 --image_size=32 --threads=1 --data_threads=1
    --iter_unit=batch --num_iter=10 --display_every=1 --lr_warmup_epochs=0 --mode=train_and_evaluate --augment=none
    --freeze_batch_norm --seed=7 --resume=never --backend=cpu"
  # What all worlds are held to: one process with the whole batch, on the back end that defines every operation.
  empty_home
  # shellcheck disable=SC2086 # words
  hpc ddltraind $options --backend=reference --batch_size=16 > "$cluster_dir/one.out" 2> "$cluster_dir/one.err"
  loss_curve < "$cluster_dir/one.out" > "$cluster_dir/one.losses"
  [ "$(wc -l < "$cluster_dir/one.losses")" -eq 10 ]
}

teardown_file() { stop_cluster; }

# The global batch is 16 images whatever -N is; a user who wants the loss to be the same divides as well.
setup() {
  empty_home
  script train "ddlrun \$LAUNCHER ddltraind ${options//$'\n'/ } --results_dir=run.\$SLURM_JOB_ID --batch_size=\$((16 / (4 * SLURM_NNODES)))"
}

loss_curve() { sed -n 's/.*) total_loss: //p'; }

# trained RANKS: the run in $output was of that many ranks, and learned what one process learns. Batch norm is frozen, so only the
# order of sums differs: 1e-5 after ten steps, as in tests/e2e/ddltraind/repeat.bats, where the reasons stand.
trained() {
  [ "$status" -eq 0 ]
  [[ $output == *"Num GPUs: $1"*"Top-1 Accuracy"* ]]
  loss_curve <<< "$output" > losses
  paste "$cluster_dir/one.losses" losses | awk '
    { error = ($1 - $2) / $1; if (error < 0) error = -error; if (!(error <= 1e-5)) { print "step " NR ": " $0; bad = 1 } }
    END { if (NR != 10 || bad) exit 1 }'
  [ "$(grep -o 'Top-1 Accuracy: .*' <<< "$output")" = "$(grep -o 'Top-1 Accuracy: .*' "$cluster_dir/one.out")" ]
}

@test "one script with -N1, -N2 and -N4 trains as one process does" {
  for nodes in 1 2 4; do
    batch train -N$nodes --gres=gpu:4
    echo "$output"
    trained $((4 * nodes))
  done
}

@test "the same through mpirun" {
  command -v mpirun > /dev/null || skip "mpirun is not installed"
  batch train -N2 --gres=gpu:4 --export=ALL,LAUNCHER=--launcher=mpirun
  echo "$output"
  # PRRTE's daemons get the GPUs of the plan.
  [[ $output =~ /mpirun" "(--prtemca" "plm_slurm_args" "[^" "]+" ")?--map-by" slot " ]]
  trained 8
}

@test "the same in the shell of salloc" {
  run hpc salloc --quiet -N2 --gres=gpu:4 ./train
  echo "$output"
  trained 8
}

@test "the comment of the job says how far the training is" {
  script commented "ddlrun ddltraind ${options//$'\n'/ } --mode=train --results_dir=run.\$SLURM_JOB_ID --batch_size=4 --job_comment" \
    'scontrol show job $SLURM_JOB_ID'
  batch commented -N1 --gres=gpu:2 --time=10
  expect_status 0
  [[ $output == *"Comment=ddltraind step 1/10 loss "*" images/s eta ?"* ]]
  [[ $output != *"warning: --job_comment"* ]]
  # An older Slurm does not tell its jobs when they end: ddlrun asks it.
  [[ $output == *"the job's time ends at "*": training stops with a checkpoint at "* ]]
}

# Slurm knows no time limit below a minute, so the script says when its time ends; the ranks are on two nodes.
@test "a job whose time ends stops with a checkpoint and 75, without a signal" {
  script short 'export SLURM_JOB_END_TIME=$(($(date +%s) + 10))' \
    "ddlrun \$LAUNCHER ddltraind ${options//$'\n'/ } --mode=train --num_iter=1000000 --resume=auto --display_every=1000 --results_dir=run --batch_size=4" \
    'code=$?' 'echo "$((SLURM_JOB_END_TIME - $(date +%s))) s left"' 'exit $code'
  batch short -N2 --gres=gpu:1
  tail -n 5 <<< "$output"
  [ "$status" -eq 75 ]
  [[ $output == *"stopping, since a checkpoint and a step are given "*"stopped for the end of the job's time after step "*$'\n'[1-9]*" s left" ]]
  [ "$(find run/checkpoints -name 'step-*' | wc -l)" -ge 1 ]
}

@test "an MPI program: its rank and size are those of the environment" {
  command -v mpicc > /dev/null || skip "mpicc is not installed"
  cat > who.c << 'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank, size, local, sum;
  MPI_Comm node;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &local);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d/%d local %d sum %d; %s/%s local %s\n", rank, size, local, sum, getenv("RANK"), getenv("WORLD_SIZE"),
         getenv("LOCAL_RANK"));
  return MPI_Finalize();
}
END
  mpicc who.c -o who
  script job 'ddlrun ./who'
  batch job -N2 --gpus=6
  expect_status 0
  local expected=() rank
  for rank in 0 1 2 3; do expected+=("rank $rank/6 local $rank sum 15; $rank/6 local $rank"); done
  for rank in 4 5; do expected+=("rank $rank/6 local $((rank - 4)) sum 15; $rank/6 local $((rank - 4))"); done
  [ "$(grep '^rank ' <<< "$output" | sort)" = "$(printf '%s\n' "${expected[@]}")" ]
}

@test "a script of DDL's age finds its topology, its hosts and, by Open MPI's names, itself" {
  cat > old.py << 'END'
import os
groups = [group.split(":") for group in os.environ["DDL_HOST_LIST"].split(";")]
mode = dict(pair.split(":") for pair in [os.environ["DDL_OPTIONS"].split()[1]])
rank = int(os.environ["RANK"])
host = next(host for host, ranks in groups if str(rank) in ranks.split(","))
assert host == os.uname().nodename, (host, os.uname().nodename)
gpus, nodes = [int(n) for n in mode["p"].split("x")[:2]]
assert gpus * nodes == int(os.environ["WORLD_SIZE"]), mode
open(f"old.{rank}", "w").write(f"{host} {gpus}x{nodes}")
END
  script job 'ddlrun /usr/bin/python3 old.py'
  batch job -N2 --gres=gpu:2
  expect_status 0
  [ "$(cat old.0)" = "n1 2x2" ]
  [ "$(cat old.3)" = "n2 2x2" ]
}

@test "a program of torch.distributed's kind meets at MASTER_ADDR and MASTER_PORT" {
  cat > meet.py << 'END'
import os, socket, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    with socket.create_server(address) as server:
        peers = {int(server.accept()[0].makefile().readline()) for _ in range(world - 1)}
    open("met", "w").write(str(sorted(peers)))
else:
    for _ in range(200):
        try:
            connection = socket.create_connection(address)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    connection.sendall(b"%d\n" % rank)
END
  script job 'ddlrun /usr/bin/python3 meet.py'
  batch job -N2 --gres=gpu:2
  expect_status 0
  [ "$(cat met)" = "[1, 2, 3]" ]
}

@test "PyTorch DDP over env://" {
  /usr/bin/python3 -c 'import torch' 2> /dev/null || skip "python3-torch is not installed: tools/bootstrap check gets it"
  cat > ddp.py << 'END'
import os, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="env://")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
model(torch.full((2, 4), float(dist.get_rank()))).sum().backward()
# Each rank's gradient is 2 x rank; DDP takes the mean.
gradient = model.module.weight.grad[0, 0].item()
open(f"ddp.{dist.get_rank()}", "w").write(f"{dist.get_rank()}/{dist.get_world_size()} {gradient}")
dist.destroy_process_group()
END
  script job 'ddlrun /usr/bin/python3 ddp.py'
  batch job -N2 --gres=gpu:2
  expect_status 0
  [ "$(cat ddp.0 ddp.1 ddp.2 ddp.3)" = "0/4 3.01/4 3.02/4 3.03/4 3.0" ]
}
