"""Colours that the colour-blind can tell apart, of Okabe and Ito; line styles and markers differ, too."""

from typing import Final

BLUE: Final = "#0072B2"
VERMILION: Final = "#D55E00"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
ORANGE: Final = "#E69F00"
SKY: Final = "#56B4E9"
YELLOW: Final = "#F0E442"
SERIES: Final = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)  # in the order in which they are used up
