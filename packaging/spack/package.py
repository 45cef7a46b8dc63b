# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.cargo import CargoBuilder, CargoPackage

from spack.package import *


class Gyan(CargoPackage):
    """gyan shows what happens inside the MPI library while a program runs: it reads every
    performance variable of MPI_T and counts and times every call, without recompiling
    anything, on any MPI library."""

    # Placeholders until there is a public repository: homepage, git, and a version with its
    # checksum. `spack dev-build gyan@main` builds a checkout meanwhile.
    homepage = "https://example.org/gyan"
    git = "https://example.org/gyan.git"

    license("MIT OR Apache-2.0")

    version("main", branch="main")

    # Neither links MPI: one libgyan.so serves every MPI library.
    depends_on("rust@1.88:", type="build")
    # The unwinder, and the C library of a dependency of the command.
    depends_on("c", type="build")

    def setup_run_environment(self, env):
        env.set("GYAN_PRELOAD", self.prefix.lib.join("libgyan.so"))


class CargoBuilder(CargoBuilder):
    """`cargo install` knows commands only; the library is built with them."""

    def build(self, pkg, spec, prefix):
        with working_dir(self.build_directory):
            pkg.module.cargo("build", "--release", "--locked", *self.build_args)

    def install(self, pkg, spec, prefix):
        with working_dir(self.build_directory):
            Executable("scripts/install")("--built", "target/release", prefix)
