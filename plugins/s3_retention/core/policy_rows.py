"""The section ``source.rows`` of a policy file: rows of a database whose object is orphaned."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Annotated

from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from s3_retention.core.durations import Duration
from s3_retention.core.faults import Fault, FaultsError
from s3_retention.core.policy_rules import check_text
from s3_retention.core.policy_types import Flag, Share, StrictModel, Text

if TYPE_CHECKING:
    from typing_extensions import Self

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_SQL_FILE = re.compile(r"[A-Za-z0-9_-]{1,64}\.sql")
_FIELD = re.compile(r"\{([^{}]*)\}")
MAX_TIMEOUT = timedelta(hours=1)


def _check_column(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(
            "is not a column; write its name as the table has it: A-Z, a-z, 0-9 and _, no digit first"
        )
    return name


def _check_table(name: str) -> str:
    schema, dot, table = name.partition(".")
    if not (dot and _NAME.fullmatch(schema) and _NAME.fullmatch(table)):
        raise ValueError("is not a table; write schema.table, for example public.attachments")
    return name


def _check_template(template: str) -> str:
    columns = template_columns(template)
    if not columns:
        raise ValueError("names no column; write for example sfs/{tenant_id}/{id}.bin")
    for column in columns:
        _check_column(column)
    if set("{}") & set(_FIELD.sub("", template)):
        raise ValueError("has a brace that is not closed; write {column} for each column")
    return template


def _check_value(value: object) -> bool | int | str:
    if isinstance(value, bool | int | str):
        return check_text(value) if isinstance(value, str) else value
    raise ValueError("must be a text, a whole number, true or false")


def template_columns(template: str) -> list[str]:
    """Give the columns that a template of keys names, in its order."""
    return _FIELD.findall(template)


def template_parts(template: str) -> list[tuple[bool, str]]:
    """Cut a template into texts and columns: whether a part is a column, and the text or its name."""
    parts = _FIELD.split(template)
    return [(number % 2 == 1, part) for number, part in enumerate(parts) if number % 2 == 1 or part]


Column = Annotated[str, Field(strict=True), AfterValidator(_check_column)]
Table = Annotated[str, Field(strict=True), AfterValidator(_check_table)]
Template = Annotated[str, Field(strict=True), AfterValidator(_check_template)]
Value = Annotated[
    bool | int | str,
    PlainValidator(_check_value),
    WithJsonSchema({"type": ["boolean", "integer", "string"]}),
]


class RowKey(StrictModel):
    """Where a row says which object is its own. Each form is exact: what does not fit it is refused, never guessed."""

    column: Column | None = Field(None, description="A column that holds the key, byte for byte.")
    url: Column | None = Field(None, description="A column that holds s3://bucket/key, nothing decoded.")
    template: Template | None = Field(
        None,
        description="Columns in a text, as sfs/{tenant_id}/{id}.bin; a row with an empty one has no key.",
    )

    @model_validator(mode="after")
    def _be_one(self) -> Self:
        if sum(one is not None for one in (self.column, self.url, self.template)) != 1:
            raise FaultsError([Fault((), "must be one of column, url and template; write one of the three")])
        return self

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        if self.template is not None:
            return template_columns(self.template)
        return [self.column or self.url or ""]


class RowCondition(StrictModel):
    """What one column of an orphaned row holds."""

    column: Column
    is_null: Flag | None = Field(None, description="true: it is NULL; false: it is not.")
    equals: Value | None = Field(None, description="It is this value.")
    one_of: tuple[Value, ...] = Field((), description="It is one of these values.")

    @model_validator(mode="after")
    def _be_one(self) -> Self:
        if sum((self.is_null is not None, self.equals is not None, bool(self.one_of))) != 1:
            raise FaultsError(
                [Fault((), "must be one of is_null, equals and one_of; write one of the three")]
            )
        return self


class ReferenceTo(str, Enum):
    """What of an orphaned row another table names."""

    KEY = "key"
    ID = "id"


class RowReference(StrictModel):
    """Another place that keeps an object alive while it names its row."""

    table: Table
    column: Column
    to: ReferenceTo = Field(ReferenceTo.KEY, description="Whether that column names the key or the id.")


class OrphanedSql(StrictModel):
    """A condition on a row in SQL, from a file beside the policies: its name, and its text at the time it was read."""

    file: str
    text: str


class Rows(StrictModel):
    """The table whose orphaned rows name the objects, and what makes a row one."""

    postgres_conn_id: Text = Field(min_length=1, description="The Airflow connection of the database.")
    table: Table = Field(description="schema.table.")
    id: Column = Field("id", description="A column that names one row for good, such as the primary key.")
    key: RowKey
    orphaned: tuple[RowCondition, ...] = Field((), description="A row is orphaned when all of these hold.")
    orphaned_sql: Annotated[
        OrphanedSql | None,
        WithJsonSchema({"type": ["string", "null"], "pattern": "^[A-Za-z0-9_-]{1,64}\\.sql$"}),
    ] = Field(
        None,
        description="Instead: a file beside the policies with a condition on the table's columns, as WHERE has it.",
    )
    detached_at: Column | None = Field(
        None,
        description="When the row lost its parent (timestamptz); null: when the ledger first saw it orphaned.",
    )
    soft_delete: Column | None = Field(
        None,
        description="A column (timestamptz) that is set while the object is being deleted, and no longer.",
    )
    references: tuple[RowReference, ...] = Field((), description="Other tables that keep an object alive.")
    max_absent_share: Share | None = Field(
        0.5,
        description="A plan is refused when more than this share of at least 20 due objects is not there: their rows "
        "would go, and the key may be read wrongly; null is no limit.",
    )
    statement_timeout: Duration = Field(
        timedelta(minutes=1), description="How long one statement may take before the database is too slow."
    )

    def _reads(self, column: str) -> bool:
        """Say whether what makes a row an orphan, or names it, may read a column."""
        text = self.orphaned_sql.text if self.orphaned_sql is not None else ""
        is_written = re.search(rf"\b{re.escape(column)}\b", text, re.IGNORECASE) is not None
        return is_written or column in {self.id, *self.key.columns, *(one.column for one in self.orphaned)}

    @field_validator("orphaned_sql", mode="before")
    @classmethod
    def _read_sql(cls, value: object, info: ValidationInfo) -> object:
        if value is None or isinstance(value, OrphanedSql):
            return value
        if not isinstance(value, str) or not _SQL_FILE.fullmatch(value):
            raise ValueError("is not the name of a file; write for example orphans.sql, without a folder")
        # The reading is the caller's: nothing here touches a disk.
        read = (info.context or {}).get("read_sql")
        text = None if read is None else read(value)
        if text is None:
            raise ValueError("is not there; add the file to the folder of the policies")
        if not text.strip():
            raise ValueError("is an empty file; write a condition, as WHERE has it")
        if ";" in text:
            raise ValueError("has a semicolon; write one condition, as WHERE has it, and no statement")
        return OrphanedSql(file=value, text=text)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        faults = []
        if bool(self.orphaned) == (self.orphaned_sql is not None):
            faults.append(
                Fault(("orphaned",), "or orphaned_sql says what an orphan is; write one of the two")
            )
        if not timedelta(0) < self.statement_timeout <= MAX_TIMEOUT:
            faults.append(Fault(("statement_timeout",), "must be up to 1h; write for example 1m"))
        if self.detached_at is not None and self.detached_at == self.soft_delete:
            faults.append(Fault(("soft_delete",), "is detached_at too; add a column of its own"))
        elif self.soft_delete is not None and self._reads(self.soft_delete):
            # Its rows would be no orphans any more once they are marked, and never go.
            faults.append(
                Fault(("soft_delete",), "is read by orphaned, key or id too; add a column of its own")
            )
        if faults:
            raise FaultsError(faults)
        return self
