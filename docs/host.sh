#!/usr/bin/env bash
# A whole host: a model with one tool, its context kept by acpdb. docs/LIVE.md says what each part is for.
#   ANTHROPIC_BASE_URL=http://127.0.0.1:8080 ANTHROPIC_API_KEY=.. docs/host.sh SESSION "Which files are here?"
set -euo pipefail
session=$1 prompt=$2 model=${MODEL:-claude-sonnet-4-5} number=0
tools='[{"name":"bash","description":"Runs a command","input_schema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}]'

say() { # a JSON object: one commit of the session
  jq -c --arg session "$session" '{session: $session, host: "host.sh"} + .' | acpdb append --stdin --quiet
}

jq -n --arg text "$prompt" '{turn: true, message: {role: "user", text: $text}}' | say
while [ "$number" -lt "${STEPS:-20}" ]; do
  number=$((number + 1))
  # What the model sees: recorded as sent, what is stale hidden where that pays.
  body=$(acpdb step "$session" --format anthropic --inject |
    jq -c --arg model "$model" --argjson tools "$tools" '. + {model: $model, max_tokens: 4096, tools: $tools}')
  answer=$(curl --silent --show-error --fail-with-body "$ANTHROPIC_BASE_URL/v1/messages" \
    --header @<(printf 'x-api-key: %s\n' "$ANTHROPIC_API_KEY") --header "anthropic-version: 2023-06-01" \
    --header "content-type: application/json" --data-binary @- <<<"$body")
  # What it said.
  text=$(jq -r '[.content[] | select(.type == "text").text] | join("\n")' <<<"$answer")
  if [ -n "$text" ]; then
    jq -n --arg text "$text" '{message: {role: "assistant", text: $text}}' | say
    printf '%s\n' "$text"
  fi
  # What it asked for: each call is run, and recorded with its result.
  calls=$(jq -c '.content[] | select(.type == "tool_use")' <<<"$answer")
  [ -n "$calls" ] || break
  while read -r call; do
    output=$(bash -c "$(jq -r .input.command <<<"$call")" 2>&1 </dev/null) || output="$output (exit code $?)"
    jq --arg output "$output" '{tool: {call: .id, tool: .name, params: .input, output: $output}}' <<<"$call" | say
  done <<<"$calls"
done
