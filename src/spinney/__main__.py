"""``python -m spinney`` is the ``spinney`` command."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; Ctrl-C while it is being loaded ends it as silently as later."""
    try:
        from spinney.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
