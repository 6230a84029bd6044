"""Build, prove and ship a fleet of GPU container images from one matrix.toml."""

__version__ = "0.1.0"
