"""Runs the cases, and adds them up."""

import shutil
import signal
import sys
import time
import traceback

import harness
from cases import CASES
from faults import CASES as KILLS
from trouble import CASES as TROUBLE


# What the short form leaves out: what takes long, and what other cases try as well.
LONG = {"kill_leader_stored", "kill_publisher_stored", "kill_server_worked_off", "partition_of_leader", "stalled_stream"}


def main():
    short, words = sys.argv[4] == "short", sys.argv[5:]
    kills = 2 if short else int(sys.argv[4])
    all_cases = {**CASES, **KILLS, **TROUBLE}
    chosen = {name: case for name, case in all_cases.items() if not words or any(word in name for word in words)}
    if short and not words:
        chosen = {name: case for name, case in chosen.items() if name not in LONG}
    passed, failed, skipped, rows = 0, 0, 0, []

    def hung(*_):
        raise TimeoutError("hangs")

    signal.signal(signal.SIGALRM, hung)
    for name, run in chosen.items():
        case = harness.Case(name)
        try:
            start = time.monotonic()
            # Against hangs; longer where there are more kills.
            signal.alarm(300 if name in CASES else 300 + 30 * kills)
            if name in KILLS:
                rows.append(run(case, kills))
            elif name in TROUBLE:
                # It takes seconds each time.
                rows += run(case, max(1, kills // 5))
            else:
                run(case)
            signal.alarm(0)
            print(f"ok {name} ({time.monotonic() - start:.1f} s)", flush=True)
            passed += 1
        except harness.Skip as reason:
            signal.alarm(0)
            print(f"skipped {name}: {reason}", flush=True)
            skipped += 1
        except Exception:
            signal.alarm(0)
            traceback.print_exc(file=sys.stdout)
            for thing in case.made:
                if isinstance(thing, harness.Bridge):
                    print("\n".join(f"    {line}" for line in thing.said[-20:]), thing.numbers)
            print(f"FAILED {name}\nagain: tests/tools/bridge/run.sh {name}", flush=True)
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
    print(f"beyond: {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


main()
