"""Options of all commands. Nothing heavy is imported here: what runs a command is imported when it is asked for."""
