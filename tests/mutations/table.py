"""The protections of this program: for each, the edit that removes it and the test that must then fail."""

from __future__ import annotations

from typing import NamedTuple

FILES, RUN_FOLDER = "alphazero/storage/files.py", "alphazero/storage/run_folder.py"
CHECKPOINT, LOCK = "alphazero/storage/checkpoint.py", "alphazero/storage/folder_lock.py"
ARRAYS = "alphazero/storage/arrays.py"
CACHE, EVALUATOR = "alphazero/storage/kernel_cache.py", "alphazero/search/evaluator.py"
BACKUP, SELECTION, ROOTS = "alphazero/search/backup.py", "alphazero/search/selection.py", "alphazero/search/roots.py"
ARENA, COACH, LEARNER = "alphazero/matches/arena.py", "alphazero/training/coach.py", "alphazero/training/learner.py"
RUN_STATE, REPLAY = "alphazero/training/run_state.py", "alphazero/training/replay_buffer.py"
TRAINER, GAME = "alphazero/nets/torch_trainer.py", "alphazero/game/game.py"

TOURNAMENT, T_TOURNAMENT = "alphazero/tournaments/folder.py", "tests/tournaments/test_tournament.py::"
GTP, T_GTP = "alphazero/players/gtp_player.py", "tests/players/test_gtp_player.py::"
OPENSPIEL, T_OPENSPIEL = "alphazero/game/adapters/openspiel.py", "tests/game/test_openspiel.py::"
T_FILES, T_ARRAYS = "tests/storage/test_files.py::", "tests/storage/test_arrays.py::"
T_FOLDER, T_DAMAGE, T_LOCK = (f"tests/storage/test_{name}.py::" for name in ("run_folder", "damage", "lock"))
T_CHECKPOINT, T_CACHE = "tests/storage/test_checkpoint.py::", "tests/storage/test_kernel_cache.py::"
T_SECOND, T_TRAIN = "tests/reliability/test_second_lines.py::", "tests/commands/test_train.py::"
T_MCTS, T_TREE, T_EVALUATOR, T_KNOWN = (
    f"tests/search/test_{name}.py::" for name in ("mcts", "tree", "evaluator", "known_games")
)
T_ARENA, T_COACH, T_CONTRACT = (
    "tests/matches/test_arena.py::", "tests/training/test_coach.py::", "tests/game/test_game_contract.py::",
)  # fmt: skip
T_REPLAY, T_LEARNER = "tests/training/test_replay_buffer.py::", "tests/training/test_learner.py::"
T_TRAINER, T_SELFPLAY = "tests/nets/test_torch_trainer.py::", "tests/training/test_selfplay.py::"


class Mutation(NamedTuple):
    """One place of the source, changed so that one protection is gone."""

    protection: str
    file: str
    old: str
    """The text that is replaced; it occurs exactly once in the file."""
    new: str
    test: str
    """The test that then fails, as pytest takes it; without its parameters, all of them are run."""


MUTATIONS = [
    # --- writing
    Mutation(
        "a file is on disk before it takes its place", FILES,
        "            os.fsync(file.fileno())\n        fault_point(\"write.after\")",
        "        fault_point(\"write.after\")",
        T_SECOND + "test_a_file_is_on_disk_before_it_takes_its_place_and_its_name_after",
    ),
    Mutation(
        "the name of a file is on disk when a write returns", FILES,
        "        _sync_folder(path.parent)\n    except OSError as error:\n"
        "        raise StorageError(_cannot_write(path, len(content), error)) from error\n    finally:",
        "    except OSError as error:\n"
        "        raise StorageError(_cannot_write(path, len(content), error)) from error\n    finally:",
        T_SECOND + "test_a_file_is_on_disk_before_it_takes_its_place_and_its_name_after",
    ),
    Mutation(
        "added lines are on disk when the call returns", FILES,
        "            file.flush()\n            os.fsync(file.fileno())\n        if is_new:",
        "            file.flush()\n        if is_new:",
        T_SECOND + "test_lines_are_on_disk_when_they_are_added_and_so_is_the_name_of_a_new_file",
    ),
    Mutation(
        "a file that was written is read back and compared", FILES,
        "if sha256_of_open(written) != sha256:", "if False:",
        T_FILES + "test_a_disk_that_alters_the_content_is_noticed",
    ),
    Mutation(
        "a file is written beside the old one, which stays until the new one is whole", FILES,
        'return path.with_name(f".{path.name}.{os.getpid()}.tmp")', "return path",
        T_FILES + "test_killed_while_writing_leaves_the_old_file_or_the_new_one",
    ),
    Mutation(
        "a write that fails leaves no temporary file", FILES,
        "        with contextlib.suppress(OSError):\n            temporary.unlink()\n    return sha256",
        "        pass\n    return sha256",
        T_FILES + "test_a_disk_that_alters_the_content_is_noticed",
    ),
    Mutation(
        "a link at the temporary name is not followed", FILES,
        '        temporary.unlink(missing_ok=True)\n        with open(temporary, "xb") as file:',
        '        with open(temporary, "wb") as file:',
        T_FILES + "test_a_link_at_the_temporary_name_is_not_followed",
    ),
    Mutation(
        "lines are not added to what a link leads to", FILES,
        'extra = getattr(os, "O_NOFOLLOW", 0) |', "extra = 0 |",
        T_FILES + "test_lines_are_not_added_to_what_a_link_leads_to",
    ),
    Mutation(
        "temporary files of living processes are left alone", FILES,
        "(int(match[1]) == os.getpid() or not process_is_alive(int(match[1])))", "True",
        T_FILES + "test_only_the_temporary_files_of_dead_processes_are_removed",
    ),
    Mutation(
        "an unfinished last line is cut off", FILES,
        "            if whole < size:\n", "            if False:\n",
        T_FILES + "test_lines_are_added_and_a_torn_one_is_cut_off",
    ),
    # --- reading
    Mutation(
        "links out of the folder are not read", FILES,
        "    if not inside:\n", "    if False:\n",
        T_FILES + "test_only_regular_files_are_read",
    ),
    Mutation(
        "devices, pipes and folders are not read", FILES,
        "            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):\n"
        '                raise StorageError(f"{path} is not a regular file; name a file")\n',
        "",
        T_FILES + "test_only_regular_files_are_read",
    ),
    Mutation(
        "files of any size are not read into memory", FILES,
        "        if num_bytes > max_bytes:\n", "        if False:\n",
        T_FILES + "test_hostile_json_is_refused",
    ),
    Mutation(
        "NaN and infinity in JSON are refused", FILES,
        "return msgspec.json.decode(content)", "return json.loads(content)",
        T_FILES + "test_hostile_json_is_refused",
    ),
    Mutation(
        "deep JSON is refused in a sentence", FILES,
        "except (ValueError, msgspec.DecodeError, RecursionError) as error:",
        "except (ValueError, msgspec.DecodeError) as error:",
        T_FILES + "test_hostile_json_is_refused",
    ),
    Mutation(
        "the checksum of cards, manifests and settings is compared", FILES,
        " and value.get(seal) == hashlib.sha256(to_json(body)).hexdigest():", ":",
        T_FILES + "test_every_flipped_bit_of_a_sealed_file_is_found",
    ),
    Mutation(
        "the bytes of a sealed file are compared, too", FILES,
        "if content == to_json(value) and value.get(seal)", "if value.get(seal)",
        T_FILES + "test_every_flipped_bit_of_a_sealed_file_is_found",
    ),
    Mutation(
        "arrays of objects are not written", ARRAYS,
        'if array.dtype.kind not in "biuf":', "if False:",
        T_ARRAYS + "test_arrays_that_would_need_pickle_are_not_written",
    ),
    Mutation(
        "nothing is unpickled", ARRAYS,
        "            part[:] = np.frombuffer(content, dtype)\n",
        "            part[:] = np.frombuffer(content, dtype) if dtype != object else "
        "__import__('pickle').loads(content)\n",
        T_SECOND + "test_no_array_is_unpickled_even_if_its_header_were_taken",
    ),
    Mutation(
        "headers of arrays of objects are refused", ARRAYS,
        "'([<>|][biuf]\\d{1,2})'", "'([<>|][biufO]\\d{1,2})'",
        T_SECOND + "test_an_array_of_objects_is_refused_by_its_header",
    ),
    Mutation(
        "an archive is refused by what it unpacks to", ARRAYS,
        "            if unpacked > max_bytes:\n", "            if False:\n",
        T_ARRAYS + "test_the_size_limit_counts_unpacked_bytes",
    ),
    Mutation(
        "an array's header must agree with its size", ARRAYS,
        'if repr(shape) != f"({match[2]})" or num_bytes != member.file_size:', "if False:",
        T_ARRAYS + "test_hostile_archives_are_refused",
    ),
    Mutation(
        "names that lead out of the folder are refused", FILES,
        "if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name):", "if False:",
        T_FILES + "test_names_that_lead_elsewhere_are_refused",
    ),
    # --- checkpoints
    Mutation(
        "the checksum of weights is compared", CHECKPOINT,
        'if sha256_of_open(file) != weights["sha256"]:', "if False:",
        T_CHECKPOINT + "test_every_flipped_bit_is_refused",
    ),
    Mutation(
        "the size of weights is compared before they are read", CHECKPOINT,
        'if num_bytes != weights["bytes"]:', "if False:",
        T_CHECKPOINT + "test_hostile_cards_are_refused",
    ),
    Mutation(
        "an absurd header of weights is refused", CHECKPOINT,
        "if length > min(MAX_HEADER_BYTES, num_bytes - 8):", "if False:",
        T_CHECKPOINT + "test_a_pickle_is_not_run",
    ),
    Mutation(
        "weights that are not finite are neither written nor taken", CHECKPOINT,
        'if array.dtype.kind == "f" and not np.isfinite(array).all():', "if False:",
        T_CHECKPOINT + "test_weights_that_are_not_finite_are_never_written",
    ),
    Mutation(
        "tensors of another shape are refused", CHECKPOINT,
        "if name in expected and (tensor.shape, tensor.dtype) != (expected[name].shape, expected[name].dtype)",
        "if False",
        T_CHECKPOINT + "test_tensors_of_another_net_are_named",
    ),
    Mutation(
        "cards of another format are refused", CHECKPOINT,
        'if card.get("format") != FORMAT:', "if False:",
        T_CHECKPOINT + "test_hostile_cards_are_refused",
    ),
    # --- run folders
    Mutation(
        "a generation's files are compared with its manifest", RUN_FOLDER,
        'if name.startswith(prefix) and _measure(file_in(folder, name)) != (entry["bytes"], entry["sha256"]):',
        "if False:",
        T_DAMAGE + "test_a_damaged_generation_is_passed_over_and_said",
    ),
    Mutation(
        "files that changed after they were written are not committed", RUN_FOLDER,
        "            if found != sha256:\n", "            if False:\n",
        T_FOLDER + "test_a_generation_whose_files_are_not_sound_is_not_committed",
    ),
    Mutation(
        "two generations to resume from are kept", RUN_FOLDER,
        "for generation in generations[:2] for name", "for generation in generations[:1] for name",
        T_DAMAGE + "test_a_damaged_generation_is_passed_over_and_said",
    ),
    Mutation(
        "nothing is pruned on the word of a damaged manifest", RUN_FOLDER,
        "            return  # what a damaged manifest names is unknown; a later commit will tidy up",
        "            needed = set()",
        T_DAMAGE + "test_nothing_is_pruned_on_the_word_of_a_damaged_manifest",
    ),
    Mutation(
        "a run never starts from nothing by itself", RUN_FOLDER,
        "    if not never_committed:\n", "    if False:\n",
        T_DAMAGE + "test_a_run_never_starts_from_nothing_by_itself",
    ),
    Mutation(
        "settings are sealed", RUN_FOLDER,
        "    if CONFIG_SEAL not in config:\n", "    if True:\n",
        T_FOLDER + "test_settings_are_sealed",
    ),
    Mutation(
        "a folder that holds a run is not begun anew", RUN_FOLDER,
        'if _generations(path, "manifest") or (begun and not (path / NEVER_COMMITTED).exists()):', "if False:",
        T_LOCK + "test_a_folder_that_holds_a_run_is_not_begun_anew",
    ),
    Mutation(
        "a lock that was removed ends the run", RUN_FOLDER,
        "        if not self._lock.is_held():\n", "        if False:\n",
        T_LOCK + "test_a_lock_that_was_removed_ends_the_run",
    ),
    Mutation(
        "damaged figures are moved aside", "alphazero/storage/metrics_file.py",
        "    if damaged:\n        aside =", "    if False:\n        aside =",
        "tests/storage/test_metrics_file.py::test_damaged_metrics_are_moved_aside",
    ),
    Mutation(
        "the figures of unfinished generations are dropped", RUN_FOLDER,
        'kept = [line for line in lines if line["generation"] <= generation]', "kept = lines",
        T_FOLDER + "test_metrics_are_kept_line_by_line_and_cut_on_resume",
    ),
    Mutation(
        "one process at a time trains in a folder", LOCK,
        "            self._lock.acquire(timeout=PATIENCE, poll_interval=0.02)\n", "            pass\n",
        T_LOCK + "test_of_processes_that_start_together_exactly_one_gets_the_folder[5]",
    ),
    Mutation(
        "a lock that is a link is refused", LOCK,
        "if path.is_symlink() or (path.exists() and not path.is_file()):", "if False:",
        T_LOCK + "test_a_lock_that_is_no_file_is_refused_and_left_alone",
    ),
    Mutation(
        "damaged files of compiled code are compiled anew", CACHE,
        "    if hashlib.sha256(content[:-DIGEST_BYTES]).digest() != content[-DIGEST_BYTES:]:\n", "    if False:\n",
        T_CACHE + "test_damaged_code_is_compiled_anew_once_and_this_is_said",
    ),
    Mutation(
        "a user without a home gets no compiled code from the current folder", CACHE,
        "        if not os.path.isabs(self.get_cache_path()):\n", "        if False:\n",
        T_CACHE + "test_no_code_is_taken_from_the_current_folder",
    ),
    Mutation(
        "compiled code in a folder of somebody else is not taken", CACHE,
        'if hasattr(os, "getuid") and folder.lstat().st_uid != os.getuid():', "if False:",
        T_CACHE + "test_no_code_is_taken_from_a_folder_of_somebody_else",
    ),
    Mutation(
        "the folder of compiled code among temporary files is ours", CACHE,
        "if private and found.st_uid == user and", "if private and",
        T_CACHE + "test_the_folder_among_temporary_files_must_be_ones_own",
    ),
    Mutation(
        "an absurd number of a generation takes the doctor no memory", "alphazero/doctor/run.py",
        "    if gaps := _gaps(numbers, newest):\n",
        "    if gaps := [(number, number) for number in range(1, newest + 1) if number not in numbers]:\n",
        "tests/doctor/test_run.py::test_an_absurd_number_of_a_generation_takes_no_memory",
    ),
    # --- tournaments
    Mutation(
        "a tournament that has lost its folder or its lock writes no more", TOURNAMENT,
        "        if not self._lock.is_held():\n", "        if False:\n",
        T_TOURNAMENT + "test_a_tournament_that_has_lost_its_folder_says_so_and_writes_to_no_other",
    ),
    Mutation(
        "the lock that is held is the one in the folder", LOCK,
        "(there.st_dev, there.st_ino) == (same.st_dev, same.st_ino) and", "",
        T_TOURNAMENT + "test_a_tournament_that_has_lost_its_folder_says_so_and_writes_to_no_other[replaced by a copy]",
    ),
    Mutation(
        "settings of tournaments are sealed", TOURNAMENT,
        "    if SEAL in saved:\n        try:\n            saved = read_sealed_json(where, SEAL)\n",
        "    if SEAL in saved:\n        try:\n            pass\n",
        T_TOURNAMENT + "test_damage_is_found_and_said",
    ),
    Mutation(
        "the openings of a tournament's games are shorter than its game", TOURNAMENT,
        "            if self.opening_plies >= most:\n", "            if False:\n",
        T_TOURNAMENT + "test_damage_is_found_and_said",
    ),
    Mutation(
        "a tournament plays no more games of a pair than one can ask for", TOURNAMENT,
        "Meta(ge=1, le=MOST_GAMES, ", "Meta(ge=1, ",
        T_TOURNAMENT + "test_damage_is_found_and_said",
    ),
    Mutation(
        "a long file of a tournament is not read", "alphazero/tournaments/file.py",
        "read_bytes(path, MAX_BYTES)", "read_bytes(path, 1 << 40)",
        T_TOURNAMENT + "test_a_wrong_file_gets_one_sentence",
    ),
    Mutation(
        "a key of many dots in a tournament's file is not parsed", "alphazero/tournaments/file.py",
        '        if QUOTED.sub("", text).count(".") > MOST_DOTS:\n', "        if False:\n",
        T_TOURNAMENT + "test_a_wrong_file_gets_one_sentence",
    ),
    Mutation(
        "a new game is not written to what a link leads to", "alphazero/commands/rules/new.py",
        "        if os.path.lexists(path):\n", "        if path.exists():\n",
        "tests/commands/test_new_game.py::test_a_link_is_not_followed",
    ),
    # --- no code from files
    Mutation(
        "a run folder starts no code", "alphazero/training/run.py",
        "opponents=tuple(name for name in opponents if not runs_code(name))", "opponents=opponents",
        T_TRAIN + "test_a_run_folder_starts_no_code",
    ),
    Mutation(
        "a tournament's file starts no code", "alphazero/tournaments/file.py",
        'if word.partition(":")[0] in RUN_CODE:', "if False:",
        "tests/tournaments/test_tournament.py::test_a_wrong_file_gets_one_sentence",
    ),
    Mutation(
        "numbers with which OpenSpiel overflows are refused", OPENSPIEL,
        "    _check_parameters(text, given)\n", "",
        T_OPENSPIEL + "test_a_game_too_large_to_begin_is_refused_before_it_takes_any_memory",
    ),
    Mutation(
        "a game of OpenSpiel that is too large is refused before it begins", OPENSPIEL,
        "        _check_size(text, game)\n", "",
        T_OPENSPIEL + "test_a_game_too_large_to_begin_is_refused_before_it_takes_any_memory",
    ),
    Mutation(
        "what OpenSpiel raises becomes one sentence", OPENSPIEL,
        "    except Exception as error:\n", "    except RecursionError as error:\n",
        T_OPENSPIEL + "test_parameters_that_cannot_be_get_one_sentence",
    ),
    # --- resuming
    Mutation(
        "a run goes on with its own seed and threads", RUN_STATE,
        "if state.threads != plan.threads or state.seed != plan.seed:", "if False:",
        T_COACH + "test_another_seed_or_thread_count_is_refused_on_resume",
    ),
    Mutation(
        "a resumed run meets the cache of an uninterrupted one", RUN_STATE,
        "        self.workers.forget()  #", "        pass  #",
        T_COACH + "test_a_resumed_run_equals_the_uninterrupted_one",
    ),
    Mutation(
        "the games in progress go on", RUN_STATE,
        "            worker.restore({name: games[", "            ({name: games[",
        T_COACH + "test_a_resumed_run_equals_the_uninterrupted_one",
    ),
    Mutation(
        "the order of samples follows the generation", LEARNER,
        "key=(self.seed << 32) + generation", "key=self.seed << 32",
        T_LEARNER + "test_every_position_is_drawn_equally_often_and_the_order_follows_seed_and_generation",
    ),
    Mutation(
        "the net of a run does not change", "alphazero/training/run.py",
        'if any(line.startswith(("settings.net", "settings.initial_net")) for line in changed):', "if False:",
        T_TRAIN + "test_the_net_of_a_run_cannot_change",
    ),
    # --- numbers
    Mutation(
        "batches without a finite loss are not counted", LEARNER,
        "if not all(math.isfinite(loss) for loss in losses.values()):", "if False:",
        T_LEARNER + "test_batches_without_a_finite_loss_are_skipped_and_counted",
    ),
    Mutation(
        "three such batches in a row stop the run", LEARNER,
        "            if self._in_a_row == 3:\n", "            if False:\n",
        T_LEARNER + "test_three_in_a_row_stop_the_run_with_a_diagnosis",
    ),
    Mutation(
        "a batch that is not finite changes nothing", TRAINER,
        "        if self._on_gpu or finite:\n", "        if True:\n",
        T_TRAINER + "test_a_batch_that_is_not_finite_changes_nothing",
    ),
    Mutation(
        "gradients are looked at as well as losses", TRAINER,
        "finite = torch.isfinite(losses[0] + losses[1] + norm)", "finite = torch.isfinite(losses[0] + losses[1])",
        "tests/reliability/test_n1_not_finite.py::test_one_bad_batch_is_skipped_counted_and_said",
    ),
    Mutation(
        "illegal actions get no gradient", TRAINER,
        "logits.masked_fill(~legal_mask, MASKED)", "logits",
        T_TRAINER + "test_illegal_actions_get_no_gradient",
    ),
    Mutation(
        "an answer of a network that is no number names the position", EVALUATOR,
        "            if wrong >= 0:\n", "            if False:\n",
        T_EVALUATOR + "test_an_answer_that_is_no_number_names_the_position",
    ),
    Mutation(
        "a failed answer is not remembered", EVALUATOR,
        "            self.clear()  # this batch's entries have no answers\n", "",
        T_EVALUATOR + "test_a_failed_answer_is_not_remembered",
    ),
    Mutation(
        "value targets lie between -1 and 1", "alphazero/training/selfplay/value_targets.py",
        "    if not (np.abs(targets[games.known]) <= 1.0 + 1e-6).all():", "    if False:",
        "tests/training/test_run.py::test_a_value_target_that_cannot_be_is_refused_in_a_sentence",
    ),
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
        "policies = np.take_along_axis(samples.policies, kernels.game.symmetries[1][symmetries], axis=1)",
        "policies = samples.policies",
        T_REPLAY + "test_the_policy_is_turned_with_its_position",
    ),
    Mutation(
        "a random symmetry turns the mask as well", REPLAY,
        "            np.take_along_axis(masks, actions, axis=1),\n", "            masks,\n",
        T_REPLAY + "test_a_symmetry_turns_observation_mask_and_policy_alike",
    ),
    Mutation(
        "old samples leave the window", REPLAY,
        "            self.generations.popleft()\n", "            break\n",
        T_REPLAY + "test_the_oldest_generations_leave",
    ),
    Mutation(
        "a candidate below the gate's threshold does not take over", COACH,
        '"promoted": result.score >= gate.threshold,', '"promoted": True,',
        T_COACH + "test_a_candidate_below_the_threshold_does_not_take_over",
    ),
    Mutation(
        "the gate stops only when it is certain", ARENA,
        "best = (result.points + num_games - result.num_games) / num_games", "best = result.score",
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
        "self._openings[game // 2 % len(self._openings)]", "self._openings[game % len(self._openings)]",
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
        "tests/matches/test_openings.py::test_openings_are_distinct_and_all_there_are",
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
        "an engine's time limit is for its whole answer", GTP,
        "deadline = time.monotonic() + self._timeout", "deadline = time.monotonic() + 20 * self._timeout",
        T_GTP + "test_the_time_limit_is_for_the_whole_answer",
    ),
    Mutation(
        "an engine's time limit is for reading what it is told", GTP,
        "        if not self._written.acquire(timeout=self._timeout):\n", "        if False:\n",
        T_GTP + "test_the_time_limit_is_for_an_engine_that_does_not_read_as_well",
    ),
    Mutation(
        "lines of an engine that nobody takes are not kept for ever", GTP,
        "return self._put - self._taken <= 4 * MAX_ANSWER", "return True",
        T_GTP + "test_lines_that_nobody_takes_are_not_kept_for_ever",
    ),
    Mutation(
        "an engine's answer has an end", GTP,
        "            if len(lines) > MAX_LINES or length > MAX_ANSWER:\n", "            if False:\n",
        T_GTP + "test_what_an_engine_does_wrong_loses_its_game_and_the_next_one_begins[endless]",
    ),
    Mutation(
        "an engine's line has an end", GTP,
        "pipe.readline(MAX_LINE)) and lines.put(line)", "pipe.readline()) and lines.put(line)",
        T_GTP + "test_a_line_without_end_is_taken_in_pieces",
    ),
    Mutation(
        "a solver program's answer has an end", "games/connect4/solver_program.py",
        "program.stdout.readline(MAX_LINE)", "program.stdout.readline()",
        "tests/games/test_solver_program.py::test_an_answer_without_end_is_not_read_to_its_end",
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
        "tests/training/test_run.py::test_a_run_folder_sends_nothing_anywhere_by_itself",
    ),
    Mutation(
        "TensorBoard writes through no link", "alphazero/training/metrics.py",
        "        if self._folder.is_symlink():\n", "        if False:\n",
        "tests/training/test_run.py::test_tensorboard_gets_no_figures_through_a_link",
    ),
    Mutation(
        "wandb writes through no link", "alphazero/training/metrics.py",
        "            if (folder / name).is_symlink():\n", "            if False:\n",
        "tests/training/test_run.py::test_wandb_does_not_begin_through_a_link",
    ),
    Mutation(
        "a replay has no more samples than the settings allow", RUN_STATE,
        "min(count, most)", "count",
        "tests/training/test_hostile_runs.py::test_a_replay_holds_no_more_samples_than_the_settings_allow",
    ),
    Mutation(
        "a manifest does not say how many games in progress may be read", RUN_STATE,
        "min(state.slots, self._most_games)", "state.slots",
        "tests/training/test_hostile_runs.py::test_games_in_progress_are_no_more_than_the_settings_allow",
    ),
    Mutation(
        "damaged games of a cluster are moved aside", "alphazero/training/remote/inbox.py",
        "and it is now %s\", error, move_aside(path))\n", "and it is now %s\", error, path.unlink())\n",
        "tests/training/test_inbox.py::test_damaged_games_are_moved_aside",
    ),
    Mutation(
        "games of a cluster that cannot be read stay where they are", "alphazero/training/remote/inbox.py",
        "and it stays where it is\", error)\n", "and it stays where it is\", error)\n            path.unlink()\n",
        "tests/training/test_inbox.py::test_a_file_that_cannot_be_read_now_stays_where_it_is",
    ),
    Mutation(
        "no more games of a cluster are read than the settings allow", "alphazero/training/remote/inbox.py",
        "raw_bytes(game, most * game.max_plies, most) + HEADER_BYTES)", "1 << 40)",
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
