# Tested with Conan 2.34 on Linux, x86-64: `conan create` with its test package, which finds the library by CMake and runs on it, shared
# and static. Not tested: other systems, cross building, and Conan's own index, whose checks need a released source.

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
    # The package has the files and targets of zeromq, so a dependency graph can contain only one of the two.
    provides = "zeromq"

    def set_version(self):
        manifest = Path(self.recipe_folder, "../../../Cargo.toml").read_text()
        self.version = self.version or re.search(r'\[workspace\.package\]\nversion = "(.*)"', manifest)[1]

    def export_sources(self):
        clone = str(Path(self.recipe_folder, "../../..").resolve())
        for pattern in ("Cargo.toml", "Cargo.lock", "LICENSE-*", "crates/*", "bench/harness/*", "xtask/*", "include/*"):
            copy(self, pattern, clone, self.export_sources_folder, excludes="*/target/*")

    def configure(self):
        # The package is written in Rust, so the C++ library and the C++ standard do not matter.
        self.settings.rm_safe("compiler.libcxx")
        self.settings.rm_safe("compiler.cppstd")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("this recipe builds tautline on Linux only")

    @property
    def _built(self):
        """Folder with the libraries. `-c user.tautline:libraries=DIR` names a folder with built libraries."""
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
        # Packages that require ZeroMQ name a version of libzmq.
        self.cpp_info.set_property("system_package_version", "4.3.5")
        if not self.options.shared:
            self.cpp_info.system_libs = ["pthread", "dl", "rt", "m"]
