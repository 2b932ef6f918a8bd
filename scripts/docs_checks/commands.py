# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that pages show and compares what they print with what the page says.

A command is a line of a ```console block that starts with "$ "; the lines behind it are what it prints, both streams. The
commands of a page run one after another, in a temporary folder that looks like the top of the tree, with the build's
programs on the PATH; each must end with status 0. In what is shown

    ...        as a whole line stands for any number of lines
    (blank)    lines do not count

A comment of its own line before a block says what else holds for it:

    <!-- varies: REGEX -->        what it matches differs from machine to machine: times, folders. May be repeated
    <!-- output of: COMMAND -->   the block is all that a command prints; $BUILD is the build folder
    <!-- needs: FILE -->          the block is left out where that file is missing
    <!-- large: FILE -->          the same, and left out without --all

VARIES holds for all blocks.
"""
import os
import re
import subprocess
import tempfile

VARIES = [r"simulated at [\d.]+ [kMG]? ?cycles/s"]
COMMENT = re.compile(r"<!-- (varies|output of|needs|large): (.*) -->$")


class Step:
    """A command, its lines in the page (first of the command, first of the output, one behind it), what holds for it."""

    def __init__(self, command, start, end, notes):
        self.command, self.start, self.end, self.notes = command, start, end, notes


def steps(lines):
    """The steps of a page, and faults (line, rule)."""
    found, faults, notes, at = [], [], [], 0
    while at < len(lines):
        comment = COMMENT.fullmatch(lines[at].strip())
        if comment:
            notes.append(comment.groups())
        elif lines[at].startswith("```"):
            end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith("```")), len(lines))
            commands = [text for key, text in notes if key == "output of"]
            if commands:
                found.append(Step(commands[0], at + 1, end, notes))
            elif lines[at] == "```console":
                more, wrong = block(lines, at + 1, end, notes)
                found, faults = found + more, faults + wrong
            at, notes = end, []
        elif lines[at].strip() and notes:
            faults.append((at + 1, f"a comment '{notes[0][0]}:' belongs right before a block"))
            notes = []
        at += 1
    return found, faults


def block(lines, at, end, notes):
    if not lines[at].startswith("$ "):
        return [], [(at + 1, "a console block starts with a command")]
    found = []
    while at < end:
        command, at = lines[at][2:], at + 1
        while command.endswith("\\") and at < end:
            command, at = command[:-1] + lines[at].strip(), at + 1
        start = at
        while at < end and not lines[at].startswith("$ "):
            at += 1
        found.append(Step(command, start, at, notes))
    return found, []


def plain(lines, varies, figures):
    """What of lines is compared: without blank ones, what varies, and, when figures are not compared, numbers."""
    out = []
    for line in lines:
        for pattern in varies:
            line = re.sub(pattern, "<varies>", line)
        if not figures:
            line = re.sub(r"\s+", " ", re.sub(r"[+-]?[\d.,]*\d[\d.,]*", "N", line))
        if line.strip():
            out.append(line.rstrip())
    return out


def difference(shown, got):
    """None, or (index in shown of the first line that is not printed where it should be, the line printed there)."""
    parts, at = [[]], 0
    for line in shown:
        parts.append([]) if line == "..." else parts[-1].append(line)
    index = 0
    for n, part in enumerate(parts):
        fits = [k for k in range(at, len(got) - len(part) + 1) if got[k:k + len(part)] == part]
        if n == 0:
            fits = [k for k in fits if k == 0]
        if n == len(parts) - 1:
            fits = [k for k in fits if k + len(part) == len(got)]
        if not fits:
            # As far as the part goes from the place that fits best.
            best, common = at, -1
            for k in range(at, len(got)) if n else [0]:
                same = next((j for j, line in enumerate(part) if got[k + j:k + j + 1] != [line]), len(part))
                if same > common:
                    best, common = k, same
            return index + min(common, max(len(part) - 1, 0)), "".join(got[best + common:best + common + 1])
        at, index = fits[0] + len(part), index + len(part) + 1
    return None


def refreshed(shown, got, varies):
    """What the page should show now: with `...` the lines that say the same but for numbers, None when one is not found.
    Lines that only differ in what varies stay."""
    if "..." not in shown:
        same = {" ".join(plain([line], varies, True)): line for line in shown}
        return [same.get(" ".join(plain([line], varies, True)), line) for line in got]
    out, at = [], 0
    masked = [" ".join(plain([line], VARIES, False)) for line in got]
    for line in shown:
        if line.strip() and line != "...":
            want = " ".join(plain([line], VARIES, False))
            if want not in masked[at:]:
                return None
            at = masked.index(want, at) + 1
            line = got[at - 1]
        out.append(line)
    return out


def run_page(text, folder, environment, args):
    """The page's text, with --update as it should be; how many blocks were left out; faults (line, rule)."""
    lines = text.split("\n")
    todo, faults = steps(lines)
    news, left_out = [], set()
    for step in todo:
        missing = [name for key, name in step.notes if key == "large" and not args.all or
                   key in ("needs", "large") and not os.path.exists(os.path.join(folder, name))]
        if missing:
            left_out.update(missing)
            continue
        try:
            done = subprocess.run(["bash", "-c", step.command], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=args.timeout)
        except subprocess.TimeoutExpired:
            faults.append((step.start, f"not done after {args.timeout} s: {step.command}"))
            continue
        got = [line.rstrip() for line in done.stdout.strip("\n").split("\n")] if done.stdout.strip() else []
        shown = lines[step.start:step.end]
        if done.returncode:
            faults.append((step.start, f"status {done.returncode}: {step.command}\n    " + "\n    ".join(got[-5:])))
            continue
        varies = VARIES + [pattern for key, pattern in step.notes if key == "varies"]
        want = plain(shown, varies, args.strict)
        differs = difference(want, plain(got, varies, args.strict))
        if differs and args.update:
            new = refreshed(shown, got, varies)
            if new is None:
                faults.append((step.start, f"prints other lines now, to be chosen by hand: {step.command}"))
            else:
                news.append((step, new))
        elif differs:
            at, line = differs
            faults.append((step.start, f"prints something else now: {step.command}\n    the page has  "
                                       f"{''.join(want[at:at + 1])}\n    it prints     {line}"))
    for step, new in reversed(news):
        lines[step.start:step.end] = new
    return "\n".join(lines), left_out, faults


def check(root, pages, args):
    """Yields page, line, rule; says what was left out."""
    build = os.path.abspath(args.run)
    environment = dict(os.environ, PATH=os.path.join(build, "bin") + os.pathsep + os.environ["PATH"], LC_ALL="C", COLUMNS="80",
                       BUILD=os.path.join("build", os.path.basename(build)))
    for page in pages:
        path = os.path.join(root, page)
        with open(path) as f:
            text = f.read()
        if "```console" not in text and "<!-- output of: " not in text:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(root):
                if name not in ("build", ".git"):
                    os.symlink(os.path.join(root, name), os.path.join(folder, name))
            os.makedirs(os.path.join(folder, "build"))
            os.symlink(build, os.path.join(folder, environment["BUILD"]))
            if os.path.exists(os.path.join(root, "build", "models")):
                os.symlink(os.path.join(root, "build", "models"), os.path.join(folder, "build", "models"))
            new, left_out, faults = run_page(text, folder, environment, args)
        if left_out:
            print(f"{page}: blocks are left out that need {', '.join(sorted(left_out))}")
        if new != text:
            with open(path, "w") as f:
                f.write(new)
        for line, rule in faults:
            yield page, line, rule
