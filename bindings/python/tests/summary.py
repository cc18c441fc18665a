"""Runs the tests and prints the summary line of the suites."""

import sys
import unittest

# Exit code of a finished run without a failure. A process that ends too early may have the exit code 0.
PASSED = 10


def main(names):
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names) if names else loader.discover(".")
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    # A test may have several failed parts.
    failures = {getattr(test, "test_case", test) for test, _ in result.failures + result.errors}
    failed, skipped = len(failures) + len(result.unexpectedSuccesses), len(result.skipped)
    for test, reason in result.skipped:
        print(f"skipped {test}: {reason}")
    print(f"python: {result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped", flush=True)
    return PASSED if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
