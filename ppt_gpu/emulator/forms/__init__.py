"""What an instruction says, read from opcode and operands."""
