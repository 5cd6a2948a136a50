#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Opens the pages of a zoo's site in headless Chromium, as a person does: site_check.py CHROMIUM_CHECK DIRECTORY. CHROMIUM_CHECK is the
# chromium_check.py of the reports, which drives the browser. Checks every page below the directory at 360 and 1440 px, light and dark, with
# and without scripts: nothing overflows, the contrast of every text to its background is at least 4.5 (WCAG 2.1, 1.4.3), Tab reaches every
# control and shows where it is, and no page sends a request. Exit code 77: Chromium is not installed.
import importlib.util
import json
import os
import shutil
import sys
import tempfile

WIDTHS = (360, 1440)

# Computes, for each text node, the contrast of its colour to the layers painted under its middle, down to the first opaque one.
CONTRAST = r"""(() => {
  const parse = c => { const m = c.match(/[\d.]+/g); return m ? [+m[0], +m[1], +m[2], m.length > 3 ? +m[3] : 1] : [0, 0, 0, 0]; };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
  const paint = e => {
    const s = getComputedStyle(e), c = parse(e instanceof SVGElement && !(e instanceof SVGSVGElement) ? (s.fill == 'none' ? 'rgba(0,0,0,0)' : s.fill) : s.backgroundColor);
    if (e instanceof SVGElement) c[3] *= +s.fillOpacity * +s.opacity;
    if (e instanceof SVGGeometryElement && (!e.getBBox().width || !e.getBBox().height)) c[3] = 0;  // a line has no inside
    return c;
  };
  const page = parse(getComputedStyle(document.documentElement).backgroundColor)[3] ? parse(getComputedStyle(document.documentElement).backgroundColor)
             : parse(getComputedStyle(document.body).backgroundColor);
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), bad = [];
  let count = 0, lowest = 99;
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement;
    if (!n.textContent.trim() || !e.checkVisibility() || ['TITLE', 'DESC', 'SCRIPT', 'STYLE'].includes(e.tagName.toUpperCase())) continue;
    const range = document.createRange(); range.selectNodeContents(n);
    let box = range.getClientRects()[0];
    if (!box || !box.width) continue;
    e.scrollIntoView({block: 'center', inline: 'center'});
    box = range.getClientRects()[0];
    const all = document.elementsFromPoint(box.left + box.width / 2, box.top + box.height / 2), layers = [];
    for (const under of all.includes(e) ? all.slice(all.indexOf(e)) : [e]) {  // what lies over it hides it, and no more
      if (under instanceof SVGTextContentElement) continue;
      const c = paint(under);
      if (c[3] > 0) layers.push(c);
      if (c[3] >= 1) break;
    }
    let ground = page;
    for (const layer of layers.reverse()) ground = over(layer, ground);
    const style = getComputedStyle(e), own = parse(e instanceof SVGElement ? style.fill : style.color);
    const x = light(over(own, ground)), y = light(ground), ratio = (Math.max(x, y) + .05) / (Math.min(x, y) + .05);
    ++count; lowest = Math.min(lowest, ratio);
    if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} of "${n.textContent.trim().slice(0, 40)}"`);
  }
  scrollTo(0, 0);
  return JSON.stringify({count, lowest, bad: bad.slice(0, 8)});
})()"""

CONTROLS = r"""[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')].filter(e => e.checkVisibility())"""

FOCUSED = r"""(() => {
  const e = document.activeElement;
  if (!e || e === document.body) return 'null';
  const i = window.controls.indexOf(e), s = getComputedStyle(e), box = e.getBoundingClientRect();
  return JSON.stringify({i, shown: s.outlineStyle != 'none' && parseFloat(s.outlineWidth) >= 1, inside: box.bottom > 0 && box.top < innerHeight,
    what: e.outerHTML.slice(0, 60)});
})()"""


def press(browser, key, code):
    for kind in ("rawKeyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, nativeVirtualKeyCode=code)


def check_keyboard(browser, where):
    problems, reached = [], set()
    total = browser.evaluate(f"(window.controls = {CONTROLS}).length")
    nameless = browser.evaluate("window.controls.filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).length")
    if nameless:
        problems.append(f"{where}: {nameless} controls without a name")
    browser.evaluate("document.activeElement?.blur(); scrollTo(0, 0)")
    for _ in range(2 * total + 60):  # Chromium also stops at scrollable boxes and at the page itself
        if len(reached) == total:
            break
        press(browser, "Tab", 9)
        focused = json.loads(browser.evaluate(FOCUSED))
        if focused and focused["i"] >= 0 and focused["i"] not in reached:
            reached.add(focused["i"])
            if not focused["shown"]:
                problems.append(f"{where}: no outline where the focus is: {focused['what']}")
            if not focused["inside"]:
                problems.append(f"{where}: the focus is out of sight: {focused['what']}")
    if len(reached) != total:
        problems.append(f"{where}: Tab reaches {len(reached)} of {total} controls")
    return problems[:5]


def check_table(browser, where):
    """The index with script: Enter on a heading sorts, words filter."""
    problems = []
    names = "JSON.stringify([...document.querySelectorAll('#models tbody tr')].filter(r => !r.hidden).map(r => r.cells[0].textContent))"
    before = json.loads(browser.evaluate(names))
    browser.evaluate("document.querySelector('#models thead button').focus()")
    for expected in (sorted(before, key=str.lower), sorted(before, key=str.lower, reverse=True)):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
        browser.call("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter", windowsVirtualKeyCode=13)
        if json.loads(browser.evaluate(names)) != expected:
            problems.append(f"{where}: Enter on a heading does not sort")
    browser.evaluate("document.querySelector('#filter input').focus()")
    browser.call("Input.insertText", text=before[0])
    left = json.loads(browser.evaluate(names))
    if left != [name for name in sorted(before, key=str.lower, reverse=True) if before[0].lower() in name.lower()]:
        problems.append(f"{where}: the filter leaves {left}")
    browser.evaluate("(q => { q.value = ''; q.dispatchEvent(new Event('input')) })(document.querySelector('#filter input'))")
    return problems


def check_page(browser, reports, path):
    problems, lowest = [], 99
    for script in (True, False):
        browser.call("Emulation.setScriptExecutionDisabled", value=not script)
        browser.media("light")
        browser.size(WIDTHS[0])
        browser.open(path)
        browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        rows = browser.evaluate("document.querySelectorAll('tbody tr').length")
        if not rows:
            problems.append("no rows")
        if browser.evaluate("document.querySelector('#filter')?.checkVisibility() ?? null") not in (None, script):
            problems.append(f"script {script}: the filter is {'hidden' if script else 'shown'}")
        for scheme in ("light", "dark"):
            browser.media(scheme)
            for width in WIDTHS:
                where = f"{width} px, {scheme}, {'with' if script else 'without'} script"
                browser.size(width)
                problems += reports.check_layout(json.loads(browser.evaluate(reports.LAYOUT)), where)
                contrast = json.loads(browser.evaluate(CONTRAST))
                problems += [f"{where}: contrast {text}" for text in contrast["bad"]]
                lowest = min(lowest, contrast["lowest"])
                problems += check_keyboard(browser, where)
        if script and browser.evaluate("!!document.querySelector('#filter')"):
            problems += check_table(browser, "with script")
        for event in browser.events:
            if event["method"] in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
                problems.append(f"console: {json.dumps(event['params'])[:300]}")
            if event["method"] == "Network.requestWillBeSent" and event["params"]["request"]["url"] != "file://" + path:
                problems.append(f"the page asked for {event['params']['request']['url'][:100]}")
    print(f"{path}: {rows} rows, {contrast['count']} texts, lowest contrast {lowest:.2f}, {len(problems)} problems")
    return [f"{path}: {problem}" for problem in problems]


def main():
    spec = importlib.util.spec_from_file_location("chromium_check", sys.argv[1])
    reports = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reports)
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not program:
        print("no chromium here (apt-get install chromium)")
        return 77
    problems, pages = [], 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = reports.Browser(program, profile)
        for folder, _, names in sorted(os.walk(os.path.realpath(sys.argv[2]))):
            for name in sorted(name for name in names if name.endswith(".html")):
                pages += 1
                problems += check_page(browser, reports, os.path.join(folder, name))
        browser.close()
    for problem in problems or ([] if pages else ["no pages"]):
        print(problem)
    return 1 if problems or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
