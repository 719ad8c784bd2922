"""The random parts of self-play: random openings, and plies played at random."""

from __future__ import annotations

from alphazero.game.kernels import kernel
from alphazero.game.randomness import EXPLORATION, OPENING, make_key, uniform


@kernel
def explore(legal_masks, epsilon, after, seed, games, plies, actions, explored):
    """Replaces `actions` at plies that are played at random by any legal one; sets `explored int8[n]` to 1 there.

    Each game from number `after` on has a share of such plies of its own.
    """
    for i in range(len(actions)):
        share = epsilon * uniform(make_key(seed, games[i], 0, EXPLORATION), 0)
        key = make_key(seed, games[i], plies[i], EXPLORATION)
        if games[i] >= after and uniform(key, 1) < share:
            explored[i] = 1
            count = 0
            for action in range(legal_masks.shape[1]):
                count += legal_masks[i, action]
            left = int(uniform(key, 2) * count)
            for action in range(legal_masks.shape[1]):
                if legal_masks[i, action]:
                    if left == 0:
                        actions[i] = action
                    left -= 1
    return explored


def open_games(states, to_play, seed, games, max_plies, legal_mask, plies):
    """Plays up to `max_plies` random plies from every start position; `plies int64[n]` says how many.

    A game that would be over by then begins without any. `legal_mask bool[A]` is scratch space.
    """
    for i in range(len(states)):
        key = make_key(seed, games[i], 0, OPENING)
        plies[i] = int(uniform(key, 0) * (max_plies + 1))
        for ply in range(plies[i]):
            play_at_random(states[i], uniform(key, ply + 1), legal_mask)
            to_play[i] = mover(states[i], following(to_play[i]))
            if is_terminal(states[i]):
                init(states[i])
                to_play[i] = mover(states[i], 0)
                plies[i] = 0
                break
