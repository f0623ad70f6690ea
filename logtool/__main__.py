"""The program ``logtool``, also as ``python -m logtool``."""

import gc


def main() -> None:
    """Run the command line of this process and end it with the status of the contract."""
    # What imports leave is no garbage, and to look through it takes a thirtieth of a short run.
    gc.disable()
    from logtool import cli

    gc.freeze()
    gc.enable()
    cli.main()


if __name__ == "__main__":
    main()
