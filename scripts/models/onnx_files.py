# SPDX-License-Identifier: Apache-2.0
"""Writing ONNX files and .pt2 archives, running them with ONNX Runtime and torch, storing cases.

A case is a folder with in_NAME.npy and out_NAME.TAG.npy; in file names `/` and `:` are written `_`.
"""
import json
import os
import warnings

import numpy as np
import onnx
import torch

warnings.filterwarnings("ignore")


def export_onnx(model, inputs, path, ins, outs, exporter, opset):
    """One self-contained file, by torch's dynamo or legacy exporter, without stack traces and local paths."""
    names = dict(input_names=ins, output_names=outs, opset_version=opset)
    if exporter == "dynamo":
        torch.onnx.export(model, tuple(inputs), path, dynamo=True, optimize=True, external_data=False, verbose=False, **names)
    else:
        torch.onnx.export(model, tuple(inputs), path, dynamo=False, do_constant_folding=True, **names)
    m = onnx.load(path)
    strip(m)
    onnx.save(m, path)


def strip(m):
    """Takes documentation strings and the exporter's metadata out of a model."""
    def items(nodes):
        for n in nodes:
            yield n
            for a in n.attribute:
                if a.type == onnx.AttributeProto.GRAPH:
                    yield a.g
                    yield from items(a.g.node)
                    yield from a.g.initializer
    everything = [m, m.graph, *items(m.graph.node), *m.graph.initializer, *m.graph.value_info, *m.graph.input, *m.graph.output]
    for f in m.functions:
        everything += [f, *items(f.node)]
    for item in everything:
        item.ClearField("doc_string")
        del item.metadata_props[:]


def export_pt2(model, inputs, path):
    with torch.no_grad():
        program = torch.export.export(model, tuple(inputs), strict=False)
    for module in program.graph_module.modules():
        for node in getattr(getattr(module, "graph", None), "nodes", []):
            for key in ("stack_trace", "nn_module_stack", "source_fn_stack", "from_node", "torch_fn"):
                node.meta.pop(key, None)
    torch.export.save(program, path)
    torch.export.save(program.run_decompositions(), path.removesuffix(".pt2") + ".core.pt2")


def run_onnx(path, inputs, fused=True, threads=2):
    """Outputs of ONNX Runtime's CPU provider; not fused: the graph executed literally."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if fused else level.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    arrays = [x.numpy() if isinstance(x, torch.Tensor) else x for x in inputs]
    return session.run(None, {i.name: x for i, x in zip(session.get_inputs(), arrays)})


@torch.no_grad()
def run_torch(model, inputs, dtype=torch.float32):
    """Outputs in f32, computed in a type."""
    outputs = model(*[i.to(dtype) if i.is_floating_point() else i for i in inputs])
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    return [o.float().numpy() if o.is_floating_point() else o.numpy() for o in outputs]


def worst(a, b):
    """Largest difference between two lists of floating arrays."""
    return max((float(np.abs(x.astype(np.float64) - y).max()) for x, y in zip(a, b) if x.size), default=0.0)


def reach(arrays):
    """Largest magnitude of a list of arrays."""
    return max((float(np.abs(x).max()) for x in arrays if x.size), default=0.0)


def file_name(name):
    return name.replace("/", "_").replace(":", "_")


def save_case(folder, ins, inputs, outs, outputs, tag="ort_fp32"):
    os.makedirs(folder, exist_ok=True)
    for name, x in zip(ins, inputs):
        np.save(os.path.join(folder, f"in_{file_name(name)}.npy"), x.numpy() if isinstance(x, torch.Tensor) else x)
    for name, x in zip(outs, outputs):
        np.save(os.path.join(folder, f"out_{file_name(name)}.{tag}.npy"), x)


def save_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1)
        f.write("\n")
