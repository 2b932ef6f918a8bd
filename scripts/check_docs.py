#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documentation against the tree. Prints FILE:LINE: RULE, exits 1.

  check_docs.py                    every Markdown file has a heading; its links and `paths` lead to something
  check_docs.py --run BUILD [FILE...]   also runs the commands of ```console blocks (README.md and docs/ by default)
  check_docs.py --run BUILD --strict    their output must be what the page shows, numbers apart
  check_docs.py --run BUILD --update    writes their output into the pages

A command is a line that starts with "$ ". The commands of a page run one after another, in a temporary folder that
looks like the top of the tree, with BUILD/bin on the PATH; each must end with status 0.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TREES = ("isa", "runtime", "toolchain", "simulator", "firmware", "tests", "scripts", "docs", "cmake", "examples")
GENERATED = ("docs/reference/",)  # named before they are there in a clean tree


def pages():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if f not in ("build", "node_modules") and not f.startswith("."))
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def anchors(path):
    """GitHub's anchors of the headings of a page."""
    text = open(os.path.join(ROOT, path)).read()
    heads = re.findall(r"^#+ +(.*?) *$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", h).lower()).replace(" ", "-") for h in heads}


def check_links(page):
    text = open(os.path.join(ROOT, page)).read()
    bare = re.sub(r"```.*?```", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)
    if not re.search(r"^# +\S", bare, re.M):
        yield 1, "a page has a heading"
    for n, line in enumerate(bare.split("\n"), 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            full = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(ROOT, full)):
                if not full.startswith(GENERATED):
                    yield n, f"link to {target}: no such file"
            elif anchor and full.endswith(".md") and anchor not in anchors(full):
                yield n, f"link to {target}: no such heading"
        for path in re.findall(r"`((?:%s)/[\w./-]+)`" % "|".join(TREES), line):
            if "..." in path:
                continue
            if not os.path.exists(os.path.join(ROOT, path)) and not path.startswith(GENERATED):
                yield n, f"`{path}`: no such file"


def mask(lines):
    return [re.sub(r"[\s-]+", " ", re.sub(r"[\d.,]+", "N", line)).strip() for line in lines]


def run_page(page, folder, environment, args):
    """Runs the page's commands; yields faults; with --update rewrites the page."""
    lines = open(os.path.join(ROOT, page)).read().split("\n")
    out, at, faults = [], 0, []
    while at < len(lines):
        out.append(lines[at])
        at += 1
        if not lines[at - 1].startswith("```console"):
            continue
        while at < len(lines) and not lines[at].startswith("```"):
            n, command = at + 1, lines[at]
            out.append(command)
            at += 1
            if not command.startswith("$ "):
                faults.append((n, "a console block starts with a command"))
                continue
            while command.endswith("\\") and at < len(lines):
                out.append(lines[at])
                command = command[:-1] + lines[at].strip()
                at += 1
            shown = []
            while at < len(lines) and not lines[at].startswith(("$ ", "```")):
                shown.append(lines[at])
                at += 1
            done = subprocess.run(["bash", "-c", command[2:]], cwd=folder, env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=args.timeout)
            got = [line.rstrip() for line in done.stdout.rstrip("\n").split("\n")] if done.stdout.strip() else []
            if done.returncode:
                faults.append((n, f"status {done.returncode}: {command[2:]}\n    " + "\n    ".join(got[-5:])))
            elif args.strict and mask(got) != mask(shown):
                faults.append((n, f"prints something else now: {command[2:]}"))
            out.extend(got if args.update and not done.returncode else shown)
    if args.update and not faults:
        with open(os.path.join(ROOT, page), "w") as f:
            f.write("\n".join(out))
    return faults


def run_pages(args):
    binaries = os.path.join(os.path.abspath(args.run), "bin")
    environment = dict(os.environ, PATH=binaries + os.pathsep + os.environ["PATH"], LC_ALL="C")
    for page in args.files or [p for p in pages() if p == "README.md" or p.startswith("docs/")]:
        if "```console" not in open(os.path.join(ROOT, page)).read():
            continue
        with tempfile.TemporaryDirectory() as folder:
            for name in os.listdir(ROOT):
                if name not in ("build", ".git"):
                    os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
            os.makedirs(os.path.join(folder, "build"))
            for line, rule in run_page(page, folder, environment, args):
                yield page, line, rule


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", metavar="BUILD")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--timeout", type=int, default=300)
    parser.add_argument("files", nargs="*", metavar="FILE")
    args = parser.parse_args()
    faults = [(page, line, rule) for page in pages() for line, rule in check_links(page)]
    count = sum(1 for _ in pages())
    if args.run:
        faults += list(run_pages(args))
    for page, line, rule in faults:
        print(f"{page}:{line}: {rule}")
    print(f"check_docs: {count} pages, {len(faults)} faults")
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
