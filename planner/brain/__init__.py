"""Who plays: the scripted brain of 110 weights, whole plays between two brains, and the census that scores them."""
