#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documentation against the tree. Prints FILE:LINE: RULE, exits 1.

  check_docs.py                    every Markdown file has a heading; its links, files, functions and options are there; pages
                                   that explain a .def table have all of its rows
  check_docs.py --run BUILD [FILE...]   also runs the commands of console blocks (README.md and docs/ by default); what they print
                                   is what the page shows, numbers apart
  check_docs.py --run BUILD --strict    numbers too
  check_docs.py --run BUILD --update    writes their output into the pages

--all: large models too, where scripts/models has brought them. How a page says what is compared, and what may differ:
scripts/docs_checks/README.md.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from docs_checks import commands, links, tables  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", metavar="BUILD")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--timeout", type=int, default=300)
    parser.add_argument("files", nargs="*", metavar="FILE")
    args = parser.parse_args()
    args.strict |= args.update
    tree = links.Tree(ROOT)
    faults = [(page, line, rule) for page in tree.pages() for line, rule in links.check(tree, page)]
    faults += list(tables.check(ROOT))
    if args.run:
        faults += list(commands.check(ROOT, args.files or [p for p in tree.pages() if p == "README.md" or p.startswith("docs/")], args))
    for page, line, rule in faults:
        print(f"{page}:{line}: {rule}")
    print(f"check_docs: {len(tree.pages())} pages, {len(faults)} faults")
    return 1 if faults or not tree.pages() else 0


if __name__ == "__main__":
    sys.exit(main())
