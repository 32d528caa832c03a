#!/bin/sh
# Tells acpdb of an event, and gives its answer to the host. Whatever becomes of acpdb, the host goes on: it may be missing,
# broken or slow. ACPDB_MODE: record, suggest (the default) or prune. `call` names events that the module deals with itself,
# in the process that says so.
program="${ACPDB_PROGRAM:-acpdb}"
if [ "$1" = call ] && [ -n "$ACPDB_MODULE" ] && [ "$ACPDB_MODULE" = "$CLAUDE_PID" ]; then
  echo '{}'
  exit 0
fi
command -v "$program" >/dev/null 2>&1 || { echo '{}'; exit 0; }
"$program" hook claude-code --mode "${ACPDB_MODE:-suggest}" 2>/dev/null || true
exit 0
