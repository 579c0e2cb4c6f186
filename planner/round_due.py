"""The jobs that a round waits for, and how a new one begins: the rounds and the plan → tasks. Pure."""

from itertools import takewhile

from planner.net_round import Judge, Lesson, NetFile, round_id
from planner.opinion import OPINIONS_MOST
from planner.plan import Plan
from planner.reward_turns import next_move, standing_rewards
from planner.rounds import Round, Rounds, Task, judge_round
from planner.seeds import Purpose, Span, fresh
from planner.verdict import Call

BLOCK_SEEDS = 50  # of one job: a net's plays take longer than weights', and lanes share a judge
FAILURES = 3  # rounds in a row whose net could not be made: then no more with this command
RIVALS = 8  # nets of before that a lesson names: each costs a forward pass a decision


def round_due(rounds: Rounds, plan: Plan, *, begin: bool) -> list[Task]:
    """The jobs of the round that is open; of a new one, where none is and `begin` says that there may be."""
    if not plan.net.share:
        return []
    if round_ := rounds.open:
        return _next_of(rounds, plan, round_)
    if not begin or not _is_turn(rounds, plan.net.share) or not may_learn(rounds, plan):
        return []
    return [lesson_due(rounds, plan)]


def lesson_due(rounds: Rounds, plan: Plan) -> Lesson:
    """What the next round learns, once its turn comes."""
    command = plan.net.train if rounds.net else plan.net.first
    seed = fresh(Purpose.TRAINING, 1, rounds.draws).low
    move = next_move(rounds, plan.space)
    rewards = standing_rewards(plan.space, rounds) | ({move.variable: move.to} if move else {})
    return Lesson(
        round=round_id(command, rounds.net, seed, rewards),
        name=plan.name,
        command=command,
        best=rounds.net,
        seed=seed,
        rewards=rewards,
        move=move,
        rivals=_rivals(rounds),
        opinions=rounds.opinions[-OPINIONS_MOST:],
    )


def _rivals(rounds: Rounds) -> tuple[NetFile, ...]:
    """The nets that stood before the best, newest first."""
    nets = [ruling.net for ruling in rounds.adoptions if ruling.net]
    return tuple(reversed(nets[:-1]))[:RIVALS]


def _is_turn(rounds: Rounds, share: float) -> bool:
    """Whether rounds have had no more than their share of the lanes' time."""
    return rounds.busy_s <= share * (rounds.busy_s + rounds.trials_s)


def may_learn(rounds: Rounds, plan: Plan) -> bool:
    """Not once the last three nets could not be made by the command that would be next."""
    command = plan.net.train if rounds.net else plan.net.first
    newest = [r for r in reversed([*rounds.rounds.values()]) if r.lesson.command == command]
    failed = list(takewhile(lambda r: r.ruling is not None and r.ruling.reason == "not trained", newest))
    return len(failed) < FAILURES


def _next_of(rounds: Rounds, plan: Plan, round_: Round) -> list[Task]:
    if judge_round(rounds, round_).call is not Call.WAIT or round_.learning:
        return []
    if round_.made is None:
        return [round_.lesson]  # it was cancelled, or its file removed: it gets its turn again
    if round_.lesson.best is None or (round_.stage and round_.stage.failures):
        return []
    span = round_.stage.span if round_.stage else fresh(Purpose.JUDGE, plan.net.judge_seeds, rounds.draws)
    due = round_.stage.gaps(BLOCK_SEEDS) if round_.stage else span.blocks(BLOCK_SEEDS)
    return [_judge(plan, round_.lesson.round, round_.made, round_.lesson.best, span, seeds) for seeds in due]


def _judge(plan: Plan, id_: str, candidate: NetFile, best: NetFile, span: Span, seeds: Span) -> Judge:
    return Judge(
        round=id_,
        name=plan.name,
        census=plan.census,
        seconds=plan.seconds,
        seeds=seeds,
        span=span,
        candidate=candidate,
        best=best,
        play_timeout_s=plan.play_timeout_s,
        deterministic=plan.deterministic,
    )
