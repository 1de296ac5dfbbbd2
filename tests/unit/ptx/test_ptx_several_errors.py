"""Several bad instructions in one body are reported together."""

import pytest

from ppt_gpu.common.errors import InputErrors
from ppt_gpu.ptx.parsing.parser import parse_module


def several(*lines: str) -> InputErrors:
    body = "\n".join(["\t.reg .b32 %r<3>;", *lines, "\tret;"])
    with pytest.raises(InputErrors) as error:
        parse_module(f".version 8.0\n.target sm_80\n.entry k()\n{{\n{body}\n}}\n")
    return error.value


def test_bad_instructions_are_reported_together() -> None:
    bad = several("\tadd.s32 %r0, %r1, %q;", "\tmov.b32 %r0, 1;", "\tfoo.s32 %r0;", "\t@%p bra L;", "\tmov.b32 %r2;")
    assert [(error.line, error.column) for error in bad.errors] == [(6, 20), (8, 2), (9, 3), (10, 2)]
    assert (bad.path, bad.line, bad.column) == ("<ptx>", 6, 20)
    assert str(bad).startswith("<ptx>:6:20: register '%q' is not declared")


def test_errors_end_where_statements_may_be_cut_wrongly() -> None:
    bad = several("\tfoo.s32 %r0;", "\tbar2 %r0;", "\tmov.b32 %r0, 1", "\tmov.b32 %r0, %q;", "\tfoo.s32 %r0;")
    assert [error.line for error in bad.errors] == [6, 7, 8]


def test_at_most_twenty_errors() -> None:
    assert len(several(*["\tfoo.s32 %r0;"] * 50).errors) == 20
