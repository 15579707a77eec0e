"""Colours that the colour-blind can tell apart, of Okabe and Ito; line styles and markers differ, too."""

from typing import Final

BLUE: Final = "#0072B2"
VERMILION: Final = "#D55E00"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
ORANGE: Final = "#E69F00"
SKY: Final = "#56B4E9"
YELLOW: Final = "#F0E442"
OLIVE: Final = "#8F7F00"  # the yellow of Okabe and Ito, dark enough for a thin line
SERIES: Final = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, OLIVE)  # in the order in which they are used up
ON_DARK: Final = ("#3C9BD6", "#F0803C", "#27B98E", "#DD9DC2", "#EBAF2E", "#A9DBF7", YELLOW)  # the same, lighter
# Methods that have a colour of their own on every page; others get what is left.
OF_METHODS: Final = {"nc_ttt": 0, "tent": 1, "ttt": 2, "ttt_plus": 3, "clust3": 4, "ttt_flow": 5}


def style_sheet() -> str:
    """The colours of lines as variables of a style sheet, `--series-1` and so on, for light and dark pages."""
    names = [f"--series-{place}" for place in range(1, len(SERIES) + 1)]
    light = " ".join(f"{name}: {colour};" for name, colour in zip(names, SERIES, strict=True))
    both = " ".join(
        f"{name}: light-dark({one}, {other});" for name, one, other in zip(names, SERIES, ON_DARK, strict=True)
    )
    return f":root {{ {light} }}\n@supports (color: light-dark(white, black)) {{ :root {{ {both} }} }}\n"
