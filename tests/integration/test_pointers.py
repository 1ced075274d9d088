"""What a pointer names stays: by the plan, by a second look just before each attempt, and where nobody can tell."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.response import StreamingBody
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from s3_retention.core.audit import Kind
from s3_retention.core.holder import Holder
from s3_retention.core.objects import ObjectRef
from s3_retention.core.outcome import Outcome
from s3_retention.errors import ListingError, PlanRefusedError
from s3_retention.shell.verdicts import list_verdicts
from s3_retention.sources.s3_listing import S3Listing
from s3_retention.steps import audit, pointers, simulate
from tests.factories import BY_LAST_MODIFIED, KEEP_LATEST, NO_WAIT, Pages, a_policy, facts
from tests.fakes import deleted, fake_gateway, faulty_gateway, one_after_another, refusal

if TYPE_CHECKING:
    from s3_retention.s3.gateway import S3Gateway
    from s3_retention.store.connection import Connection
    from tests.factories import World

A, B, C = (f"exports/2020-01/{name}.json" for name in "abc")
LATEST = "exports/latest"


@pytest.fixture
def pointed(world: World) -> World:
    """Three objects that are due, of which ``exports/latest`` names one."""
    world.put(A, B, C)
    point(world, A)
    return world.under(pointers=[{"key": LATEST}])


def point(world: World, *keys: str) -> None:
    world.put(LATEST, body="\n".join(keys).encode())


def body_of(raw: bytes, size: int | None = None) -> dict[str, Any]:
    length = len(raw) if size is None else size
    return {"Body": StreamingBody(io.BytesIO(raw), length), "ContentLength": length}


def test_a_cleanup_leaves_what_is_named_and_takes_the_rest(pointed: World) -> None:
    report = pointed.clean()
    assert report.num_by_outcome == {"deleted": 2}
    assert pointed.keys() == {A, LATEST}
    planned = pointed.rows("SELECT num_kept_by_reason FROM s3_retention.intervals")
    assert planned == [{"num_kept_by_reason": {"kept_pointer": 1, "not_selected": 1}}]


def test_what_is_named_no_more_goes_with_the_next_run(pointed: World) -> None:
    pointed.clean("run-1")
    pointed.put(B)
    point(pointed, B)
    assert pointed.clean("run-2").num_by_outcome == {"deleted": 1}
    assert pointed.keys() == {B, LATEST}


def test_a_pointer_that_is_selected_itself_stays(pointed: World) -> None:
    pointed = pointed.under(select={"include": ["exports/**"]}, age=BY_LAST_MODIFIED | {"retain": "1d"})
    pointed.set_clock("pg_catalog.clock_timestamp() + interval '2 days'")
    assert pointed.clean().num_by_outcome == {"deleted": 2}
    assert pointed.keys() == {A, LATEST}


def test_what_is_named_after_the_plan_is_kept_at_the_delete(pointed: World) -> None:
    (batch,) = pointed.planned().batches
    point(pointed, B)
    pointed.delete(batch)
    assert pointed.outcomes() == {B: "kept:kept_pointer", C: "deleted"}
    assert pointed.keys() == {A, B, LATEST}


def test_what_is_named_while_the_store_is_waited_for_is_kept_at_the_next_attempt(pointed: World) -> None:
    (batch,) = pointed.planned().batches
    real = pointed.gateway.client.delete_objects
    asked: list[list[str]] = []

    def slow_down(**arguments: Any) -> Any:
        asked.append([one["Key"] for one in arguments["Delete"]["Objects"]])
        if len(asked) > 1:
            return real(**arguments)
        point(pointed, B)
        raise refusal("SlowDown", 503)

    pointed.through(faulty_gateway(pointed.gateway, delete_objects=slow_down)).delete(batch)
    assert asked == [[B, C], [C]]
    assert pointed.outcomes() == {B: "kept:kept_pointer", C: "deleted"}
    assert pointed.keys() == {A, B, LATEST}


def test_what_an_unanswered_request_has_deleted_is_not_said_to_be_kept(pointed: World) -> None:
    (batch,) = pointed.planned().batches
    real = pointed.gateway.client.delete_objects
    num_asked = 0

    def unanswered(**arguments: Any) -> Any:
        nonlocal num_asked
        num_asked += 1
        answer = real(**arguments)
        if num_asked == 1:
            # The request was carried out, and each key is said to be tried again.
            point(pointed, B)
            errors = [
                {"Key": one["Key"], "Code": "InternalError", "Message": "no"}
                for one in arguments["Delete"]["Objects"]
            ]
            return answer | {"Deleted": [], "Errors": errors}
        return answer

    pointed.through(faulty_gateway(pointed.gateway, delete_objects=unanswered)).delete(batch)
    assert pointed.outcomes() == {B: "already_absent", C: "already_absent"}


def test_what_a_lost_worker_has_deleted_is_not_said_to_be_kept(pointed: World) -> None:
    (batch,) = pointed.planned().batches
    broken = faulty_gateway(
        pointed.gateway, delete_objects=_deletes_and_dies(pointed.gateway.client.delete_objects)
    )
    with pytest.raises(KeyboardInterrupt):
        pointed.through(broken).delete(batch)
    point(pointed, B)
    pointed.delete(batch, try_number=2)
    assert pointed.outcomes() == {B: "already_absent", C: "already_absent"}


def _deletes_and_dies(real: Any) -> Any:
    def call(**arguments: Any) -> Any:
        real(**arguments)
        raise KeyboardInterrupt

    return call


def test_a_lost_delete_that_cannot_be_looked_at_is_a_failure_and_not_kept(pointed: World) -> None:
    (batch,) = pointed.planned().batches
    dying = _deletes_and_dies(pointed.gateway.client.delete_objects)
    with pytest.raises(KeyboardInterrupt):
        pointed.through(faulty_gateway(pointed.gateway, delete_objects=dying)).delete(batch)
    point(pointed, A, B)

    def blind(**arguments: Any) -> Any:
        if arguments["Key"] == B:
            raise refusal("403", 403)
        return pointed.gateway.client.head_object(**arguments)

    pointed.through(faulty_gateway(pointed.gateway, head_object=blind)).delete(batch, try_number=2)
    pointed.sweep()
    assert pointed.outcomes() == {C: "already_absent"}
    assert pointed.waiting() == {B: "permission"}


def test_what_was_written_anew_after_a_lost_delete_is_changed_and_not_kept(pointed: World) -> None:
    (batch,) = pointed.planned().batches
    dying = _deletes_and_dies(pointed.gateway.client.delete_objects)
    with pytest.raises(KeyboardInterrupt):
        pointed.through(faulty_gateway(pointed.gateway, delete_objects=dying)).delete(batch)
    pointed.put(B, body=b"another")
    point(pointed, B)
    pointed.delete(batch, try_number=2)
    assert pointed.outcomes() == {B: "changed", C: "already_absent"}
    assert pointed.keys() == {A, B, LATEST}


def test_what_is_named_while_keepers_are_looked_at_is_kept(world: World) -> None:
    old, new = ([f"exports/2020-0{month}/{name}.json" for name in "abc"] for month in (1, 2))
    world.put(*old, *new)
    point(world, new[0])
    world = world.under(keep=KEEP_LATEST, pointers=[{"key": LATEST}])
    (batch,) = world.planned().batches
    real = world.gateway.client.head_object

    def look(**arguments: Any) -> Any:
        if arguments["Key"] == new[1]:
            point(world, old[1])
        return real(**arguments)

    world.through(faulty_gateway(world.gateway, head_object=look)).delete(batch)
    # Of the first group the newest is named and takes no place, so the one before it is the keeper.
    assert world.outcomes() == {old[1]: "kept:kept_pointer", old[2]: "deleted"}


def test_what_is_named_while_the_store_is_probed_is_kept(pointed: World) -> None:
    (batch,) = pointed.planned().batches
    real = pointed.gateway.client.delete_objects

    def probed(**arguments: Any) -> Any:
        point(pointed, C)
        return real(**arguments)

    gateway = faulty_gateway(pointed.gateway, delete_objects=probed)
    replace(pointed.through(gateway), knows_store=False).delete(batch)
    # The probe takes the first that is due.
    assert pointed.outcomes() == {B: "deleted", C: "kept:kept_pointer"}


def test_what_is_named_while_keepers_are_looked_at_is_not_what_the_store_is_probed_with(world: World) -> None:
    old, new = ([f"exports/2020-0{month}/{name}.json" for name in "abc"] for month in (1, 2))
    world.put(*old, *new, "exports/x")
    point(world, "exports/x")
    world = world.under(keep=KEEP_LATEST, pointers=[{"key": LATEST}])
    (batch,) = world.planned().batches
    real = world.gateway.client.head_object
    asked: list[str] = []

    def look(**arguments: Any) -> Any:
        if arguments["Key"] == new[2]:
            point(world, old[0])
        return real(**arguments)

    def ignore(**arguments: Any) -> Any:
        named = [one["Key"] for one in arguments["Delete"]["Objects"]]
        asked.extend(named)
        return deleted(*named)

    gateway = faulty_gateway(world.gateway, head_object=look, delete_objects=ignore)
    replace(world.through(gateway), knows_store=False).delete(batch)
    assert old[1] in asked
    assert old[0] not in asked
    assert world.outcomes()[old[0]] == "kept:kept_pointer"


def test_a_store_that_does_not_answer_is_not_asked_for_each_part(pointed: World) -> None:
    pointed.put(*(f"exports/2020-01/{number:03}.json" for number in range(250)))
    world = pointed.under(batch={"recheck": "time"})
    (batch,) = world.planned().batches
    num_asked = 0

    def busy(**_: Any) -> Any:
        nonlocal num_asked
        num_asked += 1
        raise refusal("SlowDown", 503)

    world.through(faulty_gateway(world.gateway, delete_objects=busy)).delete(batch)
    assert num_asked == NO_WAIT.max_attempts


def test_where_each_object_is_looked_at_first_the_pointers_are_read_for_each_part(pointed: World) -> None:
    keys = [f"exports/2020-01/{number:03}.json" for number in range(120)]
    pointed.put(*keys)
    world = pointed.under(batch={"recheck": "time"})
    (batch,) = world.planned().batches
    real = world.gateway.client.delete_objects
    named: list[str] = []

    def send(**arguments: Any) -> Any:
        if not named:
            named.append(min({*keys} - {one["Key"] for one in arguments["Delete"]["Objects"]}))
            point(world, *named)
        return real(**arguments)

    world.through(faulty_gateway(world.gateway, delete_objects=send)).delete(batch)
    kept = [key for key, outcome in world.outcomes().items() if outcome == "kept:kept_pointer"]
    assert (kept, len(world.outcomes())) == (named, 122)


@pytest.mark.parametrize("body", ["2020-01/b.json", "<html>", "exports/2020-01/gone.json\nexports/nothing/"])
def test_a_pointer_that_was_written_in_another_form_since_the_plan_stops_the_batch(
    pointed: World, body: str
) -> None:
    (batch,) = pointed.planned().batches
    pointed.put(LATEST, body=body.encode())
    result = pointed.delete(batch)
    assert "names no object that is there" in str(result.stopped_message)
    assert (result.stopped_class, result.may_pass) == ("config", False)
    assert pointed.keys() == {A, B, C, LATEST}


@pytest.mark.parametrize("name", ["exports/2020-03", "exports/2020-03/"])
def test_a_folder_that_is_named_after_the_plan_is_found_to_be_there(pointed: World, name: str) -> None:
    (batch,) = pointed.planned().batches
    pointed.put("exports/2020-03/x.json")
    point(pointed, "exports/2020-01/gone.json", name)
    assert pointed.delete(batch).num_by_outcome == {"deleted": 2}


def test_a_list_that_only_grows_is_looked_at_from_both_ends(pointed: World) -> None:
    gone = [f"exports/2019-01/{number}.json" for number in range(150)]
    (batch,) = pointed.planned().batches
    point(pointed, *gone, A)
    assert pointed.delete(batch).num_by_outcome == {"deleted": 2}


def test_a_long_list_of_which_nothing_is_there_says_how_much_of_it_was_looked_at(pointed: World) -> None:
    (batch,) = pointed.planned().batches
    point(pointed, *(f"exports/2019-01/{number}.json" for number in range(150)))
    said = "names no object that is there by the first and the last 50 of its 150 names"
    assert said in str(pointed.delete(batch).stopped_message)


def test_one_name_that_is_denied_does_not_hide_that_another_is_there(pointed: World) -> None:
    (batch,) = pointed.planned().batches
    point(pointed, "exports/secret", A)

    def look(**arguments: Any) -> Any:
        if arguments["Key"] == "exports/secret":
            raise refusal("403", 403)
        return pointed.gateway.client.head_object(**arguments)

    pointed.through(faulty_gateway(pointed.gateway, head_object=look)).delete(batch)
    assert pointed.outcomes() == {B: "deleted", C: "deleted"}


def test_a_listing_that_cannot_be_believed_says_nothing_of_what_is_there(pointed: World) -> None:
    (batch,) = pointed.planned().batches
    point(pointed, "exports/nothing")
    odd = {"IsTruncated": False, "Contents": [{"Key": 1}]}
    result = pointed.through(faulty_gateway(pointed.gateway, list_objects_v2=lambda **_: odd)).delete(batch)
    assert (result.stopped_class, result.may_pass) == ("config", True)
    assert "'exports/nothing' cannot be looked at: ListingError" in str(result.stopped_message)


def test_a_store_that_will_not_show_what_a_pointer_names_stops_the_batch(pointed: World) -> None:
    (batch,) = pointed.planned().batches
    blind = faulty_gateway(pointed.gateway, head_object=one_after_another(refusal("503", 503)))
    result = pointed.through(blind).delete(batch)
    assert (result.stopped_class, result.may_pass) == ("config", True)
    assert f"{A!r} cannot be looked at: 503" in str(result.stopped_message)


def test_an_audit_knows_what_is_named_and_refuses_a_pointer_that_says_nothing(pointed: World) -> None:
    pointed.clean()
    sides = audit.Sides(S3Listing(pointed.gateway, pointed.bucket, "exports/"), pointed.gateway)
    found = audit.run(pointed.conn, sides, pointed.policy, Holder("d", "r", "t"))
    assert found.counts[Kind.OVERDUE].num_found == 0
    pointed.put(B)
    point(pointed, "exports/nothing")
    with pytest.raises(PlanRefusedError, match="names no object that the scan saw"):
        audit.run(pointed.conn, sides, pointed.policy, Holder("d", "r", "t"))


@pytest.mark.parametrize(
    ("get_object", "says"),
    [
        (one_after_another(refusal("NoSuchKey", 404)), "is not there"),
        (one_after_another(refusal("AccessDenied", 403)), "AccessDenied"),
        (one_after_another(refusal("InvalidObjectState", 403)), "InvalidObjectState"),
        (lambda **_: body_of(b""), "names nothing of this bucket"),
        (lambda **_: body_of(b"\xff"), "is not UTF-8"),
        (lambda **_: body_of(b"", 5 * 1024**2), "5,242,880 bytes, and at most 4,194,304 are read"),
        (
            lambda **_: body_of(b"exports/2020-02/other.json\n2020-01/a.json"),
            "names no object that the scan saw",
        ),
    ],
)
def test_a_pointer_that_does_not_say_what_it_names_refuses_the_plan(
    pointed: World, get_object: Any, says: str
) -> None:
    world = pointed.through(faulty_gateway(pointed.gateway, get_object=get_object))
    world.claim()
    with pytest.raises(PlanRefusedError, match=says) as caught:
        world.plan()
    assert LATEST in str(caught.value)
    assert "nothing was planned" in str(caught.value)
    with pytest.raises(PlanRefusedError, match=says):
        simulate.run(world.conn, world.source, world.policy, Holder("d", "r", "t"))
    assert world.keys() == {A, B, C, LATEST}
    world.expire_leases()
    # Put right, the same interval is planned by the next run.
    assert pointed.clean("run-2").num_by_outcome == {"deleted": 2}


@pytest.mark.parametrize(
    ("get_object", "says"),
    [
        (one_after_another(refusal("NoSuchKey", 404)), "is not there"),
        (one_after_another(refusal("AccessDenied", 403)), "AccessDenied"),
        (one_after_another(refusal("SlowDown", 503)), "SlowDown"),
        (lambda **_: body_of(b""), "names nothing"),
        (lambda **_: body_of(b"exports/2020-01/a.json\nexports", 100), "IncompleteReadError"),
    ],
)
def test_a_pointer_that_cannot_be_read_at_the_delete_stops_the_batch_and_the_next_run_goes_on(
    pointed: World, get_object: Any, says: str
) -> None:
    (batch,) = pointed.planned().batches
    world = pointed.through(faulty_gateway(pointed.gateway, get_object=get_object))
    result = world.delete(batch)
    assert (result.stopped_class, result.num_by_outcome) == ("config", {})
    assert says in str(result.stopped_message)
    assert result.may_pass is (says in {"SlowDown", "IncompleteReadError"})
    assert pointed.keys() == {A, B, C, LATEST}
    pointed.sweep()
    assert pointed.waiting() == {}
    pointed.expire_leases()
    assert pointed.clean("run-2").num_by_outcome == {"deleted": 2}


def test_a_pointer_that_breaks_off_at_the_plan_is_a_listing_that_broke_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = fake_gateway(get_object=lambda **_: body_of(b"exports/2020-01/a.json\nexports", 100))
    policy = a_policy(pointers=[{"key": LATEST}])
    found = pointers.read(broken, policy, NO_WAIT)
    assert isinstance(found, pointers.Unread)
    assert found.may_pass
    monkeypatch.setattr(pointers, "RetryLimits", lambda: NO_WAIT)
    with pytest.raises(ListingError, match="nothing was planned"):
        pointers.read_for_plan(broken, policy)


def test_a_pointer_that_is_throttled_once_is_read_again() -> None:
    busy = fake_gateway(get_object=one_after_another(refusal("SlowDown", 503), body_of(A.encode())))
    found = pointers.read(busy, a_policy(pointers=[{"key": LATEST}]), NO_WAIT)
    assert not isinstance(found, pointers.Unread)
    assert found.by(A)


def test_a_body_without_a_length_is_not_taken_for_a_whole_one() -> None:
    gateway = fake_gateway(get_object=lambda **_: body_of(A.encode()) | {"ContentLength": None})
    found = gateway.read_body(ObjectRef("b", "k"), max_bytes=10)
    assert isinstance(found, Outcome)
    assert (found.code, found.is_retried) == ("NoContentLength", True)


def test_a_pointer_that_names_nothing_refuses_nothing_where_nothing_could_go(world: World) -> None:
    world.put("exports/readme")
    world.admin.put_object(Bucket=world.bucket, Key="pointers/latest", Body=A.encode())
    world = world.under(pointers=[{"key": "pointers/latest"}])
    assert world.clean().num_discovered == 0


def test_a_pointer_that_names_what_is_not_selected_is_seen_and_refuses_nothing(pointed: World) -> None:
    pointed.put("exports/current/x")
    point(pointed, "exports/current/x")
    assert pointed.clean().num_by_outcome == {"deleted": 3}
    assert pointed.keys() == {"exports/current/x", LATEST}


def test_a_redrive_reads_the_pointers_anew(pointed: World) -> None:
    pointed.s3.deny(pointed.bucket, [B, C])
    pointed.clean()
    pointed.s3.allow(pointed.bucket, [B, C])
    assert pointed.waiting() == {B: "permission", C: "permission"}
    point(pointed, B)
    assert pointed.redrive().num_by_outcome == {"deleted": 1, "kept": 1}
    assert pointed.keys() == {A, B, LATEST}


def test_a_replay_reads_the_pointers_anew(pointed: World) -> None:
    pointed.clean()
    pointed.put(B, C, body=b"another")
    point(pointed, A, B)
    pointed.replay()
    assert pointed.keys() == {A, B, LATEST}


def test_a_whole_group_is_held_back_by_what_is_named_of_it(world: World) -> None:
    parts = [f"exports/2020-0{month}/{name}.json" for month in (1, 2) for name in "ab"]
    world.put(*parts)
    point(world, parts[0])
    age = world.policy.age.model_dump(by_alias=True, exclude_none=True) | {"whole_groups": ["month"]}
    world = world.under(age=age, pointers=[{"key": LATEST}])
    assert world.clean().num_by_outcome == {"deleted": 2}
    assert world.keys() == {*parts[:2], LATEST}


def test_a_verdict_from_a_shell_reads_the_pointers(pointed: World) -> None:
    def verdict(key: str, gateway: S3Gateway = pointed.gateway) -> str:
        ref = ObjectRef(pointed.bucket, key)
        (row,) = list_verdicts(pointed.conn, gateway, [pointed.policy], ref)
        return str(row["detail"])

    assert verdict(A) == "keep: kept_pointer"
    assert verdict(B).startswith("expire: due since 2020-03-02")
    assert verdict(LATEST) == "keep: not_selected"
    gone = faulty_gateway(pointed.gateway, get_object=one_after_another(refusal("NoSuchKey", 404)))
    uri = f"s3://{pointed.bucket}/{LATEST}"
    assert verdict(B, gone) == f"keep: nothing is deleted now: pointer {uri} is not there"


MEMBERS = [
    f"exports/2020-{month:02}/{name}{number}.json" for month in (1, 2, 9) for name in "ab" for number in "12"
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    there=st.sets(st.sampled_from(MEMBERS), min_size=1),
    named=st.lists(st.sampled_from([*MEMBERS, "exports/2020-01/", "exports/2020-02"]), min_size=1),
    keep=st.sampled_from(
        [None, {"latest": 1}, {"daily": 2}, {"monthly": 1}, {"within": "40d"}, {"min_bytes": 15}]
    ),
)
def test_a_pointer_only_ever_keeps_more(
    world: World, there: set[str], named: list[str], keep: dict[str, Any] | None
) -> None:
    listed = [facts(key, size=10) for key in sorted(there)]
    regex = r"exports/[0-9-]+/(?P<customer>[ab])[12]\.json"
    rules: dict[str, Any] = {"select": {"regex": regex}}
    if keep is not None:
        rules["keep"] = keep | {"group_by": ["customer"]}
    anchor = facts("exports/anchor")
    source = Pages([[*listed, anchor]], bodies={LATEST: "\n".join([*named, "exports/anchor"]).encode()})
    without = expired(world.conn, source, a_policy(**rules))
    with_pointer = expired(world.conn, source, a_policy(**rules, pointers=[{"key": LATEST}]))
    assert with_pointer <= without
    folders = tuple(f"{name.removesuffix('/')}/" for name in named)
    assert not any(key in named or key.startswith(folders) for key in with_pointer)


def expired(conn: Connection, source: Pages, policy: Any) -> set[str]:
    simulate.run(conn, source, policy, Holder("d", "r", "t"))
    return {row["key"] for row in conn.execute("SELECT key FROM plan_decisions WHERE reason = 'due'")}
