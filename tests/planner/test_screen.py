"""A screen: both sides of each pair are a pure function of the payload and the seed."""

from dataclasses import replace

import numpy as np
import pytest

from fleetd import BadData, decode_json, encode_json
from planner.screen import (
    PARTS,
    Axis,
    Screen,
    Shake,
    decode_screen,
    encode_screen,
    frame_in_steps,
    in_steps,
    points,
    screen_id,
    sides,
    stray_screen,
)
from planner.seeds import Span

AXIS = Axis(name="a", centre=0.3, reach=0.75, step=0.5, low=-9.0, high=9.0, whole=False)
SEEDS, FIRST = range(1, 401), Span(1, 56)


def screen(*axes, shake=Shake.MIRRORED, seeds=FIRST):
    axes = axes or (AXIS, replace(AXIS, name="b", centre=-2.0))
    return Screen(
        id=screen_id(axes, shake, 900, seeds), name="hill", census=("x",), seconds=900, seeds=seeds, axes=axes,
        defaults="d", pairs=7, shake=shake, play_timeout_s=60.0, deterministic=True,
    )  # fmt: skip


def many(count, **changes):
    return [replace(AXIS, name=f"v{n}", **changes) for n in range(count)]


def test_points_are_a_function_of_payload_and_seed_alone():
    one = screen()
    other = decode_screen(decode_json(encode_json(encode_screen(one))))
    together = sides(one, [9, 3])
    for at, seed in enumerate((9, 3)):
        for side, same, alone in zip(together, points(other, seed), points(one, seed), strict=True):
            assert side[at].tolist() == same.tolist() == alone.tolist()


def test_mirrored_sides_lie_symmetric_about_the_centre():
    one = screen()
    first, second = sides(one, SEEDS)
    assert np.allclose((first + second) / 2, [0.3, -2.0], atol=1e-12)
    assert np.allclose(np.abs(first - second), 2 * 0.75, atol=1e-12)
    assert np.allclose(in_steps(one, SEEDS), (first - second) / 2 / 0.5)
    centre, low, high = frame_in_steps(one)
    assert centre.tolist() == [0.6, -4.0]
    assert (low.tolist(), high.tolist()) == ([a.low / a.step for a in one.axes], [a.high / a.step for a in one.axes])


def test_each_variable_goes_up_as_often_as_down():
    share = (in_steps(screen(*many(40)), SEEDS) > 0).mean(axis=0)
    assert np.abs(share - 0.5).max() < 4 * 0.5 / len(SEEDS) ** 0.5


def test_no_side_leaves_the_range():
    one = screen(replace(AXIS, low=0.0, high=0.5), replace(AXIS, name="b", low=0.3, high=0.3))
    for side in sides(one, SEEDS):
        assert side[:, 0].min() == 0.0
        assert side[:, 0].max() == 0.5
        assert set(side[:, 1]) == {0.3}


def test_whole_variables_are_whole_and_right_on_average():
    one = screen(replace(AXIS, centre=2.3, reach=1.6, step=1.0, whole=True))
    first, second = sides(one, range(1, 4001))
    assert np.array_equal(first, np.round(first))
    assert abs(((first + second) / 2).mean() - 2.3) < 0.03
    assert abs((np.abs(first - second) / 2).mean() - 1.6) < 0.03


def test_a_whole_variable_moves_by_one_at_least():
    first, second = sides(screen(replace(AXIS, reach=0.1, step=1.0, whole=True)), SEEDS)
    assert set(np.abs(first - second).ravel()) == {2.0}


def test_beside_the_centre_each_length_and_each_variable_has_its_turn_whatever_the_size():
    for size in (1, 3, 55):
        jobs = [screen(shake=Shake.BESIDE, seeds=Span(low, low + size)) for low in range(1, 111, size)]
        half = np.concatenate([in_steps(job, range(job.seeds.low, job.seeds.high)) for job in jobs])
        reach = np.abs(2 * half).round(9)
        assert {max(row) for row in reach if all(row)} == {1.5 * part / PARTS for part in range(1, PARTS + 1)}
        assert {tuple(row) for row in reach if not all(row)} == {(1.0, 0.0), (0.0, 1.0)}


def test_screens_of_other_ids_have_independent_signs():
    axes = many(100)
    one, other = screen(*axes), screen(*axes[:-1], replace(axes[-1], centre=0.30001))
    products = np.sign(in_steps(one, SEEDS)) * np.sign(in_steps(other, SEEDS))
    assert abs(products.mean()) < 4 / products.size**0.5


def test_the_signs_of_a_row_are_the_same_for_ever():
    """Whatever numpy is installed: a row's reads mean the same points as when it was written."""
    one = screen(*many(24))
    assert one.id == "s7f385aa825"
    signs = ["".join("-+"[int(up)] for up in in_steps(one, [seed])[0] > 0) for seed in (1, 55, 499_999_999)]
    assert signs == ["--+++--+++-+++++--+-++-+", "+--+-+-+-+----+++++-+--+", "+---++-+---+--++--+-+++-"]
    whole = screen(*many(12, step=1.0, whole=True, centre=0.5, reach=2.5))
    assert [side.tolist() for side in points(whole, 7)] == [
        [3.0, 3.0, 4.0, 2.0, 2.0, 2.0, 4.0, -3.0, 2.0, 4.0, -2.0, -3.0],
        [-3.0, -3.0, -2.0, -2.0, -2.0, -2.0, -2.0, 3.0, -2.0, -2.0, 2.0, 3.0],
    ]


def test_a_payload_comes_back_as_it_was():
    for one in (screen(), screen(shake=Shake.BESIDE), screen(*many(3, whole=True, centre=1))):
        assert decode_screen(decode_json(encode_json(encode_screen(one)))) == one


ROW = ["a", 0.0, 1.0, 0.5, -1.0, 1.0, 0]


@pytest.mark.parametrize(
    "change",
    [
        {"screen": "t0123456789"}, {"screen": "s12"}, {"screen": "s" + "f" * 40}, {"screen": 7}, {"seeds": [1]},
        {"seeds": [5, 5]}, {"seeds": ["a", "b"]}, {"shake": "stirred"}, {"variables": []}, {"variables": [ROW[:-1]]},
        {"variables": [["a", "0", *ROW[2:]]]}, {"variables": [[7, *ROW[1:]]]}, {"variables": [[*ROW[:3], 0, -1, 1, 0]]},
        {"variables": [[*ROW[:4], 2, 1, 0]]}, {"variables": None}, {"seconds": "long"}, {"pairs": 10**400},
        {"census": None},
    ],
)  # fmt: skip
def test_a_payload_of_odd_content_is_bad_data(change):
    with pytest.raises(BadData, match=r"the fleet\.screen/1 payload cannot be read"):
        decode_screen(encode_screen(screen()) | change)
    missing = {key: value for key, value in encode_screen(screen()).items() if key not in change}
    with pytest.raises(BadData):
        decode_screen(missing)


def test_a_screen_off_the_search_seeds_is_refused():
    assert stray_screen(screen()) is None
    assert "they meet the heldout seeds" in stray_screen(screen(seeds=Span(500_000_000, 500_000_010)))


def test_tiny_and_huge_steps_are_played_too():
    for step in (1e-305, 1e-9, 1e300):
        one = screen(replace(AXIS, centre=0.0, reach=step, step=step, low=-9 * step, high=9 * step))
        assert np.isfinite(in_steps(one, [1, 2])).all()
