# SPDX-License-Identifier: Apache-2.0
"""Which calls a framework's eager run of a model makes, by class of dispatch: counted under torch's profiler.

    count(module, arguments)  ->  {class: number}

Counted are the calls that Python makes: what such a call calls inside is part of its own cost, which was measured with it
(linear: a view, a product, a view). Two calls are counted by what they do inside: a change of type or of order that has
nothing to do copies nothing and counts as a view, and attention with a mask of bools first makes it one of numbers, by calls
that are not in the measured cost of attention without a mask.
"""
import collections

# ATen's name -> class of dispatch. What is missing is an error: a new call is given a class here, not guessed.
CLASS = {
    "linear": "linear", "matmul": "matmul", "mm": "matmul", "bmm": "matmul", "add": "add", "add_": "add", "sub": "add",
    "neg": "add", "abs": "add", "le": "add", "ge": "add", "__and__": "add", "cos": "add", "sin": "add", "where": "add",
    "arange": "add", "new_ones": "add", "scalar_tensor": "add", "mul": "mul", "div": "mul", "gelu": "gelu", "silu": "silu",
    "relu": "relu", "relu_": "relu", "softmax": "softmax", "layer_norm": "layer_norm", "batch_norm": "batch_norm",
    "scaled_dot_product_attention": "sdpa", "contiguous": "transpose_contiguous", "cat": "cat", "embedding": "embedding",
    "index": "embedding", "conv2d": "conv2d", "max_pool2d": "max_pool2d", "adaptive_avg_pool2d": "mean", "mean": "mean",
    "all": "mean", "sum": "mean", "ne": "add", "ones": "add", "zeros": "add", "full": "add", "to": "cast", "reshape": "transpose_contiguous", "flatten": "transpose_contiguous",
    "is_nonzero": "cast",  # copies one number back
    "view": "reshape_view", "transpose": "reshape_view", "permute": "reshape_view", "slice": "reshape_view",
    "unsqueeze": "reshape_view", "squeeze": "reshape_view", "expand": "reshape_view", "unbind": "reshape_view",
    "chunk": "reshape_view", "split": "reshape_view", "select": "reshape_view", "dropout": "reshape_view",
    "t": "reshape_view", "alias": "reshape_view", "detach": "reshape_view", "clone": "add", "copy_": "cast",
}
COPIES = {"to", "reshape", "flatten", "contiguous"}  # views, unless they copy
MASK = {"where", "scalar_tensor"}                    # inside attention: the mask's own calls


def _name(event):
    return event.name.removeprefix("aten::") if event.name.startswith("aten::") else None


def _outer(event):
    parent = event.cpu_parent
    while parent is not None and _name(parent) is None:
        parent = parent.cpu_parent
    return parent


def count(module, arguments):
    """Calls of one eager run by class; KeyError names a call without a class. The run before it is not counted."""
    import torch
    with torch.no_grad():
        module(*arguments)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            module(*arguments)
    events = [e for e in profile.events() if _name(e)]
    inside = collections.defaultdict(set)
    for e in events:
        parent = _outer(e)
        while parent is not None:
            inside[parent.id].add(_name(e))
            parent = _outer(parent)
    calls = collections.Counter()
    for e in events:
        name, parent = _name(e), _outer(e)
        if parent is None:
            copies = inside[e.id] & {"copy_", "clone", "_to_copy"}
            calls["reshape_view" if name in COPIES and not copies else CLASS[name]] += 1
        elif _name(parent) == "scaled_dot_product_attention" and name in MASK:
            calls[CLASS[name]] += 1
    return dict(sorted(calls.items()))
