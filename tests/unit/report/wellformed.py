"""Reads an HTML page strictly: every element closed in order, ids unique, and what the page refers to."""

from html.parser import HTMLParser

VOID = {"br", "hr", "input", "link", "meta"}
REFERRING = {"src", "href", "srcset", "action", "data", "poster", "xlink:href", "background", "cite"}


class Page(HTMLParser):
    """`Page(text)`: AssertionError where it is not well formed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []  # element, text
        self.feed(text)
        self.close()
        assert self.open == [], f"never closed: {self.open}"
        assert len(self.ids) == len(set(self.ids)), "an id is there twice"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute of {tag} is there twice"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.append((self.open[-1], data))

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    def all(self, tag: str) -> list[dict[str, str]]:
        """Attributes of every element of that name."""
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, *tags: str) -> str:
        """All text, or that directly inside elements of these names."""
        return "".join(data for tag, data in self.texts if not tags or tag in tags)

    @property
    def references(self) -> list[str]:
        """Whatever an element points to."""
        return [value for _, attributes in self.elements for name, value in attributes.items() if name in REFERRING]
