#!/bin/sh
# Tells acpdb of an event, and gives its answer to the host. Whatever becomes of acpdb, the host goes on: it may be missing,
# broken or slow. ACPDB_MODE: record, suggest (the default) or prune.
program="${ACPDB_PROGRAM:-acpdb}"
command -v "$program" >/dev/null 2>&1 || { echo '{}'; exit 0; }
"$program" hook claude-code --mode "${ACPDB_MODE:-suggest}" 2>/dev/null || true
exit 0
