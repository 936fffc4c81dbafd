"""Round by round: the loop, what it trains with, what watches it, and how it goes on from before."""
