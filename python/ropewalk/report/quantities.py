"""These functions write numbers as people read them, and place the ticks of an axis."""

import math
from collections.abc import Callable, Sequence

Form = Callable[[float], str]


def significant(value: float, digits: int = 3) -> str:
    """Returns 0.0798, 1.25, 110 or 1 598: there is no exponent, and thousands are set apart."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)) + 1e-12))
    text = f"{value:,.{min(places, 6)}f}".replace(",", "\N{NO-BREAK SPACE}")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    """Returns the value in the largest unit of which there is at least one."""
    for size, unit in units:
        if abs(value) >= 0.9995 * size:  # 0.9995 would be written as 1 000 of the smaller unit.
            return f"{significant(value / size)}\N{NO-BREAK SPACE}{unit}"
    size, unit = units[-1]
    return f"{significant(value / size)}\N{NO-BREAK SPACE}{unit}"


def size(value: float) -> str:
    """Returns bytes as 8 B, 1 KiB or 1.5 MiB."""
    return _scaled(value, ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")))


def time(value: float) -> str:
    """Returns microseconds in the unit that suits them."""
    return _scaled(value, ((1e6, "s"), (1e3, "ms"), (1, "µs"), (1e-3, "ns")))


def rate(value: float) -> str:
    """Returns a rate, which is given in 10^6 bytes a second, in the unit that suits it."""
    return _scaled(value, ((1e6, "TB/s"), (1e3, "GB/s"), (1, "MB/s"), (1e-3, "kB/s")))


def count(value: float) -> str:
    """Returns a count that may be large as 4 Ki or 16 Mi, as lengths of vectors are written."""
    if value < 1024 or value % 1024:
        return significant(value)
    return _scaled(value, ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")))


def ratio(value: float) -> str:
    return f"{significant(value, 3 if value >= 1 else 2)}×"


def percent(value: float) -> str:
    return f"{value:.0f}\N{NO-BREAK SPACE}%"


def gflops(value: float) -> str:
    return f"{significant(value)}\N{NO-BREAK SPACE}Gflop/s"


FORMS: dict[str, Form] = {
    "size": size,
    "time": time,
    "rate": rate,
    "count": count,
    "ratio": ratio,
    "percent": percent,
    "gflops": gflops,
    "number": significant,
}
# Axes with these forms have ticks at powers of two.
_BINARY = ("size", "count")


def log_ticks(low: float, high: float, form: str) -> list[list[float]]:
    """Returns sets of ticks between two positive numbers, the densest set first."""
    if form in _BINARY:
        first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
        steps = (1, 2, 3, 5, 10)
        return [[2.0**k for k in range(first, last + 1) if k % step == 0] for step in steps]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    sets = [
        [mantissa * 10.0**k for k in range(first, last + 1) for mantissa in mantissas]
        for mantissas in ((1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))
    ]
    sets += [[10.0**k for k in range(first, last + 1) if k % step == 0] for step in (2, 3)]
    near = [[tick for tick in ticks if low * 0.999 <= tick <= high * 1.001] for ticks in sets]
    return _with_thirds(low, high) + near if high < 3 * low else near


def _with_thirds(low: float, high: float) -> list[list[float]]:
    """Returns ticks for less than half a decade, which are those of an even axis."""
    return [[tick for tick in ticks if tick > 0] for ticks in linear_ticks(low, high)]


def linear_ticks(low: float, high: float) -> list[list[float]]:
    """Returns sets of ticks from low to high, the densest set first."""
    span = (high - low) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 10))
    sets = []
    for step in (power * factor for factor in (1, 2, 5, 10, 20, 50)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        sets.append([round(k * step, 12) for k in range(first, last + 1)])
    return sets


def mean(values: Sequence[float]) -> float:
    """Returns the geometric mean of positive numbers, which is the right one for ratios."""
    return math.exp(sum(math.log(value) for value in values) / len(values))
