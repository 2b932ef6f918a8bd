#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same ONNX model in other words, to see that nothing is recognised by name or place.

    variants.py MODEL.onnx OUT.onnx [--seed S] [--rename] [--reorder] [--swap] [--constants] [--opset N]

  --rename     every node and value gets a random name, inputs and outputs too (their order stays)
  --reorder    nodes stand in another topological order
  --swap       operands of commutative operators change places
  --constants  initializers become Constant nodes
  --opset N    converted by onnx's version converter, which refuses some models

Without a choice: all but --opset. As a module: variant(model, seed, ways) -> model. Needs the Python package onnx.
"""
import argparse
import random
import string
import sys

try:
    import onnx
    from onnx import helper, version_converter
except ImportError as e:
    sys.exit(print(f"variants: {e}", file=sys.stderr) or 77)

COMMUTATIVE = {"Add", "Mul", "And", "Or", "Xor", "Equal", "Max", "Min", "Sum", "Mean", "BitwiseAnd", "BitwiseOr", "BitwiseXor"}
WAYS = ("constants", "swap", "reorder", "rename")
LETTERS = string.ascii_letters + string.digits + "_/.:"


def no_subgraphs(m):
    for node in m.graph.node:
        for a in node.attribute:
            if a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
                raise ValueError(f"node {node.name} ({node.op_type}) has a subgraph")


def constants(m, draw):
    """Constant nodes, each somewhere before its first reader."""
    inputs = {i.name for i in m.graph.input}
    first = {}
    for place, node in enumerate(m.graph.node):
        for name in node.input:
            first.setdefault(name, place)
    moved = [t for t in m.graph.initializer if t.name not in inputs and t.name in first]
    kept = [t for t in m.graph.initializer if t.name in inputs or t.name not in first]
    nodes = [(place, node) for place, node in enumerate(m.graph.node)]
    for t in moved:
        nodes.append((draw.randint(0, first[t.name]) - .5, helper.make_node("Constant", [], [t.name], name=f"constant {t.name}", value=t)))
    nodes.sort(key=lambda item: item[0])
    del m.graph.node[:], m.graph.initializer[:]
    m.graph.node.extend(node for _, node in nodes)
    m.graph.initializer.extend(kept)


def swap(m, draw):
    for node in m.graph.node:
        if node.op_type in COMMUTATIVE and node.domain in ("", "ai.onnx"):
            names = list(node.input)
            if len(names) == 2:
                names.reverse()
            else:
                draw.shuffle(names)
            del node.input[:]
            node.input.extend(names)


def reorder(m, draw):
    """Picks any node whose inputs are there, again and again."""
    made = {name: place for place, node in enumerate(m.graph.node) for name in node.output}
    waits = [{made[name] for name in node.input if name in made} for node in m.graph.node]
    readers = [[] for _ in waits]
    for place, needed in enumerate(waits):
        for maker in needed:
            readers[maker].append(place)
    ready, order = [place for place, needed in enumerate(waits) if not needed], []
    while ready:
        place = ready.pop(draw.randrange(len(ready)))
        order.append(m.graph.node[place])
        for reader in readers[place]:
            waits[reader].discard(place)
            if not waits[reader]:
                ready.append(reader)
    if len(order) != len(m.graph.node):
        raise ValueError("the graph has a cycle")
    order = [onnx.NodeProto.FromString(node.SerializeToString()) for node in order]
    del m.graph.node[:]
    m.graph.node.extend(order)


def rename(m, draw):
    taken, names = {""}, {"": ""}

    def other(name):
        if name not in names:
            new = ""
            while new in taken:
                new = draw.choice(string.ascii_letters) + "".join(draw.choice(LETTERS) for _ in range(draw.randint(3, 18)))
            taken.add(new)
            names[name] = new
        return names[name]

    for item in [*m.graph.input, *m.graph.output, *m.graph.initializer, *m.graph.value_info]:
        item.name = other(item.name)
    for place, node in enumerate(m.graph.node):
        node.name = other(f"node {place}")
        for side in (node.input, node.output):
            renamed = [other(name) for name in side]
            del side[:]
            side.extend(renamed)
    m.graph.name = other("graph")


def variant(model, seed, ways=WAYS, opset=None):
    """A copy in other words. ValueError: it has subgraphs; what the converter raises when it refuses."""
    m = onnx.ModelProto.FromString(model.SerializeToString())
    no_subgraphs(m)
    draw = random.Random(seed)
    if opset:
        m = version_converter.convert_version(m, opset)
    for way, change in (("constants", constants), ("swap", swap), ("reorder", reorder), ("rename", rename)):
        if way in ways:
            change(m, draw)
    return m


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opset", type=int)
    for way in WAYS:
        parser.add_argument("--" + way, action="store_true")
    args = parser.parse_args()
    ways = [way for way in WAYS if getattr(args, way)]
    onnx.save(variant(onnx.load(args.model), args.seed, ways or ([] if args.opset else WAYS), args.opset), args.out)


if __name__ == "__main__":
    main()
