"""Which registers of a PTX kernel hold affine expressions of thread, block and loop indices: abstract interpretation.

Every basic block is interpreted on expressions instead of numbers until nothing changes. Where paths meet, what they
do not agree on is unknown. At the head of a loop a register that each iteration changes by the same constant is its
value before the loop plus the constant times the loop's counter; after the loop that counter has no one value, as
threads may leave it at different times, and what depends on it is unknown. Integers are taken not to overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ppt_gpu.models.affine.affine import Affine
from ppt_gpu.models.affine.values import Values, assign, launch_values
from ppt_gpu.ptx.cfg import ControlFlow, control_flow
from ppt_gpu.ptx.module import Instruction, Kernel, Mem, Reg
from ppt_gpu.workload.workload import Launch

#: passes over the blocks, at most: each register of each loop head falls twice
_PASSES = 1000


def affine_addresses(kernel: Kernel, launch: Launch) -> dict[int, Affine]:
    """The address of every instruction with a memory operand of which it is known, in bytes, by instruction index.

    Buffers stand at made-up addresses, aligned as the CUDA runtime aligns them.
    """
    flow = control_flow(kernel)
    found = {}
    for block, state in enumerate(_Interpreter(kernel, launch, flow).run()):
        if state is None:
            continue
        for at in range(flow.block_start[block], flow.block_end[block]):
            instruction = kernel.instructions[at]
            address = _global_operand(instruction)
            if address is not None and isinstance(address.base, Reg):
                value = state.registers.get(address.base.id)
                if value is not None:
                    found[at] = value.plus(Affine(address.offset))
            assign(state, instruction)
    return found


def _global_operand(instruction: Instruction) -> Mem | None:
    """The memory operand; of a copy between spaces, the one that is not shared memory."""
    found = [item for item in instruction.operands if isinstance(item, Mem)]
    if len(found) > 1 and "shared" in instruction.opcode.partition(".global")[0]:
        return found[1]
    return found[0] if found else None


#: what a register gains in each iteration of a loop; None: no constant. Registers left out stay the same.
Steps = dict[int, int | None]


class _Interpreter:
    def __init__(self, kernel: Kernel, launch: Launch, flow: ControlFlow) -> None:
        self.kernel, self.flow = kernel, flow
        self.start = launch_values(kernel, launch)
        blocks = len(flow.block_start)
        self.before: list[list[int]] = [[] for _ in range(blocks)]
        for block, following in enumerate(flow.successors):
            for successor in following:
                if successor < blocks:
                    self.before[successor].append(block)
        self.back = set(flow.back_edges)
        self.bodies = {head: self._body(head) for head in flow.loop_heads}
        self.heads: dict[int, Steps] = {head: {} for head in flow.loop_heads}
        self.into: list[Values | None] = [None] * blocks
        self.out: list[Values | None] = [None] * blocks
        self.entries = {flow.block_of(entry) for entry in kernel.entries if entry < len(kernel.instructions)}

    def run(self) -> list[Values | None]:
        """The values before each block; None where control never comes."""
        order, into = self._order(), self.into
        for _ in range(_PASSES):
            changed = False
            for block in order:
                values = self._into(block)
                if values is None:
                    continue
                if into[block] is None or into[block] != values:
                    into[block], changed = values, True
                    self.out[block] = self._through(block, values.copy())
            if not changed:
                return [None if values is None else values.copy() for values in into]
        return [None] * len(self.out)

    def _through(self, block: int, values: Values) -> Values:
        for at in range(self.flow.block_start[block], self.flow.block_end[block]):
            assign(values, self.kernel.instructions[at])
        return values

    def _into(self, block: int) -> Values | None:
        forward = [self._along(source, block) for source in self.before[block] if (source, block) not in self.back]
        if block in self.entries:
            # Only the kernel itself knows its arguments; a function does not know who calls it.
            own = block == self.flow.block_of(0)
            forward.append(self.start.copy() if own else self.start.unknown(len(self.kernel.registers)))
        entering = _joined([values for values in forward if values is not None])
        if entering is None or block not in self.heads:
            return entering
        return self._around(block, entering)

    def _along(self, source: int, target: int) -> Values | None:
        """What leaves `source` for `target`: counters of loops that this ends are unknown."""
        values = self.out[source]
        if values is None:
            return None
        ended = [head for head, body in self.bodies.items() if source in body and target not in body]
        if not ended:
            return values
        names = {counter(head) for head in ended}
        kept = {
            register: None if value is None or any(name in names for name, _ in value.terms) else value
            for register, value in values.registers.items()
        }
        return values.having(kept)

    def _around(self, block: int, entering: Values) -> Values:
        """The values at a loop head, from those before the loop and those that the last iteration left."""
        steps = self.heads[block]
        turns = [self.out[source] for source in self.before[block] if (source, block) in self.back]
        again, before = _joined([values for values in turns if values is not None]), self.into[block]
        if again is not None and before is not None:
            _find_steps(steps, before, again)
        registers = {number: _stepped(value, steps, number, block) for number, value in entering.registers.items()}
        if again is not None:  # what only the loop writes is not known before it
            registers |= {register: None for register in again.registers if register not in registers}
        return entering.having(registers)

    def _body(self, head: int) -> set[int]:
        """The blocks of the loops of `head`: those that reach one of its back edges without passing it."""
        body = {head}
        stack = [source for source, target in self.back if target == head]
        while stack:
            block = stack.pop()
            if block not in body:
                body.add(block)
                stack += self.before[block]
        return body

    def _order(self) -> list[int]:
        """Blocks in reverse post-order from the entries."""
        seen: set[int] = set()
        order: list[int] = []
        for root in sorted(self.entries):
            stack: list[tuple[int, Iterable[int]]] = (
                [(root, iter(self.flow.successors[root]))] if root not in seen else []
            )
            seen.add(root)
            while stack:
                block, following = stack[-1]
                successor = next((s for s in following if s < len(self.out) and s not in seen), None)
                if successor is None:
                    order.append(block)
                    stack.pop()
                else:
                    seen.add(successor)
                    stack.append((successor, iter(self.flow.successors[successor])))
        return order[::-1]


def counter(head: int) -> str:
    """The name of the counter of the loop with this head."""
    return f"loop {head}"


def _find_steps(steps: Steps, before: Values, again: Values) -> None:
    """Correct `steps` by one iteration, which found `before` at the head of the loop and left `again`."""
    for register, value in before.registers.items():
        if register in steps and steps[register] is None:
            continue
        left = again.registers.get(register)
        change = None if value is None or left is None else left.minus(value)
        if change is None or not change.is_constant:
            steps[register] = None
        elif change.constant != steps.get(register, 0):
            steps[register] = None if register in steps else change.constant


def _stepped(value: Affine | None, steps: Steps, register: int, head: int) -> Affine | None:
    step = steps.get(register, 0)
    if value is None or step is None:
        return None
    return value.plus(Affine(0, ((counter(head), step),))) if step else value


def _joined(parts: Sequence[Values]) -> Values | None:
    """What all parts agree on. A register that only some paths have written is what they say."""
    if not parts:
        return None
    registers = dict(parts[0].registers)
    for part in parts[1:]:
        for register, value in part.registers.items():
            if register not in registers:
                registers[register] = value
            elif registers[register] != value:
                registers[register] = None
    return parts[0].having(registers)
