"""The spool: a directory whose every change of state is one rename(2).

    queue/<id>.json          waiting; the bytewise order of names is the order of claims
    running/<host>/<id>/     an attempt: job.json lock pid.json log result.json exit.json next.json out/ (cancel)
    ended/<yyyy-mm-dd>/<id>~<attempt>/   the same directory, moved whole
    rejected/<name>          a job file that cannot be run, beside <name>.why (one line)
    hosts/<host>.json .lock .drain .reset     heartbeat, one daemon, claims nothing, asks for a reset of the breaker
    ledger.d/<host>.jsonl    the truth;  ledger.jsonl the same rows merged
    tmp/                     half-written files, never read
    STOP_ADDING STOP_NOW     existence is the message

Publish: write tmp/…, fsync, link into queue/ (never replaces), fsync the directory. Claim: rename
queue/<id>.json to running/<host>/<id>~<attempt>~<token>.json, ignore the errno, then open exactly that name: there and it
parses, it is mine. Then mkdir <id>/, write the token into `lock`, move the claim in as job.json; who starts it takes
the lease first.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetd.errors import BadData, CannotCreate, IOFailed, NotFound, NotPermitted, TryLater
from fleetd.files import fsync_directory, look, place, read_json, replace_file, scan, write_file
from fleetd.job import NAME, Job, decode_job, encode_job, encode_json
from fleetd.xdg import state_home

DIRECTORIES = ("tmp", "queue", "running", "ended", "rejected", "hosts", "ledger.d")
STOPS = ("STOP_ADDING", "STOP_NOW")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """An attempt as it stands in running/, on any host. `attempt` is 0 and `job` None where job.json can't be read."""

    host: str
    id: str
    attempt: int
    path: Path
    job: Job | None


@dataclass(frozen=True, slots=True)
class Spool:
    """The directories of one spool. Making one of these touches nothing."""

    root: Path

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @property
    def queue(self) -> Path:
        return self.root / "queue"

    @property
    def running(self) -> Path:
        return self.root / "running"

    @property
    def ended(self) -> Path:
        return self.root / "ended"

    @property
    def rejected(self) -> Path:
        return self.root / "rejected"

    @property
    def hosts(self) -> Path:
        return self.root / "hosts"

    @property
    def ledger_d(self) -> Path:
        return self.root / "ledger.d"

    @property
    def ledger(self) -> Path:
        return self.root / "ledger.jsonl"

    @property
    def plan(self) -> Path:
        return self.root / "plan.toml"

    @property
    def settings(self) -> Path:
        return self.root / "fleet.toml"

    def stops(self) -> frozenset[str]:
        """The stop files that stand, found by listing: on NFS a look-up may go on saying no for a minute."""
        return frozenset(STOPS).intersection(os.listdir(self.root))

    def publish(self, job: Job) -> str:
        """Queue the job durably and give back its id. TryLater while a stop file stands, BadData if the id is in use."""
        try:
            stops, running = self.stops(), any(self.running.glob(f"*/{job.id}"))
        except OSError as error:
            raise IOFailed(f"{error.filename or self.root}: not queued: {error.strerror}") from error
        if stops:
            raise TryLater(f"{self.root / min(stops)} stands: nothing is added; fleet resume lifts it")
        decode_job(encode_job(job), job.id)
        if running:
            raise BadData(f"{job.id}: running already; use another name")
        self.enqueue(job)
        return job.id

    def enqueue(self, job: Job) -> None:
        """Publish whatever the stops say. Raises BadData if the id is waiting already, IOFailed if the disk refuses."""
        final = self.queue / f"{job.id}.json"
        draft = self.tmp / f"{job.id}.{secrets.token_hex(4)}"
        try:
            write_file(draft, encode_job(job), durable=True)
            place(draft, final)
            self._make_durable(final)
        except FileExistsError as error:
            raise BadData(f"{final}: waiting already; use another name") from error
        except OSError as error:
            raise IOFailed(f"{final}: not queued: {error.strerror}") from error
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)

    def _make_durable(self, final: Path) -> None:
        """Fsync queue/ with what has just come; where that fails it is taken back, unless it has been claimed by then."""
        try:
            fsync_directory(self.queue)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(final)
                raise

    def waiting(self) -> list[str]:
        """The ids in queue/, in the order of claims; whatever has no job's name is left out."""
        return sorted(id_ for name in os.listdir(self.queue) if (id_ := job_id(name)))

    def read_waiting(self, id_: str) -> Job | None:
        """The waiting job, or None when it is gone, half-written or unusable."""
        return _job_at(self.queue / f"{id_}.json", id_)

    def attempts(self) -> list[Running]:
        """What is claimed or runs, on all hosts."""
        return [
            _running(Path(entry.path), host)
            for host in sorted(os.listdir(self.running))
            if NAME.fullmatch(host)
            for entry in scan(self.running / host)
            if entry.is_dir(follow_symlinks=False)
        ]

    def claimed(self) -> dict[str, Job]:
        """What is between queue/ and its attempt's directory, on all hosts, by id: taken, and about to start."""
        files = (
            (entry.name.partition("~")[0], entry.path)
            for host in sorted(os.listdir(self.running))
            if NAME.fullmatch(host)
            for entry in scan(self.running / host)
            if entry.name.count("~") == 2 and entry.name.endswith(".json")
        )
        return {id_: job for id_, path in files if (job := _job_at(path, id_))}

    def heartbeats(self) -> dict[str, Mapping[str, Any]]:
        """hosts/<host>.json by host; an unreadable one is left out."""
        beats: dict[str, Mapping[str, Any]] = {}
        for name in sorted(os.listdir(self.hosts)):
            host, dot, kind = name.rpartition(".")
            value = read_json(self.hosts / name) if dot and kind == "json" and NAME.fullmatch(host) else None
            if isinstance(value, dict) and is_beat(value):
                beats[host] = value
        return beats


def _job_at(path: Path | str, id_: str) -> Job | None:
    """The job in the file, or None when it is gone, half-written or unusable."""
    try:
        found = look(path)
        return decode_job(found.data, id_) if found else None
    except (OSError, BadData):
        return None


def _running(path: Path, host: str) -> Running:
    job = _job_at(path / "job.json", path.name)
    return Running(host=host, id=path.name, attempt=job.attempt if job else 0, path=path, job=job)


def is_beat(body: Mapping[str, Any]) -> bool:
    """Whether a heartbeat has what its readers rely on, each field of its type: they need not look again."""
    whole = all(key in body and fits(body[key]) for key, fits in _BEAT.items())
    return whole and all(fits(body[key]) for key, fits in _BEAT_MORE.items() if key in body)


def _is_number(value: Any) -> bool:
    return type(value) is int


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_breaker(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_text_or_none(value.get(key)) for key in ("until", "reason"))


def _are_stops(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(stop, dict) and _is_text(stop.get("seen")) and _is_texts(stop.get("ended"))
        for stop in value.values()
    )


def _are_pids(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(pids, list) and all(_is_number(pid) for pid in pids) for pids in value.values()
    )


_BEAT: Mapping[str, Callable[[Any], bool]] = {
    "pid": _is_number,
    "counter": _is_number,
    "lanes": _is_number,
    "busy": _is_texts,
    "tags": _is_texts,
    "breaker": _is_breaker,
    "stops": _are_stops,
    "at": _is_text,
    "claims": _is_text_or_none,
}
_BEAT_MORE: Mapping[str, Callable[[Any], bool]] = {
    "boot": _is_text_or_none,
    "cores": _is_number,
    "gpus": _is_number,
    "machine": _is_text_or_none,
    "ended": _is_text_or_none,
    "unkillable": _are_pids,
}


def job_id(name: str) -> str | None:
    """The id of a file name in queue/, or None for editors' files and the like."""
    id_, dot, kind = name.rpartition(".")
    return id_ if dot and kind == "json" and NAME.fullmatch(id_) else None


def find_spool(flag: str | None, environ: Mapping[str, str]) -> Spool:
    """--spool, FLEET_SPOOL, or $XDG_STATE_HOME/fleet/spool. Raises NotFound and NotPermitted."""
    spool = Spool(spool_path(flag, environ))
    if missing := [name for name in DIRECTORIES if not (spool.root / name).is_dir()]:
        what = "no spool here" if len(missing) == len(DIRECTORIES) else f"{missing[0]}/ is missing"
        raise NotFound(f"{spool.root}: {what}; make one: fleet init --spool {spool.root}")
    device = spool.root.stat().st_dev
    for directory in (spool.root, *(spool.root / name for name in DIRECTORIES)):
        at = directory.stat()
        if directory != spool.root and (directory.is_symlink() or at.st_dev != device):
            raise NotPermitted(
                f"{directory}: a link, or on another file system; a spool is one directory tree on one file system"
            )
        if at.st_mode & stat.S_IWOTH and not at.st_mode & stat.S_ISVTX:
            raise NotPermitted(f"{directory}: others may write here; chmod o-w {directory} (or chmod +t)")
    return spool


def refuse_others(spool: Spool, host: str) -> None:
    """Raise NotPermitted where others may write to what the host's daemon goes by: its running/, its files, the settings.

    Links are passed over, since nobody follows them; the sticky bit is for running/<host> alone, for it says nothing on files.
    """
    files = [spool.hosts / f"{host}.{kind}" for kind in ("json", "lock", "drain", "reset")]
    files += [spool.ledger_d / f"{host}.jsonl", spool.ledger_d / f"{host}.lock", spool.ledger_d / ".merge.lock"]
    for path in (spool.running / host, *files, spool.ledger, spool.settings):
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            continue
        sticky = stat.S_ISDIR(mode) and mode & stat.S_ISVTX
        if mode & stat.S_IWOTH and not sticky and not stat.S_ISLNK(mode):
            raise NotPermitted(f"{path}: others may write here; chmod o-w {path}")


def spool_path(flag: str | None, environ: Mapping[str, str]) -> Path:
    """Where the spool is or would be."""
    path = Path(flag or environ.get("FLEET_SPOOL") or state_home(environ) / "fleet/spool").absolute()
    return path.resolve() if ".." in path.parts else path


def init_spool(root: Path, *, home: str | None) -> Spool:
    """Make what is missing of the spool at `root`; never changes what is there. Raises CannotCreate."""
    try:
        for name in DIRECTORIES:
            (root / name).mkdir(mode=0o755, parents=True, exist_ok=True)
        if not (root / "fleet.toml").exists():
            write_file(root / "fleet.toml", _settings_text(home).encode())
    except OSError as error:
        raise CannotCreate(f"{error.filename or root}: cannot make the spool: {error.strerror}") from error
    return Spool(root)


def _settings_text(home: str | None) -> str:
    named = f'home = "{home}"' if home else '# home = "…"'
    return f"""\
# Settings of this spool, for every host. What is commented out shows the default.
spool = 1                # the format
{named:<24} # the host that merges the ledger
# poll_s = 2.0           # seconds between looks where nothing wakes the daemon
# grace_s = 10.0         # seconds between TERM and KILL
# failures = 5           # failures in a row that open the breaker
# rest_s = 300           # seconds until a host whose breaker is open tries one job
# log_max_mb = 64        # a log keeps its head and its tail
# min_free_mb = 256      # nothing is claimed when the disk has less
# keep_ended_days = 30   # what is older in ended/ goes, but for what a standing row names

# [host.{home or "calber"}]
# lanes = 2              # jobs at a time; default: the cores this host is allowed
# tags = ["gpu"]
"""


def beat(spool: Spool, host: str, body: Mapping[str, Any]) -> None:
    """Write hosts/<host>.json. Raises OSError."""
    replace_file(spool.hosts / f"{host}.json", encode_json({"schema": "fleet.host/1", **body}) + b"\n")


def disk_time(spool: Spool) -> float:
    """Now, by the clock that dates the spool's files, seconds since the epoch. Raises OSError where none can be made."""
    probe = spool.tmp / f".clock.{secrets.token_hex(4)}"
    fd = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        return os.fstat(fd).st_mtime
    finally:
        os.close(fd)
        os.unlink(probe)


def free_mb(spool: Spool) -> float:
    """MiB that a user's process may still write to the spool's file system."""
    at = os.statvfs(spool.root)
    return at.f_bavail * at.f_frsize / (1 << 20)
