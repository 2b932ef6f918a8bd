# SPDX-License-Identifier: Apache-2.0
"""A model of many small nodes, each with outputs of its own, and the folder that run_model.py takes.

    m = Model("pads", opset=17)
    x = m.input("x", values)
    y = m.node("Conv", x, m.constant(w), pads=[1, 0, 2, 1])      # an output too, named after the op and a number
    m.write(folder, f16={"rtol": 0, "atol": 2e-2})

References are ONNX Runtime's; where it lacks a form, m.node(..., want=arrays) gives the right values instead.
"""
import json
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Model:
    def __init__(self, name, opset):
        self.name, self.opset = name, opset
        self.nodes, self.inputs, self.constants, self.outputs, self.wanted = [], {}, [], [], {}
        self.types = {}
        self.count = 0

    def input(self, name, values):
        self.inputs[name] = values
        return name

    def constant(self, values, name=None):
        self.count += 1
        name = name or f"c{self.count}"
        values = np.asarray(values)
        if values.dtype == np.float64:
            values = values.astype(np.float32)
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def raw_constant(self, tensor):
        """A TensorProto, for types that numpy lacks."""
        self.constants.append(tensor)
        return tensor.name

    def node(self, op, *inputs, outputs=1, keep=True, want=None, domain="", kinds=None, **attributes):
        """Adds a node; its results' name, or list of names. keep: they are outputs of the model. kinds: their ONNX types,
        where these are not f32. Constants may be given as arrays."""
        self.count += 1
        names = [f"{op}_{self.count}" + (f"_{k}" if outputs > 1 else "") for k in range(outputs)]
        inputs = [self.constant(i) if not isinstance(i, str) else i for i in inputs]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"n{self.count}", domain=domain, **attributes))
        for k, name in enumerate(names):
            self.types[name] = (kinds or [TensorProto.FLOAT] * outputs)[k]
        if keep:
            self.outputs += names
        if want is not None:
            self.wanted.update(zip(names, want if outputs > 1 else [want]))
        return names if outputs > 1 else names[0]

    def proto(self):
        ins = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in self.inputs.items()]
        outs = [helper.make_tensor_value_info(n, self.types[n], None) for n in self.outputs]
        graph = helper.make_graph(self.nodes, self.name, ins, outs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8 if self.opset < 21 else 10)

    def run(self):
        """Reference values by output."""
        import onnxruntime
        missing = [n for n in self.outputs if n not in self.wanted]
        values = dict(self.wanted)
        if missing:
            m = self.proto()
            kept = [o for o in m.graph.output if o.name in missing]
            del m.graph.output[:]
            m.graph.output.extend(kept)
            m = onnx.utils.Extractor(m).extract_model(list(self.inputs), missing) if len(missing) < len(self.outputs) else m
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            session = onnxruntime.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"])
            taken = {i.name for i in session.get_inputs()}
            values.update(zip(missing, session.run(missing, {n: v for n, v in self.inputs.items() if n in taken})))
        return values

    def write(self, root, f32=None, f16=None):
        """Tolerances: f32 defaults to 1e-4 and 1e-5; without f16 the model is tested in f32 only. "fused_only" among f16's:
        values between the nodes overflow that type, so the model is right only where nodes share a kernel."""
        folder = os.path.join(root, self.name)
        case = os.path.join(folder, "case_0")
        os.makedirs(case, exist_ok=True)
        values = self.run()
        onnx.save(self.proto(), os.path.join(folder, "model.onnx"))
        for name, value in self.inputs.items():
            np.save(os.path.join(case, f"in_{name}.npy"), value)
        for name in self.outputs:
            np.save(os.path.join(case, f"out_{name}.right.npy"), np.ascontiguousarray(values[name]))
        tolerance = {"f32": dict({"rtol": 1e-4, "atol": 1e-5, "min_cosine": -1}, **(f32 or {}))}
        if f16:
            tolerance["f16"] = dict({"rtol": 0, "atol": 1e-2, "min_cosine": -1}, **f16)
        meta = {"model": self.name, "opset": self.opset, "reference": "right", "tolerance": tolerance}
        if tolerance.get("f16", {}).pop("fused_only", False):
            meta["fused_only"] = ["f16"]
        with open(os.path.join(folder, "meta.json"), "w") as f:
            json.dump(meta, f, indent=1)
            f.write("\n")
        return f"{self.name:20} {len(self.nodes)} nodes, {len(self.outputs)} outputs"


def numbers(seed, *shape, reach=1.0):
    """Uniform in [-reach, reach], f32."""
    return ((np.random.RandomState(seed).random_sample(shape) * 2 - 1) * reach).astype(np.float32)
