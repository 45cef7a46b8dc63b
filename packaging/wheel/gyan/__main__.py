"""``python -m gyan`` is the command ``gyan``."""

import os
import sys

import gyan


def main() -> None:
    """Takes the place of this process."""
    try:
        command = gyan.command()
    except FileNotFoundError as error:
        sys.exit(str(error))
    os.execv(command, [command, *sys.argv[1:]])


if __name__ == "__main__":
    main()
