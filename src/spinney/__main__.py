"""``python -m spinney`` is the ``spinney`` command."""

from spinney.cli import main

if __name__ == "__main__":
    main()
