"""The kernels, and the tag of the wheel that does or does not hold them.

All else is in pyproject.toml. Where a kernel cannot be compiled its plain text is used, and a wheel
without any kernel is one for every platform. With LOGTOOL_REQUIRE_KERNELS=1 such a build fails:
packagers set it, so that no compiler that went missing makes a slow package.
"""

import os
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

_REQUIRED = "LOGTOOL_REQUIRE_KERNELS"


class BuildKernels(build_ext):
    """Compiles what can be compiled, and leaves nothing older in its place."""

    def finalize_options(self) -> None:
        """Compile as many kernels at once as there are processors."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        """Compile the kernels; those that fail are left out, unless they are required."""
        for kernel in self.extensions:
            kernel.optional = os.environ.get(_REQUIRED, "0") in ("", "0")
        super().run()

    def build_extension(self, ext: Extension) -> None:
        """Compile one kernel; without it, one of an earlier build goes too."""
        try:
            super().build_extension(ext)
        except BaseException:
            Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
            raise


class Wheel(bdist_wheel):
    """A wheel that says which platform it is for: any, where no kernel is in it."""

    def run(self) -> None:
        """Build the kernels first, for the tag depends on them."""
        self.run_command("build_ext")
        build = self.get_finalized_command("build_ext")
        if not any(Path(path).exists() for path in build.get_outputs()):
            self.distribution.ext_modules = []
            self.root_is_pure = True
        super().run()


setup(cmdclass={"build_ext": BuildKernels, "bdist_wheel": Wheel})
