"""Training: worlds, rollouts, PPO on any number of shards with the same bits, checkpoints."""
