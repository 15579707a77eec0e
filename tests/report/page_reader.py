"""A page as a test reads it: its texts, its tags, its tables."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

EMPTY = {"meta", "img", "br", "input"}


@dataclass
class Tag:
    name: str
    attributes: dict
    inside: list = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(part if isinstance(part, str) else part.text for part in self.inside).split())

    def all(self, name: str | None = None, **attributes) -> list["Tag"]:
        """Tags of this name below, with these attributes."""
        found = []
        for part in self.inside:
            if isinstance(part, Tag):
                fits = all(
                    part.attributes.get(key.strip("_").replace("_", "-")) == value for key, value in attributes.items()
                )
                found += [part] if fits and name in (None, part.name) else []
                found += part.all(name, **attributes)
        return found

    def one(self, name: str, **attributes) -> "Tag":
        (found,) = self.all(name, **attributes)
        return found


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = [Tag("page", {})]

    def handle_starttag(self, tag, attrs):
        found = Tag(tag, dict(attrs))
        self.open[-1].inside.append(found)
        if tag not in EMPTY:
            self.open.append(found)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].inside.append(Tag(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open[-1].name == tag, f"</{tag}> closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].inside.append(data)


def read_page(path) -> Tag:
    """The page as a tree; a tag that is not closed, or closed out of turn, is an error."""
    reader = _Reader()
    reader.feed(path.read_text("utf-8"))
    reader.close()
    (root,) = reader.open
    return root
