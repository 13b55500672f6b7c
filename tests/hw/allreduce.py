# SPDX-License-Identifier: GPL-2.0-or-later
"""An all-reduce over all GPUs, one process each: prints the bandwidth as a line of JSON. NCCL writes to standard output too.

The bandwidth of the bus is that of NCCL's own tests: 2 (n - 1) / n bytes of each byte pass each GPU's link.
"""

import json
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing

SIZES = (1 << 20, 64 << 20, 1 << 30)
ROUNDS = 20


def measure(size, rank, world):
    data = torch.ones(size // 4, device='cuda')
    dist.all_reduce(data)
    right = bool((data == world).all())
    for _ in range(4):
        dist.all_reduce(data)
    dist.barrier()
    torch.cuda.synchronize()
    start = time.monotonic()
    for _ in range(ROUNDS):
        dist.all_reduce(data)
    torch.cuda.synchronize()
    seconds = (time.monotonic() - start) / ROUNDS
    return {'bytes': size, 'right': right, 'microseconds': seconds * 1e6, 'algorithm': size / seconds / 1e9, 'bus': size / seconds / 1e9 * 2 * (world - 1) / world}


def work(rank, world):
    torch.cuda.set_device(rank)
    dist.init_process_group('nccl', rank=rank, world_size=world, device_id=torch.device('cuda', rank))
    results = [measure(size, rank, world) for size in SIZES]
    dist.destroy_process_group()
    if rank == 0:
        print('\n' + json.dumps({'torch': torch.__version__, 'nccl': '.'.join(map(str, torch.cuda.nccl.version())), 'gpus': world, 'results': results}), flush=True)


if __name__ == '__main__':
    with socket.create_server(('127.0.0.1', 0)) as free:
        os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(free.getsockname()[1]))
    torch.multiprocessing.spawn(work, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
