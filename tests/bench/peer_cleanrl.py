"""CleanRL's PPO (ppo.py of vwxyzjn/cleanrl, MIT), at its own settings, over the worlds that the trainer is checked on.

python tests/bench/peer_cleanrl.py WORLD SEED TICKS, by a Python that has torch: JSON lines of ticks and mean score.
Its loop, its loss and its first weights as published; only that the envs are a World of ours instead of Gymnasium's.
`learn` is also what trainer_peers.py times.
"""

import json
import sys

import numpy as np
import torch
from torch import nn
from torch.distributions.categorical import Categorical

from planner.train.world import Step
from tests.planner.train import worlds

STEPS, ENVS, LR, EPOCHS, MINIBATCHES = 128, 4, 2.5e-4, 4, 4
GAMMA, LAM, CLIP, ENTROPY, VALUE, GRAD = 0.99, 0.95, 0.2, 0.01, 0.5, 0.5


def layer(below, width, std=2**0.5):
    made = nn.Linear(below, width)
    nn.init.orthogonal_(made.weight, std)
    nn.init.constant_(made.bias, 0.0)
    return made


class Agent(nn.Module):
    def __init__(self, obs, actions):
        super().__init__()
        tail = (layer(64, 1, std=1.0), layer(64, actions, std=0.01))
        self.critic, self.actor = (
            nn.Sequential(layer(obs, 64), nn.Tanh(), layer(64, 64), nn.Tanh(), last) for last in tail
        )

    def act(self, x, action=None):
        choice = Categorical(logits=self.actor(x))
        action = choice.sample() if action is None else action
        return action, choice.log_prob(action), choice.entropy(), self.critic(x)


class Envs:
    """A world's envs as CleanRL steps them."""

    def __init__(self, making, seed):
        self.world, self.seed, self.n, self.tick = making.make(bytearray(making.size()), 0), seed, making.envs, 0
        seen = (self.n, making.obs)
        flags = (np.empty(self.n, np.float32), *(np.empty(self.n, np.uint8) for _ in range(2)))
        self.out = Step(np.empty(seen, np.float32), *flags, np.empty(seen, np.float32), np.empty(self.n, np.float32))

    def reset(self):
        self.world.reset(0, self.n, self.seed, self.out.obs)
        return torch.tensor(self.out.obs)

    def step(self, action):
        self.world.step(0, self.n, action[:, None].astype(np.int32), self.seed, self.tick, self.out)
        self.tick += 1
        done = self.out.terminated | self.out.truncated
        return torch.tensor(self.out.obs), self.out.reward.copy(), done, self.out.score[done.astype(bool)]


def learn(making, seed, iterations, told, value_clip=True):
    """Train; `told` gets the ticks so far and the scores of the plays that ended, after each iteration."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    envs, agent = Envs(making, seed), Agent(making.obs, making.heads[0])
    optimizer = torch.optim.Adam(agent.parameters(), lr=LR, eps=1e-5)
    obs, next_done, batch = envs.reset(), torch.zeros(envs.n), envs.n * STEPS
    kept = [torch.zeros((STEPS, envs.n, making.obs)), *(torch.zeros((STEPS, envs.n)) for _ in range(5))]
    for iteration in range(iterations):
        optimizer.param_groups[0]["lr"] = (1.0 - iteration / iterations) * LR
        seen, actions, logps, rewards, dones, values = kept
        scores = []
        for t in range(STEPS):
            seen[t], dones[t] = obs, next_done
            with torch.no_grad():
                action, logps[t], _, value = agent.act(obs)
            values[t], actions[t] = value.flatten(), action
            obs, reward, done, ended = envs.step(action.numpy())
            rewards[t], next_done = torch.tensor(reward), torch.tensor(done, dtype=torch.float32)
            scores.extend(float(score) for score in ended)
        with torch.no_grad():
            advantages, last, follows = torch.zeros_like(rewards), 0, agent.critic(obs).flatten()
            for t in reversed(range(STEPS)):
                going = 1.0 - (next_done if t == STEPS - 1 else dones[t + 1])
                after = follows if t == STEPS - 1 else values[t + 1]
                delta = rewards[t] + GAMMA * after * going - values[t]
                advantages[t] = last = delta + GAMMA * LAM * going * last
        rows = [part.reshape(batch, -1).squeeze(1) for part in (seen, actions, logps, values, advantages)]
        improve(agent, optimizer, rows, value_clip)
        told((iteration + 1) * batch, scores)


def improve(agent, optimizer, rows, value_clip):
    seen, actions, logps, values, advantages = rows
    returns, indices = advantages + values, np.arange(len(values))
    for _ in range(EPOCHS):
        np.random.default_rng(torch.randint(1 << 30, (1,)).item()).shuffle(indices)
        for chosen in np.split(indices, MINIBATCHES):
            _, logp, entropy, value = agent.act(seen[chosen], actions[chosen].long())
            ratio = (logp - logps[chosen]).exp()
            scaled = (advantages[chosen] - advantages[chosen].mean()) / (advantages[chosen].std() + 1e-8)
            policy = torch.max(-scaled * ratio, -scaled * torch.clamp(ratio, 1 - CLIP, 1 + CLIP)).mean()
            missed = (value.flatten() - returns[chosen]) ** 2
            if value_clip:
                moved = values[chosen] + torch.clamp(value.flatten() - values[chosen], -CLIP, CLIP)
                missed = torch.max(missed, (moved - returns[chosen]) ** 2)
            loss = policy - ENTROPY * entropy.mean() + VALUE * 0.5 * missed.mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), GRAD)
            optimizer.step()


def main(name, seed, ticks):
    def told(so_far, scores):
        print(json.dumps({"ticks": so_far, "score": np.mean(scores) if scores else None}), flush=True)

    learn(getattr(worlds, name)(envs=ENVS), seed, ticks // (ENVS * STEPS), told)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
