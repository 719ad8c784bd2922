"""The protections of this program: for each, the edit that removes it and the test that must then fail."""

from __future__ import annotations

from tests.mutations.foreign import FOREIGN
from tests.mutations.mutation import Mutation
from tests.mutations.playing import PLAYING

FILES, RUN_FOLDER = "alphazero/storage/files.py", "alphazero/storage/run_folder.py"
CHECKPOINT, LOCK = "alphazero/storage/checkpoint.py", "alphazero/storage/folder_lock.py"
ARRAYS = "alphazero/storage/arrays.py"
CACHE, EVALUATOR = "alphazero/storage/kernel_cache.py", "alphazero/search/evaluator.py"
LEARNER = "alphazero/training/learner.py"
LINEUP, RESUME = (f"alphazero/training/parts/{name}.py" for name in ("lineup", "resume"))
TRAINER = "alphazero/nets/torch_trainer.py"

T_FILES, T_ARRAYS = "tests/storage/test_files.py::", "tests/storage/test_arrays.py::"
T_FOLDER, T_DAMAGE, T_LOCK = (f"tests/storage/test_{name}.py::" for name in ("run_folder", "damage", "lock"))
T_CHECKPOINT, T_CACHE = "tests/storage/test_checkpoint.py::", "tests/storage/test_kernel_cache.py::"
T_SECOND, T_TRAIN = "tests/reliability/test_second_lines.py::", "tests/commands/test_train.py::"
T_EVALUATOR = "tests/search/test_evaluator.py::"
T_COACH = "tests/training/test_coach.py::"
T_LEARNER = "tests/training/test_learner.py::"
T_TRAINER = "tests/nets/test_torch_trainer.py::"


MUTATIONS = [
    # --- writing
    Mutation(
        "a file is on disk before it takes its place", FILES,
        "            sync(file.fileno())\n        fault_point(\"write.after\")",
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
        "                sync(file.fileno())\n            except OSError:\n", "            except OSError:\n",
        T_SECOND + "test_lines_are_on_disk_when_they_are_added_and_so_is_the_name_of_a_new_file",
    ),
    Mutation(
        "a file that was written is read back and compared", FILES,
        "if sha256_of_open(written) != sha256:", "if False:",
        T_FILES + "test_a_disk_that_alters_the_content_is_noticed",
    ),
    Mutation(
        "a file is written beside the old one, which stays until the new one is whole", FILES,
        'return path.with_name(f".{path.name}.{secrets.token_hex(4)}.{os.getpid()}.tmp")', "return path",
        T_FILES + "test_killed_while_writing_leaves_the_old_file_or_the_new_one",
    ),
    Mutation(
        "a write that fails leaves no temporary file", FILES,
        "        with contextlib.suppress(OSError):\n            temporary.unlink()\n    return sha256",
        "        pass\n    return sha256",
        T_FILES + "test_a_disk_that_alters_the_content_is_noticed",
    ),
    Mutation(
        "no two writes have one temporary file", FILES,
        ".{secrets.token_hex(4)}.", ".",
        T_FILES + "test_a_write_is_whole_while_another_thread_writes_the_same_file",
    ),
    Mutation(
        "a link at the temporary name is not followed", FILES,
        'with open(temporary, "xb") as file:', 'with open(temporary, "wb") as file:',
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
        "if whole and value.get(seal) == hashlib.sha256(to_json(body, indent)).hexdigest():", "if whole:",
        T_FILES + "test_every_flipped_bit_of_a_sealed_file_is_found",
    ),
    Mutation(
        "the bytes of a sealed file are compared, too", FILES,
        "whole = content == to_json(value, indent)", "whole = True",
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
        'if name.startswith(prefix) and _measure(file_in(folder, name), entry["bytes"]) != expected:', "if False:",
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
        "config = read_json_less_seal(folder / CONFIG, CONFIG_SEAL)",
        "config = {name: x for name, x in read_json(folder / CONFIG).items() if name != CONFIG_SEAL}",
        T_FOLDER + "test_settings_are_sealed",
    ),
    Mutation(
        "a run that has lost its settings is a run", RUN_FOLDER,
        ' or bool(_generations(Path(path), "manifest"))', "",
        "tests/commands/test_lost_files.py::test_no_command_sends_to_another_that_sends_back",
    ),
    Mutation(
        "lines of figures and games are sealed", FILES,
        "    return _less_seal(parse_json(content, where), content, where, LINE_SEAL, indent=None)\n",
        "    return {k: x for k, x in parse_json(content, where).items() if k != LINE_SEAL}\n",
        "tests/storage/test_metrics_file.py::test_no_flipped_bit_of_a_figure_is_believed",
    ),
    Mutation(
        "figures that are gone are said", "alphazero/storage/metrics_file.py",
        '    if missing := gaps((line["generation"] for line in lines), newest):\n', "    if missing := []:\n",
        "tests/storage/test_metrics_file.py::test_figures_that_are_gone_are_said",
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
    # --- no code from files
    Mutation(
        "a run folder starts no code", "alphazero/training/run.py",
        "kept = tuple(name for name in opponents if not runs_code(name))", "kept = opponents",
        T_TRAIN + "test_a_run_folder_starts_no_code",
    ),
    Mutation(
        "a tournament's file starts no code", "alphazero/tournaments/file.py",
        "if runs_code(word):", "if False:",
        "tests/tournaments/test_tournament_command.py::test_a_wrong_file_gets_one_sentence",
    ),
    # --- resuming
    Mutation(
        "a run goes on with its own seed and threads", RESUME,
        "if state.threads != plan.threads or state.seed != plan.seed:", "if False:",
        T_COACH + "test_another_seed_or_thread_count_is_refused_on_resume",
    ),
    Mutation(
        "a resumed run meets the cache of an uninterrupted one", LINEUP,
        "        self.workers.forget()  #", "        pass  #",
        T_COACH + "test_a_resumed_run_equals_the_uninterrupted_one",
    ),
    Mutation(
        "the games in progress go on", LINEUP,
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
        "logits.masked_fill(~legal_mask, -math.inf)", "logits",
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
    *PLAYING,
    *FOREIGN,
]  # fmt: skip
