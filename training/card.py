"""Put the measured figures into the model card: `docs/reasoner.md` between its marks, from evaluation JSON."""

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
_NUMBERS = (("length wrong/correct", "1.5 or more"), ("auroc of density for wrong", "0.65 or more"))


def table(profile: dict[str, Any]) -> str:
    """The behaviour profile as Markdown."""
    lines = ["| figure | wanted | measured | 95% interval |", "|---|---|---|---|"]
    for name, wanted in _SHARES:
        value, low, high = (100 * profile[name][key] for key in ("value", "low", "high"))
        lines.append(f"| {name} | {wanted} | {value:.1f}% | {low:.1f} to {high:.1f} |")
    for name, wanted in _NUMBERS:
        value, low, high = (profile[name][key] for key in ("value", "low", "high"))
        lines.append(f"| {name} | {wanted} | {value:.2f} | {low:.2f} to {high:.2f} |")
    tokens, density = profile["tokens"], profile["density"]
    lines += [
        f"| AUROC within problems (mean) | | {profile['auroc within problems']:.2f} | |",
        f"| tokens, mean / median / 95% / longest | 150 or more | "
        f"{tokens['mean']:.0f} / {tokens['median']} / {tokens['p95']} / {tokens['max']} | |",
        f"| tokens, correct / not | | {tokens['mean correct']:.0f} / {tokens['mean wrong']:.0f} | |",
        f"| markers per 1,000 characters, correct / not | | {density['correct']:.1f} / {density['wrong']:.1f} | |",
        f"| flags that were true / redo right after a true flag | | "
        f"{profile['truthful_flags']} of {profile['flags']} / {100 * profile['redo_right_after_truthful']:.0f}% | |",
    ]
    return "\n".join(lines)


def fill(text: str, mark: str, content: str) -> str:
    """The text with what stands between the marks replaced."""
    return re.sub(
        rf"(<!-- {mark} -->\n).*?(<!-- end of {mark} -->)", lambda m: f"{m[1]}{content}\n{m[2]}", text, flags=re.S
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile", type=Path, help="what evaluate.py printed")
    options = parser.parse_args()
    filled = fill(CARD.read_text(), "profile", table(json.loads(options.profile.read_text())))
    CARD.write_text(filled)
