"""The libraries that answer for a network: as exact, as repeatable, and chosen as asked."""

from __future__ import annotations

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import alphazero as az
from alphazero.catalogue import registry
from alphazero.errors import InvalidSetting, NetError, RunFolderError, UnknownName
from alphazero.nets import torch_net
from alphazero.nets.any_module import CannotConvert, to_priors
from alphazero.nets.devices import INFERENCE_VARIABLE, describe_inference, say_once, want_inference, wanted_inference
from alphazero.nets.kernels import openvino as inference_openvino
from alphazero.nets.kernels.openvino import NARROW, SIZES, OpenVinoInference, parts_of
from alphazero.nets.torch_net import Inference, TorchNet, fastest
from alphazero.players.contestants import load_net
from games.connect4.game import Connect4
from games.twenty48.game import TILES
from tests.nets.batches import assert_answers_of, exact_answers, played_positions, random_batch, sizes_of

pytest.importorskip("openvino")
INPUTS = int(np.prod(Connect4.observation_shape))
TINY = {
    "net": {"blocks": 1, "channels": 8},
    "search": {"num_simulations": 8},
    "self_play": {"games_per_generation": 16, "num_slots": 8},
    "learner": {"batch_size": 32},
    "gate": {"enabled": False},
    "evaluation": {"opponents": ()},
    "threads": 1,
    "deterministic": True,
    "progress": False,
}


@pytest.fixture(scope="module")
def shared() -> TorchNet:
    """A net of Connect Four, answered for by OpenVINO, for all tests that leave it as it is."""
    net = az.load_net("club", "connect4", inference="openvino")
    assert isinstance(net, TorchNet) and type(net._inference) is OpenVinoInference
    return net


def test_what_plays_is_close_to_float32(shared):
    """bf16 keeps 8 bits: an error of 0.4% of a layer's numbers, a few percent at the end at most."""
    batch = played_positions(1000)
    exact, exact_values = exact_answers(shared, batch)
    priors, values = shared.evaluate(batch.observations, batch.legal_masks)
    prior_errors, value_errors = np.abs(priors - exact).max(axis=1), np.abs(values - exact_values)
    assert prior_errors.mean() < 0.01 and prior_errors.max() < 0.1
    assert value_errors.mean() < 0.01 and value_errors.max() < 0.1


def test_points_are_told_to_more_digits_than_bf16_has():
    """In a game for one two actions differ by less than bf16 rounds away of an answer: 100 points in 30,000."""
    loaded = registry.load("2048")
    net = az.load_net("best", loaded.game, inference="openvino")
    exponents = np.random.default_rng(0).integers(11, size=(500, 16), dtype=np.uint64)
    states = np.zeros((500, loaded.game.state_words), np.uint64)
    states[:, TILES] = (exponents << np.arange(0, 64, 4, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    observations = az.Kernels(loaded.game).observations(states)
    with torch.no_grad():
        exact = net.frozen_float()(torch.from_numpy(observations))[1].numpy()
    _, values = net.evaluate(observations, np.ones((500, 4), bool))
    assert loaded.game.score.points(np.sqrt(np.mean((values - exact) ** 2))) < 100
    assert np.mean(torch.from_numpy(values).bfloat16().float().numpy() != values) > 0.9


@pytest.fixture(scope="module")
def in_float32(shared) -> OpenVinoInference:
    """The same net in float32."""
    return OpenVinoInference(shared.frozen_float(), shared._example, bf16=False)


@pytest.mark.parametrize("count", [1, 71, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 8, 9, 64, 100))])
def test_float32_is_float32_in_batches_of_any_size(shared, in_float32, count):
    batch = random_batch(Connect4(), count, seed=count)
    logits, values = in_float32(batch.observations)
    with torch.no_grad():
        expected, expected_values = shared.frozen_float()(torch.from_numpy(batch.observations))
    np.testing.assert_allclose(logits, expected.numpy(), atol=1e-3, rtol=1e-4)
    np.testing.assert_allclose(values, expected_values.numpy(), atol=1e-4)
    assert logits.dtype == values.dtype == np.float32 and values.shape == (count,)


def test_a_batch_is_cut_into_parts_that_take_the_least_time():
    """Two positions, as in a match of two games, once waited for eight; 54 were once cut into 32, 8, 8, 4 and 2."""
    assert [parts_of(count, 3, 32) for count in (0, 1, 2, 3, 5, 9, 12, 22, 26)] == [
        (), (1,), (2,), (4,), (8,), (8, 1), (4, 4, 4), (8, 8, 8), (32,)
    ]  # fmt: skip
    rests = 1, 16, 17, 24, 25
    assert [parts_of(32 + rest, 3, 32)[1:] for rest in rests] == [(1,), (8, 8), (8, 8, 1), (8, 8, 8), (32,)]
    assert [parts_of(32 + rest, 8, 32)[1:] for rest in rests] == [(1,), (8, 8), (32,), (32,), (32,)]
    assert [parts_of(count, 8, 128) for count in (100, 115, 160)] == [(32, 32, 32, 4), (128,), (128, 32)]
    assert sum(parts_of(1_000_000, 8, 32)) == 1_000_000


@pytest.mark.parametrize(("before", "new_size", "most"), [((), 3, 32), ((32,), 8, 32), ((), 8, 128), ((128,), 3, 128)])
def test_no_other_parts_take_less_time(before, new_size, most):
    """Against all ways of at most five calls, in any order: a row each call, `new_size` for each of another size."""

    def cost(parts):
        changes = sum(a != b for a, b in itertools.pairwise((*(before or (0,)), *parts)))
        return sum(parts) + len(parts) + new_size * changes

    sizes = [size for size in SIZES if size <= most]
    ways = [parts for calls in range(1, 6) for parts in itertools.product(sizes, repeat=calls)]
    for count in range(1, most + 1, most // 32):
        ours = parts_of(sum(before) + count, new_size, most)[len(before) :]
        assert sum(ours) >= count
        assert cost(ours) <= min(cost(parts) for parts in ways if sum(parts) >= count)


@pytest.mark.parametrize("channels", [8, NARROW // 42, NARROW // 42 + 1])
def test_a_network_with_few_numbers_in_a_layer_is_asked_about_more_positions_at_once(channels):
    """Connect Four has 42 squares."""
    net = registry.load("connect4").make_net(Connect4(), {"blocks": 1, "channels": channels})
    assert isinstance(net, TorchNet)
    made = OpenVinoInference(net.frozen_float(), net._example, bf16=False)
    made(np.zeros((128, *Connect4.observation_shape), np.float32))
    asked = [size for size, idle in made._idle.items() if idle]
    assert asked == [128 if 42 * channels <= NARROW else 32]


@pytest.mark.parametrize(
    ("amx", "bf16", "sizes"), [(False, True, [8, 8, 1]), (True, True, [32]), (True, False, [8, 8, 1])]
)
def test_a_processor_with_amx_fills_parts_up_sooner(shared, monkeypatch, amx, bf16, sizes):
    """A row takes a tenth of the time there, and loading weights as long as elsewhere."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": amx})
    monkeypatch.setattr(OpenVinoInference, "_take_over", lambda self, module: setattr(self, "_most", 32))
    monkeypatch.setattr(OpenVinoInference, "set_weights", lambda self, module: None)
    asked: list[int] = []

    def compiled(self: OpenVinoInference, size: int, precision: str) -> SimpleNamespace:
        asked.append(size)
        rows, logits, values = np.zeros((size, 1), np.float32), np.zeros((size, 7)), np.zeros(size)
        return SimpleNamespace(rows=rows, logits=logits, values=values, request=SimpleNamespace(infer=lambda: None))

    made = OpenVinoInference(shared.module, shared._example, bf16)
    monkeypatch.setattr(OpenVinoInference, "_compile", compiled)
    logits, values = made(np.zeros((32 + 17, 1), np.float32))
    assert asked == list(dict.fromkeys([32, *sizes])) and len(logits) == len(values) == 49  # each is kept


def test_priors_are_a_softmax_over_the_legal_actions():
    """Against torch, in float64; a row without legal actions, huge logits, and numbers that are none."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 30, (200, 9)).astype(np.float32)
    masks, values = rng.random((200, 9)) < 0.5, rng.normal(0, 1, 200).astype(np.float32)
    masks[0], masks[1] = False, np.arange(9) == 4
    expected = torch.softmax(torch.from_numpy(logits).double().masked_fill(~torch.from_numpy(masks), -1e9), dim=1)
    cut = values.clip(-1, 1)
    to_priors(logits, values, masks)
    np.testing.assert_allclose(logits[1:], expected[1:].numpy() * masks[1:], atol=1e-6)
    assert not logits[~masks].any() and logits[1, 4] == 1
    np.testing.assert_array_equal(values, cut)
    for wrong in (np.nan, np.inf):
        broken, value = np.array([[0.0, wrong, 1.0]], np.float32), np.array([wrong], np.float32)
        to_priors(broken, value, np.ones((1, 3), bool))
        assert np.isnan(broken).any() and (np.isnan(value[0]) if np.isnan(wrong) else value[0] == 1)


@pytest.mark.parametrize("library", ["torch", "winograd"])
def test_legal_masks_fit_the_observations(library):
    """Compiled code read beyond the end of masks with fewer rows, and knew one type alone."""
    net, batch = az.load_net("club", "connect4", inference=library), random_batch(Connect4(), 4)
    whole, _ = net.evaluate(batch.observations, batch.legal_masks)
    np.testing.assert_array_equal(net.evaluate(batch.observations, batch.legal_masks.astype(np.float32))[0], whole)
    assert [x.shape for x in net.evaluate(batch.observations[:0], batch.legal_masks[:0])] == [(0, 7), (0,)]
    with pytest.raises(NetError, match=r"legal masks must have the policy's shape \[4, 7\], not \[2, 7\]"):
        net.evaluate(batch.observations, batch.legal_masks[:2])


def test_the_same_batch_has_the_same_answers_in_every_thread(shared):
    batch = random_batch(Connect4(), 75, seed=1)
    first = shared.evaluate(batch.observations, batch.legal_masks)
    with ThreadPoolExecutor(4) as pool:
        for answers in pool.map(lambda _: shared.evaluate(batch.observations, batch.legal_masks), range(12)):
            for one, other in zip(first, answers, strict=True):
                np.testing.assert_array_equal(one, other)


def test_threads_that_come_and_go_use_the_same_compiled_networks(shared, in_float32, monkeypatch):
    """Every part of a generation has threads of its own, each of which once compiled all sizes again."""
    inference, compiled = in_float32, []
    inference.set_weights(shared.frozen_float())
    compile_one = inference._compile
    monkeypatch.setattr(inference, "_compile", lambda size, how: (compiled.append(size), compile_one(size, how))[1])
    planes, before = np.zeros((40, *Connect4.observation_shape), np.float32), None
    for _ in range(2):
        with ThreadPoolExecutor(1) as pool:
            answers = pool.submit(inference, planes).result()
        assert compiled == [32, 8]
        for one, other in zip(before or answers, answers, strict=True):
            np.testing.assert_array_equal(one, other)
        before = answers
    inference.set_weights(shared.frozen_float())
    inference(planes)
    assert compiled == [32, 8] * 2, "new weights are compiled"


def test_new_weights_answer_at_once():
    batch, club = random_batch(Connect4(), 40, seed=2), az.load_net("club", "connect4", inference="openvino")
    before, _ = club.evaluate(batch.observations, batch.legal_masks)
    with torch.no_grad():
        club.module.policy.weight.mul_(0.5)
    club.freeze()
    exact, _ = exact_answers(club, batch)
    priors, _ = club.evaluate(batch.observations, batch.legal_masks)
    assert np.abs(priors - exact).max() < 0.1 < np.abs(before - exact).max()


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("connect4", {"lines": 16, "blocks": 1}),
        *(pytest.param(name, sizes_of(name), marks=pytest.mark.slow) for name in registry.NAMES),
    ],
)
def test_networks_are_converted_once(monkeypatch, name, sizes):
    """Each conversion would leave two megabytes behind, in every generation of a run."""
    loaded, modules = registry.load(name), []
    for seed in range(3):
        torch.manual_seed(seed)
        net = loaded.make_net(loaded.game, sizes)
        for parameter in net.module.parameters():
            nn.init.normal_(parameter, 0, 0.1)
        modules.append(net.frozen_float())
    inference = OpenVinoInference(modules[0], net._example, bf16=False)
    converted, convert = [], OpenVinoInference._convert
    monkeypatch.setattr(OpenVinoInference, "_convert", lambda self, x: converted.append(x) or convert(self, x))
    observations = random_batch(loaded.game, 20).observations
    for module in modules:
        inference.set_weights(module)
        assert_answers_of(module, inference, observations)
    assert converted == []


class TwoLayers(nn.Module):
    """A layer for the policy and one for the value, after a change of the observations."""

    def __init__(self, change=lambda module, x: x, **weights):
        super().__init__()
        self.policy, self.value, self.change = nn.Linear(INPUTS, 7), nn.Linear(INPUTS, 1), change
        for name, weight in weights.items():
            setattr(self, name, nn.Parameter(weight))

    def forward(self, observations):
        x = self.change(self, observations.flatten(1))
        return self.policy(x), torch.tanh(self.value(x)).squeeze(1)


def silenced(module: TwoLayers) -> TwoLayers:
    """Begins with zeros, which hide what is computed before them."""
    for layer in (module.policy, module.value):
        nn.init.zeros_(layer.weight)
    return module


def turned(module, x):
    """Uses a weight in another form."""
    return linear(linear(x, module.weight.flip(0)), module.weight.flip(0).T)


def gated(module, x):
    """A gate, which is 0 at first, hides that a weight is used as it is and turned."""
    return x + module.gate * linear(linear(x, module.weight).relu(), module.weight.t())


def by_numpy(module, x):
    """Computes outside of torch, where OpenVINO sees the result alone."""
    return x * (1 + float(x.float().numpy().mean()))


linear = nn.functional.linear
OUTSIDE = "it computes something outside of torch"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(lambda: TwoLayers(turned, weight=torch.randn(16, INPUTS)), OUTSIDE, marks=pytest.mark.slow),
        (lambda: TwoLayers(gated, gate=torch.zeros(1), weight=torch.randn(16, INPUTS)), OUTSIDE),
        (lambda: silenced(TwoLayers(by_numpy)), OUTSIDE),
        (lambda: TwoLayers(lambda _, x: torch.special.bessel_j0(x.float()).to(x.dtype)), "cannot convert"),
    ],
    ids=["turned", "gated", "silent", "unknown"],
)
def test_a_module_that_would_be_answered_for_wrongly_stays_with_torch(monkeypatch, make, reason):
    """Some passed with their first weights and were answered for wrongly once they had learned."""
    said = list[str]()
    monkeypatch.setattr(torch_net, "LIBRARIES", (OpenVinoInference,))
    monkeypatch.setattr(torch_net, "say_once", said.append)
    assert TorchNet(Connect4(), make()).use_inference("auto") == "torch"
    assert len(said) == 1 and "TwoLayers" in said[0] and reason in said[0]


class Tables(TwoLayers):
    """Looks cells up in two tables of one shape, and hides cells by two masks of one shape."""

    def __init__(self, shift):
        super().__init__()
        _, height, width = Connect4().observation_shape
        cells = torch.arange(height * width)
        self.register_buffer("up", cells.flip(0))
        self.register_buffer("aside", cells.roll(shift))
        self.register_buffer("rows", cells % 2 == 0)
        self.register_buffer("columns", cells % 3 == 0)

    def forward(self, observations):
        x = observations.flatten(2)
        up, aside = torch.index_select(x, 2, self.up), torch.index_select(x, 2, self.aside)
        x = (up.masked_fill(self.rows, 0.0) + aside.masked_fill(self.columns, 0.0)).flatten(1)
        return self.policy(x), torch.tanh(self.value(x)).squeeze(1)


def test_tables_of_whole_numbers_and_masks_are_not_confused(monkeypatch):
    """Random numbers, by which weights are found, are all 0 as whole numbers and all true in masks."""
    observations = random_batch(Connect4(), 5).observations
    first, learned, other = (Tables(shift).eval() for shift in (1, 1, 5))
    inference = OpenVinoInference(first, torch.from_numpy(observations), bf16=False)
    converted, convert = [], OpenVinoInference._convert
    monkeypatch.setattr(OpenVinoInference, "_convert", lambda self, x: converted.append(x) or convert(self, x))
    for module, conversions in ((first, 0), (learned, 0), (other, 1)):
        inference.set_weights(module)
        assert_answers_of(module, inference, observations)
        assert len(converted) == conversions, "other tables need another network"


def test_without_the_library_torch_answers(monkeypatch):
    club = az.load_net("club", "connect4", inference="torch")

    def missing():
        raise CannotConvert("OpenVINO is not installed: ...")

    monkeypatch.setattr(inference_openvino, "_openvino", missing)
    monkeypatch.setattr(torch_net, "LIBRARIES", (OpenVinoInference,))
    assert club.use_inference("auto") == "torch"
    with pytest.raises(CannotConvert, match="not installed"):
        club.use_inference("openvino")


LOAD = """
import sys, threading, warnings
import torch
from alphazero.nets.kernels.openvino import OpenVinoInference

OpenVinoInference._take_over = OpenVinoInference.set_weights = lambda self, module: None
barrier, found, before = threading.Barrier(4), [], list(warnings.filters)

def load():
    barrier.wait()
    found.append(OpenVinoInference(None, torch.zeros(1), False))

threads = [threading.Thread(target=load) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found), len({id(made._core) for made in found}), warnings.filters == before)
from openvino.tools.ovc import convert_impl
print(convert_impl.tm.__name__, sys.modules['openvino_telemetry'])
"""


def test_nobody_is_told_what_is_converted(monkeypatch):
    """The library's telemetry is shut out before the library is imported."""
    seen = list[object]()

    def imported(name):
        seen.append(sys.modules["openvino_telemetry"])
        return SimpleNamespace(Core=lambda: name)

    monkeypatch.delitem(sys.modules, "openvino_telemetry", raising=False)
    monkeypatch.setattr(inference_openvino.importlib, "import_module", imported)
    assert inference_openvino._openvino.__wrapped__()[1] == "openvino" and seen == [None, None]


@pytest.mark.slow
def test_threads_may_load_openvino_at_the_same_time():
    """All but the first once raised KeyError, and the program's warnings were silenced for good."""
    shown = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, timeout=120)
    assert shown.stdout.split() == ["4", "1", "True", "openvino.tools.ovc.telemetry_stub", "None"], shown.stderr


class Timed:
    """A library that takes so many seconds for each batch, by a clock of its own."""

    now = 0.0

    def __init__(self, name: str, seconds: float):
        self.name, self.seconds = name, seconds

    def __call__(self, observations):
        Timed.now += self.seconds


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(torch_net, "time", SimpleNamespace(perf_counter=lambda: Timed.now))


@pytest.mark.parametrize(("chosen", "amx"), [("torch", False), ("openvino", True)])
def test_the_fastest_one_is_chosen(monkeypatch, chosen, amx):
    """With AMX a net of bf16 is not tried in float32."""
    seen: list[Inference] = []

    def choose(libraries, *others):
        seen.extend(libraries)
        return next((library for library in libraries if library.name == chosen), None)

    net = az.load_net("beginner", "connect4", inference="torch")
    monkeypatch.setattr(torch_net, "has_amx", lambda: amx)
    monkeypatch.setattr(torch_net, "fastest", choose)
    assert net.use_inference("auto") == chosen
    assert [other.name for other in seen] == ["openvino", "winograd"][: 1 if amx and net.dtype == torch.bfloat16 else 2]
    assert net.use_inference("torch") == "torch"
    with pytest.raises(UnknownName, match="int8"):
        net.use_inference("int8")


PLANES = np.zeros((1, 1, 1, 1), np.float32)


def test_the_choice_is_measured(clock):
    slow, fast = Timed("slow", 0.1), Timed("fast", 0)
    torchs = Timed("torch", 0.02)
    assert fastest([slow], torchs, PLANES) is None
    assert fastest([slow, fast], torchs, PLANES) is fastest([fast, slow], torchs, PLANES) is fast


def test_a_library_that_fails_at_its_first_batch_is_left_out(clock, caplog):
    """Compiling needs memory, of which there may be none; torch does not compile."""
    caplog.set_level("INFO")

    class Broken(Timed):
        def __call__(self, observations):
            raise RuntimeError("can't alloc")

    broken, slow = Broken("broken", 0), Timed("slow", 0.1)
    assert fastest([broken, slow], Timed("torch", 0.02), PLANES) is None
    assert caplog.messages == ["broken does not run here (can't alloc); another library answers"]
    with pytest.raises(RuntimeError, match="can't alloc"):
        fastest([], broken, PLANES)


def test_players_say_once_which_library_runs_their_networks(monkeypatch, caplog):
    caplog.set_level("INFO")
    say_once.cache_clear()
    monkeypatch.setenv(INFERENCE_VARIABLE, "winograd")
    for name in ("beginner", "club"):
        load_net(name, registry.load("connect4"), "cpu")
    assert caplog.messages == [f"networks run with {describe_inference('winograd')}"]


def test_the_environment_and_the_option_choose(monkeypatch):
    monkeypatch.setenv(INFERENCE_VARIABLE, "onnx")
    with pytest.raises(InvalidSetting, match="ALPHAZERO_INFERENCE must be one of auto, torch, openvino, winograd, not"):
        wanted_inference()
    want_inference("openvino")
    assert wanted_inference() == "openvino"
    with pytest.raises(UnknownName, match="openvino"):
        want_inference("openvinno")


def test_a_run_keeps_its_library(tmp_path, monkeypatch):
    monkeypatch.setenv(INFERENCE_VARIABLE, "torch")
    az.train("tictactoe", generations=1, folder=tmp_path / "run", **TINY)
    monkeypatch.setenv(INFERENCE_VARIABLE, "openvino")
    with pytest.raises(RunFolderError, match="openvino"):
        az.train("tictactoe", generations=2, folder=tmp_path / "run", resume=True, **TINY)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["openvino", "winograd"])
def test_a_resumed_run_equals_one_that_was_not_interrupted(tmp_path, monkeypatch, library):
    monkeypatch.setenv(INFERENCE_VARIABLE, library)
    whole = az.train("tictactoe", generations=2, folder=tmp_path / "whole", **TINY)
    az.train("tictactoe", generations=1, folder=tmp_path / "parts", **TINY)
    monkeypatch.setenv(INFERENCE_VARIABLE, "auto")
    parts = az.train("tictactoe", generations=2, folder=tmp_path / "parts", resume=True, **TINY)
    for name in ("generation_0002.safetensors", "replay_0002.npz"):
        assert (whole.folder / name).read_bytes() == (parts.folder / name).read_bytes()
