"""Runs the cases, and adds them up."""

import shutil
import signal
import sys
import traceback

import harness
from cases import CASES
from faults import CASES as FAULTS


def main():
    kills, words = int(sys.argv[4]), sys.argv[5:]
    chosen = {name: case for name, case in {**CASES, **FAULTS}.items() if not words or any(word in name for word in words)}
    passed, failed, rows = 0, 0, []

    def hung(*_):
        raise TimeoutError("hangs")

    signal.signal(signal.SIGALRM, hung)
    for name, run in chosen.items():
        case = harness.Case(name)
        try:
            # Against hangs; longer where there are more kills.
            signal.alarm(300 + 20 * kills if name in FAULTS else 300)
            if name in FAULTS:
                rows.append(run(case, kills))
            else:
                run(case)
            signal.alarm(0)
            print(f"ok {name}", flush=True)
            passed += 1
        except Exception:
            signal.alarm(0)
            traceback.print_exc(file=sys.stdout)
            for thing in case.made:
                if isinstance(thing, harness.Bridge):
                    print("\n".join(f"    {line}" for line in thing.said[-20:]), thing.numbers)
            print(f"FAILED {name}\nagain: tests/beyond/run.sh {name}", flush=True)
            failed += 1
        finally:
            try:
                case.end()
            except Exception:
                traceback.print_exc(file=sys.stdout)
                failed += 1
    if rows:
        print("\n| promise | killed | kills | sent | lost | doubled |\n|---|---|--:|--:|--:|--:|")
        for row in rows:
            print("| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in row) + " |")
        print()
    if not failed:
        shutil.rmtree(harness.WORK, ignore_errors=True)
    print(f"beyond: {passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


main()
