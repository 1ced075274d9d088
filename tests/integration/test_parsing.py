"""Long answers are read by our own hooks as botocore reads them, or left to it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, tostring
from xml.sax.saxutils import escape

import botocore.parsers
import botocore.session
import pytest
from botocore.hooks import HierarchicalEmitter
from botocore.utils import parse_timestamp
from hypothesis import given
from hypothesis import strategies as st

from s3_retention.s3 import parsing
from s3_retention.s3.gateway import S3Gateway
from s3_retention.s3.parsing import quicken, read_timestamp
from tests.factories import ODD_KEYS
from tests.fakes import faulty_gateway

if TYPE_CHECKING:
    from tests.factories import World

MODEL = botocore.session.get_session().get_service_model("s3")
PARSER = botocore.parsers.create_parser("rest-xml")
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


class Client:
    """As much of a client as takes the hooks."""

    def __init__(self) -> None:
        self.meta = self
        self.events = HierarchicalEmitter()


def parse(operation: str, body: bytes, status: int = 200, *, is_quick: bool) -> tuple[Any, bool]:
    """Parse an answer as botocore's endpoint does, and say whether our hooks took anything out of it."""
    client: Any = Client()
    if is_quick:
        quicken(client)
    response = {"status_code": status, "headers": {}, "body": body}
    custom: dict[str, Any] = {}
    client.events.emit(
        f"before-parse.s3.{operation}", response_dict=response, customized_response_dict=custom
    )
    shape: Any = MODEL.operation_model(operation).output_shape
    try:
        parsed = PARSER.parse(response, shape)
    except (botocore.parsers.ResponseParserError, ValueError, TypeError):
        return "refused", bool(
            custom
        )  # no XML, a number or a time that is none, or an element that comes twice
    parsed.update(custom)
    return comparable(parsed), bool(custom)


def comparable(value: Any) -> Any:
    """What botocore gives, with the elements that it leaves unread, where one comes twice, as XML."""
    if isinstance(value, dict):
        return {name: comparable(one) for name, one in value.items()}
    if isinstance(value, list):
        return [comparable(one) for one in value]
    return tostring(value) if isinstance(value, Element) else value


def same(operation: str, body: bytes, status: int = 200) -> bool:
    """Hold both readings of an answer against each other; give whether the hooks read it."""
    ours, is_taken = parse(operation, body, status, is_quick=True)
    theirs, _ = parse(operation, body, status, is_quick=False)
    assert ours == theirs
    return is_taken


def types_of(value: Any) -> Any:
    """The types of everything in an answer."""
    if isinstance(value, dict):
        return {name: types_of(one) for name, one in value.items()}
    if isinstance(value, list):
        return [types_of(one) for one in value]
    return type(value)


# Recorded -------------------------------------------------------------------------------------------------
def test_the_answers_of_a_real_server_are_read_as_botocore_reads_them(world: World) -> None:
    client = world.s3.admin_client()
    bodies: list[tuple[str, bytes]] = []
    for operation in ("ListObjectsV2", "DeleteObjects"):
        client.meta.events.register(
            f"before-parse.s3.{operation}",
            lambda response_dict, operation_model, **_: bodies.append(
                (operation_model.name, response_dict["body"])
            ),
        )
    world.put(*ODD_KEYS)
    for more in ({}, {"EncodingType": "url"}, {"MaxKeys": 2}, {"FetchOwner": True}, {"Delimiter": "/"}):
        client.list_objects_v2(Bucket=world.bucket, **more)
    for quiet in (False, True):
        objects: Any = [{"Key": "a\nb"}, {"Key": "é+ %41"}, {"Key": "x", "ETag": '"no"'}]
        client.delete_objects(Bucket=world.bucket, Delete={"Objects": objects, "Quiet": quiet})
    assert len(bodies) == 7
    assert sum(same(operation, body) for operation, body in bodies) >= 5


# Generated ------------------------------------------------------------------------------------------------
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=20)
WELL_FORMED = ["2026-11-30T12:34:56.789Z", "2026-11-30T12:34:56Z", "2026-02-28T23:59:59.999999Z"]
times = st.sampled_from(
    [
        *WELL_FORMED,
        "1969-12-31T23:59:59Z",
        "2026-11-30T12:34:56+02:00",
        "2026-13-30T12:34:56Z",
        "179604",
        "never",
    ]
)


def element(tag: str, text: str) -> str:
    return f"<{tag}>{escape(text)}</{tag}>"


def entry_of(tag: str, **values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """An element with some of these children, in any order, of which some may come twice."""
    child = st.one_of(*(value.map(partial(element, name)) for name, value in values.items()))
    return st.lists(child, max_size=6, unique_by=lambda xml: xml[:8]).map(
        lambda children: f"<{tag}>{''.join(children)}</{tag}>"
    ) | st.lists(child, max_size=4).map(lambda children: f"<{tag}>{''.join(children)}</{tag}>")


numbers = st.integers(-1, 2**60).map(str)
objects = entry_of(
    "Contents",
    Key=texts,
    ETag=texts,
    StorageClass=texts,
    ChecksumType=texts,
    ChecksumAlgorithm=texts,
    Size=numbers,
    LastModified=times,
    Unknown=texts,
)
owned = texts.map(
    lambda text: f"<Contents><Key>k</Key><Owner>{element('ID', text)}<DisplayName/></Owner></Contents>"
)
restored = st.just(
    "<Contents><Key>k</Key><RestoreStatus><IsRestoreInProgress>true</IsRestoreInProgress></RestoreStatus></Contents>"
)
around = st.sampled_from(
    [
        "<IsTruncated>true</IsTruncated>",
        "<Name>b</Name>",
        "<KeyCount>3</KeyCount>",
        "<Prefix/>",
        "<Odd><a/></Odd>",
        "<Prefix>a&#13;b&#xA;c\r\nd&#9;e</Prefix>",
        "<NextContinuationToken>cr&#xD;lf&#13;&#10;</NextContinuationToken>",
        "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>",
        '<c:Contents xmlns:c="o"><Key>z</Key></c:Contents>',
    ]
)
deletes = entry_of(
    "Deleted", Key=texts, VersionId=texts, DeleteMarker=st.sampled_from(["true", "false", "TRUE", ""])
) | entry_of("Error", Key=texts, VersionId=texts, Code=texts, Message=texts)
ENCODINGS = ["UTF-8", "ISO-8859-1", "US-ASCII", "UTF-16", "unheard-of"]
heads = st.sampled_from(
    ["", '<?xml version="1.0"?>', *(f'<?xml version="1.0" encoding="{name}"?>\n' for name in ENCODINGS)]
)
spaces = st.sampled_from([f' xmlns="{NAMESPACE}"', ""])


@given(heads, spaces, st.lists(objects | owned | restored | around, max_size=6))
def test_any_listing_is_read_as_botocore_reads_it(head: str, space: str, children: list[str]) -> None:
    body = f"{head}<ListBucketResult{space}>{''.join(children)}</ListBucketResult>"
    same("ListObjectsV2", body.encode())


@given(heads, spaces, st.lists(deletes | around, max_size=6))
def test_any_answer_to_a_delete_is_read_as_botocore_reads_it(
    head: str, space: str, children: list[str]
) -> None:
    same("DeleteObjects", f"{head}<DeleteResult{space}>{''.join(children)}</DeleteResult>".encode())


def test_a_usual_answer_is_read_by_the_hooks_with_the_types_of_botocore() -> None:
    entry = (
        '<Contents><Key>a&amp;b</Key><LastModified>2026-11-30T12:34:56.789Z</LastModified><ETag>"e"</ETag>'
        "<Size>5</Size><Owner><ID>i</ID><DisplayName>d</DisplayName></Owner><StorageClass>STANDARD</StorageClass>"
        "</Contents>"
    )
    inside = f"<Name>b</Name>{entry}<IsTruncated>false</IsTruncated>"
    body = f'<ListBucketResult xmlns="{NAMESPACE}">{inside}</ListBucketResult>'
    assert same("ListObjectsV2", body.encode())
    quick, slow = (parse("ListObjectsV2", body.encode(), is_quick=is_quick)[0] for is_quick in (True, False))
    assert types_of(quick) == types_of(slow)
    gone = "<Deleted><Key>a</Key><DeleteMarker>true</DeleteMarker></Deleted><Error><Key>b</Key><Code>C</Code></Error>"
    assert same("DeleteObjects", f"<DeleteResult>{gone}</DeleteResult>".encode())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not XML",
        b"<html>proxy error</html>",
        b"<Error><Code>SlowDown</Code><Contents><Key>a</Key></Contents></Error>",
        b"<ListBucketResult><Contents><Key>a</Key></Contents>",
        b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]><ListBucketResult><Name>&e;</Name></ListBucketResult>',
    ],
)
@pytest.mark.parametrize("operation", ["ListObjectsV2", "DeleteObjects"])
def test_what_is_not_the_expected_answer_is_left_to_botocore(operation: str, body: bytes) -> None:
    assert not same(operation, body)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("written_in", ["utf-8", "latin-1", "utf-16"])
def test_an_answer_that_names_any_encoding_is_read_as_botocore_reads_it(name: str, written_in: str) -> None:
    head = f'<?xml version="1.0" encoding="{name}"?>'
    key = "<Key>Ã©é</Key>"
    same("DeleteObjects", f"{head}<DeleteResult><Deleted>{key}</Deleted></DeleteResult>".encode(written_in))
    listed = f"<ListBucketResult><Contents>{key}</Contents><Prefix>é</Prefix></ListBucketResult>"
    same("ListObjectsV2", f"{head}{listed}".encode(written_in))


def test_a_carriage_return_outside_of_the_entries_stays_one() -> None:
    rest = "<NextContinuationToken>a&#13;b</NextContinuationToken><Prefix>x&#xD;&#xA;y\r\nz</Prefix>"
    body = f"<ListBucketResult><Contents><Key>k&#13;</Key></Contents>{rest}</ListBucketResult>".encode()
    assert same("ListObjectsV2", body)
    parsed, _ = parse("ListObjectsV2", body, is_quick=True)
    assert parsed["NextContinuationToken"] == "a\rb"


def test_a_page_that_ends_with_a_carriage_return_is_followed_by_the_next_one(world: World) -> None:
    # SeaweedFS's token is the last key of the page: read as a line feed, it led back to where the page began.
    keys = [f"exports/cr\r{number}" for number in range(5)]
    world.put(*keys)
    small = partial(world.gateway.client.list_objects_v2, MaxKeys=2)
    pages = list(faulty_gateway(world.gateway, list_objects_v2=small).list_pages(world.bucket, "exports/"))
    assert [[one.ref.key for one in page] for page in pages] == [keys[:2], keys[2:4], keys[4:]]


def test_an_answer_of_any_depth_is_read_as_botocore_reads_it() -> None:
    deep = "<Odd>" + "<a>" * 5000 + "</a>" * 5000 + "</Odd>"
    same(
        "ListObjectsV2",
        f"<ListBucketResult><Contents><Key>k</Key></Contents>{deep}</ListBucketResult>".encode(),
    )


@pytest.mark.parametrize("status", [206, 301, 403, 500, 503])
def test_an_answer_that_is_no_success_is_left_to_botocore(status: int) -> None:
    assert not same(
        "ListObjectsV2",
        b"<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        status,
    )


@pytest.mark.parametrize("text", WELL_FORMED)
def test_a_timestamp_of_s3_is_the_one_of_botocore(text: str) -> None:
    ours, theirs = read_timestamp(text), parse_timestamp(text)
    assert (ours, ours.utcoffset()) == (theirs, timedelta(0))


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda time: time.isoformat() + "Z"))  # noqa: DTZ001
def test_any_timestamp_is_the_one_of_botocore(text: str) -> None:
    assert read_timestamp(text) == parse_timestamp(text)
    assert read_timestamp(text).astimezone(timezone.utc) == parse_timestamp(text)


def test_a_client_is_quickened_once_however_many_gateways_it_has(world: World) -> None:
    client = world.s3.worker_client()
    world.put("exports/a")
    for _ in range(3):
        gateway = S3Gateway(client)
    (page,) = gateway.list_pages(world.bucket, "exports/")
    assert [one.ref.key for one in page] == ["exports/a"]
    handlers = client.meta.events._emitter._handlers  # type: ignore[attr-defined]
    for event in ("before-parse.s3.ListObjectsV2", "before-parse.s3.DeleteObjects"):
        ours = [one for one in handlers.prefix_search(event) if one.__module__ == parsing.__name__]
        assert len(ours) == len(set(ours)) > 0


# Uniform runs ---------------------------------------------------------------------------------------------
# Each is a text as it stands in the XML: plain, by a reference, or such as no reader may take as it is.
COMMON_TEXTS = [
    "exports/a.json",
    "&#34;d41d8&#34;",
    "&quot;d4&quot;",
    "a&amp;b &lt;c&gt;",
    "",
    " a  b ",
    "]]",
    "é😀",
]
WELL_WRITTEN = [
    *COMMON_TEXTS,
    *["&#xD;", "&#13;", "&#10;", "&#9;", "\t", "\n", "&#65;", "&#x41;", "&#x1F600;", "&apos;", "]]&gt;"],
    *["&amp;quot;", "&amp;#34;", "&#38;quot;", "&#0000065;", "&#00000000065;", "a>b", "'\""],
    *["\x7f", "\x85", "\ufdd0", "\U0001fffe"],
]
ODDLY_WRITTEN = [
    *["\r", "\r\n", "]]>", "&", "&;", "&#;", "&#x;", "&#X41;", "&LT;", "&unknown;", "&amp", "&#34"],
    *["&#0;", "&#1;", "&#xFFFE;", "&#xD800;", "&#x110000;", "&#9999999;"],
    *["\x00", "\x01", "\x1f", "\ufffe", "\uffff"],
    *["<![CDATA[x]]>", "<!-- c -->", "<b/>", "<b>x</b>", "<?p i?>"],
]
USUAL = ("Key", "LastModified", "ETag", "Size", "StorageClass")
FIT = {"LastModified": times, "Size": numbers | st.sampled_from(["", "x", " 7 ", "1_0", "٣"])}
names = st.lists(
    st.sampled_from([*USUAL, "ChecksumType", "Owner", "Unknown", "Key"]), min_size=1, max_size=7, unique=True
) | st.lists(st.sampled_from(["Key", "Size", "Owner", "VersionId"]), min_size=1, max_size=4)


def written(children: list[tuple[str, str]], tag: str = "Contents") -> str:
    """An entry of these children, whose texts stand there as they are."""
    return f"<{tag}>{''.join(f'<{name}>{text}</{name}>' for name, text in children)}</{tag}>"


@st.composite
def uniform_runs(draw: st.DrawFn, tag: str = "Contents") -> str:
    """1 to 40 entries with the same tags in the same order; the texts of some are odd."""
    order = draw(names)
    odd = draw(st.sampled_from([COMMON_TEXTS, WELL_WRITTEN, [*WELL_WRITTEN, *ODDLY_WRITTEN]]))
    texts_of = {name: FIT.get(name, st.sampled_from(odd)) for name in order}
    texts_of |= (
        {"Owner": st.just("<ID>i</ID><DisplayName>d&amp;</DisplayName>")} if draw(st.booleans()) else {}
    )
    row = st.tuples(*(texts_of[name].map(partial(lambda name, text: (name, text), name)) for name in order))
    # A few rows, over and over: what matters is the first, the last and any that is odd.
    few = draw(st.lists(row, min_size=1, max_size=4))
    num_entries = draw(st.integers(1, 40))
    return "".join(written(list(few[place % len(few)]), tag) for place in range(num_entries))


wrappings = st.sampled_from(
    [
        *["{}"] * 6,
        "<Name>b</Name>{}<IsTruncated>false</IsTruncated>",
        "<Wrap>{}</Wrap>",
        "<!-- {} -->",
        "<![CDATA[{}]]>",
        "<?p {}?>",
        "{}<!-- after -->",
        "{}\n",
        "\r\n{}",
        "text {} text",
        "{}<Contents/>",
        "<Contents></Contents>{}",
        "{0}\n{0}",
        "{0}<Prefix/>{0}",
        "{0}<Wrap>{0}</Wrap>",
        "<Wrap>{0}</Wrap>{0}",
        "<Contents>{}</Contents>",
        "<Prefix a='&gt;Contents'>p</Prefix>{}",
        '{}<c:Contents xmlns:c="o"><Key>z</Key></c:Contents>',
        '<Wrap xmlns="o">{}</Wrap>',
    ]
)
openings = st.sampled_from(
    [
        *[""] * 4,
        '<?xml version="1.0" encoding="UTF-8"?>\n',
        '<?xml version="1.0" encoding="utf-8"?>',
        '<?xml version="1.1"?>',
        "<?xml version='1.0'?>",
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>',
        '<?xml version="1.0" encoding="ISO-8859-1"?>',
        ' <?xml version="1.0"?>',
        "<!DOCTYPE a>",
        '<!DOCTYPE a [<!ENTITY lt "x">]>',
        "\ufeff",
        "<!-- c -->",
    ]
)


@given(openings, spaces, wrappings, uniform_runs(), st.sampled_from(["utf-8"] * 8 + ["latin-1", "utf-16"]))
def test_any_uniform_run_of_a_listing_is_read_as_botocore_reads_it(
    opening: str, space: str, wrapping: str, run: str, encoding: str
) -> None:
    body = f"{opening}<ListBucketResult{space}>{wrapping.format(run)}</ListBucketResult>"
    same("ListObjectsV2", body.encode(encoding, errors="xmlcharrefreplace"))


@given(openings, spaces, wrappings, uniform_runs("Deleted"), uniform_runs("Error"))
def test_any_uniform_run_of_an_answer_to_a_delete_is_read_as_botocore_reads_it(
    opening: str, space: str, wrapping: str, gone: str, failed: str
) -> None:
    wrapped = wrapping.replace("Contents", "Deleted").format(gone)
    same("DeleteObjects", f"{opening}<DeleteResult{space}>{wrapped}{failed}</DeleteResult>".encode())


@given(
    st.binary(max_size=8)
    | st.sampled_from([b"\xed\xa0\x80", b"\xc0\x80", b"\xef\xbf\xbe", b"\xf4\x90\x80\x80"])
)
def test_bytes_that_are_no_text_are_read_as_botocore_reads_them(odd: bytes) -> None:
    entries = b"<Contents><Key>a</Key></Contents><Contents><Key>" + odd + b"</Key></Contents>"
    same("ListObjectsV2", b"<ListBucketResult>" + entries + b"</ListBucketResult>")


@pytest.mark.parametrize("odd", [*WELL_WRITTEN, *ODDLY_WRITTEN])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_text_in_any_entry_of_a_run_is_read_as_botocore_reads_it(odd: str, place: int) -> None:
    texts = ["&quot;e&quot;"] * 3
    texts[place] = odd
    run = "".join(written([("Key", "k"), ("ETag", text), ("Size", "1")]) for text in texts)
    taken = same("ListObjectsV2", f"<ListBucketResult>{run}</ListBucketResult>".encode())
    assert taken or odd in ODDLY_WRITTEN


@pytest.fixture
def no_slow_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that is read by the XML parser fails the test."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("an entry was read the slow way")

    monkeypatch.setattr(parsing, "_read", refuse)


@pytest.mark.usefixtures("no_slow_reading")
def test_a_usual_page_is_read_by_the_pattern_of_its_first_entry() -> None:
    first = [("LastModified", WELL_FORMED[0]), ("ETag", "&#34;e&#34;")]
    last = ("Owner", "<ID>i</ID><DisplayName>d</DisplayName>")
    run = "".join(written([("Key", f"a&amp;é{n}"), *first, ("Size", str(n)), last]) for n in range(1000))
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="{NAMESPACE}"><Name>b</Name>'
    body = f"{head}{run}</ListBucketResult>"
    assert same("ListObjectsV2", body.encode())
    parsed, _ = parse("ListObjectsV2", body.encode(), is_quick=True)
    assert parsed["Contents"][999]["Key"] == "a&é999"
    assert parsed["Contents"][999]["Size"] == 999
    gone = "".join(written([("Key", f"k{n}"), ("DeleteMarker", "true")], "Deleted") for n in range(1000))
    assert same("DeleteObjects", f'<DeleteResult xmlns="{NAMESPACE}">{gone}</DeleteResult>'.encode())


@pytest.mark.usefixtures("no_slow_reading")
def test_a_page_of_a_real_server_is_read_by_the_pattern_of_its_first_entry(world: World) -> None:
    keys = {f"exports/{name}.json" for name in ("a", "b & c", "é", "<x>", '"q"', "+ %41")}
    world.put(*keys)
    (page,) = world.gateway.list_pages(world.bucket, "exports/")
    assert {one.ref.key for one in page} == keys
    assert [outcome.kind.value for outcome in world.gateway.delete_chunk(page)] == ["deleted"] * len(keys)
    assert world.keys() == set()


def test_what_the_pattern_may_not_read_is_read_the_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []

    def read(*given: Any) -> dict[str, str]:
        found.append(given)
        return {"Key": "seen"}

    monkeypatch.setattr(parsing, "_read", read)
    body = "<ListBucketResult><Contents><Key>a</Key></Contents>\n<Contents><Key>b</Key></Contents></ListBucketResult>"
    parsed, is_taken = parse("ListObjectsV2", body.encode(), is_quick=True)
    assert is_taken
    assert (len(found), parsed["Contents"]) == (2, [{"Key": "seen"}] * 2)
