# SPDX-License-Identifier: Apache-2.0
"""Links lead to something in the tree; files, functions and options that pages name are there."""
import fnmatch
import os
import re

TREES = ("isa", "runtime", "toolchain", "simulator", "firmware", "tests", "scripts", "docs", "cmake", "examples")
SOURCES = (".c", ".h", ".cpp", ".def", ".py", ".S", ".ld", ".md")
GENERATED = ("docs/reference/",)  # named before they are there in a clean tree
# Options of other programs: cmake, pkg-config, Criterion.
FOREIGN = {"--install", "--component", "--prefix", "--define-prefix", "--cflags", "--libs", "--filter"}
SKIPPED = ("build", "node_modules", "__pycache__")


class Tree:
    """Its files, every word of its sources that a parenthesis follows, and every option of programs and scripts."""

    def __init__(self, root):
        self.root, self.files, self.called, self.options = root, [], set(), set(FOREIGN)
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
            self.files += [os.path.relpath(os.path.join(folder, name), root) for name in sorted(names)]
        for path in self.files:
            if path.endswith(SOURCES) and not path.endswith(".md"):
                self.called.update(re.findall(r"\b([A-Za-z_]\w*)\s*\(", self.text(path)))
            if path.endswith("options.def"):
                self.options.update("--" + name for name in re.findall(r'OPTION\(\w+,\s*"([\w-]+)"', self.text(path)))
            elif path.endswith((".py", "CMakeLists.txt", "Presets.json")) or path.startswith("scripts/") and "." not in path:
                self.options.update(re.findall(r"--[a-z][\w-]+", self.text(path)))

    def text(self, path):
        with open(os.path.join(self.root, path), encoding="latin-1") as f:
            return f.read()

    def pages(self):
        return [path for path in self.files if path.endswith(".md")]

    def has(self, name):
        """A path or the end of one; `*` stands for anything."""
        return bool(fnmatch.filter(self.files, name) or fnmatch.filter(self.files, "*/" + name)) or \
            os.path.exists(os.path.join(self.root, name))


def anchors(text):
    """GitHub's anchors of the headings of a page."""
    heads = re.findall(r"^#+ +(.*?) *$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", h).lower()).replace(" ", "-") for h in heads}


def check_links(tree, page, line):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(os.path.join(tree.root, full)):
            if not full.startswith(GENERATED):
                yield f"link to {target}: no such file"
        elif anchor and full.endswith(".md") and anchor not in anchors(tree.text(full)):
            yield f"link to {target}: no such heading"


def check_names(tree, line):
    """`folder/file`, `file.c`, `pass_*.c`, `function()`; a name with <...> or ... in it is a pattern of the page."""
    if re.match(r"\| new: ", line):
        return
    for word in re.findall(r"`([^`\s]+)`", line):
        if "..." in word or "<" in word:
            continue
        if re.fullmatch(r"(?:%s)/[\w*./-]+" % "|".join(TREES), word) or re.fullmatch(r"[\w*/-][\w*./-]*", word) and word.endswith(SOURCES):
            if not tree.has(word.rstrip("/")) and not word.startswith(GENERATED):
                yield f"`{word}`: no such file"
        function = re.fullmatch(r"([A-Za-z_]\w*)\(\)", word)
        if function and function[1] not in tree.called:
            yield f"`{word}`: no such function"


def check_code(tree, text):
    """Functions that ```c blocks call are there, or defined in the block."""
    for block in re.finditer(r"^```c\n(.*?)^```", text, re.M | re.S):
        code = re.sub(r"//[^\n]*|\"(?:[^\"\\]|\\.)*\"", "", block[1])
        own = set(re.findall(r"^[A-Za-z_][\w *]*?\b(\w+)\(", code, re.M))
        for called in sorted(set(re.findall(r"\b([a-z_]\w*)\(", code)) - own - {"if", "for", "while", "switch", "return", "sizeof"}):
            if called not in tree.called:
                yield text.count("\n", 0, block.start()) + 1, f"{called}() in the example: no such function"


def check_folders(tree, page, text):
    """The README of a folder of sources names the folders below it."""
    here = os.path.dirname(page)
    if not here or not page.endswith("/README.md") or here.startswith("tests/data"):
        return
    below = {path[len(here) + 1:].split("/")[0] for path in tree.files if path.startswith(here + "/") and path.count("/") > here.count("/") + 1}
    for name in sorted(below - {"images"}):
        if not re.search(r"\b%s\b" % re.escape(name), text):
            yield 1, f"nothing is said about the folder {name}/"


def check(tree, page):
    """Yields line, rule."""
    text = tree.text(page)
    bare = re.sub(r"```.*?```", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)
    if not re.search(r"^# +\S", bare, re.M):
        yield 1, "a page has a heading"
    for n, line in enumerate(bare.split("\n"), 1):
        for rule in [*check_links(tree, page, line), *check_names(tree, line)]:
            yield n, rule
    for n, line in enumerate(text.split("\n"), 1):
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]+", line):
            if option not in tree.options:
                yield n, f"{option}: no such option"
    yield from check_code(tree, text)
    yield from check_folders(tree, page, text)
