"""Protections of the search, of learning, of matches, and of what runs and settings hold."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

ARENA, T_ARENA = "alphazero/matches/arena.py", "tests/matches/test_arena.py::"
BACKUP = "alphazero/search/backup.py"
CHECKPOINT, T_CHECKPOINT = "alphazero/storage/checkpoint.py", "tests/storage/test_checkpoint.py::"
GATE, T_COACH = "alphazero/training/parts/gate.py", "tests/training/test_coach.py::"
T_CONTRACT = "tests/game/test_game_contract.py::"
T_DAMAGE = "tests/storage/test_damage.py::"
EVALUATOR, T_EVALUATOR = "alphazero/search/evaluator.py", "tests/search/test_evaluator.py::"
T_FOLDER = "tests/storage/test_run_folder.py::"
GAME = "alphazero/game/game.py"
T_KNOWN = "tests/search/test_known_games.py::"
T_MCTS = "tests/search/test_mcts.py::"
REPLAY, T_REPLAY = "alphazero/training/replay_buffer.py", "tests/training/test_replay_buffer.py::"
ROOTS = "alphazero/search/roots.py"
RUN_FOLDER = "alphazero/storage/run_folder.py"
RESUME = "alphazero/training/parts/resume.py"
SELECTION = "alphazero/search/selection.py"
T_SELFPLAY = "tests/training/test_selfplay.py::"
T_TRAIN = "tests/commands/test_train.py::"
T_TREE = "tests/search/test_tree.py::"

PLAYING = [
    # --- the search
    Mutation(
        "a value changes its sign from child to parent", BACKUP,
        "            value = -value\n", "            value = value\n",
        T_KNOWN + "test_a_win_in_one_gets_most_visits",
    ),
    Mutation(
        "a visit under way has no value yet", BACKUP,
        "visits = tree.visits[b, node, action] - tree.in_flight[b, child]", "visits = tree.visits[b, node, action]",
        T_MCTS + "test_no_walk_under_way_stays_behind",
    ),
    Mutation(
        "a walk that met another one is undone", BACKUP,
        "        undo(tree, b, -2 - leaf)\n", "        pass\n",
        T_MCTS + "test_no_walk_under_way_stays_behind",
    ),
    Mutation(
        "illegal actions have no prior", BACKUP,
        "            tree.prior[b, node, action] = ILLEGAL\n", "            tree.prior[b, node, action] = ZERO\n",
        "tests/reliability/test_m1_search.py::test_visits_values_and_policies_keep_their_bounds",
    ),
    Mutation(
        "priors sum to 1", BACKUP,
        "scale = ONE / total if total > ZERO else ZERO", "scale = ONE",
        T_MCTS + "test_priors_of_any_sum_make_the_same_search",
    ),
    Mutation(
        "an action that is not proven leaves its position unproven", BACKUP,
        "                best = UNPROVEN\n", "                pass\n",
        T_KNOWN + "test_proven_values_are_those_of_minimax",
    ),
    Mutation(
        "exploration grows with the root of the visits", SELECTION,
        "weight = c_puct * np.float32(math.sqrt(node_visits))", "weight = c_puct * np.float32(node_visits)",
        T_TREE + "test_the_best_puct_score_is_chosen",
    ),
    Mutation(
        "proven losses are not played", ROOTS,
        "worthy = known == 1 if best == 1 else known != -1 or best == -1", "worthy = True",
        T_KNOWN + "test_the_only_block_gets_most_visits",
    ),
    Mutation(
        "a mirrored position's answer is turned back", EVALUATOR,
        "own = permutations[symmetry, action]", "own = action",
        T_EVALUATOR + "test_mirrored_positions_get_mirrored_answers",
    ),
    # --- learning and its games
    Mutation(
        "the policy is turned with the position", REPLAY,
        "policies = np.take_along_axis(samples.policies, kernels.symmetries[1][symmetries], axis=1)",
        "policies = samples.policies",
        T_REPLAY + "test_the_policy_is_turned_with_its_position",
    ),
    Mutation(
        "a random symmetry turns the mask as well", REPLAY,
        "masks, policies = (np.take_along_axis(array, actions, axis=1) for array in (masks, policies))",
        "policies = np.take_along_axis(policies, actions, axis=1)",
        T_REPLAY + "test_a_symmetry_turns_observation_mask_and_policy_alike",
    ),
    Mutation(
        "old samples leave the window", REPLAY,
        "            self.generations.popleft()\n", "            break\n",
        T_REPLAY + "test_the_oldest_generations_leave",
    ),
    Mutation(
        "a candidate below the gate's threshold does not take over", GATE,
        '"promoted": result.score >= threshold or not played,', '"promoted": True,',
        T_COACH + "test_a_candidate_below_the_threshold_does_not_take_over",
    ),
    Mutation(
        "a run ends with the stronger net", GATE,
        "(num_games + 1) / (2 * num_games)) if last", "0.55) if last",
        T_COACH + "test_a_run_ends_with_the_stronger_net",
    ),
    Mutation(
        "the gate stops only when it is certain", "alphazero/matches/result.py",
        "best = (self.points + num_games - self.num_games) / num_games", "best = self.score",
        T_ARENA + "test_stopping_early_never_changes_the_verdict",
    ),
    Mutation(
        "a result is handed back with the sign of each player", "alphazero/training/selfplay/value_targets.py",
        "np.where(mover == player, target, -target)", "-target",
        T_SELFPLAY + "test_outcomes_where_a_player_moves_twice",
    ),
    # --- matches and games
    Mutation(
        "both games of a pair have one opening", ARENA,
        "self._opening_of(game // 2)", "self._opening_of(game)",
        T_ARENA + "test_openings_come_in_pairs_with_the_players_swapped",
    ),
    Mutation(
        "the players swap colours", ARENA,
        "return self._to_play ^ (self._games & 1)", "return self._to_play ^ 0",
        "tests/reliability/test_m2_matches.py::test_two_hundred_games_are_balanced_paired_and_distinct",
    ),
    Mutation(
        "an illegal action stops a match, and is not mended", ARENA,
        "raise IllegalAction(\n"
        '                f"{player.name} chose {actions[wrong]} after {listed(history)}, which is not a legal action"\n'
        "            )\n",
        "actions = np.where(allowed, actions, legal_masks.argmax(axis=1))\n",
        T_ARENA + "test_an_illegal_action_stops_the_match",
    ),
    Mutation(
        "openings are all different", "alphazero/matches/openings.py",
        "        if position.ply == plies and not position.terminal:\n            yield position",
        "        if position.ply == plies and not position.terminal:\n            yield position\n"
        "            yield position",
        "tests/matches/test_openings.py::test_openings_are_all_there_are_and_no_two_are_mirror_images",
    ),
    Mutation(
        "an illegal action is refused by a position", GAME,
        "if not 0 <= action < self.game.num_actions or not self.legal_mask[action]:", "if False:",
        T_CONTRACT + "test_illegal_actions_are_refused_with_the_legal_ones_named",
    ),
    Mutation(
        "a position is read-only", GAME,
        "        state.setflags(write=False)\n", "        pass\n",
        T_CONTRACT + "test_a_position_is_read_only",
    ),
    Mutation(
        "settings lie within their limits", "alphazero/settings.py",
        "if number and lowest <= value <= highest:", "if number:",
        "tests/test_settings.py::test_a_value_outside_its_limits_is_refused",
    ),
    Mutation(
        "a mistake ends with exit code 2 and one sentence", "alphazero/commands/shared.py",
        '                print("error: " + printable(" ".join(str(error).split())), file=sys.stderr)\n'
        "                return 2\n",
        "                raise\n",
        "tests/commands/test_program.py::test_a_wrong_word_gets_one_sentence",
    ),
    Mutation(
        "the settings of a run start no code in Python", "alphazero/training/run.py",
        "        config, left_out = _without_code(config_from_dict(",
        "        config, left_out = (lambda x: (x, []))(config_from_dict(",
        "tests/training/test_run.py::test_the_settings_of_a_strangers_run_start_no_code_in_python",
    ),
    Mutation(
        "a run folder sends nothing to wandb by itself", "alphazero/training/run.py",
        "    if wandb:\n        return [Wandb(",
        "    if wandb or (run.path / WANDB_FILE).exists():\n        return [Wandb(",
        "tests/training/test_trackers.py::test_a_run_folder_sends_nothing_anywhere_by_itself",
    ),
    Mutation(
        "TensorBoard writes through no link", "alphazero/training/parts/trackers.py",
        "        if self._folder.is_symlink():\n", "        if False:\n",
        "tests/training/test_trackers.py::test_tensorboard_gets_no_figures_through_a_link",
    ),
    Mutation(
        "wandb writes through no link", "alphazero/training/parts/trackers.py",
        "            if (folder / name).is_symlink():\n", "            if False:\n",
        "tests/training/test_trackers.py::test_wandb_does_not_begin_through_a_link",
    ),
    Mutation(
        "a replay has no more samples than the settings allow", RESUME,
        "min(count, most)", "count",
        "tests/training/test_hostile_runs.py::test_a_replay_holds_no_more_samples_than_the_settings_allow",
    ),
    Mutation(
        "a manifest does not say how many games in progress may be read", RESUME,
        "min(saved.slots, lineup.most_games)", "saved.slots",
        "tests/training/test_hostile_runs.py::test_games_in_progress_are_no_more_than_the_settings_allow",
    ),
    Mutation(
        "damaged games of a cluster are moved aside", "alphazero/training/parts/inbox.py",
        'renamed to %s", error, move_aside(path, "damaged")', 'renamed to %s", error, path.unlink()',
        "tests/training/test_inbox.py::test_damaged_games_are_moved_aside",
    ),
    Mutation(
        "games of a cluster that cannot be read stay where they are", "alphazero/training/parts/inbox.py",
        "and it stays where it is\", error)\n", "and it stays where it is\", error)\n            path.unlink()\n",
        "tests/training/test_inbox.py::test_a_file_that_cannot_be_read_now_stays_where_it_is",
    ),
    Mutation(
        "no more games of a cluster are read than the settings allow", "alphazero/training/parts/inbox.py",
        "raw_bytes(game, most_games * game.max_plies, most_games) + HEADER_BYTES)", "1 << 40)",
        "tests/training/test_inbox.py::test_no_more_is_read_than_the_settings_allow",
    ),
    Mutation(
        "a file of another size than its manifest says is not hashed", RUN_FOLDER,
        "if expected_bytes in (None, num_bytes) else \"\"", "or expected_bytes",
        T_DAMAGE + "test_a_file_of_another_size_is_not_hashed",
    ),
    Mutation(
        "a file of absurd size is not hashed", RUN_FOLDER,
        "        if num_bytes > most:\n", "        if False:\n",
        T_DAMAGE + "test_a_manifest_that_vouches_for_an_absurd_file_is_passed_over_unread",
    ),
    Mutation(
        "weights of more bytes than the net that is expected are not read", CHECKPOINT,
        "            if num_bytes > most_bytes + MAX_HEADER_BYTES + 8:\n", "            if False:\n",
        T_CHECKPOINT + "test_a_file_of_more_bytes_than_the_expected_net_has_is_refused_before_it_is_read",
    ),
    Mutation(
        "weights of other bytes than their header announces are not read", CHECKPOINT,
        "    if len(header) + announced != num_bytes:\n", "    if False:\n",
        T_CHECKPOINT + "test_a_sparse_file_is_refused_before_it_is_read",
    ),
    Mutation(
        "sizes on a card count with the board", "alphazero/nets/resnet.py",
        "height * width * outputs)", "outputs)",
        "tests/players/test_contestants.py::test_sizes_on_a_card_are_held_against_the_file_with_the_board",
    ),
    Mutation(
        "a damaged net is refused before one is made", "alphazero/players/contestants.py",
        "    check_weights(path)", "    pass",
        "tests/players/test_contestants.py::test_a_file_that_is_damaged_is_refused_before_its_net_is_made",
    ),
    Mutation(
        "a run without a net does not say how large it is", "alphazero/training/run.py",
        "    check_sizes(config.net_settings, loaded)", "    pass",
        "tests/training/test_hostile_runs.py::test_a_run_without_a_net_does_not_say_how_large_it_is",
    ),
    Mutation(
        "settings are those that the manifest names", RUN_FOLDER,
        "        if not named or found in named:\n", "        if True:\n",
        T_FOLDER + "test_settings_are_those_that_the_manifest_names",
    ),
    Mutation(
        "while settings change, a manifest names both", RUN_FOLDER,
        'manifest["settings"] = sorted({before, after})', 'manifest["settings"] = [after]',
        T_FOLDER + "test_a_kill_while_settings_change_leaves_a_run_that_goes_on",
    ),
    Mutation(
        "settings of an older run are sealed when it goes on", "alphazero/training/run.py",
        "                run.write_config(settings if changed else run.config)\n",
        "                if changed:\n                    run.write_config(settings)\n",
        T_TRAIN + "test_a_run_of_an_older_version_is_sealed_when_it_goes_on",
    ),
    Mutation(
        "figures that cannot be used do not stop a run that begins", "alphazero/storage/metrics_file.py",
        "        _go_on_without(path, error)\n        return\n", "        raise\n",
        "tests/storage/test_metrics_file.py::test_metrics_that_cannot_be_used_are_moved_aside",
    ),
    Mutation(
        "damaged figures take the place of nothing", "alphazero/storage/metrics_file.py",
        "if not os.path.lexists(path.with_name(name))", "if True",
        "tests/storage/test_metrics_file.py::test_what_lies_where_damaged_lines_go_stays",
    ),
    Mutation(
        "no list of millions of lines is made", "alphazero/storage/metrics_file.py",
        "    if (count := content.count(b\"\\n\")) > MAX_METRICS_LINES:\n", "    if (count := 0):\n",
        "tests/storage/test_metrics_file.py::test_readers_keep_no_list_of_millions_of_damaged_lines",
    ),
    Mutation(
        "a run whose figures are full goes on", "alphazero/storage/metrics_file.py",
        "    if content and (", "    if False and (",
        "tests/storage/test_metrics_file.py::test_a_run_whose_metrics_are_full_begins_new_ones",
    ),
]  # fmt: skip
