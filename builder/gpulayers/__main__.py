"""`python -m gpulayers`."""

from gpulayers.cli import main

if __name__ == "__main__":
    main()
