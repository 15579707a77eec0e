"""What the routes of the dashboard take and answer, with examples, for the OpenAPI description."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from ncttt.serve.answers import PIXEL, Asked, StreamAnswer

EventKind = Literal[
    "alarm", "calm", "domain", "reset", "frozen", "thawed", "rolled back", "collapse", "fallback", "playground"
]


class PointAnswer(BaseModel):
    """A batch, or all batches within a quarter of a second."""

    number: int = Field(description="Larger than that of all that came before, in any stream.", examples=[17])
    time: float = Field(description="Seconds since 1970.", examples=[1_800_000_000.0])
    images: int = Field(examples=[12])
    total: int = Field(description="Images of the history up to this point.", examples=[512])
    changed: int = Field(description="Predictions that differ from the source model's.", examples=[5])
    steps: int = Field(examples=[2])
    drift: float | None = Field(None, description="Drift score after the last batch.", examples=[7.4])
    alarm: bool = Field(description="Whether the drift alarm stood after the last batch.", examples=[True])
    outcome: str = Field(description="Of the last batch; empty before the first.", examples=["adapted"])
    version: int = Field(examples=[41])
    classes: dict[str, int] = Field(
        description="Predictions by the number of the class in /about.", examples=[{"3": 12}]
    )
    labels: int = Field(description="Labels that came in this time.", examples=[0])
    adapted: int = Field(description="How many of them the adapted model had predicted.", examples=[0])
    source: int = Field(description="How many of them the source model had predicted.", examples=[0])


class EventAnswer(BaseModel):
    """What happened to a stream."""

    number: int = Field(examples=[18])
    time: float = Field(examples=[1_800_000_000.0])
    total: int = Field(description="Images of the history before it.", examples=[512])
    kind: EventKind = Field(examples=["alarm"])
    text: str = Field(examples=["drift alarm: the evidence is unlike that of source images"])


class ShownAnswer(BaseModel):
    """One of the last images, small, with what both models predicted."""

    number: int = Field(examples=[19])
    image: str = Field(description="A PNG file in base64, of at most 64 pixels a side.", examples=[PIXEL])
    label: str = Field(examples=["3"])
    probability: float = Field(examples=[0.93])
    source_label: str = Field(examples=["8"])
    source_probability: float = Field(examples=[0.41])
    truth: str | None = Field(None, description="The true class, of images of the playground.", examples=["3"])


class HistoryAnswer(BaseModel):
    """The last batches of a stream; one that is not in memory has none."""

    stream: str = Field(examples=["door-2"])
    first: int = Field(description="Number of the oldest point that is kept.", examples=[1])
    next: int = Field(description="What to give as `since` to get what is new.", examples=[17])
    points: list[PointAnswer]
    events: list[EventAnswer]
    shown: list[ShownAnswer]
    facts: StreamAnswer | None = Field(None, description="What the stream is now; of one that is not there, nothing.")


class ImageSetAnswer(BaseModel):
    """An image set that the playground can show."""

    name: str = Field(examples=["digits"])
    title: str = Field(examples=["1,797 handwritten digits of scikit-learn at 32x32"])
    scenario: list[str] = Field(examples=[["clean", "frost", "motion_blur", "clean"]])


class PlaygroundAnswer(BaseModel):
    """What the playground can show, and what it is showing."""

    stream: str = Field(examples=["playground"])
    sets: list[ImageSetAnswer]
    corruptions: list[str] = Field(examples=[["clean", "frost"]])
    playing: bool = Field(examples=[True])
    scenario: bool = Field(description="Whether a scenario is being played.", examples=[True])
    data: str = Field(examples=["digits"])
    corruption: str = Field(examples=["frost"])
    severity: int = Field(examples=[5])
    sent: int = Field(description="Images since it began to play.", examples=[120])
    most: int = Field(description="Images after which it ends by itself.", examples=[2000])
    trouble: str | None = Field(None, description="Why it ended, if something was wrong.")


class PlayRequest(Asked):
    """What to play; a scenario has corruptions of its own, and begins with a new stream."""

    data: str = Field(
        "", description="Name of the image set; by default the first.", max_length=64, examples=["digits"]
    )
    corruption: str = Field("clean", max_length=64, examples=["frost"])
    severity: int = Field(5, ge=1, le=5, examples=[5])
    scenario: bool = Field(False, examples=[True])
    images_per_second: int = Field(50, ge=1, le=200, examples=[50])
