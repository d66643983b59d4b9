"""The clock alone, without engine or event loop: whoever is faster, a policy decides as in a replay."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fot.core.clock import Clock
from fot.core.commit import track
from fot.core.funnel import Funnel
from fot.core.markers import PAPER_KERNEL
from fot.core.policy import Conclude, Event, Fate, Launch, Probe, Prune, Watch
from fot.core.sampling import Majority
from fot.core.vote import Ballot, plurality
from fot.engines.tape import Tape
from fot.online.text import LiveText
from fot.replay.recording import TextRecording
from fot.replay.simulator import simulate
from tests.replay import pools


class Race:
    """Drives a clock from recordings; which rollout comes next, and how far, is drawn."""

    def __init__(self, policy, rollouts, seed, *, follow=False, holds=False, fails=()):
        self.rng = Random(seed)
        self.tapes = [Tape(rollout) for rollout in rollouts]
        self.follow, self.holds, self.fails = follow, holds, dict(fails)
        self.running, self.stopped, self.waiting = {}, set(), set()
        self.decided = {}
        self.clock = Clock(policy, len(rollouts), self, self.make_text)

    def make_text(self):
        return LiveText(PAPER_KERNEL, track("boxed"), is_followed=self.follow)

    def launch(self, rollouts):
        self.running |= dict.fromkeys(rollouts, 0)

    def stop(self, rollout):
        self.stopped.add(rollout)
        self.running.pop(rollout, None)

    def decide(self, rollout, fate, prefix):
        self.decided[rollout] = (fate, prefix.tokens)

    def release(self, rollout):
        self.waiting.remove(rollout)
        self.running[rollout] = self.clock.entrants[rollout].text.tokens

    def run(self):
        self.clock.begin()
        while self.running and not self.clock.is_over:
            self.step(self.rng.choice(sorted(self.running)))
        assert self.clock.is_over
        return self.clock.settle()

    def step(self, rollout):
        at, tape = self.running[rollout], self.tapes[rollout]
        entrant = self.clock.entrants[rollout]
        to = min(at + self.rng.randint(0, self.rng.choice((1, 3, 40))), tape.tokens)
        target = entrant.target if self.holds else None
        to = to if target is None else min(to, target)
        if rollout in self.fails:
            to = min(to, self.fails[rollout])
        finish = tape.finish_reason if to == tape.tokens else None
        for chunk in tape.chunks(at, to, finish, 0):
            entrant.text.add(chunk, 0)
        self.running[rollout] = to
        if self.fails.get(rollout) == to:
            del self.running[rollout]
            self.clock.failed(rollout)
        elif finish:
            del self.running[rollout]
            entrant.text.finish()
            self.clock.ended(rollout)
        elif target is not None and to == target:
            del self.running[rollout]
            self.waiting.add(rollout)
            self.clock.held(rollout)
        else:
            self.clock.grew(rollout)


def assert_parity(policy, rollouts, seed, *, follow=False, holds=False):
    expected = simulate(policy(), TextRecording(rollouts, "boxed"), follow_commitments=follow)
    live = policy()
    settled = Race(live, rollouts, seed, follow=follow, holds=holds).run()
    assert [charge.tokens for charge, _ in settled] == list(expected.stops)
    assert [fate for _, fate in settled] == list(expected.fates)
    verdict = plurality(live.ballots())
    assert verdict == expected.verdict
    assert list(verdict.votes) == list(expected.verdict.votes)


@settings(max_examples=400)
@given(
    pools.problems, pools.checkpoints, pools.keeps, st.integers(1, 4), st.booleans(), st.integers(0, 999), st.booleans()
)
def test_the_funnel_decides_as_in_a_replay(rows, checkpoints, keep, minimum, early, seed, holds):
    rollouts = pools.as_rollouts(rows)
    assert_parity(
        lambda: Funnel(len(rows), checkpoints, keep, minimum=minimum, early_voting=early), rollouts, seed, holds=holds
    )


@settings(max_examples=400)
@given(pools.problems, pools.checkpoints, pools.keeps, st.integers(0, 999), st.booleans())
def test_the_eager_funnel_decides_as_in_a_replay(rows, checkpoints, keep, seed, holds):
    rollouts = pools.as_rollouts(rows)
    assert_parity(lambda: Funnel(len(rows), checkpoints, keep, eager=True), rollouts, seed, follow=True, holds=holds)


@given(pools.problems, st.integers(0, 999))
def test_the_majority_is_that_of_a_replay(rows, seed):
    assert_parity(lambda: Majority(len(rows)), pools.as_rollouts(rows), seed)


class Rounds:
    """Launches two, and two more whenever those have ended; concludes when two agree. Watches what is there late."""

    def __init__(self, k):
        self.k, self.launched, self.open, self.answers, self.log = k, 0, set(), [], []
        self.rewatched = set()

    def start(self):
        return self.more()

    def more(self):
        fresh = range(self.launched, min(self.launched + 2, self.k))
        self.launched += len(fresh)
        self.open |= set(fresh)
        return [Launch(2), *(Watch(r, 3 + r) for r in fresh)] if fresh else []

    def observe(self, observation):
        rollout, answer = observation.prefix.rollout, observation.prefix.answer
        self.log.append((observation.event, observation.clock, rollout, observation.prefix.text, answer))
        if observation.event is Event.REACHED:
            if rollout % 3 == 2 and observation.clock % 2:
                self.open.discard(rollout)
                return [Prune(rollout), *(self.more() if not self.open else [])]
            again, self.rewatched = self.open - self.rewatched, self.rewatched | self.open
            return [Watch(other, 5) for other in sorted(again)]
        if observation.event is not Event.ENDED:
            return []
        self.open.discard(rollout)
        self.answers += [(rollout, answer)] if answer else []
        if len([a for _, a in self.answers if a == answer]) > 1:
            return [Conclude()]
        return self.more() if not self.open else []

    def ballots(self):
        return [Ballot(rollout, answer) for rollout, answer in self.answers]

    def seats(self):
        return None

    def foresee(self, ahead):
        return ()


@settings(max_examples=400)
@given(pools.problems, st.integers(0, 999), st.booleans(), st.booleans())
def test_rounds_of_launches_see_what_a_replay_shows_them(rows, seed, follow, holds):
    rollouts = pools.as_rollouts(rows)
    made = []

    def policy():
        made.append(Rounds(len(rows)))
        return made[-1]

    assert_parity(policy, rollouts, seed, follow=follow, holds=holds)
    assert made[0].log == made[1].log


@given(pools.problems, pools.checkpoints, st.integers(0, 999), st.integers(0, 999), st.booleans())
def test_a_rollout_that_fails_has_no_vote_and_holds_nobody_up(rows, checkpoints, seed, where, holds):
    rollouts = pools.as_rollouts(rows)
    lost = where % len(rows)
    at = where % max(rollouts[lost].tokens, 1)
    policy = Funnel(len(rows), checkpoints, 0.5)
    settled = Race(policy, rollouts, seed, holds=holds, fails={lost: at}).run()
    charge, fate = settled[lost]
    assert fate in (Fate.FAILED, Fate.BANKED, Fate.PRUNED)
    assert charge.tokens <= at
    assert (lost in {ballot.rollout for ballot in policy.ballots()}) == (fate is Fate.BANKED)
    assert Fate.CANCELLED not in {fate for _, fate in settled}


def test_what_can_be_foreseen_is_stopped_before_the_stragglers_come():
    texts = [r"\boxed{1} and then some more", "Wait, Wait, Wait, and then some more", "calm and long and even"] * 2
    rows = [{"text": text, "n_tokens": len(text), "token_ends": list(range(1, len(text) + 1))} for text in texts]
    race = Race(Funnel(6, [15], 0.5), pools.as_rollouts(rows), 0)
    race.clock.begin()
    for rollout in (0, 1, 2, 3):
        race.running[rollout] = 15
        entrant = race.clock.entrants[rollout]
        for chunk in race.tapes[rollout].chunks(0, 16, None, 0):
            entrant.text.add(chunk, 0)
        race.clock.grew(rollout)
    assert race.stopped == {0, 3}  # have answered; more than that is not certain while two have not come
    assert race.clock.time == 0
    assert not race.decided


def test_a_probe_holds_everything_behind_it_back():
    class Probing(Majority):
        def observe(self, observation):
            seen.append((observation.event, observation.probe))
            if observation.event is Event.REACHED:
                return [Probe(observation.prefix.rollout, 5)]
            return super().observe(observation)

        def start(self):
            return [Launch(2), Watch(0, 2)]

    class Asked(Race):
        def probe(self, number, tokens, prefix):
            asked.append((number, tokens, prefix.text))

    seen, asked = [], []
    rows = [{"text": "abcd", "n_tokens": 4, "token_ends": [1, 2, 3, 4]}] * 2
    race = Asked(Probing(2), pools.as_rollouts(rows), 0)
    race.clock.begin()
    while race.running:
        race.step(max(race.running))
    assert asked == [(0, 5, "ab")]
    assert seen == [(Event.REACHED, None)]
    race.clock.probed(0, "42")
    assert seen == [(Event.REACHED, None), (Event.PROBED, "42"), (Event.ENDED, None), (Event.ENDED, None)]
    assert race.clock.is_over


@pytest.mark.parametrize("chunk_tokens", [1, 7, 100])
def test_a_held_back_observation_waits_for_the_slowest(chunk_tokens):
    rows = [{"text": "a" * 30, "n_tokens": 30, "token_ends": list(range(1, 31))}] * 2
    race = Race(Funnel(2, [10], 0.5, minimum=1), pools.as_rollouts(rows), 0)
    race.clock.begin()
    race.rng.randint = lambda low, high: chunk_tokens
    race.step(1)
    while 1 in race.running:
        race.step(1)
    assert not race.decided
    while 0 in race.running and race.clock.entrants[0].text.tokens <= 10:
        race.step(0)
    assert race.decided[1] == (Fate.PRUNED, 10)


@settings(max_examples=200)
@given(pools.problems, st.integers(0, 999), st.integers(0, 60), st.booleans())
def test_an_interruption_counts_who_has_ended_and_charges_what_has_come(rows, seed, steps, holds):
    rollouts = pools.as_rollouts(rows)
    policy = Majority(len(rows))
    race = Race(policy, rollouts, seed, holds=holds)
    race.clock.begin()
    for _ in range(steps):
        if race.running:
            race.step(race.rng.choice(sorted(race.running)))
    ended = {at for at, entrant in enumerate(race.clock.entrants) if entrant.text.is_whole}
    race.clock.interrupt()
    assert race.clock.is_over
    settled = race.clock.settle()
    assert [charge.tokens for charge, _ in settled] == [entrant.text.tokens for entrant in race.clock.entrants]
    assert {at for at, (_, fate) in enumerate(settled) if fate is Fate.FINISHED} == ended
    texts = {at: race.clock.entrants[at].text for at in ended}
    answered = {at for at, text in texts.items() if text.prefix(at, text.tokens).answer is not None}
    assert {ballot.rollout for ballot in policy.ballots() if ballot.answer is not None} == answered


@given(pools.problems, st.integers(0, 999), st.integers(0, 60), st.booleans())
def test_an_interruption_begins_nothing(rows, seed, steps, holds):
    race = Race(Rounds(len(rows)), pools.as_rollouts(rows), seed, holds=holds)
    race.clock.begin()
    for _ in range(steps):
        if race.running and not race.clock.is_over:
            race.step(race.rng.choice(sorted(race.running)))
    launched, held = len(race.clock.entrants), set(race.waiting)
    race.clock.interrupt()
    assert len(race.clock.entrants) == launched
    assert race.waiting == held
    assert race.clock.is_over
