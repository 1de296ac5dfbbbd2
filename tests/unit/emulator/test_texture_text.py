"""Textures in arguments and workload files."""

import pytest

from ppt_gpu.common.errors import InputErrors, PptError
from ppt_gpu.workload.arguments import workload_from_arguments
from ppt_gpu.workload.reader import load_workload
from ppt_gpu.workload.texture import Texture
from ppt_gpu.workload.texture_text import is_texture, parse_texture
from ppt_gpu.workload.workload import Argument, Buffer


def test_every_key():
    text = (
        "texture( data+32 , width=64, height=8, depth=2, layers=3, pitch=512, format=unorm8x4, filter=linear,"
        "address=wrap/clamp/border, normalized=true)"
    )
    assert is_texture(text)
    assert parse_texture(text, "t") == (
        Texture("t", "data", 64, 8, 2, 3, "unorm8", 4, "linear", ("wrap", "clamp", "border"), True, 512, 32),
        None,
    )


def test_a_buffer_of_its_own():
    texture, own = parse_texture("surface(s32[64*4]=random(0,9):7, width=64, height=4, format=s32)", "s")
    assert texture == Texture("s", "s_texels", 64, 4, format="s32")
    assert own == Buffer("s_texels", "s32", 256, "random", seed=7, low=0, high=9)


BAD = [
    ("texture(width=4)", "the buffer of the texture is missing"),
    ("texture()", "the buffer of the texture is missing"),
    ("texture(a)", "the width of the texture is missing"),
    ("texture(a, width=0)", "width is '0'"),
    ("texture(a, width=4, widht=5)", "unknown key 'widht' of a texture"),
    ("surface(a, width=4, filter=linear)", "unknown key 'filter' of a surface"),
    ("texture(a, width=4, width=5)", "'width' is given twice"),
    ("texture(a, width=4, format=f33)", "unknown texel format 'f33'"),
    ("texture(a, width=4, format=f32x3)", "unknown texel format 'f32x3'"),
    ("texture(a, width=4, filter=cubic)", "filter is 'cubic'"),
    ("texture(a, width=4, address=wrap/clamp)", "address is 'wrap/clamp'"),
    ("texture(a, width=4, normalized=yes)", "normalized is 'yes'"),
    ("texture(f99[4], width=4)", "f99"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_mistakes_are_named(text, message):
    with pytest.raises(PptError) as caught:
        parse_texture(text, "t")
    assert message in str(caught.value)


def test_command_line():
    arguments = ["texture(f32[64]=iota, width=64)", "f32[64]"]
    workload = workload_from_arguments("k.ptx", "", (1,), (32,), arguments)
    assert workload.launches[0].arguments[0] == Argument("u64", buffer="arg0")
    assert workload.textures == (Texture("arg0", "arg0_texels", 64),)
    assert [buffer.name for buffer in workload.buffers] == ["arg0_texels", "arg1"]
    with pytest.raises(InputErrors, match="the first item is a buffer such as"):
        workload_from_arguments("k.ptx", "", (1,), (32,), ["texture(data, width=64)"])


def test_workload_file(tmp_path):
    (tmp_path / "k.ptx").write_text(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b)\n{\nret;\n}\n"
    )
    path = tmp_path / "w.toml"
    path.write_text(
        'ptx = "k.ptx"\ngrid = 1\nblock = 32\narguments = ["image", "surface(data, width=8, format=u32)"]\n'
        '[buffers]\ndata = "f32[64]"\n[textures]\nimage = "texture(data, width=8, height=8)"\n'
    )
    workload = load_workload(path)
    assert workload.textures == (
        Texture("image", "data", 8, 8),
        Texture("argument_1", "data", 8, format="u32"),
    )
    assert [a.buffer for a in workload.launches[0].arguments] == ["image", "argument_1"]
    assert workload.warnings == ()
