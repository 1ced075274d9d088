"""A policy by tags asks for those of what else would go, at the plan and again just before each attempt to delete."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from s3_retention.core.audit import Kind, State
from s3_retention.core.holder import Holder
from s3_retention.core.objects import ObjectRef
from s3_retention.errors import ListingError, ListingRefusedError, PlanRefusedError
from s3_retention.shell.verdicts import list_verdicts
from s3_retention.sources.s3_listing import S3Listing
from s3_retention.steps import audit, simulate, tags
from tests.factories import BY_KEY_DATE, KEEP_LATEST, NO_WAIT, Pages, a_policy, facts
from tests.fakes import fake_gateway, faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from s3_retention.s3.gateway import S3Gateway
    from tests.factories import World

A, B, C = (f"exports/2020-01/{name}.json" for name in "abc")
REGEX = r"(?s)exports/(?P<month>\d{4}-\d{2})/(?P<customer>.+)\.json"
TEMP = {"class": "temp"}
BY_TAG = {"from": "tag", "tag": "expires", "format": "%Y-%m-%d", "retain": "1d"}


def tag(world: World, key: str, **values: str) -> None:
    pairs = [{"Key": name, "Value": value} for name, value in values.items()]
    world.admin.put_object_tagging(Bucket=world.bucket, Key=key, Tagging={"TagSet": pairs})  # type: ignore[typeddict-item]


def by_tags(world: World, **select: Any) -> World:
    return world.under(select={"regex": REGEX} | (select or {"tags": TEMP}))


@pytest.fixture
def tagged(world: World) -> World:
    """Three objects that are due, of which two are tagged as temporary."""
    world.put(A, B, C)
    tag(world, A, **TEMP)
    tag(world, B, **TEMP, team="x")
    return by_tags(world)


def counted(gateway: S3Gateway) -> tuple[list[str], S3Gateway]:
    """A gateway that notes whose tags are asked for."""
    asked: list[str] = []
    real = gateway.client.get_object_tagging

    def ask(**arguments: Any) -> Any:
        asked.append(arguments["Key"])
        return real(**arguments)

    return asked, faulty_gateway(gateway, get_object_tagging=ask)


def test_a_cleanup_takes_what_has_the_tags(tagged: World) -> None:
    assert tagged.clean().num_by_outcome == {"deleted": 2}
    assert tagged.keys() == {C}
    kept = tagged.rows("SELECT num_kept_by_reason FROM s3_retention.intervals")
    assert kept == [{"num_kept_by_reason": {"other_tags": 1}}]


def test_a_tag_that_is_excluded_keeps_its_object(tagged: World) -> None:
    tagged = by_tags(tagged, tags=TEMP, exclude_tags={"team": "*"})
    tagged.clean()
    assert tagged.keys() == {B, C}


def test_age_counts_from_the_date_in_a_tag(tagged: World) -> None:
    tag(tagged, A, expires="2020-01-01")
    tag(tagged, B, expires="2999-01-01")
    tagged = tagged.under(select={"regex": REGEX}, age=BY_TAG)
    assert tagged.clean().num_by_outcome == {"deleted": 1}
    assert tagged.keys() == {B, C}
    kept = tagged.rows("SELECT num_kept_by_reason FROM s3_retention.intervals")
    assert kept == [{"num_kept_by_reason": {"date_in_future": 1, "no_date_in_tag": 1}}]


def test_only_what_else_would_go_is_asked_for_its_tags(tagged: World) -> None:
    tagged.put("exports/2999-01/a.json", "exports/readme", "exports/2020-02/d.json")
    asked, gateway = counted(tagged.gateway)
    world = tagged.through(gateway)
    # Due after now: all of the year is young enough.
    age = BY_KEY_DATE | {"retain": "3650d"}
    world.under(age=age).planned()
    assert asked == []
    world.expire_leases()
    simulate.run(world.conn, world.source, world.policy, Holder("d", "r", "t"))
    assert sorted(asked) == [A, B, C, "exports/2020-02/d.json"]


def test_what_lost_its_tag_after_the_plan_is_kept_at_the_delete(tagged: World) -> None:
    (batch,) = tagged.planned().batches
    tag(tagged, B, team="x")
    tagged.delete(batch)
    assert tagged.outcomes() == {A: "deleted", B: "kept:other_tags"}
    assert tagged.keys() == {B, C}


def test_what_expires_later_since_the_plan_is_kept_at_the_delete(tagged: World) -> None:
    for key in (A, B):
        tag(tagged, key, expires="2020-01-01")
    tagged = tagged.under(select={"regex": REGEX}, age=BY_TAG)
    (batch,) = tagged.planned().batches
    tag(tagged, A, expires="2999-01-01")
    tag(tagged, B)
    tagged.delete(batch)
    assert tagged.outcomes() == {A: "kept:not_due", B: "kept:no_date_in_tag"}


def test_what_is_tagged_while_the_store_is_waited_for_is_kept_at_the_next_attempt(tagged: World) -> None:
    (batch,) = tagged.planned().batches
    real = tagged.gateway.client.delete_objects
    num_asked = 0

    def busy(**arguments: Any) -> Any:
        nonlocal num_asked
        num_asked += 1
        if num_asked > 1:
            return real(**arguments)
        tag(tagged, B)
        raise refusal("SlowDown", 503)

    tagged.through(faulty_gateway(tagged.gateway, delete_objects=busy)).delete(batch)
    assert tagged.outcomes() == {A: "deleted", B: "kept:other_tags"}


def test_what_is_gone_or_was_written_anew_since_the_plan_is_told_so(tagged: World) -> None:
    (batch,) = tagged.planned().batches
    tagged.admin.delete_object(Bucket=tagged.bucket, Key=A)
    tagged.put(B, body=b"another")
    tag(tagged, B, **TEMP)
    tagged.delete(batch)
    assert tagged.outcomes() == {A: "already_absent", B: "changed"}


def test_one_object_whose_tags_are_denied_costs_itself_alone(tagged: World) -> None:
    real = tagged.gateway.client.get_object_tagging

    def ask(**arguments: Any) -> Any:
        if arguments["Key"] == A:
            raise refusal("AccessDenied", 403)
        return real(**arguments)

    world = tagged.through(faulty_gateway(tagged.gateway, get_object_tagging=ask))
    planned = world.planned()
    assert planned.num_kept_by_reason == {"other_tags": 1, "tags_not_readable": 1}
    world.expire_leases()
    assert tagged.clean("run-2").num_by_outcome == {"deleted": 1}
    assert tagged.clean("run-3").num_by_outcome == {"deleted": 1}


def test_tags_that_are_denied_at_the_delete_send_their_object_to_quarantine(tagged: World) -> None:
    (batch,) = tagged.planned().batches
    real = tagged.gateway.client.get_object_tagging

    def ask(**arguments: Any) -> Any:
        if arguments["Key"] == A:
            raise refusal("AccessDenied", 403)
        return real(**arguments)

    tagged.through(faulty_gateway(tagged.gateway, get_object_tagging=ask)).delete(batch)
    tagged.sweep()
    assert tagged.outcomes() == {B: "deleted"}
    assert tagged.waiting() == {A: "permission"}
    assert tagged.keys() == {A, C}


def test_an_identity_that_may_read_no_tags_refuses_the_plan(tagged: World) -> None:
    denied = one_after_another(refusal("AccessDenied", 403))
    world = tagged.through(faulty_gateway(tagged.gateway, get_object_tagging=denied))
    world.claim()
    with pytest.raises(PlanRefusedError, match=r"the tags of 3 objects were denied.*s3:GetObjectTagging"):
        world.plan()
    assert world.keys() == {A, B, C}


def test_an_identity_that_may_read_no_tags_is_found_out_before_the_end_of_a_long_listing(
    world: World,
) -> None:
    asked: list[str] = []

    class Denied(Pages):
        def read_tags(self, ref: ObjectRef) -> Any:
            asked.append(ref.key)
            return fake_gateway(get_object_tagging=one_after_another(refusal("AccessDenied", 403))).read_tags(
                ref
            )

    pages = [[facts(f"exports/2020-01/{page}-{n}.json") for n in range(100)] for page in range(20)]
    with pytest.raises(PlanRefusedError, match="100 objects were denied"):
        simulate.run(
            world.conn, Denied(pages), a_policy(select={"regex": REGEX, "tags": TEMP}), Holder("d", "r", "t")
        )
    assert len(asked) == 100


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refusal("SlowDown", 503), ListingError),
        (refusal("NotImplemented", 501), ListingRefusedError),
        (refusal("ExpiredToken", 400), ListingRefusedError),
        (refusal("NoSuchBucket", 404), ListingRefusedError),
        ({"ResponseMetadata": {}}, ListingError),
        ({"TagSet": [{"Key": "a", "Value": "b"}, {"Key": "a", "Value": "c"}]}, ListingError),
        ({"TagSet": [{"Key": "a"}]}, ListingError),
    ],
)
def test_a_store_that_does_not_say_its_tags_plans_nothing(
    tagged: World, monkeypatch: pytest.MonkeyPatch, answer: Any, error: type[Exception]
) -> None:
    monkeypatch.setattr(tags, "RetryLimits", lambda: replace(NO_WAIT, ending=Event()))
    world = tagged.through(faulty_gateway(tagged.gateway, get_object_tagging=one_after_another(answer)))
    world.claim()
    with pytest.raises(error, match=r"reading the tags of .* broke off") as caught:
        world.plan()
    assert type(caught.value) is error
    assert world.keys() == {A, B, C}


def test_a_store_that_does_not_say_its_tags_at_the_delete_is_not_asked_for_each(tagged: World) -> None:
    keys = [f"exports/2020-02/{number}.json" for number in range(20)]
    tagged.put(*keys)
    for key in keys:
        tag(tagged, key, **TEMP)
    (batch,) = tagged.planned().batches
    asked: list[str] = []

    def ask(**arguments: Any) -> Any:
        asked.append(arguments["Key"])
        raise refusal("SlowDown", 503)

    tagged.through(faulty_gateway(tagged.gateway, get_object_tagging=ask)).delete(batch)
    assert len(set(asked)) == 1
    assert tagged.keys() == {A, B, C, *keys}


def test_a_plan_reads_the_tags_of_many_and_each_request_is_of_few(world: World) -> None:
    names = [f"exports/2020-01/{page}-{n}.json" for page in range(3) for n in range(150)]
    listed = [facts(name, bucket=world.bucket) for name in names]
    source = Pages([listed[:150], listed[150:300], listed[300:]], tags=dict.fromkeys(names[::2], TEMP))
    world = by_tags(world)
    world.claim()
    planned = world.plan(source=source)
    assert (planned.num_discovered, planned.num_kept_by_reason) == (225, {"other_tags": 225})
    sizes = world.rows("SELECT num_commands FROM s3_retention.chunks ORDER BY 1")
    assert [row["num_commands"] for row in sizes] == [25, 100, 100]


def test_what_is_gone_before_its_tags_are_read_gets_no_command(tagged: World) -> None:
    real = tagged.gateway.client.get_object_tagging

    def ask(**arguments: Any) -> Any:
        if arguments["Key"] == A:
            tagged.admin.delete_object(Bucket=tagged.bucket, Key=A)
        return real(**arguments)

    world = tagged.through(faulty_gateway(tagged.gateway, get_object_tagging=ask))
    assert world.planned().num_kept_by_reason == {"other_tags": 1, "tags_not_readable": 1}


def test_what_has_other_tags_takes_no_place_in_a_keep_rule(world: World) -> None:
    months = [f"exports/2020-0{month}/a.json" for month in (1, 2, 3)]
    world.put(*months)
    for key in months[:2]:
        tag(world, key, **TEMP)
    world = by_tags(world).under(keep=KEEP_LATEST)
    world.clean()
    assert world.keys() == set(months[1:])


def test_a_whole_group_is_held_back_by_what_has_other_tags(tagged: World) -> None:
    world = tagged.under(age=BY_KEY_DATE | {"whole_groups": ["month"]})
    assert world.clean().num_discovered == 0


def test_a_redrive_reads_the_tags_anew(tagged: World) -> None:
    tagged.s3.deny(tagged.bucket, [A, B])
    tagged.clean()
    tagged.s3.allow(tagged.bucket, [A, B])
    tag(tagged, B)
    assert tagged.redrive().num_by_outcome == {"deleted": 1, "kept": 1}
    assert tagged.keys() == {B, C}


def test_a_redrive_sends_few_at_a_time_too_and_asks_before_each(world: World) -> None:
    keys = [f"exports/2020-01/{number:03}.json" for number in range(150)]
    world.put(*keys)
    for key in keys:
        tag(world, key, **TEMP)
    world = by_tags(world).under(limits={"allow_expire_everything": True, "max_denied_share": None})
    world.s3.deny(world.bucket, keys)
    world.clean()
    world.s3.allow(world.bucket, keys)
    real = world.gateway.client.delete_objects
    sizes: list[int] = []
    untagged: list[str] = []

    def send(**arguments: Any) -> Any:
        named = {one["Key"] for one in arguments["Delete"]["Objects"]}
        sizes.append(len(named))
        if not untagged:
            untagged.append(min(set(keys) - named))
            tag(world, untagged[0])
        return real(**arguments)

    world.through(faulty_gateway(world.gateway, delete_objects=send)).redrive()
    assert sizes == [100, 49]
    assert world.keys() == set(untagged)


def test_what_is_under_a_delete_marker_is_gone_where_the_store_says_405_as_aws_does(tagged: World) -> None:
    # What AWS answers for the tags of such a key, as for those of a key of a store without tags.
    real = tagged.gateway.client.get_object_tagging

    def ask(**arguments: Any) -> Any:
        try:
            return real(**arguments)
        except ClientError:
            raise refusal("MethodNotAllowed", 405) from None

    world = tagged.through(faulty_gateway(tagged.gateway, get_object_tagging=ask))
    (batch,) = world.planned().batches
    world.admin.delete_object(Bucket=world.bucket, Key=A)
    world.delete(batch)
    assert world.outcomes() == {A: "already_absent", B: "deleted"}


def test_a_share_of_a_tenant_is_of_what_has_the_tags(world: World) -> None:
    regex = r"(?s)exports/(?P<month>\d{4}-\d{2})/(?P<customer>[a-z]+)/.+\.json"
    due = [f"exports/2020-01/a/{number}.json" for number in range(3)]
    young = [f"exports/2026-12/a/{number}.json" for number in range(9)]
    source = Pages([[facts(key) for key in due + young]], tags=dict.fromkeys(due, TEMP))
    limits = {"allow_expire_everything": True, "max_tenant_share": 0.5}
    policy = a_policy(select={"regex": regex, "tags": TEMP}, tenant={"group": "customer"}, limits=limits)
    planned, _ = simulate.run(world.conn, source, policy, Holder("d", "r", "t"))
    assert planned.largest_tenant_share == 1.0


def test_threads_that_wait_for_a_store_at_fault_end_with_the_scan(
    tagged: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = replace(NO_WAIT, ending=Event())
    monkeypatch.setattr(tags, "RetryLimits", lambda: limits)
    unknown = one_after_another(refusal("NotImplemented", 501))
    world = tagged.through(faulty_gateway(tagged.gateway, get_object_tagging=unknown))
    world.claim()
    with pytest.raises(ListingRefusedError):
        world.plan()
    assert limits.ending.is_set()


def test_an_audit_whose_tags_are_denied_says_that_it_does_not_know(tagged: World) -> None:
    tagged.clean()
    tagged.put(A)
    tag(tagged, A, **TEMP)
    listing = S3Listing(tagged.gateway, tagged.bucket, "exports/")
    denied = faulty_gateway(
        tagged.gateway, get_object_tagging=one_after_another(refusal("AccessDenied", 403))
    )
    found = audit.run(tagged.conn, audit.Sides(listing, denied), tagged.policy, Holder("d", "r", "t"))
    (one,) = found.findings
    assert (one.key, one.state, one.detail) == (A, State.UNKNOWN, "AccessDenied")


def test_a_redrive_whose_tags_cannot_be_read_deletes_nothing(tagged: World) -> None:
    tagged.s3.deny(tagged.bucket, [A, B])
    tagged.clean()
    tagged.s3.allow(tagged.bucket, [A, B])
    denied = one_after_another(refusal("AccessDenied", 403))
    tagged.through(faulty_gateway(tagged.gateway, get_object_tagging=denied)).redrive()
    assert tagged.waiting() == {A: "permission", B: "permission"}
    assert tagged.keys() == {A, B, C}


def test_a_verdict_from_a_shell_is_by_the_tags_of_now(tagged: World) -> None:
    def verdict(key: str, gateway: S3Gateway = tagged.gateway) -> str:
        (row,) = list_verdicts(tagged.conn, gateway, [tagged.policy], ObjectRef(tagged.bucket, key))
        return str(row["detail"])

    assert verdict(A).startswith("expire: due since 2020-03-02")
    assert verdict(C) == "keep: other_tags"
    denied = faulty_gateway(
        tagged.gateway, get_object_tagging=one_after_another(refusal("AccessDenied", 403))
    )
    assert verdict(A, denied) == "keep: its tags cannot be read: AccessDenied"


def test_an_audit_calls_overdue_what_has_the_tags_and_nothing_else(tagged: World) -> None:
    tagged.clean()
    tagged.put(A, B)
    tag(tagged, A, **TEMP)
    sides = audit.Sides(S3Listing(tagged.gateway, tagged.bucket, "exports/"), tagged.gateway)

    def overdue(before: Callable[[], None] = lambda: None) -> int:
        before()
        found = audit.run(tagged.conn, sides, tagged.policy, Holder("d", "r", "t"))
        return found.counts[Kind.OVERDUE].num_found

    assert overdue() == 1
    assert overdue(lambda: tag(tagged, A)) == 0


def test_pointers_and_tags_go_together(tagged: World) -> None:
    tagged.put("exports/latest", body=A.encode())
    world = tagged.under(pointers=[{"key": "exports/latest"}])
    assert world.clean().num_by_outcome == {"deleted": 1}
    assert world.keys() == {A, C, "exports/latest"}


def test_a_source_of_which_no_tags_can_be_read_plans_nothing(world: World) -> None:
    class Bare:
        def pages(self) -> Any:
            yield [facts()]

        def read_clock(self) -> None: ...

    for changes, what in (
        ({"select": {"regex": REGEX, "tags": TEMP}}, "tags"),
        ({"pointers": [{"key": "a"}]}, "pointers"),
    ):
        with pytest.raises(PlanRefusedError, match=f"{what}: they cannot be read in this source"):
            simulate.run(world.conn, Bare(), a_policy(**changes), Holder("d", "r", "t"))
