# Tried with Conan 2.34 on Linux, x86-64: `conan create` with its test package, which finds the library by CMake and runs on it, shared and
# static. Not tried: other systems, cross building, Conan's own index, whose checks want a released source.

import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy

required_conan_version = ">=2.0"


class Tautline(ConanFile):
    name = "tautline"
    description = "ZeroMQ messaging in memory-safe Rust, in the place of libzmq"
    license = "MIT OR Apache-2.0"
    homepage = "https://github.com/tautline/tautline"
    url = homepage
    topics = ("zeromq", "messaging", "networking")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": True}
    # It has the files and the targets of zeromq, so that only one of the two can be in a graph.
    provides = "zeromq"

    def set_version(self):
        manifest = Path(self.recipe_folder, "../../../Cargo.toml").read_text()
        self.version = self.version or re.search(r'\[workspace\.package\]\nversion = "(.*)"', manifest)[1]

    def export_sources(self):
        clone = str(Path(self.recipe_folder, "../../..").resolve())
        for pattern in ("Cargo.toml", "Cargo.lock", "LICENSE-*", "crates/*", "bench/harness/*", "xtask/*", "include/*"):
            copy(self, pattern, clone, self.export_sources_folder, excludes="*/target/*")

    def configure(self):
        # Written in Rust: neither the C++ library nor the C++ standard matters.
        self.settings.rm_safe("compiler.libcxx")
        self.settings.rm_safe("compiler.cppstd")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("tautline is built on Linux by this recipe")

    @property
    def _built(self):
        """The folder with the libraries; `-c user.tautline:libraries=DIR` names one where they are already."""
        return self.conf.get("user.tautline:libraries") or str(Path(self.build_folder, "target", "release"))

    def build(self):
        if not self.conf.get("user.tautline:libraries"):
            target = Path(self.build_folder, "target")
            self.run(f'cargo build --release --locked -p tautline-libzmq --target-dir "{target}"', cwd=self.source_folder)

    def package(self):
        copy(self, "LICENSE-*", self.source_folder, str(Path(self.package_folder, "licenses")))
        copy(self, "*.h", str(Path(self.source_folder, "include")), str(Path(self.package_folder, "include")))
        lib = Path(self.package_folder, "lib")
        if self.options.shared:
            copy(self, "libzmq.so", self._built, str(lib))
            lib.joinpath("libzmq.so").rename(lib / "libzmq.so.5.2.5")
            lib.joinpath("libzmq.so.5").symlink_to("libzmq.so.5.2.5")
            lib.joinpath("libzmq.so").symlink_to("libzmq.so.5")
        else:
            copy(self, "libzmq.a", self._built, str(lib))

    def package_info(self):
        self.cpp_info.libs = ["zmq"]
        self.cpp_info.set_property("cmake_file_name", "ZeroMQ")
        self.cpp_info.set_property("cmake_target_name", "libzmq" if self.options.shared else "libzmq-static")
        self.cpp_info.set_property("pkg_config_name", "libzmq")
        # Packages that require ZeroMQ state libzmq's version.
        self.cpp_info.set_property("system_package_version", "4.3.5")
        if not self.options.shared:
            self.cpp_info.system_libs = ["pthread", "dl", "rt", "m"]
