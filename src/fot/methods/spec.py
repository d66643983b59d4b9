"""Specs: the text that names a method, its parameters and what it is composed with.

    name                      fot
    name:key=value,key=value  fot:checkpoints=6000/10000/14000,keep=0.67
    outer+inner, inner+outer  ac+fot, fot:keep=0.5+decided

A method that samples (ac, dsc, waves) is written before the one that runs inside it, a stop (decided, bayes) behind.

Lists are joined by `/`; a comma, slash, plus or percent sign inside a value is percent-encoded.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Union
from urllib.parse import quote, unquote

from fot.core.ledger import Charge
from fot.core.markers import PAPER_KERNEL, Kernel, kernel_of
from fot.core.policy import Need, Policy
from fot.core.registry import unknown_name
from fot.errors import ConfigError

__all__ = ["METHODS", "Context", "Method", "Prepared", "Recorded", "Spec", "methods", "parameter", "parse", "written"]

METHODS: dict[str, str] = {
    "sc": "fot.methods.sampling:SC",
    "pass": "fot.methods.sampling:PASS",
    "first-n": "fot.methods.sampling:FIRST_N",
    "fot": "fot.methods.funnel:FOT",
    "random": "fot.methods.funnel:RANDOM",
    "oracle": "fot.methods.funnel:ORACLE",
    "adaptive": "fot.methods.adaptive:ADAPTIVE",
    "waves": "fot.methods.waves:WAVES",
    "ac": "fot.methods.sequential:AC",
    "esc": "fot.methods.sequential:ESC",
    "dsc": "fot.methods.dsc:DSC",
    "certaindex": "fot.methods.certaindex:CERTAINDEX",
    "parallel-probe": "fot.methods.parallel_probe:PARALLEL_PROBE",
    "slimsc": "fot.methods.slimsc:SLIMSC",
    "deepconf": "fot.methods.confidence:DEEPCONF",
    "cisc": "fot.methods.confidence:CISC",
    "decided": "fot.methods.decided:DECIDED",
    "bayes": "fot.methods.bayes:BAYES",
}
"""The project's own methods; others come by the entry-point group `fot.methods`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a policy is built for: one problem, at one draw."""

    k: int
    problem: str = ""
    seed: int = 0
    draw: int = 0
    brief: object = None
    """What `Method.prepare` settled for this problem."""
    charges: tuple[Charge, ...] = ()
    """What settling it cost beside the rollouts; the driver adds it to the bill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One problem as a method that needs the whole data set may see it: its rollouts in the order of the draw."""

    context: Context
    answers: Sequence[str | None]
    tokens: Sequence[int]
    difficulty: float | None = None
    """As a model ranked it or the rows state it, where they do; higher is harder."""
    judging: Sequence[Charge] = ()
    """What the model's ranking cost for this problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a method settled over a data set: for each problem, in order, a brief for its policy."""

    briefs: Sequence[object]
    notes: Sequence[str] = ()
    """What a reader of the results must know."""
    charges: Sequence[Sequence[Charge]] = ()
    """What settling it cost beside the rollouts, for each problem; empty: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method as the registry holds it. `plan` is a frozen dataclass whose fields are the parameters.

    A stop, which only works around another method, has `wrap` in place of `build`; a sampler that may have another
    method inside has both. `draws` is how often a method that leaves something to chance is to be repeated, `order`
    the order in which a draw reads the recorded rollouts, and `prepare` looks over all problems first (Need.DATASET).
    """

    name: str
    summary: str
    plan: type
    build: Callable[[Any, Context], Policy] | None = None
    wrap: Callable[[Any, Context, Callable[[Context], Policy]], Policy] | None = None
    needs: Callable[[Any], frozenset[Need]] = lambda plan: frozenset()
    draws: Callable[[Any, int], int] = lambda plan, k: 1
    order: Callable[[Any, Context], Sequence[int] | None] = lambda plan, context: None
    prepare: Callable[[Any, Sequence[Recorded]], Prepared] | None = None


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed spec: the innermost method first, then what is wrapped around it."""

    parts: tuple[tuple[Method, Any], ...]

    @property
    def name(self) -> str:
        """The methods without their parameters: `fot+decided`, `ac+fot`."""
        return self._joined([method.name for method, _ in self.parts])

    @property
    def text(self) -> str:
        """The canonical spec; parameters that have their default are left out."""
        return self._joined([_write(method, plan) for method, plan in self.parts])

    def _joined(self, words: Sequence[str]) -> str:
        """Samplers before what runs inside them, stops behind what they stop."""
        text = words[0]
        for word, (method, _) in zip(words[1:], self.parts[1:], strict=True):
            text = f"{text}+{word}" if method.build is None else f"{word}+{text}"
        return text

    @property
    def needs(self) -> frozenset[Need]:
        """What a driver must give the policy."""
        return frozenset().union(*(method.needs(plan) for method, plan in self.parts))

    @property
    def kernel(self) -> Kernel:
        """The markers that `Prefix.density` must count."""
        return next((plan.kernel for _, plan in self.parts if hasattr(plan, "kernel")), PAPER_KERNEL)

    def draws(self, k: int) -> int:
        """How many draws a replay makes."""
        return max(method.draws(plan, k) for method, plan in self.parts)

    def order(self, context: Context) -> Sequence[int] | None:
        """The order in which this draw reads the rollouts; None: as recorded."""
        orders = (method.order(plan, context) for method, plan in self.parts)
        return next((order for order in orders if order is not None), None)

    def prepare(self, problems: Sequence[Recorded]) -> Prepared | None:
        """Look over a whole data set, where a method must; each brief is for the context of its problem's policy."""
        for method, plan in self.parts:
            if method.prepare is not None:
                return method.prepare(plan, problems)
        return None

    def build(self, context: Context) -> Policy:
        """A fresh policy for one problem."""
        (method, plan), *around = self.parts
        build = method.build
        if build is None:
            raise ConfigError(f"'{method.name}' works around another method", f"Write it behind one: sc+{method.name}.")
        make: Callable[[Context], Policy] = lambda context: build(plan, context)  # noqa: E731
        for outer, outer_plan in around:
            make = _wrapped(outer, outer_plan, make)
        return make(context)


def _wrapped(method: Method, plan: Any, inner: Callable[[Context], Policy]) -> Callable[[Context], Policy]:
    wrap = method.wrap
    if wrap is None:
        able = ", ".join(name for name, known in methods().items() if known.wrap is not None)
        raise ConfigError(f"'{method.name}' cannot work around another method", f"These can: {able}.")
    return lambda context: wrap(plan, context, inner)


def parameter(default: Any, summary: str) -> Any:
    """A field of a plan, with the line that help shows."""
    return dataclasses.field(default=default, metadata={"summary": summary})


@cache
def methods() -> Mapping[str, Method]:
    """Every method by name, those of third parties included."""
    found = {name: _load(target) for name, target in METHODS.items()}
    for entry in entry_points(group="fot.methods"):
        found.setdefault(entry.name, entry.load())
    return found


def _load(target: str) -> Method:
    module, _, attribute = target.partition(":")
    method: Method = getattr(import_module(module), attribute)
    return method


def parse(text: str) -> Spec:
    """Read a spec; `ConfigError` names what is wrong with it."""
    parts = []
    for part in text.split("+"):
        name, _, given = part.strip().partition(":")
        known = methods()
        if name not in known:
            raise unknown_name("method", name, known)
        parts.append((known[name], _plan(known[name], given)))
    # `ac+fot` names the outer method first, `fot+decided` last: what wraps comes to stand behind.
    if len(parts) > 1 and parts[0][0].wrap is not None and parts[1][0].wrap is None:
        parts[0], parts[1] = parts[1], parts[0]
    spec = Spec(tuple(parts))
    spec.build(Context(k=2))  # what cannot be composed is said now, not in the middle of a run
    return spec


def _plan(method: Method, given: str) -> Any:
    types_ = typing.get_type_hints(method.plan)
    fields = [field.name for field in dataclasses.fields(method.plan)]
    values: dict[str, object] = {}
    for pair in filter(None, given.split(",")):
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(
                f"{method.name}: '{pair}' is not key=value", f"Parameters: {', '.join(fields) or 'none'}."
            )
        if key not in fields:
            raise unknown_name(f"parameter of {method.name}", key, fields)
        if key in values:
            raise ConfigError(f"{method.name}: parameter '{key}' is given twice", "Give it once.")
        values[key] = _read(f"{method.name}:{key}", value, types_[key])
    try:
        return method.plan(**values)
    except ValueError as error:
        raise ConfigError(f"{method.name}: {error}", "See `fot methods` for parameters and their ranges.") from None


_WORDS = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}


def _read(where: str, value: str, type_: Any) -> object:
    """Turn the text of a parameter into a value of its field's type."""
    options = typing.get_args(type_) if typing.get_origin(type_) in (Union, types.UnionType) else (type_,)
    if type(None) in options:
        if value == "none":
            return None
        type_ = next(option for option in options if option is not type(None))
    try:
        if type_ is Kernel:
            return kernel_of([unquote(name) for name in value.split("/")])
        if typing.get_origin(type_) is tuple:
            inner = typing.get_args(type_)[0]
            return tuple(inner(unquote(item)) for item in value.split("/")) if value else ()
        if type_ is bool:
            return _WORDS[value.lower()]
        return type_(unquote(value))
    except (ValueError, KeyError) as error:
        detail = f": {error}" if type_ is Kernel else ""
        raise ConfigError(f"{where} takes {_kind(type_)}, not '{value}'{detail}", "Lists are joined by '/'.") from None


_KINDS = {bool: "on or off", int: "a whole number", float: "a number", str: "a word", Kernel: "a kernel"}


def _kind(type_: Any) -> str:
    """What a parameter of this type takes, in words."""
    if typing.get_origin(type_) is tuple:
        return f"a list, each item {_kind(typing.get_args(type_)[0])}"
    return _KINDS.get(type_, f"of type {getattr(type_, '__name__', type_)}")


def _write(method: Method, plan: Any) -> str:
    changed = [
        f"{field.name}={written(getattr(plan, field.name))}"
        for field in dataclasses.fields(method.plan)
        if getattr(plan, field.name) != field.default
    ]
    return f"{method.name}:{','.join(changed)}" if changed else method.name


def written(value: object) -> str:
    """A parameter's value as a spec writes it."""
    if isinstance(value, Kernel):
        return value.name if value.name != "custom" else "/".join(quote(marker, safe=" ") for marker in value.markers)
    if isinstance(value, tuple):
        return "/".join(quote(item, safe=" ") if isinstance(item, str) else written(item) for item in value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else quote(str(value), safe=" /")
