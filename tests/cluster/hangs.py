# SPDX-License-Identifier: Apache-2.0
"""A training of PyTorch over gloo in which one rank hangs, in one of the ways of hangs.bats.

usage: hangs.py RANK HOW DIRECTORY

Every rank writes DIRECTORY/step.RANK with each step, so that the test knows when all have come to rest.
"""

import ctypes
import fcntl
import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist

odd, how, directory = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def wait_for_answers(answers):
    return answers.get()


def start_worker(work, answers):
    process = multiprocessing.get_context("fork").Process(target=work, args=(answers,), daemon=True)
    process.start()
    return process


class Samples(torch.utils.data.Dataset):
    """Whose worker, of the odd rank, takes a lock twice."""

    def __init__(self):
        self.lock = threading.Lock()

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        if how == "worker_deadlock" and dist.get_rank() == odd and index >= 8:
            with self.lock, self.lock:
                pass
        return torch.full((4,), float(index))


def hang():
    if how == "sleep":
        time.sleep(10000)
    if how == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "fifo":
        open(directory + "/fifo").read()
    if how == "mount":
        open(os.path.realpath(directory + "/mount") + "/file", "w").write("x")
    if how == "lock":
        with open(directory + "/lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
    if how == "gil":
        ctypes.PyDLL(None).sleep(10000)
    while how == "loop":
        pass
    if how == "collective":
        dist.barrier()
    if how == "child_killed":
        answers = multiprocessing.get_context("fork").Queue()
        os.kill(start_worker(lambda results: time.sleep(10000), answers).pid, signal.SIGKILL)
        wait_for_answers(answers)
    if how == "thread":
        wait_for_answers(queue.Queue())
    if how == "tool":
        subprocess.run(["sh", "-c", "read line < " + directory + "/fifo"], check=False)


def train():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = torch.utils.data.DataLoader(Samples(), batch_size=2, num_workers=1 if how.startswith("worker") else 0)
    for step, batch in enumerate(loader):
        open(directory + "/step." + str(rank), "w").write(str(step))
        if step == 3 and rank == odd:
            hang()
            if how == "behind":
                continue
        if step == 3 and how == "alike":
            dist.recv(torch.zeros(1), (rank + 1) % size)
        loss = model(batch).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss)
        if step == 5:
            break
    dist.barrier()


train()
