#!/usr/bin/env bash
# GRhino passes without being asked, and does not know the word.
#
# One expects: GTP calls `pass` a vertex, so an engine for Othello is told of a forced pass by `play black pass`, and
# `genmove` of a colour is a move of that colour.
# What happens: gtp-rhino refuses `play black pass` as a syntax error where black must pass, since its board has passed
# by itself. It answers `genmove` with `pass` for every colour that is not on turn, also for one that has moves.
# Where our users meet it: matches against gtp:"gtp-rhino" in Othello. `alphazero` goes on after that refusal; a program
# that tells every ply ends at the first forced pass.
set -euo pipefail

folder=$(mktemp -d /tmp/grhinoXXXXXX) # as long as /usr/share/grhino, which stands in the program
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq grhino grhino-data 2>/dev/null
for package in grhino*.deb; do dpkg -x "$package" unpacked; done
mv unpacked/usr/share/grhino/* .
sed "s#/usr/share/grhino#$folder#g" unpacked/usr/games/gtp-rhino > gtp-rhino
chmod +x gtp-rhino
ls grhino_*.deb

moves="f5 d6 c5 f4 f3 e3 d2 c6 e6 c4 b3 g5 g4 f7 b5 c3 b2 d3 b4 c2 b1 h4 h3 a1 a2 f6 h6 h5 b7 c7 g6 a8 d7 c1 g7 a3 a5 a6
    b6 a4 e7 h8 a7 h7 e2 h2 g8 f8 d8 e8 c8 f1 d1 b8"
# at the start black is on turn, and white would have moves; after the game's 54 moves black has none
commands() {
    printf 'boardsize 8\nclear_board\n1 genmove white\n'
    colour=black
    for move in $moves; do
        echo "play $colour $move"
        [ $colour = black ] && colour=white || colour=black
    done
    printf '2 play black pass\n3 genmove black\n4 play white f2\nquit\n'
}
said=$(commands | ./gtp-rhino --level=1 | grep -E '^[=?][1-4]')
echo "black is on turn: genmove white; black must pass: play black pass, genmove black, play white f2"
echo "$said"
[ "$said" = $'=1 pass\n?2 syntax error\n=3 pass\n=4' ]
