"""Each example of docs/policies.md decides what stands beside it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from s3_retention.core.holder import Holder
from s3_retention.core.policy_keep import Keep
from s3_retention.core.verdict import Verdict
from s3_retention.policy_files import load_policy
from s3_retention.steps import simulate
from s3_retention.steps.judge import judged_pages
from tests.factories import Pages, facts

if TYPE_CHECKING:
    from s3_retention.core.objects import ObjectFacts
    from tests.factories import World

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"
# The ledger's clock must not be behind the store's, which is that of this machine: the page has dates of its own.
ON = datetime(2027, 1, 1, tzinfo=timezone.utc)
WRITTEN = ON - timedelta(days=1)


class Example(NamedTuple):
    """A policy, and the decision that the page promises for each key; and its size, class or tags, where it has some.

    ``pointer`` is what its pointer says, where it has one.
    """

    name: str
    policy: str
    decisions: dict[str, str]
    middles: dict[str, str]
    pointer: str

    def object_of(self, key: str, bucket: str) -> ObjectFacts:
        """The object of a line. A number in the middle is its size, what has no ``=`` its storage class."""
        middle = self.middles.get(key)
        is_size = middle is not None and middle.isdecimal()
        made = facts(key, bucket=bucket, size=int(middle) if middle and is_size else 10, at=WRITTEN)
        return made if is_size or "=" in (middle or "=") else replace(made, storage_class=middle)

    def tags(self) -> dict[str, dict[str, str]]:
        """The tags of each key, such as ``class=temp,team=red``."""
        tagged = {key: middle for key, middle in self.middles.items() if "=" in middle}
        return {key: dict(one.split("=") for one in middle.split(",")) for key, middle in tagged.items()}


def examples() -> list[Example]:
    found = re.findall(
        r"^```yaml\n(.*?)^```\n\n(?:[^\n]+:\n\n```json\n(.*?)^```\n\n)?```text\n(.*?)^```",
        PAGE.read_text("utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    made = []
    for policy, pointer, listed in found:
        name = re.match(r"name: (\w+)\n", policy)
        assert name is not None
        lines = [line.split() for line in listed.splitlines()]
        decisions = {key: reason for key, *_, reason in lines}
        middles = {line[0]: line[1] for line in lines if line[2:]}
        made.append(Example(name[1], policy, decisions, middles, pointer))
    return made


EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.name)
def test_an_example_decides_what_the_page_says(world: World, tmp_path: Path, example: Example) -> None:
    (tmp_path / f"{example.name}.yaml").write_text(example.policy, encoding="utf-8")
    policy = load_policy(tmp_path, example.name, min_retention=timedelta(days=1))
    objects = [example.object_of(key, policy.source.bucket) for key in example.decisions]
    world.set_clock(f"timestamptz '{ON.isoformat()}'")
    bodies = {one.key: example.pointer.encode() for one in policy.pointers or ()}
    source = Pages([objects], bodies=bodies, tags=example.tags())
    simulate.run(world.conn, source, policy, Holder("d", "r", "plan_commands"))
    rows = world.conn.execute("SELECT key, reason FROM plan_decisions").fetchall()
    decided = {row["key"]: row["reason"] for row in rows}
    at_once = chain.from_iterable(judged_pages(world.conn, source, policy, ON))
    verdicts = zip(objects, at_once, strict=True)
    decided |= {one.ref.key: said.reasons[0] for one, said in verdicts if isinstance(said, Verdict)}
    assert decided == example.decisions


def test_every_rule_that_keeps_has_an_example() -> None:
    reasons = {reason for example in EXAMPLES for reason in example.decisions.values()}
    assert {"kept_pointer", "other_tags", "no_date_in_tag"} <= reasons
    assert reasons >= {f"kept_{rule.removesuffix('_if')}" for rule in Keep.model_fields.keys() - {"group_by"}}
