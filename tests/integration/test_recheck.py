"""Just before a delete that no condition guards, each object is looked at again, and no earlier than need be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from s3_retention.core.condition import EtagCondition, Guard
from s3_retention.core.outcome import FailureClass
from s3_retention.s3.recheck import MAX_FAILED_LOOKS, MAX_LOOKS, MIN_SEEN_PER_PAGE
from tests.factories import ODD_KEYS
from tests.fakes import asked, faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from s3_retention.core.objects import ObjectFacts
    from s3_retention.core.outcome import Outcome
    from s3_retention.s3.gateway import S3Gateway
    from tests.factories import World

NO_CONDITION = Guard(sends_etag=False, looks_first=True)
MANY = [f"exports/2020-01/{number:04d}.json" for number in range(120)]


@dataclass
class Requests:
    """A gateway to a real store, and what it was asked, in order; before each delete something can happen."""

    real: S3Gateway
    seen: list[str] = field(default_factory=list)
    before_delete: Any = None

    def gateway(self, **calls: Any) -> S3Gateway:
        def told(name: str) -> Any:
            real = calls.get(name) or getattr(self.real.client, name)

            def call(**arguments: Any) -> Any:
                if name == "delete_objects" and self.before_delete is not None:
                    self.before_delete(asked(arguments))
                self.seen.append(name)
                return real(**arguments)

            return call

        return faulty_gateway(
            self.real,
            **{
                name: told(name)
                for name in ("list_objects_v2", "head_object", "delete_objects", "delete_object")
            },
        )


def listed(world: World, *keys: str) -> list[ObjectFacts]:
    """What a listing tells of these keys, in their order."""
    found = {one.ref.key: one for page in world.gateway.list_pages(world.bucket, "") for one in page}
    return [found[key] for key in keys]


def kinds(outcomes: list[Outcome]) -> list[str]:
    return [outcome.kind.value for outcome in outcomes]


def test_objects_that_lie_close_together_are_seen_by_a_page_of_the_listing(world: World) -> None:
    world.put(*MANY)
    requests = Requests(world.gateway)
    outcomes = requests.gateway().delete_chunk(listed(world, *MANY), guard=NO_CONDITION)
    assert kinds(outcomes) == ["deleted"] * 120
    assert requests.seen == ["list_objects_v2", "delete_objects"]
    assert world.keys() == set()


def test_a_few_objects_are_looked_at_one_by_one(world: World) -> None:
    few = MANY[: MIN_SEEN_PER_PAGE - 1]
    world.put(*few)
    requests = Requests(world.gateway)
    assert kinds(requests.gateway().delete_chunk(listed(world, *few), guard=NO_CONDITION)) == [
        "deleted"
    ] * len(few)
    assert requests.seen == ["head_object"] * len(few) + ["delete_objects"]


def test_objects_that_lie_far_apart_are_looked_at_and_deleted_in_small_parts(world: World) -> None:
    far = [f"exports/{number:03d}/due.json" for number in range(2 * MAX_LOOKS + 20)]
    world.put(*far)
    targets = listed(world, *far)
    requests = Requests(world.gateway)
    # A page on which no target stands: as where thousands of other objects lie between two of them.
    nothing = one_after_another({"IsTruncated": True, "NextContinuationToken": "t", "EncodingType": "url"})
    gateway = requests.gateway(list_objects_v2=nothing)
    assert kinds(gateway.delete_chunk(targets, guard=NO_CONDITION)) == ["deleted"] * len(far)
    part = ["head_object"] * MAX_LOOKS + ["delete_objects"]
    assert requests.seen == ["list_objects_v2", *part, *part, *["head_object"] * 20, "delete_objects"]


@pytest.mark.parametrize("num", [3, 120], ids=["by HEAD", "by listing"])
def test_what_was_overwritten_survives_and_what_is_gone_is_told_so(world: World, num: int) -> None:
    world.put(*MANY[:num])
    targets = listed(world, *MANY[:num])
    world.put(MANY[0], body=b"new")
    world.admin.delete_object(Bucket=world.bucket, Key=MANY[1])
    outcomes = world.gateway.delete_chunk(targets, guard=NO_CONDITION)
    assert kinds(outcomes) == ["changed", "already_absent"] + ["deleted"] * (num - 2)
    assert world.keys() == {MANY[0]}


def test_the_look_is_repeated_before_each_attempt(world: World) -> None:
    world.put(*MANY[:2])
    targets = listed(world, *MANY[:2])
    gateway = faulty_gateway(world.gateway, delete_objects=one_after_another(refusal("SlowDown", 503)))
    assert kinds(gateway.delete_chunk(targets, guard=NO_CONDITION)) == ["throttled"] * 2
    world.put(MANY[0], body=b"new")
    assert kinds(world.gateway.delete_chunk(targets, guard=NO_CONDITION)) == ["changed", "deleted"]


def test_the_time_in_which_an_overwrite_would_be_lost_is_that_of_one_part(world: World) -> None:
    """The window of docs/guarantees.md: what is overwritten while another part is deleted, survives."""
    far = [f"exports/{number:03d}/due.json" for number in range(MAX_LOOKS + 1)]
    world.put(*far)
    targets = listed(world, *far)
    requests = Requests(world.gateway)

    def overwrite_the_last(keys: list[str]) -> None:
        if far[-1] not in keys:
            world.put(far[-1], body=b"new")

    requests.before_delete = overwrite_the_last
    gateway = requests.gateway(list_objects_v2=one_after_another({"IsTruncated": False}))
    assert kinds(gateway.delete_chunk(targets, guard=NO_CONDITION)) == ["deleted"] * MAX_LOOKS + ["changed"]
    assert world.keys() == {far[-1]}


def test_odd_keys_are_looked_at_under_their_own_names(world: World) -> None:
    world.put(*ODD_KEYS, *MANY)
    targets = listed(world, *ODD_KEYS, *MANY)
    assert set(kinds(world.gateway.delete_chunk(targets, guard=NO_CONDITION))) == {"deleted"}
    assert world.keys() == set()


def test_two_lives_of_one_key_in_one_request_are_told_apart(world: World) -> None:
    world.put(MANY[0])
    (old,) = listed(world, MANY[0])
    world.put(MANY[0], body=b"new")
    (new,) = listed(world, MANY[0])
    assert kinds(world.gateway.delete_chunk([old, new], guard=NO_CONDITION)) == ["changed", "deleted"]


def test_a_key_that_goes_alone_is_looked_at_even_where_the_condition_is_honoured(world: World) -> None:
    odd = "exports/2020-01/\x01.json"
    world.put(odd)
    targets = listed(world, odd)
    world.put(odd, body=b"new")
    requests = Requests(world.gateway)
    # As a store does that knows the condition of DeleteObjects alone.
    gateway = requests.gateway(delete_object=lambda **_: {})
    assert kinds(gateway.delete_chunk(targets)) == ["changed"]
    assert "delete_object" not in requests.seen


def test_a_version_that_is_named_needs_no_look(world: World) -> None:
    world.admin.put_bucket_versioning(Bucket=world.bucket, VersioningConfiguration={"Status": "Enabled"})
    world.put("exports/a")
    (version,) = world.admin.list_object_versions(Bucket=world.bucket)["Versions"]
    (target,) = listed(world, "exports/a")
    named = replace(target, ref=replace(target.ref, version_id=version["VersionId"]))
    requests = Requests(world.gateway)
    assert kinds(requests.gateway().delete_chunk([named], guard=NO_CONDITION)) == ["deleted"]
    assert requests.seen == ["delete_objects"]


def test_one_object_that_the_store_would_not_show_costs_one_object(world: World) -> None:
    world.put(*MANY[:5])
    targets = listed(world, *MANY[:5])
    real = world.gateway.client.head_object

    def broken(**arguments: Any) -> Any:
        if arguments["Key"] == MANY[2]:
            raise refusal("500", 500)
        return real(**arguments)

    gateway = faulty_gateway(world.gateway, head_object=broken)
    outcomes = gateway.delete_chunk(targets, guard=NO_CONDITION)
    assert kinds(outcomes) == ["deleted", "deleted", "transient", "deleted", "deleted"]
    assert not outcomes[2].whole_request


def test_objects_that_are_shown_to_nobody_without_their_own_key_cost_themselves_alone(world: World) -> None:
    world.put(*MANY[:6])
    targets = listed(world, *MANY[:6])
    real = world.gateway.client.head_object

    def encrypted(**arguments: Any) -> Any:
        # As S3 does where an object is encrypted with a key of its customer's (SSE-C).
        if arguments["Key"] in MANY[:4]:
            raise refusal("400", 400)
        return real(**arguments)

    gateway = faulty_gateway(world.gateway, head_object=encrypted)
    outcomes = gateway.delete_chunk(targets, guard=NO_CONDITION)
    assert kinds(outcomes) == ["malformed"] * 4 + ["deleted"] * 2
    assert not any(outcome.whole_request or outcome.is_retried for outcome in outcomes)


def test_a_store_that_shows_nothing_is_not_asked_for_each_key(world: World) -> None:
    world.put(*MANY[:10])
    targets = listed(world, *MANY[:10])
    requests = Requests(world.gateway)
    gateway = requests.gateway(head_object=one_after_another(refusal("503", 503)))
    outcomes = gateway.delete_chunk(targets, guard=NO_CONDITION)
    assert kinds(outcomes) == ["throttled"] * 10
    assert outcomes[-1].whole_request
    assert requests.seen == ["head_object"] * MAX_FAILED_LOOKS
    assert len(world.keys()) == 10


def test_a_listing_that_fails_or_lies_leaves_it_to_the_looks(world: World) -> None:
    world.put(*MANY)
    targets = listed(world, *MANY)
    outside = {
        "IsTruncated": False,
        "Contents": [{"Key": "elsewhere", "ETag": "e", "Size": 1, "LastModified": 1}],
    }
    for answer in (refusal("AccessDenied", 403), outside):
        world.put(*MANY)
        targets = listed(world, *MANY)
        gateway = faulty_gateway(world.gateway, list_objects_v2=one_after_another(answer))
        assert kinds(gateway.delete_chunk(targets, guard=NO_CONDITION)) == ["deleted"] * 120


def test_an_identical_upload_after_the_plan_survives_where_the_policy_rechecks_the_time(world: World) -> None:
    world.put(*MANY[:2])
    timed = world.under(batch={"recheck": "time"})
    (batch,) = timed.planned().batches
    world.root.execute(
        "UPDATE s3_retention.chunks SET last_modified_ats[1] = last_modified_ats[1] - interval '1 hour'"
    )
    assert timed.delete(batch).num_by_outcome == {"changed": 1, "deleted": 1}
    assert world.keys() == {MANY[0]}


@pytest.mark.parametrize(
    ("condition", "rechecks_time", "guard"),
    [
        (EtagCondition.HONOURED, False, Guard(sends_etag=True, looks_first=False)),
        (EtagCondition.HONOURED, True, Guard(sends_etag=True, looks_first=True)),
        (EtagCondition.IGNORED, False, Guard(sends_etag=True, looks_first=True)),
        (EtagCondition.REFUSED, False, Guard(sends_etag=False, looks_first=True)),
        (None, False, Guard(sends_etag=True, looks_first=True)),
    ],
)
def test_only_a_store_that_is_known_to_honour_the_condition_is_relied_on(
    condition: EtagCondition | None, rechecks_time: bool, guard: Guard
) -> None:
    assert Guard.of(condition, rechecks_time=rechecks_time) == guard


def test_a_bucket_that_is_gone_is_told_once_and_stops_everything(world: World) -> None:
    world.put(*MANY[:3])
    targets = listed(world, *MANY[:3])
    for key in MANY[:3]:
        world.admin.delete_object(Bucket=world.bucket, Key=key)
    world.admin.delete_bucket(Bucket=world.bucket)
    outcomes = world.gateway.delete_chunk(targets, guard=NO_CONDITION)
    assert {(outcome.kind, outcome.code) for outcome in outcomes} == {(FailureClass.CONFIG, "NoSuchBucket")}
