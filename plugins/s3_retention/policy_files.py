"""Policy files: the folder of YAML files that the policies are read from, each file for itself.

Here is the only reading of policies from disk. A broken file never stands in the way of another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import yaml

from s3_retention.core.faults import MAX_SHOWN, Fault, format_faults
from s3_retention.core.policy import parse_policy
from s3_retention.core.policy_rules import check_name
from s3_retention.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import timedelta
    from pathlib import Path

    from s3_retention.core.policy import RetentionPolicy

SUFFIXES = (".yaml", ".yml")
_MAX_PROBLEM = 120  # PyYAML quotes from the file, after some 40 characters of its own
_MERGE_TAG = "tag:yaml.org,2002:merge"
# Besides YAMLError, PyYAML lets through what a strange scalar makes Python raise: a month 13,
# an integer of 5,000 digits, a tag that does not fit its value, nesting without end.
_YAML_ERRORS = (
    yaml.YAMLError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    RecursionError,
)


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """One file: the policy that it holds, or the error that it has. Exactly one of the two is given."""

    path: Path
    policy: RetentionPolicy | None
    error: str | None


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a key that is given twice in a mapping: PyYAML would silently take the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        if isinstance(node, yaml.MappingNode):
            self._refuse_twins(node)
        return super().construct_mapping(node, deep=deep)

    def _refuse_twins(self, node: yaml.MappingNode) -> None:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            # A merge key is no field; what it brings in may be overridden, that is its purpose.
            key = None if key_node.tag == _MERGE_TAG else self.construct_object(key_node, deep=True)
            if key_node.tag == _MERGE_TAG or not isinstance(key, Hashable):
                continue
            if key in seen:
                problem = f"the key {str(key)[:40]!r} is given twice; remove one of the two"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            seen.add(key)


def read_policy_files(folder: Path, *, min_retention: timedelta) -> list[PolicyFile]:
    """Read every ``*.yaml`` and ``*.yml`` of a folder, sorted by name; hidden files are left out.

    A broken file is a PolicyFile with its error. Raises PolicyError when the folder cannot be read.
    """
    return read_policy_paths(_policy_paths(folder), min_retention=min_retention)


def read_policy_paths(paths: Sequence[Path], *, min_retention: timedelta) -> list[PolicyFile]:
    """Read these files, in this order. Two of one stem are two policies of one name: both are refused."""
    stems = Counter(path.stem for path in paths)
    return [_read(path, min_retention=min_retention, is_twin=stems[path.stem] > 1) for path in paths]


def load_policy(folder: Path, name: str, *, min_retention: timedelta) -> RetentionPolicy:
    """Read one policy by its name, and no other file. Raises PolicyError when it is missing or broken."""
    try:
        check_name(name)  # also keeps a path from being taken for a name
    except ValueError as error:
        raise PolicyError(
            format_faults(str(folder), {"name": name}, [Fault(("name",), str(error))])
        ) from None
    paths = [path for suffix in SUFFIXES if _exists(path := folder / f"{name}{suffix}")]
    if not paths:
        raise PolicyError(f"{folder / name}.yaml: there is no such policy file; add it, or correct the name")
    file = read_policy_paths(paths, min_retention=min_retention)[0]
    if file.policy is None:
        raise PolicyError(file.error)
    return file.policy


def overlaps(policies: Iterable[RetentionPolicy]) -> list[str]:
    """Warn of each two policies over the same objects: one bucket, and one prefix begins with the other.

    The select of each may still tell them apart: this is for a person to look at.
    """
    ordered = sorted(policies, key=lambda policy: policy.name)
    return [
        f"{one.name} and {other.name} both look at s3://{one.source.bucket}/"
        f"{max(one.source.prefix, other.source.prefix, key=len)}: "
        "an object that both select goes by the shorter retention, and no keep rule of the other spares it"
        for one, other in combinations(ordered, 2)
        if one.source.bucket == other.source.bucket and _nested(one.source.prefix, other.source.prefix)
    ]


def _nested(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _policy_paths(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir(), key=lambda path: path.name)
    except OSError as error:
        raise PolicyError(f"{folder}: the policy folder cannot be read: {error.strerror}") from error
    # Editors and Kubernetes mounts keep hidden entries beside the files.
    return [path for path in entries if path.suffix in SUFFIXES and not path.name.startswith(".")]


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True  # reading it will say what is wrong
    return True


def _read(path: Path, *, min_retention: timedelta, is_twin: bool) -> PolicyFile:
    where = str(path)
    try:
        data = _load_yaml(path)
    except PolicyError as error:
        return PolicyFile(path, None, str(error))
    faults, lines = [], []
    if is_twin:
        faults.append(
            Fault((), f"another file holds a policy named {path.stem} too; remove or rename one of them")
        )
    name = data.get("name")
    if isinstance(name, str) and name != path.stem:
        faults.append(
            Fault(("name",), f"is not the file's name; write name: {path.stem}, or rename the file")
        )
    if faults:
        lines.append(format_faults(where, data, faults))
    policy = None
    try:
        policy = parse_policy(
            data,
            where=where,
            min_retention=min_retention,
            read_sql=lambda name: _read_sql(path.parent / name),
        )
    except PolicyError as error:
        lines.append(str(error))
    return PolicyFile(path, None, "\n".join(lines)) if lines else PolicyFile(path, policy, None)


def _read_sql(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise PolicyError(f"{path}: the file cannot be read as UTF-8: {type(error).__name__}") from error


def _load_yaml(path: Path) -> dict[Any, Any]:
    try:
        # As bytes: PyYAML decodes by itself, and refuses what is no text. The loader is a SafeLoader.
        data = yaml.load(path.read_bytes(), Loader=_UniqueKeyLoader)  # noqa: S506
    except OSError as error:
        raise PolicyError(f"{path}: the file cannot be read: {error.strerror}") from error
    except _YAML_ERRORS as error:
        raise PolicyError(f"{path}: is not YAML: {_explain(error)}") from error
    if not isinstance(data, dict):
        kind = "nothing" if data is None else "a list" if isinstance(data, list) else "a single value"
        raise PolicyError(f"{path}: holds {kind}; write fields, beginning with name: {path.stem[:MAX_SHOWN]}")
    return data


def _explain(error: Exception) -> str:
    """Say in one line what is wrong, and where. The file's own text is not repeated: it can be long."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or (str(error) if not isinstance(error, yaml.YAMLError) else "")
    text = " ".join(str(problem or "it cannot be decoded").split())
    text = text if len(text) <= _MAX_PROBLEM else text[:_MAX_PROBLEM] + "…"
    return f"line {mark.line + 1}, column {mark.column + 1}: {text}" if mark else text
