"""What pyproject.toml cannot say yet: the extension."""

from setuptools import Extension, setup

setup(ext_modules=[Extension("fastsum", ["fastsum.c"])], py_modules=[])
