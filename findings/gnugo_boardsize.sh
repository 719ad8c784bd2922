#!/usr/bin/env bash
# GNU Go accepts a board that is no square, and sets up a square one.
#
# One expects: `boardsize 9 7` is 9 columns and 7 rows, as KataGo, MoHex, HexGui, Lizzie and gtp2ogs mean it. An engine
# that has no such board answers `? unacceptable size`.
# What happens: GNU Go reads the first number, ignores the second, and answers `=`. Its board is 9x9: it accepts a stone
# in the ninth row of seven.
# Where our users meet it: a `gtp:` contestant in a game whose board is no square. The success of `boardsize` with two
# numbers does not show that both were heard.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq gnugo 2>/dev/null
dpkg -x gnugo_*.deb unpacked
unpacked/usr/games/gnugo --version | head -n 1

said=$(printf '1 boardsize 9 7\n2 query_boardsize\n3 play black A9\nquit\n' \
    | unpacked/usr/games/gnugo --mode gtp | grep -E '^[=?][1-3]' | sed 's/ *$//')
echo "boardsize 9 7, query_boardsize, play black A9"
echo "$said"
[ "$said" = $'=1\n=2 9\n=3' ]
