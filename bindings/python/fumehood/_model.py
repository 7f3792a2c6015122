"""What comes back: frozen dataclasses, made out of the library's JSON (docs/FORMATS.md)."""
from __future__ import annotations

import base64
import dataclasses
import os
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Dict, List, Literal, Mapping, Optional, Tuple, Type, TypeVar, Union

Json = Dict[str, Any]
Amount = Union[str, int, float]
Duration = Union[str, int, float, timedelta]
Verdict = Literal["succeeded", "failed", "timed_out", "output_missing", "post_process_failed", "out_of_memory", "out_of_disk",
                  "out_of_processes", "cancelled", "lost", "refused"]
State = Literal["waiting", "queued", "running", "pending", "restored", "held", "dead", "finished", "cancelled"]
Stream = Literal["stdout", "stderr", "post_process"]
_T = TypeVar("_T")


def _amount(value: Union[Amount, timedelta]) -> str:
    """As the library reads it: digits and at most one point."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if hasattr(value, "__index__"):
        return str(value.__index__())
    if isinstance(value, float):
        return f"{value:.9f}".rstrip("0").rstrip(".")
    return value


def _limit(name: str, value: Any) -> str:
    if isinstance(value, bool) or not (isinstance(value, (str, float, timedelta)) or hasattr(value, "__index__")):
        raise TypeError(f"limits.{name} is a text such as '2G' or '10m', or a number, not {type(value).__name__}: {value!r:.80}")
    return _amount(value)


@dataclass(frozen=True)
class Limits:
    """What an analysis may use. Sizes are written "2G" or as bytes, times "10m" or as seconds; "none" is no limit; None is the
    site's default. A limit that is asked for and cannot be held on this host is refused."""

    # scripts/texts: limits
    wall: Optional[Duration] = None
    grace: Optional[Duration] = None
    cpu_time: Optional[Duration] = None
    cpus: Optional[Amount] = None
    memory: Optional[Amount] = None
    pids: Optional[Amount] = None
    disk: Optional[Amount] = None
    files: Optional[Amount] = None
    input_max: Optional[Amount] = None
    output_max: Optional[Amount] = None
    log_max: Optional[Amount] = None
    file_size: Optional[Amount] = None
    open_files: Optional[Amount] = None
    # scripts/texts: end

    def items(self) -> List[Tuple[str, str]]:
        """Name and text of those that are given."""
        given = ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self))
        return [(name, _limit(name, value)) for name, value in given if value is not None]


def _path(entry: Mapping[str, Any]) -> str:
    """A path that is not UTF-8 has its bytes beside it; Python writes such bytes as surrogates (os.fsencode)."""
    if "path_b64" in entry:
        return os.fsdecode(base64.b64decode(entry["path_b64"]))
    return str(entry["path"])


def _text(value: Any) -> str:
    return os.fsdecode(base64.b64decode(value["b64"])) if isinstance(value, dict) else str(value)


def _reason(json: Mapping[str, Any]) -> Optional[str]:
    from ._errors import in_python  # which knows of Result
    return None if json["reason"] is None else in_python(_text(json["reason"]))


def _known(kind: Type[_T], json: Mapping[str, Any]) -> _T:
    """A dataclass out of the keys that it knows: a newer library may tell more."""
    names = {f.name for f in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in json.items() if name in names})


def instant(text: Optional[str]) -> Optional[datetime]:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))


@dataclass(frozen=True)
class Usage:
    """What an attempt used, from kernel counters. None is "not known"."""

    wall_ms: Optional[int] = None
    cpu_ms: Optional[int] = None
    cpu_user_ms: Optional[int] = None
    cpu_system_ms: Optional[int] = None
    memory_peak_bytes: Optional[int] = None
    memory_anon_peak_bytes: Optional[int] = None
    swap_peak_bytes: Optional[int] = None
    pids_peak: Optional[int] = None
    read_bytes: Optional[int] = None
    written_bytes: Optional[int] = None
    throttled_ms: Optional[int] = None
    oom_kills: Optional[int] = None
    disk_bytes: Optional[int] = None
    disk_files: Optional[int] = None


@dataclass(frozen=True)
class Output:
    """A file that came out. path is relative to the workspace."""

    path: str
    size: int
    sha256: str
    media_type: str

    @staticmethod
    def of(json: Mapping[str, Any]) -> Output:
        return Output(_path(json), json["size"], json["sha256"], json["media_type"])


@dataclass(frozen=True)
class RejectedOutput:
    """Something in the workspace that was not collected, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Denial:
    """What the analysis was not allowed, or with explain=True did not find: how often, the error it saw ("EPERM"), what would help."""

    layer: str  # "seccomp", "mounts", "network", "landlock"
    operation: str  # a system call; "read", "write", "execute", "connect"
    target: Optional[str]
    errno: Optional[str]
    count: int
    hint: Optional[str]


@dataclass(frozen=True)
class Layer:
    """One wall or limit: whether it was in force."""

    name: str
    held: bool
    detail: str


@dataclass(frozen=True)
class Receipt:
    """What was truly in force around an attempt."""

    layers: Tuple[Layer, ...] = ()
    warnings: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """What went wrong on our side."""

    stage: Optional[str]
    code: str
    message: str


@dataclass(frozen=True)
class Engine:
    """What an analysis runs in beside the host of its worker, in the words of that engine. None is "not known"."""

    engine: str  # "slurm"
    job: Optional[str] = None
    state: Optional[str] = None
    reason: Optional[str] = None
    node: Optional[str] = None
    cluster: Optional[str] = None

    @staticmethod
    def of(json: Optional[Mapping[str, Any]]) -> Optional[Engine]:
        return _known(Engine, json) if isinstance(json, dict) else None


@dataclass(frozen=True)
class Step:
    """One of several commands that ran in a held workspace, one after the other."""

    command: Tuple[str, ...]
    verdict: Optional[Verdict]
    status: int
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    reason: Optional[str] = None
    started: Optional[str] = None
    ended: Optional[str] = None
    usage: Usage = Usage()

    @property
    def ok(self) -> bool:
        return self.verdict == "succeeded"

    @staticmethod
    def of(json: Mapping[str, Any]) -> Step:
        return Step(command=tuple(_text(word) for word in json["command"] or ()), verdict=json["verdict"],
                    status=json["status"], exit_code=json["exit_code"], signal=json["signal"], reason=_reason(json),
                    started=json["started"], ended=json["ended"], usage=_known(Usage, json["usage"]))


@dataclass(frozen=True)
class Result:
    """One attempt: how it ended, what it used, what came out.

    verdict is "succeeded", "failed", "timed_out", "output_missing", "post_process_failed", "out_of_memory", "out_of_disk",
    "out_of_processes", "cancelled", "lost" or "refused".
    status is what `fumehood run` would exit with. stdout and stderr are the end of what was kept (64 KiB each); logs() has all
    of it.
    """

    id: str
    attempt: int
    verdict: Optional[Verdict]
    status: int
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    reason: Optional[str] = None
    committed: bool = False
    workspace: Optional[str] = None
    kept: bool = False
    rows: Optional[int] = None
    usage: Usage = Usage()
    outputs: Tuple[Output, ...] = ()
    rejected_outputs: Tuple[RejectedOutput, ...] = ()
    missing_outputs: Tuple[str, ...] = ()
    receipt: Receipt = field(default=Receipt(), repr=False)
    error: Optional[Failure] = None
    stdout: str = field(default="", repr=False)
    stderr: str = field(default="", repr=False)
    step: Optional[int] = None  # in a held workspace: which it was; it is committed with the others
    steps: Tuple[Step, ...] = ()  # what ran in a held workspace, in order
    denials: Optional[Tuple[Denial, ...]] = None  # None: nobody listened
    denials_more: Optional[int] = None  # how many more were only counted
    pending: bool = False  # its command has ended, and we could not commit it yet: gc() does; error says why
    explanation: str = field(default="", repr=False)  # see explain()
    engine: Optional[Engine] = None  # None: it ran on the host of its worker, or here

    @property
    def ok(self) -> bool:
        return self.verdict == "succeeded"

    def explain(self) -> str:
        """Why it ended as it did, for a prompt: at most ten lines "key: value", as `fumehood show --explain=agent` has them:
        verdict, evidence, error, denied, hint, and the end of stderr, whose words are the analysis's own."""
        return self.explanation

    @property
    def returncode(self) -> int:
        """As subprocess has it: 0 is success, -N is signal N."""
        if self.verdict in ("failed", "cancelled") and self.signal:
            return -self.signal
        return self.status

    def output(self, path: str) -> Output:
        """The output of that path; KeyError if there is none."""
        for found in self.outputs:
            if found.path == path:
                return found
        raise KeyError(path)

    @staticmethod
    def of(json: Mapping[str, Any], status: int, stdout: str = "", stderr: str = "", explanation: str = "") -> Result:
        from ._errors import in_python  # which knows of Result
        receipt = json.get("receipt") or {}
        error = json.get("error")
        return Result(
            id=json["id"] or "", attempt=json["attempt"], verdict=json["verdict"], status=status,
            exit_code=json["exit_code"], signal=json["signal"], committed=json["committed"],
            reason=_reason(json),
            pending=json.get("pending", False), step=json.get("step"),
            steps=tuple(Step.of(s) for s in json.get("steps", ())),
            workspace=json["workspace"], kept=json["kept"], rows=json["rows"], usage=_known(Usage, json["usage"]),
            outputs=tuple(Output.of(o) for o in json["outputs"]),
            rejected_outputs=tuple(RejectedOutput(_path(o), o["reason"]) for o in json["rejected_outputs"]),
            missing_outputs=tuple(_text(o) for o in json["missing_outputs"]),
            denials=None if json.get("denials") is None else tuple(
                Denial(d["layer"], d["operation"], d["target"], d["errno"], d["count"], d["hint"] and in_python(d["hint"]))
                for d in json["denials"]),
            denials_more=json.get("denials_more"), engine=Engine.of(json.get("engine")),
            receipt=Receipt(
                tuple(Layer(_text(r["name"]), r["held"], _text(r["detail"])) for r in receipt.get("layers", ())),
                tuple(in_python(_text(w)) for w in receipt.get("warnings", ()))),
            error=None if error is None else Failure(error["stage"], error["code"], error["message"]),
            stdout=stdout, stderr=stderr,
            explanation="".join(line if line.startswith(("stderr: ", "stdout: ")) else in_python(line)
                                for line in explanation.splitlines(keepends=True)))


@dataclass(frozen=True)
class Progress:
    """What a run is doing now. None is "not known"."""

    stage: str
    elapsed_ms: int
    cpu_ms: Optional[int]
    memory_bytes: Optional[int]
    pids: Optional[int]
    disk_files: Optional[int]


@dataclass(frozen=True)
class LogLine:
    """A line that an analysis wrote: hostile text, of at most 64 KiB, without its end. dropped: so many bytes before it came
    faster than they were read, and are only in the log."""

    stream: Stream
    text: str
    dropped: int = 0


@dataclass(frozen=True)
class Listed:
    """A row of ls()."""

    id: str
    state: State
    verdict: Optional[Verdict] = None
    attempt: Optional[int] = None
    created: Optional[datetime] = None
    started: Optional[datetime] = None
    usage: Usage = Usage()
    owner: Optional[str] = None
    command: Optional[Tuple[str, ...]] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    engine: Optional[Engine] = None  # None: nothing but the host of its worker, or this one

    @staticmethod
    def of(json: Mapping[str, Any]) -> Listed:
        command = json.get("command")
        return Listed(json["id"], json["state"], json["verdict"], json["attempt"], instant(json["created"]),
                      instant(json["started"]), _known(Usage, json["usage"] or {}), json["owner"],
                      None if command is None else tuple(command), json.get("exit_code"), json.get("signal"),
                      Engine.of(json.get("engine")))


@dataclass(frozen=True)
class Job:
    """A row of the queue. state is "waiting", "queued", "running", "finished", "cancelled" or "restored"."""

    id: str
    state: State
    verdict: Optional[Verdict] = None
    status: Optional[int] = None
    attempt: Optional[int] = None
    priority: int = 0
    submitter: Optional[str] = None
    worker: Optional[str] = None
    reason: Optional[str] = None
    cancelling: bool = False
    submitted: Optional[datetime] = None
    due: Optional[datetime] = None
    owner: Optional[str] = None
    engine: Optional[Engine] = None

    @property
    def ended(self) -> bool:
        return self.state in ("finished", "cancelled")

    @staticmethod
    def of(json: Mapping[str, Any]) -> Job:
        job = _known(Job, json)
        return dataclasses.replace(job, submitted=instant(json.get("submitted")), due=instant(json.get("due")),
                                   engine=Engine.of(json.get("engine")))


@dataclass(frozen=True)
class Running:
    """An analysis that runs now, and what it had used at `at`. stage is None while that is not known."""

    id: str
    host: str
    here: bool
    queued: bool
    attempt: Optional[int] = None
    step: Optional[int] = None
    age_ms: Optional[int] = None
    stage: Optional[Literal["staging", "running", "collecting", "post-processing", "committing", "cleaning up"]] = None
    at: Optional[datetime] = None
    elapsed_ms: Optional[int] = None
    cpu_ms: Optional[int] = None
    cpu_percent: Optional[float] = None
    memory_bytes: Optional[int] = None
    memory_peak_bytes: Optional[int] = None
    pids: Optional[int] = None
    wall_limit_ms: Optional[int] = None
    memory_limit_bytes: Optional[int] = None
    engine: Optional[Engine] = None

    @staticmethod
    def of(json: Mapping[str, Any]) -> Running:
        live = json.get("live") or {}
        running = _known(Running, {**json, **live})
        return dataclasses.replace(running, at=instant(live.get("at")), engine=Engine.of(json.get("engine")))


@dataclass(frozen=True)
class Top:
    """What runs now, and how the queue is: states and how many are in each; recent: of the last hour."""

    host: str
    analyses: Tuple[Running, ...]
    queue: Mapping[str, int]
    recent: Mapping[str, int]
    workers_alive: int
    at: Optional[datetime] = None

    @staticmethod
    def of(json: Mapping[str, Any]) -> Top:
        return Top(json["host"], tuple(Running.of(row) for row in json["analyses"]), json["queue"], json["recent"],
                   json["workers_alive"], instant(json.get("at")))


@dataclass(frozen=True)
class WorkerSeen:
    """A worker as the ledger knows it. alive: it was heard of within its own lease, by the ledger's clock."""

    id: str
    host: str
    pid: int
    engine: str
    seats: int
    running: int
    state: Literal["working", "draining", "stopping"]
    alive: bool
    seen: Optional[datetime] = None
    silent_ms: int = 0
    lease_ms: int = 0
    started: Optional[datetime] = None
    version: Optional[str] = None
    owner: Optional[str] = None

    @staticmethod
    def of(json: Mapping[str, Any]) -> WorkerSeen:
        worker = _known(WorkerSeen, json)
        return dataclasses.replace(worker, seen=instant(json.get("seen")), started=instant(json.get("started")))


@dataclass(frozen=True)
class GcReport:
    """What gc() finished, removed, and left alone."""

    committed: int = 0
    lost: int = 0
    given_up: int = 0
    removed: int = 0
    alive: int = 0
    foreign: int = 0
    failed: int = 0
    objects: int = 0
    pruned: int = 0
    error: Optional[Failure] = None

    @staticmethod
    def of(json: Mapping[str, Any]) -> GcReport:
        error = json.get("error")
        report = _known(GcReport, {key: value for key, value in json.items() if key != "error"})
        return report if not error else dataclasses.replace(
            report, error=Failure(error.get("stage"), error["code"], error["message"]))


@dataclass(frozen=True)
class Removed:
    """What remove() or prune() took away, or (dry_run) would take. busy and built_on: attempts that prune() left alone. first: the first ids.
    contents_freed and bytes_freed: what nothing refers to any more; None for a dry run."""

    dry_run: bool = False
    analyses: int = 0
    attempts: int = 0
    outputs: int = 0
    bytes: int = 0
    queue_rows: int = 0
    busy: int = 0
    built_on: int = 0
    first: Tuple[str, ...] = ()
    contents_freed: Optional[int] = None
    bytes_freed: Optional[int] = None

    @staticmethod
    def of(json: Mapping[str, Any]) -> Removed:
        return dataclasses.replace(_known(Removed, json), first=tuple(json["first"]))


@dataclass(frozen=True)
class DoctorItem:
    """One thing that this host can do or not; what to do about it is in remedy."""

    name: str
    ok: bool
    required: bool = False
    detail: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Health:
    """What this host can enforce, each item tried. ok: nothing that is required is missing; not_held: the names of what is not."""

    ok: bool
    items: Tuple[DoctorItem, ...]

    @property
    def not_held(self) -> Tuple[str, ...]:
        return tuple(item.name for item in self.items if not item.ok)
