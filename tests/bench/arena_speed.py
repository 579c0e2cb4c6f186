"""How fast the arena is on one core, in thousand env-ticks/s: python tests/bench/arena_speed.py [--seconds 50] [--repeat 5]

Whole plays by numpy, by numba, and by the same kernel written in C (arena.c, compiled here by cc -O3, left out where
there is none), in turn, medians of --repeat runs, all of them ending in the same state or this fails; the census at its
real settings; steps of the duel world by numpy and by numba.
"""

import argparse
import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np

from planner.arena import kernel, kernel_senses, rules, tables
from planner.arena.senses import LOADED
from planner.arena.state import STATE_ROWS, begin_state, state_over
from planner.brain import kernel as brain
from planner.brain import match, scripted
from planner.brain.weights import DEFAULT, NAMES, whole_weights
from planner.train.duel import Duels
from planner.train.world import Step

HERE = Path(__file__).parent
PLAYS = (1, 64, 256, 1024)
FLAGS = ("-O3", "-march=native", "-std=c11", "-shared", "-fPIC", "-Wall", "-Wno-unused-function")
TABLES = (kernel.LOOKUP, tables.HEADING_X, tables.HEADING_Y, tables.DAMAGE, tables.SPREAD, tables.DRIVES, LOADED,
          scripted.KIND, scripted.DIRECT.astype(np.int64), scripted.SPEED, scripted.EITHER_WAY, scripted.CARE,
          scripted.ROUND)  # fmt: skip


def numbers():
    """Every whole number that the kernels know by a name in capitals, as arena.c calls it."""
    renamed = {"HEALTH": "FULL", "RELOAD": "LOADS", "RELOAD_MORE": "LOADS_MORE"}
    known = {renamed.get(k, k): v for k, v in vars(rules).items()}
    known |= {"LOOK_ROW": tables.LOOK_ROW, "LOOK_MIDDLE": tables.LOOK_MIDDLE, "STATE_ROWS": STATE_ROWS}
    known |= {
        k: getattr(scripted, k)
        for k in ["CHARGE", "FLANK", "CIRCLE", "HEAL", "BOOST", "DODGE", "HUNT", "BEHIND", "WIDE", "CLOSE"]
    }
    known |= {("SQUARE" if k == "CELL" else k): v for k, v in vars(kernel_senses).items() if k not in vars(kernel)}
    known |= {k: v for k, v in vars(kernel).items() if k.isupper()} | {"PULLS": brain.PULLS}
    return {k: v for k, v in known.items() if k.isupper() and not k.startswith("_") and isinstance(v, int)}


def compile_c(folder):
    """The C play kernel, as a function of a state block, weights and ticks; None where no compiler is."""
    if (cc := shutil.which("cc")) is None:
        return None
    library = Path(folder) / "arena.so"
    defines = [f"-D{name}={value}" for name, value in numbers().items()]
    subprocess.run([cc, *FLAGS, *defines, "-o", library, HERE / "arena.c"], check=True)
    run = ctypes.CDLL(str(library)).play_columns
    whole = ctypes.c_int64
    run.argtypes = [ctypes.c_void_p, whole, ctypes.c_void_p, ctypes.c_void_p, whole, whole]
    run.restype = None
    held = (ctypes.c_void_p * len(TABLES))(*(t.ctypes.data for t in TABLES))
    return lambda block, weights, ticks: run(block.ctypes.data, block.shape[1], held, weights.ctypes.data, 0, ticks)


def by_numba(block, weights, ticks):
    orders = np.zeros((brain.ORDER_ROWS, block.shape[1]), np.int64)
    brain.play_columns(block, orders, weights, 0, ticks)


def by_numpy(block, weights, ticks):
    match._play(state_over(block), block, weights.transpose(1, 0, 2, 3), ticks, None)


def play_time(way, n, ticks, weights):
    """Seconds of one core for n plays, and a digest of the state at the end."""
    block = np.empty((STATE_ROWS, n), np.int64)
    begin_state(block, np.arange(n))
    began = time.process_time()
    way(block, weights, ticks)
    return time.process_time() - began, hashlib.sha256(block).hexdigest()


def brains(n):
    """(n, 2, 11, 10): the default with noise against the default."""
    rng = np.random.default_rng(0)
    default = np.array([DEFAULT[name] for name in NAMES])
    players = [whole_weights(dict(zip(NAMES, (default + rng.normal(0, 0.25, 110)).tolist(), strict=True)))
               for _ in range(n)]  # fmt: skip
    return np.ascontiguousarray(np.stack([np.stack(players), np.stack([whole_weights(DEFAULT)] * n)], axis=1))


def compare(ways, n, ticks, repeat):
    """Median seconds by way; the ways take turns."""
    weights, took = brains(n), {name: [] for name in ways}
    for _ in range(repeat):
        ended = set()
        for name, way in ways.items():
            seconds, state = play_time(way, n, ticks, weights)
            took[name].append(seconds)
            ended.add(state)
        assert len(ended) == 1, "the ways ended in different states"
    return {name: (median(t), (max(t) - min(t)) / 2 / median(t)) for name, t in took.items()}


def step_time(kernel_name, n, steps):
    making = Duels(envs=n, kernel=kernel_name)
    world = making.make(bytearray(making.size()), 0)
    floats, flags = np.empty((2, n), np.float32), np.empty((2, n), np.uint8)
    sights = np.empty((2, n, making.obs), np.float32)
    out = Step(sights[0], floats[0], flags[0], flags[1], sights[1], floats[1])
    actions = np.random.default_rng(0).integers(0, 10, (steps, n, 1)).astype(np.int32)
    world.reset(0, n, 0, sights[0])
    world.step(0, n, actions[0], 0, 0, out)
    began = time.process_time()
    for t in range(1, steps):
        world.step(0, n, actions[t], 0, t, out)
    return (time.process_time() - began) / (steps - 1)


def tell_plays(ways, seconds, repeat):
    print("whole plays, thousand env-ticks/s:")
    for n in PLAYS:
        ticks = round(seconds * rules.TICKS_PER_S) * (16 if n == 1 else 1)
        told = compare(ways, n, ticks, repeat)
        speeds = "  ".join(f"{name} {n * ticks / t / 1e3:6.0f} ±{100 * s:2.0f} %" for name, (t, s) in told.items())
        base = told.get("C", told["numba"])[0]
        print(f"{n:>6}  {speeds}   numba {told['numpy'][0] / told['numba'][0]:.1f} x numpy,"
              f" {base / told['numba'][0]:.2f} x C")  # fmt: skip


def tell_census(ways, repeat):
    told = compare(ways, 110, 900 * rules.TICKS_PER_S, repeat)
    print("55 pairs of 900 s, seconds of one core without the start:")
    print("        " + "  ".join(f"{name} {t:.2f} ±{100 * s:.0f} %" for name, (t, s) in told.items()))


def tell_steps(repeat):
    print("steps of the duel world (two ticks, what is seen, rewards, ends), thousand env-ticks/s:")
    for n in PLAYS[1:]:
        took = {name: median(step_time(name, n, 200) for _ in range(repeat)) for name in ("numpy", "numba")}
        speeds = "  ".join(f"{name} {rules.THINK * n / t / 1e3:6.0f}" for name, t in took.items())
        print(f"{n:>6}  {speeds}   numba {took['numpy'] / took['numba']:.1f} x numpy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=50.0)
    parser.add_argument("--repeat", type=int, default=5)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ways = {"numpy": by_numpy, "numba": by_numba}
        if (c := compile_c(folder)) is None:
            print("no C compiler (cc) here: without C")
        else:
            ways["C"] = c
        compare(ways, 1, 16, 1)
        tell_plays(ways, a.seconds, a.repeat)
        tell_census(ways, a.repeat)
    tell_steps(a.repeat)


if __name__ == "__main__":
    main()
