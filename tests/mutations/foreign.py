"""Protections from what others give: folders, names and files of games and tournaments, programs, signals."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

CACHE, T_CACHE = "alphazero/storage/kernel_cache.py", "tests/storage/test_kernel_cache.py::"
GTP, T_GTP = "alphazero/players/gtp_player.py", "tests/players/test_gtp_player.py::"
LOCK = "alphazero/storage/folder_lock.py"
OPENSPIEL, T_OPENSPIEL = "alphazero/catalogue/adapters/openspiel.py", "tests/catalogue/test_openspiel.py::"
TOURNAMENT, T_TOURNAMENT = "alphazero/tournaments/folder.py", "tests/tournaments/test_tournament.py::"
CONNECTION, T_CONNECTION = "alphazero/web/connection.py", "tests/web/test_connection.py::"

FOREIGN = [
    # --- the page's server
    Mutation(
        "frames of every kind are counted", CONNECTION,
        "        if self._count(max(1, len(self.conn.events))) < -BURST:", "        if self._count(1) is None:",
        T_CONNECTION + "test_a_flood_of_frames_ends_its_connection_alone[pings]",
    ),
    Mutation(
        "a request's body is not read without end", CONNECTION,
        "self.conn.their_state is h11.SEND_BODY:", "False:",
        T_CONNECTION + "test_a_request_does_not_end_in_parts_without_number",
    ),
    Mutation(
        "who answers no ping does not keep a place", CONNECTION,
        "        super().keepalive_timeout()\n        self.transport.abort()\n",
        "        super().keepalive_timeout()\n",
        T_CONNECTION + "test_who_reads_nothing_does_not_keep_a_place",
    ),
    # --- folders and names
    Mutation(
        "a user without a home gets no compiled code from the current folder", CACHE,
        "        if not os.path.isabs(self.get_cache_path()):\n", "        if False:\n",
        T_CACHE + "test_no_code_is_taken_from_the_current_folder",
    ),
    Mutation(
        "compiled code in a folder of somebody else is not taken", CACHE,
        "    if found.st_uid != os.getuid():\n        raise", "    if False:\n        raise",
        T_CACHE + "test_no_code_is_taken_from_what_belongs_to_somebody_else",
    ),
    Mutation(
        "compiled code in a folder that everybody may write to is not taken", CACHE,
        "    if is_shared or _others_can_write(found):\n", "    if is_shared:\n",
        T_CACHE + "test_no_code_is_taken_from_a_folder_that_everybody_may_write_to",
    ),
    Mutation(
        "a file of compiled code that others may write to is not taken", CACHE,
        "            if found.st_uid != os.getuid() or _others_can_write(found):\n", "            if False:\n",
        T_CACHE + "test_no_code_is_taken_from_a_file_that_others_may_write_to",
    ),
    Mutation(
        "the folder of compiled code among temporary files is ours", CACHE,
        "if private and found.st_uid == user and", "if private and",
        T_CACHE + "test_the_folder_among_temporary_files_must_be_ones_own",
    ),
    Mutation(
        "an absurd number of a generation takes the doctor no memory", "alphazero/doctor/run.py",
        "    if missing := gaps(numbers, newest):\n",
        "    if missing := [(number, number) for number in range(1, newest + 1) if number not in numbers]:\n",
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
        "        saved = read_json_less_seal(where, SEAL)\n",
        "        saved = {k: x for k, x in __import__('json').loads(where.read_text()).items() if k != SEAL}\n",
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
        "tests/tournaments/test_tournament_command.py::test_a_wrong_file_gets_one_sentence",
    ),
    Mutation(
        "a key of many dots in a tournament's file is not parsed", "alphazero/tournaments/file.py",
        '        if QUOTED.sub("", text).count(".") > MOST_DOTS:\n', "        if False:\n",
        "tests/tournaments/test_tournament_command.py::test_a_wrong_file_gets_one_sentence",
    ),
    Mutation(
        "a new game is not written to what a link leads to", "alphazero/commands/rules/new.py",
        "        if os.path.lexists(path):\n", "        if path.exists():\n",
        "tests/commands/test_new_game.py::test_a_link_is_not_followed",
    ),
    # --- no code from files
    Mutation(
        "numbers with which OpenSpiel overflows are refused", OPENSPIEL,
        "    _check_parameters(text, given)\n", "",
        T_OPENSPIEL + "test_a_game_too_large_to_begin_is_refused_before_it_takes_any_memory",
    ),
    Mutation(
        "a game that another one of OpenSpiel is made from opens no file", OPENSPIEL,
        "    _check_inner_games(given, kinds)\n    with", "    with",
        T_OPENSPIEL + "test_a_game_made_from_another_opens_no_file",
    ),
    Mutation(
        "a game of OpenSpiel that is too large is refused before it begins", OPENSPIEL,
        "        _check_size(text, game)\n", "",
        T_OPENSPIEL + "test_a_game_too_large_to_begin_is_refused_before_it_takes_any_memory",
    ),
    Mutation(
        "a game of OpenSpiel whose start is drawn by lot is refused", OPENSPIEL,
        "        if start.is_chance_node():", "        if False:",
        T_OPENSPIEL + "test_parameters_that_cannot_be_get_one_sentence",
    ),
    Mutation(
        "what OpenSpiel raises becomes one sentence", OPENSPIEL,
        "    except Exception as error:\n", "    except RecursionError as error:\n",
        T_OPENSPIEL + "test_parameters_that_cannot_be_get_one_sentence",
    ),
    # --- matches and games
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
        "a solver program's answer has an end", "games/connect4/solver/confirmation.py",
        "program.stdout.readline(MAX_LINE)", "program.stdout.readline()",
        "tests/games/test_solver_program.py::test_an_answer_without_end_is_not_read_to_its_end",
    ),
    Mutation(
        "an engine that cannot take part is not started", "alphazero/players/contestants.py",
        "        if split_text(name).name in PLAYING_ALONE:  #", "        if False:  #",
        T_GTP + "test_an_engine_that_cannot_take_part_is_not_started",
    ),
    Mutation(
        "bytes that are no text do not end the engine that we are", "alphazero/commands/gtp.py",
        '        stream.reconfigure(errors="replace")  #', "        pass  #",
        "tests/commands/test_gtp.py::test_bytes_that_are_no_text_are_an_unknown_command",
    ),
    # --- files and texts
    Mutation(
        "a pipe in place of a file is not waited for", "alphazero/storage/files.py",
        'getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) |', 'getattr(os, "O_BINARY", 0) |',
        "tests/storage/test_pipes.py::test_a_pipe_is_not_waited_for[read]",
    ),
    Mutation(
        "a game that a file names is one of those that are known", "alphazero/catalogue/registry.py",
        "    if name in NAMES or name.startswith(openspiel.PREFIX) or name in _entry_points():\n        return load",
        "    if True:\n        return load",
        "tests/game/test_record.py::test_what_a_file_names_is_not_run_and_illegal_moves_are_found",
    ),
    Mutation(
        "a file of the user's is not replaced without asking", "alphazero/storage/files.py",
        "    if not os.path.lexists(path):\n        return True\n", "    return True\n",
        "tests/commands/test_outputs.py::test_a_file_that_exists_is_left_as_it_is",
    ),
    Mutation(
        "texts out of files do not steer the terminal", "alphazero/errors.py",
        'return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)',
        "return text",
        "tests/commands/test_shown_text.py::test_all_that_steers_is_escaped_and_nothing_else",
    ),
    # --- signals
    Mutation(
        "a second signal ends a command at once", "alphazero/interruption.py",
        "                if not connection.recv(1):\n                    return\n",
        "                threading.Event().wait(PATIENCE)\n",
        "tests/test_interruption.py::test_a_second_signal_ends_a_command_at_once_whatever_it_does",
    ),
    Mutation(
        "a command that does not end in order is ended", "alphazero/interruption.py",
        "            connection.settimeout(PATIENCE)\n", "            connection.settimeout(600.0)\n",
        "tests/reliability/test_r3_signals.py::test_an_exception_that_a_callback_swallows_is_not_the_last_word",
    ),
    Mutation(
        "a child made by fork does not wait for torch's threads", "alphazero/nets/torch_net.py",
        '    if hasattr(os, "register_at_fork"):', "    if False:",
        "tests/library/test_other_programs.py::test_a_child_made_by_fork_does_what_its_parent_could",
    ),
    Mutation(
        "a signal to a child made by fork does not reach the command", "alphazero/interruption.py",
        "os.register_at_fork(after_in_child=_leave_to_parent)", "pass",
        "tests/test_interruption.py::test_a_signal_to_a_child_made_by_fork_does_not_end_the_command",
    ),
    Mutation(
        "a worker ends with its parent", "alphazero/players/child_processes.py",
        "    threading.Thread(target=_end_with_parent, daemon=True).start()\n", "",
        "tests/training/test_worker_process.py::test_a_process_that_still_starts_ends_with_its_parent",
    ),
    Mutation(
        "a command that leaves at once kills its workers", "alphazero/players/child_processes.py",
        "interruption.last_acts.append(_kill_all)", "",
        "tests/reliability/test_r3_signals.py::test_a_stopped_worker_does_not_outlive_the_command",
    ),
    Mutation(
        "a worker runs no file that is not there", "alphazero/players/child_processes.py",
        "(path and not os.path.isfile(path))", "False",
        "tests/training/test_worker_process.py::test_a_program_from_standard_input_begins_processes",
    ),
    Mutation(
        "a lack of memory is told in a sentence", "alphazero/commands/program.py",
        "        if not (sentence := refusal(error)):\n", "        if sentence := refusal(error):\n",
        "tests/commands/test_program.py::test_a_command_that_gets_no_memory_or_thread_says_so_in_a_sentence",
    ),
    Mutation(
        "programs begun meanwhile do not get Ctrl-C", "alphazero/interruption.py",
        "signal.SIG_BLOCK, {signal.SIGINT})", "signal.SIG_BLOCK, set())",
        "tests/test_interruption.py::test_a_program_that_is_begun_while_signals_are_held_back_does_not_get_them",
    ),
]  # fmt: skip
