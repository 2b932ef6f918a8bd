# SPDX-License-Identifier: Apache-2.0
"""Times calls and whole runs of a framework on this machine; torch only.

    environment(device)                  -> "provenance"
    timer_us(n)                          -> what reading the clock twice costs
    dispatch(device, dtype, n)           -> "dispatch": the host's time per call, asynchronous, synchronised every 64 calls
    runs(device, dtype, n)               -> "runs": whole eager inferences and, where there are graphs, captured ones
"""
import platform
import os
import time

from dispatch_model import calls as counted
from dispatch_model import form

SYNCHRONISED_EVERY, WARM = 64, 200


def _synchronise(device):
    if device.type == "cuda":
        import torch
        return lambda: torch.cuda.synchronize(device)
    return lambda: None


def environment(device):
    import torch
    cuda = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if cuda else f"{platform.machine()} processor, no accelerator"
    return {"device": name, "framework": f"PyTorch {torch.__version__}",
            "host": f"{os.cpu_count()} processors, Python {platform.python_version()}"}


def _samples(call, n, synchronise):
    clock = time.perf_counter_ns
    for _ in range(WARM):
        call()
    synchronise()
    out = []
    for i in range(n):
        if i % SYNCHRONISED_EVERY == 0:
            synchronise()
        begin = clock()
        call()
        out.append((clock() - begin) / 1000)
    synchronise()
    return out


def timer_us(n=8000):
    return round(form.at(sorted(_samples(lambda: None, n, lambda: None)), 0.5), 3)


def one_thread(device):
    """The processor as device: threads of a pool that meet would be measured instead of the dispatch."""
    import torch
    if device.type == "cpu":
        torch.set_num_threads(1)


def dispatch(device, dtype, n, say):
    import torch
    from dispatch_model import ops
    out = {}
    with torch.no_grad():
        for name, call in ops.calls(device, dtype).items():
            out[name] = {"calls": n, **form.summary(_samples(call, n, _synchronise(device)), False)}
            say(f"{name:22} {out[name]['quantiles_us'][100]:8.2f} us")
    return out


def _whole(call, n, synchronise):
    clock = time.perf_counter_ns
    for _ in range(max(5, WARM // 10)):
        call()
    synchronise()
    out = []
    for _ in range(n):
        begin = clock()
        call()
        synchronise()
        out.append((clock() - begin) / 1000)
    return out


def _captured(module, arguments):
    """Replays the run's kernels as one submission (CUDA graphs)."""
    import torch
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            module(*arguments)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        module(*arguments)
    return graph.replay


def runs(device, dtype, n, say):
    import torch
    from dispatch_model import ops
    out, synchronise = [], _synchronise(device)
    with torch.no_grad():
        for name, (module, arguments) in ops.models(device, dtype).items():
            calls = counted.count(*ops.models(torch.device("cpu"), torch.float32)[name])
            modes = {"eager": lambda m=module, a=arguments: m(*a)}
            if device.type == "cuda":
                modes["graph"] = _captured(module, arguments)
            for mode, call in modes.items():
                one = {"model": name, "mode": mode, "runs": n, **form.summary(_whole(call, n, synchronise), True)}
                if mode == "eager":
                    one["calls"] = calls
                out.append(one)
                say(f"{name} {mode}: {one['mean_us']:.1f} us, CV {one['std_us'] / one['mean_us']:.3f}")
    return out
