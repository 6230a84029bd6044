"""The judge: whether a combination runs, by facts, with the reason and the nearest that does."""
