"""C++ names of kernels. The expected names are c++filt's, without parameters."""

import pytest

from ppt_gpu.ptx.linking.mangling import matching, short_name, source_name

NAMES = {
    "sgemm": "sgemm",
    "_Z5sgemmPKfS0_Pfi": "sgemm",
    "_ZN2ns5scaleIfLi2EEEvPT_S1_i": "ns::scale<float, 2>",
    "_ZN2ns5scaleIdLi3EEEvPT_S1_i": "ns::scale<double, 3>",
    "_Z1fILb1ELin4EjEvv": "f<true, -4, unsigned int>",
    "_Z1fIJfiEEvDpT_": "f<float, int>",
    "_Z1fIPKfE": "f<float const*>",
    "_Z1fIN2ns1SEEvT_": "f<ns::S>",
    "_ZN12_GLOBAL__N_11kEPf": "(anonymous namespace)::k",
    "_ZN8__main__4axpyB2v1B5abcdeExd5ArrayIfLi1E1C7mutable7alignedE": "__main__::axpy",
    "_Z1fI6__halfEvPT_": "f<__half>",
    "_Z1fIN2ns1SES1_EvT_T0_": "f<ns::S, ns::S>",
    "_ZN3cub4scan6KernelIN4cuda3std4plusIvEEPiS6_NS_9TileStateIiLb1EEENS0_6PolicyEEEvT0_T1_": (
        "cub::scan::Kernel<cuda::std::plus<void>, int*, int*, cub::TileState<int, true>, cub::scan::Policy>"
    ),
    "_Z3runIZ4hostPfiEUliE0_EvT_": "run<host::{lambda(int)#2}>",
    "_Z3runIZ4hostIdEvT_EUldE_EvT_": "run<host<double>::{lambda(double)#1}>",
    "_Z3runIXadL_Z5twicefEEEvv": "run<twice>",
    "_Z3runIL_Z5twicefEEvv": "run<twice>",
    "_Z3runIXadL_Z5twiceIiEivEELi4EEvv": "run<twice<int>, 4>",
    "_Z3runIXadL_ZN32_INTERNAL_f2d885be_5_t1_cu__Z1fv2sqEfEEfEvPT0_": "run<sq, float>",
    "_Z3runIXadL_ZN32_INTERNAL_f2d885be_5_t1_cu__Z1fv34_GLOBAL__N__f2d885be_5_t1_cu__Z1fv1qEfEEfEvPT0_": (
        "run<(anonymous namespace)::q, float>"
    ),
    "_Z3runIXadL_Z5twicefEXadL_ZN32_INTERNAL_f2d885be_5_t1_cu__Z1fv2sqEfEEEvv": (
        "_Z3runIXadL_Z5twicefEXadL_ZN32_INTERNAL_f2d885be_5_t1_cu__Z1fv2sqEfEEEvv"
    ),
    "_Z3runIFfRKfOiA4_cEEvv": "run<float (float const&, int&&, char [4])>",
    "_Z4sortILN2ns5OrderE1EEvv": "sort<(ns::Order)1>",
    "_Z4copyISt4pairIiSsEEvT_": "copy<std::pair<int, std::string>>",
    "_Z4copyIDF16_DnEvv": "copy<_Float16, std::nullptr_t>",
    "_Z4copyIS9_Evv": "_Z4copyIS9_Evv",
    "_Z99short": "_Z99short",
    "_Z1fIXsrT_E": "_Z1fIXsrT_E",
    "_ZZ": "_ZZ",
}


@pytest.mark.parametrize("mangled, expected", NAMES.items())
def test_source_names(mangled: str, expected: str) -> None:
    assert source_name(mangled) == expected


KERNELS = ["_ZN1a1fIfEEvPT_", "_ZN1a1fIdEEvPT_", "_ZN1b1gEv", "h", "_Z1hv", "_Z3runIXadL_ZN12_GLOBAL__N_11qEfEEEvv"]


@pytest.mark.parametrize(
    "name, expected",
    [
        ("h", ["h"]),
        ("_Z1hv", ["_Z1hv"]),
        ("a::f<float>", KERNELS[:1]),
        ("f< double >", KERNELS[1:2]),
        ("f", KERNELS[:2]),
        ("a::f", KERNELS[:2]),
        ("g", ["_ZN1b1gEv"]),
        ("b::f", []),
        ("f<int>", []),
        ("run<q>", KERNELS[-1:]),
        ("run<(anonymous namespace)::q>", KERNELS[-1:]),
        ("run<r>", []),
    ],
)
def test_matching(name: str, expected: list[str]) -> None:
    assert matching(name, KERNELS) == expected


def test_short_names() -> None:
    scan = "_ZN3cub4scan6KernelIN4cuda3std4plusIvEEPiS6_NS_9TileStateIiLb1EEENS0_6PolicyEEEvT0_T1_"
    assert short_name(scan) == "Kernel<plus<void>, int*, int*, TileState<int, true>, Policy>"
    assert short_name("_ZN2ns5scaleIfLi2EEEvPT_S1_i") == "ns::scale<float, 2>"
    assert matching(short_name(scan), [*KERNELS, scan]) == [scan]
    assert matching("Kernel", [*KERNELS, scan]) == [scan]
    nested = "_Z1fI" + "N4long4nameI" * 12 + "i" + "EE" * 12 + "EvT_"
    assert source_name(nested).count("long::name<") == 12
    assert len(short_name(nested)) <= 80
