"""The gradient that we write by hand beside torch's autograd in float64: python tests/bench/trainer_gradient.py

By a Python that has torch, from the repository's root, with it in PYTHONPATH. The rows are of duels in progress, the net has
moved on from the one that collected them (else no ratio would be clipped), and the last chunk is a short one. Told is the
norm of the difference by the norm of torch's; exits 1 if one is not under 1e-5.
"""

import sys
from dataclasses import replace

import numpy as np
import torch

from planner.brain.shape import Shape, named, param_count, views
from planner.train.duel import Duels
from planner.train.init import first_weights
from planner.train.settings import Settings
from planner.train.shard import Do, MakeShard
from planner.train.slab import Plot
from planner.train.update import Minibatch, Stat, Work, accumulate, add_grads, norm_of, rows_of

LIMIT = 1e-5


def duels(envs, steps):
    """Rows of a rollout, and the weights that collected them."""
    making, settings = Duels(envs=envs), Settings(steps=steps)
    shape = Shape(obs=making.obs, heads=making.heads)
    plot = Plot(making=making, shape=shape, steps=steps, cut=(1, 1), chunks=16, stats=len(Stat))
    buffer = bytearray(plot.size())
    slab = plot.over(buffer, 0)
    slab.policy.flat[:] = first_weights(shape, 1)
    slab.sums.at[0] = 0
    run = MakeShard(plot, settings, buffer, 0)(0, 1, lambda: None)
    run(Do.RESET)
    run(Do.COLLECT)
    return shape, rows_of(slab.rollout), slab.policy.flat


def several(shape, rows):
    """The same rows as if there were three choices to make of each sight."""
    draw = np.random.default_rng(1)
    shape = replace(shape, heads=(3, 10, 4))
    action = np.stack([draw.integers(0, width, len(rows.obs)) for width in shape.heads], axis=1).astype(np.int32)
    logp = np.full(len(rows.obs), -np.log(np.prod(shape.heads)), np.float32)
    return shape, replace(rows, then=rows.then._replace(action=action, logp=logp)), first_weights(shape, 2)


def ours(shape, flat, batch, settings):
    grads = np.full((batch.chunks, param_count(shape)), np.nan, np.float32)
    stats = np.empty((batch.chunks, len(Stat)))
    accumulate(views(shape, flat), batch, (0, batch.chunks), settings, (grads, stats), Work(shape))
    return add_grads(grads), stats.sum(axis=0)


def theirs(shape, flat, batch, settings):
    w = torch.tensor(flat, dtype=torch.float64, requires_grad=True)
    at, part = 0, {}
    for name, view in named(shape, flat):
        part[name] = w[at : at + view.size].reshape(view.shape)
        at += view.size
    noted = batch.rows.then._asdict() | {"obs": batch.rows.obs}
    rows = {f: torch.tensor(array[batch.order]) for f, array in noted.items()}
    rows = {f: rows[f].long() if f == "action" else rows[f].double() for f in rows}
    actor = critic = rows["obs"]
    for i in range(len(shape.hidden)):
        weight, bias = part[f"hidden.{i}.weight"], part[f"hidden.{i}.bias"]
        actor, critic = (torch.tanh(x @ weight[j] + bias[j]) for j, x in enumerate((actor, critic)))
    logits = (actor @ part["policy.weight"] + part["policy.bias"]).split(shape.heads, dim=1)
    value = (critic @ part["value.weight"] + part["value.bias"])[:, 0]
    heads = [torch.distributions.Categorical(logits=z) for z in logits]
    logp = sum(head.log_prob(rows["action"][:, k]) for k, head in enumerate(heads))
    scaled = (rows["advantage"] - rows["advantage"].mean()) / (rows["advantage"].std(correction=0) + 1e-8)
    ratio = (logp - rows["logp"]).exp()
    policy = -torch.min(scaled * ratio, scaled * ratio.clamp(1 - settings.clip, 1 + settings.clip)).mean()
    missed = (value - rows["ret"]) ** 2
    if (limit := settings.value_clip) is not None:
        moved = rows["value"] + (value - rows["value"]).clamp(-limit, limit)
        missed = torch.max(missed, (moved - rows["ret"]) ** 2)
    entropy = sum(head.entropy() for head in heads).mean()
    (policy - settings.entropy * entropy + settings.value * missed.mean() / 2).backward()
    return w.grad.numpy()


def main() -> None:
    draw, worst = np.random.default_rng(0), 0.0
    one = duels(64, 64)
    for what, (shape, rows, flat) in {"one choice": one, "three choices": several(*one[:2])}.items():
        moved = (flat + draw.normal(0, 0.05, flat.shape)).astype(np.float32)
        order = draw.permutation(len(rows.obs))[:2000].astype(np.int32)
        batch = Minibatch(rows, order, 128, 128, *norm_of(rows.then.advantage[order]), shape.heads)
        for value_clip in (None, 0.01):
            settings = Settings(value_clip=value_clip)
            (grad, stats), told = ours(shape, moved, batch, settings), theirs(shape, moved, batch, settings)
            error = np.linalg.norm(grad - told) / np.linalg.norm(told)
            worst = max(worst, error)
            print(f"{what}, value clip {value_clip}: relative error {error:.1e}; {stats[Stat.CLIPPED]:.0%} clipped")
    sys.exit(not worst < LIMIT)


if __name__ == "__main__":
    main()
