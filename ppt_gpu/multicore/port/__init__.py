"""From one kind of core to the other."""
