"""Packages are found, so that none is forgotten; folders of shipped data at the top become packages of ppt_gpu."""

from setuptools import find_packages, setup

DATA = ("hardware", "tasklists", "validation")

setup(
    packages=find_packages(include=["ppt_gpu", "ppt_gpu.*"]) + [f"ppt_gpu.{name}" for name in DATA],
    package_dir={f"ppt_gpu.{name}": name for name in DATA},
)
