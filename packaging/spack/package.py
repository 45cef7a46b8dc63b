# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems import cargo

from spack.package import *


class Gyan(cargo.CargoPackage):
    """gyan shows what happens inside the MPI library while a program runs: it reads every
    performance variable of MPI_T and counts and times every call, without recompiling
    anything, on any MPI library."""

    # Placeholders until there is a public repository; meanwhile
    # `spack dev-build gyan@main` builds a checkout.
    homepage = "https://example.org/gyan"
    git = "https://example.org/gyan.git"

    license("MIT OR Apache-2.0")

    version("main", branch="main")

    # No MPI: one libgyan.so serves every MPI library.
    depends_on("rust@1.88:", type="build")
    # A dependency of the command is in C, and the unwinder comes from the compiler.
    depends_on("c", type="build")

    def setup_run_environment(self, env):
        env.set("GYAN_PRELOAD", self.prefix.lib.join("libgyan.so"))


class CargoBuilder(cargo.CargoBuilder):
    """`cargo install` knows commands only; libgyan.so is built and installed with them."""

    @property
    def check_args(self):
        # The other tests run programs with the MPIs of the project's test bed.
        return ["--workspace", "--bins", "--lib"]

    def build(self, pkg, spec, prefix):
        with working_dir(self.build_directory):
            pkg.module.cargo(
                "build", "--release", "--locked", *self.std_build_args, *self.build_args
            )

    def install(self, pkg, spec, prefix):
        with working_dir(self.build_directory):
            Executable("scripts/install")("--built", "target/release", prefix)
