# SPDX-License-Identifier: Apache-2.0
"""Says who a rank is to a framework, and what of its environment is not so.

usage: frameworks.py mpi|torch

A line for each rank: "rank 1/4 on n2, sum 10", the sum of all ranks' numbers plus one by the framework's own all-reduce, and behind it
what is told otherwise than it is.
"""

import os
import socket
import sys


def by_mpi(number_of, host):
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    return world.Get_rank(), world.Get_size(), world.allreduce(number_of(world.Get_rank())), world.allgather(host)


def by_torch(number_of, host):
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    model(torch.full((1, 1), float(number_of(rank)))).sum().backward()
    hosts = [None] * size
    dist.all_gather_object(hosts, host)
    dist.barrier()
    return rank, size, round(model.module.weight.grad.item() * size), hosts  # DDP averages


def expected(rank, hosts, is_task):
    """The variables of a rank that runs with its peers on these hosts; is_task: of srun."""
    nodes = list(dict.fromkeys(hosts))
    beside = [peer for peer, host in enumerate(hosts) if host == hosts[rank]]
    ranks = {host: ",".join(str(peer) for peer, other in enumerate(hosts) if other == host) for host in nodes}
    told = {
        "RANK": rank, "WORLD_SIZE": len(hosts), "LOCAL_RANK": beside.index(rank), "LOCAL_WORLD_SIZE": len(beside),
        "NODE_RANK": nodes.index(hosts[rank]), "DDLRUN_NODE_COUNT": len(nodes), "DDLRUN_HOST": hosts[rank], "MASTER_ADDR": hosts[0],
        "JAX_COORDINATOR_ADDRESS": f"{hosts[0]}:{os.environ['MASTER_PORT']}",
        "SLURM_JOB_NODELIST": "n[1-3]",
        "DDL_HOST_LIST": ";".join(f"{host}:{ranks[host]}" for host in nodes),
    }  # fmt: skip
    step = {
        "SLURM_PROCID": rank, "SLURM_LOCALID": beside.index(rank), "SLURM_NODEID": nodes.index(hosts[rank]), "SLURM_NTASKS": len(hosts),
        "SLURM_NNODES": len(nodes), "SLURM_NTASKS_PER_NODE": len(beside), "SLURM_STEP_NUM_TASKS": len(hosts),
    }  # fmt: skip
    return told | (step if is_task else dict.fromkeys(step))


def main(how):
    host = socket.gethostname()
    rank, size, total, hosts = (by_mpi if how == "mpi" else by_torch)(lambda rank: rank + 1, host)
    is_task = os.environ["DDLRUN_LAUNCHER"] == "srun"
    wanted = expected(rank, hosts, is_task)
    wrong = [
        f", {name} is {os.environ.get(name)}, not {value}"
        for name, value in wanted.items()
        if os.environ.get(name) != (None if value is None else str(value))
    ]
    os.write(1, f"rank {rank}/{size} on {host}, sum {total}{''.join(wrong)}\n".encode())  # in one piece
    if how == "torch":
        os._exit(0)  # 1.13 and 2.15 abort now and then while Python ends


main(sys.argv[1])
