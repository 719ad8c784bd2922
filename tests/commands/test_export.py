"""`alphazero export`: the ONNX file answers as torch does, in another library, and wrong lines get one sentence."""

from __future__ import annotations

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import alphazero as az
from alphazero.catalogue import registry
from alphazero.commands.publish import export
from alphazero.commands.shared import run_command
from alphazero.errors import NetError
from alphazero.nets import onnx_export


def run_export(*arguments: object) -> int:
    return run_command(export, [str(argument) for argument in arguments])


def test_the_file_answers_as_torch_does(tmp_path, capsys):
    path, game, net = tmp_path / "net.onnx", "connect4", "beginner"
    assert run_export(net, path, "--game", game) == 0
    said = capsys.readouterr().out
    assert f"{path} is written" in said and "in 1,000 positions it differs from torch" in said
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert metadata["game"] == game and json.loads(metadata["card"])["game"] == game
    loaded, rng = az.load_game(game), np.random.default_rng(5)
    positions, position = [], loaded.start()
    while len(positions) < 300:
        positions.append(position)
        position = position.play(int(rng.choice(position.legal_actions)))
        if position.terminal:
            position = loaded.start()
    observations = np.array([position.observation for position in positions], np.float32)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    logits, values = session.run(["policy_logits", "values"], {"observations": observations})
    module = az.load_net(net, loaded, device="cpu").module.eval()
    with torch.inference_mode():
        wanted, wanted_values = module(torch.from_numpy(observations))
    np.testing.assert_allclose(logits, wanted, atol=1e-3)
    np.testing.assert_allclose(values, wanted_values, atol=1e-4)
    assert np.ptp(values) > 0.5 and logits.shape == (300, loaded.num_actions)


def test_the_help_tells_the_game_that_is_taken_without_one(capsys):
    with pytest.raises(SystemExit):
        run_export("--help")
    assert "(default: that of a checkpoint, else connect4)" in " ".join(
        capsys.readouterr().out.replace("│", "").split()
    )


def test_any_module_of_torch_can_be_written(tmp_path):
    class Perceptron(torch.nn.Module):
        def __init__(self, game):
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(18, 8), torch.nn.ReLU())
            self.policy, self.value = torch.nn.Linear(8, game.num_actions), torch.nn.Linear(8, 1)

        def forward(self, observations):
            features = self.body(observations)
            return self.policy(features), torch.tanh(self.value(features))

    game = az.load_game("tictactoe")
    content, largest = onnx_export.to_onnx(az.TorchNet(game, Perceptron(game)), game, {"game": "tictactoe"})
    assert largest < 1e-5
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    for count in (1, 7):
        found = session.run(None, {"observations": np.stack([game.start().observation] * count)})
        assert [array.shape for array in found] == [(count, 9), (count,)]


@pytest.mark.parametrize(
    ("game", "sizes", "moves"),
    [
        ("tictacmo", {"blocks": 1, "channels": 8}, ("", "a1 b2", "c1")),
        ("cantstop3", {"value_units": 16}, ("", "roll 1 1 2 2", "roll 6 5 4 3")),
    ],
)
def test_a_game_for_three_has_three_values(tmp_path, capsys, game, sizes, moves):
    loaded, path = registry.load(game), tmp_path / "net.onnx"
    net = loaded.make_net(loaded.game, sizes)
    net.save(tmp_path / "net.safetensors", {"game": game})
    assert run_export(tmp_path / "net.safetensors", path) == 0
    assert "values [n, 3], each first for the player to move" in capsys.readouterr().out
    observations = np.stack([loaded.game.position(text).observation for text in moves])
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    values = session.run(["values"], {"observations": observations})[0]
    with torch.inference_mode():
        wanted = net.module.eval()(torch.from_numpy(observations))[1]
    assert values.shape == (3, 3)
    np.testing.assert_allclose(values, wanted, atol=1e-4)


def test_a_module_whose_file_onnxruntime_refuses_is_told_so():
    class Squeezing(torch.nn.Module):
        def __init__(self, game):
            super().__init__()
            self.policy, self.value = (torch.nn.Linear(45, size) for size in (game.num_actions, 3))

        def forward(self, observations):
            inputs = observations.flatten(1)
            return self.policy(inputs), torch.tanh(self.value(inputs)).squeeze(1)  # changes nothing in torch

    game = az.load_game("tictacmo")
    with pytest.raises(NetError, match="Squeeze"):
        onnx_export.to_onnx(az.TorchNet(game, Squeezing(game)), game, {})


def test_a_module_that_counts_its_positions_in_python_is_told_so():
    class Counting(torch.nn.Module):
        def __init__(self, game):
            super().__init__()
            self.both = torch.nn.Linear(int(np.prod(game.observation_shape)), game.num_actions + 1)

        def forward(self, observations):
            both = self.both(observations.view(len(observations), -1))
            return both[:, :-1], torch.tanh(both[:, -1])

    game = az.load_game("tictactoe")
    with pytest.raises(
        NetError, match=r"^this network cannot be .* for any number of positions.*x\.shape\[0\] for len"
    ):
        onnx_export.to_onnx(az.TorchNet(game, Counting(game)), game, {})


def test_a_file_that_answers_otherwise_is_refused(monkeypatch):
    loaded = registry.load("tictactoe")
    game = loaded.game
    net = loaded.make_net(game, {"blocks": 1, "channels": 4})
    monkeypatch.setattr(onnx_export, "TOLERANCE", -1.0)
    with pytest.raises(NetError, match="answers differ from torch's by .* which is more than -1"):
        onnx_export.to_onnx(net, game, {})


def test_large_logits_may_differ_as_float32_rounds_but_probabilities_may_not():
    legal = np.ones((1, 2), bool)
    wanted = [np.array([[80.0, -7.0]], np.float32), np.array([0.5], np.float32)]
    near = [np.array([[80.002, -7.0]], np.float32), np.array([0.5], np.float32)]
    assert onnx_export._largest_difference(near, wanted, legal) < onnx_export.TOLERANCE
    wanted[0], near[0] = np.array([[8.0, 8.0]], np.float32), np.array([[8.0, 8.0006]], np.float32)
    assert abs(8.0006 - 8) / 8 < onnx_export.TOLERANCE
    assert onnx_export._largest_difference(near, wanted, legal) == pytest.approx(1.5e-4, rel=0.01)
    wanted[0] = near[0] = np.array([[9.0, 99.0]], np.float32)
    near[1] = np.array([0.5002], np.float32)
    assert onnx_export._largest_difference(near, wanted, legal) == pytest.approx(2e-4, rel=0.01)
    near[1] = np.array([np.nan], np.float32)
    assert np.isnan(onnx_export._largest_difference(near, wanted, legal))


def test_wrong_lines_get_one_sentence(tmp_path, capsys, monkeypatch):
    there = tmp_path / "there.onnx"
    there.write_bytes(b"mine")
    assert run_export("best", there, "--game", "connect4") == 2
    assert "exists already" in capsys.readouterr().err and there.read_bytes() == b"mine"
    assert run_export("nobody", tmp_path / "a.onnx", "--game", "connect4") == 2
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert run_export("club", tmp_path / "a.onnx", "--game", "connect4") == 2
    said = capsys.readouterr().err
    assert "onnxruntime is not installed: pip install onnx onnxruntime onnxscript" in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == [there]
