#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures of reports for the documentation:
  pictures.py REPORT.html OUT.webp [--dark] [--of SELECTOR] [--do JAVASCRIPT]... [--hover LANE SHARE]"""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser


def main():
    p = argparse.ArgumentParser()
    p.add_argument("report")
    p.add_argument("out")
    p.add_argument("--dark", action="store_true")
    p.add_argument("--of", help="an element instead of the window")
    p.add_argument("--do", action="append", default=[])
    p.add_argument("--hover", nargs=2)
    p.add_argument("--height", type=int, default=1000)
    o = p.parse_args()
    with Browser(1440, o.height) as b:
        page = b.open("file://" + os.path.abspath(o.report), dark=o.dark)
        for action in o.do:
            page.js(action)
            page.frame()
        if o.hover:
            box = page.js("(() => { const r = document.getElementById('canvas').getBoundingClientRect(); return [r.left, r.top]; })()")
            page.move(box[0] + page.js(f"timeline.LEFT + {o.hover[1]} * timeline.plotWidth()"),
                      box[1] + page.js(f"timeline.laneMiddle('{o.hover[0]}')"))
        page.js("new Promise(r => setTimeout(r, 200))")
        page.frame()
        if o.of:
            r = page.js(f"(() => {{ const r = document.querySelector('{o.of}').getBoundingClientRect(); return [r.left + scrollX, r.top + scrollY, r.width, r.height]; }})()")
            page.screenshot(o.out, x=r[0], y=r[1], width=r[2], height=r[3])
        else:
            page.screenshot(o.out)
        if page.errors:
            sys.exit(f"pictures: {page.errors}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
