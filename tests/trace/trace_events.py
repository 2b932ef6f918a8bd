#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a file of trace events against the rules of the format.

    trace_events.py FILE.json|FILE.json.gz...

Rules are those of the "Trace Event Format" document (keys and values per phase, nesting of slices and of
asynchronous spans, flows, counters, metadata) and of Perfetto's importer, where it asks for more: threads are known
by their number alone, times have three digits, an arrow belongs to the slice that began last on its thread.
"""
import collections
import gzip
import json
import re
import sys

INTEGER = re.compile(r"-?\d+$")
METADATA = {"process_name": ("name", str), "process_labels": ("labels", str), "process_sort_index": ("sort_index", int),
            "thread_name": ("name", str), "thread_sort_index": ("sort_index", int)}
# Keys that an event of a phase must have, and those that it may have besides.
KEYS = {
    "M": ("name pid args", "tid ts cat"),
    "X": ("name pid tid ts dur", "cat args tts tdur id bind_id flow_in flow_out cname"),
    "B": ("name pid tid ts", "cat args cname"),
    "E": ("pid tid ts", "name cat args"),
    "i": ("name pid tid ts", "s cat args cname"),
    "C": ("name pid ts args", "tid cat id"),
    "b": ("name pid ts cat id", "tid args scope"),
    "n": ("name pid ts cat id", "tid args scope"),
    "e": ("name pid ts cat id", "tid args scope"),
    "s": ("name pid tid ts cat id", "args"),
    "t": ("name pid tid ts cat id", "args"),
    "f": ("name pid tid ts cat id", "args bp"),
}


class Number(str):
    """A number of the file as its digits, so that nothing is rounded."""


def parse_time(text):
    """Nanoseconds."""
    if not isinstance(text, Number):
        raise ValueError("a time is no number")
    whole, _, part = text.partition(".")
    if len(part) > 3 or "e" in text.lower() or text.startswith("-"):
        raise ValueError(f"time {text}: expected microseconds with at most three digits behind the point")
    return int(whole) * 1000 + int((part + "000")[:3])


def load(path):
    data = open(path, "rb").read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return json.loads(data.decode("utf-8"), parse_float=Number, parse_int=Number, parse_constant=refuse)


def refuse(text):
    raise ValueError(f"{text} is no JSON")


class Checker:
    def __init__(self, trace):
        self.trace, self.faults = trace, []
        self.slices = collections.defaultdict(list)  # thread -> (from, to, place, event)
        self.flows = collections.defaultdict(list)
        self.spans = collections.defaultdict(list)
        self.series = {}
        self.counter_time = {}
        self.names = {"process": {}, "thread": {}}
        self.used = {"process": set(), "thread": set()}

    def fault(self, place, text):
        self.faults.append(f"event {place}: {text}")

    def check(self):
        t = self.trace
        if not isinstance(t, dict) or not isinstance(t.get("traceEvents"), list):
            self.faults.append("no array traceEvents")
            return self.faults
        if t.get("displayTimeUnit", "ms") not in ("ms", "ns"):
            self.faults.append("displayTimeUnit is neither ms nor ns")
        for key, value in t.get("otherData", {}).items():
            if isinstance(value, Number) or not isinstance(value, str):
                self.faults.append(f"otherData {key} is no text")
        for place, event in enumerate(t["traceEvents"]):
            if self.keys(place, event):
                self.one(place, event)
        self.nesting()
        self.arrows()
        for spans in self.spans.values():
            for left in spans:
                self.fault(left, "a span begins and never ends")
        for kind in ("process", "thread"):
            for number in self.used[kind] - set(self.names[kind]):
                self.faults.append(f"{kind} {number} has no name")
        return self.faults

    def keys(self, place, event):
        ph = event.get("ph") if isinstance(event, dict) else None
        if ph not in KEYS:
            self.fault(place, f"phase {ph!r} is unknown")
            return False
        must, may = (k.split() for k in KEYS[ph])
        missing = [k for k in must if k not in event]
        foreign = [k for k in event if k not in must + may + ["ph"]]
        if missing or foreign:
            self.fault(place, f"phase {ph}: lacks {missing}, has {foreign}")
            return False
        for key in ("pid", "tid"):
            if key in event and not (isinstance(event[key], Number) and INTEGER.match(event[key])):
                self.fault(place, f"{key} is no integer")
                return False
        for key in ("name", "cat"):
            if key in event and not isinstance(event[key], str):
                self.fault(place, f"{key} is no text")
        if "args" in event and not isinstance(event["args"], dict):
            self.fault(place, "args is no object")
            return False
        try:
            for key in ("ts", "dur"):
                if key in event:
                    event[key] = parse_time(event[key])
        except (ValueError, TypeError, AttributeError) as error:
            self.fault(place, str(error))
            return False
        return True

    def one(self, place, event):
        ph, thread = event["ph"], (event["pid"], event.get("tid"))
        if ph != "M":
            self.used["process"].add(event["pid"])
            if "tid" in event:
                self.used["thread"].add(event["tid"])
            if event.get("tid") == "0":
                self.fault(place, "thread 0 is Perfetto's idle thread")
        if ph == "M":
            self.metadata(place, event)
        elif ph == "X":
            self.slices[thread].append((event["ts"], event["ts"] + event["dur"], place, event))
        elif ph == "i" and event.get("s", "t") not in ("g", "p", "t"):
            self.fault(place, "scope of an instant is none of g, p, t")
        elif ph == "C":
            self.counter(place, event)
        elif ph in "ben":
            self.span(place, event)
        elif ph in "stf":
            if event.get("bp", "e") != "e":
                self.fault(place, "binding point is not e")
            self.flows[event["cat"], event["name"], event["id"]].append((event["ts"], place, event))

    def metadata(self, place, event):
        if event["name"] not in METADATA:
            self.fault(place, f"metadata {event['name']} is unknown")
            return
        key, kind = METADATA[event["name"]]
        value = event["args"].get(key)
        if type(value) is not (Number if kind is int else str) or (kind is int and not INTEGER.match(value)):
            self.fault(place, f"{event['name']} lacks args.{key}")
        what = event["name"].split("_")[0]
        if event["name"].endswith("_name"):
            number = event["pid" if what == "process" else "tid"]
            if number in self.names[what]:
                self.fault(place, f"{what} {number} gets a second name")
            self.names[what][number] = value

    def counter(self, place, event):
        name = event["pid"], event["name"], event.get("id")
        if not event["args"] or not all(isinstance(v, Number) for v in event["args"].values()):
            self.fault(place, "a counter's values are numbers")
        if self.series.setdefault(name, set(event["args"])) != set(event["args"]):
            self.fault(place, "a counter's series change")
        if self.counter_time.get(name, -1) >= event["ts"]:
            self.fault(place, "a counter goes back in time")
        self.counter_time[name] = event["ts"]

    def span(self, place, event):
        open_ones = self.spans[event["pid"], event["cat"], event["id"], event["name"]]
        if event["ph"] == "b":
            open_ones.append(place)
        elif not open_ones:
            self.fault(place, "a span that is not open")
        elif event["ph"] == "e":
            open_ones.pop()

    def nesting(self):
        owner = {}
        for (pid, tid), slices in self.slices.items():
            if owner.setdefault(tid, pid) != pid:
                self.faults.append(f"thread {tid} is in two processes")
            stack = []
            for start, end, place, _ in sorted(slices, key=lambda s: (s[0], -s[1], s[2])):
                while stack and stack[-1] <= start:
                    stack.pop()
                if stack and end > stack[-1]:
                    self.fault(place, f"a slice of thread {tid} overlaps with another and is not inside it")
                stack.append(end)

    def arrows(self):
        self.bound = {}
        for threads in self.slices.values():
            threads.sort(key=lambda s: (s[0], s[2]))
        for key, ends in self.flows.items():
            ends.sort(key=lambda e: (e[0], "stf".index(e[2]["ph"])))
            phases = "".join(e[2]["ph"] for e in ends)
            if not re.fullmatch("st*f", phases):
                self.fault(ends[0][1], f"flow {key} is {phases}, not one start and one end")
                continue
            slices = [self.last_begun(e[2], e[1]) for e in ends]
            if None in slices:
                self.fault(ends[0][1], f"an end of flow {key} is in no slice")
            self.bound[key] = slices

    def last_begun(self, event, place):
        """The slice that an end of an arrow belongs to: the last to begin, by time and then by place in the file."""
        slices = self.slices[event["pid"], event["tid"]]
        low, high = 0, len(slices)  # bisect by (begin, place)
        while low < high:
            middle = (low + high) // 2
            if (slices[middle][0], slices[middle][2]) <= (event["ts"], place):
                low = middle + 1
            else:
                high = middle
        if low == 0 or event["ts"] > slices[low - 1][1]:
            return None
        return slices[low - 1][3]


def main():
    bad = 0
    for path in sys.argv[1:]:
        faults = Checker(load(path)).check()
        for fault in faults[:20]:
            print(f"{path}: {fault}")
        print(f"{path}: {len(faults)} faults")
        bad |= bool(faults)
    return bad


if __name__ == "__main__":
    sys.exit(main())
