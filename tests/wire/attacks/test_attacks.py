"""An attack stays within the limits of memory, descriptors and bytes. Good clients get answers, and the victim exits cleanly."""

import pytest
from harness import ALLOWANCE, MIB, Answers, load

ASKED = 20
# Descriptors that a good client, its new connection and their shared memory may use.
OWN_DESCRIPTORS = 16


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in load()])
def test_attack(case, stage):
    victim = stage.victim
    if stage.client:
        Answers(stage.client.ask(f"ask {ASKED}"))
    victim.reset_peak()
    before, descriptors = victim.resident(), victim.descriptors()
    with stage.attacker(case, limited=True) as attacker:
        assert attacker.wait(), "the attack itself failed"
        if case.settings.get("mode") == "send":
            victim.ask("held")
        if case.then:
            print(victim.ask(case.then), "us")
        if stage.client:
            answers = Answers(stage.client.ask(f"ask {ASKED}"))
            print(f"answers in {answers.median_ms:.2f} to {answers.worst_ms:.1f} ms, a newcomer's in {answers.newcomer_ms:.1f}")
        swallowed, connections = attacker.counts()
        grown, more = victim.peak() - before, victim.descriptors() - descriptors
    print(f"{swallowed / MIB:.1f} MiB over {connections} connections: {grown / MIB:.1f} MiB, {more} descriptors")
    for what, value, most in (
        ("bytes of memory", grown, ALLOWANCE + case.memory),
        ("descriptors", more, case.descriptors and case.descriptors + OWN_DESCRIPTORS),
        ("bytes swallowed", swallowed, case.swallowed),
    ):
        assert most is None or value <= most, f"{value} {what}, at most {most} allowed"
    codes = stage.close()
    assert not any(codes), f"exit codes {codes}"
