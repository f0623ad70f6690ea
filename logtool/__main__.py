"""``python -m logtool``."""

from logtool.cli import main

if __name__ == "__main__":
    main()
