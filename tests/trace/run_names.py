#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model's names are anybody's bytes: whatever they are, every view follows its format, and what is printed neither
commands a terminal nor has other lines than with harmless names.

    run_names.py BUILD_DIR
"""
import collections
import csv
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import trace_events
import vcd

BUILD = pathlib.Path(sys.argv[1])
NAMES = {
    "plain": b"name",
    "quotes": b"a\"b'c\\d`e",
    "markup": b"</script></style>--><script>alert(1)</script><!--<b>&amp;",
    "lines": b"a\nb\r\nc\rd\te\x0b\x0cf",
    "controls": bytes(range(1, 32)) + b"\x7f\x1b[31mred\x1b]0;title\x07",
    "c1": "a\u0085b\u009b31mc\u2028d\u2029e\u202ef\ufeff".encode(),
    "letters": "caf\u00e9 \u6f22\u5b57 \U0001f600".encode(),
    "bytes": b"\xff\xfe\x80 \xc0\xaf \xed\xa0\x80 \xf5\x80\x80\x80 \xe2\x82",
    "long": b"x" * 10240,
    "wide": "\u00e9".encode() * 100,
    "formats": b"%s%n%d %1$s {0} $(id) ${HOME}",
    "fields": b"a,b;c\td=1\"\"",
    "formula": b"=1+cmd|' /C calc'!A0",
    "waves": b"$end $enddefinitions $end #0 1!",
    "path": b"../../a:b/c",
    "dots": b"..",
    "json": b"\",\"cycles\":0,\"x\":\"",
}
COMMANDS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
faults = []


def expect(condition, text):
    if not condition:
        faults.append(text)
        print("FAULT:", ascii(text)[:600])


def quoted(name):
    return b'"' + b"".join(bytes([c]) if 32 <= c < 127 and c not in b'"\\' else b"\\x%02x" % c for c in name) + b'"'


def model(name):
    x, y, z = (b"%" + quoted(name + end) for end in (b"", b"_y", b"_z"))
    node, first = quoted(name + b"_node"), quoted(name + b"_1")
    return b"\n".join((b"graph " + quoted(name), b"in " + x + b" : f32[4,16]", b"const %w : f32[16,8] = {" + b",".join([b"1"] * 128) + b"}",
                       y + b" = matmul " + x + b", %w node=" + node + b" from=[" + first + b", " + node + b"]",
                       z + b" = map " + y + b" chain=(exp) node=" + quoted(name + b"_2"), b"out " + z, b""))


def run(what, *command, status=0):
    """What is printed, as the terminal gets it: text without commands."""
    done = subprocess.run([str(c) for c in command], capture_output=True, timeout=120)
    expect(done.returncode == status, f"{what}: status {done.returncode}: {done.stderr[-300:]}")
    text = done.stdout + done.stderr
    try:
        text = text.decode()
    except UnicodeDecodeError as error:
        expect(False, f"{what}: {error}")
        text = text.decode("latin-1")
    found = COMMANDS.search(text.replace("\n", ""))
    expect(not found, f"{what}: {found and text[max(0, found.start() - 40):found.start() + 10]!r}")
    return text.count("\n")


def round_trip(key, folder, source, program, mode):
    """Graph text and assembly read back what they print."""
    text, again = folder / "again.nps", folder / "again.npu"
    run(f"{key}: disassembly", BUILD / "bin/npuc", program, "--disassemble", "-o", text)
    run(f"{key}: assembly", BUILD / "bin/npuc", "-q", text, "-o", again)
    run(f"{key}: assembled", BUILD / "bin/npuc", again, "--disassemble", "-o", folder / "more.nps")
    expect((folder / "more.nps").read_text().replace("again.npu", program.name) == text.read_text(), f"{key}: assembly differs")
    graphs = folder / "1/g.npt", folder / "2/g.npt" # with the file of constants beside each
    for graph, of in zip(graphs, (source, graphs[0])):
        graph.parent.mkdir(exist_ok=True)
        run(f"{key}: graph text", BUILD / "bin/npuc", "-q", of, "--target", "tiny", "-O0", "--stop-after", "fold", f"--emit=graph={graph}")
    expect(graphs[0].read_bytes() == graphs[1].read_bytes(), f"{key}: graph text differs")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.inside, self.report = collections.Counter(), None, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        self.inside = dict(attributes).get("id")

    def handle_data(self, data):
        if self.inside == "report":
            self.report += data


def clean(what, value):
    """Texts of JSON: characters, whatever the bytes were."""
    texts = [value]
    while texts:
        v = texts.pop()
        texts += list(v.values()) + list(v) if isinstance(v, dict) else v if isinstance(v, list) else []
        expect(not isinstance(v, str) or v.isprintable() or v.encode(), f"{what}: {v!r}")


def views(key, folder, program):
    """Lines that are printed, and the page's elements."""
    what = lambda view: f"{key}, {program.name}, {view}"
    lines = [run(what("trace"), BUILD / "bin/npusim", program, "--trace", "--what-if=none", "--report", folder / "a.json"),
             run(what("summary"), BUILD / "bin/npusim", program, "--report", folder / "b.json"),
             run(what("diff"), BUILD / "bin/npusim", "--diff", folder / "a.json", folder / "b.json", "--report", folder / "d.json"),
             run(what("layers"), BUILD / "bin/npusim", program, "--check-layers"),
             run(what("info"), BUILD / "bin/npuc", program, "--info"),
             run(what("disassembly"), BUILD / "bin/npuc", program, "--disassemble"),
             run(what("no such output"), BUILD / "bin/npusim", "-q", program, "--output", "no such=x.npy", status=2)]
    outputs = folder / "outputs"
    run(what("outputs"), BUILD / "bin/npusim", "-q", program, "--outputs", outputs, status=2 if key == "long" else 0)
    expect(key == "long" or len(list(outputs.iterdir())) == 1, what("a file for the output"))
    shutil.rmtree(outputs, ignore_errors=True)
    for ending in ("json", "html", "csv", "layers.csv", "vcd"):
        run(what(ending), BUILD / "bin/npusim", "-q", "--no-data", program, f"--trace={folder}/t.{ending}")
    run(what("diff of traces"), BUILD / "bin/npusim", "--diff", folder / "t.json", folder / "a.json")
    for name in ("a.json", "d.json", "t.json"):
        clean(what(name), json.loads((folder / name).read_bytes().decode()))
    for fault in trace_events.Checker(trace_events.load(folder / "t.json")).check()[:3]:
        expect(False, what("trace events: " + fault))
    for name in ("t.csv", "t.layers.csv"):
        rows = list(csv.reader((folder / name).read_bytes().decode().splitlines(keepends=True), strict=True))
        expect(len({len(row) for row in rows}) == 1, what(f"{name}: rows of {sorted({len(r) for r in rows})} fields"))
        for field in (field for row in rows for field in row):
            expect(not COMMANDS.search(re.sub("[\n\r\t]", "", field)), what(f"{name}: {field!r}"))
            expect(field[:1] not in "=+-@\t\r" or not field, what(f"{name}: a formula, {field!r}"))
    try:
        vcd.read(folder / "t.vcd")
    except (vcd.Bad, UnicodeDecodeError) as error:
        expect(False, what(f"waveforms: {error}"))
    page = Page((folder / "t.html").read_bytes().decode())
    return lines, page.tags


def main():
    plain = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for key, text in NAMES.items():
            source = folder / "m.npt"
            source.write_bytes(model(text))
            for mode in ((), ("--eager",)):
                program = folder / f"p{'e' if mode else ''}.npu"
                emit = [f"--emit={kind}" for kind in ("graph", "tiles", "plan", "layers")]
                lines = run(f"{key}: npuc", BUILD / "bin/npuc", source, "--target", "tiny", "-o", program, *emit, *mode)
                round_trip(key, folder, source, program, mode)
                got = lines, *views(key, folder, program)
                want = plain.setdefault(mode, got)
                expect(got == want, f"{key} {mode}: lines {got[:2]}, expected {want[:2]}; elements {got[2] - want[2]}, {want[2] - got[2]}")
    print(f"{len(NAMES)} names, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
