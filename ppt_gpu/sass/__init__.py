"""SASS, the machine code of GPUs: disassembly, control codes and traces of it."""
