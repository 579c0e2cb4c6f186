"""A host's GPUs: each is one job's at a time, and the job is told which."""

import json

from fleetd.job import Job
from fleetd.lane import short_of_gpus


def test_a_job_gets_the_numbers_of_free_gpus_and_they_come_free_again(rig, fleet, wait_for):
    with rig.spool.settings.open("a") as settings:
        settings.write("[host.calber]\ngpus = 2\n")
    rig.start(lanes=4)
    script = 'echo "got $CUDA_VISIBLE_DEVICES"; until test -e $FLEET_SPOOL/go; do sleep 0.02; done'
    for name in ("a", "b", "c"):
        rig.drop(name, "sh", "-c", script, gpus=1)
    rig.drop("none", "sh", "-c", 'echo "got ${CUDA_VISIBLE_DEVICES-nothing}"')
    assert rig.log(rig.ended("none")) == b"got nothing\n"
    wait_for(lambda: len(rig.beat()["busy"]) == 2)
    *_, last = fleet("--spool", str(rig.root), "ls", "--json").stdout.splitlines()
    assert json.loads(last)["why"] == "waits for 1 free GPUs, 0 are"
    (rig.root / "go").touch()
    assert sorted(rig.log(rig.ended(name)) for name in ("a", "b")) == [b"got 0\n", b"got 1\n"]
    assert rig.ended("c")["outcome"] == "ok"


def test_one_that_waits_for_a_gpu_holds_up_nobody():
    assert short_of_gpus(Job(id="j", argv=("x",), gpus=2), [0]) == "waits for 2 free GPUs, 1 are"
    assert short_of_gpus(Job(id="j", argv=("x",), gpus=1), [1]) is None
