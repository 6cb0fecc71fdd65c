"""The ``spinney`` command as ``python -m spinney``."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; Ctrl-C exits without a traceback even during the imports."""
    try:
        from spinney.cli import main as run  # Ctrl-C may arrive during this import
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
