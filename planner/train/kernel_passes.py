"""passes.py as machine code, float32 only: the same numbers in the same order, without arrays for what is in between."""

import numpy as np

from planner.arena.compiled import kernel
from planner.brain.shape import Floats
from planner.train.passes import Decay, Loss, Pull, Then, Widths
from planner.train.world import I32

_0, _1, _2 = np.float32(0), np.float32(1), np.float32(2)


@kernel
def lower(logits: Floats, widths: Widths, z: Floats) -> None:
    for i in range(logits.shape[0]):
        end = 0
        for k in range(len(widths)):
            top = logits[i, end]
            for a in range(end + 1, end + widths[k]):
                top = max(top, logits[i, a])
            for a in range(end, end + widths[k]):
                z[i, a] = logits[i, a] - top
            end += widths[k]


@kernel
def pick(p: Floats, widths: Widths, u: Floats, action: I32) -> None:
    for i in range(p.shape[0]):
        end = 0
        for k in range(len(widths)):
            total = p[i, end]
            for a in range(end + 1, end + widths[k]):
                total += p[i, a]
            edge, reach, choice = u[i, k] * total, p[i, end], 0
            while choice < widths[k] - 1 and reach <= edge:
                choice += 1
                reach += p[i, end + choice]
            action[i, k] = choice
            end += widths[k]


@kernel
def spread(logits: Floats, widths: Widths, loss: Loss) -> None:
    end = 0
    for k in range(len(widths)):
        for i in range(logits.shape[0]):
            top = logits[i, end]
            for a in range(end + 1, end + widths[k]):
                top = max(top, logits[i, a])
            for a in range(end, end + widths[k]):
                loss.z[a, i] = logits[i, a] - top
        end += widths[k]


@kernel
def add_up(widths: Widths, loss: Loss) -> None:
    end = 0
    for k in range(len(widths)):
        total = loss.total[k]
        total[:] = loss.p[end]
        for a in range(end + 1, end + widths[k]):
            for i in range(total.size):
                total[i] += loss.p[a, i]
        end += widths[k]


@kernel
def settle(then: Then, chosen: I32, widths: Widths, loss: Loss) -> None:
    end, n = 0, chosen.size
    for k in range(len(widths)):
        entropy = loss.entropy[k]
        for a in range(end, end + widths[k]):
            for i in range(n):
                loss.z[a, i] -= loss.log[k, i]
                loss.p[a, i] /= loss.total[k, i]
                pulled = loss.p[a, i] * loss.z[a, i]
                entropy[i] = pulled if a == end else entropy[i] + pulled
        for i in range(n):
            entropy[i] = -entropy[i]
            mine = loss.z[end + then.action[chosen[i], k], i]
            loss.shift[i] = loss.shift[i] + mine if k else mine
        end += widths[k]
    for i in range(n):
        loss.shift[i] -= then.logp[chosen[i]]


@kernel
def pull(then: Then, chosen: I32, widths: Widths, by: Pull, loss: Loss) -> None:
    for i in range(chosen.size):
        row, ratio = chosen[i], loss.ratio[i]
        against = (by.mean - then.advantage[row]) * by.inverse
        held = min(max(ratio, by.low), by.high)
        plain, cut = against * ratio, against * held
        loss.d_logp[i] = (plain if plain >= cut else _0) * by.scale
        loss.told[0, i] = ratio - _1 - loss.shift[i]
        loss.told[1, i] = ratio != held
        loss.told[2, i] = max(plain, cut)
        miss = loss.d_value[i] - then.ret[row]
        larger, slope = miss, miss
        if by.limit >= _0:
            move = loss.d_value[i] - then.value[row]
            cut = miss - move + min(max(move, -by.limit), by.limit)
            if abs(cut) > abs(miss):
                larger = cut
                slope = _0 if abs(move) > by.limit else cut
        loss.told[3, i] = larger * larger / _2
        loss.d_value[i] = slope * by.value
        entropy = loss.entropy[0, i]
        for k in range(1, len(widths)):
            entropy += loss.entropy[k, i]
        loss.told[4, i] = entropy
    end = 0
    for k in range(len(widths)):
        for a in range(end, end + widths[k]):
            for i in range(chosen.size):
                wish = (loss.z[a, i] + loss.entropy[k, i]) * by.entropy - loss.d_logp[i]
                loss.d_logits[i, a] = loss.p[a, i] * wish
        for i in range(chosen.size):
            loss.d_logits[i, end + then.action[chosen[i], k]] += loss.d_logp[i]
        end += widths[k]


@kernel
def add_bias(h: Floats, bias: Floats) -> None:
    for k in range(2):
        for c in range(h.shape[1]):
            for r in range(h.shape[2]):
                for j in range(h.shape[3]):
                    h[k, c, r, j] += bias[k, j]


@kernel
def through(h: Floats, d: Floats) -> None:
    flat, into = h.reshape(-1), d.reshape(-1)
    for i in range(flat.size):
        into[i] *= _1 - flat[i] * flat[i]


@kernel
def through_value(h: Floats, d_value: Floats, weight: Floats, d: Floats) -> None:
    for c in range(h.shape[0]):
        for r in range(h.shape[1]):
            for j in range(h.shape[2]):
                d[c, r, j] = d_value[c, r, 0] * weight[j] * (_1 - h[c, r, j] * h[c, r, j])


@kernel
def descend(flat: Floats, m: Floats, v: Floats, grad: Floats, by: Decay) -> None:
    for i in range(flat.size):
        m[i] = m[i] * by.old_mean + by.new_mean * grad[i]
        v[i] = v[i] * by.old_square + by.new_square * (grad[i] * grad[i])
        flat[i] -= m[i] / (np.sqrt(v[i]) / by.root + by.least) * by.rate
