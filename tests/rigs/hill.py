"""A census of known truth: `good` adds 0.5 a unit, `bad` takes 0.5, `null` does nothing at all, `odd` only adds noise.

    hill.py census [TROUBLE…]     plays in, scores out (JSON lines)
    hill.py learn GAIN SEED [NET [REWARDS [RIVAL…]]]
                                  makes a net: the best's `good`, more by GAIN and by what the rewards `help` and `harm`
                                  bring; it notes its rivals. "fail" fails, "mute" tells no net,
                                  "fifo" and "gone" tell one that is a FIFO, or nowhere; "surrogate" and "long"
                                  tell a name that no file has

A play's score is the effect of its weights plus noise of its seed (the same for all players) and of its seed and player.
TROUBLE: nan:SEED error:SEED die:SEED hang:SEED mute:SEED (on the plays of that seed), chatter (lines that are none),
twice (each answer), batch (answers only once all plays are in), backwards, slow (a tenth of a second a play),
half (leaves after 34 answers), unsteady (each process scores otherwise), flip:SEED (names other rules). HILL_RULES in
the environment is what it calls its rules, HILL_MORE is added to each score.
"""

import hashlib
import json
import math
import os
import sys
import time
from pathlib import Path

EFFECTS = {"good": 0.5, "bad": -0.5, "null": 0.0}
TAUGHT = {"help": 0.5, "harm": -0.5}


def noise(*what):
    bits = int.from_bytes(hashlib.sha256(json.dumps(what).encode()).digest()[:8], "big")
    other = int.from_bytes(hashlib.sha256(json.dumps([what, 1]).encode()).digest()[:8], "big")
    return math.sqrt(-2 * math.log((bits + 1) / 2**64)) * math.cos(2 * math.pi * other / 2**64)


def score(weights, seed):
    shaken = {k: v for k, v in weights.items() if k != "null"}
    effect = sum(EFFECTS.get(name, 0.0) * value for name, value in weights.items())
    return effect + noise(seed) + 0.3 * noise(seed, shaken)


def answer(ask, trouble):
    seed = ask["seed"]
    kinds = {kind for kind, _, at in (word.partition(":") for word in trouble) if at == str(seed)}
    if "die" in kinds:
        sys.exit(3)
    if "hang" in kinds:
        time.sleep(3600)
    if "mute" in kinds:
        return
    if "slow" in trouble:
        time.sleep(0.1)
    if "chatter" in trouble:
        print(f'playing {seed}\n{{"id": 999999, "score": 1}}\n[1]')
    said = (
        {"error": "no luck"}
        if "error" in kinds
        else {"score": math.nan if "nan" in kinds else score(weights_of(ask["player"]), seed)}
    )
    more = os.getpid() * 1e-6 if "unsteady" in trouble else 0.0
    if "score" in said:
        said["score"] += more + float(os.environ.get("HILL_MORE", "0"))
    if rules := "flipped" if "flip" in kinds else os.environ.get("HILL_RULES"):
        said["rules"] = rules
    for _ in range(2 if "twice" in trouble else 1):
        print(json.dumps({"id": ask["id"], **said, "extra": seed}), flush=True)


def weights_of(player):
    """A net of the hill is a file of weights."""
    return player["weights"] if "weights" in player else json.loads(Path(player["net"]).read_text())


def learn(gain, seed, best=None, rewards=None, *rivals):
    if gain == "fail":
        sys.exit("nothing learned")
    if gain == "mute":
        return
    if gain in ("fifo", "gone", "surrogate", "long"):
        if gain == "fifo":
            os.mkfifo(Path(os.environ["FLEET_OUT"], "hill.net"))
        name = {"surrogate": "\ud800", "long": "n" * 5000}.get(gain, "hill.net")
        Path(os.environ["FLEET_RESULT"]).write_text(json.dumps({"net": name, "sha256": "0" * 64}))
        return
    before = json.loads(Path(best).read_text())["good"] if best else 0.0
    told = json.loads(Path(rewards).read_text()) if rewards else {}
    taught = sum(TAUGHT.get(name, 0.0) * value for name, value in told.items())
    net = Path(os.environ["FLEET_OUT"], "hill.net")
    net.write_text(json.dumps({"good": before + float(gain) + taught, "seed": int(seed)}))
    Path(os.environ["FLEET_OUT"], "rivals").write_text("\n".join(rivals))
    told = {"net": net.name, "sha256": hashlib.sha256(net.read_bytes()).hexdigest()}
    Path(os.environ["FLEET_RESULT"]).write_text(json.dumps(told))


def main():
    trouble = sys.argv[2:]
    if sys.argv[1] == "learn":
        learn(*trouble)
        return
    asks = (json.loads(line) for line in sys.stdin)
    if {"batch", "backwards"} & set(trouble):
        asks = list(asks)
    if "backwards" in trouble:
        asks = reversed(asks)
    for number, ask in enumerate(asks):
        if "half" in trouble and number == 34:
            return
        answer(ask, trouble)


if __name__ == "__main__":
    main()
