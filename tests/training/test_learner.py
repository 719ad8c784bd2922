"""The learner: schedule, bounded reuse, failures."""

from __future__ import annotations

import numpy as np
import pytest

from alphazero.errors import TrainingError
from alphazero.game.kernels import Kernels
from alphazero.training.config import LearnerConfig
from alphazero.training.learner import Learner
from alphazero.training.replay_buffer import TrainingSet
from games.tictactoe.game import TicTacToe


class RecordingTrainer:
    """Takes batches and answers planted losses."""

    device = "cpu"

    def __init__(self, losses=lambda step: 1.0):
        self.rates, self.positions, self.loss = [], [], losses
        self.finished = 0

    def trainer(self, **settings):
        """As of the network that it learns for."""
        return self

    def train_step(self, batch, learning_rate):
        self.rates.append(learning_rate)
        self.positions += batch.value_targets.tolist()
        return {"policy_loss": self.loss(len(self.rates)), "value_loss": 0.5}

    def finish(self):
        self.finished += 1


class Auxiliary(RecordingTrainer):
    """Gives a third loss in each second batch."""

    def train_step(self, batch, learning_rate):
        losses = super().train_step(batch, learning_rate)
        return losses | ({"auxiliary": 4.0} if len(self.rates) % 2 == self.last else {})


@pytest.mark.parametrize(("last", "names"), [(0, {"auxiliary": 2.0}), (1, {})])
def test_the_losses_of_the_last_batch_are_told(last, names):
    """A loss that a batch does not give counts as 0 there."""
    trainer = Auxiliary()
    trainer.last = last
    learner = Learner(trainer, LearnerConfig(batch_size=10), seed=0)
    assert learner.learn(training_set(100), 4, 1, 0.0) == {"policy_loss": 1.0, "value_loss": 0.5} | names


def training_set(count: int) -> TrainingSet:
    kernels = Kernels(TicTacToe())
    policies = np.full((count, 9), 1 / 9, np.float32)
    return TrainingSet(kernels, kernels.start_states(count), policies, np.arange(count, dtype=np.float32))


def test_new_samples_are_used_a_bounded_number_of_times():
    learner = Learner(RecordingTrainer(), LearnerConfig(batch_size=100, sample_reuse=2.5), seed=0)
    assert learner.num_updates(1000, 100) == 25  # 2,500 samples drawn for 1,000 new ones
    assert learner.num_updates(1, 100) == 1
    assert learner.num_updates(1000, 60) == 42  # 2,520 where the window has 60 positions, so no larger batches


def test_the_learning_rate_warms_up_holds_and_falls_at_the_end():
    """By hand: peak 0.1 for 70% of the run, then down to 0.02, halfway of it the mean of both; after 4 of 9 warm-up
    updates half the rate."""
    learner = Learner(
        RecordingTrainer(), LearnerConfig(learning_rate=0.1, final_learning_rate=0.02, warmup_updates=9), 0
    )
    assert learner.learning_rate(0.0, 100) == pytest.approx(0.1)
    assert learner.learning_rate(0.7, 100) == pytest.approx(0.1)
    assert learner.learning_rate(0.85, 100) == pytest.approx(0.06)
    assert learner.learning_rate(1.0, 100) == learner.learning_rate(2.0, 100) == pytest.approx(0.02)
    assert learner.learning_rate(0.0, 4) == pytest.approx(0.05)


def test_only_the_first_generation_warms_up():
    config = LearnerConfig(batch_size=4, warmup_updates=5)
    first, later = RecordingTrainer(), RecordingTrainer()
    Learner(first, config, 0).learn(training_set(8), 10, 1, 0.0)
    Learner(later, config, 0).learn(training_set(8), 10, 2, 0.0)
    assert first.rates[0] < first.rates[4] < first.rates[9] and set(later.rates) == {later.rates[0]}


def test_every_position_is_drawn_equally_often_and_the_order_follows_seed_and_generation():
    def order(seed, generation):
        net = RecordingTrainer()
        Learner(net, LearnerConfig(batch_size=4), seed).learn(training_set(12), 6, generation, 0.0)
        return net.positions

    assert sorted(order(0, 1)) == sorted(list(range(12)) * 2)
    assert order(0, 1) == order(0, 1)
    assert len({tuple(order(seed, generation)) for seed in (0, 1) for generation in (1, 2)}) == 4


def test_batches_without_a_finite_loss_are_skipped_and_counted(caplog):
    net = RecordingTrainer(lambda step: float("nan") if step in (2, 3, 6) else 1.0)
    losses = Learner(net, LearnerConfig(batch_size=4), 0).learn(training_set(12), 8, 1, 0.0)
    assert losses == {"policy_loss": 1.0, "value_loss": 0.5}
    assert "3 of 8 batches" in caplog.text and net.finished == 1


def test_losses_on_a_gpu_are_read_now_and_then_and_all_counted(monkeypatch):
    """By hand: losses 1 to 70, read after updates 32, 64 and 70; their mean is 35.5."""
    read = []

    class Waiting(float):
        def __float__(self):
            read.append(len(net.rates))
            return float.__float__(self)

    net, seen = RecordingTrainer(Waiting), []
    net.device = "cuda"
    monkeypatch.setattr("alphazero.training.learner.batches_on", lambda device, source, draws, _: source.batches(draws))
    means = Learner(net, LearnerConfig(batch_size=4), 0).learn(
        training_set(8), 70, 1, 0.0, lambda losses: seen.append(losses.get("policy_loss"))
    )
    assert means["policy_loss"] == 35.5
    assert sorted(set(read)) == [32, 64, 70]
    assert seen[30:32] == [None, 32.0] and seen[-1] == 70.0


def test_three_in_a_row_stop_the_run_with_a_diagnosis():
    net = RecordingTrainer(lambda step: float("inf") if step > 2 else 1.0)
    with pytest.raises(TrainingError, match=r"generation 7.*learner\.learning_rate"):
        Learner(net, LearnerConfig(batch_size=4), 0).learn(training_set(12), 8, 7, 0.0)
    assert len(net.rates) == 5


@pytest.mark.parametrize(("generation", "words"), [(1, "the reason is in the network"), (2, "learner.learning_rate")])
@pytest.mark.parametrize("updates", [2, 10])
def test_a_network_that_never_gave_a_finite_loss_is_blamed_itself(generation, words, updates):
    learner = Learner(RecordingTrainer(lambda step: np.inf), LearnerConfig(batch_size=4), 0)
    with pytest.raises(TrainingError, match=words):
        learner.learn(training_set(40), updates, generation, 0.0)


def test_a_trainer_whose_losses_have_other_names_is_told_so():
    class Other(RecordingTrainer):
        def train_step(self, batch, learning_rate):
            return {"policy": 1.0, "value_loss": 0.5}

    with pytest.raises(TrainingError, match="must return policy_loss and value_loss, and policy_loss is missing"):
        Learner(Other(), LearnerConfig(), seed=0).learn(training_set(8), 1, 1, 0.0)
