"""The game: a tank duel as pure functions over whole numbers, batched over plays."""
