"""Put the measured figures into the model card: `docs/reasoner.md` between its marks, from what the scripts printed."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

CARD = Path(__file__).parent.parent / "docs" / "reasoner.md"
_SHARES = (
    ("pass@1", "35 to 70%"),
    ("sc", ""),
    ("pass@k", ""),
    ("sc - pass@1", "15 or more"),
    ("pass@k - sc", "10 or more"),
    ("no answer", "1 to 6%"),
    ("shows a wrong step", ""),
    ("recovery", "20% or more"),
    ("shows a false equation", ""),
    ("recovery from a false equation", ""),
)
_NUMBERS = (
    ("length incorrect/correct", "1.5 or more"),
    ("length not correct/correct", ""),
    ("auroc of density for wrong", "0.65 or more"),
    ("auroc within problems", ""),
)


def outcomes(profile: dict[str, Any]) -> str:
    """The paper's first table as Markdown: what tells correct, incorrect and unfinished rollouts apart."""
    columns = profile["by outcome"]
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for title, name, scale, form in (
        ("share of the pool, %", "share", 100, "{:.1f}"),
        ("tokens, mean", "tokens", 1, "{:.0f}"),
        ("markers per 1,000 characters", "density", 1, "{:.2f}"),
        ("attention next to a correct one", "attention", 1, "{:.2f}"),
    ):
        cells = []
        for column in columns.values():
            value, low, high = (form.format(scale * column[name][key]) for key in ("value", "low", "high"))
            cells.append(f"{value} ({low} to {high})")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table(profile: dict[str, Any]) -> str:
    """The figures that were aimed at, and what else describes the model, as Markdown."""
    drawn = f"{profile['problems']} problems, {profile['rollouts']:,} rollouts"
    lines = [f"| figure ({drawn}) | wanted | measured | 95% interval |", "|---|---|---|---|"]
    for name, wanted in _SHARES:
        value, low, high = (100 * profile[name][key] for key in ("value", "low", "high"))
        lines.append(f"| {name} | {wanted} | {value:.1f}% | {low:.1f} to {high:.1f} |")
    for name, wanted in _NUMBERS:
        value, low, high = (profile[name][key] for key in ("value", "low", "high"))
        lines.append(f"| {name} | {wanted} | {value:.2f} | {low:.2f} to {high:.2f} |")
    tokens = profile["tokens"]
    lines += [
        f"| tokens, mean / median / 95% / longest | 150 or more | "
        f"{tokens['mean']:.0f} / {tokens['median']} / {tokens['p95']} / {tokens['max']} | |",
        f"| flags that were true / redo right after a true flag | | "
        f"{profile['truthful_flags']} of {profile['flags']} / {100 * profile['redo_right_after_truthful']:.0f}% | |",
    ]
    return "\n".join(lines)


def replayed(told: dict[str, Any]) -> str:
    """What `fot simulate --json` says of each method."""
    lines = [
        f"| {told['pool']['problems']} problems | right | won/lost | interval (pp) | attention | tokens | latency |",
        "|---" * 7 + "|",
    ]
    for method in told["methods"]:
        low, high = method["ci95_pp"]
        saved = " | ".join(f"{method['savings'][name]:.1%}" for name in ("attention", "tokens", "latency"))
        change = (
            f"{method['wins']:.3g}/{method['losses']:.3g} | {low:+.1f} to {high:+.1f}"
            if method["policy"] != "sc"
            else "|"
        )
        lines.append(f"| `{method['spec']}` | {method['correct']:.4g} | {change} | {saved} |")
    return "\n".join(lines)


def by_belief(told: dict[str, dict[str, Any]]) -> str:
    """What `beliefs.py` says of the problems that meet a false belief, and of the others."""
    first = next(iter(told.values()))
    policies = [name for name in first if isinstance(first[name], dict)]
    lines = ["| | " + " | ".join(told) + " |", "|---" * (len(told) + 1) + "|"]
    for name, form in (("problems", "{:d}"), ("pass@1", "{:.1%}"), ("auroc within problems", "{:.2f}")):
        lines.append(f"| {name} | " + " | ".join(form.format(group[name]) for group in told.values()) + " |")
    for policy in policies:
        cells = [
            f"{group[policy]['right']:.4g} / {group[policy]['share of right votes']:.1%}" for group in told.values()
        ]
        lines.append(f"| `{policy.split(':')[0]}`: right / share of right votes | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def fill(text: str, mark: str, content: str) -> str:
    """The text with what stands between the marks replaced; raises `ValueError` where the text has no such marks."""
    between = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- end of {mark} -->)", re.S)
    if not between.search(text):
        raise ValueError(f"the text has no place for {mark}")
    return between.sub(lambda marks: f"{marks[1]}{content}\n{marks[2]}", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile", type=Path, help="what evaluate.py printed")
    parser.add_argument("replay", type=Path, help="what fot simulate --json printed")
    parser.add_argument("beliefs", type=Path, help="what beliefs.py printed")
    options = parser.parse_args()
    profile, replay, beliefs = (
        json.loads(path.read_text()) for path in (options.profile, options.replay, options.beliefs)
    )
    card = CARD.read_text()
    for place, figures in (
        ("outcomes", outcomes(profile)),
        ("profile", table(profile)),
        ("replay", replayed(replay)),
        ("beliefs", by_belief(beliefs)),
    ):
        card = fill(card, place, figures)
    CARD.write_text(card)
