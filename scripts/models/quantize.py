# SPDX-License-Identifier: Apache-2.0
"""Quantised forms of the zoo's models, made by ONNX Runtime's own tools.

    NAME-qdq-s8s8, -qdq-u8s8   static: QuantizeLinear and DequantizeLinear around float ops, weights int8 per channel
    NAME-dyn8                  dynamic: DynamicQuantizeLinear, MatMulInteger
    NAME-w4-qdq, -w4-nbits     int4 weights in blocks of 32: opset 21 DequantizeLinear, com.microsoft MatMulNBits

References are the graph executed literally (tag ort_qdq), not fused: what the file says.
"""
import os
import tempfile

import onnx

import onnx_files
import zoo

CALIBRATION = 16    # sets of inputs
BLOCK = 32


def export_base(base, folder):
    path = os.path.join(folder, "base.onnx")
    spec = zoo.SPECS[base]
    onnx_files.export_onnx(spec.build(), spec.inputs(0), path, spec.ins, spec.outs, spec.exporter, spec.opset)
    return path


def static(base, activations, source, path):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    spec = zoo.SPECS[base]

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.sets = iter([dict(zip(spec.ins, (x.numpy() for x in spec.inputs(1000 + k)))) for k in range(CALIBRATION)])

        def get_next(self):
            return next(self.sets, None)

    prepared = source + ".prepared"
    quant_pre_process(source, prepared, skip_symbolic_shape=True)
    quantize_static(prepared, path, Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QInt8 if activations == "s8" else QuantType.QUInt8, weight_type=QuantType.QInt8,
                    op_types_to_quantize=["Conv", "Gemm", "MatMul", "Add", "GlobalAveragePool", "AveragePool", "MaxPool",
                                          "ReduceMean"],
                    extra_options=dict(ActivationSymmetric=activations == "s8", WeightSymmetric=True))


def dynamic(source, path):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(source, path, weight_type=QuantType.QInt8, per_channel=True)


def int4(form, source, path):
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    m = onnx.load(source)
    if form == "qdq":
        m = onnx.version_converter.convert_version(m, 21)
        m.ir_version = 10
    quantizer = MatMulNBitsQuantizer(m, bits=4, block_size=BLOCK, is_symmetric=True,
                                     accuracy_level=1 if form == "nbits" else None,
                                     quant_format=QuantFormat.QDQ if form == "qdq" else QuantFormat.QOperator)
    quantizer.process()
    onnx.save(quantizer.model.model, path)


def write(name, base, make, folder, cases):
    spec, path = zoo.SPECS[base], os.path.join(folder, "model.onnx")
    with tempfile.TemporaryDirectory() as temporary:
        make(export_base(base, temporary), path)
    m = onnx.load(path)
    onnx_files.strip(m)
    onnx.save(m, path)
    inputs = [spec.inputs(k) for k in range(cases)]
    literal = [onnx_files.run_onnx(path, x, fused=False) for x in inputs]
    fused = [onnx_files.run_onnx(path, x)[:1] for x in inputs]
    largest = max(onnx_files.reach(y[:1]) for y in literal)
    gap = max(onnx_files.worst(a[:1], b) for a, b in zip(literal, fused))
    # Ties flip single steps, which deeper layers spread; with int4 weights activations stay float.
    share = 4e-2 if "bert" in name else 5e-3
    atol = 2e-3 * largest if "-w4-" in name else max(2 * gap, share * largest)
    for k, (x, y) in enumerate(zip(inputs, literal)):
        onnx_files.save_case(os.path.join(folder, f"case_{k}"), spec.ins, x, spec.outs, y, "ort_qdq")
    allowed = {"rtol": 0, "atol": float(f"{atol:.1e}"), "min_cosine": 0.999}
    onnx_files.save_json(os.path.join(folder, "meta.json"), {
        "model": name, "base": base, "reference": "ort_qdq", "tolerance": {"f32": allowed}})
    return f"fused and literal differ by {gap:.1e}, largest {largest:.3g}"


def row(name, base, make, text):
    return name, ((lambda folder, cases: write(name, base, make, folder, cases)), text)


def rows():
    for base, activations in (("resnet-tiny", "s8"), ("resnet-tiny", "u8"), ("mobilenetv2-tiny", "s8"), ("modernbert-tiny", "s8"),
                              ("modernbert-tiny", "u8")):
        yield row(f"{base}-qdq-{activations}s8", base, lambda source, path, b=base, a=activations: static(b, a, source, path),
                  "static int8")
    yield row("encoder-static-dyn8", "encoder-static", dynamic, "dynamic int8")
    for base in ("llama-tiny-prefill", "llama-tiny-decode"):
        for form in ("qdq", "nbits"):
            yield row(f"{base}-w4-{form}", base, lambda source, path, f=form: int4(f, source, path), "int4 weights")


MODELS = dict(rows())
