#!/bin/sh
# Answers the commands of the plug-in: why FILE, restore ID, stats. The session is the one that asks, else the newest.
program="${ACPDB_PROGRAM:-acpdb}"
session="${CLAUDE_CODE_SESSION_ID:-latest}"
lines=60
verb="$1"
[ $# -gt 0 ] && shift
if ! command -v "$program" >/dev/null 2>&1; then
  echo "acpdb is not installed, or not in PATH; ACPDB_PROGRAM names it"
  exit 0
fi
case "$verb" in
  why)
    if [ -z "$1" ]; then
      echo "why what? Name a file, or an item such as #812 or r_a1b2c"
    else
      case "$1" in
        '#'* | [a-z]_[0-9a-f]*) "$program" explain "$1" --session "$session" 2>&1 ;;
        *) "$program" history "file:$1" --session "$session" --no-pager 2>&1 ;;
      esac
    fi ;;
  restore)
    if [ -z "$1" ]; then
      echo "restore what? Name an item such as #812, or a hash such as r_a1b2c"
    else
      "$program" context restore --session "$session" -- "$@" 2>&1
    fi ;;
  stats | '') "$program" stats --session "$session" 2>&1 ;;
  *) echo "acpdb knows: why FILE, restore ID, stats" ;;
esac | head -n "$lines"
exit 0
