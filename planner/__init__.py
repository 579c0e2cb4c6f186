"""What training is: plays, players, trials and verdicts; it speaks to the engine only by `from fleetd import …`."""
