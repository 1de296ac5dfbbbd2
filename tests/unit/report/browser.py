"""Opens a page in a real browser engine (Qt's Chromium) and prints, as JSON, what it found there.

    python browser.py PAGE WIDTH THEME [PICTURES]

PICTURES: the beginning of the names of screenshots, from the top of the page to its end.

In a process of its own, because the engine wants the main thread, and an environment without display and sandbox.
"""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QTWEBENGINE_CHROMIUM_FLAGS", "--no-sandbox --disable-gpu --force-device-scale-factor=1")

from PySide6.QtCore import QTimer, QUrl
from PySide6.QtWebEngineCore import QWebEnginePage, QWebEngineProfile, QWebEngineUrlRequestInterceptor
from PySide6.QtWebEngineWidgets import QWebEngineView
from PySide6.QtWidgets import QApplication

SETTLED = 400  # ms
HEIGHT, STEP = 1400, 1330  # px of the window, and from picture to picture

LOOK = """
(function () {
  var root = document.documentElement, button = document.getElementById("theme");
  if (THEME) { root.setAttribute("data-theme", THEME); }
  var found = {
    height: root.scrollHeight, overflow: root.scrollWidth - root.clientWidth,
    background: getComputedStyle(document.body).backgroundColor,
    names: Array.from(document.querySelectorAll("button, a, [role=img], [role=region]")).filter(function (item) {
      return !(item.getAttribute("aria-label") || item.textContent).trim();
    }).length,
    broken: Array.from(document.querySelectorAll("a[href^='#']")).filter(function (item) {
      return !document.getElementById(item.getAttribute("href").slice(1));
    }).length,
    ids: document.querySelectorAll("[id]").length,
    distinct: new Set(Array.from(document.querySelectorAll("[id]")).map(function (item) { return item.id; })).size,
    small: Array.from(document.querySelectorAll("svg text")).filter(function (item) {
      return item.getBoundingClientRect().height < 8 && item.getBoundingClientRect().height > 0;
    }).length
  };
  var before = getComputedStyle(document.body).backgroundColor;
  button.click();
  found.toggled = getComputedStyle(document.body).backgroundColor !== before;
  button.click();
  var legend = document.querySelector("[data-filter] button");
  if (legend) {
    legend.click();
    var paths = document.querySelectorAll(".warps path[data-reason]");
    found.dimmed = Array.from(paths).filter(function (p) { return getComputedStyle(p).opacity !== "1"; }).length;
    found.paths = paths.length;
    legend.click();
  }
  if (THEME) { root.setAttribute("data-theme", THEME); }
  return JSON.stringify(found);
})()
"""


class Requests(QWebEngineUrlRequestInterceptor):
    """Notes what the page asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def interceptRequest(self, info: object) -> None:
        url = info.requestUrl().toString()
        if not url.startswith(("file:", "data:")):
            self.asked.append(url)


class Page(QWebEnginePage):
    """Notes what scripts complain of."""

    messages: list[str]

    def javaScriptConsoleMessage(self, level: object, message: str, line: int, source: str) -> None:
        self.messages.append(f"{message} (line {line})")


def main(page: str, width: int, theme: str, picture: str | None) -> None:
    app = QApplication(sys.argv[:1])
    profile, requests = QWebEngineProfile(), Requests()
    profile.setUrlRequestInterceptor(requests)
    view = QWebEngineView()
    shown = Page(profile, view)
    shown.messages = []
    view.setPage(shown)
    view.resize(width, HEIGHT)
    result: dict[str, object] = {}

    def take(number: int) -> None:
        view.grab().save(f"{picture}-{number:02}.png")
        if (number + 1) * STEP < int(str(result["height"])):
            shown.runJavaScript(f"window.scrollTo({{top: {(number + 1) * STEP}, behavior: 'instant'}})")
            QTimer.singleShot(SETTLED, lambda: take(number + 1))
        else:
            finish()

    def finish() -> None:
        result.update(messages=shown.messages, requests=requests.asked)
        print(json.dumps(result))
        view.setPage(None)
        shown.deleteLater()
        app.quit()

    def looked(text: str) -> None:
        result.update(json.loads(text))
        QTimer.singleShot(SETTLED, lambda: take(0) if picture else finish())

    def loaded(ok: bool) -> None:
        result["loaded"] = ok
        QTimer.singleShot(SETTLED, lambda: shown.runJavaScript(LOOK.replace("THEME", json.dumps(theme)), looked))

    view.loadFinished.connect(loaded)
    view.load(QUrl.fromLocalFile(str(Path(page).resolve())))
    view.show()
    QTimer.singleShot(60_000, app.quit)
    app.exec()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None)
