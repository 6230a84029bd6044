"""A private Docker engine, registry, mmdebstrap and Trivy inside one checkout."""
