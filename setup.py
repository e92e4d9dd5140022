"""Build of the one extension module. Its C files are compiled side by side, and of those only what has changed.
Switches are environment variables:

HS_NO_OPENMP=1   build without OpenMP (one thread; results are the same, bit for bit)
HS_SANITIZE=1    AddressSanitizer and UndefinedBehaviorSanitizer
HS_COVERAGE=1    gcov instrumentation, no optimisation
HS_QUICK=1       little optimisation, for a build that runs once
HS_NOISE=1       rounding made worse on purpose, for tests/noise.py alone (tests/csrc/noise.h); gcc on x86-64
HS_WERROR=1      warnings are errors

`pip install .` uses every core; after `pip install -e .`, `python setup.py build_ext --inplace` compiles what has
changed."""

import hashlib
import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import Cython
import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


def switch(name):
    return os.environ.get(name, "0") not in ("", "0")


if sys.platform == "win32":  # `restrict` is a keyword of C11 there, and a syntax error without /std
    cflags, gate_flags, lflags = ["/O2", "/fp:precise", "/std:c11"], [], []
else:
    cflags = [
        "-std=c99",
        "-O3",
        "-g0",  # the flag Python adds makes four fifths of the file debug information
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fno-wrapv",  # signed indices do not overflow; the flag Python adds keeps loops from vectorising
        "-fvisibility=hidden",
        "-Wall",
        "-Wextra",
        "-Wno-unused-command-line-argument",  # clang's, of the flag that was taken back above
    ]
    # 66,000 generated lines without a loop of weight: no query gains from more, and -O3 takes 12 s
    gate_flags = ["-O1"]
    lflags = ["-lm"]
if switch("HS_SANITIZE"):
    cflags += ["-g", "-fsanitize=address,undefined"]
    lflags += ["-fsanitize=address,undefined"]
if switch("HS_COVERAGE"):
    cflags += ["-O0", "--coverage"]
    lflags += ["--coverage"]
if switch("HS_NOISE"):
    cflags += [
        "-frounding-math",
        "-DHS_NO_CLONES",
        "-D_POSIX_C_SOURCE=200809L",
        "-include",
        "tests/csrc/noise.h",
    ]
if switch("HS_NOISE") or switch("HS_QUICK"):
    cflags += ["-O1"]
    gate_flags = ["-O0"]
if switch("HS_WERROR"):
    cflags += ["-Werror"]
if sys.platform not in ("darwin", "win32") and not switch("HS_NO_OPENMP"):  # MSVC's OpenMP has no atomic reads
    cflags += ["-fopenmp"]
    lflags += ["-fopenmp"]

GATE = "src/hockeystick/_core.c"  # which Cython writes from the .pyx beside it
sources = [GATE, *sorted(p.as_posix() for p in Path("csrc").rglob("*.c"))]
headers = sorted(p.as_posix() for p in Path("csrc").rglob("*.h"))
if switch("HS_NOISE"):
    sources.append("tests/csrc/noise.c")
    headers.append("tests/csrc/noise.h")
core = Extension(
    "hockeystick._core",
    sources,
    include_dirs=["csrc", numpy.get_include()],
    depends=headers,
    extra_compile_args=cflags,
    extra_link_args=lflags,
    define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
)


def write_gate():
    """GATE, unless it is newer than all that it is written from and the same versions of Cython and numpy wrote it;
    numpy's own files are new in every environment that pip makes for a build."""
    source, stamp = Path(GATE).with_suffix(".pyx"), Path("build/gate.txt")
    versions = f"{Cython.__version__} {numpy.__version__}"
    parts = [source, *source.parent.glob("_core*.px[di]")]
    if (
        not (os.path.exists(GATE) and stamp.exists())
        or stamp.read_text() != versions
        or max(map(os.path.getmtime, parts)) >= os.path.getmtime(GATE)
    ):
        cythonize([str(source)], language_level=3, force=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(versions)


class SideBySide(build_ext):
    """Objects stay in build/, in a folder for each set of flags, also where pip builds; a file is compiled if it, a
    header or this file is newer than its object. The gate, which takes longest, is written and compiled while the
    others are compiled."""

    def finalize_options(self):
        super().finalize_options()
        flags = [os.environ.get(name, "") for name in ("CC", "CFLAGS", "CPPFLAGS")]
        made_with = repr((cflags, gate_flags, flags, sys.version, numpy.__version__, Cython.__version__))
        tag = hashlib.sha256(made_with.encode()).hexdigest()[:8]
        self.build_temp = f"build/temp.{self.plat_name}-{sys.implementation.cache_tag}-{tag}"
        self.force = True  # what is up to date is decided below, file by file

    def build_extension(self, ext):
        if not getattr(self.compiler, "initialized", True):
            self.compiler.initialize()  # MSVC's, once, before threads ask for it
        compile_files = self.compiler.compile

        def compile_all(files, output_dir=None, extra_postargs=(), depends=(), **rest):
            objects = self.compiler.object_filenames(files, output_dir=output_dir)
            newest = max(map(os.path.getmtime, [__file__, *depends]))

            def build(pair):
                file, made = pair
                if file == GATE:
                    write_gate()
                if not os.path.exists(made) or os.path.getmtime(made) <= max(newest, os.path.getmtime(file)):
                    more = gate_flags if file == GATE else []
                    compile_files([file], output_dir=output_dir, extra_postargs=[*extra_postargs, *more], **rest)

            size = {file: os.path.getsize(file) for file in files if file != GATE}
            largest_first = sorted(zip(files, objects, strict=True), key=lambda pair: -size.get(pair[0], math.inf))
            with ThreadPoolExecutor(self.parallel if type(self.parallel) is int else os.cpu_count()) as pool:
                list(pool.map(build, largest_first))
            return objects

        self.compiler.compile = compile_all
        super().build_extension(ext)


def urls():
    """Project URLs: those of the repository that builds the package, where it is built by a workflow; a fork names
    itself."""
    if not os.environ.get("GITHUB_REPOSITORY"):
        return {}
    home = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
    pages = {"Source": "", "Documentation": "#readme", "Changelog": "/blob/main/CHANGELOG.md", "Issues": "/issues"}
    return {name: home + page for name, page in pages.items()}


setup(
    project_urls=urls(),
    ext_modules=[core],
    cmdclass={"build_ext": SideBySide},
)
