"""Build of the one extension module. Switches are environment variables:

HS_NO_OPENMP=1   build without OpenMP (one thread; results are the same, bit for bit)
HS_SANITIZE=1    AddressSanitizer and UndefinedBehaviorSanitizer
HS_COVERAGE=1    gcov instrumentation, no optimisation
HS_NOISE=1       rounding made worse on purpose, for tests/noise.py alone (tests/csrc/noise.h); gcc on x86-64
HS_WERROR=1      warnings are errors
"""

import os
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup


def switch(name):
    return os.environ.get(name, "0") not in ("", "0")


if sys.platform == "win32":
    cflags, lflags, openmp = ["/O2", "/fp:precise"], [], ["/openmp"]
else:
    cflags = [
        "-std=c99",
        "-O3",
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fno-wrapv",  # signed indices do not overflow; the flag Python adds keeps loops from vectorising
        "-fvisibility=hidden",
        "-Wall",
        "-Wextra",
    ]
    lflags, openmp = ["-lm"], ["-fopenmp"]
if switch("HS_SANITIZE"):
    cflags += ["-g", "-fsanitize=address,undefined"]
    lflags += ["-fsanitize=address,undefined"]
if switch("HS_COVERAGE"):
    cflags += ["-O0", "--coverage"]
    lflags += ["--coverage"]
if switch("HS_NOISE"):
    cflags += ["-O1", "-frounding-math", "-DHS_NO_CLONES", "-D_POSIX_C_SOURCE=200809L", "-include", "tests/csrc/noise.h"]
if switch("HS_WERROR"):
    cflags += ["-Werror"]
if sys.platform != "darwin" and not switch("HS_NO_OPENMP"):
    cflags += openmp
    lflags += openmp if sys.platform != "win32" else []

sources = ["src/hockeystick/_core.pyx", *sorted(p.as_posix() for p in Path("csrc").glob("*.c"))]
if switch("HS_NOISE"):
    sources.append("tests/csrc/noise.c")
headers = sorted(p.as_posix() for p in Path("csrc").glob("*.h"))
core = Extension(
    "hockeystick._core",
    sources,
    include_dirs=["csrc", numpy.get_include()],
    depends=headers,
    extra_compile_args=cflags,
    extra_link_args=lflags,
    define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
)
setup(ext_modules=cythonize([core], language_level=3))
