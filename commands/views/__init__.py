"""Lines, tables and documents of each command, in a module with the name of the command."""
