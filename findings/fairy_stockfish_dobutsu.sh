#!/usr/bin/env bash
# Fairy-Stockfish: two versions play dobutsu shogi by different rules.
#
# One expects that Debian's engine and pyffish, the library made of the same source, have the same legal moves of the
# built-in variant `dobutsu`.
# What happens: version 11.1 (Debian) keeps the lion out of check as a king of chess, and a chick on the last row may
# stay a chick. In pyffish 0.0.90 the lion may be left to be taken, and the chick must become a hen.
# Where our users meet it: matches against uci:fairy-stockfish in dobutsu. With rules as in pyffish the engine answered
# `(none)` where it saw a mate; and its move b3b4 of a chick is read as b3b4+.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq fairy-stockfish 2>/dev/null
dpkg -x fairy-stockfish_*.deb unpacked
ls fairy-stockfish_*.deb
python3 -m venv venv
venv/bin/pip install -q pyffish==0.0.90

moves_of_engine() {
    printf 'uci\nsetoption name UCI_Variant value dobutsu\nposition startpos moves %s\ngo perft 1\nquit\n' "$1" |
        unpacked/usr/games/fairy-stockfish | sed -nE 's/^([^ ]+): 1$/\1/p' | sort | xargs
}
moves_of_library() {
    venv/bin/python - "$1" <<'PYTHON'
import sys

import pyffish

print(*sorted(pyffish.legal_moves("dobutsu", pyffish.start_fen("dobutsu"), sys.argv[1].split())))
PYTHON
}

in_check="b2b3"        # the chick attacks the lion on b4
chick="b2b3 b4c3"      # the lion has gone, and the chick may go to the last row
checked=$(moves_of_engine "$in_check") && checked_library=$(moves_of_library "$in_check")
echo "in check, engine 11.1:     $checked"
echo "in check, pyffish 0.0.90:  $checked_library"
promotes=$(moves_of_engine "$chick" | tr ' ' '\n' | grep '^b3b4' | xargs)
promotes_library=$(moves_of_library "$chick" | tr ' ' '\n' | grep '^b3b4' | xargs)
echo "a chick goes to the last row, engine 11.1: $promotes; pyffish 0.0.90: $promotes_library"
# the giraffe may move in the library alone, and leave the lion to the chick
[[ " $checked " != *" a4a3 "* && " $checked_library " == *" a4a3 "* ]]
[[ $promotes == "b3b4 b3b4+" && $promotes_library == "b3b4+" ]]
