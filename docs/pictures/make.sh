#!/bin/sh
# Draws the pictures of the README anew, from the bundled session: docs/pictures/make.sh PROGRAM. Wants chromium and Python 3.
set -eu
program=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME="$scratch" COLUMNS=100
unset NO_COLOR || true
"$program" demo --bundled --keep "$scratch/store" >/dev/null 2>&1
acpdb() { "$program" --db "$scratch/store" --color always "$@" 2>/dev/null; }
"$program" --db "$scratch/store" export html -o "$scratch/page.html" 2>/dev/null
chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=1100,680 --user-data-dir="$scratch/profile" \
    --virtual-time-budget=4000 --screenshot="$here/page.png" "file://$scratch/page.html#t54" 2>/dev/null
{
    for line in "sessions" "search clampLimit --limit 2" "history --chain #297" "cost"; do
        printf '\033[2m$\033[0m acpdb %s\n' "$line"
        # shellcheck disable=SC2086
        acpdb $line
        echo
    done
} | python3 "$here/terminal.py" >"$here/terminal.svg"
