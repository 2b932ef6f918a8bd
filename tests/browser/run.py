#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTML report in a headless browser: run.py NPUC NPUSIM SYNTH [NAME...] runs all tests or those named."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, find

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "models")
NPUC, NPUSIM, SYNTH = sys.argv[1:4]
FAILED = []


def expect(what, got, wanted):
    if got != wanted:
        FAILED.append(f"{what}: {str(got)[:200]!r}, expected {str(wanted)[:200]!r}")


def expect_true(what, holds, seen=""):
    if not holds:
        FAILED.append(f"{what}: not so {seen}")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"run.py: {' '.join(command)}: status {done.returncode}\n{done.stderr}")


def make(folder, model, *options, target="server", compiled=()):
    """Paths of a model's HTML report and report.json."""
    base = os.path.join(folder, model + target + "".join(compiled))
    run(NPUC, "-q", os.path.join(MODELS, model, "model.onnx"), "--target", target, *compiled, "-o", base + ".npu")
    run(NPUSIM, "-q", base + ".npu", f"--trace={base}.html", "--report", base + ".json", *options)
    return base + ".html", json.load(open(base + ".json"))


def quiet(page, what):
    expect(f"{what}: console", page.errors, [])
    expect(f"{what}: requests", page.requests, [])
    expect(f"{what}: error", page.js("npusim.error"), None)


def grouped(n):
    return f"{n:,}"


def column(page, key):
    """Texts of a column of the layers' table, top to bottom."""
    return page.js(f"""(() => {{ const heads = [...document.querySelectorAll('#layer-table th button')].map(b => b.dataset.key);
        const at = heads.indexOf('{key}'); return [...document.querySelectorAll('#layer-table tbody tr')].map(r => r.children[at].textContent); }})()""")


def sort(page, key):
    page.js(f"document.querySelector('#layer-table th button[data-key={key}]').click()")


def place(page, lane, share=0.5):
    """A point of the window in a lane of the timeline."""
    page.js("document.getElementById('timeline').scrollIntoView()")
    page.frame()
    box = page.js("(() => { const r = document.getElementById('canvas').getBoundingClientRect(); return [r.left, r.top]; })()")
    y = page.js(f"timeline.laneMiddle('{lane}')")
    x = page.js(f"timeline.LEFT + {share} * timeline.plotWidth()")
    return box[0] + x, box[1] + y


def look(page, model):
    """Nothing lies on something else, and bars have scales that do not depend on what they show."""
    boxes = page.js("[...document.querySelectorAll('#roofline svg text.y, #roofline svg text.title')].map(t => { const r = t.getBoundingClientRect(); return [t.classList[0], r.left, r.right]; })")
    title = next(b for b in boxes if b[0] == "title")
    expect_true(model + ": labels beside the axis' title", len(boxes) > 2 and all(b is title or b[1] > title[2] for b in boxes), boxes)
    wide = page.js("(() => { const box = document.querySelector('#critical .scroll'); return [box.scrollWidth, box.clientWidth]; })()")
    expect_true(model + ": the path's table needs no scrolling", wide[0] <= wide[1], wide)
    expect(model + ": names in full", page.js("[...document.querySelectorAll('#critical button.link')].every(b => b.title === b.textContent)"), True)
    off = page.js("""[...document.querySelectorAll('#layer-table tbody .bar i')].map((bar, k) =>
        Math.abs(parseFloat(bar.style.width) - 100 * npusim.model.layers[k].share)).reduce((a, b) => Math.max(a, b), 0)""")
    expect_true(model + ": bars of shares of the run", off < 0.06, off)
    gains = page.js("""(() => { const full = Number(/full: (\\d+)/.exec(document.querySelector('.whatif thead').textContent)[1]);
        return [...document.querySelectorAll('.whatif tbody tr')].map(r => [parseFloat(r.querySelector('.gain i').style.width), parseFloat(r.children[3].textContent), full]); })()""")
    expect_true(model + ": bars of gains", gains and all(abs(w - max(0, g - 1) / (full - 1) * 100) < 0.7 for w, g, full in gains), gains)


def test_figures(browser, folder):
    for model in ("resnet-tiny", "modernbert-tiny"):
        path, report = make(folder, model)
        page = browser.open("file://" + path)
        tiles = page.js("[...document.querySelectorAll('.tile .value')].map(t => t.textContent)")
        expect(model + ": cycles", tiles[0], grouped(report["cycles"]))
        over = f"{report['bounds']['latency_over_ideal']:.2f}"
        expect_true(model + ": over the bound", any(t.startswith(over) for t in tiles), tiles)
        expect(model + ": cycles of layers", column(page, "cycles"), [grouped(l["cycles"]) for l in report["layers"]])
        expect(model + ": names", column(page, "title"), [l["name"] or "(no layer)" for l in report["layers"]])
        expect(model + ": nodes", column(page, "node"), [l["node"] for l in report["layers"]])
        busy = page.js("[...document.querySelectorAll('#stall-table tbody tr')].map(r => [r.children[0].textContent, r.children[2].textContent])")
        expect(model + ": busy", busy, [[e["name"], grouped(e["busy_cycles"])] for e in report["engines"]])
        sums = page.js("npusim.model.report.engines.map(e => e.busy_cycles + Object.values(e.stalls).reduce((a, b) => a + b, 0))")
        expect(model + ": classes add up", sums, [report["cycles"]] * len(sums))
        expect(model + ": the path adds up", page.js("npusim.model.d.step.cycles.reduce((a, b) => a + b, 0)"), report["cycles"])
        expect(model + ": layers on the path add up", page.js("Math.round(npusim.model.layers.reduce((a, l) => a + l.path, 0))"),
               report["cycles"])
        expect(model + ": instructions", page.js("npusim.model.d.n"), report["instructions"])
        expect_true(model + ": dots", page.js("document.querySelectorAll('#roofline .dot').length") > 0)
        look(page, model)
        expect_true(model + ": what-ifs", page.js("document.querySelectorAll('.whatif tbody tr').length") >= 5)
        expect_true(model + ": scratchpad", page.js("npusim.model.d.map.some(x => x)"))
        expect_true(model + ": no jitter of one run", page.js("document.getElementById('jitter').hidden"))
        quiet(page, model)


def test_table(browser, folder):
    path, report = make(folder, "modernbert-tiny")
    page = browser.open("file://" + path)
    cycles = [l["cycles"] for l in report["layers"]]
    sort(page, "cycles")
    expect("most cycles first", column(page, "cycles"), [grouped(c) for c in sorted(cycles, reverse=True)])
    sort(page, "cycles")
    expect("fewest cycles first", column(page, "cycles"), [grouped(c) for c in sorted(cycles)])
    expect("aria-sort", page.js("document.querySelector('#layer-table th[aria-sort]').getAttribute('aria-sort')"), "ascending")
    page.js("layers.filter('layernorm')")
    wanted = sum("layernorm" in " ".join(str(l[k]) for k in ("name", "kernel", "op", "node", "bound")).lower() for l in report["layers"])
    expect("rows of the filter", len(column(page, "title")), wanted)
    page.js("document.querySelector('#layer-table tbody tr').click()")
    page.frame()
    chosen = page.js("view.state.layer")
    layer = report["layers"][chosen]
    seen = page.js("[view.state.from, view.state.to]")
    expect_true("a row leads to its layer", seen[0] <= layer["start_cycle"] and seen[1] >= layer["end_cycle"], seen)
    expect_true("and not further", seen[1] - seen[0] <= 1.3 * (layer["end_cycle"] - layer["start_cycle"]) + 40, seen)
    quiet(page, "table")


def test_keys(browser, folder):
    path, report = make(folder, "resnet-tiny")
    page = browser.open("file://" + path)
    window = lambda: page.js("[view.state.from, view.state.to]")
    expect("the whole run first", window(), [0, report["cycles"]])
    page.js("document.getElementById('canvas').focus()")
    page.key("w")
    near = window()
    expect_true("w zooms in", abs((near[1] - near[0]) - 0.6 * report["cycles"]) < 2, near)
    page.key("ArrowRight")
    expect_true("right moves", window()[0] > near[0] and abs(window()[1] - window()[0] - (near[1] - near[0])) < 2, window())
    page.key("a")
    page.key("s")
    page.key("0")
    expect("0 shows all", window(), [0, report["cycles"]])
    page.key("]")
    first = page.js("view.state.chosen")
    expect_true("] chooses", first >= 0)
    page.key("]")
    expect_true("] steps on in the engine", page.js("npusim.model.c.engine[view.state.chosen]") == page.js(f"npusim.model.c.engine[{first}]"))
    expect_true("the detail has its assembly", page.js("document.querySelector('#detail code').textContent.length") > 5)
    page.key("f")
    expect_true("f fits it", window()[1] - window()[0] < report["cycles"] / 2, window())
    page.key("/")
    expect("/ goes to the search", page.js("document.activeElement.id"), "search")
    page.key("Escape")
    page.key("?")
    expect_true("? shows the keys", page.js("document.getElementById('help').open && document.querySelectorAll('#help dt').length > 10"))
    page.key("Escape")
    page.key("Tab")
    expect_true("Tab reaches a control", page.js("document.activeElement !== document.body"))
    quiet(page, "keys")


def test_pointer(browser, folder):
    path, _ = make(folder, "resnet-tiny")
    page = browser.open("file://" + path)
    page.move(*place(page, "mxu"))
    tip = page.js("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
    expect_true("the tip names engine and instruction", "mxu" in tip and "mm" in tip, tip)
    expect_true("and the layer", any(l in tip for l in page.js("npusim.model.layers.map(l => l.title)")), tip)
    page.click(*place(page, "mxu"))
    expect("a click chooses", page.js("npusim.model.tables.engines[npusim.model.c.engine[view.state.chosen]]"), "mxu")
    page.move(*place(page, "bandwidth", 0.01))
    expect_true("bandwidth has a tip", "B/cycle" in page.js("document.getElementById('tip').textContent"))
    page.js("document.querySelector('.stack div[tabindex]').focus()")
    expect_true("a class says what it means", page.js("!document.getElementById('tip').hidden && document.getElementById('tip').textContent.includes('cycles')"))
    drawn = page.js("(() => { const c = document.getElementById('canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; "
                    "const s = new Set(); for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return s.size; })()")
    expect_true("something is drawn", drawn > 8, drawn)
    quiet(page, "pointer")


def test_themes(browser, folder):
    path, _ = make(folder, "resnet-tiny")
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = browser.open("file://" + path), browser.open("file://" + path, dark=True)
    expect("light as the system", light.js("theme.name()"), "light")
    expect("dark as the system", dark.js("theme.name()"), "dark")
    expect_true("they differ", light.js(ground) != dark.js(ground))
    expect("as asked for", light.js("(document.getElementById('theme').click(), theme.name())"), "dark")
    expect("looks the same then", light.js(ground), dark.js(ground))
    light.frame()
    for page in (light, dark):
        quiet(page, "themes")


def test_names(browser, folder):
    path = os.path.join(folder, "names.html")
    run(SYNTH, path, "3000")
    page = browser.open("file://" + path)
    name = "</script><img src=x onerror=\"window.harmed = 1\">&lt;b&gt; 'layer'"
    expect("the name as it is", column(page, "title")[3], name)
    expect("the program's too", page.js("document.getElementById('program').textContent"), name)
    page.js("layers.show(3)")
    page.frame()
    page.move(*place(page, "layers"))
    expect_true("in the tip", name in page.js("document.getElementById('tip').textContent"))
    expect("no element of it", page.js("document.querySelectorAll('img').length"), 0)
    expect("nothing ran", page.js("typeof window.harmed"), "undefined")
    quiet(page, "names")


def test_inflate(browser, folder):
    """Both ways of unpacking give the same numbers."""
    path, _ = make(folder, "modernbert-tiny")
    total = ("JSON.stringify(['column', 'state', 'step'].map(s => Object.entries(npusim.model.d[s]).map(([k, a]) => "
             "[k, a.length, a.reduce((x, y) => (x * 31 + y) % 1000003, 7)])))")
    plain = browser.open("file://" + path)
    other = browser.open("file://" + path, before="delete self.DecompressionStream; delete Uint8Array.fromBase64")
    expect("without DecompressionStream", other.js("typeof DecompressionStream"), "undefined")
    expect("the same columns", other.js(total), plain.js(total))
    expect("the same assembly", other.js("npusim.model.d.line(1)"), plain.js("npusim.model.d.line(1)"))
    for page in (plain, other):
        quiet(page, "inflate")


def test_jitter(browser, folder):
    path, report = make(folder, "resnet-tiny", "--runs", "60", "--noise", "refresh,contention", "--no-data", target="edge")
    page = browser.open("file://" + path)
    expect("jitter is shown", page.js("document.getElementById('jitter').hidden"), False)
    shown = page.js("[...document.querySelectorAll('#jitter-body tbody tr')].map(r => [r.children[0].textContent, r.children[1].textContent])")
    expect("its statistics", len(shown), 9)
    expect("times", page.js("npusim.model.report.runs.times_us.length"), 60)
    expect("coefficient of variation", dict(shown)["coefficient of variation"], f"{report['runs']['cv']:.4f}")
    units = page.js("""[1, 2].map(k => [...new Set([...document.querySelectorAll('#jitter-body tbody tr')].map(r => r.children[k].textContent)
        .join(' ').match(/(ns|\u00b5s|ms|s)\\b/g))].length)""")
    expect("one unit", units, [1, 1])
    expect("units of times", page.js("[[1078, 171.5], [1012.0931, 0.0921], [36.6, 0]].map(([m, s]) => { const f = format.times(m, s); return f(m) + ' ' + f(s); }).join('; ').replaceAll('\\u202f', '')"),
           "1.078ms 0.172ms; 1,012.0931\u00b5s 0.0921\u00b5s; 36.600\u00b5s 0.000\u00b5s")
    expect("a source's share is explained", page.js("document.getElementById('jitter-body').textContent.includes('turning it off')"),
           bool(report["runs"].get("sources")))
    expect("no sign of zero", page.js("[-0.0001, -0.01, 0.01].map(x => format.percent(x))"), ["0.0\u202f%", "-1.0\u202f%", "1.0\u202f%"])
    quiet(page, "jitter")


def host_bound(browser, folder):
    """The device hides behind the host: path, slack and predictions say so."""
    path, report = make(folder, "resnet-tiny", compiled=("--eager",))
    page = browser.open("file://" + path)
    shares = page.js("[...document.querySelectorAll('#critical .stack div')].map(d => d.getAttribute('aria-label'))")
    expect_true("the host is on the path", shares[0].startswith("host ") and float(shares[0].split()[1].rstrip("%\u202f")) > 99, shares)
    expect_true("and named", "host 100.0" in page.js("document.querySelector('#critical .note').textContent"))
    expect("the path adds up", page.js("npusim.model.d.step.cycles.reduce((a, b) => a + b, 0)"), report["cycles"])
    expect("layers on it too", page.js("Math.round(npusim.model.layers.reduce((a, l) => a + l.path, 0))"), report["cycles"])
    # A launch may come later by all that the device waits for the host from its end on.
    begin, slack = page.js("[...npusim.model.host.begin]"), page.js("npusim.model.host.layer.length && [...npusim.model.host.layer].map(l => npusim.model.layers[l].slack)")
    ends = page.js("""[...npusim.model.host.begin].map((b, k) => { const m = npusim.model, next = m.host.begin[k + 1] ?? Infinity; let end = 0;
        for (let i = 0; i < m.d.n; i++) if (m.c.start[i] >= b && m.c.start[i] < next) end = Math.max(end, m.c.start[i] + m.c.done[i]); return end; })""")
    gaps = [b - e for b, e in zip(begin[1:], ends)]
    expect_true("launches that the device waits for", all(g >= 0 for g in gaps) and len(gaps) > 10, gaps)
    expect("the launch before the last: until the last one starts", slack[-2], gaps[-1])
    expect("slack of launches", slack[:-1], [sum(gaps[k:]) for k in range(len(gaps))])
    for w in page.js("npusim.model.tables.whatif"):
        expect_true(f"predicted {w['title']}", abs(w["predicted_us"] / w["rerun_us"] - 1) < 0.005, w)
    page.frame()
    ink = page.js("""(() => { const c = document.getElementById('canvas'), r = devicePixelRatio; timeline.draw();
        const y = timeline.laneMiddle('host') - 20 * 0.35 - 3; const d = c.getContext('2d').getImageData(timeline.LEFT * r, y * r, timeline.plotWidth() * r, 1).data;
        const ink = parseInt(theme.colours().ink.slice(1), 16); let n = 0;
        for (let i = 0; i < d.length; i += 4) n += (d[i] << 16 | d[i + 1] << 8 | d[i + 2]) === ink; return n / (d.length / 4); })()""")
    expect_true("the black line is above the host's lane", ink > 0.98, ink)
    quiet(page, "host bound")


def test_part(browser, folder):
    """A run that was stopped: no bounds of the whole program, no what-ifs, and no words about them."""
    path, report = make(folder, "modernbert-tiny", "--break", "cycle:4000")
    page = browser.open("file://" + path)
    expect_true("says so", "stopped" in page.js("document.getElementById('fault').textContent"))
    tiles = page.js("document.getElementById('tiles').textContent")
    expect_true("no bounds", "bound" not in tiles and "Cycles" in tiles, tiles)
    text = page.js("document.getElementById('critical').textContent")
    expect_true("no what-ifs", "need a run to its end" in text and "--what-if" not in text and "Each line" not in text, text)
    quiet(page, "part")
    path, _ = make(folder, "modernbert-tiny", "--break", "insn:0", compiled=("--eager",))
    page = browser.open("file://" + path)
    expect_true("no path of no instructions", page.js("document.getElementById('critical').hidden"))
    quiet(page, "part without instructions")


def test_host(browser, folder):
    """An eager program: the host's lane, from the same events as the Perfetto trace."""
    path, report = make(folder, "modernbert-tiny", compiled=("--eager",))
    run(NPUSIM, "-q", path[:-5] + ".npu", f"--trace={folder}/host.json")
    page = browser.open("file://" + path)
    events = json.load(open(os.path.join(folder, "host.json")))["traceEvents"]
    made = [e for e in events if e["ph"] == "X" and e.get("cat") == "launch"]
    expect("launches", page.js("npusim.model.host.n"), report["eager"]["launches"])
    expect("as in the Perfetto trace", page.js("[...npusim.model.host.begin]"), [e["args"]["device_start"] for e in made])
    expect("calls before", page.js("npusim.model.host.views.slice(0, 20).join()"), ",".join(str(e["args"]["views_before"]) for e in made[:20]))
    expect("their layers", page.js("[...npusim.model.host.layer].map(l => npusim.model.layers[l].title)"), [e["args"]["layer"] for e in made])
    expect_true("in order, the device behind the host", page.js(
        "npusim.model.host.to.every((t, k) => npusim.model.host.begin[k] >= t && (!k || npusim.model.host.from[k] >= npusim.model.host.to[k - 1]))"))
    expect("no marks of them", page.js("npusim.model.tables.marks.length"), 0)
    k = report["eager"]["launches"] // 2
    page.js(f"view.set(npusim.model.host.from[{k}], npusim.model.host.to[{k}])")
    page.frame()
    page.move(*place(page, "host"))
    tip = page.js("document.getElementById('tip').textContent")
    expect_true("the tip has the launch and its layer", f"launch {k}" in tip and made[k]["args"]["layer"] in tip, tip)
    page.click(*place(page, "host"))
    expect("a click chooses the layer", page.js("npusim.model.layers[view.state.layer].title"), made[k]["args"]["layer"])
    tiles = page.js("document.getElementById('tiles').textContent")
    expect_true("tiles of the host", "Launches" in tiles and f"{100 * report['eager']['bubble_cycles'] / report['cycles']:.1f}" in tiles, tiles)
    host_bound(browser, folder)
    quiet(page, "host")


def test_layers(browser, folder):
    """4,000 layers: few of them are elements, all can be reached. The times are printed, not judged."""
    path = os.path.join(folder, "layers.html")
    run(SYNTH, path, "12000", "4000")
    page = browser.open("file://" + path)
    opened, times = page.cpu_seconds(), []
    def timed(expression):
        page.frame()
        before = page.cpu_seconds()
        page.js(expression)
        page.frame()
        times.append(page.cpu_seconds() - before)
    few = "document.querySelectorAll('#layer-table tbody tr').length < 120"
    count = lambda: page.js("document.getElementById('layer-count').textContent").split(",")[0]
    titles = lambda: page.js("[...document.querySelectorAll('#layer-table tbody tr:not(.spacer) .name')].map(c => c.textContent)")
    def visible(title):
        return page.js(f"""(() => {{ const box = document.getElementById('layer-table').getBoundingClientRect();
            return [...document.querySelectorAll('#layer-table tbody tr')].filter(r => r.children[1] && r.children[1].textContent === '{title}')
              .some(r => {{ const b = r.getBoundingClientRect(); return b.top >= box.top && b.bottom <= box.bottom + 1 && r.getAttribute('aria-selected') === 'true'; }}); }})()""")
    elements = page.js("document.querySelectorAll('*').length")
    expect_true("few rows", page.js(few))
    height = page.js("document.getElementById('layer-table').scrollHeight")
    expect("the first rows", titles()[:3], ["layer 0", "layer 1", "layer 2"])
    page.js("document.getElementById('layer-table').scrollTop = 1e9")
    page.frame()
    expect("the last row at the end", titles()[-1], "layer 3999")
    expect_true("as high as all rows", abs(page.js("document.getElementById('layer-table').scrollHeight") - height) < 200, height)
    expect_true("still few rows", page.js(few))
    page.js("layers.show(1777)")
    page.frame()
    expect_true("a layer of the timeline is scrolled to", visible("layer 1777"), titles())
    timed("document.querySelector('#layer-table th button[data-key=macs]').click()")
    expect("sorted, most first", titles()[0], "layer 3999")
    timed("layers.filter('1')")
    timed("layers.filter('layer 399')")
    named = [f"layer {i}" for i in range(4000) if "399" in str(i)]
    expect("filter", count(), f"{len(named)} of 4000")
    expect("its rows", sorted(titles()), sorted(named))
    page.js("layers.find('layer 2345')")
    page.frame()
    expect_true("found", visible("layer 2345"), titles())
    page.js("layers.filter('')")
    page.frame()
    expect("all again", count(), "4000 of 4000")
    page.js("dispatchEvent(new Event('beforeprint'))")
    expect("all rows on paper", len(titles()), 4000)
    page.js("dispatchEvent(new Event('afterprint'))")
    expect_true("and few rows after", page.js(few))
    print(f"browser: 4,000 layers: {opened:.2f} s of the main thread to open, {elements} elements; a heading {times[0]:.2f} s, "
          f"letters of the filter {times[1]:.2f} and {times[2]:.2f} s")
    quiet(page, "layers")


def test_many(browser, folder):
    """10^6 instructions: the page opens and moves. The times are printed, not judged."""
    path = os.path.join(folder, "many.html")
    run(SYNTH, path, "1000000")
    page = browser.open("file://" + path, wait=300)
    opened = page.cpu_seconds()
    expect("instructions", page.js("npusim.model.d.n"), 1000001)
    expect("the path adds up", page.js("npusim.model.d.step.cycles.reduce((a, b) => a + b, 0)"), page.js("npusim.model.cycles"))
    page.js("document.getElementById('canvas').focus()")
    for key in "wwwwwwwwwwwwwwwwdda0":
        page.key(key)
    frame = page.js("(() => { const began = performance.now(); for (let i = 0; i < 20; i++) timeline.draw(); return (performance.now() - began) / 20; })()")
    print(f"browser: {os.path.getsize(path) / 1e6:.1f} MB of 10^6 instructions ready in {page.js('npusim.milliseconds'):.0f} ms, "
          f"{opened:.2f} s of the main thread's processor time; a frame of all {frame:.1f} ms")
    quiet(page, "many")


def main():
    if not find():
        print("browser: skipped, no Chromium installed (scripts/setup --ci installs it)")
        return 77
    tests = {k[5:]: f for k, f in globals().items() if k.startswith("test_")}
    with tempfile.TemporaryDirectory(prefix="npu-report-") as folder, Browser() as browser:
        for name in sys.argv[4:] or tests:
            before = len(FAILED)
            tests[name](browser, folder)
            print(f"browser: {name} {'failed' if len(FAILED) > before else 'passed'}", flush=True)
    for line in FAILED:
        print("browser: FAILED " + line)
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
