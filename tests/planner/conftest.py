"""A spool with a plan of known truth, and a host that runs its jobs one after another as the engine would."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fleetd import Ledger, Spool, encode_json
from fleetd.spool import init_spool
from planner.fill import Filler
from planner.plan import read_plan

HILL = Path(__file__).resolve().parent.parent / "rigs" / "hill.py"
VARIABLES = ("good", "bad", "null")


def plan_text(*, trouble=(), policy="rotate", **trial):
    census = json.dumps([sys.executable, str(HILL), "census", *trouble])
    settings = {"seeds": 20, "seconds": 1, "heldout": 120} | trial
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return "\n".join([f'name = "hill"\ncensus = {census}\n[policy]\nname = "{policy}"\n[trial]', *lines]) + "\n"


def space_text(*names, low=-1.0, high=1.0, step=0.5):
    table = '[[variable]]\nname = "{}"\nstart = 0\nlow = {}\nhigh = {}\nstep = {}\n'
    return "\n".join(table.format(name, low, high, step) for name in names)


@dataclass
class Farm:
    """The spool, and a host called `name` that works through it."""

    spool: Spool
    name: str = "calber"
    environ: dict = field(default_factory=dict)

    def write_plan(self, trouble=(), **trial):
        """The plan with trouble in its census, or other settings in [trial]."""
        self.spool.plan.write_text(plan_text(trouble=trouble, **trial))

    def write_space(self, *names, **bounds):
        (self.spool.root / "space.toml").write_text(space_text(*names, **bounds))

    def filler(self):
        return Filler(self.spool, read_plan(self.spool.plan), self.name, lambda: datetime.now(UTC))

    def run(self, limit=1000):
        """Run up to `limit` waiting jobs and append their rows."""
        for id_ in self.spool.waiting()[:limit]:
            self.run_job(id_)

    def run_job(self, id_, wait=True):
        """One job as the engine would run it; without `wait` the process and what is needed to end it."""
        home = self.spool.running / self.name / id_
        (home / "out").mkdir(parents=True)
        (self.spool.queue / f"{id_}.json").rename(home / "job.json")
        process = subprocess.Popen(self.command("read"), env=self.job_environ(home), stderr=subprocess.PIPE, text=True)
        return self.ended(home, process) if wait else (home, process)

    def ended(self, home, process, outcome=None):
        said = process.communicate(timeout=60)[1]
        job, result = json.loads((home / "job.json").read_text()), home / "result.json"
        value = json.loads(result.read_text()) if result.exists() else None
        row = {
            "event": "result",
            "job": home.name,
            "attempt": job["attempt"],
            "kind": job["kind"],
            "exit": process.returncode,
        }
        outcome = outcome or ("ok" if process.returncode == 0 else "failed")
        row |= {
            "outcome": outcome,
            "reason": said.strip()[-200:],
            "next": None,
            "payload": job["payload"],
            "result": value,
            "wall_s": 1.0,
            "cores": job["cores"],
            "log": f"ended/2026-11-30/{home.name}~{job['attempt']}/log",
        }
        self.row(row)
        (self.spool.ended / "2026-11-30").mkdir(exist_ok=True)
        home.rename(self.spool.ended / "2026-11-30" / f"{home.name}~{job['attempt']}")
        return value

    def row(self, *bodies):
        return Ledger(self.spool.ledger_d).append(self.name, bodies)

    def job_environ(self, home):
        return os.environ | self.environ | {
            "FLEET_SPOOL": str(self.spool.root), "FLEET_JOB": str(home / "job.json"), "FLEET_JOB_ID": home.name,
            "FLEET_RESULT": str(home / "result.json"), "FLEET_OUT": str(home / "out"), "FLEET_HOST": self.name,
        }  # fmt: skip

    def command(self, *words):
        return [sys.executable, "-m", "planner.cli", *words]

    def plan_environ(self):
        return os.environ | {"FLEET_SPOOL": str(self.spool.root), "FLEET_HOST": self.name}

    def plan(self, *words, ok=True):
        """Run `fleet-plan` and give back the finished process."""
        done = subprocess.run(
            self.command(*words), env=self.plan_environ(), capture_output=True, text=True, timeout=60, check=False
        )
        assert not ok or done.returncode == 0, done.stderr
        return done

    def rows(self, *events):
        return [row for row in Ledger(self.spool.ledger_d).rows() if row.event in events]

    def jobs(self):
        return [job for id_ in self.spool.waiting() if (job := self.spool.read_waiting(id_))]

    def job_of(self, id_, **changes):
        """Publish by hand a job file with other bytes."""
        job = json.loads((self.spool.queue / f"{id_}.json").read_text())
        (self.spool.queue / f"{id_}.json").write_bytes(encode_json(job | changes))


def make_farm(root):
    farm = Farm(init_spool(root, home="calber"))
    farm.write_plan()
    farm.write_space(*VARIABLES)
    return farm


@pytest.fixture
def farm(tmp_path):
    """A spool whose plan has a good, a bad and a null variable."""
    return make_farm(tmp_path / "spool")


@pytest.fixture(scope="session")
def _worked_spool(tmp_path_factory):
    farm = make_farm(tmp_path_factory.mktemp("worked") / "spool")
    for round_ in range(6):
        farm.name = ("calber", "ada")[round_ % 2]
        farm.plan("fill", "--depth", "4")
        farm.run()
    return farm.spool.root


@pytest.fixture
def worked(_worked_spool, tmp_path):
    """A copy of a farm that has worked: adoptions, verdicts and rows of two hosts behind it, reads to be judged."""
    return Farm(Spool(Path(shutil.copytree(_worked_spool, tmp_path / "spool"))))


@pytest.fixture
def judged(worked):
    """A farm whose last reads are judged."""
    worked.plan("fill", "--depth", "1")
    return worked
