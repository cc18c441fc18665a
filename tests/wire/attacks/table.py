"""Prints the table of attacks beside other libraries: table.py PROGRAM FOLDER SECONDS NAME:LIBRARY... -- [WORD...]. See run.sh."""

import itertools
import json
import pathlib
import signal
import sys
import time

from harness import MIB, Answers, Ended, Stage, Unanswered, Unsupported, load

ROUNDS = 4


class Rate:
    """The measurements of a good client over several rounds."""

    def __init__(self):
        self.count = self.took = self.worst_ms = self.newcomer_ms = 0
        self.medians = []

    def add(self, answers):
        self.count += answers.count
        self.took += answers.took
        self.medians.append(answers.median_ms)
        self.worst_ms = max(self.worst_ms, answers.worst_ms)
        self.newcomer_ms = max(self.newcomer_ms, answers.newcomer_ms)

    @property
    def rate(self):
        return self.count / self.took

    @property
    def median_ms(self):
        return sorted(self.medians)[len(self.medians) // 2]


def measure(case, library, program, folder, seconds):
    """Measures a good client while the attack alternates with the same attack on another victim, which loads the machine equally."""
    stage, other = Stage(case, library, program, folder), None
    attackers = []
    try:
        other = Stage(case, library, program, folder)
        quiet, under, elsewhere = Rate(), Rate(), Rate()
        stage.client.ask("measure 0.2")
        quiet.add(Answers(stage.client.ask(f"measure {seconds / 2}")))
        stage.victim.reset_peak()
        before, used, took = stage.victim.resident(), 0, 0
        attackers = [s.attacker(case, limited=False) for s in (stage, other)]
        attackers[1].signal(signal.SIGSTOP)
        for number, rate in itertools.product(range(ROUNDS), (under, elsewhere)):
            at = 0 if rate is under else 1
            attackers[at].signal(signal.SIGCONT)
            attackers[1 - at].signal(signal.SIGSTOP)
            used_before, began = stage.victim.processor_time(), time.monotonic()
            rate.add(Answers(stage.client.ask(f"measure {seconds / ROUNDS}")))
            if rate is under:
                used += stage.victim.processor_time() - used_before
                took += time.monotonic() - began
        then = stage.victim.ask(case.then).split() if case.then else None
        swallowed, connections = attackers[0].counts()
        return {
            "memory": stage.victim.peak() - before,
            "cores": used / took,
            "of quiet": under.rate / quiet.rate,
            "of elsewhere": under.rate / elsewhere.rate,
            "median": under.median_ms,
            "worst": under.worst_ms,
            "newcomer": under.newcomer_ms,
            "quiet worst": quiet.worst_ms,
            "swallowed": swallowed,
            "connections": connections,
            "then": then and float(then[-1]),
        }
    finally:
        for attacker in attackers:
            attacker.end()
        for each in filter(None, (stage, other)):
            each.kill()


COLUMNS = {
    "swallowed, MiB": lambda m: f"{m['swallowed'] / MIB:.0f}",
    "connections": lambda m: f"{m['connections']}",
    "memory, MiB": lambda m: f"{m['memory'] / MIB:.1f}",
    "cores": lambda m: f"{m['cores']:.2f}",
    "rate, % of quiet": lambda m: f"{100 * m['of quiet']:.0f}",
    "% of elsewhere": lambda m: f"{100 * m['of elsewhere']:.0f}",
    "median, ms": lambda m: f"{m['median']:.2f}",
    "worst, ms": lambda m: f"{m['worst']:.1f}",
    "newcomer, ms": lambda m: f"{m['newcomer']:.1f}",
    "then, ms": lambda m: "" if m["then"] is None else f"{m['then'] / 1000:.1f}",
}


def row(case, measured):
    """Returns a row of the table. Each cell has the figures of all libraries in their order."""
    bound = case.bound.replace("defaults", "")
    if all(isinstance(m, str) for m in measured):
        cells = [" / ".join(measured)] + [""] * (len(COLUMNS) - 1)
    else:
        cells = [" / ".join("-" if isinstance(m, str) else show(m) for m in measured).strip(" /") for show in COLUMNS.values()]
        told = [m for m in measured if isinstance(m, str)]
        cells[0] += f" ({', '.join(told)})" if told else ""
    return f"| {case.name} | {bound} | {' | '.join(cells)} |"


# Lowest share of its rate that a good client should keep.
KEPT = 0.8


def told(results):
    """Prints for each library the number and the names of the attacks that leave a good client less than KEPT."""
    for library in dict.fromkeys(result["library"] for result in results):
        measured = [(r["attack"], r["measured"]) for r in results if r["library"] == library and not isinstance(r["measured"], str)]
        ended = [r["attack"] for r in results if r["library"] == library and str(r["measured"]).startswith("the victim")]
        print(f"\n{library}: {len(measured)} attacks measured; the victim ended in {len(ended)}")
        for which in ("of quiet", "of elsewhere"):
            less = [f"{attack} ({100 * m[which]:.0f})" for attack, m in measured if m[which] < KEPT]
            print(f"- below {100 * KEPT:.0f} % {which}: {len(less)}{': ' if less else ''}{'; '.join(less)}")


def table(cases, libraries, program, folder, seconds):
    print(f"In each cell: {' / '.join(name for name, _ in libraries)}\n")
    print(f"| attack | bounded by | {' | '.join(COLUMNS)} |\n|---|---|{'---:|' * len(COLUMNS)}")
    results = []
    for case in cases:
        row_of = []
        for name, library in libraries:
            try:
                measured = measure(case, library, program, folder, seconds)
            except Unsupported:
                measured = "not there"
            except (Ended, Unanswered, OSError) as error:
                measured = str(error) or type(error).__name__
            row_of.append(measured)
            results.append({"attack": case.name, "library": name, "measured": measured})
        print(row(case, row_of), flush=True)
    told(results)
    (folder / "table.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    end = sys.argv.index("--")
    program, folder, seconds, *libraries = sys.argv[1:end]
    words = sys.argv[end + 1 :]
    cases = [case for case in load() if case.answers and (not words or any(word in case.name for word in words))]
    table(cases, [library.split(":", 1) for library in libraries], program, pathlib.Path(folder), float(seconds))
