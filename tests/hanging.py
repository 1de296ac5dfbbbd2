"""How long a test waits for what must come, such as the end of a process, before it says that it hangs."""

#: s; no machine is so loaded that what a test waits for takes as long
HANGING = 600
