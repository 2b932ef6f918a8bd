# SPDX-License-Identifier: Apache-2.0
"""Distributions of latencies as one small SVG, readable on light and dark pages.

    chart(title, series)   series: [(label, style, quantiles at 0, 0.01, ... 1 in us)]; style: "a" or "b", "-m" behind: measured

Left: the distribution functions over time, logarithmic. Right: the same with each time over its median: the spread alone.
"""
import math

WIDTH, HEIGHT, TOP, BOTTOM, LEFT, GAP, PLOT = 760, 300, 40, 62, 44, 56, 316
STYLE = """<style>
text{font:12px sans-serif;fill:#24292f}.t{font-size:14px;font-weight:bold}.g{stroke:#d0d7de;stroke-width:1}
.a{stroke:#0969da}.b{stroke:#bc4c00}.c{fill:none;stroke-width:2}.m{stroke-dasharray:5 4;stroke-width:1.5}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.g{stroke:#3d444d}.a{stroke:#58a6ff}.b{stroke:#f0883e}}
</style>"""


LETTER, BETWEEN = 7, 8  # widest digit of a label, and the room between two


def _label(v):
    return f"{v:,.0f}" if v >= 10 else f"{v:g}"


def _ticks(low, high):
    """Numbers 1, 2, 5 times a power of ten between two times, or fewer where their labels would touch on a logarithmic axis."""
    before = []
    for digits in ((1, 2, 5), (1, 3), (1,)):
        out, power = [], 10 ** math.floor(math.log10(low))
        while power <= high:
            out += [d * power for d in digits if low <= d * power <= high]
            power *= 10
        out = out or before[::2]
        apart = [PLOT * math.log(b / a) / math.log(high / low) - LETTER * (len(_label(a)) + len(_label(b))) / 2
                 for a, b in zip(out, out[1:])]
        if min(apart, default=BETWEEN) >= BETWEEN:
            break
        before = out
    return out


def _panel(left, caption, low, high, ticks, log, curves):
    scale = (lambda v: math.log(v / low) / math.log(high / low)) if log else (lambda v: (v - low) / (high - low))
    right, bottom = left + PLOT, HEIGHT - BOTTOM
    y = lambda p: bottom - p * (bottom - TOP)  # noqa: E731
    out = []
    for p in (0, 0.25, 0.5, 0.75, 1):
        out.append(f'<path class="g" d="M{left} {y(p):.1f}H{right}"/>'
                   f'<text x="{left - 6}" y="{y(p) + 4:.1f}" text-anchor="end">{100 * p:.0f} %</text>')
    for v in ticks:
        x = left + PLOT * scale(v)
        out.append(f'<path class="g" d="M{x:.1f} {TOP}V{bottom}"/><text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{_label(v)}</text>')
    for style, values in curves:
        points = " ".join(f"{left + PLOT * min(1, max(0, scale(v))):.1f},{y(k / (len(values) - 1)):.1f}" for k, v in enumerate(values))
        out.append(f'<polyline class="c {style}" points="{points}"/>')
    out.append(f'<text x="{left + PLOT / 2:.0f}" y="{bottom + 34}" text-anchor="middle">{caption}</text>')
    return out


def chart(title, series):
    curves = [(style[0] + (" m" if style.endswith("-m") else ""), values) for _, style, values in series]
    low, high = min(v[0] for _, v in curves) * 0.9, max(v[-1] for _, v in curves) * 1.1
    spread = [(style, [v / values[len(values) // 2] for v in values]) for style, values in curves]
    narrow, wide = 0.4, 1.8
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">', STYLE,
           f'<text class="t" x="{LEFT}" y="20">{title}</text>']
    out += _panel(LEFT, "latency, us: share of the runs that is as fast", low, high, _ticks(low, high), True, curves)
    out += _panel(LEFT + PLOT + GAP, "latency over its median", narrow, wide, (0.5, 0.75, 1, 1.25, 1.5, 1.75), False, spread)
    x = LEFT
    for label, style, _ in series:
        out.append(f'<path class="c {style[0]}{" m" if style.endswith("-m") else ""}" d="M{x} {HEIGHT - 10}h24"/>'
                   f'<text x="{x + 30}" y="{HEIGHT - 6}">{label}</text>')
        x += 40 + 7 * len(label)
    return "\n".join(out + ["</svg>"]) + "\n"
