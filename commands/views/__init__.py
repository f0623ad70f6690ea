"""How results look: the lines, tables and documents of each command, by its name."""
