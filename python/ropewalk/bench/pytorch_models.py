"""This module has the models that `ropewalk bench torch` trains, and makes up data for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

_CLASSES = 100
_IMAGE = 64  # points in a row or a column
_WIDTH = 800  # of the linear layers
_WORDS, _SENTENCE, _MODEL = 1000, 64, 256  # of the transformer


@dataclass(frozen=True)
class Model:
    """`batch` is how many samples a process takes in a step. `data` makes that many samples and the
    wanted answers."""

    make: Callable[[], Any]
    data: Callable[[int], tuple[Any, Any]]
    batch: int


def _linear() -> Any:
    """Has 11 MB of gradients, which take as long to exchange as to compute."""
    layers: list[Any] = []
    for _ in range(4):
        layers += [torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(_WIDTH, _CLASSES))


def _alexnet() -> Any:
    """Makes AlexNet's five convolutions and three linear layers in one column, for smaller images
    than the original's: 83 MB of gradients, most of them in the second linear layer. Without
    dropout two trainings from one seed have the same weights."""
    nn = torch.nn
    return nn.Sequential(
        *(nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(192, 384, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Flatten()),
        *(nn.Linear(256, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU()),
        nn.Linear(4096, _CLASSES),
    )


class _Transformer(torch.nn.Module):
    """Has an encoder of four layers that names a word for each place: 15 MB of gradients."""

    def __init__(self) -> None:
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(
            _MODEL, nhead=4, dim_feedforward=4 * _MODEL, dropout=0.0, batch_first=True
        )
        self.words = torch.nn.Embedding(_WORDS, _MODEL)
        self.encoder = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.answer = torch.nn.Linear(_MODEL, _WORDS)

    def forward(self, given: Any) -> Any:
        return self.answer(self.encoder(self.words(given))).transpose(1, 2)


def _vectors(count: int) -> tuple[Any, Any]:
    return torch.randn(count, _WIDTH), torch.randint(0, _CLASSES, (count,))


def _images(count: int) -> tuple[Any, Any]:
    return torch.randn(count, 3, _IMAGE, _IMAGE), torch.randint(0, _CLASSES, (count,))


def _sentences(count: int) -> tuple[Any, Any]:
    words = torch.randint(0, _WORDS, (count, _SENTENCE))
    return words, words.roll(-1, 1)


MODELS = {
    "linear": Model(_linear, _vectors, 16),
    "alexnet": Model(_alexnet, _images, 16),
    "transformer": Model(_Transformer, _sentences, 4),
}
