"""A small real Trivy vulnerability database, made by hand: for tests and the demo only."""
