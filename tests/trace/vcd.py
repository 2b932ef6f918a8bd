# SPDX-License-Identifier: Apache-2.0
"""A strict reader of value change dumps (IEEE 1364-2005, 18.2): anything that the grammar does not allow is an error.

    variables, end = vcd.read(path)     variables: {"npu.mxu.busy": [(time, value), ...]}, value as in the file

Values are texts of 0, 1, x and z without leading zeros, or floats; times are in units of the time scale.
"""
import gzip
import re

KINDS = {"event", "integer", "parameter", "real", "realtime", "reg", "supply0", "supply1", "time", "tri", "triand", "trior",
         "trireg", "tri0", "tri1", "wand", "wire", "wor"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*$")
CODE = re.compile(r"[!-~]+$")


class Bad(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Bad(text)


def words_of(path):
    data = open(path, "rb").read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return iter(data.decode("ascii").split())


def until_end(words):
    out = []
    for word in words:
        if word == "$end":
            return out
        need(not re.match(r"\$[a-z]{3}", word), f"{word} inside a section")  # codes may begin with $, too
        out.append(word)
    raise Bad("a section without $end")


def declarations(words):
    scopes, variables, seen = [], {}, set()
    for word in words:
        body = until_end(words)
        if word == "$enddefinitions":
            need(not body and not scopes, "definitions end inside a scope")
            need("$timescale" in seen, "no $timescale")
            return variables
        if word == "$scope":
            need(len(body) == 2 and body[0] in {"begin", "fork", "function", "module", "task"} and NAME.match(body[1]),
                 f"scope {body}")
            scopes.append(body[1])
        elif word == "$upscope":
            need(scopes and not body, "more $upscope than $scope")
            scopes.pop()
        elif word == "$timescale":
            need(re.match(r"10{0,2} ?[munpf]?s$", " ".join(body)), f"time scale {body}")
        elif word == "$var":
            variable(body, scopes, variables)
        else:
            need(word in {"$comment", "$date", "$version"}, f"section {word}")
        seen.add(word)
    raise Bad("no $enddefinitions")


def variable(body, scopes, variables):
    need(len(body) in (4, 5) and body[0] in KINDS, f"variable {body}")
    kind, width, code, name = body[:4]
    need(width.isdigit() and int(width) > 0 and CODE.match(code) and NAME.match(name), f"variable {body}")
    need(code not in variables, f"identifier code {code} twice")
    if len(body) == 5:
        m = re.match(r"\[(\d+):(\d+)\]$", body[4])
        need(m and int(m[1]) - int(m[2]) + 1 == int(width), f"range of variable {body}")
    full = ".".join(scopes + [name])
    need(full not in {v[0] for v in variables.values()}, f"variable {full} twice")
    variables[code] = full, kind, int(width), []


def change(word, words, variables, time):
    if word[0] in "bBrR":
        code, value = next(words, None), word[1:]
        need(code in variables, f"change of unknown {code}")
        _, kind, width, values = variables[code]
        if word[0] in "rR":
            need(kind in ("real", "realtime"), f"a number for {code}")
            value = float(value)
        else:
            need(kind not in ("real", "realtime") and re.match(r"[01xzXZ]+$", value) and len(value) <= width,
                 f"value {word} of {width} bits")
            value = value.lstrip("0") or "0"
            value = "x" if set(value) == {"x"} else value  # the leftmost x fills up to the left
    else:
        value, code = word[0], word[1:]
        need(value in "01xzXZ" and code in variables and variables[code][2] == 1, f"change {word}")
        values = variables[code][3]
    need(not values or values[-1][0] < time, f"{code} changes twice at {time}")
    values.append((time, value))


def read(path):
    words = words_of(path)
    variables = declarations(words)
    time, dumping = None, False
    for word in words:
        if word[0] == "#":
            need(word[1:].isdigit() and (time is None or int(word[1:]) > time), f"time {word} after {time}")
            need(not dumping, "a time inside a dump")
            time = int(word[1:])
        elif word in ("$dumpvars", "$dumpall", "$dumpon", "$dumpoff"):
            need(not dumping, f"{word} inside a dump")
            dumping = True
        elif word == "$end":
            need(dumping, "$end of nothing")
            dumping = False
            missing = [v[0] for v in variables.values() if not v[3]]
            need(not missing, f"the dump lacks {missing}")
        else:
            need(time is not None, "a change before any time")
            change(word, words, variables, time)
    need(time is not None and not dumping, "no times")
    return {name: values for name, _, _, values in variables.values()}, time
