"""What requests and answers look like, with examples, for the OpenAPI description and for checking requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ncttt.serve.settings import NAME, STREAM

Outcome = Literal["adapted", "left to source", "too small a batch", "frozen", "collapsed", "resting", "guard"]
StreamName = Annotated[str, Field(pattern=f"^{NAME.pattern}$", examples=["door-2"])]
# An image of one pixel, so that the example can be sent as it is.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmCC"


class Asked(BaseModel):
    """A request; what it does not know is refused, so that a misspelt name is noticed."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PredictRequest(Asked):
    """Images as files in base64, and the stream that they belong to."""

    images: list[str] = Field(min_length=1, description="Image files, each in base64.", examples=[[PIXEL]])
    stream: StreamName = STREAM
    probabilities: bool = Field(False, description="Also give the probabilities of all classes.")
    shift: bool = Field(False, description="Also give the shift score before adaptation, if the method has one.")


class Prediction(BaseModel):
    """What both models say of an image."""

    id: str = Field(description="For the label, if it comes later.", examples=["7f3a-0"])
    label: str = Field(description="Class by the adapted model.", examples=["3"])
    probability: float = Field(examples=[0.93])
    source_label: str = Field(description="Class by the model as it was trained.", examples=["8"])
    source_probability: float = Field(examples=[0.41])
    probabilities: list[float] | None = Field(None, description="Of all classes, by the adapted model.")
    source_probabilities: list[float] | None = Field(None, description="Of all classes, as it was trained.")
    shift: float | None = Field(None, description="Shift score before adaptation.")


class Batch(BaseModel):
    """The batch that the images were part of, and what was done with it."""

    images: int = Field(examples=[12])
    steps: int = Field(description="Steps that were taken.", examples=[0])
    steps_allowed: int = Field(description="Steps that the latency budget had time for.", examples=[4])
    stopped: str = Field(description="Why the steps ended, in the words of the trace.", examples=["gathering"])
    loss_first: float | None = None
    loss_last: float | None = None
    shift_before: float | None = None
    shift_after: float | None = None
    confidence: float | None = Field(None, examples=[0.61])
    evidence: float | None = Field(None, examples=[4.2])
    changed: int = Field(description="Predictions that differ from the source model's.", examples=[5])
    collapsed: bool | None = None
    agreement: float | None = None
    regret: float | None = None
    class_shift: float | None = None
    entropy: float | None = None
    score: float | None = None


class DriftAnswer(BaseModel):
    """How unlike source images the last images of the stream look."""

    score: float = Field(description="-log10 of the share of windows of source images as unlike.", examples=[7.4])
    alarm: bool = Field(examples=[True])
    images: int = Field(description="Images in the window.", examples=[64])
    reason: str = Field(description="The signal that lies furthest from source images.", examples=["evidence"])


class Milliseconds(BaseModel):
    """Where the time went."""

    waiting: float = Field(description="For the batch.", examples=[5.1])
    model: float = Field(description="In the model.", examples=[8.3])
    total: float = Field(description="From the first byte that was read to the answer.", examples=[14.9])


class PredictAnswer(BaseModel):
    """Predictions in the order of the images, and the state of the stream; `saved` survives a kill."""

    stream: str = Field(examples=["door-2"])
    predictions: list[Prediction]
    outcome: Outcome = Field(examples=["adapted"])
    batch: Batch
    drift: DriftAnswer | None = None
    version: int = Field(description="Version of the stream's state after this batch.", examples=[41])
    saved: int = Field(description="Newest version that is on disk.", examples=[38])
    milliseconds: Milliseconds


class Label(Asked):
    """The true class of an image."""

    id: str = Field(description="The id that the prediction had.", examples=["7f3a-0"], max_length=64)
    label: str = Field(description="The name of the class.", examples=["3"], max_length=256)


class FeedbackRequest(Asked):
    """Labels that came after the predictions."""

    labels: list[Label] = Field(min_length=1, max_length=10_000)


class Score(BaseModel):
    """How often both models were right on the images of a stream whose labels came."""

    stream: str = Field(examples=["door-2"])
    labels: int = Field(examples=[120])
    adapted_accuracy: float = Field(examples=[0.91])
    source_accuracy: float = Field(examples=[0.62])


class FeedbackAnswer(BaseModel):
    """Scores of the streams that these labels belong to, and ids that are not, or no longer, known."""

    scores: list[Score]
    unknown: list[str] = Field(examples=[[]])


class StreamAnswer(BaseModel):
    """A stream; of one that is on disk, `frozen`, `images` and `drift` are not known without loading it."""

    name: str = Field(examples=["door-2"])
    hot: bool = Field(description="Whether it is in memory.", examples=[True])
    version: int = Field(examples=[41])
    saved: int = Field(examples=[41])
    versions: list[int] = Field(description="Versions on disk, to roll back to.", examples=[[1, 30, 38, 41]])
    frozen: bool | None = Field(None, examples=[False])
    images: int | None = Field(None, examples=[512])
    drift: DriftAnswer | None = None


class StreamList(BaseModel):
    """Some of the streams, by name, and how many there are."""

    streams: list[StreamAnswer]
    total: int = Field(examples=[1])


class RollBackRequest(Asked):
    """The version to go back to."""

    version: int = Field(ge=0, le=2**53, examples=[38])


class About(BaseModel):
    """What is served."""

    ncttt: str = Field(examples=["0.3.0"])
    model: str = Field(examples=["digits-small-ncttt"])
    method: str = Field(examples=["nc_ttt"])
    protocol: str = Field(examples=["online"])
    stop: str | None = Field(None, examples=["source"])
    steps: int = Field(examples=[4])
    size: int = Field(description="Side of the images, in pixels.", examples=[32])
    playground: bool = Field(description="Whether the dashboard has a playground.", examples=[False])
    most_shown: int = Field(description="Images of each stream that the dashboard shows.", examples=[12])
    classes: list[str] = Field(examples=[["0", "1"]])


class Refusal(BaseModel):
    """What was wrong, in a sentence."""

    detail: str = Field(examples=["image 1: cannot be read as an image (cannot identify image file)"])
