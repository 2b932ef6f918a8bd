#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""npusim --check-layers on one model.

    run_check_layers.py BIN_DIR MODEL CASE_DIR DTYPE TARGET OPTION...

The program as compiled (with OPTIONs of npuc) must agree in every layer. Then one thing at a time is broken in its assembly
or in its constants: exactly the layer that it belongs to must depart. Refusals: no record, another model, a model that is
nowhere. Every pass and step that --skip takes is left out once: the layers of that program agree too.
"""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

LINE = re.compile(r"^ *(\d+)  (agrees|DEPARTS) ", re.M)


def run(*command, cwd=None, status=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=250,
                          cwd=cwd, env=dict(os.environ), stdin=subprocess.DEVNULL)
    if done.returncode != status:
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {done.returncode}, expected {status}\n"
                         f"{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def departing(text):
    return [int(tag) for tag, word in LINE.findall(text) if word == "DEPARTS"]


def must_depart(npusim, program, model, case, tag, what):
    out, err = run(npusim, program, "--inputs", case, f"--check-layers={model}", "-q", status=1)
    if departing(out) != [tag]:
        raise SystemExit(f"{what}: layers {departing(out)} depart, expected {tag}\n{out}{err}")
    if f"first layer that departs: tag {tag} " not in err:
        raise SystemExit(f"{what}: the message does not name tag {tag}:\n{err}")


def broken_instructions(text):
    """(tag, line number, line) with another operation in the chain: one for each layer that has an addition."""
    seen = set()
    for number, line in enumerate(text):
        tag = re.search(r"\btag=(\d+)", line)
        if not tag or int(tag.group(1)) in seen:
            continue
        changed = re.sub(r"\badd (in[12])", r"sub \1", line, count=1)
        if changed != line:
            seen.add(int(tag.group(1)))
            yield int(tag.group(1)), number, changed


def constants(program):
    """Offset and size of section WEIGHTS, and where its checksum stands."""
    count = struct.unpack_from("<I", program, 12)[0]
    for i in range(count):
        entry = 32 + 40 * i
        code, _, offset, stored = struct.unpack_from("<IIQQ", program, entry)
        if code == 5:
            return offset, stored, entry + 32
    raise SystemExit("the program has no constants")


def reseal(program, crc_at, offset, stored):
    struct.pack_into("<I", program, crc_at, zlib.crc32(program[offset:offset + stored]))
    count = struct.unpack_from("<I", program, 12)[0]
    struct.pack_into("<I", program, 24, zlib.crc32(program[32:32 + 40 * count]))
    struct.pack_into("<I", program, 28, zlib.crc32(program[:28]))


def break_constants(npusim, path, model, case, dtype, work):
    """The sign and exponent of some constants, each alone: one layer departs, the same for all bytes of an element."""
    original = bytearray(path.read_bytes())
    offset, stored, crc_at = constants(original)
    size = 4 if dtype == "f32" else 2
    hits = set()
    for step in range(1, 8):
        at = offset + stored * step // 8 // size * size
        program = bytearray(original)
        for i in range(0, 64 * size, size): # some of them may stand for padding or zeros
            program[at + i + size - 1] = 0x44
        reseal(program, crc_at, offset, stored)
        (work / "constant.npu").write_bytes(program)
        done = subprocess.run([npusim, work / "constant.npu", "--inputs", case, f"--check-layers={model}", "-q"],
                              capture_output=True, text=True, timeout=250, stdin=subprocess.DEVNULL)
        tags = departing(done.stdout)
        if done.returncode not in (0, 1) or len(tags) > 2: # two: 64 elements may reach into the next constant
            raise SystemExit(f"constants at {at}: status {done.returncode}, layers {tags}\n{done.stderr}")
        hits.update(tags)
    if len(hits) < 3:
        raise SystemExit(f"broken constants were seen in layers {sorted(hits)} only")


def refusals(npuc, npusim, path, model, case, work):
    other = work / "other.onnx"
    other.write_bytes(model.read_bytes() + b"\0")
    _, err = run(npusim, path, "--inputs", case, f"--check-layers={other}", status=2)
    assert "is not the model that the program was compiled from" in err, err
    alone = work / "alone"
    alone.mkdir()
    (alone / "p.npu").write_bytes(path.read_bytes())
    _, err = run(npusim, alone / "p.npu", "--inputs", case, "--check-layers", cwd=alone, status=2)
    assert f"compiled from {model.name}, which is neither beside" in err, err
    (alone / model.name).write_bytes(model.read_bytes())
    run(npusim, alone / "p.npu", "--inputs", case, "--check-layers", cwd=work)
    (work / "x.nps").write_text(".input \"x\" f16[1] at=0\nhalt\n")
    run(npuc, work / "x.nps", "-o", work / "x.npu")
    _, err = run(npusim, work / "x.npu", "--check-layers", status=2)
    assert "has no record of a model" in err, err


def bad_records(npuc, npusim, path, model, case, work):
    """A record that nobody can compile from is a bad file: status 3, not a wrong command line."""
    text = run(npuc, path, "--disassemble")[0]
    option = re.search(r'^\.option "level" "\d"$', text, re.M).group(0)
    for new, words in (('.option "level" "9"', "-O9: expected -O0"), ('.option "dtype" "f17"', "--dtype f17"),
                       ('.option "skip" "nosuch"', "nosuch"), ('.option "shape" "x"', "x"),
                       ('.option "dim" "n=zero"', "n=zero"), ('.option "const" "x"', "is not NAME=FILE"),
                       ('.option "nosuch" "1"', "option 'nosuch' is not known")):
        (work / "r.nps").write_text(text.replace(option, f"{option}\n{new}"))
        run(npuc, work / "r.nps", "-q", "-o", work / "r.npu")
        _, err = run(npusim, work / "r.npu", "--inputs", case, f"--check-layers={model}", status=3)
        assert words in err and "record" in err, err


def skips(npuc, npusim, model, case, compile_it, work):
    listing, _ = run(npuc, "--list", "passes")
    names = re.findall(r"^(\w+) +-O\d  skip ", listing, re.M)
    assert len(names) > 10, listing
    for name in names:
        run(*compile_it, "--skip", name, "-o", work / "s.npu")
        run(npusim, work / "s.npu", "--inputs", case, f"--check-layers={model}", "-q")


def main():
    binaries, model, case = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
    dtype, target, options = sys.argv[4], sys.argv[5], sys.argv[6:]
    npuc, npusim = binaries / "bin" / "npuc", binaries / "bin" / "npusim"
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        path = work / "p.npu"
        compile_it = [npuc, model, "--dtype", dtype, "--target", target, *options, "-q"]
        run(*compile_it, "-o", path)
        out, _ = run(npusim, path, "--inputs", case, f"--check-layers={model}")
        layers = LINE.findall(out)
        if not layers or departing(out) or f"{len(layers)} layers agree" not in out:
            raise SystemExit(f"the program as compiled:\n{out}")
        refusals(npuc, npusim, path, model, case, work)
        bad_records(npuc, npusim, path, model, case, work)
        skips(npuc, npusim, model, case, compile_it, work)
        # A body that equal layers call would break all of them.
        run(*compile_it, "--skip", "call", "-o", path)
        text = run(npuc, path, "--disassemble")[0].splitlines()
        broken = 0
        for tag, number, line in broken_instructions(text):
            (work / "b.nps").write_text("\n".join(text[:number] + [line] + text[number + 1:]) + "\n")
            run(npuc, work / "b.nps", "-o", work / "b.npu", "-q")
            must_depart(npusim, work / "b.npu", model, case, tag, f"line {number}: {line}")
            broken += 1
        if broken < 5:
            raise SystemExit(f"only {broken} layers could be broken")
        break_constants(npusim, path, model, case, dtype, work)
        print(f"{len(layers)} layers agree, {broken} broken ones were found")


main()
