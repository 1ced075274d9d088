"""A small client of Airflow's REST API: what a demo and a test do with runs and tasks."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import httpx

from sandbox.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from typing_extensions import Self

RUN_POLL_SECONDS = 0.3
PAGE = 100  # [api] maximum_page_limit
LOG_LINES = 20
UNMAPPED = -1
CONTEXT_FIELDS = {"timestamp", "level", "logger", "filename", "lineno", "ti", "ti_id", "dag_id", "run_id"}
CONTEXT_FIELDS |= {"task_id", "map_index", "try_number"}
ENDED_WELL = {"success", "skipped", "removed"}

Json = Any
"""What a JSON document decodes to."""


class AirflowApi:
    """The REST API of one Airflow; paths are relative to `/api/v2`.

    Each answer that is not 2xx raises `SandboxError` with its status and body; `request` alone hands back
    whatever came. With `passwords` a `user` may be named, whose login is used; without, everyone is an admin.
    """

    def __init__(self, url: str, passwords: Mapping[str, str] | None = None) -> None:
        """Talk to the API server at `url`; nothing is sent yet."""
        self.url = url
        self.passwords = dict(passwords or {})
        self._tokens: dict[str | None, str] = {}
        # No proxy of the environment: this is loopback.
        self._http = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def check(self) -> None:
        """Raise `SandboxError` when it is known that waiting is in vain: see `Airflow`."""

    def token(self, user: str | None = None) -> str:
        """A bearer token of `user` (default: of the first one that has a password)."""
        if user not in self._tokens:
            name = user or next(iter(self.passwords), None)
            if name is None:
                answer = self._http.get("/auth/token")
            else:
                login = {"username": name, "password": self.passwords[name]}
                answer = self._http.post("/auth/token", json=login)
            self._tokens[user] = _content(answer)["access_token"]
        return self._tokens[user]

    def request(self, method: str, path: str, *, user: str | None = None, **options: Any) -> httpx.Response:
        """One request as `user`; `options` are those of `httpx.Client.request`."""
        headers = {"Authorization": f"Bearer {self.token(user)}", **options.pop("headers", {})}
        return self._http.request(method, f"/api/v2{path}", headers=headers, **options)

    def get(self, path: str, **params: Any) -> Json:
        """GET, as JSON."""
        return _content(self.request("GET", path, params=params))

    def post(self, path: str, body: Json) -> Json:
        """POST, as JSON."""
        return _content(self.request("POST", path, json=body))

    def patch(self, path: str, body: Json) -> Json:
        """PATCH, as JSON."""
        return _content(self.request("PATCH", path, json=body))

    def _all(self, path: str, name: str) -> list[dict[str, Any]]:
        """Every entry of a listing: a page holds at most 100."""
        found: list[dict[str, Any]] = []
        while True:
            page = self.get(path, limit=PAGE, offset=len(found))
            found += page[name]
            if not page[name] or len(found) >= page["total_entries"]:
                return found

    def import_errors(self) -> dict[str, str]:
        """The DAG files that cannot be read, with the stack trace of each."""
        errors = self._all("/importErrors", "import_errors")
        return {error["filename"]: error["stack_trace"] for error in errors}

    def wait_for_dag(self, dag_id: str, timeout: float = 60) -> None:
        """Wait until `dag_id` was read; on time-out the error holds the import errors."""

        def known() -> bool:
            answer = self.request("GET", f"/dags/{_part(dag_id)}")
            return answer.status_code != httpx.codes.NOT_FOUND and bool(_content(answer))

        def complain() -> str:
            errors = [f"{name}:\n{trace}" for name, trace in self.import_errors().items()]
            return "\n".join([f"Airflow has no DAG {dag_id} after {timeout:g} s; import errors:", *errors])

        self._poll(known, timeout, complain)

    def unpause(self, dag_id: str) -> None:
        """Let its runs start, by schedule and by hand."""
        self.patch(f"/dags/{_part(dag_id)}", {"is_paused": False})

    def pause(self, dag_id: str) -> None:
        """Let none of its runs start, and those under way stand still."""
        self.patch(f"/dags/{_part(dag_id)}", {"is_paused": True})

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None, run_id: str | None = None) -> str:
        """Start a run and return its id; a `run_id` that was used before is refused (409)."""
        # The API wants the key logical_date, and takes null.
        body = {"logical_date": None, "conf": dict(conf or {}), **({"dag_run_id": run_id} if run_id else {})}
        return str(self.post(f"/dags/{_part(dag_id)}/dagRuns", body)["dag_run_id"])

    def wait_for_run(
        self,
        dag_id: str,
        run_id: str,
        timeout: float = 120,
        *,
        expect: Literal["success", "failed"] | None = None,
    ) -> str:
        """Wait for its end and return its state, `success` or `failed`.

        Raises `SandboxError` with the tasks that did not succeed and the ends of their logs when time is out,
        and when the state is not the one to `expect`.
        """
        state = ""

        def ended() -> bool:
            nonlocal state
            state = self.get(_run(dag_id, run_id))["state"]
            return state in {"success", "failed"}

        self._poll(ended, timeout, lambda: f"not ended after {timeout:g} s: {self._report(dag_id, run_id)}")
        if expect and state != expect:
            raise SandboxError(f"{state}, and not {expect}: {self._report(dag_id, run_id)}")
        return state

    def _poll(self, condition: Callable[[], bool], timeout: float, complain: Callable[[], str]) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise SandboxError(complain())
            time.sleep(RUN_POLL_SECONDS)

    def _report(self, dag_id: str, run_id: str) -> str:
        lines = [f"run {run_id} of {dag_id}"]
        for task in self.task_instances(dag_id, run_id):
            if task["state"] not in ENDED_WELL:
                lines.append(f"  {task['task_id']}[{task['map_index']}] is {task['state'] or 'not started'}")
                if task["state"] not in {None, "upstream_failed"} and task["try_number"]:
                    log = self.task_log(
                        dag_id, run_id, task["task_id"], task["map_index"], task["try_number"]
                    )
                    lines += [f"    {line}" for line in log.splitlines()[-LOG_LINES:]]
        return "\n".join(lines)

    def dag_runs(self, dag_id: str) -> list[dict[str, Any]]:
        """Every run of a DAG, the one with the oldest `run_after` first; `~` stands for all DAGs."""
        runs = self._all(f"/dags/{_part(dag_id)}/dagRuns", "dag_runs")
        return sorted(runs, key=lambda run: str(run["run_after"]))

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Every task instance of a run, mapped ones one by one."""
        return self._all(f"{_run(dag_id, run_id)}/taskInstances", "task_instances")

    def xcom(
        self, dag_id: str, run_id: str, task_id: str, key: str = "return_value", map_index: int = UNMAPPED
    ) -> Json:
        """The value of one XCom."""
        path = f"{_run(dag_id, run_id)}/taskInstances/{_part(task_id)}/xcomEntries/{_part(key)}"
        return self.get(path, map_index=map_index)["value"]

    def task_log(
        self, dag_id: str, run_id: str, task_id: str, map_index: int = UNMAPPED, try_number: int = 1
    ) -> str:
        """The log of one try, a line per record, stack traces included."""
        path = f"{_run(dag_id, run_id)}/taskInstances/{_part(task_id)}/logs/{try_number}"
        content = self.get(path, map_index=map_index, full_content=True)["content"]
        return "\n".join(_lines(content))

    def clear(
        self,
        dag_id: str,
        run_id: str,
        task_ids: Iterable[str | tuple[str, int]] | None = None,
        *,
        only_failed: bool = False,
        downstream: bool = False,
    ) -> list[dict[str, Any]]:
        """Clear tasks of a run, so that they run again: all, or ids and pairs of id and map index."""
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "only_failed": only_failed,
            "include_downstream": downstream,
            "reset_dag_runs": True,
            **({"task_ids": list(task_ids)} if task_ids is not None else {}),
        }
        cleared = self.post(f"/dags/{_part(dag_id)}/clearTaskInstances", body)
        return list(cleared["task_instances"])

    def close(self) -> None:
        """Close the connections; calling it again does nothing."""
        self._http.close()

    def __enter__(self) -> Self:
        """Close it at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def _part(name: str) -> str:
    return quote(name, safe="")


def _run(dag_id: str, run_id: str) -> str:
    return f"/dags/{_part(dag_id)}/dagRuns/{_part(run_id)}"


def _content(answer: httpx.Response) -> Json:
    if not answer.is_success:
        request = answer.request
        raise SandboxError(f"{request.method} {request.url}: {answer.status_code} {answer.text}")
    return answer.json() if answer.content else None


def _lines(content: Iterable[Json]) -> Iterator[str]:
    """Log records as lines: the event, then the fields that say more than whose record it is."""
    for record in content:
        fields = dict(record) if isinstance(record, dict) else {"event": record}
        event = str(fields.pop("event", ""))
        errors = fields.pop("error_detail", None) or []
        said = {name: value for name, value in fields.items() if name not in CONTEXT_FIELDS}
        if not event.startswith("::"):  # folds of the UI
            yield f"{event} {json.dumps(said, ensure_ascii=False)}" if said else event
        for error in errors:
            for frame in error["frames"]:
                yield f"  {frame['filename']}:{frame['lineno']} in {frame['name']}"
            yield f"{error['exc_type']}: {error['exc_value']}"
