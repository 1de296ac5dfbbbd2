"""Textures and surfaces: both engines against fetches worked out with NumPy from CUDA's formulas."""

import numpy as np
import pytest
from jit_kernels import DATA, Case, check_against_interpreter, integer, pointer
from reference.interpreter.interpreter import interpret

from ppt_gpu.common.errors import PptError
from ppt_gpu.emulator.memory.memory import DeviceMemory
from ppt_gpu.emulator.run.run import run
from ppt_gpu.ptx import load_module, parse_module
from ppt_gpu.workload.texture import Texture
from ppt_gpu.workload.workload import Buffer

HEAD = (
    ".version 8.0\n.target sm_80\n.address_size 64\n.global .texref bound;\n"
    ".visible .entry k(.param .u64 t, .param .u64 in, .param .u64 out)\n{\n"
    ".reg .pred %p<4>; .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b64 %d<12>; mov.u32 %r1, %tid.x;"
    "ld.param.u64 %d1, [t]; ld.param.u64 %d2, [in]; ld.param.u64 %d3, [out]; mul.wide.u32 %d4, %r1, 16;"
    "add.s64 %d5, %d2, %d4; add.s64 %d6, %d3, %d4; ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%d5];"
    "mov.b32 %f2, %r2; mov.b32 %f3, %r3; mov.b32 %f4, %r4; mov.b32 %f5, %r5;\n"
)
STORE = "\nst.global.v4.b32 [%d6], {%f10, %f11, %f12, %f13};\nret;\n}"


class TextureCase(Case):
    def __init__(self, body, texture, texels, rows, count=32):
        rows = np.ascontiguousarray(rows)
        self.texture = texture
        buffers = [
            Buffer("texels", "b8", texels.nbytes),
            Buffer("in", "b32", rows.size),
            Buffer("out", "b32", 4 * count),
        ]
        module = parse_module(HEAD + body + STORE, "test.ptx")
        fill = {"texels": texels.view("u1").ravel(), "in": rows.view("u4").ravel()}
        super().__init__(module, "k", (1,), (count,), [pointer("t"), pointer("in"), pointer("out")], buffers, fill=fill)

    def memory(self):
        memory = DeviceMemory.build(self.module, self.buffers, textures=[self.texture])
        for name, values in self.fill.items():
            memory.view(name, values.dtype)[:] = values
        return memory


def fetch(body, texture, texels, rows):
    case = TextureCase(body, texture, texels, rows, len(rows))
    memory, trace = check_against_interpreter(case)
    return memory.view("out", "f4").reshape(-1, 4).copy(), trace, memory


def coordinates(count=32, low=-2.0, high=9.0, seed=1):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(low, high, (count, 4)).astype("f4")
    rows[0] = [0, 0.5, 1, 1.5]
    rows[1] = [-0.0, 1e9, -1e9, 3]
    return rows


TEXELS = np.random.default_rng(5).normal(size=(5, 6, 7)).astype("f4")  # depth or layers, height, width


def wrapped(x, extent, mode):
    """The coordinate in texels, by the definition of each address mode for normalised coordinates."""
    if mode == "wrap":
        x = x - np.floor(x)
    elif mode == "mirror":
        whole = np.floor(x)
        x = np.where(whole % 2 == 0, x - whole, 1 - (x - whole))
    return x * extent


def texel(array, index, mode):
    """array[index] with each index clamped, wrapped or 0 outside."""
    value, inside = [], True
    for i, extent in zip(index, array.shape, strict=True):
        inside = inside and 0 <= i < extent
        value.append(int(i) % extent if mode == "wrap" else int(min(max(i, 0), extent - 1)))
    return array[tuple(value)] if inside or mode != "border" else array.dtype.type(0)


def nearest(array, point, mode):
    return texel(array, [np.floor(x) for x in point], mode)


def blended(array, point, mode):
    """Linear filtering in f64, with weights of 8 bits."""
    base = [np.floor(x - 0.5) for x in point]
    weight = [np.floor((x - 0.5 - b) * 256 + 0.5) / 256 for x, b in zip(point, base, strict=True)]
    total = 0.0
    for corner in np.ndindex(*[2] * len(point)):
        share = np.prod([w if up else 1 - w for w, up in zip(weight, corner, strict=True)])
        total += share * float(texel(array, [b + up for b, up in zip(base, corner, strict=True)], mode))
    return total


@pytest.mark.parametrize("mode", ["clamp", "border"])
@pytest.mark.parametrize("filtering", ["point", "linear"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_texel_coordinates(axes, filtering, mode):
    array = TEXELS[0, 0] if axes == 1 else TEXELS[0] if axes == 2 else TEXELS
    shape = (*array.shape[::-1], 1, 1)[:3]
    texture = Texture("t", "texels", *shape, filter=filtering, address=(mode,) * 3)
    rows = coordinates()
    given = {1: "{%f2}", 2: "{%f2, %f3}", 3: "{%f2, %f3, %f4, %f4}"}[axes]
    out, trace, memory = fetch(
        f"tex.{axes}d.v4.f32.f32 {{%f10, %f11, %f12, %f13}}, [%d1, {given}];", texture, array, rows
    )
    sample = nearest if filtering == "point" else blended
    points = np.clip(rows.astype("f8"), -1e5, 1e5)[:, :axes][:, ::-1]
    expected = [sample(array, point, mode) for point in points]
    np.testing.assert_allclose(out[:, 0], expected, rtol=0, atol=0 if filtering == "point" else 2e-6)
    if mode == "clamp":
        assert (out[:, 1:] == [0, 0, 1]).all()
        assert trace.pattern_mask[trace.access_pattern[1]] == 0xFFFFFFFF
        assert memory.address_of("texels") <= trace.access_base[1] < memory.address_of("texels") + array.nbytes


@pytest.mark.parametrize("mode", ["clamp", "wrap", "mirror", "border"])
@pytest.mark.parametrize("filtering", ["point", "linear"])
def test_normalised_coordinates(filtering, mode):
    array = TEXELS[0]
    texture = Texture("t", "texels", 7, 6, filter=filtering, address=(mode,) * 3, normalized=True)
    rows = (np.random.default_rng(2).integers(-400, 600, (32, 4)) / 256).astype("f4")  # exact in f32 and f64
    out, _, _ = fetch("tex.2d.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%d1, {%f2, %f3}];", texture, array, rows)
    sample = nearest if filtering == "point" else blended
    for k, (x, y) in enumerate(rows[:, :2].astype("f8")):
        point = (wrapped(y, 6, mode), wrapped(x, 7, mode))
        assert abs(out[k, 0] - sample(array, point, "clamp" if mode == "mirror" else mode)) <= (
            0 if filtering == "point" else 2e-6
        ), (k, x, y)


def test_integer_coordinates_layers_and_offsets():
    rows = np.array([[k % 5, k % 9 - 1, k % 8 - 1, 0] for k in range(32)], "i4")
    layered = Texture("t", "texels", 7, 6, layers=5)
    out, _, _ = fetch(
        "tex.a2d.v4.f32.s32 {%f10, %f11, %f12, %f13}, [%d1, {%r2, %r3, %r4, %r4}];", layered, TEXELS, rows
    )
    inside = [0 <= x < 7 and 0 <= y < 6 for _, x, y, _ in rows]
    assert out[:, 0].tolist() == [TEXELS[n, y, x] if ok else 0 for (n, x, y, _), ok in zip(rows, inside, strict=True)]
    flat = Texture("t", "texels", 7, 6)
    out, _, _ = fetch(
        "mov.f32 %f2, 0f40200000; tex.2d.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%d1, {%f2, %f2}], {1, -1};",
        flat,
        TEXELS[0],
        rows,
    )
    assert (out[:, 0] == TEXELS[0, 1, 3]).all()
    out, _, _ = fetch(
        "mov.f32 %f2, 0f40200000; tex.a1d.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%d1, {%r2, %f2}];",
        Texture("t", "texels", 7, layers=5), TEXELS[0], rows,
    )  # fmt: skip
    assert out[:, 0].tolist() == TEXELS[0, :5, 2][rows[:, 0]].tolist()


FORMATS = {
    "f32": ("f4", lambda v: v), "f16": ("f2", lambda v: v.astype("f4")),
    "unorm8": ("u1", lambda v: (v / np.float32(255)).astype("f4")),
    "snorm8": ("i1", lambda v: np.maximum(v / np.float32(127), -1).astype("f4")),
    "unorm16": ("u2", lambda v: (v / np.float32(65535)).astype("f4")),
    "snorm16": ("i2", lambda v: np.maximum(v.astype("f4") / np.float32(32767), -1).astype("f4")),
    "u8": ("u1", lambda v: v.astype("i4").view("f4")), "s8": ("i1", lambda v: v.astype("i4").view("f4")),
    "u16": ("u2", lambda v: v.astype("i4").view("f4")), "s16": ("i2", lambda v: v.astype("i4").view("f4")),
    "u32": ("u4", lambda v: v.view("f4")), "s32": ("i4", lambda v: v.view("f4")),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_formats(name, channels):
    dtype, convert = FORMATS[name]
    rng = np.random.default_rng(3)
    if dtype in ("f2", "f4"):
        texels = rng.normal(size=(32, channels)).astype(dtype)
        texels[0] = 0.000001
    else:
        info = np.iinfo(dtype)
        texels = rng.integers(info.min, info.max, (32, channels), dtype, endpoint=True)
        texels[0], texels[1] = info.min, info.max
    rows = np.array([[k, 0, 0, 0] for k in range(32)], "i4")
    texture = Texture("t", "texels", 32, format=name, channels=channels)
    out, _, _ = fetch("tex.1d.v4.s32.s32 {%f10, %f11, %f12, %f13}, [%d1, {%r2}];", texture, texels, rows)
    one = np.float32(1) if dtype in ("f2", "f4") or "norm" in name else np.array([1], "i4").view("f4")[0]
    expected = np.zeros((32, 4), "f4")
    expected[:, 3] = one
    expected[:, :channels] = convert(texels)
    assert out.view("u4").tolist() == expected.view("u4").tolist()


def test_cube_maps():
    faces = np.arange(6 * 4 * 4, dtype="f4").reshape(6, 4, 4)
    directions = np.array(
        [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1], [1, 0.6, -0.6], [-0.2, -0.3, 2]]
    )
    rows = np.zeros((8, 4), "f4")
    rows[:, :3] = directions
    texture = Texture("t", "texels", 4, 4, layers=6)
    out, _, _ = fetch(
        "tex.cube.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%d1, {%f2, %f3, %f4, %f4}];", texture, faces, rows
    )
    assert out[:6, 0].astype(int) // 16 == pytest.approx(np.arange(6))
    # +x: s = -z, t = -y; (1, 0.6, -0.6) -> s = 0.6 -> 0.8 * 4 = 3, t = -0.6 -> 0.2 * 4 = 0
    assert out[6, 0] == faces[0, 0, 3]
    # +z: s = x, t = -y; (-0.1, 0.15) -> 0.45 * 4 = 1, 0.575 * 4 = 2
    assert out[7, 0] == faces[4, 2, 1]


def test_gathers():
    rows = np.array([[k % 6 + 1.0, k % 5 + 1.0, 0, 0] for k in range(32)], "f4")
    out, _, _ = fetch(
        "tld4.r.2d.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%d1, {%f2, %f3}];",
        Texture("t", "texels", 7, 6),
        TEXELS[0],
        rows,
    )
    a = TEXELS[0]
    for (x, y), found in zip(rows[:, :2].astype(int), out, strict=True):
        assert found.tolist() == [a[y, x - 1], a[y, x], a[y - 1, x], a[y - 1, x - 1]]


def test_texture_references_levels_and_queries():
    rows = coordinates()
    texture = Texture("bound", "texels", 7, 6, layers=5, normalized=True)
    body = (
        "tex.level.2d.v4.f32.f32 {%f10, _, _, _}, [bound, {%f2, %f3}], %f4;"
        "tex.grad.2d.v4.f32.f32 {%f14, _, _, _}, [bound, {%f2, %f3}], {%f4, %f4}, {%f5, %f5};"
        "sub.f32 %f11, %f10, %f14; txq.width.b32 %r6, [bound]; txq.array_size.b32 %r7, [bound];"
        " mad.lo.u32 %r6, %r6, 10, %r7; txq.level.width.b32 %r9, [bound], 0; txq.width.b32 %r10, [bound];"
        "sub.u32 %r9, %r9, %r10; add.u32 %r6, %r6, %r9;"
        "txq.normalized_coords.b32 %r8, [bound]; mad.lo.u32 %r6, %r6, 10, %r8; mov.b32 %f12, %r6; mov.u64 %d7, bound;"
        "istypep.texref %p1, %d7; selp.f32 %f13, 0f3F800000, 0f00000000, %p1;"
    )
    case = TextureCase(body, texture, TEXELS, rows)
    case.launch = type(case.launch)("k", (1, 1, 1), (32, 1, 1), (pointer("in"), pointer("in"), pointer("out")))
    memory, _ = check_against_interpreter(case)
    out = memory.view("out", "f4").reshape(-1, 4)
    assert (out[:, 1] == 0).all() and (out[:, 2].view("u4") == 751).all() and (out[:, 3] == 1).all()


def test_surfaces():
    texture = Texture("t", "texels", 32, 4, format="u32")
    rows = np.array([[4 * k, k % 4, 100 + k, 0] for k in range(32)], "i4")
    body = (
        "suld.b.2d.b32.trap {%r6}, [%d1, {%r2, %r3}]; add.u32 %r7, %r6, %r4;"
        " sust.b.2d.b32.trap [%d1, {%r2, %r3}], {%r7};"
        "mov.u32 %r8, 0; sured.b.add.2d.u32.clamp [%d1, {%r8, %r8}], %r1; add.s32 %r9, %r2, 8; mov.u32 %r11, 5;"
        " mov.u32 %r12, 6;"
        "suld.b.2d.v2.b32.zero {%r11, %r12}, [%d1, {%r9, %r3}]; mov.b32 %f10, %r6; mov.b32 %f11, %r11;"
        " mov.b32 %f12, %r12; suq.width.b32 %r4, [%d1]; mov.b32 %f13, %r4;"
    ).replace("%r9, %r2, 8", "%r9, %r2, 0; and.b32 %r9, %r9, -8; add.s32 %r9, %r9, 8")
    texels = np.arange(128, dtype="u4").reshape(4, 32) * 1000
    out, trace, memory = fetch(body, texture, texels, rows)
    after = texels.copy()
    for k in range(32):
        after[k % 4, k] += 100 + k
    after[0, 0] += 496
    assert memory.view("texels", "u4").tolist() == after.ravel().tolist()
    assert out[:, 0].view("u4").tolist() == [texels[k % 4, k] for k in range(32)]
    assert (out[:, 3].view("u4") == 32).all()
    for k in range(32):
        x = (4 * k & -8) // 4 + 2
        expected = after[k % 4, x : x + 2].tolist() if x < 32 else [0, 0]
        assert out[k, 1:3].view("u4").tolist() == expected
    assert trace.access_space.tolist() == [0] * 6
    assert trace.pattern_mask[trace.access_pattern].tolist()[1:5] == [0xFFFFFFFF] * 3 + [0x3FFFFFFF]


ERRORS = [
    ("mov.u64 %d1, 77; tex.1d.v4.f32.s32 {%f10, %f11, %f12, %f13}, [%d1, {%r2}];", "no texture or surface"),
    ("tex.1d.v4.f32.s32 {%f10, %f11, %f12, %f13}, [bound, {%r2}];", "no texture or surface"),
    ("sust.b.2d.b32.trap [%d1, {%r2, 9}], {%r2};", "outside of its surface"),
    ("suld.b.2d.b32.clamp {%r2}, [%d1, {2, 0}];", "aligned"),
    ("tex.2dms.v4.f32.s32 {%f10, %f11, %f12, %f13}, [%d1, {%r2, %r2, %r2, %r2}];", "multi-sample"),
    ("sust.p.2d.b32.trap [%d1, {%r2, 0}], {%r2};", "formatted surface accesses"),
]


@pytest.mark.parametrize(("body", "text"), ERRORS)
def test_errors(body, text):
    case = TextureCase(body, Texture("t", "texels", 7, 6), TEXELS[0], coordinates())
    for engine in (run, interpret):
        with pytest.raises(PptError) as caught:
            case.run(engine=engine)
        assert text in str(caught.value)
        assert caught.value.line is not None


def test_a_texture_must_fit_its_buffer():
    with pytest.raises(PptError, match="texture 't' needs 168 bytes, its buffer 'b' has 160"):
        DeviceMemory.build(
            parse_module(HEAD + STORE, "x.ptx"), [Buffer("b", "f32", 40)], textures=[Texture("t", "b", 7, 6)]
        )


# kernels of tests/data/exec/textures.cu -----------------------------------------------------------------------------


class FileCase(Case):
    textures: tuple[Texture, ...] = ()

    def memory(self):
        memory = DeviceMemory.build(self.module, self.buffers, textures=self.textures)
        for name, values in self.fill.items():
            memory.view(name, values.dtype)[:] = values
        return memory


def file_kernel(name, grid, block, arguments, buffers, texture, **options):
    case = FileCase(load_module(DATA / "textures.ptx"), name, grid, block, arguments, buffers, **options)
    case.textures = (texture,)
    return case


def test_kernel_that_blurs_a_texture():
    image = np.random.default_rng(1).normal(size=(4, 64)).astype("f4")
    buffers = [Buffer("pixels", "f32", 256), Buffer("out", "f32", 256)]
    arguments = [pointer("image"), pointer("out"), integer(64)]
    case = file_kernel(
        "blur", (2, 4), (32,), arguments, buffers, Texture("image", "pixels", 64, 4), fill={"pixels": image.ravel()}
    )
    memory, trace = check_against_interpreter(case)
    padded = np.pad(image, ((0, 0), (1, 1)), mode="edge")
    expected = ((np.float32(0) + padded[:, :-2]) + padded[:, 1:-1]) + padded[:, 2:]
    assert memory.view("out", "f4").tolist() == expected.ravel().tolist()
    assert len(trace.access_base) == 8 * 4


def test_kernel_that_looks_up_a_table():
    table = np.arange(40, dtype="f4")
    index = np.array([k * 7 % 12 for k in range(64)], "i4")
    buffers = [Buffer("table", "f32", 40), Buffer("index", "s32", 64), Buffer("out", "f32", 256)]
    arguments = [pointer("t"), pointer("index"), pointer("out"), integer(60)]
    texture = Texture("t", "table", 10, channels=4)
    case = file_kernel("lookup", (2,), (32,), arguments, buffers, texture, fill={"table": table, "index": index})
    memory, _ = check_against_interpreter(case)
    rows = np.vstack([table.reshape(10, 4), np.zeros((2, 4), "f4")])[index]  # 0 behind the table
    rows[60:] = 0
    assert memory.view("out", "f4").tolist() == rows.ravel().tolist()


def test_kernel_that_changes_a_surface():
    picture = np.random.default_rng(2).integers(0, 256, (3, 40, 4), dtype="u1")
    texture = Texture("s", "picture", 40, 3, format="u8", channels=4)
    buffers = [Buffer("picture", "u8", picture.size)]
    case = file_kernel(
        "invert", (2, 3), (32,), [pointer("s"), integer(40)], buffers, texture, fill={"picture": picture.ravel()}
    )
    memory, _ = check_against_interpreter(case)
    picture[..., :3] = 255 - picture[..., :3]
    assert memory.view("picture", "u1").tolist() == picture.ravel().tolist()
