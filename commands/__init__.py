"""The subcommands of logtool, one thin module each."""
