#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Opens report pages in headless Chromium and compares them with their report.json: chromium_check.py DIRECTORY [--shots DIR]
# checks every NAME.html there against NAME.json. Exits with 77 if there is no Chromium. Needs only Python's standard library:
# it speaks the DevTools protocol over a pipe (file descriptors 3 and 4, messages end in a NUL).
# Trap: Chromium needs --no-sandbox to run as root. The pages are our own, and their security policy forbids everything.
import argparse
import base64
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (360, 800, 1400)
SCHEMES = ("light", "dark")
PRINT_WIDTH = 703  # CSS pixels of A4 between the page's margins of 12 mm
LOWEST_HEADING = 120  # points above a printed page's end: the margin of 14 mm, the heading and a line below it
HEADING = re.compile(rb"/Title \(((?:[^()\\]|\\.)*)\)\s*/Dest \[\d+ 0 R /XYZ [\d.]+ ([\d.]+)")  # a heading in a PDF's outline

# Queries to a page. Each is one JavaScript expression that returns JSON.
LAYOUT = r"""(() => {
  const wide = document.documentElement.clientWidth, out = [];
  const seen = e => e.checkVisibility ? e.checkVisibility() : true;
  for (const e of document.body.querySelectorAll('*')) {
    if (!seen(e) || e.closest('.wide') && !e.classList.contains('wide')) continue;
    const box = e.getBoundingClientRect();
    if (box.width && (box.right > wide + 0.5 || box.left < -0.5))
      out.push(`<${e.tagName.toLowerCase()} class="${e.getAttribute('class') || ''}"> from ${box.left} to ${box.right}`);
  }
  const clipped = [], overlaps = [], small = [];
  for (const svg of document.querySelectorAll('svg')) {
    const frame = svg.getBoundingClientRect(), id = svg.getAttribute('aria-labelledby');
    const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    for (const [text, box] of texts) {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
        clipped.push(`${id}: "${text}"`);
      if (box.height < 8) small.push(`${id}: "${text}" is ${box.height} px high`);
    }
    for (let i = 0; i < texts.length; ++i) for (let j = 0; j < i; ++j) {
      const a = texts[i][1], b = texts[j][1];
      const x = Math.min(a.right, b.right) - Math.max(a.left, b.left), y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (x > 1 && y > 0.35 * Math.min(a.height, b.height)) overlaps.push(`${id}: "${texts[i][0]}" on "${texts[j][0]}"`);
    }
  }
  // A table that goes on beyond its edge fades there.
  const silent = [...document.querySelectorAll('.wide')].filter(e => seen(e) && e.scrollWidth > e.clientWidth + 1 &&
    !(getComputedStyle(e, '::after').position == 'sticky' && parseFloat(getComputedStyle(e, '::after').width) >= 16))
    .map(e => e.getAttribute('aria-label'));
  const style = getComputedStyle(document.body);
  return JSON.stringify({wide, scroll: document.documentElement.scrollWidth, out: out.slice(0, 5), clipped: clipped.slice(0, 5),
    overlaps: overlaps.slice(0, 5), small: small.slice(0, 5), silent: silent.slice(0, 5), background: style.backgroundColor, color: style.color});
})()"""

CONTENT = r"""JSON.stringify({
  title: document.title, scripts: document.querySelectorAll('script, img, link, iframe, object, embed').length,
  handlers: [...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).length,
  ids: [...document.querySelectorAll('[id]')].map(e => e.id),
  links: [...document.querySelectorAll('a')].map(a => a.getAttribute('href')),
  figures: [...document.querySelectorAll('svg')].map(s => [s.querySelector('title')?.textContent, s.querySelector('desc')?.textContent]),
  values: [...document.querySelectorAll('[data-path]')].map(e =>
    [e.dataset.path, e.getAttribute('value') ?? e.dataset.value, e.tagName.toLowerCase() == 'data' ? e.textContent : null]),
  rows: [...document.querySelectorAll('#methods .wide')].slice(0, 1).flatMap(t => [...t.querySelectorAll('tbody tr')]).length,
  lines: [...document.querySelectorAll('svg')].map(s => [s.dataset.scale, [...s.querySelectorAll('polyline[data-series]')].map(p =>
    [p.dataset.series, p.dataset.member, p.getAttribute('points')])])})"""

CONTRAST = r"""(() => {
  const probe = document.createElement('i'); document.body.append(probe);
  const rgb = v => { probe.style.color = `var(${v})`; return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number); };
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
  const ratio = (a, b) => { const x = light(rgb(a)), y = light(rgb(b)); return (Math.max(x, y) + .05) / (Math.min(x, y) + .05); };
  const out = {};
  for (const v of ['--fg', '--muted', '--good', '--bad', '--s0', '--s1', '--s2', '--s3', '--s4', '--s5', '--sn', '--sr']) out[v] = ratio(v, '--bg');
  for (let i = 0; i < 9; ++i) out['--h' + i] = ratio('--h' + i, i <= 4 ? '--fg' : '--bg');
  probe.remove();
  return JSON.stringify(out);
})()"""


class Browser:
    """One headless Chromium with one tab."""

    def __init__(self, program, profile):
        to_child, self.write_end = os.pipe()
        self.read_end, from_child = os.pipe()

        def pipes_at_3_and_4():
            inward, outward = os.dup(to_child), os.dup(from_child)
            os.dup2(inward, 3)
            os.dup2(outward, 4)

        arguments = [program, "--headless", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run",
                     "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1", "--disable-dev-shm-usage",
                     "--no-default-browser-check", "--disable-background-networking", "--disable-component-update"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(arguments + ["about:blank"], preexec_fn=pipes_at_3_and_4, close_fds=False,
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        os.close(to_child)
        os.close(from_child)
        self.buffer, self.next_id, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def receive(self):
        while b"\0" not in self.buffer:
            data = os.read(self.read_end, 1 << 20)
            if not data:
                self.log.seek(0)
                sys.exit("chromium ended: " + self.log.read().decode(errors="replace")[-2000:])
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.next_id:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            sys.exit(f"in the page: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, path):
        self.events = []
        self.call("Page.navigate", url="file://" + path)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            event = self.receive()
            if "method" in event:
                self.events.append(event)

    def size(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, scheme, media="screen"):
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path, whole_page, scale=1):
        options = {"format": "png", "captureBeyondViewport": whole_page}
        if whole_page:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": scale}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))

    def close(self):
        self.session = None
        os.write(self.write_end, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        self.process.wait(timeout=30)


def at_pointer(document, pointer):
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        document = document[int(token)] if isinstance(document, list) else document[token]
    return document


def shows(text, value):
    """Whether a printed number is `value`, rounded to the digits shown."""
    text = text.replace("\u202f", "")
    scale = 100 if text.endswith("%") else 1e-9 if text.endswith("GB") else 1
    text = text.removesuffix("%").removesuffix("GB")
    match = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?", text)
    if not match:
        return False
    unit = 10.0 ** (int(match[4] or 0) - len(match[3] or ""))
    # Only a value that rounds to zero may be printed as zero.
    if not re.search(r"[1-9]", text) and value != 0 and abs(value * scale) > 0.5 * unit:
        return False
    return abs(float(text) - value * scale) <= 0.5000001 * unit


def check_values(content, report):
    problems = []
    for pointer, exact, text in content["values"]:
        try:
            value = at_pointer(report, pointer)
        except (KeyError, IndexError, ValueError):
            problems.append(f"{pointer} is not in the record")
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or float(exact) != value:
            problems.append(f"{pointer}: the page holds {exact}, the record {value}")
        elif text is not None and not shows(text, value):
            problems.append(f"{pointer}: the page shows {text!r}, the record {value}")
    return problems


def check_lines(content, report):
    """Checks that every chart's lines follow one straight axis of the record's values: y = a + b f(value)."""
    problems = []
    for scale, lines in content["lines"]:
        pairs = []
        for pointer, member, points in lines:
            values = [item[member] if member else item for item in at_pointer(report, pointer)]
            if scale == "log":
                values = [math.log(value) for value in values if value > 0]
            places = [float(point.split(",")[1]) for point in points.split()]
            if len(places) != len(values):
                problems.append(f"{pointer}: {len(places)} points for {len(values)} values")
                continue
            pairs += zip(values, places)
        pairs.sort()
        if len(pairs) < 3 or pairs[0][0] == pairs[-1][0]:
            continue
        (v0, y0), (v1, y1) = pairs[0], pairs[-1]
        worst = max(abs(y0 + (y1 - y0) * (v - v0) / (v1 - v0) - y) for v, y in pairs)
        if worst > 0.15 or y1 >= y0:
            problems.append(f"{lines[0][0]}: a point is drawn {worst:.2f} units from its value")
    return problems


def check_arm_table(content, report):
    validation = report.get("validation")
    if not validation:
        return []
    shown = {pointer for pointer, _, text in content["values"] if text is not None}
    wanted = []
    for i, arm in enumerate(validation["arms"]):
        members = ["local/kl/mean", "local/output_rel_error", "bits_per_element/paper", "bits_per_element/actual"]
        members += ["end_to_end/kl/mean"] * ("end_to_end" in arm) + ["needle/accuracy"] * ("needle" in arm)
        if "text" in arm:
            members += ["text/perplexity", "text/ppl_ratio", "text/token_kl/mean", "text/top1_agreement"]
        wanted += [f"/validation/arms/{i}/{member}" for member in members]
    problems = [f"{pointer} is not shown" for pointer in wanted if pointer not in shown]
    if content["rows"] < len(validation["arms"]):
        problems.append(f"the arm table has {content['rows']} rows for {len(validation['arms'])} arms")
    return problems


def check_content(content, report):
    problems = check_values(content, report) + check_lines(content, report) + check_arm_table(content, report)
    if content["scripts"] or content["handlers"]:
        problems.append(f"{content['scripts']} scripts or loaded things, {content['handlers']} handlers")
    if not content["title"].endswith("oscar report"):
        problems.append(f"the title became {content['title']!r}")
    if len(content["ids"]) != len(set(content["ids"])):
        problems.append("an id is used twice")
    problems += [f"a link to {link}, which is nowhere" for link in content["links"] if link[0] != "#" or link[1:] not in content["ids"]]
    problems += [f"a chart without title or description: {names}" for names in content["figures"] if not all(names)]
    return problems


def check_layout(layout, where):
    problems = []
    if layout["scroll"] > layout["wide"]:
        problems.append(f"{where}: {layout['scroll']} px of page in {layout['wide']} px")
    for key in ("out", "clipped", "overlaps", "small", "silent"):
        problems += [f"{where}: {key}: {entry}" for entry in layout[key]]
    return problems


def check_page(browser, path, report, shots):
    problems = []
    name = os.path.splitext(os.path.basename(path))[0]
    browser.media("light")
    browser.size(WIDTHS[0])
    browser.open(path)
    content = json.loads(browser.evaluate(CONTENT))
    problems += check_content(content, report)
    backgrounds = set()
    for scheme in SCHEMES:
        browser.media(scheme)
        for colour, ratio in json.loads(browser.evaluate(CONTRAST)).items():
            if ratio < 4.5:
                problems.append(f"{scheme}: contrast of {colour} is {ratio:.2f}")
        for width in WIDTHS:
            browser.size(width)
            browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
            if shots:
                browser.screenshot(os.path.join(shots, f"{name}-{scheme}-{width}.png"), True)
            browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            layout = json.loads(browser.evaluate(LAYOUT))
            backgrounds.add(layout["background"])
            problems += check_layout(layout, f"{scheme}, {width} px")
    if len(backgrounds) != 2:
        problems.append(f"light and dark share a background: {backgrounds}")

    browser.media("dark", "print")
    browser.size(PRINT_WIDTH)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
    layout = json.loads(browser.evaluate(LAYOUT))
    problems += check_layout(layout, "print")
    if browser.evaluate("document.querySelector('#settings > details')?.checkVisibility() ?? false"):
        problems.append("print: the settings are printed whole")
    # Printed boxes do not scroll, so overflowing content is lost.
    cut = browser.evaluate("[...document.querySelectorAll('.wide table')].map(t => t.getBoundingClientRect().right).reduce((a, b) => Math.max(a, b), 0)")
    if cut > PRINT_WIDTH + 0.5:
        problems.append(f"print: a table reaches to {cut} px of {PRINT_WIDTH}")
    if layout["background"] != "rgb(255, 255, 255)":
        problems.append(f"print: the background is {layout['background']}")
    browser.media("light", "")
    pdf = base64.b64decode(browser.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True, generateTaggedPDF=True,
                                        generateDocumentOutline=True)["data"])
    if not pdf.startswith(b"%PDF-") or len(pdf) < 10000:
        problems.append(f"print: {len(pdf)} bytes that are no PDF")
    headings = HEADING.findall(pdf)
    if not headings:
        problems.append("print: no headings in the outline")
    problems += [f"print: {title.decode(errors='replace')!r} is stranded {height.decode()} points above the page's end"
                 for title, height in headings if float(height) < LOWEST_HEADING]
    if shots:
        with open(os.path.join(shots, f"{name}.pdf"), "wb") as file:
            file.write(pdf)

    for event in browser.events:
        if event["method"] in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            problems.append(f"console: {json.dumps(event['params'])[:300]}")
        if event["method"] == "Network.requestWillBeSent":
            url = event["params"]["request"]["url"]
            if url != "file://" + path:
                problems.append(f"the page asked for {url[:100]}")
    print(f"{name}: {len(content['values'])} values, {sum(len(lines) for _, lines in content['lines'])} lines, "
          f"{len(content['figures'])} charts, {os.path.getsize(path)} bytes, {len(problems)} problems")
    return [f"{name}: {problem}" for problem in problems]


def main():
    parser = argparse.ArgumentParser(description="Checks report pages in headless Chromium.")
    parser.add_argument("directory")
    parser.add_argument("--shots", help="writes screenshots and PDFs there")
    parser.add_argument("--only", help="this page alone")
    arguments = parser.parse_args()
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not program:
        print("no chromium here (apt-get install chromium)")
        return 77
    if arguments.shots:
        os.makedirs(arguments.shots, exist_ok=True)
    pages = sorted(name for name in os.listdir(arguments.directory) if name.endswith(".html"))
    if arguments.only:
        pages = [arguments.only + ".html"]
    problems = [] if pages else ["no pages"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        for page in pages:
            path = os.path.realpath(os.path.join(arguments.directory, page))
            with open(path.removesuffix(".html") + ".json", encoding="utf-8") as file:
                report = json.load(file)
            problems += check_page(browser, path, report, arguments.shots)
        browser.close()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
