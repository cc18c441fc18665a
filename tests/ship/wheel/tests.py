"""Tests the wheel as a user installs it. run.sh sets WHEEL, TOOLS, ROOT and CACHE."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from environments import CACHE, EXCHANGE, NATIVE, PROCESSES, PROGRAM, PYZMQ, ROOT, TOOLS, WATCHDOG, WHEEL, WORK, Case, Environment, has_module, needs, template


class File(unittest.TestCase):
    """Tests of the wheel itself."""

    def tool(self, *arguments):
        result = subprocess.run([TOOLS / arguments[0], *arguments[1:]], capture_output=True, text=True, cwd=ROOT / "packaging/python")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_its_name_is_what_auditwheel_finds(self):
        tag = re.search(r'platform tag:\s*"([^"]+)"', self.tool("auditwheel", "show", WHEEL))[1]
        self.assertIn(tag, WHEEL.stem.split("-")[-1].split("."))
        self.assertTrue(WHEEL.name.startswith("tautline_zmq-"))
        self.assertIn("-py3-none-", WHEEL.name)

    def test_metadata_and_description_are_as_the_index_wants_them(self):
        self.tool("twine", "check", "--strict", WHEEL)

    def test_its_contents(self):
        self.tool("check-wheel-contents", WHEEL)
        with zipfile.ZipFile(WHEEL) as wheel:
            names = wheel.namelist()
            library = wheel.getinfo("tautline_zmq/libzmq.so.5")
            (metadata,) = (wheel.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
        for licence in ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"):
            self.assertTrue(any(name.endswith(f".dist-info/licenses/{licence}") for name in names), licence)
        # The library contains TLS, which the default build does not have.
        self.assertLess(library.file_size, 17 << 18)
        self.assertIn("\nLicense-Expression: MIT OR Apache-2.0\n", metadata)
        # The package is not published yet, so its page must not tell users to install it from PyPI.
        self.assertNotIn("pip install tautline", metadata)

    def test_each_function_it_needs_has_a_version(self):
        """Each undefined symbol has a version. Without one, loading fails with an older C library, and auditwheel does not report it."""
        with zipfile.ZipFile(WHEEL) as wheel:
            library = wheel.extract("tautline_zmq/libzmq.so.5", WORK / "symbols")
        symbols = subprocess.run(["nm", "-D", "--undefined-only", library], check=True, capture_output=True, text=True).stdout
        self.assertEqual(re.findall(r"^ +U ([^@\n]+)$", symbols, re.M), [])
        self.assertIn("@GLIBC_", symbols)

    def test_it_is_built_the_same_twice(self):
        again = WORK / "again"
        with zipfile.ZipFile(WHEEL) as wheel:
            library = wheel.extract("tautline_zmq/libzmq.so.5", again)
        command = [ROOT / "packaging/python/build.sh"]
        kept = WHEEL.read_bytes()
        environment = {**os.environ, "LIBRARY": library, "TAGS": "py3-none"}
        built = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=WATCHDOG).stdout
        self.assertEqual(Path(built.strip()).name, WHEEL.name)
        self.assertEqual(Path(built.strip()).read_bytes(), kept)


@needs(PYZMQ)
class Use(Case):
    """Uses of the wheel in an environment that the tests leave unchanged."""

    @classmethod
    def setUpClass(cls):
        cls.environment = template()

    def test_pyzmq_runs_on_it(self):
        told = self.environment.program()
        self.assertTrue(told["active"])
        # Both libraries are loaded, but pyzmq calls only one of them, as `doctor` checks.
        self.assertEqual(told["libraries"], sorted(map(str, (self.environment.library, self.environment.bundled))))
        manifest = (ROOT / "Cargo.toml").read_text()
        self.assertEqual(told["version"], re.search(r'^version = "(.*)"', manifest, re.M)[1])

    def test_status(self):
        self.says(self.environment.command("status"), 0, "on: pyzmq 27.1.0 runs on Tautline")

    def test_doctor(self):
        library = str(self.environment.library)
        result = self.environment.command("doctor")
        self.says(result, 0, "pyzmq runs on Tautline.", str(self.environment.bundled), "27.1.0")
        all_calls = re.search(r"(\d+) of the (\d+) functions of libzmq that pyzmq calls go to " + re.escape(library), result.stdout)
        self.assertEqual(all_calls[1], all_calls[2])
        self.assertGreater(int(all_calls[2]), 30)

    def test_each_call_is_bound_to_it(self):
        """The log of the dynamic linker binds each call of pyzmq to our library."""
        log = WORK / "bindings"
        self.on_tautline(self.environment, LD_DEBUG="bindings", LD_DEBUG_OUTPUT=str(log), LD_BIND_NOW="1")
        text = "".join(file.read_text(errors="replace") for file in WORK.glob("bindings.*"))
        bound = re.findall(r"binding file \S*/zmq/\S+ \[0\] to (\S+) \[0\]: normal symbol `zmq_", text)
        self.assertGreater(len(bound), 30)
        self.assertEqual(set(bound), {str(self.environment.library)})

    def test_a_program_without_zmq_pays_for_one_module(self):
        code = "import sys; print(*sorted(sys.modules)); print('libzmq' in open('/proc/self/maps').read())"
        modules, mapped = self.environment.run("-c", code).stdout.splitlines()
        bare, _ = self.environment.run("-S", "-c", code).stdout.splitlines()
        self.assertEqual(mapped, "False")
        new = set(modules.split()) - set(bare.split())
        self.assertEqual({name for name in new if "tautline" in name}, {"tautline_zmq"})
        self.assertNotIn("ctypes", new)

    def test_the_startup_file_of_newer_pythons(self):
        code = "import sys, pkgutil\n" \
            f"for line in open({str(self.environment.site / 'tautline_zmq.start')!r}): pkgutil.resolve_name(line.strip())()\n" \
            "print([f.__name__ for f in sys.meta_path if f.__module__ == 'tautline_zmq'])"
        result = self.environment.run("-S", "-c", f"import sys; sys.path.append({str(self.environment.site)!r})\n" + code)
        self.assertEqual((result.stdout, result.stderr), ("['_BeforeZmq']\n", ""))

    def test_isolated(self):
        self.on_tautline(self.environment, "-I")

    def test_without_site(self):
        found = f"import sys; sys.path.append({str(self.environment.site)!r})\n"
        told = self.environment.run("-S", "-c", found + PROGRAM)
        self.assertFalse(json.loads(told.stdout)["active"])
        told = self.environment.run("-S", "-c", found + "import tautline_zmq; tautline_zmq.install()\n" + PROGRAM)
        self.assertTrue(json.loads(told.stdout)["active"])

    def test_the_variable_turns_it_off(self):
        self.on_libzmq(self.environment, TAUTLINE_PYZMQ="0")
        self.says(self.environment.command("status", TAUTLINE_PYZMQ="0"), 1, "off: pyzmq 27.1.0", "TAUTLINE_PYZMQ=0")
        self.says(self.environment.command("doctor", TAUTLINE_PYZMQ="0"), 1, "does not run on this Tautline", "unset TAUTLINE_PYZMQ")

    def test_the_program_may_set_the_variable(self):
        result = self.environment.run("-c", "import os; os.environ['TAUTLINE_PYZMQ'] = '0'\n" + PROGRAM)
        self.assertFalse(json.loads(result.stdout)["active"])

    def test_processes_of_multiprocessing(self):
        program = WORK / "processes.py"
        program.write_text(PROCESSES)
        result = self.environment.run(program)
        self.assertEqual((result.stdout, result.stderr), ("fork True\nspawn True\nforkserver True\n", ""))

    def test_a_subprocess(self):
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {PROGRAM!r}], check=True)"
        self.assertTrue(json.loads(self.environment.run("-c", code).stdout)["active"])

    def test_asyncio(self):
        code = """
import asyncio, tautline_zmq, zmq, zmq.asyncio

async def main():
    context = zmq.asyncio.Context()
    service, client = context.socket(zmq.REP), context.socket(zmq.REQ)
    client.connect(f"tcp://127.0.0.1:{service.bind_to_random_port('tcp://127.0.0.1')}")
    async def serve():
        await service.send(b"to " + await service.recv())
    serving = asyncio.create_task(serve())
    await client.send(b"you")
    print(await client.recv(), tautline_zmq.active())
    await serving
    context.destroy()

asyncio.run(main())
"""
        self.assertEqual(self.environment.run("-c", code).stdout, "b'to you' True\n")

    def test_the_ways_to_use_asyncio(self):
        """The cases of asynchronous*.py pass on both libraries, with the methods of pyzmq and with ours."""
        for variable, patched in (("0", False), ("library", False), ("asyncio", True), ("1", True)):
            with self.subTest(variable):
                self.asynchronous(self.environment, patched, TAUTLINE_PYZMQ=variable)

    def test_doctor_knows_the_methods_of_asyncio(self):
        self.assertIn("has the faster methods", self.environment.command("doctor").stdout)
        result = self.environment.command("doctor", TAUTLINE_PYZMQ="library")
        self.assertIn("zmq.asyncio is as in pyzmq: TAUTLINE_PYZMQ=library", result.stdout)

    def test_other_versions_of_pyzmq_keep_their_methods(self):
        code = "import zmq; zmq.__version__ = '28.0.0'; import zmq.asyncio; from tautline_zmq import _asyncio; print(_asyncio.outcome)\n" \
            "print('_tautline' in zmq.asyncio.Socket.__dict__)"
        result = self.environment.run("-c", code)
        self.assertEqual(result.stdout, "pyzmq 28.0.0 is not one of the versions 25 to 27\nFalse\n", result.stderr)

    def test_another_library_that_is_preloaded_stays(self):
        preload = {"LD_PRELOAD": str(self.environment.bundled)}
        self.on_libzmq(self.environment, **preload)
        self.says(self.environment.command("status", **preload), 1, "another libzmq is in the process already", str(self.environment.bundled))
        self.says(self.environment.command("doctor", **preload), 1, "take it out of LD_PRELOAD")
        # If a user asks for Tautline by the variable, Python prints a message.
        result = self.environment.run("-c", "import zmq", TAUTLINE_PYZMQ="1", **preload)
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertIn("another libzmq is in the process already", result.stderr)

    def test_this_library_may_be_preloaded(self):
        self.on_tautline(self.environment, LD_PRELOAD=str(self.environment.library))

    def test_another_library_that_was_loaded_before_stays(self):
        before = f"import ctypes; ctypes.CDLL({str(self.environment.bundled)!r})\n"
        self.assertFalse(json.loads(self.environment.run("-c", before + PROGRAM).stdout)["active"])

    def test_zmq_that_was_imported_before_stays(self):
        code = "import sys, tautline_zmq; sys.meta_path[:] = [f for f in sys.meta_path if f.__module__ != 'tautline_zmq']\n" \
            "import zmq; tautline_zmq.install(); sys.modules.pop('zmq')\n"
        self.assertFalse(json.loads(self.environment.run("-c", code + PROGRAM).stdout)["active"])

    def test_bench(self):
        result = self.environment.command("bench", "--rounds", "1", "--seconds", "0.1")
        self.says(result, 0, "PUSH to PULL", "REQ to REP", "asyncio", "Tautline is")
        self.assertEqual(len(re.findall(r"/s .*/s .*\([0-9.]+ to [0-9.]+\)$", result.stdout, re.M)), 4)

    def test_bench_does_not_compare_a_library_with_itself(self):
        result = self.environment.command("bench", "--rounds", "1", "--seconds", "0.1", LD_PRELOAD=str(self.environment.bundled))
        self.assertEqual(result.returncode, 1)
        self.assertIn("pyzmq does not run on Tautline", result.stdout)
        self.assertIn("another libzmq is in the process already", result.stderr)


@needs(PYZMQ)
class Switch(Case):
    """The commands off and on, whose effect lasts."""

    def test_off_and_on(self):
        environment = template().copy()
        self.says(environment.command("off"), 0, "off")
        self.on_libzmq(environment)
        self.says(environment.command("status"), 1, "tautline_zmq.off is there")
        self.says(environment.command("doctor"), 1, "python -m tautline_zmq on")
        self.on_tautline(environment, TAUTLINE_PYZMQ="1")
        # A second `off` has the same effect.
        self.says(environment.command("off"), 0, "off")
        self.says(environment.command("on"), 0, "on")
        self.on_tautline(environment)
        self.says(environment.command("on"), 0, "on")

    def test_on_tells_why_a_wheel_without_the_module_runs_on_the_library(self):
        environment = template().copy()
        self.says(environment.command("on"), 0, "runs on Tautline's library", "this wheel has no native module for cpython")
        self.assertFalse((environment.site / "tautline_zmq.native").exists())
        self.says(environment.command("doctor"), 0, "this wheel has no native module")
        result = environment.run("-c", PROGRAM, TAUTLINE_PYZMQ="native")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(json.loads(result.stdout)["active"])

    def test_off_outlives_an_upgrade(self):
        environment = template().copy()
        environment.command("off")
        environment.pip("install", "--no-index", "--force-reinstall", WHEEL)
        self.on_libzmq(environment)
        environment.command("on")
        self.on_tautline(environment)

    def test_a_switch_that_cannot_be_moved(self):
        environment = template().copy()
        (environment.site / "tautline_zmq.off").mkdir()
        self.says(environment.command("off"), 1, "cannot write", "TAUTLINE_PYZMQ=0")
        self.says(environment.command("on"), 1, "cannot remove")

    def test_an_environment_on_top_of_the_systems_packages(self):
        # The user's packages stand in for those of the system, because such an environment sees both.
        base = os.path.realpath(sys.executable)
        user = {"PYTHONUSERBASE": str(WORK / "user")}
        command = [TOOLS / "pip", "--quiet", "--python", base, "install", "--user", "--break-system-packages", "--ignore-installed"]
        finds = ["--no-index", "--find-links", PYZMQ]
        subprocess.run([*command, *finds, WHEEL, "pyzmq"], env={**os.environ, **user}, check=True, timeout=WATCHDOG)
        above = Environment(WORK / "above", base, "--system-site-packages")
        self.says(above.command("status", **user), 0)
        self.says(above.command("off", **user), 0, str(above.path / "tautline_zmq.off"))
        self.says(above.command("status", **user), 1)

        def below(*arguments):
            return subprocess.run(
                [base, "-m", "tautline_zmq", *arguments], env={**os.environ, **user}, cwd=WORK, capture_output=True, text=True, timeout=WATCHDOG
            )

        self.says(below("status"), 0)
        self.says(above.command("on", **user), 0)
        self.says(above.command("status", **user), 0)
        self.says(below("off"), 0)
        self.says(above.command("on", **user), 1, "still off")
        self.says(above.command("status", **user), 1)


@needs(PYZMQ)
class Broken(Case):
    """Python starts without a message and pyzmq works, even if a part is broken or missing."""

    def test_a_library_that_cannot_be_loaded(self):
        for number, break_it in enumerate((
            lambda path: path.write_bytes(b"no library"),
            # Bytes 18 and 19 of an ELF file are the machine type.
            lambda path: path.write_bytes(path.read_bytes()[:18] + b"\xff\xff" + path.read_bytes()[20:]),
            lambda path: path.unlink(),
        )):
            with self.subTest(number):
                environment = template().copy()
                break_it(environment.library)
                self.on_libzmq(environment)
                self.says(environment.command("status"), 1, "cannot be loaded")
                self.says(environment.command("doctor"), 1, "cannot be loaded", "Remedy")
                result = environment.run("-c", PROGRAM, TAUTLINE_PYZMQ="1")
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertFalse(json.loads(result.stdout)["active"])

    def test_a_package_of_which_files_are_missing(self):
        environment = template().copy()
        package = environment.site / "tautline_zmq"
        for name in ("_library.py", "__init__.py", ""):
            path = package / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            result = environment.run("-c", EXCHANGE + "exchange()")
            self.assertEqual((result.returncode, result.stdout), (0, ""), name)
            # Python 3.15 itself reports a missing module that a startup file names.
            if name == "_library.py" or sys.version_info < (3, 15):
                self.assertEqual(result.stderr, "", name)

    def test_no_startup_file(self):
        environment = template().copy()
        for name in ("tautline_zmq.pth", "tautline_zmq.start"):
            (environment.site / name).unlink()
        self.on_libzmq(environment)
        self.says(environment.command("doctor"), 1, "Python ran no startup file", "tautline_zmq.pth is missing")

    def test_a_folder_that_is_no_site_directory(self):
        environment = Environment(tempfile.mkdtemp(dir=WORK) + "/v")
        environment.install_pyzmq()
        folder = WORK / "target"
        environment.pip("install", "--no-index", "--target", folder, WHEEL)
        self.says(environment.command("doctor", PYTHONPATH=str(folder)), 1, "call tautline_zmq.install() before zmq is imported")
        result = environment.run("-c", "import tautline_zmq; tautline_zmq.install()\n" + PROGRAM, PYTHONPATH=str(folder))
        self.assertTrue(json.loads(result.stdout)["active"])

    def test_a_pyzmq_that_cannot_be_imported(self):
        environment = template().copy()
        (environment.site / "zmq/__init__.py").write_text("import not_there\n")
        self.says(environment.command("status"), 1, "cannot import pyzmq", "not_there")
        self.says(environment.command("doctor"), 1, "cannot be imported", "TAUTLINE_PYZMQ=0")

    def test_no_standard_error(self):
        environment = template().copy()
        environment.library.unlink()
        code = "import sys; sys.stderr = None\nimport zmq; print('well')"
        self.assertEqual(environment.run("-c", code, TAUTLINE_PYZMQ="1").stdout, "well\n")

    def test_no_pyzmq(self):
        environment = Environment(WORK / "without").install(pyzmq=None)
        result = environment.run("-c", "import tautline_zmq; print(tautline_zmq.active())")
        self.assertEqual((result.stdout, result.stderr), ("False\n", ""))
        self.says(environment.command("status"), 1, "cannot import pyzmq")
        self.says(environment.command("doctor"), 1, "pyzmq is not installed", "pip install pyzmq")
        self.says(environment.command("bench"), 1, "cannot import pyzmq")
        # A user may install pyzmq after the wheel.
        environment.install_pyzmq()
        self.on_tautline(environment)


@needs(PYZMQ)
class Packages(Case):
    """Installation and removal of packages, and their effects."""

    def test_uninstalling_leaves_nothing(self):
        environment = Environment(WORK / "clean")
        environment.install_pyzmq()
        environment.run("-c", EXCHANGE + "exchange()")
        before = environment.files()
        environment.install(pyzmq=None)
        self.on_tautline(environment)
        environment.command("doctor")
        environment.command("off")
        environment.command("on")
        environment.command("bench", "--rounds", "1", "--seconds", "0")
        environment.pip("uninstall", "--yes", "tautline-zmq")
        self.assertEqual({path for path in environment.files() - before if "tautline" in str(path)}, set())
        result = environment.run("-c", EXCHANGE + "exchange(); print(libraries())")
        self.assertEqual(result.stdout, f"['{environment.bundled}']\n")

    def test_reinstalling_pyzmq_changes_nothing(self):
        environment = template().copy()
        environment.install_pyzmq(PYZMQ, "--force-reinstall")
        self.on_tautline(environment)
        environment.pip("uninstall", "--yes", "pyzmq")
        self.says(environment.command("status"), 1, "cannot import pyzmq")
        environment.install_pyzmq()
        self.on_tautline(environment)

    @needs(CACHE / "pyzmq-25.1.2")
    def test_an_older_pyzmq(self):
        environment = Environment(WORK / "older").install(CACHE / "pyzmq-25.1.2")
        self.on_tautline(environment)
        self.says(environment.command("doctor"), 0, "pyzmq runs on Tautline.", "25.1.2", "has the faster methods")
        self.asynchronous(environment, True)
        self.on_libzmq(environment, TAUTLINE_PYZMQ="0")

    @needs(CACHE / "debian")
    def test_a_pyzmq_that_uses_the_systems_libzmq(self):
        """Debian's pyzmq, unpacked. Its modules ask for libzmq.so.5 by name, and the loader already has our library under that name."""
        packages, libraries = CACHE / "debian/usr/lib/python3/dist-packages", CACHE / "debian/usr/lib"
        environment = Environment(WORK / "debian", "/usr/bin/python3").install(pyzmq=None)
        folders = {str(path.parent) for path in libraries.rglob("*.so.*")}
        variables = {"PYTHONPATH": str(packages), "LD_LIBRARY_PATH": ":".join(sorted(folders))}
        told = environment.program(**variables)
        self.assertTrue(told["active"])
        self.assertEqual(told["libraries"], [str(environment.library)])
        self.says(environment.command("doctor", **variables), 0, "pyzmq runs on Tautline.", "the system's")
        self.on_libzmq(environment, TAUTLINE_PYZMQ="0", **variables)


# Prints the result of `_selection.in_use`, and pyzmq's variable.
USED = EXCHANGE + """
import os
from tautline_zmq import _selection

exchange()
print(_selection.in_use(), os.environ.get("PYZMQ_BACKEND"))
"""


@needs(PYZMQ)
@unittest.skipUnless(has_module(NATIVE), f"{NATIVE.name} has no native module")
class Native(Case):
    """The native backend of pyzmq, in environments after `on`."""

    @classmethod
    def setUpClass(cls):
        cls.environment = Environment(WORK / "native").install(wheel=NATIVE)
        cls.before = cls.environment.copy()
        cls.on = cls.environment.command("on")

    def uses(self, environment, expected, **variables):
        result = environment.run("-c", USED, **variables)
        self.assertEqual((result.stdout, result.stderr), (f"{expected} {variables.get('PYZMQ_BACKEND')}\n", ""))

    def test_the_library_is_the_default(self):
        self.on_tautline(self.before)
        self.says(self.before.command("status"), 0, "by its library (the default after an installation)")
        self.says(self.before.command("doctor"), 0, "python -m tautline_zmq on, or TAUTLINE_PYZMQ=native")
        self.uses(self.before, "native", TAUTLINE_PYZMQ="native")

    def test_on_tests_the_backend_and_off_ends_it(self):
        self.says(self.on, 0, "runs on the native backend, which passed a test")
        self.uses(self.environment, "native")
        told = self.environment.program()
        self.assertEqual((told["active"], told["libraries"]), (True, []))
        self.says(self.environment.command("status"), 0, "by its native backend", "tautline_zmq.native is there")
        self.says(self.environment.command("doctor"), 0, "Tautline's native backend", "cimport zmq", "TAUTLINE_PYZMQ=library")
        environment = self.environment.copy()
        environment.pip("install", "--no-index", "--force-reinstall", NATIVE)
        self.uses(environment, "native")
        self.says(environment.command("off"), 0, "off")
        self.on_libzmq(environment)
        self.uses(environment, "library", TAUTLINE_PYZMQ="1")

    def test_an_unknown_value_of_the_variable_is_ignored_with_a_message(self):
        environment = self.environment.copy()
        result = environment.run("-c", USED, TAUTLINE_PYZMQ="nativ")
        self.assertEqual((result.stdout, result.stderr.count("\n")), ("native None\n", 1), result.stderr)
        self.assertIn("TAUTLINE_PYZMQ=nativ is ignored", result.stderr)
        self.says(environment.command("off"), 0, "off")
        for command, words in (("status", "tautline_zmq.off is there"), ("doctor", "TAUTLINE_PYZMQ=nativ is ignored")):
            result = environment.command(command, TAUTLINE_PYZMQ="nativ")
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn(words, result.stdout)
            self.assertIn("TAUTLINE_PYZMQ=nativ is ignored", result.stderr)

    def test_the_variable_selects_another_part(self):
        for value, expected in (("0", "pyzmq"), ("library", "library"), ("asyncio", "pyzmq"), ("native", "native"), ("1", "native")):
            with self.subTest(value):
                self.uses(self.environment, expected, TAUTLINE_PYZMQ=value)

    def test_a_program_may_select_a_backend_of_pyzmq(self):
        self.uses(self.environment, "library", PYZMQ_BACKEND="cython")
        self.says(self.environment.command("doctor", PYZMQ_BACKEND="cython"), 0, "unset PYZMQ_BACKEND")
        for name in ("tautline_zmq.backend", "tautline_zmq"):
            self.uses(self.before, "native", PYZMQ_BACKEND=name)
        for command in ("status", "doctor"):
            self.says(self.before.command(command, PYZMQ_BACKEND="not_there"), 1, "PYZMQ_BACKEND=not_there", "tautline_zmq.backend")

    def test_the_backend_of_the_variable_has_the_faster_asyncio_even_after_off(self):
        environment = self.before.copy()
        environment.command("off")
        variable = {"PYZMQ_BACKEND": "tautline_zmq.backend"}
        self.says(environment.command("doctor", **variable), 0, "waits by the engine's descriptors", "pyzmq runs on Tautline")
        self.asynchronous(environment, True, **variable)

    def test_the_selection_does_not_reach_another_python(self):
        other = Environment(WORK / "other")
        other.install_pyzmq()
        code = f"import zmq, subprocess; subprocess.run([{str(other.python)!r}, '-c', {EXCHANGE + 'exchange(); print(libraries())'!r}])"
        result = self.environment.run("-c", code)
        self.assertEqual((result.stdout, result.stderr), (f"['{other.bundled}']\n", ""))

    def test_processes_of_multiprocessing(self):
        program = WORK / "native_processes.py"
        program.write_text(PROCESSES)
        result = self.environment.run(program)
        self.assertEqual((result.stdout, result.stderr), ("fork True\nspawn True\nforkserver True\n", ""))

    def test_a_backend_that_cannot_be_imported(self):
        broken = {
            "_native.abi3.so": "no module",
            "backend/_socket.py": "import not_there\n",
            "backend/__init__.py": "from tautline_zmq._native import Context\n",
        }
        for name, text in broken.items():
            with self.subTest(name):
                environment = self.environment.copy()
                (environment.site / "tautline_zmq" / name).write_text(text)
                self.uses(environment, "library")
                self.says(environment.command("status"), 0, "by its library", "the native backend cannot be used")
                self.says(environment.command("doctor"), 0, "cannot be used", "Reinstall the wheel")
                result = environment.run("-c", USED, TAUTLINE_PYZMQ="1")
                self.assertEqual((result.stdout, result.stderr.count("\n")), ("library None\n", 1), result.stderr)
                self.says(environment.command("on"), 0, "runs on Tautline's library", "not on the native backend")
                self.says(environment.command("status"), 0, "by its library (the default after an installation)")
                environment.library.unlink()
                result = environment.run("-c", USED, TAUTLINE_PYZMQ="native")
                self.assertEqual((result.stdout, result.stderr.count("\n")), ("pyzmq None\n", 1), result.stderr)
                self.on_libzmq(environment)

    def test_on_before_pyzmq_is_installed(self):
        environment = Environment(WORK / "native_without").install(pyzmq=None, wheel=NATIVE)
        self.says(environment.command("on"), 1, "pyzmq is not installed", "pip install pyzmq")

    def test_the_ways_to_use_asyncio(self):
        self.asynchronous(self.environment, True, TAUTLINE_PYZMQ="native")
        # pyzmq's methods, with ZMQ_FD.
        self.asynchronous(self.environment, False, TAUTLINE_PYZMQ="library", PYZMQ_BACKEND="tautline_zmq.backend")

    def test_asyncio_waits_by_the_engine(self):
        result = self.environment.run(Path(__file__).parent / "asynchronous_native.py")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    @needs(CACHE / "pyzmq-25.1.2")
    def test_an_older_pyzmq(self):
        environment = Environment(WORK / "native_older").install(CACHE / "pyzmq-25.1.2", NATIVE)
        self.says(environment.command("on"), 0, "runs on the native backend")
        self.uses(environment, "native")
        self.asynchronous(environment, True)


def main():
    names = sys.argv[1:]
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{name}*" for name in names] or None
    try:
        result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(loader.loadTestsFromModule(sys.modules["__main__"]))
    finally:
        shutil.rmtree(WORK)
    for case, _ in result.failures + result.errors:
        print(f"again: tests/ship/wheel/run.sh {getattr(case, 'test_case', case).id().rpartition('.')[2]}")
    failed = len({str(getattr(case, "test_case", case)) for case, _ in result.failures + result.errors})
    skipped = len(result.skipped)
    print(f"wheel: {result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return failed or not result.testsRun


if __name__ == "__main__":
    sys.exit(bool(main()))
