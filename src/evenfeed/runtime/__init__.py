"""How a plan runs: operators that pass on Blocks as they are asked for them."""
